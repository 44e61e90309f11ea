"""Learned cascades and deep models."""

from pathlib import Path

import pytest
import torch

from fsa2lrnn import LRNN, MooreMachine, Proved, Refuted, compile_machine, load, prove_equivalent, zoo
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.decomposition.search import CascadeSearch
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, NotExpressible, OutOfTime, UnsupportedFormat
from fsa2lrnn.extra.learning import Recipe, cascades, learn
from fsa2lrnn.extra.learning.cascades import DistilledRun, distil_cascade, placed, plan_cascade
from fsa2lrnn.extra.learning.deep import begin, deep_network
from fsa2lrnn.extra.learning.distilling import DistillationWords, distil
from fsa2lrnn.extra.learning.examples import FreshWords
from fsa2lrnn.extra.learning.judging import LearningTarget
from fsa2lrnn.extra.learning.saving import RunFolder, RunRequest
from fsa2lrnn.scope import EVERY


def cascade_of(machine, largest=8):
    return CascadeSearch(machine, largest, token_shift=True).cheapest(counted=False).cascade


def test_what_does_not_fit_is_said():
    with pytest.raises(NotExpressible, match=r"components of \[3, 5, 5\] states, .* do not fit into 1 layers"):
        placed(cascade_of(zoo.mod_arith(5)), 1, (8, 8))
    with pytest.raises(NotExpressible, match=r"do not fit into 3 layers of blocks \(4, 4\)"):
        placed(cascade_of(zoo.mod_arith(5)), 3, (4, 4))
    with pytest.raises(InvalidMachine):
        distil_cascade("task:parity", layers=2, blocks=(2, 2), teacher=zoo.ab_star())
    with pytest.raises(UnsupportedFormat, match="start = 'zero' must be one of random, identity, permutations"):
        Recipe(start="zero")
    with pytest.raises(UnsupportedFormat, match="layers = 2 of hard_channels: several layers are of blocks"):
        Recipe(layers=2, layer="hard_channels")


def test_cascades_of_two_are_taught_by_machines_that_are_right():
    found = distil_cascade("task:sum_mod(4)", layers=2, blocks=(2, 2))
    assert found.is_proved
    assert [layer.block_sizes for layer in found.model.recurrences] == [(2, 2), (2, 2)]
    verdict = prove_equivalent(found.model, zoo.sum_mod(4))
    assert isinstance(verdict, Proved)
    assert (verdict.covers.shapes, verdict.scans) == (EVERY, found.model.methods)
    with torch.no_grad():  # a network in which a layer is another's mirror is refuted
        found.model.recurrences[1].transition.weights.b2.neg_()
        found.model.recurrences[1].transition.weights.W2.neg_()
    assert isinstance(prove_equivalent(found.model, zoo.sum_mod(4)), Refuted)
    finer = MooreMachine([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]], [0, 1, 0, 1, 0, "?"], 0, "01")
    with pytest.raises(NotExpressible, match="is wrong after 11111: give another teacher"):
        learn("task:sum_mod(2)", method="cascade", teacher=finer, block=3)
    with pytest.raises(InvalidMachine, match="the alphabets differ"):
        learn("task:sum_mod(2)", method="cascade", teacher=zoo.sum_mod(6))
    with pytest.raises(UnsupportedFormat, match='a teacher is for method "cascade", not for "train"'):
        learn("task:sum_mod(2)", teacher=finer)


@pytest.mark.slow
def test_what_was_taught_in_part_is_trained_on_as_a_whole(monkeypatch):
    monkeypatch.setattr(cascades, "_SURE", 0)
    monkeypatch.setattr(cascades.LayerDistillation, "_until_sure", _a_few)
    found = distil_cascade("task:sum_mod(4)", layers=2, blocks=(2, 2), recipe=cascades.Recipe(rate=0.01, steps=3_000))
    assert found.steps > 0
    assert found.is_proved


def _a_few(_teaching, optimiser, step, _what):
    for _ in range(25):
        loss, _ = step()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return 25


def test_as_few_layers_heads_and_states_as_the_components_need():
    plan = plan_cascade(zoo.mod_arith(5))
    assert (plan.recipe.layers, plan.recipe.heads, plan.recipe.block, plan.in_words()) == (2, 2, 5, "3 × 5 | 5")
    wider = plan_cascade(zoo.mod_arith(5), layers=3)
    assert (wider.recipe.heads, wider.in_words()) == (1, "3 | 5 | 5")
    assert plan_cascade(zoo.sum_mod(6), block=3).in_words() == "3 | 2"
    assert plan_cascade(zoo.parity(), recipe=Recipe(layers=2, heads=1)).in_words() == "2 | none"
    for machine, changes, message in (
        (zoo.parity(), {}, "the cheapest cascade is one component of 2 states, so there is nothing to spread"),
        (zoo.sum_mod(7), {"block": 3}, "no cascade with blocks of at most 3 states was found"),
        (zoo.mod_arith(5), {"layers": 2, "heads": 1}, "do not fit into 2 layers .*: give more layers, more heads or"),
    ):
        with pytest.raises(NotExpressible, match=message):
            plan_cascade(machine, **changes)
    for changes, message in (
        ({"layer": "hard_channels"}, "layers of blocks"),
        ({"noise": 0.1}, "none of them wrong"),
        ({"layers": 1}, "layers = 1: a cascade is taught to two or more"),
    ):
        with pytest.raises(UnsupportedFormat, match=message):
            plan_cascade(zoo.sum_mod(4), **changes)


