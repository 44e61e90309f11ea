"""Which family represents which machine (docs/theory.md §4); what theory says of layers by name and in use."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, classify, product, zoo
from fsa2lrnn.errors import BudgetExceeded, NotExact, UnsupportedFormat
from fsa2lrnn.families import FAMILIES, Impossibility, Witness, channels, in_use, represent
from fsa2lrnn.families.identities import FORCED, Family
from fsa2lrnn.families.in_use import IN_USE, Decision, carried, contradictions, decide
from fsa2lrnn.families.named import NAMED, NO, NO_RECURRENCE, NOT_EXCLUDED, YES, say
from fsa2lrnn.lrnn.layers import LAYERS
from fsa2lrnn.testing.strategies import machines, permutation_machines

LTI, LTI_DIAGONAL, SQUARE, CUBE, COMPLEX = FORCED  # also the columns of VERDICTS
# Dimension of the witness in each family, 0 for no.
VERDICTS = {
    "parity": (0, 0, 0, 1, 1),
    "sum_mod(3)": (0, 0, 0, 0, 2),
    "sum_mod(5)": (0, 0, 0, 0, 2),
    "flip_flop": (0, 0, 1, 1, 1),
    "length_mod(3)": (2, 2, 0, 0, 2),
    "shift_register(1)": (1, 1, 1, 1, 1),
    "shift_register(3)": (3, 0, 0, 0, 0),
    "even_pair(5)": (0, 0, 0, 0, 0),
    "mod_arith(5)": (0, 0, 0, 0, 0),
    "group(S3)": (0, 0, 0, 0, 0),
    "group(A5)": (0, 0, 0, 0, 0),
    "ab_star": (0, 0, 0, 0, 0),
    "subtraction(5)": (0, 0, 0, 0, 0),
}
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


@pytest.mark.parametrize("family", ["transformer", "block(0)", "block", "blocks(3)", "diagonal"])
def test_unknown_families_are_named(family):
    with pytest.raises(UnsupportedFormat, match="is not known: choose one of lti, lti-diagonalisable"):
        represent(zoo.parity(), family)


def test_a_root_of_unity_beyond_the_budget_is_said(monkeypatch):
    monkeypatch.setattr(channels, "MAX_ORDER", 4)
    assert represent(zoo.sum_mod(4), COMPLEX).check()
    with pytest.raises(BudgetExceeded, match=r"a root of unity of order 5, more than 4: the family does represent"):
        represent(zoo.sum_mod(5), COMPLEX)


LAST_IS_1 = MooreMachine([[0, 0], [1, 1]], [0, 1])  # the state is the last letter


@pytest.mark.extra("baselines")
def test_names_are_those_of_layers_and_of_families():
    ours = {name for name in LAYERS if ":" not in name}
    hard = {"hard_channels", "hard_reflections"}  # several vectors per state come of training: T51 treats them
    selective = {name for name in ours if LAYERS[name].__module__.startswith("fsa2lrnn.extra.selective")}
    assert {name.partition(":")[0] for name in NAMED} == ours - hard - selective - {"householder", "index"}
    assert {named.family for named in NAMED.values()} - {None} <= set(FAMILIES)


@pytest.mark.extra("block_size")
@pytest.mark.parametrize(("task", "of_rwkv4"), [(zoo.sum_mod(5), NO), (zoo.even_pair(5), NOT_EXCLUDED)])
def test_the_papers_tasks_are_out_of_reach_of_what_does_not_depend_on_its_input(task, of_rwkv4):
    """A token shift tells the first letter from all others, so that a fixed recurrence can keep it."""
    answers = {name: say(task, name).answer for name in NAMED}
    assert {answers[name] for name in ("s4", "s4d", "s5", "lru", "vanilla", "vanilla:diagonal")} == {NO}
    assert answers["rwkv4"] == of_rwkv4
    assert answers["block"] == YES
    assert answers["liquid_s4:polyb"] == answers["liquid_s4:kb"] == NO_RECURRENCE


def test_an_impossibility_is_the_familys_own_and_unknown_names_are_refused():
    said = say(zoo.ab_star(), "lru")
    assert said.answer == NO
    said.verdict.check()
    assert said.to_json()["family"] == "lti-diagonalisable"
    with pytest.raises(UnsupportedFormat, match="layer 's6' is not known: choose one of s4, s4d"):
        say(zoo.parity(), "s6")


@pytest.mark.extra("block_size")
@pytest.mark.parametrize(("states", "answer"), [(8, YES), (9, YES), (10, NO)])
def test_blocks_hold_one_function_less_than_a_dense_machine_has_states(states, answer):
    """One-hot, with real entries, or not at all."""
    said = say(zoo.cerny(states), "block")
    assert said.answer == answer
    said.verdict.check()


def test_a_narrower_layer_and_a_token_shift_are_reckoned_with():
    assert represent(LAST_IS_1, "lti-diagonalisable").check()
    assert say(LAST_IS_1, "vanilla").answer == YES
    for name in ("s4", "s4d", "lru", "rwkv4"):
        said = say(LAST_IS_1, name)
        assert said.answer == NOT_EXCLUDED
        assert "narrower" in said.why
    states = list(itertools.product(range(2), repeat=2))
    delta = [[states.index((old[1], a)) for old in states] for a in range(2)]
    last_two = MooreMachine(delta, range(4))
    assert say(last_two, "rwkv4").answer == NOT_EXCLUDED
    assert say(zoo.flip_flop(), "rwkv4").answer == NO


def answers(machine, stacks=None):
    return {name: (row.one, row.stack) for name, row in decide(machine, classify(machine), stacks).items()}


def test_known_answers_by_names_of_layers():
    flip_flop, parity, s3 = (answers(machine) for machine in (zoo.flip_flop(), zoo.parity(), zoo.group("S3")))
    assert {flip_flop[name] for name in IN_USE if name not in ("s4", "s5", "pd-ssm", "slstm")} == {("yes", "yes")}
    assert (flip_flop["s4"], flip_flop["s5"]) == (("no", "no"), ("no", "no"))
    assert [parity[name][0] for name in ("s4", "mamba", "gated-deltanet", "gated-deltanet-negative")] == [
        "no", "no", "no", "yes"
    ]  # fmt: skip
    assert (s3["gated-deltanet-negative"][0], s3["deltaproduct"][0]) == ("no", "yes")
    assert (flip_flop["attention"][1], parity["attention"][1]) == ("yes", "no")
    assert represent(zoo.flip_flop(), "mamba").family == "diagonal[0,1]"
    assert represent(zoo.group("S3"), "deltaproduct").answer == "yes"
    assert "gated-deltanet" in FAMILIES
    assert FAMILIES["mamba"] == FAMILIES["diagonal[0,1]"]
    assert "mamba" not in set(FAMILIES)
    with pytest.raises(KeyError):
        FAMILIES["nothing"]


def test_answers_are_carried_along_containment_and_a_contradiction_is_an_error(monkeypatch):
    rows = {name: Decision() for name in IN_USE}
    rows["mamba-2"], rows["kda"] = Decision("yes", "yes"), Decision("no", "no")
    assert contradictions(rows) == [
        "Mamba-2 represents the machine as one layer, and KDA does not",
        "Mamba-2 represents the machine as a stack, and KDA does not",
    ]
    monkeypatch.setattr(in_use, "_one_layer", lambda _machine, name, *_: rows[name])
    with pytest.raises(NotExact, match="Mamba-2 represents the machine as one layer, and KDA does not"):
        decide(zoo.parity(), classify(zoo.parity()))
    rows = {name: Decision() for name in IN_USE}
    rows["mamba-2"], rows["rwkv-7"] = Decision("yes", "yes", "1 dimension"), Decision("unknown", "unknown")
    assert carried(rows)["rwkv-7"] == Decision("yes", "yes", "as Mamba-2: 1 dimension")
    rows = {name: Decision() for name in IN_USE}
    rows["kda"] = Decision("no", "no")
    assert {name for name, row in carried(rows).items() if row.stack == "no"} == {
        "mamba", "mamba-2", "mamba-3", "mingru", "gated-deltanet", "kda"
    }  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(machines(max_states=5))
def test_containment_holds_for_all_theorems(machine):
    """`decide` raises an error where a layer represents what a layer that contains it does not."""
    found = decide(machine, classify(machine))
    assert contradictions(found) == []
    assert found["slice"].one == "yes"
    alike = ("mamba", "mamba-2", "mamba-3", "mingru", "gated-deltanet", "kda")
    diagonal = ("mamba-negative", "slice-diagonal", "complex-diagonal")
    assert len({(found[name].one, found[name].stack) for name in alike}) == 1
    assert "unknown" not in {
        answer for name in ("s4", "s5", "attention", *alike, *diagonal) for answer in vars(found[name]).values()
    }


def test_complex_diagonal_layers_represent_the_abelian_groups():
    """2603.01959 for one layer, on groups that the atlas decides."""
    for spec in ("Z2", "Z5", "Z12", "Z2xZ2xZ2", "Z3xZ3", "Z4xZ4", "S3", "D4", "D9", "Q8", "A4", "Z3xS3", "Z2xQ8", "A5"):
        machine = zoo.group(spec)
        answer = represent(machine, "diagonal-complex", short_words=False).answer
        assert (answer == "yes") == bool(classify(machine).commutative.value), spec


def test_stacks_of_diagonal_layers_have_2_groups_or_solvable_groups():
    """T37; in one layer T3."""
    expected = {
        "Z2xZ2": ("yes/yes", "yes/yes"),
        "D4": ("no/yes", "no/yes"),
        "Z3": ("no/no", "yes/yes"),
        "S4": ("no/no", "no/yes"),
        "A5": ("no/no", "no/no"),
    }
    for spec, answer in expected.items():
        found = answers(zoo.group(spec))
        assert tuple("/".join(found[name]) for name in ("mamba-negative", "complex-diagonal")) == answer
        assert found["slice-diagonal"] == found["mamba-negative"]
    found = answers(zoo.from_task("mod_arith(4, completion=register)"))
    assert (found["mamba-negative"][1], found["complex-diagonal"][1]) == ("yes", "yes")


def test_letters_of_rwkv_7_and_kda_act_as_projections():
    """T57: real eigenvalues in the range, and no Jordan block at 0, on random matrices with the eigenvalue 0."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 8) * 20:
        key = rng.normal(size=n) * (rng.random(n) < 0.8)
        key = key / (np.linalg.norm(key) or 1)
        w, a = rng.uniform(math.exp(-0.606531), 1, size=n), rng.random(n) * (rng.random(n) < 0.7)
        w[rng.random(n) < 0.5] = 1
        mass = float(sum(a * key**2 / w))
        a = np.minimum(a / mass, 1) if mass > 0 else a  # where no entry is cut off, the determinant is 0
        rwkv = np.diag(w) - np.outer(key, a * key)
        kda = (np.eye(n) - rng.choice([0.5, 1]) * np.outer(key, key)) @ np.diag(rng.random(n) * (rng.random(n) < 0.7))
        for matrix, low in ((rwkv, math.exp(-0.606531) - 1), (kda, 0)):
            values = np.linalg.eigvals(matrix)
            assert np.allclose(values.imag, 0, atol=1e-6)
            assert ((values.real > low - 1e-6) & (values.real < 1 + 1e-6)).all()
            ranks = [np.linalg.matrix_rank(power, tol=1e-9) for power in (matrix, matrix @ matrix)]
            assert ranks[0] == ranks[1]


