"""OpenFst's text format (`.fst.txt`, `.att`), as fstprint, Pynini and foma write it, with symbol tables.

    source target letter [output [weight]]      an arc; the source of the first line is the start
    state [weight]                              a final state

Acceptors have one label an arc; files in which each arc has two equal ones are acceptors too. Transducers are read as
Mealy machines: one output per letter, and all states final or none. Label 0, or the symbol of number 0 in the table, is
epsilon, as is `<eps>` without a table. Weights other than zero (tropical one) are refused. Symbols are strings; their
order is that of the table, else natural. States stand in the order of their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from fsa2lrnn.automata.formats.assemble import to_machine
from fsa2lrnn.automata.formats.automata_lib import text_letters
from fsa2lrnn.automata.formats.graph import (
    ABSENT,
    EPSILON,
    MAX_PROBLEMS,
    Edge,
    LabelledGraph,
    Mark,
    Problem,
    State,
    in_natural_order,
    raise_problems,
    stop_at_many,
)
from fsa2lrnn.automata.language import Completion
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat

_EPSILONS = frozenset({"<eps>", "<epsilon>", "ε", "@0@", "@_EPSILON_SYMBOL_@"})  # OpenFst's; foma's and HFST's
_ZERO_WEIGHTS = re.compile(r"[-+]?0+(\.0*)?([eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class _Arc:
    fields: list[str]
    line: int


def from_openfst(
    text: str,
    completion: Completion | None = None,
    isymbols: str | None = None,
    osymbols: str | None = None,
    acceptor: bool | None = None,
    origin: str = "the OpenFst text",
) -> MooreMachine:
    """Return the machine of an OpenFst text.

    Args:
        completion: the meaning of a missing transition (`assemble.to_machine`).
        isymbols: the text of the table of letters, one symbol with its number per line.
        osymbols: the same for outputs.
        acceptor: whether the fourth field of an arc is a weight (True) or an output (False); by default an output,
            unless some arc has three fields.

    Raises:
        InvalidMachine: with every problem of the text and its line.

    >>> from_openfst("0 1 a\\n1 0 b\\n0\\n").transduce("abab")
    [False, True, False, True]
    """
    problems: list[Problem] = []
    arcs: list[_Arc] = []
    finals: dict[str, int] = {}
    seen: dict[str, int] = {}  # the first line of each state
    interned: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stop_at_many(origin, problems)
        fields = [interned.setdefault(field, field) for field in line.split()]  # each text once in memory
        if not fields:
            continue
        seen.setdefault(fields[0], number)
        if len(fields) <= 2:
            if len(fields) == 2 and fields[1] == "Infinity":
                continue
            problems += _weight_problem(fields[1:], number)
            finals[fields[0]] = number
        elif len(fields) <= 5:
            seen.setdefault(fields[1], number)
            arcs.append(_Arc(fields, number))
        else:
            problems.append(Problem(f"{len(fields)} fields, an arc has three to five and a final state one or two: "
                                    "remove the others", number))  # fmt: skip
    is_acceptor = any(len(arc.fields) == 3 for arc in arcs) if acceptor is None else acceptor
    for arc in arcs:
        stop_at_many(origin, problems)
        problems += _weight_problem(arc.fields[3 if is_acceptor else 4 :], arc.line)
        if not is_acceptor and len(arc.fields) == 3:
            problems.append(Problem("an arc of a transducer has no output: add it, or pass acceptor=True", arc.line))
    raise_problems(origin, problems)
    letters = _Labels("letter", [(arc.fields[2], arc.line) for arc in arcs], isymbols, problems)
    outputs = _Labels("output", [] if is_acceptor else [(a.fields[3], a.line) for a in arcs], osymbols, problems)
    raise_problems(origin, problems)
    is_acceptor = is_acceptor or all(letters[arc.fields[2]] == outputs[arc.fields[3]] for arc in arcs)
    edges: list[Edge] = []
    for arc in arcs:
        stop_at_many(origin, problems)
        output = ABSENT if is_acceptor else outputs[arc.fields[3]]
        if output is EPSILON:
            problems.append(
                Problem(
                    "an arc writes no output (0 is epsilon unless a table names it): a Mealy machine writes one a "
                    "letter, add it",
                    arc.line,
                )
            )
        edges.append(Edge(arc.fields[0], letters[arc.fields[2]], arc.fields[1], output, arc.line))
    if not is_acceptor and finals and len(finals) < len(seen):
        left = next(state for state in seen if state not in finals)
        problems.append(
            Problem(
                f"state {left} is not final, others are: a Mealy machine answers every word, mark all states or none",
                seen[left],
            )
        )
    graph = LabelledGraph(
        "acceptor" if is_acceptor else "mealy",
        tuple(State(key, key, is_acceptor and key in finals, line=seen[key]) for key in in_natural_order(seen)),  # type: ignore[index]
        tuple(list(seen.items())[:1]),
        tuple(edges),
        letters.declared,
        origin,
        problems=tuple(problems),
    )
    return to_machine(graph, completion)


def to_openfst(machine: MooreMachine) -> tuple[str, str]:
    """Return an acceptor as OpenFst text and the text of its symbol table, for `fstcompile --acceptor --isymbols=…`.

    Raises `UnsupportedFormat` for other machines, whose start has an output that a transducer can't write, and for
    letters that hold white space.

    >>> text, table = to_openfst(MooreMachine([[1, 0]], [True, False], alphabet="a"))
    >>> from_openfst(text, isymbols=table).n_states
    2
    """
    if not machine.is_acceptor:
        raise UnsupportedFormat(
            "OpenFst has acceptors and transducers, and a transducer writes nothing before the first letter, where "
            f"this machine has the output {machine.outputs[machine.start]!r}: write JSON, DOT or JFLAP"
        )
    letters = text_letters(machine, "OpenFst")
    if bad := [letter for letter in letters if letter.split() != [letter] or letter in _EPSILONS]:
        raise UnsupportedFormat(
            f"letter {bad[0]!r} holds white space, or means epsilon in OpenFst: rename it, or write JSON"
        )
    order = [machine.start, *(q for q in range(machine.n_states) if q != machine.start)]
    arcs = [f"{q}\t{machine.delta[a, q]}\t{letter}" for q in order for a, letter in enumerate(letters)]
    finals = [str(q) for q in order if machine.outputs[q]]
    table = [f"{letter}\t{number}" for number, letter in enumerate(["<eps>", *letters])]
    return "\n".join([*arcs, *finals, ""]), "\n".join([*table, ""])


class _Labels:
    """The mapping from the labels of one side to symbols, by a table of symbols or by identity."""

    def __init__(
        self, role: str, labels: Sequence[tuple[str, int]], table: str | None, problems: list[Problem]
    ) -> None:
        texts = {label for label, _ in labels}
        self.declared: tuple[str, ...] | None = None
        if table is None:
            epsilons = {"0"} if texts and all(text.isdecimal() for text in texts) else _EPSILONS
            self._symbol: dict[str, str | Mark] = {text: EPSILON if text in epsilons else text for text in texts}
            return
        by_symbol = _table(role, table, problems)
        ordered = sorted(by_symbol.items(), key=lambda item: item[1])
        self.declared = tuple(symbol for symbol, number in ordered if number != 0)
        self._symbol = {symbol: EPSILON if number == 0 else symbol for symbol, number in ordered}
        if not texts <= set(by_symbol) and all(text.isdecimal() for text in texts):
            self._symbol = {str(number): EPSILON if number == 0 else symbol for symbol, number in ordered}
        unknown = ((label, line) for label, line in labels if label not in self._symbol)
        problems += [
            Problem(f"{role} {label!r} is not in the symbol table: add it there, or correct the arc", line)
            for label, line in islice(unknown, MAX_PROBLEMS)
        ]

    def __getitem__(self, label: str) -> str | Mark:
        return self._symbol[label]


def _table(role: str, text: str, problems: list[Problem]) -> dict[str, int]:
    number_of: dict[str, int] = {}
    numbers: set[int] = set()
    for number, line in enumerate(text.split("\n"), 1):
        stop_at_many(f"the table of {role}s", problems)
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or not re.fullmatch(r"[0-9]{1,18}", fields[1]):
            problems.append(Problem(f"line {number} of the {role} table is {line.strip()[:60]!r}: expected a symbol "
                                    "and its number"))  # fmt: skip
        elif fields[0] in number_of or int(fields[1]) in numbers:
            problems.append(Problem(f"line {number} of the {role} table repeats {fields[0]!r} or its number: keep one"))
        else:
            number_of[fields[0]] = int(fields[1])
            numbers.add(int(fields[1]))
    return number_of


def _weight_problem(fields: Sequence[str], line: int) -> list[Problem]:
    if not fields or _ZERO_WEIGHTS.fullmatch(fields[0]):
        return []
    return [Problem(f"weight {fields[0]!r}: a machine accepts or not, without weights; remove them (fstmap)", line)]
