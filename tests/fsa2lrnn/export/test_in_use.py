"""What theory says of layers by name and in use."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, classify, represent, zoo
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import NotExact, UnsupportedFormat
from fsa2lrnn.export import in_use
from fsa2lrnn.export.configuration import answer, of_config
from fsa2lrnn.export.in_use import (
    IN_USE,
    NO,
    NO_RECURRENCE,
    NOT_EXCLUDED,
    YES,
    Decision,
    carried,
    contradictions,
    decide,
    say,
)
from fsa2lrnn.export.refuse import decide_stack
from fsa2lrnn.families import Family
from fsa2lrnn.layers import LAYERS
from fsa2lrnn.testing.strategies import machines

DESCRIBED = [name for name, row in LAYERS.items() if row.family]
LAST_IS_1 = MooreMachine([[0, 0], [1, 1]], [0, 1])  # the state is the last letter


@pytest.mark.parametrize(("task", "of_rwkv4"), [(zoo.sum_mod(5), NO), (zoo.even_pair(5), NOT_EXCLUDED)])
def test_the_papers_tasks_are_out_of_reach_of_what_does_not_depend_on_its_input(task, of_rwkv4):
    """A token shift tells the first letter from all others, so that a fixed recurrence can keep it."""
    answers = {name: say(task, name).answer for name in DESCRIBED}
    assert {answers[name] for name in ("s4", "s4d", "s5", "lru", "vanilla", "vanilla:diagonal")} == {NO}
    assert answers["rwkv-4"] == of_rwkv4
    assert answers["block"] == YES
    assert say(task, "liquid_s4:polyb").answer == say(task, "liquid-s4:kb").answer == NO_RECURRENCE


def test_an_impossibility_is_the_familys_own_and_unknown_names_are_refused():
    said = say(zoo.ab_star(), "lru")
    assert said.answer == NO
    said.verdict.check()
    assert said.to_json()["family"] == "lti-diagonalisable"
    with pytest.raises(UnsupportedFormat, match="layer 's7' is not known: choose one of s4d, s5"):
        say(zoo.parity(), "s7")


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
    others = ("s4", "s5", "pd-ssm", "slstm", "slice-diagonal", "slice-hadamard")
    assert {flip_flop[name] for name in IN_USE if name not in others} == {("yes", "yes")}
    assert (flip_flop["slice-diagonal"], flip_flop["slice-hadamard"]) == (("no", "no"), ("no", "yes"))
    assert (flip_flop["s4"], flip_flop["s5"]) == (("no", "no"), ("no", "no"))
    assert [parity[name][0] for name in ("s4", "mamba", "gated-deltanet", "gated-deltanet-negative")] == [
        "no", "no", "no", "yes"
    ]  # fmt: skip
    assert (s3["gated-deltanet-negative"][0], s3["deltaproduct"][0]) == ("no", "yes")
    assert (flip_flop["attention"][1], parity["attention"][1]) == ("yes", "no")


@pytest.mark.long
def test_no_layer_holds_more_than_one_that_contains_it():
    stacked = answers(zoo.ab_star(), decide_stack)
    assert (stacked["mamba"], stacked["pd-ssm"], stacked["rwkv-7"]) == (
        ("no", "yes"), ("yes", "yes"), ("no", "yes"),
    )  # fmt: skip
    assert answers(zoo.parity(), decide_stack)["kda"] == ("no", "no")
    rng = np.random.default_rng(1)
    for kind in range(20):
        n = int(rng.integers(2, 6))
        rows = [rng.permutation(n) if kind % 2 else np.sort(rng.integers(n, size=n)) for _ in range(2)]
        machine = MooreMachine(rows, rng.integers(2, size=n).astype(bool).tolist())
        found = decide(machine, classify(machine), decide_stack)  # raises an error for a contradiction
        assert contradictions(found) == []
        assert all(row.stack == "yes" for row in found.values() if row.one == "yes")
        assert all(row.one != "yes" for row in found.values() if row.stack == "no")


def test_answers_are_carried_along_containment_and_a_contradiction_is_an_error(monkeypatch):
    rows = {name: Decision() for name in IN_USE}
    rows["mamba-2"], rows["kda"] = Decision("yes", "yes"), Decision("no", "no")
    assert contradictions(rows) == [
        "Mamba-2 represents the machine as one layer, and KDA, bounded KDA does not",
        "Mamba-2 represents the machine as a stack, and KDA, bounded KDA does not",
    ]
    monkeypatch.setattr(in_use, "_one_layer", lambda _machine, name, *_: rows[name])
    with pytest.raises(NotExact, match="Mamba-2 represents the machine as one layer, and KDA, bounded KDA does not"):
        decide(zoo.parity(), classify(zoo.parity()))
    rows = {name: Decision() for name in IN_USE}
    rows["mamba-2"], rows["rwkv-7"] = Decision("yes", "yes", "1 dimension"), Decision("unknown", "unknown")
    assert carried(rows)["rwkv-7"] == Decision("yes", "yes", "as Mamba-2: 1 dimension")
    rows = {name: Decision() for name in IN_USE}
    rows["kda"] = Decision("no", "no")
    assert {name for name, row in carried(rows).items() if row.stack == "no"} == {
        "mamba", "mamba-2", "mamba-3", "mingru", "gated-deltanet", "kda"
    }  # fmt: skip
    rows["kda"], rows["gdn-2"] = Decision(), Decision("no")
    assert {name for name, row in carried(rows).items() if row.one == "no"} == {
        "mamba", "mamba-2", "mamba-3", "mingru", "gated-deltanet", "kda", "gdn-2"
    }  # fmt: skip
    rows["slice-diagonal"], rows["slice-hadamard"] = Decision("yes", "yes"), Decision("no", "yes")
    assert contradictions(rows) == [
        "diagonal SLiCE represents the machine as one layer, and Walsh–Hadamard SLiCE does not"
    ]


def test_no_layer_is_decided_after_the_time_limit():
    def stacks(*_):
        raise AssertionError

    rows = decide(zoo.parity(), classify(zoo.parity()), stacks, max_seconds=Deadline(0.0))
    assert {(row.one, row.stack, row.why) for row in rows.values()} == {
        ("unknown", "unknown", "the time limit passed first")
    }


@settings(max_examples=60, deadline=None)
@given(machines(max_states=5))
def test_containment_holds_for_all_theorems(machine):
    """`decide` raises an error where a layer represents what a layer that contains it does not."""
    found = decide(machine, classify(machine))
    assert contradictions(found) == []
    assert found["slice"].one == found["slice-sparse"].one == found["slice-hadamard"].stack == "yes"
    alike = ("mamba", "mamba-2", "mamba-3", "mingru", "gated-deltanet", "kda")
    diagonal = ("mamba-negative", "complex-diagonal")
    assert len({(found[name].one, found[name].stack) for name in alike}) == 1
    assert found["gdn-2"].one == found["mamba"].one
    assert found["slice-diagonal"].one != "unknown"
    if (least := minimise(machine)).start in least.delta and found["slice-diagonal"].one == "yes":
        assert found["mamba-negative"].one == "yes"
    assert (found["slice-diagonal"].stack, found["mamba-negative"].stack) != ("yes", "no")
    assert "unknown" not in {
        answer for name in ("s4", "s5", "attention", *alike, *diagonal) for answer in vars(found[name]).values()
    }


@pytest.mark.long
def test_stacks_of_diagonal_layers_have_2_groups_or_solvable_groups():
    """T37; in one layer T3."""
    expected = {
        "Z2xZ2": ("yes/yes", "yes/yes"), "D4": ("no/yes", "no/yes"), "Z3": ("no/no", "yes/yes"),
        "S4": ("no/no", "no/yes"), "A5": ("no/no", "no/no"),
    }  # fmt: skip
    for spec, both in expected.items():
        found = answers(zoo.group(spec))
        assert tuple("/".join(found[name]) for name in ("mamba-negative", "complex-diagonal")) == both
        assert found["slice-diagonal"] == found["mamba-negative"]  # letters permute: there is nothing to add
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


def test_a_letter_of_gdn_2_acts_as_an_orthogonal_projection_and_a_word_may_have_the_eigenvalue_minus_1():
    """T57 (a), with gates of 0 and 1: fixed vectors are orthogonal to the kernel, and 0 has no Jordan block."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 8) * 40:
        key = rng.normal(size=n) * (rng.random(n) < 0.7)
        key = key / (np.linalg.norm(key) or 1)
        alpha = rng.choice([0, 0.5, 1, rng.random()], size=n)
        b = rng.choice([0, 0.5, 1, rng.random()], size=n)
        if rng.random() < 0.5:  # a rate of 1 along the key: the determinant is 0
            b[key != 0] = 1
        matrix = (np.eye(n) - np.outer(key, b * key)) @ np.diag(alpha)
        values = np.linalg.eigvals(matrix)
        assert np.allclose(values.imag, 0, atol=1e-5)
        assert ((values.real > -1e-6) & (values.real < 1 + 1e-6)).all()
        assert np.linalg.matrix_rank(matrix, tol=1e-9) == np.linalg.matrix_rank(matrix @ matrix, tol=1e-9)
        doubled = np.linalg.eigvals((np.eye(n) - np.outer(key, 2 * b * key)) @ np.diag(alpha))  # T57 (d)
        assert np.allclose(doubled.imag, 0, atol=1e-5)
        assert abs(doubled.real).max() < 1 + 1e-6
        fixed, killed = (null_space(matrix - x * np.eye(n)) for x in (1, 0))
        assert np.allclose(fixed.T @ killed, 0, atol=1e-6)
    # (r 0; −√(r − r²) 1) has b = (1, 0); a power of it, and one of the transposed with the other sign.
    low, high = 0.5, 0.9999
    for _ in range(60):
        r = (low + high) / 2
        one = np.linalg.matrix_power(np.array([[r, 0], [-math.sqrt(r - r * r), 1]]), 7)
        other = np.linalg.matrix_power(np.array([[1, math.sqrt(r - r * r)], [0, r]]), 7)
        low, high = (r, high) if np.linalg.det(other @ one + np.eye(2)) > 0 else (low, r)
    assert np.linalg.eigvals(other @ one).min() == pytest.approx(-1)


