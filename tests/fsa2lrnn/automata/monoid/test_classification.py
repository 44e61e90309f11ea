"""Every fact against its definition, every refutation against its witness, and what is known of the zoo."""

import json
import math
import operator
import signal
import time
from collections import Counter
from contextlib import suppress
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.automata.monoid import Classification, classify
from fsa2lrnn.deadline import Deadline, check_current, limited
from fsa2lrnn.errors import OutOfTime, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas, machines, permutation_machines

FACTS = ("group", "commutative", "aperiodic", "two_groups", "solvable", "r_trivial", "j_trivial")
compiling = settings(deadline=None)


@st.composite
def ordered_machines(draw, max_states: int = 5, max_letters: int = 2) -> MooreMachine:
    """Machines whose letters lead to states of at least the same number: R-trivial ones."""
    n = draw(st.integers(1, max_states))
    rows = [[draw(st.integers(q, n - 1)) for q in range(n)] for _ in range(draw(st.integers(1, max_letters)))]
    return MooreMachine(rows, range(n))


@st.composite
def shifting_machines(draw) -> MooreMachine:
    """Machines that hold the last two letters, some states merged or redirected: near to definite ones."""
    table = np.array([[0, 2, 0, 2], [1, 3, 1, 3]])
    for _ in range(draw(st.integers(0, 2))):
        table[draw(st.integers(0, 1)), draw(st.integers(0, 3))] = draw(st.integers(0, 3))
    return MooreMachine(table, draw(st.lists(st.integers(0, 3), min_size=4, max_size=4)))


def agree(machine: MooreMachine, brute, check_witness) -> Classification:
    c, by_definition = classify(machine), brute(machine)
    assert c.monoid_size.value == len(by_definition.monoid)
    for name in FACTS:
        expected = getattr(by_definition, name)()
        assert getattr(c, name).value is expected, name
        assert (getattr(c, name).witness is None) == expected, name
        if not expected:
            check_witness(c, name)
    return c


@pytest.mark.long
def test_every_fact_of_every_machine_with_three_states_and_two_letters(brute, check_witness):
    rows = list(product(range(3), repeat=3))
    counts: Counter = Counter()
    for first, second in product(rows, rows):
        if first <= second:
            c = agree(MooreMachine([first, second], range(3)), brute, check_witness)
            counts.update(name for name in FACTS if c.facts[name].value)
            counts["all"] += 1
    assert counts["all"] == 378
    assert all(10 < counts[name] < 370 for name in FACTS if name != "solvable"), counts


@pytest.mark.parametrize(
    "kind",
    [
        machines(max_states=4, max_letters=2) | dfas(max_states=4, max_letters=2),
        ordered_machines() | shifting_machines(),
        permutation_machines(max_states=4, max_letters=2),
    ],
    ids=["any", "with structure", "groups"],
)
@compiling
@given(data=st.data())
def test_every_fact_of_machines(brute, check_witness, kind, data):
    agree(data.draw(kind), brute, check_witness)


@pytest.mark.parametrize("source", zoo.ZOO)
def test_the_kinds_of_the_zoo_and_what_facts_imply(source, check_witness):
    c = classify(zoo.from_task(source))
    assert c.kind == zoo.ZOO[source].kind
    assert c.machine.n_states == zoo.ZOO[source].n_states
    for name in FACTS:
        fact = c.facts[name]
        assert fact.value is not None
        assert (fact.witness is None) == fact.value
        if not fact.value and name != "solvable":
            check_witness(c, name)
    assert json.loads(json.dumps(c.to_json())) == c.to_json()
    value = {name: fact.value for name, fact in c.facts.items()}
    assert value["r_trivial"] or not value["j_trivial"]
    assert value["aperiodic"] or not value["r_trivial"]
    assert value["two_groups"] or not value["aperiodic"]
    assert value["solvable"] or not value["two_groups"]


@compiling
@given(st.data())
def test_names_of_states_and_unreachable_ones_do_not_matter(data):
    m = data.draw(machines(max_states=5, max_letters=2))
    order = data.draw(st.permutations(range(m.n_states)))
    place = np.argsort(order)
    other = MooreMachine(np.array(order)[m.delta[:, place]], [m.outputs[q] for q in place], order[m.start], m.alphabet)
    assert classify(m) == classify(other)
    padded = MooreMachine(
        np.concatenate([m.delta, np.zeros((len(m.alphabet), 1), int)], axis=1), [*m.outputs, 0], m.start, m.alphabet
    )
    assert classify(m) == classify(padded)


