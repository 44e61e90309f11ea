"""Read and write JFLAP files (`.jff`) of type fa, moore and mealy, as JFLAP 4 to 7 write them.

A `<read>` of several characters in an fa is a word, as in JFLAP, except in files that `to_jflap` wrote, where it is one
letter; an empty one, `ε` and the like are epsilon. All symbols are strings; an empty output is the output "". The
outputs of a Moore machine are read from its states; those that JFLAP repeats at transitions must agree with them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from io import StringIO
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.saxutils import escape, quoteattr
from xml.sax.xmlreader import AttributesImpl

from defusedxml.common import DefusedXmlException
from defusedxml.sax import make_parser

from fsa2lrnn.automata.formats.graph import (
    ABSENT,
    EPSILON,
    Edge,
    Kind,
    LabelledGraph,
    Problems,
    State,
    is_epsilon,
    to_machine,
)
from fsa2lrnn.automata.formats.python_objects import text_letters
from fsa2lrnn.automata.language import Completion
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat

MAX_STATES = 100_000  # beyond which labels of several letters are not read, one state a letter
MAX_NESTING = 50  # elements within elements; JFLAP writes four deep
_READ = ("from", "to", "read", "transout", "initial", "final", "output")  # others are about the picture

_KINDS: dict[str, Kind] = {"fa": "acceptor", "moore": "moore", "mealy": "mealy"}
_OURS = "<!--Created with fsa2lrnn.-->"
_NOT_IN_XML = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass(slots=True)
class _Item:
    """A state or transition: its XML attributes, the texts of its child elements and its line."""

    attributes: dict[str, str]
    line: int
    texts: dict[str, str] = field(default_factory=dict[str, str])


class _JflapReader(ContentHandler):
    """A reader that collects states and transitions at any depth, because JFLAP's versions nest them differently."""

    def __init__(self, origin: str) -> None:
        super().__init__()
        self.origin, self.problems = origin, Problems(origin)
        self.kind: str | None = None
        self.states: list[_Item] = []
        self.transitions: list[_Item] = []
        self._item: _Item | None = None
        self._path: list[str] = []
        self._seen = set[str]()
        self._text: list[str] = []

    @property
    def line(self) -> int:
        return self._locator.getLineNumber() or 1  # type: ignore[attr-defined]

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        if not self._path and name != "structure":
            raise UnsupportedFormat(
                f"{self.origin}: line {self.line}: the outermost element is <{name[:40]}>, a JFLAP file has <structure>"
            )
        self._path.append(name)
        if len(self._path) > MAX_NESTING:
            raise BudgetExceeded(
                f"{self.origin}: line {self.line}: elements are nested deeper than {MAX_NESTING}, JFLAP nests four: "
                "is this a JFLAP file?"
            )
        if self._path[-2:-1] and self._path[-2] in _READ:
            self.problems.add(f"<{name[:40]}> stands within <{self._path[-2]}>: remove it", self.line)
        if name in ("type", "automaton"):
            if name in self._seen:
                self.problems.add(f"a second <{name}>: keep one automaton in a file", self.line)
            self._seen.add(name)
        self._text.clear()
        if name in ("state", "transition"):
            self._item = _Item(dict(attrs.items()), self.line)
            (self.states if name == "state" else self.transitions).append(self._item)

    def characters(self, content: str) -> None:
        self._text.append(content)

    def endElement(self, name: str) -> None:
        self._path.pop()
        text = "".join(self._text)
        self._text.clear()
        # A single blank is a letter; white space around other text is layout.
        text = text.strip() or (" " if text == " " else "")
        if name in ("state", "transition"):
            self._item = None
        elif self._item is not None:
            if name in _READ and name in self._item.texts:
                self.problems.add(f"a second <{name}>: keep one", self.line)
            if name in ("initial", "final") and text:
                self.problems.add(f"<{name}> marks the state whatever it holds: remove {text[:40]!r}, or it", self.line)
            self._item.texts[name] = text
        elif name == "type":
            self.kind = text


