"""Readers of weighted automata: our JSON, models and words of PAutomaC, and certificates."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from fsa2lrnn.families.recheck import RejectedCertificate, recheck
from fsa2lrnn.weighted import WeightedAutomaton, compare, minimal
from fsa2lrnn.weighted.pautomac import read_model, read_solution, read_words
from tests.fsa2lrnn.weighted.test_automaton import MODEL
from tests.fuzz.mutate import Reader, given, of_json, of_text


@cache
def automata() -> list[WeightedAutomaton]:
    half = WeightedAutomaton("ab", ["1/2", 0], [[[1, 0], [2, "-1/3"]], [[0.5, 0], [0, 1]]], [[1, 2], [0, 1]], (0, None))
    return [half, half.output(0), WeightedAutomaton([("x", 1)], [], [[]], [])]


def files() -> list[bytes]:
    return [w.to_json().encode() for w in automata()]


def certificates() -> list[bytes]:
    half, one, _ = automata()
    found = compare(half + half, 2 * half), compare(one, 2 * one), minimal(half + half)
    return [json.dumps(verdict.to_json()).encode() for verdict in found]


def check(path: Path) -> object:
    return recheck(json.loads(path.read_bytes()))


MODELS, WORDS = given(MODEL, MODEL.replace("0.25", "2.5E-1")), given("2 2\n2 0 1\n0\n", "1 9\n3 8 0 1\n")
SOLUTIONS, UNREAD = given("2\n0.5\n1e-2\n", "0\n"), (RejectedCertificate, ValueError, RecursionError)
READERS: dict[str, Reader] = {
    "weighted automaton": Reader(files, of_json(files), lambda path: WeightedAutomaton.from_json(path.read_bytes())),
    "PAutomaC model": Reader(MODELS, of_text(MODELS), read_model, "_model.txt"),
    "PAutomaC words": Reader(WORDS, of_text(WORDS), read_words),
    "PAutomaC solution": Reader(SOLUTIONS, of_text(SOLUTIONS), read_solution),
    "weighted certificate": Reader(certificates, of_json(certificates), check, refuses=UNREAD),
}