def null_space(matrix):
    _, values, rows = np.linalg.svd(matrix)
    return rows[values < 1e-9].T


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


def test_what_is_not_decided_in_time_is_unknown_for_that_reason():
    machine = zoo.mod_arith(3)
    late = decide(machine, classify(machine), decide_stack, max_seconds=1e-6)
    row = late["s4"]
    assert (row.stack, row.is_out_of_time) == ("unknown", True)
    assert "time limit" in row.why
    unhurried = decide(zoo.parity(), classify(zoo.parity()), decide_stack)
    assert not any(row.is_out_of_time for row in unhurried.values())


def same_function(machine, random):
    """Machines that compute the same function as a machine, but for names: each is decided as it is."""
    n, k = machine.n_states, len(machine.alphabet)
    order = random.sample(range(k), k)
    yield MooreMachine(machine.delta[order], [f"out {y}" for y in machine.outputs], machine.start, range(k))
    copies = np.array([[random.randrange(2) for _ in range(2 * n)] for _ in range(k)])  # two of each state
    yield MooreMachine(np.tile(machine.delta, 2) + n * copies, machine.outputs * 2, machine.start, machine.alphabet)
    others = [[random.randrange(n + 2) for _ in range(2)] for _ in range(k)]  # two states that are not reachable
    outputs = (*machine.outputs, machine.outputs[0], "new")
    yield MooreMachine(np.hstack([machine.delta, others]), outputs, machine.start, machine.alphabet)
    constant = [[random.randrange(2) for _ in range(2)] for _ in range(k)]  # a machine of two states and one output
    product = [[2 * row[q] + own[r] for q in range(n) for r in (0, 1)]
               for row, own in zip(machine.delta.tolist(), constant, strict=True)]  # fmt: skip
    yield MooreMachine(product, [(y, "c") for y in machine.outputs for _ in (0, 1)], 2 * machine.start, range(k))