def test_a_capped_monoid_is_said_to_be_and_facts_are_told():
    c = classify(zoo.elevator(7), max_monoid=3)
    undecided = ["monoid_size", "aperiodic", "two_groups", "solvable"]
    assert [name for name, fact in c.facts.items() if fact.value is None] == undecided
    assert c.kind is None
    assert c.monoid_size.method == "capped at 3 elements of the monoid"
    assert c.aperiodic.method == "capped at 3 elements of the monoid and capped at 3 sets of states"
    assert c.solvable.method == "capped at 3 sets of states"
    assert ("aperiodic (star-free)", f"undecided ({c.aperiodic.method})") in c.explain()
    size = classify(zoo.elevator(4)).monoid_size.value
    assert classify(zoo.elevator(4), max_monoid=size).monoid_size.value == size
    assert classify(zoo.elevator(4), max_monoid=size - 1).monoid_size.value is None
    rows = dict(classify(zoo.shift_register(1)).explain())
    assert rows["states"] == "2 of the minimal machine"
    assert rows["elements of the monoid"] == "3 (by enumeration of the monoid, 3 elements)"
    assert rows["group"] == "no: '0' leads states 0 and 1 both to 0 (polynomial: whether every letter is a permutation)"
    machine = MooreMachine([[1, 0], [0, 0]], [False, True], alphabet=[("a", 1), None])
    facts = classify(machine).to_json()["facts"]
    assert (facts["aperiodic"]["witness"]["words"], facts["monoid_size"]["value"]) == ([[{"tuple": ["a", 1]}]], 4)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "10", None])
def test_a_limit_is_a_positive_whole_number(limit):
    with pytest.raises(UnsupportedFormat, match=f"max_monoid = {limit!r}, but every monoid has an identity: give a"):
        classify(zoo.parity(), max_monoid=limit)


def test_facts_without_time_are_undecided(monkeypatch):
    assert {fact.value for fact in classify(zoo.group("S5"), max_seconds=60).facts.values()} >= {True, False}
    monkeypatch.setattr(Deadline, "left", lambda self: 0.0 if math.isfinite(self.seconds) else math.inf)
    facts = classify(zoo.group("S5"), max_seconds=1.0).facts
    assert facts["monoid_size"].method == "unknown: time limit, after 1 elements of the monoid"
    # A group that is cut short is neither solvable nor too large.
    assert (facts["solvable"].value, facts["solvable"].method[:19]) == (None, "unknown: time limit")
    assert facts["group"].value is True  # a step without a loop


def test_steps_of_others_are_interrupted():
    def forever():
        while True:
            with suppress(ValueError):
                int("x")

    with pytest.raises(OutOfTime, match=r"limit of 0\.05 s has passed"), limited(Deadline(60)), limited(Deadline(0.05)):
        forever()
    assert signal.getsignal(signal.SIGVTALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_a_tick_within_numpy_is_not_replaced_by_another_error():
    """Comparing structured arrays calls Python code from C, which makes a `TypeError` of what that code raises."""
    rows = np.zeros(2, [("x", int), ("y", int)])

    def forever():
        while True:
            operator.ne(rows, rows[:])

    for _ in range(3):
        with pytest.raises(OutOfTime), limited(Deadline(0.01)):
            forever()


def test_no_tick_ends_a_compiler_half_way():
    """Numba's registries, half filled, make later calls raise "generator raised StopIteration"."""
    numba = {"__name__": "numba.core.base", "time": time, "ended": []}
    exec("def refresh():\n    while time.process_time() < end: pass\n    ended.append(True)", numba)
    numba["end"] = time.process_time() + 0.45

    def compiling_then_forever():
        numba["refresh"]()
        while True:
            pass

    with pytest.raises(OutOfTime, match=r"limit of 0\.01 s has passed"), limited(Deadline(0.01)):
        compiling_then_forever()
    assert numba["ended"] == [True]


def test_a_step_that_nothing_interrupts_is_not_begun_without_the_time_for_it():
    with limited(Deadline(5.0)):
        check_current("a short step", 1.0)
        with pytest.raises(OutOfTime, match="a long step: the limit of 5 s"):
            check_current("a long step", 60.0)
    check_current("a long step without a limit", 60.0)
