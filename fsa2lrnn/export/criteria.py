"""Decide single machines by criteria for one kind of layer each: confused words, SLiCE's functions, PD-SSM's dual.

*Confused words*  lead every network of a kind to one state. The kinds are stacks of input-independent layers (T55) and
one layer of attention (T56). For these all such words are known, so some network computes a machine if and only if the
machine does not separate them.

*SLiCE*  computes y ← y + A(u) y, without an input after the first letter. T59 of docs/theory.md decides the diagonal
and the Walsh–Hadamard ones. Functions take the table (|Σ|, m) of the states that non-empty words reach
(`after_a_letter`).

*The dual*  of a machine is one PD-SSM layer that represents it. A PD-SSM layer computes h ← D·(P h) + B x with one-hot
rows of P and |D| in [0, 1], so each coordinate copies another and adds a number. It represents every machine
(docs/constructions.md).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from flint import fmpz_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn import symbols
from fsa2lrnn.automata.language import distinguish, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid.map_kernels import components
from fsa2lrnn.deadline import bounded, check_current
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.families.closure import left_kernel, obstruction, primitive
from fsa2lrnn.families.family_answers import CertifiedAnswer, certificate_header
from fsa2lrnn.families.identities import FORCED

MAX_PROFILES = 200_000
"""The most profiles of words (T56) that are compared; their number is exponential in the number of letters."""

_Word = tuple[int, ...]
_Confusion = tuple[tuple[_Word, ...], int, int]  # the words of a certificate, and two states of the machine
_Profile = tuple[_Word, _Word, int]  # the last letter, after the letters before it by first and by last occurrence


@dataclass(frozen=True)
class ConfusedWords(CertifiedAnswer):
    """A certificate that no network of a kind computes the machine.

    Args:
        words: the words of T55 or T56 that the networks confuse.
        separator: a word after which the outputs of the machine differ in the two states that the words reach.
    """

    answer: ClassVar[str] = "no"
    words: tuple[_Word, ...]
    separator: _Word

    def explain(self) -> str:
        """Return a sentence that names the confused words."""
        alphabet = self.machine.alphabet
        u, w, *rest = (f'"{symbols.word_text([alphabet[a] for a in word], alphabet)}"' for word in self.words)
        if self.family == "lti-stack":
            return f"After {u}, many {w}, {rest[0]} or as many letters of {w}, and many {w}, states would be the same."
        often = f", each before any number of {rest[0]}," if self.words[2:] and self.words[2] else ""
        return f"The states after {u} and {w}{often} would be the same."

    def to_json(self) -> dict[str, Any]:
        words = [[[a, 1] for a in word] for word in (*self.words, self.separator)]
        header = certificate_header(self.machine, self.family, "impossible")
        return {**header, "words": words[:-1], "separator": words[-1]}


def confused(machine: MooreMachine, kind: str) -> ConfusedWords | None:
    """Return words that every network of a kind confuses and the machine separates, or None if no such words exist.

    Args:
        kind: "lti-stack" (S4: any matrix, the same for all letters) or "lti-diagonalisable-stack" (S5, LRU), with
            finitely many reachable states; "hard-attention" (one layer, strictly masked, without positions).

    Raises:
        BudgetExceeded: beyond `MAX_PROFILES` profiles of words.
        UnsupportedFormat: for another kind.

    >>> from fsa2lrnn.automata import zoo
    >>> confused(zoo.flip_flop(), "lti-stack").check()
    'impossible: no network of the kind lti-stack computes this machine'
    >>> print(confused(zoo.flip_flop(), "hard-attention"))
    None
    """
    if kind not in _SEARCHES:
        raise UnsupportedFormat(f"kind {kind!r} is not known: choose one of {', '.join(_SEARCHES)}")
    minimal = minimise(machine)
    # T56: letters that act alike may be identified.
    letters = sorted(map(int, np.unique(minimal.delta, axis=0, return_index=True)[1]))
    confusion = _SEARCHES[kind](minimal.delta[letters], minimal.start)
    if confusion is None:
        return None
    short, p, q = confusion
    named = tuple(tuple(letters[a] for a in word) for word in short)
    return ConfusedWords(minimal, kind, named, distinguish(minimal, p, q) or ())


def _of_stack(delta: np.ndarray, start: int) -> _Confusion | None:
    """Return words u, e, x and states p ≠ q with p = start·u = p·e and q = p·x = q·e, |x| a multiple of |e| (T55)."""
    n = delta.shape[1]
    bounded(n**2 * max(500, len(delta)), 500**3, f"words between {n:,} states with {len(delta):,} letters")
    ways = [_paths(delta, p) for p in range(n)]
    successors = (delta[:, :, None] * n + delta[:, None, :]).reshape(len(delta), n * n).T
    of_pair = components(np.ascontiguousarray(successors))
    # T55: one pair (p, q) of a strongly connected component of pairs decides for all.
    for pair in np.unique(of_pair, return_index=True)[1].tolist():
        p, q = divmod(pair, n)
        if p == q or q not in ways[p]:
            continue
        check_current("comparing words")
        loop = _loop(delta, p, q, of_pair.reshape(n, n))
        detour = _timed_paths(delta, p, len(loop)).get((q, 0)) if loop else None
        if loop and detour is not None:
            return (ways[start][p], loop, detour), p, q
    return None


def _paths(delta: np.ndarray, start: int) -> dict[int, _Word]:
    """Return a shortest word from `start` to each reachable state."""
    return {q: word for (q, _), word in _timed_paths(delta, start, 1).items()}


def _timed_paths(delta: np.ndarray, start: int, modulus: int) -> dict[tuple[int, int], _Word]:
    """Return a shortest word from `start` for each pair of a state and a word length modulo `modulus` that occurs."""
    paths = dict[tuple[int, int], _Word]({(start, 0): ()})
    queue = [(start, 0)]
    for p, length in queue:  # grows
        for a, q in enumerate(delta[:, p].tolist()):
            reached = q, (length + 1) % modulus
            if reached not in paths:
                paths[reached] = (*paths[p, length], a)
                queue.append(reached)
    return paths


def _loop(delta: np.ndarray, p: int, q: int, of_pair: np.ndarray) -> _Word | None:
    """Return a shortest non-empty word that fixes p and q, searched inside their component of pairs."""
    paths = dict[tuple[int, int], _Word]()
    queue = list[tuple[tuple[int, int], _Word]]([((p, q), ())])
    for pair, word in queue:  # grows
        for a, step in enumerate(delta):
            reached = int(step[pair[0]]), int(step[pair[1]])
            if of_pair[reached] == of_pair[p, q] and reached not in paths:
                paths[reached] = (*word, a)
                queue.append((reached, paths[reached]))
    return paths.get((p, q))


def _of_diagonal_stack(delta: np.ndarray, start: int) -> _Confusion | None:
    """Return words w, w', y with the same last letters and states start·w = p ≠ q = start·w' = q·y (T55).

    The lengths of w and w' differ by a multiple of |y|, or by 0 if y is empty.
    """
    rows: list[list[int]] = []  # the state after all words of each length that end in a letter
    state = start
    while True:
        check_current("comparing words")
        row = delta[:, state].tolist()
        if row in rows:
            break
        rows.append(row)
        k = len(rows)
        for a, b in ((a, b) for a in range(len(row)) for b in range(len(row))):
            if delta[b, row[a]] != delta[b, row[0]]:
                words = ((0,) * (k - 1) + (0, b), (0,) * (k - 1) + (a, b), ())
                return words, int(delta[b, row[0]]), int(delta[b, row[a]])
        state = row[0]
    first = rows.index(row)
    if first == 0:
        return None
    # Rows recur from row `first` on, so row first − 1 differs from the row one period later.
    p, q = rows[first - 1], rows[-1]
    period = len(rows) - first
    a = next(a for a in range(len(row)) if p[a] != q[a])
    words = ((0,) * (first - 1) + (a,), (0,) * (len(rows) - 1) + (a,), (0,) * (period - 1) + (a,))
    return words, p[a], q[a]


def _of_attention(delta: np.ndarray, start: int) -> _Confusion | None:
    """Return two words of equal profile that reach different states, and these states (T56), or None."""
    states = dict[_Profile, tuple[int, _Word]]()
    queue = deque[tuple[_Profile, int, _Word]](_longer(delta, ((), (), -1), start, ()))
    while queue:
        profile, q, word = queue.popleft()
        if profile in states:
            if states[profile][0] != q:
                return (states[profile][1], word), states[profile][0], q
            continue
        check_current("comparing words")
        states[profile] = q, word
        if len(states) > MAX_PROFILES:
            raise BudgetExceeded(f"words have more than {MAX_PROFILES:,} profiles: there are too many letters")
        queue.extend(_longer(delta, profile, q, word))
    return None


def _longer(delta: np.ndarray, profile: _Profile, q: int, word: _Word) -> Iterator[tuple[_Profile, int, _Word]]:
    first, last, letter = profile
    if letter >= 0:
        first = first if letter in first else (*first, letter)
        last = (*(a for a in last if a != letter), letter)
    for a, step in enumerate(delta):
        yield (first, last, a), int(step[q]), (*word, a)


_SEARCHES = {
    "lti-stack": _of_stack,
    "lti-diagonalisable-stack": _of_diagonal_stack,
    "hard-attention": _of_attention,
}


_MOST_LETTERS = 8  # whose subsets are all tried


def after_a_letter(machine: MooreMachine) -> np.ndarray:
    """Return the table (|Σ|, m) of the states that non-empty words reach.

    >>> after_a_letter(MooreMachine([[1, 1]], [0, 1])).tolist()
    [[0]]
    """
    delta = machine.delta
    states = sorted({int(q) for q in delta[:, machine.start]})
    for q in states:  # grows
        states += sorted({int(p) for p in delta[:, q]} - set(states))
    states.sort()
    return np.searchsorted(states, delta[:, states])


def is_diagonal(delta: np.ndarray) -> bool:
    """Return whether functions with f ∘ δ_a = χ(a) f, χ(a) real, separate the states: one layer of diagonal SLiCE.

    T3 decides this: f is an affine function that is 0 at an added state, which all letters keep, and to which one more
    letter sends all states.
    """
    n = delta.shape[1]
    with_zero = np.vstack([np.column_stack([delta, np.full(len(delta), n)]), np.full(n + 1, n)])
    return obstruction(FORCED["diagonal[-1,1]"], with_zero).merged()[1] == n + 1


def has_register(delta: np.ndarray) -> bool:
    """Return whether words e and f act on two states p and q as a register: both go to p by e, and both to q by f."""
    letters, n = np.unique(delta, axis=0), delta.shape[1]
    bounded(n**3, 30_000_000, f"triples of {n:,} states")
    merging = np.zeros((n, n, n), bool)  # [p, x, y]: some word leads both x and y to p
    states = np.arange(n)
    merging[states, states, states] = True
    while True:
        check_current("searching for a register")
        count = merging.sum()
        for step in letters:
            merging |= merging[:, step][:, :, step]
        first = merging[states, states]  # [p, q]: (p, q) goes to p
        if (first & first.T).sum() > n:
            return True
        if merging.sum() == count:
            return False


def is_walsh_hadamard(delta: np.ndarray) -> bool | None:
    """Return whether one layer of Walsh–Hadamard SLiCE represents the states; None if T59 does not decide it.

    >>> is_walsh_hadamard(np.array([[1, 0, 2], [1, 2, 0]])), is_walsh_hadamard(np.array([[0, 0], [1, 1]]))
    (True, False)
    """
    steps = np.unique(delta, axis=0)
    steps = steps[(steps != np.arange(delta.shape[1])).any(axis=1)]
    if _clash(steps):
        return False
    if _separates(steps):
        return True
    permutations = steps[(np.sort(steps, axis=1) == np.arange(delta.shape[1])).all(axis=1)]
    # T59 (c): for permutations, the functions of `_separates` are all that there are.
    if len(permutations) > _MOST_LETTERS or (len(permutations) < len(steps) and _separates(permutations)):
        return None
    return False


def _clash(steps: np.ndarray) -> bool:
    """Return whether two letters act on a pair of states as two maps other than the identity (T59 (b))."""
    n = steps.shape[1]
    bounded(n * steps.size, 5_000_000, f"pairs of {n:,} states with {len(steps):,} letters")
    p, q = np.triu_indices(n, 1)
    before, after = np.stack([p, q]), steps[:, np.stack([p, q])]  # (2, pairs), (|Σ|, 2, pairs)
    is_closed = ((after == p) | (after == q)).all(axis=1)
    kinds = (after[:, 0] == q) + 2 * (after[:, 1] == q)
    moves = is_closed & (after != before).any(axis=1)
    present = [(moves & (kinds == kind)).any(axis=0) for kind in range(4)]
    return bool((np.sum(present, axis=0, dtype=int) > 1).any()) if len(steps) else False


def _separates(steps: np.ndarray) -> bool:
    """Return whether a space of functions that letters preserve separates the states, spanned by functions g of T59.

    Of such a function, each letter gives g itself or one other function, the same for all letters.
    """
    n = steps.shape[1]
    classes = list(_classes(steps))
    functions = np.eye(n, dtype=int).astype(object)
    while True:
        check_current("deciding Walsh–Hadamard SLiCE")
        if len({tuple(column) for column in functions.T.tolist()}) < n:
            return False
        smaller = _largest_closed(_span(functions, classes), steps)
        if len(smaller) == len(functions):
            return True
        functions = smaller


def _classes(steps: np.ndarray) -> Iterator[np.ndarray]:
    """Yield partitions of the states, (m,): g ∘ δ_a = g for some letters, and one g ∘ δ_a for all others."""
    k = len(steps)
    sizes = range(k + 1) if k <= _MOST_LETTERS else (0, 1, 2, k)
    for size in sizes:
        for moving in itertools.combinations(range(k), size):
            number = np.arange(steps.shape[1])
            equal = [(number, steps[a]) for a in set(range(k)) - set(moving)]
            equal += [(steps[moving[0]], steps[a]) for a in moving[1:]]
            yield _components(equal, number)


def _components(pairs: list[tuple[np.ndarray, np.ndarray]], number: np.ndarray) -> np.ndarray:
    """Return the finest partition with the same class for the states of each pair."""
    while True:
        before = number
        for p, q in pairs:
            least = np.minimum(number[p], number[q])
            number = number.copy()
            np.minimum.at(number, p, least)
            np.minimum.at(number, q, least)
        if (number == before).all():
            return number


def _span(functions: np.ndarray, classes: list[np.ndarray]) -> np.ndarray:
    """Return a basis of the sum of the functions that are constant on the classes of one of the partitions."""
    rows = functions[:0]
    for number in classes:
        if len(rows) < len(functions):
            part = left_kernel(functions - functions[:, number]) @ functions
            rows = _reduced(np.vstack([rows, part]))
    return rows


def _reduced(rows: np.ndarray) -> np.ndarray:
    if not rows.size:
        return rows
    reduced, _, rank = fmpz_mat(rows.tolist()).rref()
    return primitive(np.array([[int(x) for x in row] for row in reduced.tolist()[:rank]], dtype=object))


def _largest_closed(functions: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return a basis of the largest subspace that f ↦ f ∘ δ_a preserves, as integers, exactly."""
    while True:
        moved = [functions[:, step] for step in steps]
        outside = left_kernel(functions.T)  # rows w with f · w = 0 for all f of the span
        images = np.hstack([after @ outside.T for after in moved]) if len(outside) else np.zeros((len(functions), 0))
        if not images.any():
            return functions
        functions = left_kernel(images) @ functions


