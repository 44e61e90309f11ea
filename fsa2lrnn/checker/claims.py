"""What a claim is about, in numpy: a model's tables, the target automaton, the nodes of a tube, and sets at the nodes.

The tables are those of one layer over letters, x_k = A[a_k] x_{k-1} + v[a_k], with the read-out of states. Nodes are
machine states with the last letters read. Sets are as a certificate's file holds them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .errors import require
from .rounding import LARGEST, LONGEST_SUM, FloatFormat


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of states, one per node: per machine state and choice of the last letters read.

    In head h of node (f, j) it holds the states T w, T = basis[f, h], with |w_i − centre_i| ≤ radius_i in the slow
    coordinates i, ‖w − centre‖ ≤ ball over the others, and lower ≤ d·w ≤ upper over all slow coordinates for each
    direction d. f numbers machine states with the last `frame_memory` letters, j the letters before those.

    Args:
        length: the length of the words that lead to these states.
        alive: bool (F, J), the nodes that such words reach.
        centre, radius: (F, H, b, J).
        ball: (F, H, J).
        lower, upper: (F, D, J).
    """

    length: int
    alive: np.ndarray
    centre: np.ndarray
    radius: np.ndarray
    ball: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def at(self, rows: Any) -> Sets:
        """Return the sets of these f, one copy for each entry of an index array."""
        parts = (self.alive, self.centre, self.radius, self.ball, self.lower, self.upper)
        return Sets(self.length, *(part[rows] for part in parts))


@dataclass(frozen=True, eq=False)
class Tail:
    """Sets that grow linearly: after i ≤ steps letters, `sets` with i times `radius` and `ball` added to theirs.

    Directions bound nothing in a tail. With steps = None nothing grows, and the sets hold the states of all longer
    words.
    """

    sets: Sets
    radius: np.ndarray
    ball: np.ndarray
    steps: int | None


@dataclass(frozen=True, eq=False)
class Tube:
    """The parameters from which the checker computes the sets of states along all words.

    Args:
        memory: the number of letters that a node remembers; at least 1.
        frame_memory: the number of letters that its coordinates depend on; at least 1.
        start: words of up to this length are computed one by one.
        basis: T, float64 (F, H, b, b).
        slow: bool (F, H, b), the coordinates that intervals bound.
        part: int64 (|Q|,), the index of each state's directions.
        directions: float64 (parts, D, H, b).
        stored: sets at some lengths, in order. In between the checker computes the sets itself.
        tail: the sets of all longer words.
    """

    memory: int
    frame_memory: int
    start: int
    basis: np.ndarray
    slow: np.ndarray
    part: np.ndarray
    directions: np.ndarray
    stored: tuple[Sets, ...] = ()
    tail: tuple[Tail, ...] = ()


class Claim(NamedTuple):
    """The claim that a model is right on every word of at most `horizon` letters (None for any length) by these scans.

    `margins` has a lower bound for each length from 1. With a tail, it ends where the tail begins, and one more entry
    bounds the margins in the tail.
    """

    horizon: int | None
    margins: np.ndarray
    scans: tuple[str, ...]
    tube: Tube


@dataclass(frozen=True, eq=False)
class CountedAutomaton:
    """An automaton with the states whose outputs count, for a model of `n_outputs` outputs.

    Args:
        delta: int64 (|Σ|, n).
        start: the state before the first letter.
        expected: int64 (n,), the number of each state's output; `n_outputs` or more for one that the model lacks.
        counts: bool (n,), whether the output of each state counts.
    """

    delta: np.ndarray
    start: int
    expected: np.ndarray
    counts: np.ndarray
    n_outputs: int

    @property
    def answerable(self) -> np.ndarray:
        """The states whose output counts and is one that the model has: bool (n,)."""
        return self.counts & (self.expected < self.n_outputs)

    @cached_property
    def coaccessible(self) -> np.ndarray:
        """The states from which some word, possibly empty, leads to an output that counts: bool (n,)."""
        # `order` lists the transitions, letter · n + source, by target; `first[q]` is where those into q begin.
        order, n = np.argsort(self.delta, axis=None, kind="stable"), self.delta.shape[1]
        first = np.searchsorted(self.delta.reshape(-1)[order], np.arange(n + 1))
        reached, waiting = self.counts.copy(), np.flatnonzero(self.counts).tolist()
        while waiting:
            q = waiting.pop()
            for p in (order[first[q] : first[q + 1]] % n).tolist():
                if not reached[p]:
                    reached[p] = True
                    waiting.append(p)
        return reached


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes (f, j): f numbers pairs (machine state, last r letters), 1 ≤ r, and j the m − r letters before those.

    Words of letters are numbers in base |Σ|, the oldest letter first. The pairs are in order of state, then of letters;
    only those are included that words reach and from which a position that counts can be reached.

    Args:
        memory: m.
        state: int64 (F,), the machine state of each f.
        delta: int64 (|Σ|, F), the f after a letter, −1 where no position that follows counts.
        oldest: int64 (F,), the first of the r letters of f, which the next step drops.
        older: J = |Σ|^(m−r).
        codes: int64 (F,), state · |Σ|^r + letters, ascending.
    """

    memory: int
    state: np.ndarray
    delta: np.ndarray
    oldest: np.ndarray
    older: int
    codes: np.ndarray

    @property
    def n_letters(self) -> int:
        """The number of letters, |Σ|."""
        return len(self.delta)

    def numbers(self, state: np.ndarray, letters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (f, j) of words that end in these states with these last m letters; f = −1 outside the nodes."""
        base = self.n_letters**self.memory // self.older  # |Σ|^r
        return _place(self.codes, state * base + letters % base), letters // base


