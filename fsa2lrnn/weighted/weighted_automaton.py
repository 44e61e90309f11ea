"""Weighted automata over the rational numbers, f(a₁ … a_T) = β A(a_T) ⋯ A(a₁) α (§12 of docs/theory.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
from flint import fmpq, fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn import symbols
from fsa2lrnn.automata.machine import MachineSource, as_machine
from fsa2lrnn.deadline import bounded, check_current
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat, check_type, counted
from fsa2lrnn.reading import parse_json, shown

if TYPE_CHECKING:
    from fsa2lrnn.nn.affine import SwitchedAffine
    from fsa2lrnn.nn.model import LRNN

FORMAT, VERSION = "fsa2lrnn-weighted", 1
MAX_ENTRIES = 1 << 20  # of all transition matrices together
MAX_BITS = 1 << 13  # of the numerator or the denominator of one weight that is read or written
TOLERANCE = Fraction(1, 10**6)  # within which probabilities, printed as decimals, sum to one
Number = int | float | Fraction | str | fmpq
_TEXT = re.compile(r"-?[0-9]{1,4300}(/[1-9][0-9]{0,4299})?")
_FIELDS = ("format", "version", "alphabet", "outputs", "initial", "transitions", "final")
_SHOWN = 40  # numbers and transitions that `print` shows


class WeightedAutomaton:
    """A weighted automaton over ℚ, immutable: a function from words to numbers, or to one number per output.

    Args:
        alphabet: Σ, distinct hashables.
        initial: α, n numbers: integers, fractions, texts such as "2/3", or finite floats, which are read exactly.
        transitions: A, shape (|Σ|, n, n); column q of A[a] is where letter number a leads state q.
        final: β, n numbers, or |Γ| × n for one function per output.
        outputs: Γ, distinct hashables, if `final` has several rows; 0 … |Γ|−1 by default.

    Raises `InvalidMachine` naming the wrong shape or weight, and `BudgetExceeded` for more than 2²⁰ entries.

    >>> halves = WeightedAutomaton("ab", [1], [[["1/2"]], [[0.25]]], [1])
    >>> halves("aab"), halves.n_states, halves.equivalent(2 * halves)
    (Fraction(1, 16), 1, ())
    """

    __slots__ = ("_final", "_initial", "_transitions", "alphabet", "outputs")
    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...] | None
    _initial: fmpq_mat
    _transitions: tuple[fmpq_mat, ...]
    _final: fmpq_mat

    def __init__(
        self,
        alphabet: Iterable[Hashable],
        initial: Sequence[Number] | np.ndarray | fmpq_mat,
        transitions: Sequence[Any] | np.ndarray,
        final: Sequence[Any] | np.ndarray | fmpq_mat,
        outputs: Iterable[Hashable] | None = None,
    ) -> None:
        letters, names = listed(alphabet, "alphabet"), None if outputs is None else listed(outputs, "outputs")
        *parts, names = _read_parts(letters, initial, transitions, final, names)
        if names == ():
            raise InvalidMachine("no outputs: give at least one, or a list of numbers as final")
        for names_of in (letters, names or ()):
            if (why := symbols.confused(names_of)) or len(set(names_of)) < len(names_of):
                raise InvalidMachine(why or f"{shown(names_of)}: letters and outputs must be distinct")
        for name, value in zip(self.__slots__, (parts[2], parts[0], parts[1], letters, names), strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name}: a weighted automaton does not change: make a new one")

    @property
    def n_states(self) -> int:
        """n, the dimension."""
        return self._initial.nrows()

    @property
    def initial(self) -> tuple[Fraction, ...]:
        """α, n fractions."""
        return tuple(map(fraction, self._initial.entries()))

    @property
    def transitions(self) -> tuple[tuple[tuple[Fraction, ...], ...], ...]:
        """A, for each letter a matrix of fractions."""
        return tuple(map(_rows, self._transitions))

    @property
    def final(self) -> tuple[Any, ...]:
        """β, n fractions, or one such row per output."""
        return _rows(self._final) if self.outputs is not None else _rows(self._final)[0]

    def __call__(self, word: symbols.Word) -> Any:
        """Return f(word), a `Fraction`, or a tuple of one per output; raise `InvalidWord` for an unknown letter."""
        x = self._initial
        for a in symbols.encode(word, self.alphabet).tolist():
            check_current("reading a word")
            x = self._transitions[a] * x
        values = tuple(map(fraction, (self._final * x).entries()))
        return values[0] if self.outputs is None else values

    def __add__(self, other: WeightedAutomaton) -> WeightedAutomaton:
        """Return the sum w ↦ f(w) + g(w), of n + m states; raise `InvalidMachine` for other letters or outputs."""
        initial, transitions, final = self._parts_of(other)
        n, size = self.n_states, self.n_states + other.n_states
        bounded(len(self.alphabet) * size**2, MAX_ENTRIES, f"{size:,} states")
        before, after = [fmpq(0)] * n, [fmpq(0)] * (size - n)
        maps = [
            _matrix([row + after for row in A.tolist()] + [before + row for row in B.tolist()], size)
            for A, B in zip(self._transitions, transitions, strict=True)
        ]
        beta = [row + more for row, more in zip(self._final.tolist(), final.tolist(), strict=True)]
        return self._with(fmpq_mat(size, 1, self._initial.entries() + initial.entries()), maps, _matrix(beta, size))

    def __sub__(self, other: WeightedAutomaton) -> WeightedAutomaton:
        """Return the difference w ↦ f(w) − g(w)."""
        return self + -1 * as_weighted(other)

    def __mul__(self, other: WeightedAutomaton | Number) -> WeightedAutomaton:
        """Return the Hadamard product w ↦ f(w) g(w), of n · m states, or the multiple by a number."""
        if not isinstance(other, WeightedAutomaton):
            return self._with(self._initial, self._transitions, self._final * exact(other, "the factor"))
        initial, transitions, final = self._parts_of(other)
        size = self.n_states * other.n_states
        bounded(len(self.alphabet) * size**2, MAX_ENTRIES, f"{size:,} states")
        maps = [_kronecker(A, B) for A, B in zip(self._transitions, transitions, strict=True)]
        rows = zip(self._final.tolist(), final.tolist(), strict=True)
        beta = _matrix([[x * y for x in f for y in g] for f, g in rows], size)
        return self._with(_kronecker(self._initial, initial), maps, beta)

    __radd__, __rsub__, __rmul__ = __add__, __sub__, __mul__  # the first two refuse: the other one has no weights

    def reversed(self) -> WeightedAutomaton:
        """Return w ↦ f(w read backwards); raise `UnsupportedFormat` for several outputs."""
        if self.outputs is not None:
            raise UnsupportedFormat(f"{counted(len(self.outputs), 'output')}: reverse one at a time (`output`)")
        maps = [A.transpose() for A in self._transitions]
        return self._with(self._final.transpose(), maps, self._initial.transpose())

    def output(self, name: Hashable) -> WeightedAutomaton:
        """Return the function of one output; raise `UnsupportedFormat` for an unknown one."""
        if self.outputs is None or name not in self.outputs:
            raise UnsupportedFormat(f"output {name!r} is not one of {shown(self.outputs)}")
        row = self._final.tolist()[self.outputs.index(name)]
        return WeightedAutomaton(self.alphabet, self._initial, self._transitions, _matrix([row], self.n_states))

    def minimise(self) -> WeightedAutomaton:
        """Return an automaton of the least dimension with the same function (`spaces.minimise`)."""
        from fsa2lrnn.weighted.spaces import minimise

        return minimise(self)

    def equivalent(self, other: WeightedAutomaton) -> tuple[Hashable, ...] | None:
        """Return a shortest word on which two functions differ, or None if they are equal (`spaces.compare`).

        Raises `BudgetExceeded` beyond its bounds, and `InvalidMachine` for other letters or outputs.
        """
        from fsa2lrnn.weighted.spaces import equality

        return getattr(equality(self, other), "word", None)

    @classmethod
    def from_machine(cls, machine: MachineSource, *output: Hashable) -> WeightedAutomaton:
        """Return the indicator function of an output of a Moore machine, or of each of its outputs if none is named.

        Raises as `as_machine` does, and `InvalidMachine` for an output that the machine does not have.

        >>> even = WeightedAutomaton.from_machine("regex:(aa)*", True)
        >>> even("aa"), even("aaa")
        (Fraction(1, 1), Fraction(0, 1))
        """
        machine = as_machine(machine)
        names, n = output or tuple(dict.fromkeys(machine.outputs)), machine.n_states
        if unknown := [name for name in names if name not in machine.outputs]:
            raise InvalidMachine(f"output {unknown[0]!r} is not one of the machine's: {shown(set(machine.outputs))}")
        bounded(machine.delta.size * n, MAX_ENTRIES, f"{n:,} states")
        A = [np.eye(n, dtype=int)[:, row] for row in machine.delta]
        beta = [[int(symbol == name) for symbol in machine.outputs] for name in names]
        alpha, is_one = [int(q == machine.start) for q in range(n)], len(output) == 1
        return cls(machine.alphabet, alpha, A, beta[0] if is_one else beta, None if is_one else names)

    @classmethod
    def from_probabilities(
        cls, alphabet: Iterable[Hashable], initial: Sequence[Number], transitions: Any, final: Sequence[Number]
    ) -> WeightedAutomaton:
        """Return the distribution of a probabilistic automaton over words.

        Args:
            initial: the probability of each state at the start.
            transitions: `transitions[a][p][q]`, the probability to write letter a in state p and go to q.
            final: the probability to stop in each state.

        Raises `InvalidMachine` for a negative number, or unless the initial ones, and for each state those to stop and
        to go on, sum to one within 10⁻⁶. The numbers are used as they are given.
        """
        w = cls(alphabet, initial, transitions, final)
        w = w._with(w._initial, [A.transpose() for A in w._transitions], w._final)
        if w.outputs is not None:
            raise InvalidMachine("final has rows: give one probability to stop per state")
        _check_sum("the initial probabilities", w.initial)
        moves = w.transitions
        for q, stop in enumerate(w.final):
            _check_sum(f"the probabilities of state {q}", [stop, *(row[q] for A in moves for row in A)])
        return w

    @classmethod
    def from_hmm(
        cls, alphabet: Iterable[Hashable], initial: Sequence[Number], moves: Any, emissions: Any
    ) -> WeightedAutomaton:
        """Return w ↦ P(the first letters are w) of a hidden Markov model; raise as `from_probabilities` does.

        `moves[p][q]` is the probability to go from p to q after a letter, `emissions[p][a]` to write letter a in p.
        """
        letters, n = listed(alphabet, "alphabet"), len(listed(initial, "initial"))
        T, E = _read(moves, (n, n), "moves"), _read(emissions, (n, len(letters)), "emissions")
        A = [[[T[p, q] * E[p, a] for p in range(n)] for q in range(n)] for a in range(len(letters))]
        w = cls(letters, initial, A, [1] * n)
        for name, rows in (("the initial probabilities", [w.initial]), ("moves", _rows(T)), ("emissions", _rows(E))):
            for q, row in enumerate(rows):
                _check_sum(f"{name} of state {q}" if len(rows) > 1 else name, row)
        return w

    @classmethod
    def from_model(cls, model: LRNN | SwitchedAffine) -> WeightedAutomaton:
        """Return the function of a model of one layer with a linear read-out, exactly (`networks.from_model`)."""
        from fsa2lrnn.weighted.networks import from_model

        return from_model(model)

    def to_json(self) -> str:
        """Return JSON text that `from_json` reads back.

        Raises `UnsupportedFormat` for symbols that JSON cannot hold, and for weights of more than 2¹³ bits.
        """
        parts = self._initial, *self._transitions, self._final
        if (bits := max((x.height_bits() for part in parts for x in part.entries()), default=0)) > MAX_BITS:
            raise UnsupportedFormat(f"a weight has {bits:,} bits, and files hold up to {MAX_BITS:,}: round the weights")
        final = [texts(row) for row in self._final.tolist()]
        value = {
            "format": FORMAT,
            "version": VERSION,
            "alphabet": [symbols.to_json(letter) for letter in self.alphabet],
            "outputs": None if self.outputs is None else [symbols.to_json(output) for output in self.outputs],
            "initial": texts(self._initial.entries()),
            "transitions": [[texts(row) for row in A.tolist()] for A in self._transitions],
            "final": final[0] if self.outputs is None else final,
        }
        lines = (f"  {json.dumps(name)}: {json.dumps(part)}" for name, part in value.items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str | bytes, origin: str = "the JSON text") -> WeightedAutomaton:
        """Return the automaton of a JSON text; raise `UnsupportedFormat` or `InvalidMachine` naming the fault."""
        check_type(text, (str, bytes), "text", "JSON text, as `to_json` returns it or a file holds it")
        value = parse_json(text, origin)
        if not isinstance(value, dict) or (value.get("format"), repr(value.get("version"))) != (FORMAT, str(VERSION)):
            raise UnsupportedFormat(f'{origin} is not a weighted automaton: expected "format": "{FORMAT}", version 1')
        if odd := sorted(set(value) ^ set(_FIELDS)):
            raise UnsupportedFormat(f"{origin}: {shown(odd[0])} is missing or not known: it has {', '.join(_FIELDS)}")
        lists = [[] if name == "outputs" and value[name] is None else value[name] for name in _FIELDS[2:]]
        if not all(isinstance(part, list) for part in lists):
            raise UnsupportedFormat(f"{origin}: alphabet, outputs, initial, transitions and final are lists")
        letters, outputs = ([symbols.from_json(x) for x in part] for part in lists[:2])
        initial, transitions, final = lists[2:]
        return cls(letters, initial, transitions, final, None if value["outputs"] is None else outputs)

    def __eq__(self, other: object) -> bool:
        is_same = (getattr(self, name) == getattr(other, name, None) for name in self.__slots__)
        return isinstance(other, WeightedAutomaton) and all(is_same)

    def __hash__(self) -> int:
        return hash((self.alphabet, self.outputs, self.initial))

    def __repr__(self) -> str:
        sizes = (self.n_states, "state"), (len(self.alphabet), "letter"), (self._final.nrows(), "output")
        return f"WeightedAutomaton({', '.join(counted(*size) for size in sizes)})"

    def __str__(self) -> str:
        lines = [repr(self), f"initial  {symbols.listed(self.initial, _SHOWN)}"]
        names = [f"  of {symbols.show(name)}" for name in self.outputs] if self.outputs is not None else [""]
        rows = zip(_rows(self._final), names, strict=True)
        lines += [f"final    {symbols.listed(row, _SHOWN)}{name}" for row, name in rows]
        n = range(self.n_states)
        for letter, A in zip(self.alphabet, self._transitions, strict=True):
            lines += [f"{p} → {q}  {symbols.show(letter)}: {A[q, p]}" for p in n for q in n if A[q, p]]
        return "\n".join(lines[:_SHOWN] + ["…"] * (len(lines) > _SHOWN))

    def _with(self, initial: fmpq_mat, transitions: Sequence[fmpq_mat], final: fmpq_mat) -> WeightedAutomaton:
        return WeightedAutomaton(self.alphabet, initial, transitions, final, self.outputs)

    def _parts_of(self, other: WeightedAutomaton) -> tuple[fmpq_mat, list[fmpq_mat], fmpq_mat]:
        """Return α, A and β of another automaton in the order of this one's letters and outputs."""
        order = symbols.align(self.alphabet, as_weighted(other).alphabet)
        if (self.outputs is None) != (other.outputs is None):
            raise InvalidMachine("one automaton has named outputs and the other has not: take one `output` of it")
        names = symbols.align(self.outputs or (0,), other.outputs or (0,))
        rows = other._final.tolist()
        final = _matrix([rows[i] for i in names], other.n_states)
        return other._initial, [other._transitions[a] for a in order], final