MAX_COORDINATES = 512
ONE, ZERO = 0, 1  # the coordinates that always hold 1 and 0


@dataclass(frozen=True, eq=False)
class Dual:
    """The dual of a machine: an implementation by layers h ← P h + b with one-hot rows of P and small integers.

    h is e₁ at the start. A new coordinate is an old one plus a number, so coordinates are functions of the state: an
    indicator of an output, φ(q) = [ω(q) = γ], and its compositions with words, φ∘a. The entry of h for φ is φ(q) −
    φ(q₀). There are about as many coordinates as the determinised reversed machine has states: at worst 2ⁿ, for a group
    at most its order per output.

    Args:
        machine: the minimal machine.
        sources: the coordinate that each coordinate copies at a letter, int64 (|Σ|, N).
        added: the numbers that are added to the copies, −1, 0 or 1, int64 (|Σ|, N).
        shown: the coordinate of each output but the first, int64 (|Γ| − 1,).
        at_start: 1 for that of these outputs that the machine has at the start, otherwise 0, int64 (|Γ| − 1,).
    """

    machine: MooreMachine
    sources: np.ndarray
    added: np.ndarray
    shown: np.ndarray
    at_start: np.ndarray

    @property
    def n_coordinates(self) -> int:
        return self.sources.shape[1]

    @property
    def outputs(self) -> tuple[Hashable, ...]:
        """The distinct outputs of the machine, in the order of its states."""
        return tuple(dict.fromkeys(self.machine.outputs))

    def start(self) -> np.ndarray:
        """Return the state h before a word, int64 (N,)."""
        return np.eye(self.n_coordinates, dtype=np.int64)[ONE]

    def step(self, h: np.ndarray, a: int) -> np.ndarray:
        """Return the state after letter number a: int64 (N,) -> (N,)."""
        return h[self.sources[a]] + self.added[a]

    def output(self, h: np.ndarray) -> Hashable:
        scores = h[self.shown] + self.at_start
        return self.outputs[0 if not scores.any() else 1 + int(scores.argmax())]


