"""Minimise and compare weighted automata exactly, by the spaces that their vectors span (T64 of docs/theory.md).

Words whose vectors are independent modulo a prime are independent over ℚ; there are as many as needed unless the prime
divides a minor. So a prime proposes words, and all that is claimed is then checked over ℚ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from flint import fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn import symbols
from fsa2lrnn.deadline import Deadline, bounded, check_current, limited
from fsa2lrnn.errors import BudgetExceeded, NotExact, counted
from fsa2lrnn.families.closure import Echelon
from fsa2lrnn.families.recheck import recheck
from fsa2lrnn.verdicts import Scope, Undecided, Verdict
from fsa2lrnn.weighted.weighted_automaton import WeightedAutomaton, as_weighted, texts

FORMAT, VERSION = "fsa2lrnn-weighted-certificate", 1
MAX_STATES = 1_000  # of automata that are compared, together, or minimised
_MAX_NUMBERS = 1 << 33  # bits of a reduced basis, as bounded before it is computed
_PRIMES = (67_108_859, 67_108_837, 67_108_819, 67_108_777)  # below 2²⁶: sums of 1,000 products stay inside 63 bits
_SECONDS = 2e-9  # of one operation on numbers of 64 bits in a row reduction

Word = tuple[int, ...]


@dataclass(frozen=True)
class _Certified(Verdict):
    """A verdict on two weighted automata, run side by side, with spaces of their joint vectors (`recheck`)."""

    claim: ClassVar[str] = "equal"
    first: WeightedAutomaton
    second: WeightedAutomaton
    spaces: tuple[fmpq_mat, ...] = field(repr=False)

    @property
    def kind(self) -> str:
        return self.claim

    def to_json(self) -> dict[str, Any]:
        """Return a certificate, a JSON object that `recheck` accepts."""
        f, g = self.first, self.second
        parts = {"first": (f._initial, f._transitions, f._final), "second": f._parts_of(g)}
        return {
            "format": FORMAT,
            "version": VERSION,
            "claim": self.claim,
            "alphabet": [symbols.to_json(letter) for letter in f.alphabet],
            **{
                name: {"initial": texts(x), "transitions": [_texts(A) for A in maps], "final": _texts(final)}
                for name, (x, maps, final) in parts.items()
            },
            "spaces": [_texts(space.transpose()) for space in self.spaces],
        }

    def check(self) -> str:
        """Check the certificate by `recheck`, which shares no code with the search; return the claim that it proves."""
        return recheck(self.to_json(), work=1 << 30)


@dataclass(frozen=True)
class EqualFunctions(_Certified):
    """A proof that two weighted automata have the same function, over the reals and on all words.

    Its one space contains the initial vector, all letters map it into itself, and both functions agree on it.
    """

    def in_words(self) -> list[tuple[str, str]]:
        space = f"{counted(self.spaces[0].ncols(), 'dimension')} of {self.spaces[0].nrows()}"
        return [("equal", "on every word of every length, over the reals"), ("invariant space", space)]


@dataclass(frozen=True)
class SeparatingWord(_Certified):
    """A shortest word on which two weighted automata differ, and the values, numbers or tuples of one per output.

    For each smaller length there is a space that contains the vectors of all words up to this length, and on which both
    functions agree.
    """

    claim: ClassVar[str] = "separated"
    word: tuple[Hashable, ...]
    values: tuple[Any, Any]

    def in_words(self) -> list[tuple[str, str]]:
        text = symbols.word_text(self.word, self.first.alphabet) or "ε"
        values = [", ".join(map(_brief, v if isinstance(v, tuple) else (v,))) for v in self.values]
        return [("differ", f"on {text}"), ("shorter words", "agree"), ("values", " and ".join(values))]

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {
            "claim": "separated",
            "word": symbols.encode(self.word, self.first.alphabet).tolist(),
        }


@dataclass(frozen=True)
class Minimal(EqualFunctions):
    """A proof that the second automaton equals the first and has the least dimension.

    There are as many prefixes and suffixes, each suffix with the number of an output, as dimensions; the matrix of the
    f(prefix · suffix) is not singular.
    """

    claim: ClassVar[str] = "minimal"
    prefixes: tuple[Word, ...]
    suffixes: tuple[tuple[int, Word], ...]

    def to_json(self) -> dict[str, Any]:
        words = {"prefixes": [list(w) for w in self.prefixes], "suffixes": [[y, list(w)] for y, w in self.suffixes]}
        return super().to_json() | words


def compare(
    first: WeightedAutomaton, second: WeightedAutomaton, seconds: float | None = 60.0
) -> EqualFunctions | SeparatingWord | Undecided:
    """Decide whether two weighted automata have the same function on all words, with a proof.

    The result is `Undecided` if the time limit or a bound on the size of numbers ends the search. Raises
    `InvalidMachine` for other letters or outputs.
    """
    second = as_weighted(first)._with(*first._parts_of(second))  # letters and outputs in the same order
    values = first(()), second(())
    if values[0] != values[1]:
        return SeparatingWord(first, second, (), (), values)
    try:
        with limited(Deadline.of(seconds)):
            return equality(first, second)
    except BudgetExceeded:
        return Undecided(0, Scope(first.n_states + second.n_states, empty_word=True), seconds=seconds)


def equality(first: WeightedAutomaton, second: WeightedAutomaton) -> EqualFunctions | SeparatingWord:
    """Return the verdict of `compare`; raise `BudgetExceeded` beyond the bounds."""
    system = System.of(as_weighted(first) - second)
    for prime in _PRIMES:
        words, different = list[tuple[int, Word]](), None
        for start, word in system.words(prime):
            if any((system.reads * system.vector(start, word)).entries()):
                different = word
                break
            words.append((start, word))
        # Lengths up to which all words have to agree: those below a word's, or as many as the words have.
        lengths = range(len(different)) if different is not None else [len(words)]
        spaces = tuple(_reduced(system, [w for w in words if len(w[1]) <= k]) for k in lengths)
        after = spaces[1:] if different is not None else spaces
        sound = all(_is_closed(system.maps, low, high) for low, high in zip(spaces, after, strict=False))
        sound &= all(_spans(space, system.starts) for space in spaces)
        if not sound or any(x for space in spaces for x in (system.reads * space).entries()):
            continue
        if different is None:
            return EqualFunctions(first, second, spaces)
        letters = tuple(first.alphabet[a] for a in different)
        return SeparatingWord(first, second, spaces, letters, (first(letters), second(letters)))
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
    """Return the minimal automaton (`second`) with a certificate of its dimension."""
    least = minimise(w)
    n = w.n_states
    system = System.of(least)
    if least is w:  # the pairs (x, x)
        spaces = (fmpq_mat(2 * n, n, [int(i % n == j) for i in range(2 * n) for j in range(n)]),)
    else:
        spaces = equality(w, least).spaces
    for prime in _PRIMES:
        prefixes = tuple(word for _, word in system.words(prime))
        suffixes = tuple((output, word[::-1]) for output, word in system.dual().words(prime))  # read from the end
        if len(prefixes) == len(suffixes) == system.size:
            return Minimal(w, least, spaces, prefixes, suffixes)
    raise NotExact(f"no minor of the Hankel matrix was found modulo each of the primes {_PRIMES}")


class System(NamedTuple):
    """The matrices of a weighted automaton, or of its dual, which reads words backwards and may have several starts."""

    starts: fmpq_mat  # (n, s), a column per start
    maps: Sequence[fmpq_mat]
    reads: fmpq_mat  # (r, n)

    @classmethod
    def of(cls, w: WeightedAutomaton) -> System:
        bounded(as_weighted(w).n_states, MAX_STATES, f"{w.n_states:,} states")
        return cls(w._initial, w._transitions, w._final)

    @property
    def size(self) -> int:
        """The number of states."""
        return self.starts.nrows()

    def dual(self) -> System:
        """Return the system of the transposed matrices."""
        return System(self.reads.transpose(), [A.transpose() for A in self.maps], self.starts.transpose())

    def words(self, prime: int) -> Iterator[tuple[int, Word]]:
        """Yield starts and words, shortest first, whose vectors are a basis of those of all words modulo a prime.

        A word is extended only if its vector is independent of those before, so a functional that vanishes on all words
        yielded vanishes on all words of up to their length.
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
                maps = [_coordinates(basis, A * basis) for A in self.maps]
                return System(_coordinates(basis, self.starts), maps, self.reads * basis)
        raise NotExact(f"the vectors of words span too little modulo each of the primes {_PRIMES}")


