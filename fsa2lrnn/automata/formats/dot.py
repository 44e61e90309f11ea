"""Read and write automata as Graphviz DOT, drawn by hand, by learning tools or by this library.

The elements of a graph are read as follows:

start      a state with the attribute `start=true` or `initial=true`, or the target of an arrow from a node that is not
           a state. No edge enters that node; it is named "" or `__start…` (AALpy, LearnLib), is drawn invisibly
           (`shape=point`, `style=invis`, `shape=none` without label), or is named "start" or the like, without labels.
accepting  `shape=doublecircle` (or another double shape), `peripheries=2`, `accepting=true`, `final=true`.
letters    the edge label, at commas or line breaks several letters, but not at commas in brackets, as in `f(x,y)`; a
           comma itself is written between two others (`a,,,b`) or alone. `ε`, `λ`, `eps`, `epsilon` and the like mean
           no letter. All letters are strings. Probabilities, operations on stacks, formulas and sets are refused.
outputs    Mealy: each edge label is `letter / output`. Moore: each state label is `name / output` or, as in records,
           `name|output`, or the output alone where labels repeat. A graph with accepting states is an acceptor, even
           if state names contain slashes, unless its labels are all records in braces. The output of a Mealy machine
           extends over commas up to the next `letter / output`.

`to_dot` writes the same picture with the exact symbols next to each label, so that `from_dot` restores the machine.
"""

from __future__ import annotations

import html
import json
import re
import warnings
from collections.abc import Hashable, Iterator
from typing import Any, get_args

from fsa2lrnn import symbols
from fsa2lrnn.automata.formats import dot_syntax
from fsa2lrnn.automata.formats.dot_syntax import Arc, DotGraph, Node
from fsa2lrnn.automata.formats.foreign import foreign
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
from fsa2lrnn.automata.formats.json_file import label_to_json
from fsa2lrnn.automata.language import Completion
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, SourceWarning, UnsupportedFormat
from fsa2lrnn.reading import parse_json, read

MAX_TRANSITIONS = 50_000  # beyond one per character

_START_REMEDY = 'add an arrow from an invisible node, as in  __start0 [shape=none label=""]; __start0 -> q0'
_START_WORDS = frozenset({"", "start", "begin", "init", "initial", "entry"})
_TRUE = frozenset({"true", "1", "yes"})
_PLAIN_SHAPES = frozenset({"none", "plain", "plaintext", "point"})
_OURS = "fsa2lrnn"  # the graph attribute that marks exact symbols next to the labels