def nodes(target: CountedAutomaton, memory: int, frame_memory: int) -> Nodes:
    """Return the nodes of a machine by breadth-first search, in linear time even for a long chain of states."""
    n_letters = len(target.delta)
    base = n_letters**frame_memory
    letter, coaccessible = np.arange(n_letters)[:, None], target.coaccessible

    def after(codes: np.ndarray) -> np.ndarray:
        return target.delta[:, codes // base] * base + (codes % base * n_letters + letter) % base

    # All words of r letters, as (state, number): later letters only shift the number.
    states, words = np.array([target.start]), np.array([0])
    for _ in range(frame_memory):
        states = target.delta[:, states].T.reshape(-1)
        words = (words[:, None] * n_letters + letter.T).reshape(-1)
    is_reached = np.zeros(target.delta.shape[1] * base, np.bool_)
    frontier = states * base + words
    while len(frontier):
        frontier = np.unique(frontier)
        # Each code is expanded once, so the search is linear in the number of codes.
        frontier = frontier[coaccessible[frontier // base] & ~is_reached[frontier]]
        is_reached[frontier] = True
        frontier = after(frontier).reshape(-1)
    codes = np.flatnonzero(is_reached)
    delta = _place(codes, after(codes))
    oldest = codes % base // (base // n_letters)
    return Nodes(memory, codes // base, delta, oldest, n_letters ** (memory - frame_memory), codes)


def _place(codes: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Return the index of each code among ascending codes, −1 for a code that is not among them."""
    if not len(codes):
        return np.full_like(code, -1)
    place = np.searchsorted(codes[:-1], code)  # the last index for a code above all
    return np.where(codes[place] == code, place, -1)


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables and read-out: logits of a state x are W2 relu(W1 y + b1) + b2, y is x or LayerNorm(x), with ε = 10⁻⁵.

    Args:
        numbers: A (|Σ|, H, b, b), v (|Σ|, H, b), x0 (H, b), W1 (m, H·b), b1 (m,), W2 (|Γ|, m), b2 (|Γ|,), and
            norm_weight and norm_bias (H·b,) where there is a LayerNorm.
        dtype: in which the model computes; rounding is bounded for "float32" and "float64".
        alphabet, outputs: Σ and Γ.
    """

    numbers: Mapping[str, np.ndarray]
    dtype: str
    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    @cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """All numbers in float64, which represents them exactly."""
        return {name: np.asarray(x, np.float64) for name, x in self.numbers.items()}

    @property
    def sha256(self) -> str:
        """The SHA-256 of all numbers, their shapes and their dtype."""
        digest = hashlib.sha256()
        for name, x in sorted(self.numbers.items()):
            digest.update(f"{name} torch.{self.dtype} {x.shape}".encode())
            digest.update(np.ascontiguousarray(x + np.zeros((), x.dtype)).tobytes())  # −0 and 0 are one number
        return digest.hexdigest()

    def format(self) -> FloatFormat:
        """Return the format that the model computes in.

        Raises:
            UnsupportedInput: for other types than float32 and float64, for a width of zero or over 1,024, and for
                numbers that may overflow or are not finite.
        """
        is_bounded = self.dtype in ("float32", "float64")
        require(is_bounded, f"it computes in {self.dtype}: the bounds on its rounding are for float32 and float64")
        is_narrow = max(*self.weights["W1"].shape, len(self.alphabet)) <= LONGEST_SUM
        require(is_narrow, f"the bounds on rounding are for models of a width up to {LONGEST_SUM:,}")
        empty = ", ".join(name for name, x in self.weights.items() if not x.size)
        require(not empty, f"{empty}: no entries: a model has heads, blocks, hidden units and outputs")
        sums = {name: float(np.abs(x).sum(-1).max()) for name, x in self.weights.items()}
        bad = ", ".join(name for name, size in sums.items() if not size <= LARGEST)
        require(not bad, f"{bad}: sums of over 2^40, or no numbers, may overflow: rescale the model")
        return FloatFormat.of(self.dtype)
