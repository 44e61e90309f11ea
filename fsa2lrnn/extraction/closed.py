"""The states that a model reaches, told apart bit for bit: exact where they close."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, NotExact
from fsa2lrnn.extraction.runner import to_bytes
from fsa2lrnn.lrnn.model import LRNN, LayerState, State

NOT_A_NUMBER = -1  # the output number of logits that hold a NaN
_STEP_ENTRIES = 1 << 24  # entries of A(u) that one batch of single steps may materialise


class ModelSystem:
    """A model as a transition system on rows of bytes: the bit patterns of the floats that its step computes.

    Each step is the module's own `advance` on one letter, in its own dtype, so what is explored is what runs.
    """

    def __init__(self, model: LRNN) -> None:
        self._model = model
        self.alphabet, self.outputs = model.alphabet, model.outputs
        # nn.Module.eval is not called: nothing in an LRNN behaves differently in training.
        self._like = [[part for part in layer if part is not None] for layer in model.initial_state()]

    def initial(self) -> tuple[np.ndarray, int]:
        """The start as one row of bytes, uint8 (1, D), and the number of the output on the empty word."""
        return self._to_rows(self._model.initial_state()), int(output_numbers(self._model.initial_logits()[None])[0])

    def step(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """After every letter: uint8 (N, D) -> rows (N, |Σ|, D), output numbers (N, |Σ|)."""
        parts = [self._step(part) for part in self._batches(rows)]
        return np.concatenate([rows for rows, _ in parts]), np.concatenate([outputs for _, outputs in parts])

    def _step(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n_letters = len(self.alphabet)
        tokens = torch.arange(n_letters, device=self._model.device).repeat(len(rows))[:, None]
        with torch.no_grad():
            logits, state = self._model.advance(
                tokens, self._from_rows(np.repeat(rows, n_letters, axis=0)), "sequential"
            )
        after = self._to_rows(state)
        return after.reshape(len(rows), n_letters, -1), output_numbers(logits[:, 0]).reshape(len(rows), n_letters)

    def _batches(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        size = max(1, _STEP_ENTRIES // (len(self.alphabet) * self._model.entries_per_token))
        for start in range(0, len(rows), size):
            yield rows[start : start + size]

    def _to_rows(self, state: State) -> np.ndarray:
        return to_bytes(tuple(part for layer in state for part in layer if part is not None))

    def _from_rows(self, rows: np.ndarray) -> State:
        state, offset = [], 0
        for layer in self._like:
            parts: list[Tensor | None] = []
            for like in layer:
                width = like[0].numel() * like.element_size()
                piece = torch.from_numpy(np.ascontiguousarray(rows[:, offset : offset + width]))
                parts.append(piece.view(like.dtype).reshape(len(rows), *like.shape[1:]).to(like.device))
                offset += width
            state.append(LayerState(parts[0], parts[1] if len(parts) > 1 else None))  # type: ignore[arg-type]
        return tuple(state)


class Interner:
    """Numbers rows of bytes in the order they are first seen."""

    def __init__(self) -> None:
        self._number: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._number)

    def number(self, rows: np.ndarray) -> np.ndarray:
        """The number of each row, new ones in order of appearance: uint8 (N, D) -> int64 (N,)."""
        number, packed = self._number, rows.tobytes()
        width = rows.shape[1]
        return np.array(
            [number.setdefault(packed[i : i + width], len(number)) for i in range(0, len(packed), width)], np.int64
        )


class _Explored(NamedTuple):
    delta: np.ndarray
    outputs: list[int]


def extract(model: LRNN, max_states: int = 100_000) -> MooreMachine:
    """The minimal machine that a model computes, when its states close: exact for every word of every length.

    Explores the states reached from the start, as bit patterns of the floats computed step by step, until no letter
    leads to a new one. Compiled models close; trained ones mostly drift and run out of the budget.

    Raises:
        BudgetExceeded: if more than `max_states` states are reached.
        NotExact: if a state has logits that are not numbers.

    >>> from fsa2lrnn.lower import compile_machine
    >>> parity = MooreMachine([[0, 1], [1, 0]], [False, True])
    >>> extract(compile_machine(parity)) == parity
    True
    """
    explored = _explore(ModelSystem(model), max_states)
    if NOT_A_NUMBER in explored.outputs:
        raise NotExact("a reachable state has NaN logits, so it has no output: the model has overflowed")
    outputs = [model.outputs[j] for j in explored.outputs]
    return minimise(MooreMachine(explored.delta, outputs, 0, model.alphabet))


def _explore(system: ModelSystem, max_states: int) -> _Explored:
    start, output = system.initial()
    seen, outputs, columns = Interner(), [output], []
    # A state is what the step carries on together with what it puts out: under a residual stream, equal x may differ.
    seen.number(_tag(start, np.array([output])))
    frontier = start
    while len(frontier):
        rows, numbers = system.step(frontier)
        flat, flat_numbers = rows.reshape(-1, rows.shape[-1]), numbers.reshape(-1)
        before = len(seen)
        targets = seen.number(_tag(flat, flat_numbers))
        if len(seen) > max_states:
            raise BudgetExceeded(
                f"more than {max_states:,} states are reached and they do not close: raise max_states, or the model "
                "is not a finite automaton in its arithmetic"
            )
        columns.append(targets.reshape(numbers.shape))
        _, first = np.unique(targets, return_index=True)
        new = first[targets[first] >= before]
        frontier = flat[new]
        outputs += flat_numbers[new].tolist()
    return _Explored(np.concatenate(columns).T, outputs)


def _tag(rows: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    return np.concatenate([rows, np.ascontiguousarray(outputs, np.int64).view(np.uint8).reshape(-1, 8)], axis=1)


def output_numbers(logits: Tensor) -> np.ndarray:
    """The numbers of the largest logits, `NOT_A_NUMBER` where one is NaN: (…, |Γ|) -> int64 (…,).

    >>> output_numbers(torch.tensor([[0.0, 1.0], [float("nan"), 1.0]])).tolist()
    [1, -1]
    """
    return logits.argmax(-1).masked_fill(logits.isnan().any(-1), NOT_A_NUMBER).cpu().numpy()
