"""The Moore machine M = (Q, Σ, δ, q₀, ω), the library's only type of automaton (docs/theory.md §1).

The class holds the data and runs on words; algorithms are functions in other modules (`language`, `formats`). Methods
that call these look them up by name, since those modules import this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat, check_type, shortened
from fsa2lrnn.symbols import Word, confused, encode, letter_index

if TYPE_CHECKING:
    import networkx as nx
    from automata.fa.dfa import DFA

    from fsa2lrnn.draw.svg import Drawing
_FAULTS_SHOWN = 5
_SHORT_WORD = 2_000  # below this a Python loop beats loading the compiled walk


class MooreMachine:
    """A complete deterministic automaton with an output at every state, immutable and hashable.

    Args:
        delta: δ as a table of integers, shape (|Σ|, n): `delta[a][q]` is the state after letter number a in state q.
        outputs: ω, n hashables; booleans make the machine an acceptor (a DFA).
        start: q₀.
        alphabet: Σ, |Σ| distinct hashables; 0 … |Σ|−1 by default.
        labels: the meaning of the states, n hashables, for display only; `==` and `hash` ignore them.

    `delta` is stored as a read-only int64 array. `==` compares table, outputs, start and alphabet; `equivalent` decides
    whether two machines compute the same function.

    Raises `InvalidMachine` naming every broken invariant, with at most five wrong entries of `delta`.

    >>> m = MooreMachine([[0, 1], [1, 0]], outputs=[False, True])      # parity of the ones
    >>> m.transduce([1, 0, 1])
    [True, True, False]
    """

    __slots__ = ("alphabet", "delta", "labels", "outputs", "start")
    delta: np.ndarray
    outputs: tuple[Hashable, ...]
    start: int
    alphabet: tuple[Hashable, ...]
    labels: tuple[Hashable, ...] | None

    def __init__(
        self,
        delta: Sequence[Sequence[int]] | np.ndarray,
        outputs: Iterable[Hashable],
        start: int = 0,
        alphabet: Iterable[Hashable] | None = None,
        labels: Iterable[Hashable] | None = None,
    ) -> None:
        table = _as_table(delta)
        check_type(outputs, Iterable, "outputs", "a list with the output of each state")
        for name, given, each in (("alphabet", alphabet, "row of delta"), ("labels", labels, "state")):
            check_type(() if given is None else given, Iterable, name, f"a list with one per {each}")
        values: dict[str, Any] = {
            "delta": table,
            "outputs": tuple(outputs),
            "start": start,
            "alphabet": tuple(range(table.shape[0])) if alphabet is None else tuple(alphabet),
            "labels": None if labels is None else tuple(labels),
        }
        if faults := _faults(**values):
            raise InvalidMachine("; ".join(faults))
        values["start"] = int(start)
        table.flags.writeable = False
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def n_states(self) -> int:
        """The number of states, |Q|."""
        return self.delta.shape[1]

    @property
    def is_acceptor(self) -> bool:
        """Whether every output is a boolean, so that the machine is a DFA."""
        return all(isinstance(output, bool | np.bool_) for output in self.outputs)

    def step(self, state: int, letter: Hashable) -> int:
        """Return δ(state, letter); raise `InvalidWord` for an unknown letter, `InvalidMachine` for a bad state."""
        if not _is_whole(state) or not 0 <= state < self.n_states:
            raise InvalidMachine(f"state {state!r} is not a state of this machine: states run 0..{self.n_states - 1}")
        try:
            a = letter_index(self.alphabet)[letter]
        except (KeyError, TypeError):
            a = encode([letter], self.alphabet)[0]  # says what is wrong with the letter
        return int(self.delta[a, state])

    def run(self, word: Word) -> int:
        """Return the state after `word`, q₀ for the empty word; raise `InvalidWord` for an unknown letter."""
        states = self.states(word)
        return int(states[-1]) if len(states) else self.start

    def states(self, word: Word) -> np.ndarray:
        """Return the states q₁ … q_T, int64, shape (T,); raise `InvalidWord` for an unknown letter."""
        tokens = encode(word, self.alphabet)
        if len(tokens) > _SHORT_WORD:
            from fsa2lrnn.walks import walk

            return walk(self.delta, self.start, tokens)
        states, q = np.empty(len(tokens), np.int64), self.start
        for k, a in enumerate(tokens):
            states[k] = q = self.delta[a, q]
        return states

    def transduce(self, word: Word) -> list[Hashable]:
        """Return the outputs ω(q₁) … ω(q_T) after every letter; raise `InvalidWord` for an unknown letter."""
        return [self.outputs[q] for q in self.states(word)]

    def accepts(self, word: Word) -> bool:
        """Return whether an acceptor accepts `word`; raise `InvalidMachine` if an output is not a boolean."""
        if not self.is_acceptor:
            raise InvalidMachine("this machine has outputs other than True and False: use transduce() or run()")
        return bool(self.outputs[self.run(word)])

    def minimise(self) -> MooreMachine:
        """Return the minimal equivalent machine, with its states in breadth-first order (`language.minimise`)."""
        from fsa2lrnn.automata.language import minimise

        return minimise(self)

    def equivalent(self, other: MachineSource) -> tuple[Hashable, ...] | None:
        """Return a shortest word that distinguishes two machines, or None if they are equivalent.

        Raises `InvalidMachine` for different alphabets. `language.equivalent` has options.
        """
        from fsa2lrnn.automata.language import equivalent

        return equivalent(self, other)

    def transitions(self) -> Iterator[tuple[int, Hashable, int]]:
        """Yield (state, letter, next state) for every state and, in the order of the alphabet, every letter.

        >>> list(MooreMachine([[1, 0]], [True, False], alphabet="a").transitions())
        [(0, 'a', 1), (1, 'a', 0)]
        """
        for q, row in enumerate(self.delta.T.tolist()):
            for letter, target in zip(self.alphabet, row, strict=True):
                yield q, letter, target

    def __or__(self, other: MooreMachine) -> MooreMachine:
        """Return the minimal acceptor of the words that either machine accepts.

        `|`, `&`, `-` and `~` need acceptors over the same letters and raise `InvalidMachine` for other machines.

        >>> even, third = MooreMachine.from_regex("(aa)*"), MooreMachine.from_regex("(aaa)*")
        >>> (even & third).equivalent(MooreMachine.from_regex("(aaaaaa)*")) is None
        True
        >>> [(even - third).accepts("a" * n) for n in (2, 6)], (~even).accepts("a")
        ([True, False], True)
        """
        return self._combined(other, lambda x, y: x or y, "|")

    def __and__(self, other: MooreMachine) -> MooreMachine:
        """Return the minimal acceptor of the words that both machines accept."""
        return self._combined(other, lambda x, y: x and y, "&")

    def __sub__(self, other: MooreMachine) -> MooreMachine:
        """Return the minimal acceptor of the words that this machine accepts and the other does not."""
        return self._combined(other, lambda x, y: x and not y, "-")

    def __invert__(self) -> MooreMachine:
        """Return the acceptor of the words that this machine rejects, with the same states."""
        from fsa2lrnn.automata.language import complement

        return complement(self)

    def _combined(self, other: object, accepts: Callable[[bool, bool], bool], name: str) -> MooreMachine:
        if not isinstance(other, MooreMachine):
            return NotImplemented
        from fsa2lrnn.automata.language import combine_acceptors

        return combine_acceptors(self, other, accepts, name)

    @classmethod
    def from_regex(cls, expression: str, alphabet: Iterable[Hashable] | None = None) -> MooreMachine:
        """Return the minimal acceptor of a regular expression in the syntax of `formats.regex`.

        The alphabet is by default the letters of the expression. Raises `InvalidMachine` for a malformed expression.
        """
        from fsa2lrnn.automata.formats.regex import from_regex

        return from_regex(expression, alphabet)

    @classmethod
    def from_source(cls, source: str | Path, **options: Any) -> MooreMachine:
        """Return a machine from `regex:…`, `task:…` or a file; `formats.read_source` lists options and errors."""
        from fsa2lrnn.automata.formats import read_source

        return read_source(source, **options)

    @classmethod
    def from_automata(cls, automaton: Any) -> MooreMachine:
        """Return a machine from an automata-lib DFA, NFA or GNFA (`formats.python_objects`)."""
        from fsa2lrnn.automata.formats.python_objects import from_automata

        return from_automata(automaton)

    @classmethod
    def from_networkx(cls, graph: nx.MultiDiGraph[Any], **options: Any) -> MooreMachine:
        """Return a machine from a networkx graph with the attributes that `formats.python_objects` documents."""
        from fsa2lrnn.automata.formats.python_objects import from_networkx

        return from_networkx(graph, **options)

    def to_automata(self) -> DFA:
        """Return an automata-lib DFA; raise `UnsupportedFormat` unless this machine is an acceptor."""
        from fsa2lrnn.automata.formats.python_objects import to_automata

        return to_automata(self)

    def to_networkx(self) -> nx.MultiDiGraph[Any]:
        """Return a networkx graph that `from_networkx` reads back."""
        from fsa2lrnn.automata.formats.python_objects import to_networkx

        return to_networkx(self)

    def to_dot(self) -> str:
        """Return Graphviz source that draws the machine and that `from_source` reads back."""
        from fsa2lrnn.automata.formats.dot import to_dot

        return to_dot(self)

    def to_svg(self) -> str:
        """Return a self-contained SVG drawing, made without Graphviz; raise `BudgetExceeded` beyond 60 states."""
        from fsa2lrnn.draw import automaton

        return automaton.to_svg(self)

    def draw(self) -> Drawing:
        """Return a drawing for a notebook, by Graphviz if `dot` is installed; else raise as `to_svg` does."""
        from fsa2lrnn.draw import automaton

        return automaton.draw(self)

    def _repr_svg_(self) -> str | None:
        from fsa2lrnn.draw import automaton
        from fsa2lrnn.draw.drawn_machine import DrawnMachine

        return automaton.svg_file(DrawnMachine.of_machine(self))

    def to_json(self) -> str:
        """Return JSON text, the only format that preserves symbols of every supported type (`formats.json_file`)."""
        from fsa2lrnn.automata.formats.json_file import to_json

        return to_json(self)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"MooreMachine is frozen: build a new one instead of setting {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"MooreMachine is frozen: build a new one instead of deleting {name}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MooreMachine):
            return NotImplemented
        return self._key() == other._key() and np.array_equal(self.delta, other.delta)

    def __hash__(self) -> int:
        return hash((self._key(), self.delta.tobytes()))

    def _key(self) -> tuple[Any, ...]:
        return self.start, self.outputs, self.alphabet

    def __reduce__(self) -> tuple[Any, ...]:
        return MooreMachine, (self.delta, self.outputs, self.start, self.alphabet, self.labels)

    def __repr__(self) -> str:
        kind = "acceptor" if self.is_acceptor else f"{len(set(self.outputs))} outputs"
        return f"MooreMachine({self.n_states} states, {len(self.alphabet)} letters, {kind})"


MachineSource = MooreMachine | str | Path
"""What a function takes for a machine: the machine itself, or its source (`MooreMachine.from_source`)."""


def as_machine(machine: object) -> MooreMachine:
    """Return a machine, or that of a `MachineSource`; raise as `from_source` does, and for a value of another type.

    >>> as_machine("regex:(ab)*").accepts("abab")
    True
    """
    if isinstance(machine, MooreMachine):
        return machine
    if isinstance(machine, str | Path):
        return MooreMachine.from_source(machine)
    raise UnsupportedFormat(
        f"{shortened(repr(machine))} of type {type(machine).__name__} is not an automaton: give a MooreMachine, a "
        'source such as "regex:(ab)*" or "task:parity", or the path of a file'
    )


def _is_whole(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _as_table(delta: Sequence[Sequence[int]] | np.ndarray) -> np.ndarray:
    """Return δ as a contiguous int64 array (|Σ|, n); raise `InvalidMachine` for ragged, empty or non-integer rows."""
    try:
        table = np.asarray(delta)
    except ValueError:
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in delta]
        if len(set(lengths)) == 1:  # the rows agree, so an entry is not a number
            raise InvalidMachine(_not_one_state(delta)) from None
        raise InvalidMachine(
            f"the rows of delta have the lengths {lengths[:12]}: give one row a letter, each with one entry a state"
        ) from None
    if table.ndim in (1, 2) and table.shape[0] == 0:
        raise InvalidMachine("the alphabet is empty: a machine needs at least one letter, one row of delta each")
    if table.ndim != 2:
        raise InvalidMachine(f"delta has {table.ndim} dimensions: it is a table of shape (letters, states)")
    if table.shape[1] == 0:
        raise InvalidMachine("delta has no states: a machine needs at least its start state")
    if table.dtype.kind not in "iu":
        raise InvalidMachine(_not_one_state(table.tolist()))
    return np.array(table, dtype=np.int64, order="C")


def _not_one_state(rows: Iterable[Iterable[object]]) -> str:
    """Return the message about the first entry that is not an integer, or does not fit into int64."""
    a, q, entry = next(
        (a, q, entry)
        for a, row in enumerate(rows)
        for q, entry in enumerate(row)
        if not _is_whole(entry) or abs(entry) >= 2**63  # type: ignore[operator, arg-type]
    )
    return (
        f"delta[{a}, {q}] = {entry!r} is not one state: delta gives exactly one integer a letter and state "
        "(a nondeterministic automaton goes through from_automata, a partial one through language.complete)"
    )


def _faults(
    delta: np.ndarray,
    outputs: tuple[Hashable, ...],
    start: object,
    alphabet: tuple[Hashable, ...],
    labels: tuple[Hashable, ...] | None,
) -> list[str]:
    """Return all faults of a machine's parts; `delta`, (|Σ|, n), has the right type and shape."""
    (n_letters, n) = delta.shape
    faults: list[str] = []
    outside = np.argwhere((delta < 0) | (delta >= n))
    for a, q in outside[:_FAULTS_SHOWN]:
        remedy = (
            f"give outputs and columns for {delta.max() + 1} states or correct the table"
            if delta[a, q] >= n
            else "correct the table, or complete a partial one with language.complete"
        )
        faults.append(f"delta[{a}, {q}] = {delta[a, q]}, but states run 0..{n - 1}: {remedy}")
    if len(outside) > _FAULTS_SHOWN:
        faults.append(f"{len(outside) - _FAULTS_SHOWN} more entries of delta are out of range")
    if len(outputs) != n:
        faults.append(f"{len(outputs)} outputs for {n} states: give one output a state")
    if not _is_whole(start) or not 0 <= start < n:  # type: ignore[operator]
        faults.append(f"start = {start!r}, but states run 0..{n - 1}: name one of them")
    if len(alphabet) != n_letters:
        faults.append(f"{len(alphabet)} letters for {n_letters} rows of delta: give one letter a row")
    # Symbols are keys of dictionaries: they have to be hashable and equal to themselves, which NaN is not.
    for kind, symbols in [("letter", alphabet), ("output", outputs), ("label", labels or ())]:
        for i, symbol in enumerate(symbols):
            try:
                hash(symbol)
            except TypeError:
                faults.append(f"{kind} {i} is {symbol!r}, which is not hashable: use a tuple or a string")
                break
            if symbol != symbol:
                faults.append(f"{kind} {i} is {symbol!r}, which is not equal to itself: use None or a string")
                break
        else:
            if kind != "label" and (why := confused(symbols)):
                faults.append(f"{kind}s {why}")
            if kind == "letter" and len(set(symbols)) != len(symbols):
                ((twice, _),) = Counter(symbols).most_common(1)
                faults.append(f"letter {twice!r} stands twice in the alphabet: letters are distinct")
    if labels is not None and len(labels) != n:
        faults.append(f"{len(labels)} labels for {n} states: give one a state or none")
    return faults
