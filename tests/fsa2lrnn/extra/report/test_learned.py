"""From the folder of a run to the page: judged anew, its heads drawn, evidence where there is nothing to judge by."""

import json
import re
import shutil
from dataclasses import replace

import pytest

from fsa2lrnn import MooreMachine, compile_machine, equivalent, learn, save
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.report.facts import verdict
from fsa2lrnn.extra.report.learned import assemble_learned
from fsa2lrnn.extra.report.page import build
from fsa2lrnn.training.learning.saving import read_finished

FEW = {"lengths": (10,), "n_words": 20, "letters": 200}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "sum3"
    learn("task:sum_mod(3)", folder=folder)
    return read_finished(folder)


def test_a_run_is_judged_anew_and_its_heads_are_drawn(run):
    said = []
    facts = assemble_learned(run, FEW, say=said.append)
    model, constructed = facts.models
    assert facts.title == "sum_mod(3): learned and proved"
    assert (model.name, constructed.name) == ("sum3", "constructed")
    assert verdict(model).startswith("Right on all words, of every length (proved: 3 joint states closed, bit for bit")
    assert said == ["sum3: prove", "sum3: compare"]
    (kept,) = model.learning.kept
    last = model.learning.film[-1]
    (head,) = [head for head in last.heads if head.head == kept]
    assert (head.minimal, head.faults) == (3, 0.0)
    task, outputs = MooreMachine.from_source("task:sum_mod(3)"), [int(x) for x in head.machine.outputs]
    assert equivalent(MooreMachine(head.machine.delta, outputs, head.machine.start, task.alphabet), task) is None
    assert model.learning.film[0].step == 0
    assert build(facts).count('type="radio"') == len(model.learning.film)


def test_what_the_folder_says_of_its_model_does_not_count(run):
    """A model that is not what the run proved is caught, whatever learned.json says."""
    wrong = compile_machine(
        MooreMachine([[0, 1, 2], [1, 2, 0], [2, 0, 0]], [0, 1, 2], 0, "012"), normalisation="onehot"
    )
    facts = assemble_learned(replace(run, model=wrong), FEW)
    model, _ = facts.models
    assert run.recorded.verdict["verdict"] == "proved"
    assert verdict(model) == "Fails on a word of 2 letters."
    said = re.findall(r"<p>(A m[^<]*)", build(facts))
    assert said == [next(text for text in said if text.startswith("A model, judged anew, which differs from the"))]
    other, _ = assemble_learned(replace(run, model=wrong), FEW, against="task:sum_mod(3)").models
    assert other.failure == model.failure


def test_of_given_words_there_is_evidence_and_no_proof(tmp_path):
    rows = (json.dumps([format(i, "b"), bool(i.bit_count() % 2)]) + "\n" for i in range(1, 64))
    (tmp_path / "words.jsonl").write_text("".join(rows))
    learn(tmp_path / "words.jsonl", folder=tmp_path / "run", length=6)
    finished = read_finished(tmp_path / "run")
    facts = assemble_learned(finished, FEW)
    (model,) = facts.models
    assert verdict(model).startswith("Learned from words, so nothing is proved of it; a machine of 2 states, right on")
    assert len(facts.machine.states) == 2
    page = build(facts)
    assert 'id="horizon"' not in page
    assert "proved right on every word" not in page
    judged, _ = assemble_learned(finished, FEW, against="regex:(0*10*1)*0*10*").models
    assert verdict(judged).startswith("Right on all words")


def test_what_a_run_says_of_words_is_written_from_its_counts(run):
    """A sentence in learned.json is shown nowhere, and counts that contradict each other are refused."""
    counts = {"words": 40, "right": 39, "labels": 90, "right_labels": 88}
    lie = "a machine of 3 states, equal to the target on every word"
    of_words = replace(run.recorded, verdict={"verdict": "agreement", **counts}, known=lie)
    page = build(assemble_learned(replace(run, recorded=of_words), FEW))
    assert "right on 39 of 40 held-out words" in page
    assert "equal to the target" not in page
    noisy = replace(run.asked, recipe=replace(run.asked.recipe, suffixes=0, noise=0.1))
    for version, said in (
        (2, "the right machine is expected to reach 0.9000"),
        (1, "how many of them are wrong is unknown"),
    ):
        counted = counts | ({"noise": 0.1, "expected": 0.9} if version == 2 else {})
        of_noise = replace(of_words, verdict={"verdict": "agreement", **counted})
        page = build(assemble_learned(replace(run, asked=replace(noisy, version=version), recorded=of_noise), FEW))
        assert said in page
        assert "held-out words" not in page
    for wrong in ({"right": 41}, {"words": 0, "right": 0}, {"right_labels": 91}):
        recorded = replace(of_words, verdict={"verdict": "agreement", **counts, **wrong})
        with pytest.raises(UnsupportedFormat, match=r"words and .* labels are right"):
            assemble_learned(replace(run, recorded=recorded), FEW)


def test_networks_as_a_whole_and_names_that_are_needed(run):
    whole = replace(run.asked, recipe=replace(run.asked.recipe, suffixes=0, layer="hard_lanes"))
    page = build(assemble_learned(replace(run, asked=whole), FEW))
    assert "the network as it was trained, all heads and the read-out together" in page
    assert "are no part of the model that is judged" not in page
    nameless = replace(run, asked=replace(run.asked, source="MooreMachine"))
    with pytest.raises(UnsupportedFormat, match="give the SOURCE that the run learned after the folder"):
        assemble_learned(nameless, FEW)


def test_heads_and_films_that_are_not_there_are_refused(run, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(run.folder, folder)
    film, result = (json.loads((folder / name).read_text()) for name in ("film.json", "learned.json"))
    (folder / "learned.json").write_text(json.dumps(result | {"heads": [99]}))
    with pytest.raises(UnsupportedFormat, match=r"heads \[99\] of the film's \d+: learn again"):
        read_finished(folder)
    (folder / "film.json").write_text(json.dumps(film | {"frames": []}))
    with pytest.raises(UnsupportedFormat, match=r"film.json: no frames"):
        read_finished(folder)


def test_a_folder_in_which_no_run_ended_is_refused(run, tmp_path):
    with pytest.raises(UnsupportedFormat, match=r"lacks learn.json, learned.json, model.safetensors, so no run"):
        read_finished(tmp_path)
    for name in ("learn.json", "learned.json"):
        (tmp_path / name).write_bytes((run.folder / name).read_bytes())
    save(run.model, tmp_path / "model.safetensors")
    assert read_finished(tmp_path).film is None
    written = json.loads((tmp_path / "learned.json").read_text())
    (tmp_path / "learned.json").write_text(json.dumps(written | {"verdict": {}}))
    with pytest.raises(UnsupportedFormat, match=r"verdict.verdict is missing"):
        read_finished(tmp_path)
