"""Readers of automata: regular expressions, tasks, files of machines, words."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.formats import dot, jflap, json_file, openfst
from fsa2lrnn.symbols import encode
from tests.fuzz.mutate import Hostile, Reader, Valid, given, of_json, of_text

DATA = Path(__file__).parents[2] / "fsa2lrnn" / "automata" / "formats" / "data"


TASK_WORDS = (
    "sum_mod", "group", "random_dfa", "dyck", "S3", "S8", "S9", "Z99999", "A5xS4", "A5xA5xA5", "Z500xZ500", "(", ")",
    ",", "=", "5", "-1", "1e9", "99999", "10**9", "0", "1", "2", "7", "40", "500", "124999", "250001", "10" * 9, "1.5",
    "True", "None", "", "'a'", '"', "completion", "sink", "__class__", "letters=ab", "generators=all", "lambda: 0",
)  # fmt: skip
REGEXES = given(
    "(ab)*", "a|b&c^d", "(a|b)*a(a|b){3}", "[a-c]+x?\\d{2,3}", "abc", "(a?){9}", "[^a]b.", "a" * 500, "()|a"
)
TASKS_THERE = given(*zoo.ZOO)
KISS2S = given(".i 2\n.o 1\n.p 4\n.s 2\n.r b\n0- a b 1\n1- a a 0\n-0 b b 1\n-1 b a 0\n.e\n", ".i 1\n.o 2\n- * a 01\n")
SYMBOLS = given("<eps>\t0\na\t1\nb\t2\n", "-\t0\nb 7\na 3\nc 12\n")
WORDS = given("0 1 +", "10 one 10")


@cache
def machines() -> list[MooreMachine]:
    odd = MooreMachine([[1, 0], [0, 0]], [("x", 1), None], alphabet=[0, ("long", True)], labels=["p", frozenset({1})])
    return [zoo.parity(), zoo.ab_star(), zoo.group("S3"), zoo.even_pair(2), odd]


@cache
def files(ending: str) -> list[bytes]:
    """Files that other programs wrote, and our own."""
    write, count = {
        ".dot": (dot.to_dot, 5), ".jff": (jflap.to_jflap, 3), ".json": (json_file.to_json, 5),
        ".fst.txt": (lambda machine: openfst.to_openfst(machine)[0], 2),
    }[ending]  # fmt: skip
    others = [path.read_bytes() for path in sorted(DATA.iterdir()) if path.name.endswith(ending) and ending != ".json"]
    return [*others, *(write(machine).encode() for machine in machines()[:count])]


def hostile_task(rng: random.Random) -> bytes:
    """A task that there is with any arguments, or one of the examples changed."""
    if rng.random() < 0.4:
        return of_text(TASKS_THERE)(rng)
    words = [rng.choice(TASK_WORDS) for _ in range(rng.randrange(5))]
    return f"{rng.choice(list(zoo.TASKS))}({', '.join(words)})".encode()


def text_of(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def read_word(path: Path) -> object:
    return encode(text := text_of(path), ("10", "one", True) if "one" in text else ("0", "1", "+"))


def of_file(ending: str, hostile: Callable[[Valid], Hostile]) -> Reader:
    return Reader(partial(files, ending), hostile(partial(files, ending)), MooreMachine.from_source, ending)


READERS: dict[str, Reader] = {
    "regex": Reader(REGEXES, of_text(REGEXES), lambda path: MooreMachine.from_source("regex:" + text_of(path))),
    "task": Reader(TASKS_THERE, hostile_task, lambda path: MooreMachine.from_source("task:" + text_of(path))),
    "DOT": of_file(".dot", of_text),
    "JFLAP": of_file(".jff", of_text),
    "OpenFst": of_file(".fst.txt", of_text),
    "KISS2": Reader(KISS2S, of_text(KISS2S), MooreMachine.from_source, ".kiss2"),
    "OpenFst symbols": Reader(
        SYMBOLS, of_text(SYMBOLS), lambda path: openfst.from_openfst("0 1 a\n1 0 b\n0\n", isymbols=text_of(path))
    ),
    "JSON machine": of_file(".json", of_json),
    "word": Reader(WORDS, of_text(WORDS), read_word),
}
