"""Facts of models, gathered and written."""

import json
import xml.etree.ElementTree as ET
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from fsa2lrnn import Budget, compile_machine, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.repairing.evaluation import EvaluatedRepair
from fsa2lrnn.extra.report.align import align
from fsa2lrnn.extra.report.assemble import assemble, of_judgements
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.facts import FAR, NEAR, LayerHead, Learning, Model, ReportFacts, repairs_of, verdict
from fsa2lrnn.extra.report.gather import heads_of, inside, machine_facts, plane
from fsa2lrnn.extra.report.page import build
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.verification.specification import specification_of


def test_facts_that_contradict_themselves_are_refused(facts):
    learned, repaired, constructed = facts.models
    for models, message in [
        ([learned, learned], "is the name of several models"),
        ([replace(learned, kind="guessed")], "'guessed', none of learned, repaired, constructed"),
        ([repaired], "which is not there"),
        ([replace(learned, proof="closed")], "is proved correct on all words and has a counterexample"),
        ([replace(constructed, wrong="at 1 %")], "is proved correct on all words and has a counterexample"),
        ([replace(learned, proved=3)], "is proved right up to 3 letters and fails at letter 3"),
        ([replace(learned, failure=None, proved=100)], "proved right up to 100 letters and is wrong on random words"),
    ]:
        with pytest.raises(UnsupportedFormat, match=message):
            replace(facts, models=models)
    assert repairs_of(facts, learned) == [repaired]
    assert repairs_of(facts, constructed) == []


def test_verdicts_are_sentences(facts):
    learned, repaired, constructed = facts.models
    ever = "right on all words, of every length (proved: closed, 7 joint states)"
    assert verdict(learned) == "Right on every word of up to 2 letters (proved); fails on a word of 3 letters."
    assert verdict(repaired) == verdict(constructed) == f"R{ever[1:]}."
    missed = replace(learned, proved=None, failure=None)
    wrong = "Wrong on some random words of 100 letters; no shorter counterexample found (all short words)."
    assert verdict(missed) == wrong
    assert verdict(replace(missed, scope="some")) == "No counterexample found (all short words); some."
    unknown = replace(missed, accuracy=[])
    assert verdict(replace(unknown, name="x")) == "No counterexample found (all short words)."
    assert verdict(replace(unknown, name="x", searched=None)) == "No verdict."
    assert verdict(replace(unknown, name="x", searched=None, proved=1)).startswith("Right on every word of up to 1 l")
    seen = replace(constructed, proof=None, searched="10 letters", wrong="at 1 % of 10 letters")
    assert verdict(seen) == "Wrong at 1 % of 10 letters."
    some = replace(learned, scope="outputs of 2 of 5 states do not count: ?")
    assert verdict(some) == f"{verdict(learned)[:-1]}; outputs of 2 of 5 states do not count: ?."


def test_planes_and_models_from_within():
    machine = zoo.sum_mod(3)
    model = compile_machine(machine)
    alignment = align(model, machine)
    found = inside(model, machine, alignment)
    assert found.blocks == switched(model).A.tolist()
    assert np.array(found.eigenvalues).shape == (3, 1, 3, 2)
    assert found.carrying == alignment.carrying == [0]
    json.dumps(asdict(found))


def centres(points, when):
    return {q: np.mean([p[:2] for p in points if p[2] == q and p[3] == when], axis=0) for q in {p[2] for p in points}}


@pytest.mark.parametrize("source", ["sum_mod(5)", "tomita(5)", "sum_mod(2)"])
def test_the_plane_parts_the_states(source):
    machine = zoo.from_task(source)
    tables = switched(compile_machine(machine, dtype=torch.float64))
    points = plane(tables, specification_of(tables, machine))
    near, far = centres(points, NEAR), centres(points, FAR)
    for q in near:
        np.testing.assert_allclose(near[q], far[q], atol=1e-2)
        assert all(np.linalg.norm(near[q] - near[p]) > 0.1 for p in near if p != q)
    assert max(abs(x) for point in points for x in point[:2]) == pytest.approx(1, abs=1e-2)
    angles = 4 * np.pi * np.arange(len(near)) / len(near)  # turned to be like another picture
    like = [[float(np.cos(t)), float(np.sin(t)), q, NEAR] for q, t in enumerate(angles)]
    if source == "sum_mod(5)":
        turned = centres(plane(tables, specification_of(tables, machine), like), NEAR)
        np.testing.assert_allclose([turned[q] for q in range(5)], [point[:2] for point in like], atol=1e-2)


@pytest.fixture(scope="module")
def hard():
    """Two one-hot heads over the letters of parity, the first of which is parity itself."""
    torch.manual_seed(3)
    layer = BlockLayerConfig((2, 3), 2, 2, gate="table")
    model = LRNN(LRNNConfig(("0", "1"), (False, True), (layer,), embedding_dim=2, normalisation="onehot"))
    for letter, rows in enumerate(([0, 1], [1, 0])):
        model.recurrences[0].set_map(letter, 0, torch.tensor(rows))
    return model


