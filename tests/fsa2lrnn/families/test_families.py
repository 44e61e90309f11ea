"""Which family represents which machine (docs/theory.md §4)."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, product, zoo
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.families import FAMILIES, Impossibility, Witness, channels, represent
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.testing.strategies import machines, permutation_machines

LTI, LTI_DIAGONAL, SQUARE, CUBE, COMPLEX = FORCED  # also the columns of VERDICTS
# Dimension of the witness in each family, 0 for no.
VERDICTS = {
    "parity": (0, 0, 0, 1, 1), "sum_mod(3)": (0, 0, 0, 0, 2), "sum_mod(5)": (0, 0, 0, 0, 2),
    "flip_flop": (0, 0, 1, 1, 1), "length_mod(3)": (2, 2, 0, 0, 2), "shift_register(1)": (1, 1, 1, 1, 1),
    "shift_register(3)": (3, 0, 0, 0, 0), "even_pair(5)": (0, 0, 0, 0, 0), "mod_arith(5)": (0, 0, 0, 0, 0),
    "group(S3)": (0, 0, 0, 0, 0), "group(A5)": (0, 0, 0, 0, 0), "ab_star": (0, 0, 0, 0, 0),
    "subtraction(5)": (0, 0, 0, 0, 0),
}  # fmt: skip
SMALL = [name for name, facts in zoo.ZOO.items() if facts.n_states <= 12]


def dimension(machine, family):
    """Of the witness; 0 for an impossibility, None for a witness of one state's dimension 0."""
    verdict = represent(machine, family, short_words=False)
    return 0 if isinstance(verdict, Impossibility) else verdict.dimension or None


def possible(machine):
    return {family for family in FORCED if isinstance(represent(machine, family, short_words=False), Witness)}


@pytest.mark.parametrize("source", VERDICTS)
def test_the_verdicts_of_the_theory(source):
    machine = zoo.from_task(source)
    assert tuple(dimension(machine, family) for family in FORCED) == VERDICTS[source]


@pytest.mark.parametrize("source", SMALL)
@pytest.mark.parametrize("family", FORCED)
def test_every_answer_about_the_zoo_passes_its_check(source, family):
    verdict = represent(zoo.from_task(source), family)
    kind = "impossible: no" if isinstance(verdict, Impossibility) else "representable: one"
    assert verdict.check().startswith(f"{kind} {family} layer")
    assert verdict.explain()


@given(machines(5, 3), st.sampled_from(list(FORCED)))
def test_every_answer_about_a_random_machine_passes_its_check(machine, family):
    verdict = represent(machine, family, short_words=False)
    assert verdict.check()
    assert verdict.machine == machine.minimise()
    rank, room = verdict.obstruction
    assert 0 <= rank <= room == verdict.machine.n_states - 1
    assert isinstance(verdict, Impossibility) or verdict.dimension <= 2 * (room - rank)


@given(machines(5, 3), st.randoms(use_true_random=False))
def test_neither_the_numbers_of_states_nor_the_order_of_letters_matter(machine, rng):
    n, k = machine.n_states, len(machine.alphabet)
    states, letters = rng.sample(range(n), n), rng.sample(range(k), k)
    delta = [[0] * n for _ in range(k)]
    for a, q in itertools.product(range(k), range(n)):
        delta[a][states[q]] = states[machine.delta[letters[a], q]]
    outputs = [machine.outputs[states.index(q)] for q in range(n)]
    renamed = MooreMachine(delta, outputs, states[machine.start], [machine.alphabet[a] for a in letters])
    for family in FORCED:
        one, other = (represent(m, family, short_words=False) for m in (machine, renamed))
        assert (type(one), one.obstruction) == (type(other), other.obstruction)


@given(machines(5, 3))
def test_a_family_that_holds_another_can_do_what_that_can(machine):
    yes = possible(machine)
    for smaller, larger in [(SQUARE, CUBE), (CUBE, COMPLEX), (LTI_DIAGONAL, LTI), (LTI_DIAGONAL, COMPLEX)]:
        assert smaller not in yes or larger in yes
        ranks = [represent(machine, family, short_words=False).obstruction[0] for family in (smaller, larger)]
        assert ranks[0] >= ranks[1]


@given(machines(3, 2, alphabet="ab"), machines(3, 2, alphabet="ab"))
def test_two_machines_side_by_side_take_two_layers_side_by_side(a, b):
    assert possible(a) & possible(b) <= possible(product(a, b))


@given(machines(5, 3), st.data())
def test_a_letter_that_acts_as_another_changes_nothing(machine, data):
    twin = data.draw(st.integers(0, len(machine.alphabet) - 1))
    delta = [*machine.delta.tolist(), machine.delta[twin].tolist()]
    assert possible(MooreMachine(delta, machine.outputs, machine.start)) == possible(machine)


@given(permutation_machines(5, 2))
def test_a_group_is_diagonal_exactly_if_its_letters_commute(machine):
    minimal = machine.minimise()
    commute = all(
        (minimal.delta[a][minimal.delta[b]] == minimal.delta[b][minimal.delta[a]]).all()
        for a, b in itertools.combinations(range(len(minimal.alphabet)), 2)
    )
    yes = possible(machine)
    assert (COMPLEX in yes) == commute
    assert (SQUARE in yes) == (minimal.n_states == 1)


def test_a_cycle_of_astronomical_order_is_no_obstacle():
    lengths = (2, 3, 5, 7, 11, 13)
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    step = [start + (i + 1) % length for start, length in zip(starts, lengths, strict=True) for i in range(length)]
    jump = [(starts[(starts.index(q) + 1) % len(starts)] if q in starts else q) for q in range(sum(lengths))]
    verdict = represent(MooreMachine([step, jump], range(len(step))), COMPLEX, short_words=False)
    assert isinstance(verdict, Impossibility)
    verdict.check()
    powers = {repetitions for term in verdict.terms for word in term.words for _, repetitions in word}
    assert powers <= {1, 1 + math.prod(lengths), 1 + len(lengths)}


@pytest.mark.parametrize("family", ["transformer", "block(0)", "blocks(3)", "diagonal"])
def test_unknown_families_are_named(family):
    with pytest.raises(
        UnsupportedFormat, match=r"is not known: (did you mean .+\? )?choose one of lti, lti-diagonalisable"
    ):
        represent(zoo.parity(), family)


def test_a_root_of_unity_beyond_the_budget_is_said(monkeypatch):
    monkeypatch.setattr(channels, "MAX_ORDER", 4)
    assert represent(zoo.sum_mod(4), COMPLEX).check()
    with pytest.raises(BudgetExceeded, match=r"a root of unity of order 5, more than 4: the family does represent"):
        represent(zoo.sum_mod(5), COMPLEX)


def test_families_are_found_by_names_of_layers_too():
    assert represent(zoo.flip_flop(), "mamba").family == "diagonal[0,1]"
    assert represent(zoo.group("S3"), "deltaproduct").answer == "yes"
    assert represent(zoo.flip_flop(), "Mamba2").family == "diagonal[0,1]"
    assert "mamba" not in FAMILIES
    with pytest.raises(UnsupportedFormat, match="slstm is described by no family: slstm trains"):
        represent(zoo.parity(), "slstm")
