"""State merging with correct labels: RPNI of AALpy."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import complete, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.learning.word_files import Data
from fsa2lrnn.optional import require

_UNKNOWN = "unknown"


def merge(data: Data, deadline: Deadline = NEVER) -> MooreMachine:
    """Return the machine that RPNI infers from all labelled prefixes; undefined transitions become self-loops.

    Raises:
        MissingPackage: if AALpy is not installed.
        UnsupportedFormat: for labels that contradict each other.
        OutOfTime: at the deadline.
    """
    learning: Any = require(
        "aalpy.learning_algs.deterministic_passive.GsmRPNI", "learn", 'method="rpni"', 'method="train"'
    )

    class Rpni(learning.GsmRPNI):
        """RPNI of AALpy with a check of the deadline before each attempted merge of a pair of states."""

        def _partition_from_merge(self, red: Any, blue: Any) -> Any:
            deadline.check("merging states by RPNI")
            return super()._partition_from_merge(red, blue)

    rpni = Rpni(list(dict.fromkeys(labelled_prefixes(data))), "moore", print_info=False)
    inferred = None if rpni.root_node is None else rpni.run_rpni()
    if inferred is None:
        raise UnsupportedFormat(
            'RPNI takes words that do not contradict each other: correct them, or learn with method="train" and noise'
        )
    return machine_of_aalpy(inferred, data)


def labelled_prefixes(data: Data) -> list[tuple[tuple[int, ...], int]]:
    """Return every labelled prefix with its label, with repetitions."""
    return [
        (tuple(tokens[:k]), labels[k])
        for tokens, labels in zip(data.tokens.tolist(), data.labels.tolist(), strict=True)
        for k in range(len(labels))
        if labels[k] != UNCOUNTED
    ]


def machine_of_aalpy(source: Any, data: Data) -> MooreMachine:
    """Return AALpy's Moore machine over indices of letters and outputs as a `MooreMachine` with self-loops added."""
    number = {state: i for i, state in enumerate(source.states)}
    delta = [
        [number[state.transitions[a]] if a in state.transitions else None for state in source.states]
        for a in range(len(data.alphabet))
    ]
    usual = data.outputs[int(data.labels[data.labels != UNCOUNTED].mode().values)]
    outputs: list[Hashable] = [
        usual if state.output in (None, _UNKNOWN) else data.outputs[state.output] for state in source.states
    ]
    start = number[source.initial_state]
    return minimise(complete(delta, outputs, start, data.alphabet, completion="ignore"))