def from_dot(
    text: str,
    completion: Completion | None = None,
    kind: Kind | None = None,
    separator: str | None = ",",
    origin: str = "the DOT text",
) -> MooreMachine:
    """Return the machine of a DOT text, read as this module documents.

    Args:
        completion: the treatment of missing transitions (`graph.to_machine`).
        kind: "acceptor", "moore" or "mealy", if the text is ambiguous or a slash is part of a letter or a name; with
            it, labels that look like probabilities or formulas are letters.
        separator: the separator of the letters of one label; None if a comma can be part of a letter.
        origin: the name of the file, for messages.

    Raises:
        InvalidMachine: with every problem of the text and its line.
        UnsupportedFormat: for another `kind`, probabilities, operations on stacks, modal edges, formulas and sets.

    >>> from_dot('digraph { q1 [shape=doublecircle] "" -> q0; q0 -> q1 [label="a,b"]; q1 -> q1 [label=a] }').labels
    ('q1', 'q0', 'sink')
    """
    if kind is not None and kind not in get_args(Kind):
        raise UnsupportedFormat(f"kind {kind!r} is not known: choose one of {', '.join(get_args(Kind))}")
    drawn = dot_syntax.parse(text, origin)
    if _OURS in drawn.attributes:
        return to_machine(_exact_graph(drawn, text, origin), completion)
    # Nodes that only mark the start are not states; labels then determine the kind of machine.
    arrows = _start_arrows(drawn)
    nodes = [node for node in drawn.nodes.values() if node.name not in arrows]
    edges = [edge for edge in drawn.edges if edge.tail not in arrows]
    starts = [(edge.head, edge.line) for edge in drawn.edges if edge.tail in arrows]
    starts += [(node.name, node.line) for node in nodes if _is_true(node, "start", "initial", "is_start")]
    is_mealy = kind == "mealy" or (kind is None and not any(map(_is_accepting, nodes)))
    letters = {label: list(_letters(label, separator, is_mealy)) for label in dict.fromkeys(_labels(edges))}
    labels = [letters[label] for label in _labels(edges)]
    _check_transitions(sum(map(len, labels)), text, origin)
    if kind is None:
        if re.search(r"\b(?:Inf|Fin)\([0-9]", drawn.attributes.get("label", "")):
            raise UnsupportedFormat(
                f"{origin}: the label of the graph is an acceptance condition for infinite words: automata of finite "
                "words are read; pass kind='acceptor' if this is one"
            )
        kind = _kind(nodes, labels)
        _check_meaning(edges, labels, kind, origin)
    has_names = kind != "moore" or any(map(_name_and_output, nodes))
    if kind == "moore" and (marked := [node.name for node in nodes if _is_accepting(node)]):
        warnings.warn(
            f"{origin}: state {marked[0]!r} is drawn as accepting, but states have outputs, which are read; "
            "kind='acceptor' reads the marks",
            SourceWarning,
            stacklevel=2,
        )
    problems = Problems(origin)
    for edge in (edge for edge, letters in zip(edges, labels, strict=True) if "" in letters):
        remedy = "give it label=…, or label=ε if it reads none"
        problems.add(f"the edge {edge.tail} -> {edge.head} has no letter: {remedy}", edge.line)
    if kind == "mealy" and (marked := [node.name for node in nodes if _is_accepting(node)]):
        problems.add(
            f"state {marked[0]!r} is drawn as accepting, but the edges carry outputs: draw one of the two, or pass "
            "kind='acceptor' if the slashes are part of the letters"
        )
    graph = LabelledGraph(
        kind,
        tuple(_state(node, kind, has_names) for node in nodes),
        tuple(dict(starts).items()),
        tuple(_edge(edge, part, kind) for edge, parts in zip(edges, labels, strict=True) for part in parts if part),
        origin=origin,
        start_remedy=_START_REMEDY,
        problems=problems.all,
    )
    return to_machine(graph, completion)


def to_dot(machine: MooreMachine) -> str:
    r"""Return DOT text that draws a machine, with parallel edges as one, and from which `from_dot` restores it.

    Raises `UnsupportedFormat` for symbols that JSON cannot represent (`symbols.to_json`).

    >>> m = MooreMachine([[1, 0]], [True, False], alphabet="a")
    >>> from_dot(to_dot(m)) == m
    True
    """
    lines = [
        "digraph {",
        "  // letters=, output= and state= say exactly what the labels show; fsa2lrnn reads these, not the labels",
        f"  {_OURS}=1",
        f"  alphabet={_json([symbols.to_json(letter) for letter in machine.alphabet])}",
        "  rankdir=LR",
        '  __start0 [shape=none label=""]',
    ]
    for q, output in enumerate(machine.outputs):
        caption = symbols.show_label(q if machine.labels is None else machine.labels[q])
        shape = "doublecircle" if machine.is_acceptor and output else "circle"
        if not machine.is_acceptor:
            caption += f" / {symbols.show(output)}"
        name = "" if machine.labels is None else f" state={_json(label_to_json(machine.labels[q]))}"
        lines.append(f"  s{q} [shape={shape} label={_quoted(caption)} output={_json(symbols.to_json(output))}{name}]")
    lines.append(f"  __start0 -> s{machine.start}")
    for q in range(machine.n_states):
        by_target: dict[int, list[Hashable]] = {}
        for a, letter in enumerate(machine.alphabet):
            by_target.setdefault(int(machine.delta[a, q]), []).append(letter)
        for target, letters in by_target.items():
            label = _quoted(",".join(str(letter) for letter in letters))
            exact = _json([symbols.to_json(letter) for letter in letters])
            lines.append(f"  s{q} -> s{target} [label={label} letters={exact}]")
    return "\n".join([*lines, "}", ""])


