"""Breadth-first search over the states that words reach, level by level, with a shortest word to each state.

The search is independent of machines and verdicts: a `TransitionSystem` defines how its states are stepped. `extract`
searches the model's states alone, bit for bit, `fsa2lrnn.verification.walk` jointly with those of a machine.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from numbers import Integral
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import BudgetExceeded, NotExact, check_type
from fsa2lrnn.nn.model import LRNN, LayerState, State
from fsa2lrnn.verification.modelled import check_arithmetic, check_provable

S = TypeVar("S")  # a batch of states
R = TypeVar("R", covariant=True)  # the outputs after a letter: output numbers or logits


class TransitionSystem(Protocol[S, R]):
    """A system with states, letters and outputs that a search can step."""

    def start(self) -> S:
        """Return the initial state as a batch of one."""
        ...

    def fan(self, states: S, live: np.ndarray) -> tuple[R, S]:
        """Return outputs and states after M live letters: N states, bool (N, |Σ|) -> M outputs, M states.

        The letters after one state are adjacent, in order.
        """
        ...

    def pick(self, states: S, places: np.ndarray) -> S:
        """Return the states at these indices."""
        ...

    def rows(self, states: S) -> np.ndarray:
        """Return the states as rows of bytes, equal only for states that behave equally: uint8 (N, D)."""
        ...


class Interner:
    """A map from rows of bytes to numbers, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._number: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._number)

    def number(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of each row, numbering new rows in order: uint8 (N, D) -> int64 (N,)."""
        # Slices of one bytes object are hashed directly, without an array per row.
        number, packed = self._number, rows.tobytes()
        width = rows.shape[1]
        return np.array(
            [number.setdefault(packed[i : i + width], len(number)) for i in range(0, len(packed), width)], np.int64
        )

    def new(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of each row, and the index of the first occurrence of each new row."""
        before = len(self)
        numbers = self.number(rows)
        unique, first = np.unique(numbers, return_index=True)
        return numbers, first[unique >= before]


class Tree:
    """Words as paths in a tree that grows level by level; node 0 is the empty word.

    >>> tree = Tree()
    >>> a, b = tree.grow(np.array([0, 0]), np.array([7, 8]))
    >>> tree.word(tree.grow(np.array([b]), np.array([9]))[0]).tolist()
    [8, 9]
    """

    def __init__(self) -> None:
        self._first = [0]  # the number of the first node of each level
        self._levels = [(np.array([-1]), np.array([-1]))]

    def __len__(self) -> int:
        return self._first[-1] + len(self._levels[-1][0])

    def grow(self, parents: np.ndarray, letters: np.ndarray) -> np.ndarray:
        """Add a level, each node one letter after its parent, and return the numbers of its nodes."""
        self._first.append(len(self))
        self._levels.append((parents, letters))
        return self._first[-1] + np.arange(len(parents))

    def word(self, node: int) -> np.ndarray:
        """Return the letters from the root to a node: int64 (T,)."""
        word: list[int] = []
        while node > 0:
            # Nodes are numbered level by level, so a binary search finds the level of a node.
            level = bisect_right(self._first, node) - 1
            parents, letters = self._levels[level]
            place = node - self._first[level]
            word.append(int(letters[place]))
            node = int(parents[place])
        return np.array(word[::-1], np.int64)


@dataclass(frozen=True, eq=False)
class FrontierSuccessors(Generic[S, R]):
    """The M one-letter extensions of a frontier's words; those of one word are adjacent.

    Args:
        states: the states of the M words.
        read: their outputs.
        parents: int64 (M,), the word of the frontier that each extends.
        letters: int64 (M,), their last letters.
    """

    states: S
    read: R
    parents: np.ndarray
    letters: np.ndarray


class WordFrontier(Generic[S, R]):
    """The words of one length that a search extends, initially the empty word.

    Attributes:
        states: the system's states after the words.
        tags: int64 (N,), a number for each word; states with different tags are different.
        length: the length of the words.
        letters: the number of steps of the system.
    """

    def __init__(self, system: TransitionSystem[S, R], tag: int) -> None:
        self._system, self._tree, self._interner = system, Tree(), Interner()
        self.states, self.tags = system.start(), np.array([tag])
        self._nodes = np.array([0])
        self._interner.number(tagged(system.rows(self.states), self.tags))
        self.length = self.letters = 0

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def seen(self) -> int:
        """The number of different states, tags included, that the search has reached."""
        return len(self._interner)

    def fan(self, live: np.ndarray) -> FrontierSuccessors[S, R]:
        """Return the extension of the frontier by the live letters: bool (N, |Σ|)."""
        read, states = self._system.fan(self.states, live)
        parents, letters = np.nonzero(live)
        self.letters += len(parents)
        return FrontierSuccessors(states, read, parents, letters)

    def word(self, ahead: FrontierSuccessors[S, R], place: int) -> np.ndarray:
        """Return the extended word at index `place`: int64 (length + 1,)."""
        return np.append(self._tree.word(int(self._nodes[ahead.parents[place]])), ahead.letters[place])

    def keep(self, ahead: FrontierSuccessors[S, R], tags: np.ndarray, places: np.ndarray) -> None:
        """Continue with the extended words at these indices, given the tags (M,) of all."""
        self._nodes = self._tree.grow(self._nodes[ahead.parents[places]], ahead.letters[places])
        self.states, self.tags = self._system.pick(ahead.states, places), tags[places]
        self.length += 1

    def keep_new(self, ahead: FrontierSuccessors[S, R], tags: np.ndarray) -> np.ndarray:
        """Continue with the first word to each new state, and return the numbers of all extended states, (M,)."""
        numbers, new = self._interner.new(tagged(self._system.rows(ahead.states), tags))
        self.keep(ahead, tags, new)
        return numbers


def tagged(rows: np.ndarray, tags: np.ndarray) -> np.ndarray:
    """Return states as bytes with their tags appended: uint8 (N, D), (N,) -> (N, D + 8)."""
    numbers = np.ascontiguousarray(tags, np.int64).view(np.uint8).reshape(-1, 8)
    return np.concatenate([rows, numbers], axis=1)


def to_bytes(states: tuple[Tensor, ...]) -> np.ndarray:
    """Return the bytes of each state's numbers as one row: uint8 (N, D)."""
    parts = [part.detach().cpu() for part in states]
    # A clone: an expanded tensor of one row reports that it is contiguous, but cannot be viewed as bytes.
    rows = [part.reshape(len(part), -1).clone(memory_format=torch.contiguous_format) for part in parts]
    return np.concatenate([row.view(torch.uint8).numpy() for row in rows], axis=1)


NOT_A_NUMBER = -1
"""The output number of logits that contain a NaN."""
_STEP_ENTRIES = 1 << 24  # entries of A(u) that one batch of single steps may materialise


class ModelSystem:
    """A model as a transition system on rows of bytes: the bit patterns of the floats that its step computes.

    Each step is the module's own `advance` on one letter, in its own dtype, so the exploration covers the code that
    runs. Steps are made in batches of `at_once` words, by default as many as memory allows; a model that rounds may
    round differently in another batch. Each batch checks the deadline (`OutOfTime`).
    """

    def __init__(self, model: LRNN, at_once: int | None = None, deadline: Deadline = NEVER) -> None:
        self._model, self._at_once, self._deadline = model, at_once, deadline
        self.alphabet, self.outputs = model.alphabet, model.outputs
        # No call of nn.Module.eval: nothing in an LRNN behaves differently in training.
        self._like = [[part for part in layer if part is not None] for layer in model.initial_state()]

    @property
    def steps_in_batches(self) -> bool:
        """Whether several words are stepped in one batch."""
        return self._at_once != 1

    def initial_output(self) -> int:
        """Return the number of the output on the empty word."""
        return int(output_numbers(self._model.initial_logits()[None])[0])

    def start(self) -> np.ndarray:
        """Return the initial state as one row of bytes: uint8 (1, D)."""
        return self._to_rows(self._model.initial_state())

    def fan(self, states: np.ndarray, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return output numbers and states after M live letters: uint8 (N, D), bool (N, |Σ|) -> (M,), (M, D)."""
        before, letters = np.nonzero(live)
        if not len(before):
            return np.empty(0, np.int64), states[:0]
        size = self._at_once or max(1, _STEP_ENTRIES // self._model.entries_per_token)
        # `np.nonzero` is in row order, so the letters after one state are adjacent, as the protocol requires.
        pieces = [slice(i, i + size) for i in range(0, len(before), size)]
        parts = [self._step(states[before[piece]], letters[piece]) for piece in pieces]
        return np.concatenate([outputs for outputs, _ in parts]), np.concatenate([rows for _, rows in parts])

    def pick(self, states: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return the states at these indices."""
        return states[places]

    def rows(self, states: np.ndarray) -> np.ndarray:
        """Return the states unchanged: they are rows of bytes."""
        return states

    def _step(self, rows: np.ndarray, letters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._deadline.check("stepping the model's states")
        tokens = torch.from_numpy(letters).to(self._model.device)[:, None]
        with torch.no_grad():
            logits, state = self._model.advance(tokens, self.state_of(rows), "sequential")
        return output_numbers(logits[:, 0]), self._to_rows(state)

    def _to_rows(self, state: State) -> np.ndarray:
        return to_bytes(tuple(part for layer in state for part in layer if part is not None))

    def state_of(self, rows: np.ndarray) -> State:
        """Return the states that rows of bytes encode: uint8 (N, D) -> tensors (N, …)."""
        state, offset = [], 0
        for layer in self._like:
            parts: list[Tensor | None] = []
            for like in layer:
                width = like[0].numel() * like.element_size()
                # A copy: a slice of a row is not aligned in memory, and the rounding of products may depend on that.
                piece = torch.tensor(rows[:, offset : offset + width])
                parts.append(piece.view(like.dtype).reshape(len(rows), *like.shape[1:]).to(like.device))
                offset += width
            state.append(LayerState(parts[0], parts[1] if len(parts) > 1 else None))  # type: ignore[arg-type]
        return tuple(state)


def extract(
    model: LRNN,
    max_states: int = 100_000,
    at_once: int | None = None,
    seconds: float | Deadline | None = None,
) -> MooreMachine:
    """Return the minimal machine that a model computes, exact for every word, if its reachable states are finite.

    The search explores the states reached from the start, as bit patterns of their floats, until no letter leads to a
    new one. Compiled models have finitely many states; those of trained models mostly drift and exceed the budget.

    Compiled models do not round, so the machine holds for every scan and every shape of call. For a model that rounds,
    it holds for steps in batches of `at_once` words, by default as many as memory allows; with 1, for words read letter
    by letter, one at a time. `prove_equivalent` of model and machine names the runs that are covered.

    Raises:
        BudgetExceeded: if more than `max_states` states are reached.
        OutOfTime: if the time limit `seconds` passes first; by default no limit.
        NotExact: if a state has NaN logits.
        UnsupportedFormat: under settings of torch that compute below the dtype's precision (`modelled`), and for
            layers that declare that no exact claim can be made of them (`Layer.unproved`).

    >>> from fsa2lrnn import compile_machine
    >>> parity = MooreMachine([[0, 1], [1, 0]], [False, True])
    >>> extract(compile_machine(parity)) == parity
    True
    """
    check_provable(model)
    check_arithmetic(model.device)
    check_type(max_states, Integral, "max_states", "a whole number")
    system = ModelSystem(model, at_once, Deadline.of(seconds))
    # A state includes the output of its step: with a residual stream, equal x may have different outputs.
    walk = WordFrontier(system, system.initial_output())
    numbers, columns, n_letters = walk.tags.tolist(), [], len(model.alphabet)
    while len(walk):
        ahead = walk.fan(np.ones((len(walk), n_letters), bool))
        columns.append(walk.keep_new(ahead, ahead.read).reshape(-1, n_letters))
        if walk.seen > max_states:
            raise BudgetExceeded(
                f"more than {max_states:,} states are reached and they do not close, as those of trained models mostly "
                "don't: raise max_states (--max-states), or ask what the model does on short words, by extract_learned "
                "(extract --method suffixes)"
            )
        numbers += walk.tags.tolist()
    if NOT_A_NUMBER in numbers:
        raise NotExact("a reachable state has NaN logits, so it has no output: the model has overflowed")
    outputs = [model.outputs[j] for j in numbers]
    return minimise(MooreMachine(np.concatenate(columns).T, outputs, 0, model.alphabet))


def output_numbers(logits: Tensor) -> np.ndarray:
    """Return the argmax of logits, `NOT_A_NUMBER` where one is NaN: (…, |Γ|) -> int64 (…,).

    >>> output_numbers(torch.tensor([[0.0, 1.0], [float("nan"), 1.0]])).tolist()
    [1, -1]
    """
    return logits.argmax(-1).masked_fill(logits.isnan().any(-1), NOT_A_NUMBER).cpu().numpy()