def dual(machine: MooreMachine, limit: int = MAX_COORDINATES) -> Dual:
    """Return the dual of the minimal machine; raise `BudgetExceeded` beyond `limit` coordinates.

    >>> from fsa2lrnn.automata import zoo
    >>> run = dual(zoo.sum_mod(5))
    >>> h = run.start()
    >>> for letter in (3, 4, 1):
    ...     h = run.step(h, letter)
    >>> run.n_coordinates, run.output(h)
    (7, 3)
    """
    minimal = minimise(machine)
    outputs = tuple(dict.fromkeys(minimal.outputs))
    numbers = {np.zeros(minimal.n_states, np.int64).tobytes(): ZERO}
    functions = list[np.ndarray]()

    def number(values: np.ndarray) -> int:
        code = numbers.setdefault(values.tobytes(), len(functions) + 2)
        if code == len(functions) + 2:
            functions.append(values)
            if code >= limit:
                raise BudgetExceeded(
                    f"the dual of these {minimal.n_states:,} states has more than {limit:,} coordinates, and every "
                    "letter takes a matrix of their square: give a smaller machine"
                )
        return code

    indicators = [np.array([output == target for output in minimal.outputs], np.int64) for target in outputs[1:]]
    at_start = np.array([values[minimal.start] for values in indicators], np.int64)
    shown = np.array([number(v - v[minimal.start]) for v in indicators], np.int64)
    rows = [[(ONE, 0), (ZERO, 0)] for _ in minimal.delta]
    for values in functions:  # grows
        for row, letter in zip(rows, minimal.delta, strict=True):
            after = values[letter]
            row.append((number(after - after[minimal.start]), int(after[minimal.start])))
    table = np.array(rows, np.int64)
    return Dual(minimal, table[..., 0], table[..., 1], shown, at_start)