def _exact_graph(drawn: DotGraph, text: str, origin: str) -> LabelledGraph:
    """Return the graph of a text that `to_dot` wrote; raise `InvalidMachine` if exact attributes are missing."""
    problems = Problems(origin)

    def exact(attributes: dict[str, str], name: str, line: int | None) -> Any:
        text, is_list = attributes.get(name), name in ("letters", "alphabet")
        try:
            value = parse_json(text or "", name)
            if is_list:
                return [symbols.from_json(item) for item in read(list[Any], value, name)]
            return symbols.from_json(value)
        except UnsupportedFormat:
            fault = f"{name}= is missing" if text is None else f"{name}={text[:80]} is not JSON as to_dot writes it"
            problems.add(f"{fault}: correct it, or remove {_OURS}=1 from the graph to have the labels read", line)
            return [] if is_list else None

    states: list[State] = []
    for node in drawn.nodes.values():
        if node.name != "__start0":
            output = exact(node.attributes, "output", node.line)
            name = exact(node.attributes, "state", node.line) if "state" in node.attributes else node.name
            states.append(State(node.name, name, False, output, node.line))
    # Arcs of one statement share their attributes, which are read once.
    starts = [(arc.head, arc.line) for arc in drawn.edges if arc.tail == "__start0"]
    arcs = [arc for arc in drawn.edges if arc.tail != "__start0"]
    letters = {id(arc.attributes): exact(arc.attributes, "letters", arc.line) for arc in _one_per_statement(arcs)}
    _check_transitions(sum(len(letters[id(arc.attributes)]) for arc in arcs), text, origin)
    edges = [Edge(arc.tail, letter, arc.head, line=arc.line) for arc in arcs for letter in letters[id(arc.attributes)]]
    alphabet = exact(drawn.attributes, "alphabet", None)
    problems.check()
    return LabelledGraph("moore", tuple(states), tuple(starts), tuple(edges), tuple(alphabet), origin, _START_REMEDY)


def _one_per_statement(arcs: list[Arc]) -> list[Arc]:
    """Return the first arc of each statement; the arcs of a statement share their attributes."""
    return list({id(arc.attributes): arc for arc in reversed(arcs)}.values())


def _labels(arcs: list[Arc]) -> list[str]:
    labels = {id(arc.attributes): _label(arc) for arc in _one_per_statement(arcs)}
    return [labels[id(arc.attributes)] for arc in arcs]


def _check_transitions(n: int, text: str, origin: str) -> None:
    """Raise `BudgetExceeded` for too many transitions: an edge between sets gives every pair of nodes every label."""
    if n > (most := MAX_TRANSITIONS + len(text)):
        raise BudgetExceeded(
            f"{origin}: the labels of its edges stand for {n:,} transitions, more than {most:,}: minimise the "
            "automaton with the tool that wrote it"
        )


def _start_arrows(drawn: DotGraph) -> set[str]:
    """Return the names of the nodes that are not states, but only tails of the arrow to the start."""
    entered = {edge.head for edge in drawn.edges}
    leaving: dict[str, list[str]] = {}
    for edge, label in zip(drawn.edges, _labels(drawn.edges), strict=True):
        leaving.setdefault(edge.tail, []).append(label.strip().lower())
    tails = {name for name, node in drawn.nodes.items() if "invis" in node.attributes.get("style", "")}
    for name, labels in leaving.items():
        attributes = drawn.nodes[name].attributes
        shape = attributes.get("shape", "").lower()
        is_plain = shape in _PLAIN_SHAPES
        is_hidden = name == "" or name.startswith("__start") or shape == "point"
        is_word = (is_plain or name.lower() in _START_WORDS) and all(label in _START_WORDS for label in labels)
        if is_hidden or is_word or (is_plain and attributes.get("label") == ""):
            tails.add(name)
    return tails - entered


