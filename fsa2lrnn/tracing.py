"""Trace a model letter by letter: the output, the automaton's state, and the model's state vectors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fsa2lrnn import symbols
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.model import LRNN, decode
from fsa2lrnn.walks import walk

Vectors = list[list[float]]  # one row of numbers per layer; for an index table, its state number


@dataclass(frozen=True)
class Step:
    """One letter of a trace.

    Args:
        letter, output: the letter, and the model's output after it.
        state: the automaton's state after it, a label or else a number; None without an automaton.
        vectors: the model's state after it, one row per layer; None if not requested.
    """

    letter: Hashable
    output: Hashable
    state: Hashable = None
    vectors: Vectors | None = None


class Tracer:
    """A buffer that pairs the letters of a word with the model's outputs and the automaton's states.

    The model reads its letters through `read`, and `steps` takes its outputs. The buffer stores only the letters whose
    outputs are still missing.
    """

    def __init__(
        self, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...], machine: MooreMachine | None = None
    ) -> None:
        self._alphabet, self._outputs, self._machine = alphabet, outputs, machine
        self._waiting = np.empty(0, np.int64)
        if machine is not None:
            self._delta = machine.delta[symbols.align(alphabet, machine.alphabet)]
            self._q = machine.start

    def read(self, pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield the pieces of a word, int64 arrays of positions in the alphabet, unchanged; store their letters."""
        for piece in pieces:
            self._waiting = np.concatenate([self._waiting, piece])
            yield piece

    def steps(self, numbers: np.ndarray) -> list[Step]:
        """Return the next letters as steps; `numbers` are the indices of their outputs, int (N,)."""
        tokens, self._waiting = np.split(self._waiting, [len(numbers)])
        letters = [self._alphabet[a] for a in tokens]
        outputs = [self._outputs[j] for j in numbers]
        return [Step(*parts) for parts in zip(letters, outputs, self._states(tokens), strict=True)]

    def _states(self, tokens: np.ndarray) -> list[Hashable]:
        if self._machine is None or not len(tokens):
            return [None] * len(tokens)
        states = walk(self._delta, self._q, tokens)
        self._q = int(states[-1])
        labels = self._machine.labels
        return [int(q) if labels is None else labels[q] for q in states]


def with_states(
    model: LRNN, pieces: Iterable[np.ndarray], machine: MooreMachine | None = None, method: str = "auto"
) -> Iterator[Step]:
    """Yield the steps of a word, given in pieces, int64 arrays of positions in the alphabet; raise as `LRNN.stream`."""
    tracer = Tracer(model.alphabet, model.outputs, machine)
    for numbers in model.stream(tracer.read(pieces), method):
        yield from tracer.steps(numbers)


def with_vectors(
    model: LRNN, pieces: Iterable[np.ndarray], machine: MooreMachine | None = None, method: str = "auto"
) -> Iterator[Step]:
    """Yield the steps of a word with the model's state vectors, calling the model once per letter.

    The word is given in pieces, int64 arrays of positions in the alphabet. Complex entries become two real ones. Raises
    `UnsupportedFormat` for a model that is not causal, and `NotExact` for NaN logits.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> parity = zoo.parity()
    >>> [(step.output, step.vectors) for step in with_vectors(compile_machine(parity), [np.array([1, 1])])]
    [(True, [[0.0, 1.0]]), (False, [[1.0, 0.0]])]
    """
    if (reason := model.not_causal) is not None:
        raise UnsupportedFormat(reason)
    tracer, state = Tracer(model.alphabet, model.outputs, machine), model.initial_state()
    with torch.no_grad():
        for k, a in enumerate(a for piece in tracer.read(pieces) for a in piece.tolist()):
            logits, state = model.advance(torch.tensor([[a]], device=model.device), state, method)
            (step,) = tracer.steps(decode(logits[0], k).cpu().numpy())
            vectors = [torch.view_as_real(x) if x.is_complex() else x for x in (layer.x for layer in state)]
            yield Step(step.letter, step.output, step.state, [x.flatten().tolist() for x in vectors])


def header(has_states: bool) -> str:
    """Return the names of the columns that `line` prints, separated by tabs."""
    return "\t".join(["after", "letter", *(["state"] if has_states else []), "output"])


def line(k: int, step: Step, has_states: bool) -> str:
    """Return step number `k` as a line of text and a line per state vector, with columns separated by tabs."""
    state = [symbols.show_label(step.state)] if has_states else []
    row = "\t".join([str(k), str(step.letter), *state, symbols.show(step.output)])
    vectors = [f"\tx{i}\t{' '.join(f'{x:.6g}' for x in row)}" for i, row in enumerate(step.vectors or [])]
    return "\n".join([row, *vectors])


def steps_json(steps: Iterable[Step]) -> dict[str, Any]:
    """Return steps as a JSON object of lists: "letters", "trace" (the outputs), and "states" and "vectors" if any."""
    steps = list(steps)
    value: dict[str, Any] = {
        "letters": [symbols.to_json(step.letter) for step in steps],
        "trace": [symbols.to_json(step.output) for step in steps],
    }
    if any(step.state is not None for step in steps):
        value["states"] = [
            step.state if isinstance(step.state, int) else symbols.show_label(step.state) for step in steps
        ]
    if any(step.vectors is not None for step in steps):
        value["vectors"] = [step.vectors for step in steps]
    return value