def test_a_run_goes_on_after_the_layer_that_was_taught_last(tmp_path):
    """To the same bits as one that was not cut off."""

    class CutOff(Exception):
        pass

    def cut_off(run):
        folder.save(run)
        raise CutOff

    plan, words = plan_cascade(zoo.sum_mod(4), block=2), FreshWords(zoo.sum_mod(4))
    target = LearningTarget(words.machine, words.sampler, words.outputs)
    runs = [DistilledRun(plan, words, target, 4) for _ in range(3)]
    folder = RunFolder(tmp_path, RunRequest("s", "d", "cascade", "task", 0.0, plan.recipe), resume=True)
    with pytest.raises(CutOff):
        runs[0].go(after_step=cut_off)
    folder.restore(runs[1])
    assert [record.get("layer") for record in runs[1].trail][-1] == 0
    assert all(run.go().holds for run in runs[1:])
    for name, weight in runs[1].attempt.model.state_dict().items():
        assert torch.equal(weight, runs[2].attempt.model.state_dict()[name]), name
    assert [record["event"] for record in runs[1].trail] == [record["event"] for record in runs[2].trail]


def test_what_can_not_be_taught_is_said(monkeypatch):
    monkeypatch.setattr(cascades, "_STEPS", 3)
    with pytest.raises(BudgetExceeded, match="layer 1 of 2 could not be taught in 3 batches: give gates more units"):
        distil_cascade("task:sum_mod(4)", layers=2, blocks=(2, 2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_mod_arith_in_three_layers_of_two_blocks_of_eight(seed):
    recipe = cascades.Recipe(rate=0.003, steps=2_000, seed=seed)
    found = distil_cascade("task:mod_arith(5)", 3, (8, 8), recipe=recipe)
    assert found.is_proved
    assert found.scope == "every legal word, at the positions that count"
    assert [layer.block_sizes for layer in found.model.recurrences] == [(8, 8)] * 3


def test_a_deadline_ends_the_teaching(monkeypatch):
    monkeypatch.setattr(cascades.DistilledRun, "_deadline", lambda _: Deadline(0.0))
    with pytest.raises(OutOfTime, match="teaching layer 1 of 2, 0 batches so far: the limit of 0 s has passed"):
        learn("task:sum_mod(4)", method="cascade", block=2)


def network(start):
    torch.manual_seed(0)
    recipe = Recipe(layers=3, gate_hidden=8)
    model = LRNN(deep_network((4, 4), 3, recipe, tuple("ab"), (False, True)))
    begin(model, start)
    return model


def test_permutation_starts_permute_and_layers_read_what_is_below():
    model = network("random")
    assert [layer.transition.weights.W1.shape[1] for layer in model.recurrences] == [4, 20, 36]
    assert torch.equal(model.embedding.weight, torch.eye(2))
    assert not model.embedding.weight.requires_grad
    tokens = torch.randint(2, (50, 20), generator=torch.Generator().manual_seed(1))
    kept = {}
    for start in ("random", "identity", "permutations"):
        model = network(start)
        read = []
        model.readout.register_forward_pre_hook(lambda _, given, read=read: read.append(given[0]))
        model(tokens)
        x = read[0].unflatten(-1, (6, 4))  # equal rows are read once
        assert ((x == 1).sum(-1) == 1).all()
        assert ((x != 0).sum(-1) == 1).all()
        kept[start] = len(x.flatten(0, -3).unique(dim=0))
    assert kept["identity"] < min(kept["random"], kept["permutations"])
    layer = network("permutations").recurrences[0]
    maps = layer.maps(torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]))  # (letters, H, b)
    assert (maps.sort(-1).values == torch.arange(4)).float().mean() > 0.5


@pytest.mark.slow
def test_two_layers_learn_what_one_block_is_too_small_for():
    found = learn("task:parity", layers=2, heads=1, block=2)
    assert found.is_proved
    assert [layer.block_sizes for layer in found.model.recurrences] == [(2,), (2,)]


MODELS = Path(__file__).parents[4] / "experiments" / "models"


def test_what_a_model_answers_is_learned_in_its_own_order_and_proved():
    task = MooreMachine.from_source("task:mod_arith(2)")
    order = [4, 2, 0, 3, 1]
    shuffled = MooreMachine(task.delta[order], task.outputs, task.start, [task.alphabet[a] for a in order])
    examples = DistillationWords(compile_machine(shuffled), task, source="task:mod_arith(2)")
    batch = examples.batch(20, 9, torch.Generator().manual_seed(0))
    for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
        wanted = task.transduce([examples.alphabet[a] for a in tokens])
        given = [wanted[k] if j == UNCOUNTED else examples.outputs[j] for k, j in enumerate(labels[1:])]
        assert given == wanted
        assert labels[2::2] == [UNCOUNTED] * 4
    learned = load(MODELS / "sum3" / "seed-0.safetensors")
    found = distil(learned, zoo.sum_mod(3), "task:sum_mod(3)")
    assert found.is_proved
    assert isinstance(prove_equivalent(found.model, zoo.sum_mod(3)), Proved)
    found = distil(compile_machine(zoo.sum_mod(3)), MooreMachine.from_source("task:sum_mod(3)"), length=8, steps=100)
    assert found.is_proved
    other = MooreMachine(zoo.sum_mod(3).delta, ("0", "1", "1"), 0, ("0", "1", "2"))
    assert not distil(compile_machine(other), zoo.sum_mod(3), length=8, steps=100).is_proved


@pytest.mark.slow
def test_three_learned_layers_of_mod_arith_become_one_that_is_right_for_ever():
    learned = load(MODELS / "arith5" / "seed-0.safetensors")
    assert len(learned.layers) == 3
    found = distil(learned, zoo.mod_arith(5), "task:mod_arith(5)")
    assert found.is_proved
    assert found.scope == "every legal word, at the positions that count"