def from_jflap(
    text: str,
    completion: Completion | None = None,
    whole_labels: bool | None = None,
    origin: str = "the JFLAP text",
) -> MooreMachine:
    """Return the machine of a `.jff` text, with letters in natural order.

    `graph.to_machine` numbers the states and treats missing transitions by `completion`.

    Args:
        completion: the treatment of missing transitions.
        whole_labels: whether a label of several characters is one letter, not a word; by default in our own files.
        origin: the name of the file, for messages.

    Raises:
        InvalidMachine: if the XML is broken, declares entities, or describes no machine; with every problem and line.
        UnsupportedFormat: for JFLAP files of other kinds, such as pushdown automata and grammars.
        BudgetExceeded: if elements are nested too deeply.
    """
    reader = _JflapReader(origin)
    parser = make_parser()
    parser.forbid_dtd = True
    parser.setContentHandler(reader)
    try:
        parser.parse(StringIO(text))
    except SAXParseException as fault:
        raise InvalidMachine(
            f"{origin}: line {fault.getLineNumber()}: the XML is broken here ({fault.getMessage()}): is the file "
            "truncated? save it again in JFLAP"
        ) from None
    except DefusedXmlException:
        raise InvalidMachine(
            f"{origin}: line {reader.line}: the file declares a document type or entities, which can expand without "
            "end and which JFLAP never writes: remove the declaration"
        ) from None
    if reader.kind not in _KINDS:
        found = "no <type>" if reader.kind is None else f"type {reader.kind!r}"
        raise UnsupportedFormat(
            f"{origin} is a JFLAP file with {found}: those of finite automata (fa), moore and mealy machines are read"
        )
    is_ours = _OURS in text[:200]
    return to_machine(_graph(reader, is_ours if whole_labels is None else whole_labels, is_ours), completion)


def to_jflap(machine: MooreMachine) -> str:
    """Return the text of a `.jff` file: type `fa` for an acceptor, else `moore`, with the states placed on a circle.

    Letters and outputs are written as text, so symbols that are not strings are read back as strings. Raises
    `UnsupportedFormat` if two symbols have the same text, or one has control characters or white space at its ends.

    >>> m = MooreMachine([[1, 0], [0, 1]], [True, False], alphabet="ab")
    >>> from_jflap(to_jflap(m)) == m
    True
    """
    letters = [_checked(letter) for letter in text_letters(machine, "JFLAP")]
    kind = "fa" if machine.is_acceptor else "moore"
    outputs = {output: _checked(str(output)) for output in machine.outputs}
    if kind == "moore" and len(set(outputs.values())) < len(outputs):
        raise UnsupportedFormat("two outputs are written alike, and JFLAP holds text alone: rename one, or write JSON")
    lines = ["<structure>", f"\t<type>{kind}</type>", "\t<automaton>", "\t\t<!--The list of states.-->"]
    for q, output in enumerate(machine.outputs):
        name = f"q{q}" if machine.labels is None else _NOT_IN_XML.sub("?", str(machine.labels[q]))
        angle, radius = 2 * math.pi * q / machine.n_states, 40 + 20 * machine.n_states  # the states form a circle
        lines += [
            f'\t\t<state id="{q}" name={quoteattr(name)}>',
            f"\t\t\t<x>{radius * (1 - math.cos(angle)) + 60:.1f}</x>",
            f"\t\t\t<y>{radius * (1 - math.sin(angle)) + 60:.1f}</y>",
            *(["\t\t\t<initial/>"] if q == machine.start else []),
            *(["\t\t\t<final/>"] if kind == "fa" and output else []),
            *([f"\t\t\t<output>{escape(outputs[output])}</output>"] if kind == "moore" else []),
            "\t\t</state>",
        ]
    lines.append("\t\t<!--The list of transitions.-->")
    for a, letter in enumerate(letters):
        for q in range(machine.n_states):
            target = int(machine.delta[a, q])
            output = escape(outputs[machine.outputs[target]])
            lines += [
                "\t\t<transition>",
                f"\t\t\t<from>{q}</from>",
                f"\t\t\t<to>{target}</to>",
                f"\t\t\t<read>{escape(letter)}</read>",
                *([f"\t\t\t<transout>{output}</transout>"] if kind == "moore" else []),
                "\t\t</transition>",
            ]
    lines += ["\t</automaton>", "</structure>"]
    header = '<?xml version="1.0" encoding="UTF-8" standalone="no"?>' + _OURS
    return header + "&#13;\n".join(lines)


