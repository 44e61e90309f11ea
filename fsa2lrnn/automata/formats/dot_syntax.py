"""Parse Graphviz's DOT language into nodes and edges with their lines, as far as a graph of states needs it.

pydot is not used for three measured reasons: it takes 24 s for 20,000 edges (this parser 0.4 s), it ends in a
RecursionError on nested subgraphs, and it keeps no line numbers. The tests compare the two on texts that both can read.

The parser supports quoted, HTML-like and numeric names, `+` between strings, comments of the three kinds, ports, edge
chains, edges between subgraphs, subgraph scopes, and default attributes, which apply to nodes first named later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NoReturn

from fsa2lrnn.automata.formats.graph import Problem
from fsa2lrnn.errors import InvalidMachine

MAX_NESTING = 50  # subgraphs within subgraphs; drawings of automata have two or three, Python's stack a thousand
MAX_DEFAULTS = 200  # every node or edge named later holds a copy; Graphviz itself knows some 180 attributes
MAX_EDGES = 50_000  # beyond one for two characters: `{a b …} -> {c d …}` means all pairs, so few can mean far too many

_TOKEN = re.compile(
    r"""
      (?P<space>   \s+ | //[^\n]* )
    | (?P<hash>    \#[^\n]* )
    | (?P<comment> /\* )
    | (?P<string>  "[^"\\]*+(?:\\.[^"\\]*+)*+" )
    | (?P<id>      -?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?) | [A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]* )
    | (?P<arrow>   -> | -- )
    | (?P<sign>    [{}\[\];,=:+] )
    | (?P<html>    < )
    """,
    re.VERBOSE | re.DOTALL,
)
_HTML_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_HTML_TAG = re.compile(r"<[^<>]*>")
_ANGLE = re.compile("[<>]")
_NAMES = ("id", "string", "html")


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the text; `kind` is "id", "string", "html", "arrow", "end", or the sign itself."""

    kind: str
    text: str
    line: int


@dataclass(slots=True)
class Node:
    """A node with its attributes, defaults included, and the line that first names it."""

    name: str
    attributes: dict[str, str]
    line: int


@dataclass(slots=True)
class Arc:
    """An edge with its attributes, defaults included; edges of one statement share them."""

    tail: str
    head: str
    attributes: dict[str, str]
    line: int


@dataclass
class DotGraph:
    """A parsed graph: its nodes in the order of first mention, its edges in order, and its top-level attributes."""

    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    edges: list[Arc] = field(default_factory=list[Arc])
    attributes: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class _Scope:
    """The default attributes within one pair of braces, and the nodes named there.

    Edges without attributes of their own share the dictionary `edge`, which is therefore replaced and never changed.
    """

    node: dict[str, str] = field(default_factory=dict[str, str])
    edge: dict[str, str] = field(default_factory=dict[str, str])
    members: dict[str, None] = field(default_factory=dict[str, None])


def parse(text: str, origin: str = "the DOT text") -> DotGraph:
    r"""Return the graph of a DOT text, which must contain exactly one directed graph.

    Raises `InvalidMachine` naming the line and the fault.

    >>> graph = parse('digraph { node [shape=circle]; a -> b [label="x"] }')
    >>> graph.nodes["b"].attributes, graph.edges[0].attributes
    ({'shape': 'circle'}, {'label': 'x'})
    """
    return _Parser(text, origin).graph()


class _Parser:
    """A recursive-descent parser with one method per rule of the grammar."""

    def __init__(self, text: str, origin: str) -> None:
        self.origin = origin
        self.max_edges = MAX_EDGES + len(text) // 2
        self.tokens = self._tokenise(text)
        self.token = next(self.tokens)
        self.result = DotGraph()

    def graph(self) -> DotGraph:
        self._takes_word("strict")
        if self._at_word("graph"):
            self._fail("an undirected graph has no transitions: write digraph, and -> in place of --")
        if not self._takes_word("digraph"):
            self._fail(f"expected 'digraph', found {self._found()}: is this a Graphviz file?")
        self._takes(*_NAMES)
        self._expect("{")
        self._statements(_Scope(), 0)
        if not self._at("end"):
            if self._at_word("digraph") or self._at_word("strict"):
                self._fail("another graph begins here: keep one graph a file")
            self._fail(f"{self._found()} follows the end of the graph: keep one graph a file")
        return self.result

    def _statements(self, scope: _Scope, depth: int) -> None:
        """Parse statements up to and including the closing brace."""
        while not self._takes("}"):
            if self._at("end"):
                self._fail("the text ends inside the graph: a closing } is missing, or the file is truncated")
            if not self._takes(";"):
                self._statement(scope, depth)

    def _statement(self, scope: _Scope, depth: int) -> None:
        """Read one statement: defaults, a graph attribute, a node, or a chain of edges between nodes and subgraphs.

        An edge between subgraphs stands for one edge from each node of the first to each of the second, as in Graphviz,
        so the number of edges is bounded before they are made.
        """
        for keyword in ("node", "edge", "graph"):
            if self._takes_word(keyword):
                self._set_defaults(keyword, scope, depth)
                return
        is_name, line = self._at_node(), self.token.line
        if is_name:
            name = self._identifier()
            if self._takes("="):
                self._graph_attributes(depth)[name] = self._identifier()
                return
            ends = [self._mention(line, name, scope)]
        else:
            ends = [self._subgraph(scope, depth)]
        while self._at("arrow"):
            if self.token.text == "--":
                self._fail("'--' is an edge without direction: write ->")
            self._advance()
            if self._at_node():
                ends.append(self._mention(self.token.line, self._identifier(), scope))
            else:
                ends.append(self._subgraph(scope, depth))
        attributes = self._attribute_lists()  # of the node if it stands alone, else of the edges between all ends
        if is_name and len(ends) == 1:
            self.result.nodes[ends[0][0]].attributes.update(attributes)
        shared = {**scope.edge, **attributes} if attributes else scope.edge
        for tails, heads in pairwise(ends):
            if len(self.result.edges) + len(tails) * len(heads) > self.max_edges:
                self._fail(f"more than {self.max_edges:,} edges: minimise the automaton with the tool that wrote it")
            self.result.edges += [Arc(tail, head, shared, line) for tail in tails for head in heads]

    def _set_defaults(self, keyword: str, scope: _Scope, depth: int) -> None:
        of_nodes = scope.node if keyword == "node" else self._graph_attributes(depth)
        defaults = {**(scope.edge if keyword == "edge" else of_nodes), **self._attribute_lists()}
        if len(defaults) > MAX_DEFAULTS:
            self._fail(f"more than {MAX_DEFAULTS} default attributes: remove those that only colour the drawing")
        if keyword == "edge":
            scope.edge = defaults
        else:
            of_nodes.update(defaults)

    def _mention(self, line: int, name: str, scope: _Scope) -> list[str]:
        """Add a node unless it exists, with the scope's default attributes, skip its ports, and return [name]."""
        if name not in self.result.nodes:
            self.result.nodes[name] = Node(name, dict(scope.node), line)
        scope.members[name] = None
        for _ in range(2):
            if self._takes(":"):
                self._identifier()
        return [name]

    def _subgraph(self, scope: _Scope, depth: int) -> list[str]:
        """Read a subgraph, whose node defaults end with it; return the names of the nodes that occur inside."""
        if self._takes_word("subgraph"):
            self._takes(*_NAMES)
        if depth == MAX_NESTING:
            self._fail(f"subgraphs are nested deeper than {MAX_NESTING}: flatten them")
        self._expect("{")
        inner = _Scope(dict(scope.node), scope.edge)
        self._statements(inner, depth + 1)
        scope.members.update(inner.members)
        return list(inner.members)

    def _graph_attributes(self, depth: int) -> dict[str, str]:
        """Return the dictionary for attributes of the graph; those of subgraphs affect only layout and are dropped."""
        return self.result.attributes if depth == 0 else {}

    def _attribute_lists(self) -> dict[str, str]:
        attributes: dict[str, str] = {}
        while self._takes("["):
            while not self._takes("]"):
                name = self._identifier()
                attributes[name] = self._identifier() if self._takes("=") else "true"
                self._takes(",", ";")
        return attributes

    def _identifier(self) -> str:
        if not self._at(*_NAMES):
            self._fail(f"expected a name or value, found {self._found()}: put text with other characters in quotes")
        pieces, is_string = [self.token.text], self._at("string")
        self._advance()
        while is_string and self._takes("+"):
            pieces.append(self.token.text)
            self._expect("string")
        return "".join(pieces)

    def _at(self, *kinds: str) -> bool:
        return self.token.kind in kinds

    def _at_word(self, word: str) -> bool:
        return self._at("id") and self.token.text.lower() == word

    def _at_node(self) -> bool:
        return self._at(*_NAMES) and not self._at_word("subgraph")

    def _takes(self, *kinds: str) -> bool:
        return self._at(*kinds) and self._advance()

    def _takes_word(self, word: str) -> bool:
        return self._at_word(word) and self._advance()

    def _expect(self, kind: str) -> None:
        if not self._takes(kind):
            self._fail(f"expected {kind!r}, found {self._found()}")

    def _advance(self) -> bool:
        self.token = next(self.tokens)
        return True

    def _found(self) -> str:
        return "the end of the text" if self._at("end") else repr(self.token.text[:40])

    def _fail(self, text: str, line: int | None = None) -> NoReturn:
        raise InvalidMachine(f"{self.origin}: {Problem(text, line or self.token.line)}")

    def _tokenise(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a DOT text, without white space and comments, then `end` without end."""
        position, line = 0, 1
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                if text[position] == '"':
                    self._fail("a quoted string is not closed: add the quotation mark", line)
                self._fail(f"unexpected character {text[position]!r}: put text with other characters in quotes", line)
            # The pattern finds only the beginning of a block comment or an HTML-like label.
            end, kind, piece = match.end(), str(match.lastgroup), match.group()
            if kind == "comment":
                end = text.find("*/", end) + 2
                if end == 1:
                    self._fail("a comment /* is not closed: add */", line)
            elif kind == "hash":
                if text[text.rfind("\n", 0, position) + 1 : position].strip():
                    self._fail("'#' starts a comment only at the beginning of a line: put colours in quotes", line)
            elif kind == "html":
                end = self._html_end(text, position, line)
                yield Token("html", _HTML_TAG.sub("", _HTML_BREAK.sub(r"\\n", text[position + 1 : end - 1])), line)
            elif kind == "string":
                yield Token("string", _unquoted(piece), line)
            elif kind != "space":
                yield Token(piece if kind == "sign" else kind, piece, line)
            line += text.count("\n", position, end)
            position = end
        while True:
            yield Token("end", "", line)

    def _html_end(self, text: str, position: int, line: int) -> int:
        depth = 0
        for bracket in _ANGLE.finditer(text, position):
            depth += 1 if bracket.group() == "<" else -1
            if depth == 0:
                return bracket.end()
        return self._fail("an HTML-like label < is not closed: add >", line)


def _unquoted(quoted: str) -> str:
    """Return the value of a quoted string; DOT itself escapes only the quotation mark and the end of a line."""
    if "\\" not in quoted:
        return quoted[1:-1]
    return re.sub(r"\\(\r?\n|.)", lambda m: {'"': '"', "\n": "", "\r\n": ""}.get(m[1], m[0]), quoted[1:-1], flags=re.S)