def _check_meaning(edges: list[Arc], labels: list[list[str]], kind: Kind, origin: str) -> None:
    """Raise `UnsupportedFormat` if labels are no letters, or edges are modal, invisible or not drawn as arrows."""
    texts = list(dict.fromkeys(text for letters in labels for text in letters))
    letters = texts if kind != "mealy" else [(_with_output(text) or (text, ""))[0] for text in texts]
    if (refused := foreign(letters, texts if kind == "mealy" else ())) is not None:
        label, construct = refused
        edge = next(edge for edge, texts in zip(edges, labels, strict=True) if any(label in text for text in texts))
        raise UnsupportedFormat(
            f"{origin}: line {edge.line}: the label {label[:80]!r} is {construct}, and a machine has letters alone: "
            f"write each letter out, or pass kind={kind!r} if it is one letter"
        )
    for edge in edges:
        if "resets" in edge.attributes:
            raise UnsupportedFormat(f"{origin}: line {edge.line}: an edge resets timers, which a machine does not have")
        if (direction := edge.attributes.get("dir", "forward").lower()) != "forward":
            raise UnsupportedFormat(
                f"{origin}: line {edge.line}: an edge with dir={direction} is not drawn as an arrow from "
                f"{edge.tail!r} to {edge.head!r}: write each transition as an edge that points forward, without dir"
            )
        if "invis" in edge.attributes.get("style", ""):
            raise UnsupportedFormat(
                f"{origin}: line {edge.line}: an edge with a letter is drawn invisibly (style=invis): remove it "
                "if it is layout alone, or its style if it is a transition"
            )
        if (modality := edge.attributes.get("modality", "must").lower()) != "must":
            raise UnsupportedFormat(
                f"{origin}: line {edge.line}: an edge of modality {modality!r}: a machine has each transition or has "
                "it not; keep the edges that are meant, without that attribute"
            )
    dashed = [
        edge
        for edge, texts in zip(edges, labels, strict=True)
        if "dashed" in edge.attributes.get("style", "") and not all(map(is_epsilon, texts))
    ]
    if dashed and len(dashed) < len(edges):
        warnings.warn(
            f"{origin}: line {dashed[0].line}: dashed edges are read like the others, not as transitions that may be "
            "missing",
            SourceWarning,
            stacklevel=2,
        )


def _kind(nodes: list[Node], labels: list[list[str]]) -> Kind:
    """Return the kind of machine that the labels indicate, as DOT does not declare it.

    `a/x` on every edge means Mealy, `{q|x}` on every node Moore, a double circle an acceptor. After these, weaker signs
    count: some edge with an output, then node labels that repeat or combine a name with an output.
    """
    if labels and all(letters and all(_with_output(letter) for letter in letters) for letters in labels):
        return "mealy"
    if nodes and all(re.fullmatch(r"\{[^|]*\|.*\}", _label(node).strip(), re.DOTALL) for node in nodes):
        return "moore"
    if any(_is_accepting(node) for node in nodes):
        return "acceptor"
    if any(_with_output(letter) for letters in labels for letter in letters):
        return "mealy"
    captions = [_label(node).strip() for node in nodes]
    # Labels that repeat, and are no names, are outputs.
    repeat = all("label" in node.attributes for node in nodes) and all(captions) and len(set(captions)) < len(captions)
    return "moore" if repeat or any(_name_and_output(node) for node in nodes) else "acceptor"


def _state(node: Node, kind: Kind, has_names: bool) -> State:
    if not has_names:
        return State(node.name, node.name, False, _label(node).strip(), node.line)
    if kind == "moore":
        name, output = _name_and_output(node) or (_name(node), ABSENT)
        return State(node.name, name, False, output, node.line)
    return State(node.name, _name(node), _is_accepting(node) and kind == "acceptor", ABSENT, node.line)