def _reduced(system: System, words: Sequence[tuple[int, Word]]) -> fmpq_mat:
    """Return the reduced basis of the span of the vectors of words: one column each, with a 1 in a row of its own."""
    n, k, entries = system.size, len(words), [x for word in words for x in system.vector(*word).entries()]
    bits = max((max(int(x.p).bit_length(), int(x.q).bit_length()) for x in entries), default=0)
    bounded(k**3 * bits, _MAX_NUMBERS, f"{n:,} states with numbers of {bits:,} bits")
    check_current("an exact row reduction", _SECONDS * k**2 * n * (1 + k * bits / 64))
    reduced, rank = fmpq_mat(k, n, entries).rref() if words else (fmpq_mat(0, n), 0)
    return fmpq_mat(rank, n, reduced.entries()[: rank * n]).transpose()


def _coordinates(basis: fmpq_mat, vectors: fmpq_mat) -> fmpq_mat:
    """Return the coordinates in a reduced basis of vectors that it spans: their entries in its pivot rows."""
    pivots = [next(i for i, x in enumerate(column) if x) for column in basis.transpose().tolist()]
    return fmpq_mat(len(pivots), vectors.ncols(), [vectors[i, j] for i in pivots for j in range(vectors.ncols())])


def _spans(basis: fmpq_mat, vectors: fmpq_mat) -> bool:
    return basis.nrows() == basis.ncols() or basis * _coordinates(basis, vectors) == vectors


def _is_closed(maps: Sequence[fmpq_mat], low: fmpq_mat, high: fmpq_mat) -> bool:
    return all(_spans(high, A * low) for A in maps)


def _residues(matrix: fmpq_mat, prime: int) -> np.ndarray:
    """Return a matrix times its common denominator modulo a prime, int64: the vector of a word is scaled by that."""
    scaled = [int(x) % prime for x in matrix.numer_denom()[0].entries()]
    return np.array(scaled, np.int64).reshape(matrix.nrows(), matrix.ncols())


def _brief(x: Fraction) -> str:
    bits = max(x.numerator.bit_length(), x.denominator.bit_length())
    return str(x) if bits <= 256 else f"a number of {bits:,} bits"


def _texts(matrix: fmpq_mat) -> list[list[str]]:
    return [texts(row) for row in matrix.tolist()]
