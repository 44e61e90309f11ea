"""Readers of automata: regular expressions, tasks, files of machines, words."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.formats import dot, jflap, json_file, openfst
from fsa2lrnn.symbols import encode
from tests.fuzz.base import Reader
from tests.fuzz.readers.hostile import of_json, of_text

DATA = Path(__file__).parents[2] / "fsa2lrnn" / "automata" / "formats" / "data"


REGEX = (
    "a", "b", "é", "(", ")", "|", "*", "+", "?", "&", "^", ".", "{2}", "{1000}", "{,3}", "{2,}", "{99,100}", "{0}",
    "[a-z]", "[^a]", "[\x00-\U0010ffff]", "[a-", "\\d", "\\W", "\\", "()", "a{50}", "(a|b)*", "ε", "$", " ", "(a?){99}",
)  # fmt: skip
TASKS = (
    "sum_mod", "group", "random_dfa", "dyck", "contains", "shift_register", "all_maps", "mod_arith", "S3", "S9",
    "Z99999", "A5xS4", "(", ")", ",", "=", "5", "-1", "1e9", "99999", "10**9", "True", "None", "'a'", '"', "completion",
    "sink", "__class__", "lambda: 0", "[1]*9", "0.5",
)  # fmt: skip
DOT = (
    "digraph", "graph", "strict", "subgraph", "node", "edge", "{", "}", "[", "]", "->", "--", ";", ",", "=", ":", "+",
    '"', "<", ">", "<b>", "&lt;", "//", "/*", "*/", "#", "label=", 'label="a,b"', "shape=doublecircle", "a->b->c",
    "fsa2lrnn=1", "{a b c}->{d e f}", "__start0", "q0", "\\n", "é", "peripheries=2", 'letters="[1]"', "edge[label=x]",
)  # fmt: skip
JFLAP = (
    "<state id='9'>", "</state>", "<transition>", "</transition>", "<from>0</from>", "<to>1</to>", "<read>a</read>",
    "<read/>", "<initial/>", "<final/>", "<type>mealy</type>", "<type>pda</type>", "<!DOCTYPE x>", "<!ENTITY a 'b'>",
    "&amp;", "&#0;", "&x;", "<![CDATA[", "]]>", "<!--", "<structure>", "<a>", "<?xml version='1.1'?>", "x='",
    "<transout>",
)  # fmt: skip
OPENFST = (
    "0 1 a\n", "1\n", "0 1 a b 0.5\n", "\t", " ", "\n", "Infinity", "1e9", "<eps>", "0", "-1", "99999999999999999999",
    "0 0 é\n", "a b c d e f\n", "5 5\n", "0 1 0 0\n",
)  # fmt: skip


KISS2 = (
    ".i 1\n", ".o 1\n", ".p 2\n", ".s 2\n", ".r b\n", ".e\n", ".i 99\n", ".i 16\n", "0 a b 1\n", "- * a -\n",
    "1 a * 0\n", "-" * 16 + " * a 1\n", "-", "*", "01", " ", "\n", "#", ".", "999999999",
)  # fmt: skip


@cache
def regexes() -> list[bytes]:
    texts = ["(ab)*", "a|b&c^d", "(a|b)*a(a|b){3}", "[a-c]+x?\\d{2,3}", "abc", "(a?){9}", "[^a]b.", "a" * 500, "()|a"]
    return [text.encode() for text in texts]


@cache
def tasks() -> list[bytes]:
    return [name.encode() for name in zoo.ZOO]


@cache
def machines() -> list[MooreMachine]:
    odd = MooreMachine([[1, 0], [0, 0]], [("x", 1), None], alphabet=[0, ("long", True)], labels=["p", frozenset({1})])
    return [zoo.parity(), zoo.ab_star(), zoo.group("S3"), zoo.even_pair(2), odd]


def written(*endings: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(DATA.iterdir()) if path.name.endswith(endings)]


@cache
def dots() -> list[bytes]:
    return [*written(".dot"), *(dot.to_dot(machine).encode() for machine in machines())]


@cache
def jflaps() -> list[bytes]:
    return [*written(".jff"), *(jflap.to_jflap(machine).encode() for machine in machines()[:3])]


@cache
def openfsts() -> list[bytes]:
    return [*written(".fst.txt"), *(openfst.to_openfst(machine)[0].encode() for machine in machines()[:2])]


@cache
def json_machines() -> list[bytes]:
    return [json_file.to_json(machine).encode() for machine in machines()]


@cache
def kiss2s() -> list[bytes]:
    return [b".i 2\n.o 1\n.p 4\n.s 2\n.r b\n0- a b 1\n1- a a 0\n-0 b b 1\n-1 b a 0\n.e\n", b".i 1\n.o 2\n- * a 01\n"]


@cache
def tables() -> list[bytes]:
    return [b"<eps>\t0\na\t1\nb\t2\n", b"-\t0\nb 7\na 3\nc 12\n"]


def hostile_task(rng: random.Random) -> bytes:
    """A task that there is with any arguments, or one of the examples changed."""
    if rng.random() < 0.4:
        return of_text(tasks, TASKS)(rng)
    numbers = ["0", "1", "2", "-1", "7", "40", "500", "9999", "124999", "250001", "10" * 9, "1.5", "True", "", "'a'"]
    words = [rng.choice([*numbers, *numbers, *TASKS, "letters=ab", "generators=all", "S8", "Z500xZ500", "A5xA5xA5"])
             for _ in range(rng.randrange(5))]  # fmt: skip
    return f"{rng.choice(list(zoo.TASKS))}({', '.join(words)})".encode()


def read_machine(path: Path) -> object:
    return MooreMachine.from_source(path)


def read_source(prefix: str) -> Callable[[Path], object]:
    return lambda path: MooreMachine.from_source(prefix + path.read_bytes().decode(errors="replace"))


def read_table(path: Path) -> object:
    text = path.read_bytes().decode(errors="replace")
    return openfst.from_openfst("0 1 a\n1 0 b\n0\n", isymbols=text)


def read_word(path: Path) -> object:
    text = path.read_bytes().decode(errors="replace")
    return encode(text, ("10", "one", True) if "one" in text else ("0", "1", "+"))


def words() -> list[bytes]:
    return [b"0 1 +", b"10 one 10"]


READERS: dict[str, Reader] = {
    "regex": Reader(regexes, of_text(regexes, REGEX), read_source("regex:")),
    "task": Reader(tasks, hostile_task, read_source("task:")),
    "DOT": Reader(dots, of_text(dots, DOT), read_machine, ".dot"),
    "JFLAP": Reader(jflaps, of_text(jflaps, JFLAP), read_machine, ".jff"),
    "OpenFst": Reader(openfsts, of_text(openfsts, OPENFST), read_machine, ".fst.txt"),
    "KISS2": Reader(kiss2s, of_text(kiss2s, KISS2), read_machine, ".kiss2"),
    "OpenFst symbols": Reader(tables, of_text(tables, OPENFST), read_table),
    "JSON machine": Reader(json_machines, of_json(json_machines), read_machine, ".json"),
    "word": Reader(words, of_text(words, ("0", "10", "one", " ")), read_word),
}
