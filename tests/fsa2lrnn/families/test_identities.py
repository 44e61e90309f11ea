"""What the families force: identities between words that hold in every layer that there is."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import represent
from fsa2lrnn.families.identities import FORCED, cycle_lengths, exponent, identities, power_of
from fsa2lrnn.families.lanes import Affine
from fsa2lrnn.families.verdicts import Witness
from fsa2lrnn.testing.strategies import machines

maps = st.integers(1, 8).flatmap(lambda n: st.lists(st.integers(0, n - 1), min_size=n, max_size=n)).map(np.array)


def iterate(step, k):
    image = np.arange(len(step))
    for _ in range(k):
        image = step[image]
    return image


@given(maps)
def test_cycle_lengths_are_those_of_returning_states(step):
    n = len(step)
    returns = {q: [k for k in range(1, n + 1) if iterate(step, k)[q] == q] for q in range(n)}
    assert cycle_lengths(step) == sorted({ks[0] for ks in returns.values() if ks})


@given(maps, st.integers(0, 40))
def test_a_power_is_the_map_so_many_times(step, k):
    assert power_of(step, k).tolist() == iterate(step, k).tolist()


@given(maps)
def test_the_power_of_a_cycle_leaves_what_is_on_cycles(step):
    k = exponent("complex", step)
    on_cycles = iterate(step, len(step))
    assert power_of(step, k)[on_cycles].tolist() == step[on_cycles].tolist()
    assert (exponent("[0,1]", step), exponent("[-1,1]", step)) == (2, 3)


def test_powers_may_be_astronomical():
    assert cycle_lengths(np.array([1, 0, 3, 4, 2, 5])) == [1, 2, 3]
    step = np.roll(np.arange(7), -1)
    assert power_of(step, 10**40)[0] == 10**40 % 7


@given(machines(5, 3), st.sampled_from(list(FORCED)))
def test_the_maps_of_an_identity_are_those_of_its_words(machine, family):
    for identity in identities(FORCED[family], machine.delta):
        for word, image in zip(identity.words, identity.maps, strict=True):
            letters = [a for a, repetitions in word for _ in range(repetitions)]
            for q in range(machine.n_states):
                expected = q
                for a in letters:
                    expected = machine.delta[a, expected]
                assert image[q] == expected


@given(machines(4, 3), st.sampled_from(list(FORCED)))
def test_the_words_have_equal_linear_parts_in_every_witness(machine, family):
    witness = represent(machine, family, short_words=False)
    if not isinstance(witness, Witness):
        return
    delta = witness.machine.delta
    for identity in identities(FORCED[family], delta):
        if isinstance(witness.form, Affine):
            lengths = [sum(repetitions for _, repetitions in word) for word in identity.words]
            assert lengths[0] == lengths[1]
            continue
        for lane in witness.form:
            parts = []
            for word in identity.words:
                used = [(lane.exponents[a], repetitions) for a, repetitions in word]
                vanishes = any(k is None for k, _ in used)
                parts.append(None if vanishes else sum(k * repetitions for k, repetitions in used) % lane.order)
            assert parts[0] == parts[1]


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("lti", ["s=r", "s=."]),
        ("lti-diagonalisable", ["s=r", "s=.", "ss=s", "rr=r", "..=."]),
        ("diagonal[0,1]", ["sr=rs", "s.=.s", "r.=.r", "ss=s", "rr=r", "..=."]),
        ("diagonal[-1,1]", ["sr=rs", "s.=.s", "r.=.r", "sss=s", "rrr=r", "...=."]),
        ("diagonal-complex", ["sr=rs", "s.=.s", "r.=.r", "ss=s", "rr=r", "..=."]),
    ],
)
def test_the_identities_of_each_family(family, words):
    machine = zoo.flip_flop()
    found = {
        "=".join("".join(machine.alphabet[a] * repetitions for a, repetitions in word) for word in identity.words)
        for identity in identities(FORCED[family], machine.delta)
    }
    assert found == set(words)


def test_letters_that_act_alike_are_taken_once():
    delta = zoo.sum_mod(3).delta
    twice = np.concatenate([delta, delta])
    for family in FORCED.values():
        assert len(list(identities(family, twice))) == len(list(identities(family, delta)))
    alone = np.zeros((4, 2), np.int64)
    assert [len(list(identities(family, alone))) for family in FORCED.values()] == [0, 1, 1, 1, 1]


def test_a_cube_is_a_cycle_of_two_and_a_square_one_of_one():
    for length, power in itertools.product((1, 2), ("[0,1]", "[-1,1]")):
        step = np.roll(np.arange(length), -1)
        holds = (power_of(step, exponent(power, step)) == step).all()
        assert holds == (math.gcd(length, exponent(power, step) - 1) == length)
