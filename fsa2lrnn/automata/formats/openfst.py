"""Read and write OpenFst's text format (`.fst.txt`, `.att`), as fstprint, Pynini and foma do, with symbol tables.

    source target letter [output [weight]]      an arc; the source of the first line is the start
    state [weight]                              a final state

Tabs separate the fields of a line that has some, else blanks. Acceptors have one label per arc, or two equal ones.
Transducers are read as Mealy machines: they need one output per letter, and all states final or none. Label 0, or the
symbol of number 0 in the table, is epsilon, as is `<eps>` without a table; HFST's `@_SPACE_@` is a blank, its symbols
for other letters and flag diacritics are refused. Weights other than 0, the one of the tropical semiring, are refused.
Symbols are strings, in the order of the table or else in natural order. States are in the order of their numbers.
"""

from __future__ import annotations

import re

from fsa2lrnn.automata.formats.foreign import foreign
from fsa2lrnn.automata.formats.graph import (
    ABSENT,
    EPSILON,
    Edge,
    LabelledGraph,
    Mark,
    Problems,
    State,
    in_natural_order,
    is_epsilon,
    to_machine,
)
from fsa2lrnn.automata.formats.python_objects import text_letters
from fsa2lrnn.automata.language import Completion
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat

_WRITTEN = {"@_SPACE_@": " ", "@_TAB_@": "\t", "@_COLON_@": ":"}  # HFST's names of characters
_DECIMAL = re.compile(r"-?[0-9]*\.[0-9]+")
_ZERO_WEIGHTS = re.compile(r"[-+]?0+([.,]0*)?([eE][-+]?\d+)?")


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
        completion: the treatment of missing transitions (`graph.to_machine`).
        isymbols: the text of the table of letters, one symbol with its number per line.
        osymbols: the text of the table of outputs.
        acceptor: whether the fourth field of an arc is a weight (True) or an output (False); by default a weight if
            some arc has three fields.
        origin: the name of the file, for messages.

    Raises `InvalidMachine` with every problem of the text and its line.

    >>> from_openfst("0 1 a\\n1 0 b\\n0\\n").transduce("abab")
    [False, True, False, True]
    """
    problems = Problems(origin)
    arcs: list[tuple[list[str], int]] = []
    finals: dict[str, int] = {}
    seen: dict[str, int] = {}  # the first line of each state
    interned: dict[str, str] = {}
    for line, text_line in enumerate(text.split("\n"), 1):
        fields = [interned.setdefault(field, field) for field in _fields(text_line)]  # each text once in memory
        if not fields:
            continue
        if fields == ["--"]:
            if rest := text.split("\n", line)[-1].strip():
                problems.add(f"-- begins another transducer ({rest[:20]!r}…): keep one a file", line)
            break
        seen.setdefault(fields[0], line)
        if len(fields) <= 2:
            if fields[1:] != ["Infinity"]:
                _check_weight(fields[1:], line, problems)
                finals[fields[0]] = line
        elif len(fields) <= 5:
            seen.setdefault(fields[1], line)
            arcs.append((fields, line))
        else:
            remedy = "an arc has three to five and a final state one or two: remove the others"
            problems.add(f"{len(fields)} fields, {remedy}", line)
    is_acceptor = any(len(fields) == 3 for fields, _ in arcs) if acceptor is None else acceptor
    if acceptor is None and arcs and all(len(fields) == 4 and _DECIMAL.fullmatch(fields[3]) for fields, _ in arcs):
        remedy = "pass acceptor=True for weights, acceptor=False for outputs"
        problems.add(f"{arcs[0][0][3]} and the others can be weights or outputs: {remedy}", arcs[0][1])
    for fields, line in arcs:
        _check_weight(fields[3 if is_acceptor else 4 :], line, problems)
        if not is_acceptor and len(fields) == 3:
            problems.add("an arc of a transducer has no output: add it, or pass acceptor=True", line)
    problems.check()
    letters = _Labels("letter", [(fields[2], line) for fields, line in arcs], isymbols, problems)
    of_outputs = [] if is_acceptor else [(fields[3], line) for fields, line in arcs]
    outputs = _Labels("output", of_outputs, osymbols, problems)
    problems.check()
    is_acceptor = is_acceptor or (
        bool(finals) and all(letters.symbol[fields[2]] == outputs.symbol[fields[3]] for fields, _ in arcs)
    )
    edges: list[Edge] = []
    for fields, line in arcs:
        output = ABSENT if is_acceptor else outputs.symbol[fields[3]]
        if output is EPSILON:
            remedy = "a Mealy machine writes one a letter, add it"
            problems.add(f"an arc writes no output (0 is epsilon unless a table names it): {remedy}", line)
        edges.append(Edge(fields[0], letters.symbol[fields[2]], fields[1], output, line))
    if not is_acceptor and finals and len(finals) < len(seen):
        left = next(state for state in seen if state not in finals)
        remedy = "a Mealy machine answers every word, mark all states or none"
        problems.add(f"state {left} is not final, others are: {remedy}", seen[left])
    graph = LabelledGraph(
        "acceptor" if is_acceptor else "mealy",
        tuple(State(key, key, is_acceptor and key in finals, line=seen[key]) for key in in_natural_order(seen)),  # type: ignore[index]
        tuple(list(seen.items())[:1]),
        tuple(edges),
        letters.declared,
        origin,
        problems=problems.all,
    )
    return to_machine(graph, completion)


def to_openfst(machine: MooreMachine) -> tuple[str, ...]:
    """Return a machine as OpenFst text and the texts of its symbol tables, for `fstcompile --isymbols=…`.

    There is one table for an acceptor (with `--acceptor`), and two for a Mealy machine, which has the output None at
    its start alone. Raises `UnsupportedFormat` for other machines, since a transducer cannot write the output of the
    start, and for letters that contain white space, mean epsilon or have the same text.

    >>> text, table = to_openfst(MooreMachine([[1, 0]], [True, False], alphabet="a"))
    >>> from_openfst(text, isymbols=table).n_states
    2
    """
    reached = {machine.outputs[q] for q in machine.delta.ravel().tolist()}
    if not machine.is_acceptor and (machine.outputs[machine.start] is not None or None in reached):
        raise UnsupportedFormat(
            "OpenFst has acceptors and transducers, and a transducer writes nothing before the first letter, where "
            f"this machine has the output {machine.outputs[machine.start]!r}: write JSON, DOT or JFLAP, or give an "
            "acceptor's outputs as the booleans true and false"
        )
    letters, outputs = text_letters(machine, "OpenFst"), {output: str(output) for output in reached}
    if len(set(outputs.values())) < len(outputs):
        raise UnsupportedFormat(
            "two outputs are written alike, and OpenFst holds text alone: rename one, or write JSON"
        )
    texts = letters if machine.is_acceptor else [*letters, *outputs.values()]
    if bad := [text for text in texts if text.split() != [text] or is_epsilon(text) or text in _WRITTEN]:
        raise UnsupportedFormat(
            f"symbol {bad[0]!r} holds white space, or has another meaning in OpenFst: rename it, or write JSON"
        )
    order = [machine.start, *(q for q in range(machine.n_states) if q != machine.start)]
    arcs = [
        f"{q}\t{(target := int(machine.delta[a, q]))}\t{letter}"
        + ("" if machine.is_acceptor else f"\t{outputs[machine.outputs[target]]}")
        for q in order
        for a, letter in enumerate(letters)
    ]
    finals = [str(q) for q in order if machine.is_acceptor and machine.outputs[q]]
    tables = [letters] if machine.is_acceptor else [letters, sorted(outputs.values())]
    return tuple("\n".join([*lines, ""]) for lines in ([*arcs, *finals], *map(_written_table, tables)))


def _written_table(symbols: list[str]) -> list[str]:
    return [f"{symbol}\t{number}" for number, symbol in enumerate(["<eps>", *symbols])]


def _fields(line: str) -> list[str]:
    """Return the fields of a line: between tabs if it has some, so that a letter can be a blank or nothing."""
    fields = line.rstrip("\r").split("\t")
    is_final = len(fields) == 3 and not fields[2] and _DECIMAL.fullmatch(fields[1])  # lttoolbox ends lines with a tab
    if len(fields) < 3 or is_final or not all(len(field.split()) == 1 for field in fields[:2]):
        return line.split()
    return [field or "@0@" for field in fields[:4]] + [field for field in fields[4:] if field]


class _Labels:
    """The mapping `symbol` from labels to symbols: that of a table, which has the `declared` ones, or the identity."""

    def __init__(self, role: str, labels: list[tuple[str, int]], table: str | None, problems: Problems) -> None:
        texts = {label for label, _ in labels}
        self.declared: tuple[str, ...] | None = None
        if table is None:
            numbers = bool(texts) and all(text.isdecimal() for text in texts)
            self.symbol: dict[str, str | Mark] = {
                text: EPSILON if (text == "0" if numbers else is_epsilon(text)) else _WRITTEN.get(text, text)
                for text in texts
            }
            special = [text for text in texts if text[0] in "@<"]
            if (refused := foreign(special)) is not None:
                line = next(line for label, line in labels if label == refused[0])
                problems.add(
                    f"{role} {refused[0]!r} is {refused[1]}: write one arc for each letter that it means", line
                )
            return
        ordered = sorted(_table(role, table, problems).items(), key=lambda item: item[1])
        self.declared = tuple(symbol for symbol, number in ordered if number != 0)
        self.symbol = {symbol: EPSILON if number == 0 else symbol for symbol, number in ordered}
        if not texts <= set(self.symbol) and all(text.isdecimal() for text in texts):
            self.symbol = {str(number): EPSILON if number == 0 else symbol for symbol, number in ordered}
        for label, line in labels:
            if label not in self.symbol:
                problems.add(f"{role} {label!r} is not in the symbol table: add it there, or correct the arc", line)


def _table(role: str, text: str, problems: Problems) -> dict[str, int]:
    """Return the number of each symbol in the text of a symbol table, and add a problem for each invalid line."""
    number_of, numbers = dict[str, int](), set[int]()
    for line, text_line in enumerate(text.split("\n"), 1):
        place, fields = f"line {line} of the {role} table", _table_fields(text_line)
        if not fields:
            continue
        if len(fields) != 2 or not re.fullmatch(r"[0-9]{1,18}", fields[1]):
            problems.add(f"{place} is {text_line.strip()[:60]!r}: expected a symbol and its number")
        elif fields[0] in number_of or int(fields[1]) in numbers:
            problems.add(f"{place} repeats {fields[0]!r} or its number: keep one")
        else:
            number_of[fields[0]] = int(fields[1])
            numbers.add(int(fields[1]))
    return number_of


def _table_fields(line: str) -> list[str]:
    fields = line.rstrip("\r").split("\t")
    return fields if len(fields) == 2 and fields[0].isspace() else line.split()


def _check_weight(fields: list[str], line: int, problems: Problems) -> None:
    if fields and not _ZERO_WEIGHTS.fullmatch(fields[0]):
        problems.add(f"weight {fields[0]!r}: a machine accepts or not, without weights; remove them (fstmap)", line)
