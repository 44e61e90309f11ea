"""What theory says of layers by name, against small layers that are run and against the families."""

import itertools

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families import FAMILIES, represent
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


def test_an_impossibility_is_the_familys_own():
    said = say(zoo.ab_star(), "lru")
    assert said.answer == NO
    said.verdict.check()
    assert said.to_json()["family"] == "lti-diagonalisable"


@pytest.mark.extra("block_size")
@pytest.mark.parametrize(("states", "answer"), [(8, YES), (9, YES), (10, NO)])
def test_blocks_hold_one_function_less_than_a_dense_machine_has_states(states, answer):
    """One-hot, with real entries, or not at all."""
    said = say(zoo.cerny(states), "block")
    assert said.answer == answer
    said.verdict.check()


def test_what_its_family_can_is_not_said_of_a_narrower_layer():
    assert represent(LAST_IS_1, "lti-diagonalisable").check()
    assert say(LAST_IS_1, "vanilla").answer == YES
    for name in ("s4", "s4d", "lru", "rwkv4"):
        said = say(LAST_IS_1, name)
        assert said.answer == NOT_EXCLUDED
        assert "narrower" in said.why


def test_a_token_shift_is_reckoned_with():
    """The last two letters: a recurrence with a token shift holds the one before the last for nothing."""
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


def test_unknown_names_are_refused():
    with pytest.raises(UnsupportedFormat, match="layer 's6' is not known: choose one of s4, s4d"):
        say(zoo.parity(), "s6")