def as_weighted(value: object) -> WeightedAutomaton:
    """Return a weighted automaton; raise `UnsupportedFormat` for a value of another type."""
    made = "a WeightedAutomaton, as `from_machine`, `from_model` and `from_json` make it"
    check_type(value, WeightedAutomaton, "the weighted automaton", made)
    return cast("WeightedAutomaton", value)


def exact(value: Any, where: str) -> fmpq:
    """Return a number as a fraction; raise `InvalidMachine`, which names it by `where`, for others and NaN."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, fmpq):
        return value
    if isinstance(value, str) and _TEXT.fullmatch(value):
        value = Fraction(value)
    if isinstance(value, float) and not value - value == 0:
        raise InvalidMachine(f"{where} = {value}: a weight is a finite number: replace it")
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        what = f"{where} = {shown(value)} of type {type(value).__name__}"
        raise InvalidMachine(f"{what}: a weight is a whole number, a fraction such as 2/3 or a float")
    p, q = value.as_integer_ratio()
    if max(p.bit_length(), q.bit_length()) > MAX_BITS:
        raise InvalidMachine(f"{where} has more than {MAX_BITS:,} bits: round it")
    return fmpq(p, q)


def fraction(x: fmpq) -> Fraction:
    """Return a number of flint as a `Fraction`."""
    return Fraction(int(x.p), int(x.q))


def texts(numbers: Iterable[object]) -> list[str]:
    """Return numbers as texts such as 2/3, the form of JSON."""
    return [str(x) for x in numbers]


def _read_parts(
    letters: tuple[Hashable, ...], initial: Any, transitions: Any, final: Any, names: tuple[Hashable, ...] | None
) -> tuple[fmpq_mat, tuple[fmpq_mat, ...], fmpq_mat, tuple[Hashable, ...] | None]:
    """Return α, A and β as matrices, and Γ, which is None for one function; raise as the constructor does."""
    column = initial if isinstance(initial, fmpq_mat) else [[x] for x in listed(initial, "initial")]
    transitions = listed(transitions, "transitions")
    n = column.nrows() if isinstance(column, fmpq_mat) else len(column)
    if not letters or len(transitions) != len(letters):
        raise InvalidMachine(f"{counted(len(letters), 'letter')}, but {len(transitions):,} transition matrices")
    bounded(len(letters) * n * n, MAX_ENTRIES, f"{n:,} states over {len(letters):,} letters")
    if not isinstance(final, fmpq_mat):
        final = listed(final, "final")
        if names is None and len(final) and isinstance(final[0], list | tuple | np.ndarray):
            names = tuple(range(len(final)))
        final = [final] if names is None else final
    maps = tuple(_read(A, (n, n), f"transitions[{a}]") for a, A in enumerate(transitions))
    shape = 1 if names is None else len(names), n
    return _read(column, (n, 1), "initial"), maps, _read(final, shape, "final"), names


def listed(values: Any, name: str) -> tuple[Any, ...]:
    """Return values as a tuple, those of an array as numbers of Python."""
    if isinstance(values, Iterable):
        return tuple(values.tolist() if isinstance(values, np.ndarray) else values)
    raise InvalidMachine(f"{name} = {shown(values)}: give a list")


def _read(rows: Any, shape: tuple[int, int], name: str) -> fmpq_mat:
    """Return rows of numbers as a matrix of this shape."""
    if isinstance(rows, fmpq_mat) and (rows.nrows(), rows.ncols()) == shape:
        return rows
    if not isinstance(rows, list | tuple | np.ndarray):
        raise InvalidMachine(f"{name} = {shown(rows)}: give {shape[0]:,} lists of {shape[1]:,} numbers, or an array")
    rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in rows]
    if len(rows) != shape[0] or any(not isinstance(row, list | tuple) or len(row) != shape[1] for row in rows):
        raise InvalidMachine(f"{name} does not have {shape[0]:,} × {shape[1]:,} numbers: correct its shape")
    entries = [x for row in rows for x in row]
    if not all(type(x) is int and -MAX_BITS < x < MAX_BITS for x in entries):  # small ones are taken as they are
        entries = [exact(x, f"{name}[{i}][{j}]") for i, row in enumerate(rows) for j, x in enumerate(row)]
    return fmpq_mat(*shape, entries)


def _rows(matrix: fmpq_mat) -> tuple[tuple[Fraction, ...], ...]:
    return tuple(tuple(map(fraction, row)) for row in matrix.tolist())


def _matrix(rows: Sequence[Sequence[fmpq]], width: int) -> fmpq_mat:
    return fmpq_mat(len(rows), width, [x for row in rows for x in row])


def _kronecker(A: fmpq_mat, B: fmpq_mat) -> fmpq_mat:
    rows = [[x * y for x in row for y in other] for row in A.tolist() for other in B.tolist()]
    return _matrix(rows, A.ncols() * B.ncols())


def _check_sum(name: str, numbers: Sequence[Fraction]) -> None:
    if min(numbers, default=0) < 0:
        raise InvalidMachine(f"{name}: {float(min(numbers)):.6g} is negative: probabilities are at least 0")
    if abs(sum(numbers) - 1) > TOLERANCE:
        raise InvalidMachine(f"{name} sum to {float(sum(numbers)):.9g}, not to 1: correct them")
