"""What theory says of layers by name, against small layers that are run and against the families; layers in use."""

import itertools

import numpy as np
import pytest

from fsa2lrnn.automata import classify, zoo
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import NotExact, UnsupportedFormat
from fsa2lrnn.families import FAMILIES, in_use, represent
from fsa2lrnn.families.in_use import IN_USE, Decision, carried, contradictions, decide
from fsa2lrnn.families.named import NAMED, NO, NO_RECURRENCE, NOT_EXCLUDED, YES, every_other, say
from fsa2lrnn.lrnn.layers import LAYERS

LAST_IS_1 = MooreMachine([[0, 0], [1, 1]], [0, 1])  # the state is the last letter


@pytest.mark.extra("baselines")
def test_names_are_those_of_layers_and_of_families():
    ours = {name for name in LAYERS if ":" not in name}
    hard = {"hard_lanes", "hard_reflections"}  # several vectors per state come of training: T51 treats them
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


def test_machines_of_pairs_run_two_letters():
    machine = zoo.subtraction(5)
    for c, row in enumerate(machine.delta):
        reached = sorted(set(row.tolist()))
        found = every_other(machine.delta, c)
        for a, q in itertools.product(range(len(machine.alphabet)), range(len(reached))):
            assert reached[found[a, q]] == machine.delta[c][machine.delta[a][reached[q]]]


def answers(machine, stacks=None):
    return {name: (row.one, row.stack) for name, row in decide(machine, classify(machine), stacks).items()}


def test_answers_that_are_known():
    flip_flop, parity, s3 = (answers(machine) for machine in (zoo.flip_flop(), zoo.parity(), zoo.group("S3")))
    assert {flip_flop[name] for name in IN_USE if name not in ("s4", "pd-ssm", "slstm", "attention")} == {
        ("yes", "yes")
    }
    assert [parity[name][0] for name in ("s4", "mamba", "gated-deltanet", "gated-deltanet-negative")] == [
        "no", "no", "no", "yes"
    ]  # fmt: skip
    assert (s3["gated-deltanet-negative"][0], s3["deltaproduct"][0]) == ("no", "yes")
    assert (flip_flop["attention"][1], parity["attention"][1]) == ("yes", "no")


@pytest.mark.extra("huggingface")
def test_no_layer_holds_more_than_one_that_contains_it():
    from fsa2lrnn.extra.huggingface.stacks import decide_stack

    stacked = answers(zoo.ab_star(), decide_stack)
    assert (stacked["mamba"], stacked["pd-ssm"], stacked["rwkv-7"]) == (
        ("no", "yes"),
        ("yes", "yes"),
        ("unknown", "yes"),
    )
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


def test_a_contradiction_is_an_error(monkeypatch):
    rows = {name: Decision() for name in IN_USE}
    rows["mamba-2"], rows["kda"] = Decision("yes", "yes"), Decision("no", "no")
    assert contradictions(rows) == [
        "Mamba-2 represents the machine as one layer, and KDA does not",
        "Mamba-2 represents the machine as a stack, and KDA does not",
    ]
    monkeypatch.setattr(in_use, "_one_layer", lambda _machine, name, *_: rows[name])
    with pytest.raises(NotExact, match="Mamba-2 represents the machine as one layer, and KDA does not"):
        decide(zoo.parity(), classify(zoo.parity()))


def test_answers_are_carried_along_containment():
    rows = {name: Decision() for name in IN_USE}
    rows["mamba-2"], rows["rwkv-7"] = Decision("yes", "yes", "1 dimension"), Decision("unknown", "unknown")
    assert carried(rows)["rwkv-7"] == Decision("yes", "yes", "as Mamba-2: 1 dimension")
    rows = {name: Decision() for name in IN_USE}
    rows["kda"] = Decision("no", "no")
    assert {name for name, row in carried(rows).items() if row.stack == "no"} == {
        "mamba", "mamba-2", "gated-deltanet", "kda"
    }  # fmt: skip


def test_families_know_the_names_of_layers():
    assert represent(zoo.flip_flop(), "mamba").family == "diagonal[0,1]"
    assert represent(zoo.group("S3"), "deltaproduct").answer == "yes"
    assert "gated-deltanet" in FAMILIES
    assert FAMILIES["mamba"] == FAMILIES["diagonal[0,1]"]
    assert "mamba" not in set(FAMILIES)
    with pytest.raises(KeyError):
        FAMILIES["nothing"]
