"""Four words do what they say, and no shorter ones do."""

import itertools
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import represent
from fsa2lrnn.families.four_words import shortest_four_words
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.families.verdicts import Witness
from fsa2lrnn.testing.strategies import machines

LONGEST = 4  # of the words that brute force tries


def run(machine, q, word):
    for a in word:
        q = int(machine.delta[a, q])
    return q


def refutes(machine, form, prefix, u, other):
    """Whether the words are a certificate, by the definition."""
    agree = len(u) == len(other) if form.letters == "input-independent" else sorted(u) == sorted(other)
    s, q = machine.start, run(machine, machine.start, prefix)
    return agree and (run(machine, s, u) == run(machine, s, other)) != (run(machine, q, u) == run(machine, q, other))


def shortest(machine, form, longest=LONGEST):
    """(|u|, |p|) of the shortest certificate with words of at most `longest` letters, every pair of words tried."""
    letters = range(len(machine.alphabet))
    prefixes = {}
    for length in range(machine.n_states):
        for prefix in itertools.product(letters, repeat=length):
            prefixes.setdefault(run(machine, machine.start, prefix), prefix)
    for length in range(1, longest + 1):
        words = list(itertools.product(letters, repeat=length))
        found = [
            len(prefix)
            for prefix in prefixes.values()
            if any(refutes(machine, form, prefix, u, other) for u, other in itertools.combinations(words, 2))
        ]
        if found:
            return length, min(found)
    return None


@settings(max_examples=40)
@given(machines(4, 2), st.sampled_from(["lti", "diagonal[0,1]"]))
def test_the_words_satisfy_their_definition_and_none_are_shorter(machine, family):
    minimal, form = machine.minimise(), FORCED[family]
    words, least = shortest_four_words(form, minimal.delta, minimal.start), shortest(minimal, form)
    if words is None:
        assert least is None
        return
    assert refutes(minimal, form, words.prefix, words.u, words.other)
    ends = [run(minimal, minimal.start, word) for word in (words.u, words.other)]
    assert words.differ_at_start == (ends[0] != ends[1])
    assert (len(words.u), len(words.prefix)) == least or (least is None and len(words.u) > LONGEST)


@given(machines(5, 3), st.sampled_from(list(FORCED)))
def test_a_machine_with_a_witness_has_no_such_words(machine, family):
    if isinstance(represent(machine, family, short_words=False), Witness):
        minimal = machine.minimise()
        assert shortest_four_words(FORCED[family], minimal.delta, minimal.start) is None


@pytest.mark.parametrize(
    ("source", "family", "words"),
    [
        ("subtraction(5)", "lti", ("0", "0", "1")),
        ("subtraction(5)", "diagonal[0,1]", ("-", "-0", "0-")),
        ("mod_arith(5)", "diagonal-complex", ("+", "0+", "+0")),
        ("even_pair(5)", "lti-diagonalisable", ("0", "1", "2")),
        ("ab_star", "diagonal[-1,1]", ("b", "ab", "ba")),
        ("flip_flop", "lti", ("s", "s", ".")),
    ],
)
def test_the_words_of_the_zoo(source, family, words):
    verdict = represent(zoo.from_task(source), family)
    assert tuple("".join(word) for word in verdict.four_words) == words


@pytest.mark.parametrize(
    ("source", "family"),
    [
        ("parity", "lti"),
        ("parity", "diagonal[0,1]"),
        ("group(S3)", "lti"),
        ("group(S3)", "diagonal-complex"),
        ("shift_register(3)", "diagonal-complex"),
    ],
)
def test_no_such_words_need_exist_where_no_layer_represents_a_machine(source, family):
    verdict = represent(zoo.from_task(source), family)
    assert verdict.four_words is None
    assert "no four words were found" in verdict.explain()


def test_the_words_of_the_paper_are_among_them():
    machine, form = zoo.subtraction(5).minimise(), FORCED["diagonal[0,1]"]
    prefix, u, other = ([machine.alphabet.index(letter) for letter in word] for word in ("0-", "0-1", "1-0"))
    assert refutes(machine, form, prefix, u, other)
    assert refutes(machine, FORCED["lti"], prefix, u, other)


@pytest.mark.parametrize(("family", "budget"), [("lti", "MAX_NODES"), ("diagonal[0,1]", "MAX_ENTRIES")])
def test_a_search_that_runs_out_of_budget_says_nothing(family, budget, monkeypatch):
    machine = zoo.mod_arith(5).minimise()
    assert shortest_four_words(FORCED[family], machine.delta, machine.start) is not None
    monkeypatch.setattr(import_module("fsa2lrnn.families.four_words"), budget, 10)
    assert shortest_four_words(FORCED[family], machine.delta, machine.start) is None
