"""From models to facts: everything that a page needs of a learned model, its repairs and the constructed one."""

import json

import pytest

from experiments import report
from experiments.keep_models import LEARNED
from experiments.report.assemble import assemble
from fsa2lrnn import compile_machine, load, zoo
from verify.falsify import Budget

FEW = {"lengths": (10, 30), "n_words": 40, "letters": 1_200}


@pytest.fixture(scope="module")
def facts(short_certificates):  # noqa: ARG001
    model = load(LEARNED / "even5" / "seed-4.safetensors")
    said = []
    budget = Budget(seconds=5, length=60, random_words=16)
    found = assemble("task:even_pair(5)", {"seed 4": model}, budget, FEW, said.append, {"seed 4": {"step": "9"}})
    return found, said


def test_learned_repaired_and_constructed(facts):
    found, said = facts
    learned, *repaired, constructed = found.models
    assert (learned.kind, constructed.kind) == ("learned", "constructed")
    assert [model.name for model in repaired] == [
        "seed 4: repaired", "seed 4: p ≤ 1", "seed 4: dyadic",
    ]  # fmt: skip
    assert 5 == learned.proved < learned.failure.position <= 60
    assert repaired[-1].proof.endswith("in float32")
    assert constructed.proof.startswith("11 joint states")
    assert learned.notes["extracted"] == "11 states: the machine itself"
    assert learned.provenance["step"] == "9"
    assert [line["length"] for line in learned.accuracy] == [10, 30]
    assert all(text.startswith("seed 4: ") for text in said)


def test_the_page_is_written_with_its_facts(facts, tmp_path):
    page, data = report.write(facts[0], tmp_path / "p.html")
    assert "seed 4: dyadic" in page.read_text()
    assert report.Facts.from_json(json.loads(data.read_text())) == facts[0]


@pytest.mark.usefixtures("short_certificates")
def test_a_model_of_several_layers_has_no_picture_from_within():
    model = compile_machine(zoo.tomita(4), form="cascade", max_block=1)
    assert len(model.layers) > 1
    found = assemble("task:tomita(4)", {"cascade": model}, Budget(seconds=2, length=20), FEW)
    learned, constructed = found.models
    assert (learned.inside, learned.failure) == (None, None)
    assert learned.proved == 5
    assert constructed.inside is not None