def _graph(reader: _JflapReader, whole_labels: bool, is_ours: bool) -> LabelledGraph:
    """Return the graph of the elements read from a JFLAP file.

    JFLAP reads a label of several characters as a word. An acceptor gets a chain of new states for it, with keys
    (number of the transition, position), which no id of the file equals.
    """
    kind = _KINDS[reader.kind or ""]
    problems = reader.problems
    states: list[State] = []
    starts: list[tuple[str, int]] = []
    for item in reader.states:
        if (key := item.attributes.get("id")) is None:
            problems.add("a <state> has no id: give it one", item.line)
            continue
        output = item.texts.get("output", ABSENT)
        states.append(State(key, item.attributes.get("name") or key, "final" in item.texts, output, item.line))
        if "initial" in item.texts:
            starts.append((key, item.line))
    if len(starts) > 1:
        problems.add(f"{len(starts)} states are <initial/>, JFLAP allows one: unmark the others", starts[1][1])
    edges: list[Edge] = []
    output_of = {state.key: state.output for state in states}
    for number, item in enumerate(reader.transitions):
        if missing := [name for name in ("from", "to", "read") if name not in item.texts]:
            problems.add(f"a <transition> has no <{missing[0]}>: add it", item.line)
            continue
        label, source, target = item.texts["read"], item.texts["from"], item.texts["to"]
        output = item.texts.get("transout", ABSENT)
        if kind == "moore" and output in (ABSENT, output_of.get(target, output)):
            output = ABSENT  # JFLAP repeats the output of the target
        if not label or (is_epsilon(label) and not is_ours):
            edges.append(Edge(source, EPSILON, target, output, item.line))
            continue
        if len(label) > 1 and not whole_labels:
            remedy = "pass whole_labels=True if it is one letter, or give each transition one character"
            if kind != "acceptor":
                problems.add(f"JFLAP reads the label {label[:40]!r} as a word: {remedy}", item.line)
            if re.fullmatch(r"\[.-.\]", label):
                problems.add(f"JFLAP 7 reads {label!r} as a range of letters: give each letter a transition", item.line)
            if len(states) + len(label) > MAX_STATES:
                raise BudgetExceeded(
                    f"{reader.origin}: line {item.line}: labels of several letters stand for more than {MAX_STATES:,} "
                    f"states: {remedy}"
                )
            between = [(number, k) for k in range(1, len(label))]  # keys that no file can have
            states += [State(key, f"{source[:40]} {label[: min(key[1], 40)]}", line=item.line) for key in between]
            path = [source, *between, target]
            edges += [
                Edge(p, letter, q, output, item.line) for p, letter, q in zip(path, label, path[1:], strict=False)
            ]
            continue
        edges.append(Edge(source, label, target, output, item.line))
    return LabelledGraph(
        kind,
        tuple(states),
        tuple(starts[:1]),
        tuple(edges),
        origin=reader.origin,
        start_remedy="in JFLAP choose Initial for one state, in the file add <initial/> to it",
        problems=problems.all,
    )


def _checked(text: str) -> str:
    if _NOT_IN_XML.search(text) or (text != text.strip() and text != " "):
        raise UnsupportedFormat(
            f"symbol {text!r} has control characters or white space at its ends, which a JFLAP file does not keep: "
            "rename it, or write JSON"
        )
    return text