def test_one_layer_of_rwkv_7_runs_even_pairs_and_no_diagonal_layer_does():
    """T57 (b): a head of two entries remembers the first letter, a head of one entry the last."""
    machine = zoo.even_pair(2).minimise()
    assert represent(machine, "diagonal[0,1]", short_words=False).answer == "no"
    assert represent(machine, Family("any", "[0,1]"), short_words=False).answer != "no"
    w, a = [Fraction(4, 5), Fraction(1)], [Fraction(1), Fraction(0)]
    # κ = (2, ∓1)/√5: of its products κ_i κ_j, all rational, the second column is multiplied by a = 0.
    products = [{(0, 0): Fraction(4, 5), (1, 0): sign * Fraction(2, 5)} for sign in (1, -1)]
    letters = [[[w[i] * (i == j) - a[j] * p.get((i, j), 0) for j in (0, 1)] for i in (0, 1)] for p in products]
    assert letters == [[[0, 0], [Fraction(-2, 5), 1]], [[0, 0], [Fraction(2, 5), 1]]]
    vectors = {}
    for length in range(9):
        for word in itertools.product(range(2), repeat=length):
            x, last, q = [Fraction(1), Fraction(0)], -1, machine.start
            for letter in word:
                x = [sum(row[j] * x[j] for j in (0, 1)) for row in letters[letter]]
                last, q = letter, int(machine.delta[letter, q])
            assert vectors.setdefault(q, (*x, last)) == (*x, last)
    assert len(set(vectors.values())) == machine.n_states


@pytest.mark.extra("huggingface")
def test_what_is_not_decided_in_time_is_unknown_for_that_reason():
    from fsa2lrnn.extra.huggingface.stacks import decide_stack

    machine = zoo.mod_arith(3)
    late = decide(machine, classify(machine), decide_stack, max_seconds=1e-6)
    row = late["s4"]
    assert (row.stack, row.is_out_of_time) == ("unknown", True)
    assert "time limit" in row.why
    unhurried = decide(zoo.parity(), classify(zoo.parity()), decide_stack)
    assert not any(row.is_out_of_time for row in unhurried.values())
