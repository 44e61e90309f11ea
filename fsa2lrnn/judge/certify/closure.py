"""A proof for all lengths where the states that a model reaches close, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.judge.check.enumeration import explore
from fsa2lrnn.judge.equivalence import BUDGET, Verdict
from fsa2lrnn.judge.goal import target
from fsa2lrnn.lrnn.model import LRNN


@dataclass(frozen=True)
class Closed(Verdict):
    """The model is right at every position that counts of every word.

    Args:
        pairs: pairs (model state, machine state) reached; no letter leads out of them.
        transitions: pairs × letters, each of them computed.
        arithmetic: the dtype computed in.
        scans: the scans that the proof covers; all of the model's, where nothing that was reached rounds.
    """

    pairs: int
    transitions: int
    arithmetic: str
    scans: tuple[str, ...]


@dataclass(frozen=True)
class NotClosed(Verdict):
    """No proof: a word is wrong, or the budget ran out.

    Args:
        pairs: reached.
        checked_length: the model is right on every word of at most this length.
        is_wrong: some word one letter longer is answered wrongly.
    """

    pairs: int
    checked_length: int
    is_wrong: bool


def closure(model: LRNN, machine: MooreMachine, budget: int = BUDGET) -> Closed | NotClosed:
    """Explore all joint states of model and machine: the empty word, and outputs that the model lacks, don't count.

    Raises:
        InvalidMachine, UnsupportedFormat: if model and machine have unlike alphabets or no output in common.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> closure(compile_machine(zoo.parity()), zoo.parity()).transitions
    4
    """
    found = explore(model, target(model, machine), budget)
    if not found.is_closed or found.is_wrong:
        return NotClosed(found.pairs, found.length, found.is_wrong)
    arithmetic = str(model.dtype).removeprefix("torch.")
    return Closed(found.pairs, found.pairs * len(model.alphabet), arithmetic, found.scans)