def test_heads_that_are_automata_and_those_left_out(hard):
    found = heads_of(hard, 12)
    tokens = np.random.default_rng(0).integers(0, 2, 30)
    with torch.no_grad():
        state = hard.initial_state()
        for a in tokens:
            _, state = hard.advance(torch.tensor([[a]]), state)
    at = state[0].x[0].argmax(-1).tolist()
    for h, head in found.items():
        q = head.machine.start
        for a in tokens:
            q = head.machine.delta[a][q]
        assert head.states[q] == at[h]
    assert sorted(found) == [0, 1]
    assert sorted(heads_of(hard, 2)) in ([0], [0, 1])
    assert heads_of(hard, 1).keys() <= {1}
    assert heads_of(compile_machine(zoo.parity(), layout="index"), 12) == {}
    assert heads_of(compile_machine(zoo.mod_arith(5), form="cascade"), 12) == {}
    learned = LRNN(LRNNConfig(("0", "1"), (False, True), (BlockLayerConfig((2,), 2, 2),), embedding_dim=2))
    assert heads_of(learned, 12) == {}


def test_the_page_draws_them_and_says_which_carry_the_state(hard):
    machine = zoo.parity()
    within = inside(hard, machine, align(hard, machine, n_words=40))
    page = build(ReportFacts("t", "s", "1 May", machine_facts(machine), [Model("hard", "learned", inside=within)]))
    assert "The heads of hard as automata" in page
    assert "head 0: carries a function of the state" in page
    assert page.count('class="automaton"') == 1 + len(within.automata)


BIT = DrawnMachine(["1", "2"], ["0", "1?", "1?"], ["1", "2"], [[0, 1], [0, 1], [1, 0]], 0)


def layers(*heads):
    """What the page of a run with these heads says of its layers."""
    learning = Learning("known", [0], 1, 0, 1, 0.0, is_whole=True, layers=list(heads))
    page = build(ReportFacts("t", "s", "1 May", BIT, [Model("m", "learned", evidence="seen", learning=learning)]))
    return page.partition("<h3>Its layers, from below</h3>")[2].partition("</details>")[0]


def test_every_head_is_drawn_in_the_row_of_its_layer():
    found = layers(
        LayerHead(0, 0, 2, 2, [], False, BIT), LayerHead(0, 1, 2, 1, [], False, None),
        LayerHead(1, 0, 2, 2, [0], True, BIT), LayerHead(1, 1, 99, 99, [0, 1], False, None),
    )  # fmt: skip
    root = ET.fromstring(f"<div>{found}</div>")
    assert [title.text for title in root.iter("h4")] == ["Layer 0", "Layer 1"]
    captions = [caption.text for caption in root.iter("figcaption")]
    assert captions == [
        "head 0: 2 states of a block of 2; reads the letter.",
        "head 1: stays in one state",
        "head 0: 2 states of a block of 2; reads the letter, the one before and head 0 of layer 0.",
        "head 1: 99 states of a block of 99; reads the letter, head 0 of layer 0 and head 1 of layer 0; too many "
        "states to draw",
    ]
    assert len(list(root.iter("svg"))) == 2
    titles = [title.text for title in root.iter("title")]
    assert titles.count("1 → 2: 1?") == titles.count("2 → 2: 0, 1?") == 2


FEW = {"lengths": (10, 30), "n_words": 40, "letters": 1_200}


@pytest.fixture(scope="module")
def judged_facts(judged):
    judgement, model, _ = judged
    return of_judgements("task:even_pair(5)", {"seed 4": model}, {"seed 4": judgement}, FEW, {"seed 4": {"step": "9"}})


def test_learned_repaired_and_constructed(judged_facts):
    learned, *repaired, constructed = judged_facts.models
    assert (learned.kind, constructed.kind) == ("learned", "constructed")
    assert [model.name for model in repaired] == ["seed 4: repaired", "seed 4: p≤1", "seed 4: dyadic"]
    assert all(model.of == "seed 4" for model in repaired)
    assert [model.searched for model in repaired] == ["500,000 random letters"] * 3
    assert [model.wrong for model in repaired] == [None] * 3
    assert 5 == learned.proved < learned.failure.position <= 60
    assert repaired[-1].proof.startswith(
        "31 joint states closed, bit for bit, in float32, by the scans sequential, fused, letters; every shape"
    )
    assert constructed.proof.startswith("11 joint states")
    assert learned.notes["extracted"] == "11 states: the machine itself"
    assert learned.provenance["step"] == "9"
    assert [line["length"] for line in learned.accuracy] == [10, 30]


def test_repairs_that_are_wrong_or_refused_are_said_to_be(judged):
    judgement, model, _ = judged
    least, *_ = judgement.repairs
    wrong, refused = replace(least, accuracy=0.996, certificate=None), EvaluatedRepair("keep", "dyadic", "too small")
    found = of_judgements("task:even_pair(5)", {"m": model}, {"m": replace(judgement, repairs=(wrong, refused))}, FEW)
    learned, repaired, _ = found.models
    assert verdict(repaired) == "Wrong at 0.4 % of 500,000 random letters."
    assert repaired.notes["right outputs"].startswith("99.6000 %")
    assert learned.notes["dyadic: refused"] == "too small"


def test_a_model_of_several_layers_is_proved_and_has_no_picture_from_within():
    model = compile_machine(zoo.tomita(4), form="cascade", max_block=1)
    assert len(model.layers) > 1
    said = []
    found = assemble("task:tomita(4)", {"cascade": model}, Budget(seconds=2, length=20), FEW, said.append)
    assert said == ["cascade: extract", "cascade: prove"]
    learned, constructed = found.models
    assert (learned.inside, learned.failure, learned.searched, learned.proved) == (None, None, None, None)
    assert "joint states closed, bit for bit, in float32, by the scans sequential, pscan" in learned.proof
    assert constructed.inside is not None
