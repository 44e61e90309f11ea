"""From models to facts: everything that a page needs of a learned model, its repairs and the constructed one."""

import json
from dataclasses import replace

import pytest

from fsa2lrnn import compile_machine, zoo
from fsa2lrnn.extra.report import assemble as files
from fsa2lrnn.extra.report.assemble import assemble, of_judgements
from fsa2lrnn.extra.report.facts import verdict
from fsa2lrnn.repairing.evaluation import EvaluatedRepair
from fsa2lrnn.verification.falsify import Budget

FEW = {"lengths": (10, 30), "n_words": 40, "letters": 1_200}


@pytest.fixture(scope="module")
def facts(judged):
    judgement, model, _ = judged
    return of_judgements("task:even_pair(5)", {"seed 4": model}, {"seed 4": judgement}, FEW, {"seed 4": {"step": "9"}})


def test_learned_repaired_and_constructed(facts):
    learned, *repaired, constructed = facts.models
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


def test_the_page_is_written_with_its_facts(facts, tmp_path):
    page, data = files.write(facts, tmp_path / "p.html")
    assert "seed 4: dyadic" in page.read_text()
    assert json.loads(data.read_text()) == json.loads(json.dumps(facts.to_json()))


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
