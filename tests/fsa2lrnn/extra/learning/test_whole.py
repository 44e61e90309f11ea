"""Networks that are proved as a whole."""

import json

import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, NotExpressible, UnsupportedFormat
from fsa2lrnn.extra.learning import learn, then_prove
from fsa2lrnn.families import represent
from fsa2lrnn.lrnn import load
from fsa2lrnn.verdicts import Proved, Refuted
from fsa2lrnn.verification import prove_equivalent


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("hard_lanes", "task:parity"),
        ("hard_lanes", "task:flip_flop"),
        ("hard_reflections", "task:sum_mod(2)"),
        pytest.param("hard_reflections", "task:group(S3, transpositions)", marks=pytest.mark.slow),
    ],
)
def test_the_trained_network_itself_is_proved(layer, source, tmp_path):
    found = learn(source, layer=layer, folder=tmp_path)
    assert found.is_proved
    assert found.scope == "every word"
    assert found.model is found.network
    kept = load(tmp_path / "model.safetensors")
    assert kept.config.layers == found.model.config.layers
    assert isinstance(prove_equivalent(kept, found.machine), Proved)
    assert json.loads((tmp_path / "trail.jsonl").read_text().splitlines()[0])["event"] == "theory"


@pytest.mark.extra("block_size")
def test_what_a_layer_cannot_be_is_said_before_it_is_trained():
    with pytest.raises(NotExpressible, match=r'no hard_lanes layer .* in one state after "ab" and after "aaab"'):
        learn("task:ab_star", layer="hard_lanes")
    with pytest.raises(NotExpressible, match=r"no hard_reflections layer .* No number of factors does"):
        learn("task:tomita(4)", layer="hard_reflections")


def test_trained_anyway_it_fails_on_a_word():
    found = learn("task:ab_star", layer="hard_lanes", anyway=True, steps=40)
    assert isinstance(found.verdict, Refuted)


def test_lanes_learn_what_no_diagonal_layer_represents_with_one_vector_a_state():
    machine = MooreMachine([[1, 2, 1], [0, 1, 0]], [True, False, False])
    assert represent(machine, "diagonal[-1,1]").answer == "no"
    found = learn(machine, layer="hard_lanes")
    assert found.is_proved
    assert found.verdict.pairs > machine.n_states  # several states of the network for one of the machine


def test_words_that_fail_join_the_data():
    found = learn("task:tomita(5)", layer="hard_lanes", first_length=1, length=2, threshold=0.5)
    refuted = [record["word"] for record in found.trail if record.get("event") == "refuted"]
    assert refuted
    assert found.is_proved


def test_data_and_unknown_layers_are_refused():
    with pytest.raises(UnsupportedFormat, match="layer = 'hard_lanes' is proved as a whole, against a machine"):
        learn([("ab", True), ("ba", False)], layer="hard_lanes")
    with pytest.raises(UnsupportedFormat, match="layer = 'lstm' must be one of block, hard_lanes, hard_reflections"):
        learn("task:parity", layer="lstm")


def test_then_prove_takes_a_network_whose_layers_are_automata():
    found = learn("task:parity", layer="hard_lanes")
    again = then_prove(found.model, "task:parity")
    assert again.is_proved
    assert again.scope == "every word, the empty one excepted"
    with torch.no_grad():
        found.model.layers[0].transition.table.neg_()
    wrong = then_prove(found.model, "task:parity")
    assert isinstance(wrong.verdict, Refuted)
    assert wrong.machine != zoo.parity()


@pytest.mark.usefixtures("out_of_time")
def test_a_time_limit_ends_theory_training_and_judgement():
    with pytest.raises(BudgetExceeded, match="every head reaches too many states to list them in time"):
        learn("task:group(S3, transpositions)", layer="hard_reflections", seconds=0.1)


def test_heads_that_nothing_depends_on_stand_still_in_a_wide_network():
    learned = learn("task:parity", layer="hard_lanes", heads=24)
    assert learned.is_proved
    (event,) = [record for record in learned.trail if record.get("event") == "fewer heads"][-1:]
    A, v = learned.network.recurrences[0].tables(learned.network.first_inputs())
    alike = (A[:1] == A).flatten(2).all(-1) & (v == v[:1]).flatten(2).all(-1)
    is_unread = (learned.network.readout.weights.W1.unflatten(-1, (24, -1)) == 0).all(-1).all(0)
    assert (alike.all(0) & is_unread).sum() == event["still"] >= 20