CARDS = [of_config({"model_type": name}) for name in ("olmo_hybrid", "bailing_hybrid", "zamba2", "rwkv", "minimax")]


def every_answer(machine):
    return [*answers(machine).values(), *(answer(machine, card).kind for card in CARDS)]


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(machines(max_states=4), st.randoms(use_true_random=False))
def test_answers_depend_on_the_function_alone(machine, random):
    expected = every_answer(machine)
    for other in same_function(machine, random):
        assert every_answer(other) == expected


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(machines(max_states=5))
def test_a_part_of_a_function_is_not_harder(machine):
    """Fewer letters, and outputs that are not told apart: no "yes" becomes a "no"."""
    whole = every_answer(machine)
    parts = [MooreMachine(machine.delta[:1], machine.outputs, machine.start, machine.alphabet[:1])]
    parts += [MooreMachine(machine.delta, [y == z for y in machine.outputs], machine.start, machine.alphabet)
              for z in machine.outputs[:1]]  # fmt: skip
    for before, after in zip(whole * 2, [x for part in parts for x in every_answer(part)], strict=True):
        pairs = [(before, after)] if isinstance(before, str) else zip(before, after, strict=True)
        assert ("yes", "no") not in pairs


def test_a_time_limit_gives_unknown_and_no_other_answer():
    for source in ("mod_arith(3)", "group(S3)", "dyck(1, 3)", "arbiter(2)"):
        machine = zoo.from_task(source)
        late, whole = (decide(machine, classify(machine), max_seconds=x) for x in (0.02, None))
        for name, row in late.items():
            assert {row.one, whole[name].one} != {"yes", "no"} != {row.stack, whole[name].stack}


def test_transitions_of_preconditioned_delta_rules_are_above_minus_1():
    """T63: random transitions, and the naive recurrence on one letter, whose states become constant."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 8) * 20:
        key, m = rng.normal(size=n) * (rng.random(n) < 0.8), 1.5 ** rng.uniform(-1, 1, size=n)
        key = key / (np.linalg.norm(key) or 1)
        alpha = rng.choice([0, 0.5, 1, rng.random()], size=n)
        values = np.linalg.eigvals((np.eye(n) - np.outer(m * key, key)) @ np.diag(alpha))
        assert np.allclose(values.imag, 0, atol=1e-6)
        assert values.real.min() > 1 - 1.5 - 1e-9
        assert values.real.max() < 1 + 1e-9


def test_log_linear_attention_knows_the_position():
    """T63: letter t reads letter s at the level that the masks of `fla.ops.log_linear_attn.naive` give the pair."""

    def levels(t, s):
        for level in range(1, 8):
            size = 1 << (level - 1)
            if t % (2 * size) >= size and s + size >= t - t % size > s:
                yield level

    for t in range(64):
        (*read,) = (level for s in range(t) for level in levels(t, s))
        assert len(read) == t  # each earlier letter once
        assert [sum(level <= j for level in read) for j in range(1, 7)] == [t % 2**j for j in range(1, 7)]
