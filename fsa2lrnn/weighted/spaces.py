"""Minimise and compare weighted automata exactly, by the spaces that their vectors span (T63 of docs/theory.md).

Words whose vectors are independent modulo a prime are independent over ℚ; there are as many as needed unless the prime
divides a minor. So a prime proposes words, and all that is claimed is then checked over ℚ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn import symbols
from fsa2lrnn.deadline import Deadline, bounded, check_current, limited
from fsa2lrnn.errors import BudgetExceeded, NotExact, counted
from fsa2lrnn.families.closure import Echelon
from fsa2lrnn.verdicts import Scope, Undecided, Verdict
from fsa2lrnn.weighted.automaton import WeightedAutomaton, fraction, texts
from fsa2lrnn.weighted.recheck import recheck

FORMAT, VERSION = "fsa2lrnn-weighted-certificate", 1
MAX_STATES = 1_000
"""The largest number of states of automata that are compared, together, or minimised."""
_MAX_NUMBERS = 1 << 33  # bits of a reduced basis, as bounded before it is computed
_PRIMES = (67_108_859, 67_108_837, 67_108_819, 67_108_777)  # below 2²⁶: sums of 1,000 products stay inside 63 bits
_SECONDS = 2e-9  # of one operation on numbers of 64 bits in a row reduction

Word = tuple[int, ...]


@dataclass(frozen=True)
class EqualFunctions(Verdict):
    """A proof that two weighted automata have the same function, over the reals and on all words.

    Args:
        first, second: the automata.
        basis: vectors over the states of both that span a space which contains the initial vector, which every letter
            maps into itself, and on which both functions agree.
    """

    first: WeightedAutomaton
    second: WeightedAutomaton
    basis: tuple[tuple[Fraction, ...], ...]

    def in_words(self) -> list[tuple[str, str]]:
        space = f"{counted(len(self.basis), 'dimension')} of {self.first.n_states + self.second.n_states}"
        return [("equal", "on every word of every length, over the reals"), ("invariant space", space)]

    def to_json(self) -> dict[str, Any]:
        return _certificate("equal", self.first, self.second, spaces=[[texts(row) for row in self.basis]])

    def check(self) -> str:
        """Check the proof by `recheck`, which shares no code with the search; return the claim that it proves."""
        return recheck(self.to_json())


@dataclass(frozen=True)
class SeparatingWord(Verdict):
    """A shortest word on which two weighted automata differ.

    Args:
        word: the letters.
        values: f and g on it, numbers or tuples of one per output.
        spaces: for each length below, vectors that span a space which contains those of all words up to this length
            and on which both functions agree.
    """

    first: WeightedAutomaton
    second: WeightedAutomaton
    word: tuple[Hashable, ...]
    values: tuple[Any, Any]
    spaces: tuple[tuple[tuple[Fraction, ...], ...], ...]

    def in_words(self) -> list[tuple[str, str]]:
        text = symbols.word_text(self.word, self.first.alphabet) or "ε"
        return [("differ", f"on {text}"), ("shorter words", "agree"), ("values", " and ".join(map(str, self.values)))]

    def to_json(self) -> dict[str, Any]:
        spaces = [[texts(row) for row in space] for space in self.spaces]
        word = symbols.encode(self.word, self.first.alphabet).tolist()
        return _certificate("separated", self.first, self.second, spaces=spaces) | {"word": word}

    def check(self) -> str:
        """Check the word and that it is a shortest one by `recheck`; return the claim."""
        return recheck(self.to_json())


@dataclass(frozen=True)
class Minimal:
    """An automaton of the least dimension, with the proof: equality, and a non-singular minor of the Hankel matrix.

    Args:
        equality: of the automaton and the minimal one.
        prefixes, suffixes: as many words as dimensions, each suffix with the number of an output; the matrix of the
            f(prefix · suffix) is not singular.
    """

    equality: EqualFunctions
    prefixes: tuple[Word, ...]
    suffixes: tuple[tuple[int, Word], ...]

    @property
    def automaton(self) -> WeightedAutomaton:
        """The minimal automaton."""
        return self.equality.second

    def to_json(self) -> dict[str, Any]:
        """Return a certificate that `recheck` accepts."""
        words = {"prefixes": [list(w) for w in self.prefixes], "suffixes": [[y, list(w)] for y, w in self.suffixes]}
        return self.equality.to_json() | {"claim": "minimal"} | words

    def check(self) -> str:
        """Check the proof by `recheck`; return the claim."""
        return recheck(self.to_json())


def compare(
    first: WeightedAutomaton, second: WeightedAutomaton, seconds: float | None = 60.0
) -> EqualFunctions | SeparatingWord | Undecided:
    """Decide whether two weighted automata have the same function on all words, with a proof.

    `Undecided` names the time limit, or comes from the bound on the size of numbers. Raises `InvalidMachine` for other
    letters or outputs.
    """
    difference = first - second
    try:
        with limited(Deadline.of(seconds)):
            return equality(first, second)
    except BudgetExceeded:
        return Undecided(0, Scope(difference.n_states, empty_word=True), seconds=seconds)


def equality(first: WeightedAutomaton, second: WeightedAutomaton) -> EqualFunctions | SeparatingWord:
    """Return the verdict of `compare`; raise `BudgetExceeded` beyond the bounds."""
    system = System.of(first - second)
    for prime in _PRIMES:
        words, different = list[Word](), None
        for _, word in system.words(prime):
            if any((system.reads * system.vector(0, word)).entries()):
                different = word
                break
            words.append(word)
        # Lengths up to which all words have to agree: those below a word's, or as many as the words have.
        lengths = range(len(different)) if different is not None else [len(words)]
        spaces = [_reduced(system, [(0, w) for w in words if len(w) <= k]) for k in lengths]
        after = spaces[1:] if different is not None else spaces
        closed = all(_is_closed(system.maps, low, high) for low, high in zip(spaces, after, strict=False))
        closed &= all(_spans(space, system.starts) for space in spaces)
        if not closed or any(x for space in spaces for x in (system.reads * space).entries()):
            continue
        columns = tuple(tuple(tuple(map(fraction, column)) for column in e.transpose().tolist()) for e in spaces)
        if different is None:
            return EqualFunctions(first, second, columns[0])
        letters = tuple(first.alphabet[a] for a in different)
        return SeparatingWord(first, second, letters, (first(letters), second(letters)), columns)
    raise NotExact(f"the vectors of words span too little modulo each of the primes {_PRIMES}")


def minimise(w: WeightedAutomaton) -> WeightedAutomaton:
    """Return an automaton of the least dimension: the vectors that words reach, modulo those that no word shows.

    An automaton that is minimal is returned as it is. Raises `BudgetExceeded` beyond the bounds.

    >>> double = WeightedAutomaton("a", [1, 1], [[["1/2", 0], [0, "1/2"]]], [1, 1])
    >>> double.minimise().n_states, double.minimise().equivalent(double) is None
    (1, True)
    """
    least = System.of(w).restricted().dual().restricted().dual()
    return w if least.size == w.n_states else w._with(*least)


def minimal(w: WeightedAutomaton) -> Minimal:
    """Return the minimal automaton with a certificate of its dimension."""
    least = minimise(w)
    verdict, system = equality(w, least), System.of(least)
    if isinstance(verdict, SeparatingWord):
        raise NotExact("the minimal automaton has another function: report this with the automaton")
    for prime in _PRIMES:
        prefixes = tuple(word for _, word in system.words(prime))
        # The dual reads a suffix from its end.
        suffixes = tuple((output, word[::-1]) for output, word in system.dual().words(prime))
        if len(prefixes) == len(suffixes) == system.size:
            return Minimal(verdict, prefixes, suffixes)
    raise NotExact(f"no minor of the Hankel matrix was found modulo each of the primes {_PRIMES}")


class System(NamedTuple):
    """The matrices of a weighted automaton, or of its dual, which reads words backwards and may have several starts."""

    starts: fmpq_mat  # (n, s), a column per start
    maps: tuple[fmpq_mat, ...]
    reads: fmpq_mat  # (r, n)

    @classmethod
    def of(cls, w: WeightedAutomaton) -> System:
        bounded(w.n_states, MAX_STATES, f"{w.n_states:,} states")
        return cls(w._initial, w._transitions, w._final)

    @property
    def size(self) -> int:
        """The number of states."""
        return self.starts.nrows()

    def dual(self) -> System:
        """Return the system of the transposed matrices."""
        return System(self.reads.transpose(), tuple(A.transpose() for A in self.maps), self.starts.transpose())

    def words(self, prime: int) -> Iterator[tuple[int, Word]]:
        """Yield starts and words, shortest first, whose vectors are a basis of those of all words modulo a prime.

        Numbers are scaled to integers, which scales the vector of a word. A word is extended only if its vector is
        independent of those before, so a functional that vanishes on all words yielded vanishes on all words of up to
        their length.
        """
        echelon, maps = Echelon(self.size, prime), [_residues(A, prime) for A in self.maps]
        level = [(i, (), row) for i, row in enumerate(_residues(self.starts, prime).T)]
        while level:
            check_current("the vectors of words")
            kept = [level[i] for i in echelon.independent(np.array([vector for *_, vector in level]))]
            yield from ((i, word) for i, word, _ in kept)
            if echelon.rank == self.size:
                return
            level = [(i, (*word, a), A @ x % prime) for i, word, x in kept for a, A in enumerate(maps)]

    def vector(self, start: int, word: Word) -> fmpq_mat:
        """Return the vector of a word, (n, 1)."""
        x = fmpq_mat(self.size, 1, [self.starts[q, start] for q in range(self.size)])
        for a in word:
            x = self.maps[a] * x
        return x

    def restricted(self) -> System:
        """Return the system on the span of the vectors of all words, in its reduced basis."""
        for prime in _PRIMES:
            words = [*self.words(prime)]
            if len(words) == self.size:
                return self
            basis = _reduced(self, words)
            if _is_closed(self.maps, basis, basis) and _spans(basis, self.starts):
                maps = tuple(_coordinates(basis, A * basis) for A in self.maps)
                return System(_coordinates(basis, self.starts), maps, self.reads * basis)
        raise NotExact(f"the vectors of words span too little modulo each of the primes {_PRIMES}")


def _reduced(system: System, words: Sequence[tuple[int, Word]]) -> fmpq_mat:
    """Return the reduced basis of the span of the vectors of words: one column each, with a 1 in a row of its own."""
    n, rows = system.size, [system.vector(*word).entries() for word in words]
    if not rows:
        return fmpq_mat(n, 0)
    bits = max(max(int(x.p).bit_length(), int(x.q).bit_length()) for row in rows for x in row)
    work = len(rows) ** 2 * n
    bounded(len(rows) * work * bits // n, _MAX_NUMBERS, f"{n:,} states with numbers of {bits:,} bits")
    check_current("an exact row reduction", _SECONDS * work * (1 + len(rows) * bits / 64))
    reduced, rank = fmpq_mat(len(rows), n, [x for row in rows for x in row]).rref()
    return fmpq_mat(rank, n, reduced.entries()[: rank * n]).transpose()


def _coordinates(basis: fmpq_mat, vectors: fmpq_mat) -> fmpq_mat:
    """Return the coordinates in a reduced basis of vectors that it spans: their entries in its pivot rows."""
    columns = basis.transpose().tolist()
    pivots = [next(i for i, x in enumerate(column) if x) for column in columns]
    return fmpq_mat(len(pivots), vectors.ncols(), [vectors[i, j] for i in pivots for j in range(vectors.ncols())])


def _spans(basis: fmpq_mat, vectors: fmpq_mat) -> bool:
    return basis.nrows() == basis.ncols() or basis * _coordinates(basis, vectors) == vectors


def _is_closed(maps: Sequence[fmpq_mat], low: fmpq_mat, high: fmpq_mat) -> bool:
    return all(_spans(high, A * low) for A in maps)


def _residues(matrix: fmpq_mat, prime: int) -> np.ndarray:
    """Return a matrix times its common denominator modulo a prime, int64."""
    scaled = [int(x) % prime for x in matrix.numer_denom()[0].entries()]
    return np.array(scaled, np.int64).reshape(matrix.nrows(), matrix.ncols())


def _certificate(claim: str, first: WeightedAutomaton, second: WeightedAutomaton, **rest: object) -> dict[str, Any]:
    order = symbols.align(first.alphabet, second.alphabet)
    value = second.to_json()
    value["transitions"] = [value["transitions"][a] for a in order]
    if first.outputs is not None and second.outputs is not None:
        value["final"] = [value["final"][i] for i in symbols.align(first.outputs, second.outputs)]
    parts = {
        name: {key: w[key] for key in ("initial", "transitions", "final")}
        for name, w in (("first", first.to_json()), ("second", value))
    }
    alphabet = [symbols.to_json(letter) for letter in first.alphabet]
    return {"format": FORMAT, "version": VERSION, "claim": claim, "alphabet": alphabet, **parts, **rest}
