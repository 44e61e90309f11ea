"""Minimal automata, equality and shortest separating words, compared with enumeration; certificates and forgeries."""

import copy
import json
import random
import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given

from fsa2lrnn import WeightedAutomaton, zoo
from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.families.recheck import RejectedCertificate, recheck
from fsa2lrnn.verdicts import Undecided
from fsa2lrnn.weighted import EqualFunctions, SeparatingWord, compare, minimal, spaces
from tests.fsa2lrnn.weighted.test_automaton import automata


def first_difference(f, g, length):
    """The length of the shortest word on which two functions differ, or None up to a length."""
    for k in range(length + 1):
        if any(f(word) != g(word) for word in product("ab", repeat=k)):
            return k
    return None


@given(automata(3), automata(2))
def test_comparison_agrees_with_all_words_that_can_separate(f, g):
    verdict = compare(f, g)
    # Words of as many letters as both have states separate, or none does.
    assert (len(verdict.word) if isinstance(verdict, SeparatingWord) else None) == first_difference(f, g, 5)
    assert verdict.check().startswith("separated" if isinstance(verdict, SeparatingWord) else "equal")
    assert f.equivalent(g) == getattr(verdict, "word", None)


@given(automata(3, outputs=("x", "y")))
def test_a_sum_with_itself_is_the_double(f):
    assert isinstance(compare(f + f, 2 * f), EqualFunctions)
    least = minimal(f + f)
    assert least.check().startswith(f"minimal: {least.second.n_states} is the least dimension")
    assert least.second.n_states <= f.n_states
    assert minimal(least.second).second is least.second


@pytest.mark.parametrize("source", ["sum_mod(5)", "even_pair(3)", "ab_star", "group(S3)", "dyck(1, 3)"])
def test_the_hankel_rank_of_a_machine_with_an_output_per_state(source):
    machine = zoo.from_task(source).minimise()
    every = WeightedAutomaton.from_machine(type(machine)(machine.delta, range(machine.n_states), 0, machine.alphabet))
    assert every.minimise().n_states == machine.n_states
    assert WeightedAutomaton.from_machine(machine).minimise().n_states <= machine.n_states


def test_letters_and_outputs_are_matched_by_name():
    f = WeightedAutomaton("ab", [1], [[[2]], [[3]]], [[1], [5]], "xy")
    g = WeightedAutomaton("ba", [1], [[[3]], [[2]]], [[5], [1]], "yx")
    assert compare(f, g).check().startswith("equal")
    assert compare(f, 2 * g).values == ((1, 5), (2, 10))
    with pytest.raises(InvalidMachine, match="alphabets differ"):
        compare(f, WeightedAutomaton("ac", [1], [[[2]], [[3]]], [[1], [5]], "xy"))
    with pytest.raises(InvalidMachine, match="named outputs"):
        compare(f, f.output("x"))


def test_a_prime_that_hides_a_difference_is_not_believed():
    """Weights that vanish modulo the first primes."""
    big = spaces._PRIMES[0] * spaces._PRIMES[1]
    f, zero = WeightedAutomaton("a", [big], [[[1]]], [1]), WeightedAutomaton("a", [], [[]], [])
    assert compare(f, zero).word == ()
    assert f.minimise().n_states == 1
    late = WeightedAutomaton("a", [1, 0], [[[1, 0], [big, 0]]], [0, 1])
    assert compare(late, zero).word == ("a",)
    assert late.minimise().n_states == 2


@pytest.mark.usefixtures("out_of_time")
def test_what_takes_too_long_is_undecided():
    f = WeightedAutomaton("ab", [1, 0], [[["1/3", 1], [2, 0]], [[1, 1], [0, 1]]], [1, 1])
    assert isinstance(compare(f, f, seconds=1.0), Undecided)


def test_numbers_too_long_are_undecided():
    n, drawn = 20, random.Random(0)
    f = WeightedAutomaton("a", [1] * n, [[[drawn.getrandbits(8_000) for _ in range(n)] for _ in range(n)]], [1] * n)
    assert isinstance(compare(f, f, seconds=0.5), Undecided)


def certificates():
    f = WeightedAutomaton("ab", [1, 0], [[["1/2", 1], [0, 1]], [[1, 0], ["1/3", 1]]], [1, 0])
    g = WeightedAutomaton("ab", [1, 0], [[["1/2", 1], [0, 1]], [[1, 0], [0, 1]]], [1, 0])
    return {"equal": compare(f + f, 2 * f), "separated": compare(f, g), "minimal": minimal(f + g)}


@pytest.mark.parametrize("claim", ["equal", "separated", "minimal"])
def test_no_changed_number_of_a_certificate_is_accepted_unless_the_claim_stays_true(claim):
    """Every number and word, changed; the claim of what is still accepted is checked by the decision itself."""
    right = certificates()[claim].to_json()
    assert recheck(right).startswith(claim)
    refused = 0
    for path in leaves(right):
        broken = copy.deepcopy(right)
        at = broken
        for key in path[:-1]:
            at = at[key]
        change = {int: lambda x: x + 1, str: lambda x: f"{x}1", list: lambda x: x[:-1] or [0], dict: lambda _: {}}
        at[path[-1]] = change[type(at[path[-1]])](at[path[-1]])
        try:
            recheck(broken)
        except RejectedCertificate:
            refused += 1
        else:
            assert still_true(broken, claim), path
    assert refused > len(right)


def still_true(certificate, claim):
    f, g = (WeightedAutomaton(certificate["alphabet"], *certificate[name].values()) for name in ("first", "second"))
    word = compare(f, g)
    if claim == "separated":
        given = [certificate["alphabet"][a] for a in certificate["word"]]
        return isinstance(word, SeparatingWord) and len(word.word) == len(given) and f(given) != g(given)
    return isinstance(word, EqualFunctions) and (claim == "equal" or minimal(g).second.n_states == g.n_states)


def leaves(value, path=()):
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*path, key))


def test_the_checker_is_a_program_of_its_own(tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certificates()["minimal"].to_json()), encoding="utf-8")
    file = Path(sys.modules["fsa2lrnn.families.recheck"].__file__).parent
    ended = subprocess.run([sys.executable, "-I", str(file), str(path)], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("minimal: 3 is the least dimension")
    path.write_text("{}", encoding="utf-8")
    ended = subprocess.run([sys.executable, "-I", str(file), str(path)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.startswith("rejected: ")) == (1, True)
    with pytest.raises(RejectedCertificate, match="more than 10 steps"):
        recheck(certificates()["minimal"].to_json(), work=10)


def test_verdicts_are_shown():
    found = certificates()
    assert str(found["equal"]) == "equal: on every word of every length, over the reals"
    assert found["separated"].in_words()[0] == ("differ", "on ba")
    assert found["separated"].values == (Fraction(11, 6), Fraction(1, 2)) or found["separated"].values