def _edge(edge: Arc, text: str, kind: Kind) -> Edge:
    letter, output = (_with_output(text) or (text, ABSENT)) if kind == "mealy" else (text, ABSENT)
    return Edge(edge.tail, EPSILON if is_epsilon(letter) else letter, edge.head, output, edge.line)


def _label(item: Arc | Node) -> str:
    r"""Return the label as Graphviz draws it, with escapes such as `\n` and HTML entities resolved."""
    name = item.name if isinstance(item, Node) else ""
    escapes = {"n": "\n", "l": "\n", "r": "\n", "N": name}
    text = item.attributes.get("label", r"\N" if isinstance(item, Node) else "")
    return html.unescape(re.sub(r"\\(.)", lambda m: escapes.get(m[1], m[1]), text))


def _name(node: Node) -> str:
    return _label(node).strip() or node.name


def _name_and_output(node: Node) -> tuple[str, str] | None:
    label = _label(node).strip()
    is_record = "record" in node.attributes.get("shape", "").lower() or (label[:1], label[-1:]) == ("{", "}")
    name, bar, output = (label.strip("{}") if is_record else label).partition("|")
    if bar and (is_record or (name.strip() and output.strip())):
        return name.strip(), output.strip()
    return _with_output(label)


def _with_output(label: str) -> tuple[str, str] | None:
    """Return the two parts of `letter / output`, or None for text of another form, such as a single slash."""
    left, _, right = label.partition(" / ") if " / " in label else label.partition("/")
    return (left.strip(), right.strip()) if left.strip() and right.strip() else None


def _letters(label: str, separator: str | None, is_mealy: bool) -> Iterator[str]:
    """Yield the letters of an edge label, with an empty string for an empty piece, or their pairs with an output."""
    if label and not label.strip():
        yield label
        return
    for line in label.strip("\n").split("\n"):
        pieces = [line] if separator is None else _split(line, separator)
        if is_mealy and separator is not None:  # an output extends up to the next pair
            slash, joined = " / " if " / " in line else "/", list[str]()
            for piece in pieces:
                if joined and _with_output(joined[-1]) and slash not in piece:
                    joined[-1] += separator + piece
                else:
                    joined.append(piece)
            pieces = joined
        k = 0
        while k < len(pieces):
            if separator is not None and pieces[k : k + 2] == ["", ""]:
                yield separator
                k += 1
            else:
                yield pieces[k].strip()
            k += 1


def _split(line: str, separator: str) -> list[str]:
    """Return the pieces between separators; a piece with an open bracket, not alone, extends to the closing one."""
    groups: list[list[str]] = []
    unclosed = 0
    for piece in line.split(separator):
        depth = sum(map(piece.count, "([{")) - sum(map(piece.count, ")]}"))
        if unclosed > 0:
            groups[-1].append(piece)
            unclosed += depth
        else:
            groups.append([piece])
            unclosed = depth if len(piece.strip()) > 1 else 0
    return [separator.join(group) for group in groups]


def _is_accepting(node: Node) -> bool:
    return (
        node.attributes.get("shape", "").lower().startswith("double")
        or node.attributes.get("peripheries") == "2"
        or _is_true(node, "accepting", "final", "is_final")
    )


def _is_true(node: Node, *names: str) -> bool:
    return any(node.attributes.get(name, "").lower() in _TRUE for name in names)


def _quoted(text: str) -> str:
    escaped = html.escape(text, quote=False).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'.encode("utf-8", "backslashreplace").decode("utf-8")


def _json(value: object) -> str:
    r"""Return JSON in a DOT string, which drops a backslash before a quotation mark or another backslash."""
    text = re.sub(r'\\(["\\])', lambda m: f"\\u{ord(m[1]):04x}", json.dumps(value))
    return '"' + text.replace('"', '\\"') + '"'
