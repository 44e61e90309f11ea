"""Judgements on models and runs, and comparisons."""

import io
import json
import re
import shutil
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from experiments.studies.keep_models import MODELS
from fsa2lrnn import LRNN, Budget, MooreMachine, check, compile_machine, equivalent, extract, learn, load, save, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning import Recipe
from fsa2lrnn.extra.learning.attempt import network
from fsa2lrnn.extra.learning.saving import read_finished
from fsa2lrnn.extra.repairing.evaluation import evaluate_repair, long_accuracy
from fsa2lrnn.extra.report import compare as comparison
from fsa2lrnn.extra.report import judgement as judging
from fsa2lrnn.extra.report.compare import CONSTRUCTED, compare, judgement_rows, plot, table
from fsa2lrnn.extra.report.facts import verdict
from fsa2lrnn.extra.report.judgement import judge
from fsa2lrnn.extra.report.learned import assemble_learned
from fsa2lrnn.extra.report.page import build
from fsa2lrnn.lrnn import BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.switched import switched


def test_a_learned_model_before_all_judges(judged):
    judgement, model, steps = judged
    assert judgement.isomorphic
    assert 5 == judgement.certificate.horizon < judgement.failure <= 60
    assert model.transduce(judgement.falsified.word)[-1] == judgement.falsified.failure.given[-1]
    least, bounded, dyadic = judgement.repairs
    assert least.accuracy == bounded.accuracy == dyadic.accuracy == 1.0
    assert least.certificate.horizon == 5
    assert bounded.repaired.column_norm_after <= 1
    assert dyadic.proof.pairs >= 11
    assert steps == list(judgement.seconds)


@pytest.mark.usefixtures("out_of_time")
@pytest.mark.filterwarnings("ignore::fsa2lrnn.verification.certify.SearchCutShort")
def test_a_time_limit_ends_every_judge_and_is_named(judged):
    model = judged[1]
    found = judge(model, zoo.even_pair(5), seconds=3)
    assert "extracting the automaton: a share of 0 s of the limit of 3 s has passed" in found.extraction
    assert not any(search.finished for search in found.falsified.searches)
    assert found.certificate.horizon >= 1
    for repair in found.repairs:
        assert "looking for an affine image of the machine: a share of 0 s of the limit of 3 s" in repair.refused


@pytest.mark.slow
def test_certificates_are_those_of_the_models(monkeypatch):
    monkeypatch.setattr(judging, "REPAIRS", judging.REPAIRS[:1])
    model, machine = load(MODELS / "even5" / "seed-4.safetensors"), zoo.even_pair(5)
    judgement = judge(model, machine, Budget(seconds=5, length=60, random_words=16), work=1e6)
    check(judgement.certificate, model)
    (repair,) = judgement.repairs
    check(repair.certificate, repair.repaired.model)
    assert 5 <= judgement.certificate.horizon <= repair.certificate.horizon


def test_a_model_of_one_hot_columns_is_proved_and_there_is_nothing_to_repair():
    """Whatever it computes is a machine; by sets it would be certified up to some hundred thousand letters."""
    torch.manual_seed(0)
    model = LRNN(network(Recipe(hidden=8), 2, 4, ("a", "b"), (False, True)))
    found = judge(model, extract(model), Budget(seconds=2, length=20))
    assert (found.falsified, found.certificate, found.repairs, found.failure) == (None, None, (), None)
    assert list(found.seconds) == ["extract", "prove", "align"]
    facts = json.loads(json.dumps(found.to_json()))
    assert (facts["proved"]["shapes"], facts["failure"]) == ("every", None)
    assert "certified" not in facts
    assert ("covers", facts["proved"]["covered"]) in judgement_rows(found)


@pytest.mark.usefixtures("short_certificates")
def test_what_could_be_proved_and_is_wrong_is_judged_like_any_other():
    found = judge(compile_machine(zoo.length_mod(3)), zoo.length_mod(4), Budget(seconds=2, length=20), repairs=())
    assert (found.proof, found.failure) == (None, 3)
    assert list(found.seconds) == ["extract", "prove", "falsify", "certify", "align"]


def test_judgements_are_json_and_say_what_cannot_be_repaired(judged):
    judgement, *_ = judged
    facts = json.loads(json.dumps(judgement.to_json()))
    assert facts["extraction"]["isomorphic"]
    assert facts["alignment"]["carrying"] == len(facts["alignment"]["kinds"])
    assert [repair["mode"] for repair in facts["repairs"]] == ["least", "least", "dyadic"]
    assert facts["failure"] == json.loads(json.dumps(judgement.falsified.failure.to_json()))
    assert facts["failure"]["length"] == judgement.failure
    assert facts["scope"] == {"states": 11, "ignored_states": 0, "ignored": [], "empty_word": False}
    assert all(repair["scope"] == facts["scope"] for repair in facts["repairs"])
    assert facts["repairs"][2]["proved"]["arithmetic"] == "float32"
    assert (facts["certified"], facts["memory"]) == (judgement.certificate.horizon, judgement.certificate.memory)
    machine = zoo.parity()
    tables = switched(compile_machine(zoo.tomita(1)))
    still = LRNN.from_affine(type(tables)(0 * tables.A, 0 * tables.v, tables.x0, tables.readout, (0, 1), (False, True)))
    repair = evaluate_repair(still, MooreMachine(machine.delta, (False, True), 0, (0, 1)), "keep", "least")
    assert repair.repaired is None
    assert "train it first" in repair.refused
    assert repair.to_json() == {"columns": "keep", "mode": "least", "refused": repair.refused}


def test_accuracy_counts_outputs_that_the_model_has():
    parity = zoo.parity()
    model = compile_machine(parity)
    wrong = MooreMachine(parity.delta, [not output for output in parity.outputs], 0, parity.alphabet)
    assert (long_accuracy(model, parity, 40_000), long_accuracy(model, wrong, 500)) == (1.0, 0.0)
    broken = compile_machine(parity)
    with torch.no_grad():
        broken.readout[2].bias.fill_(torch.nan)
    assert long_accuracy(broken, parity, 100) == 0.0
    machine = zoo.mod_arith(2)
    model = compile_machine(machine)
    assert long_accuracy(model, machine, 300) == 1.0


def test_extraction_asks_for_the_outputs_that_count_alone():
    machine = zoo.mod_arith(2)
    kept = MooreMachine(
        machine.delta, [out if out in (0, 1) else 0 for out in machine.outputs], machine.start, machine.alphabet
    )
    model = compile_machine(kept, form="cascade", max_block=machine.n_states)
    judgement = judge(model, machine, Budget(seconds=2, length=20), ignore="lacked")
    assert judgement.isomorphic
    assert judgement.proof.scope == judgement.scope
    assert judgement.to_json()["scope"]["ignored_states"] == judgement.scope.ignored_states > 0
    assert set(judgement.extraction.machine.outputs) == {0, 1, None}


SOURCE = "task:sum_mod(3)"


@pytest.fixture(scope="module")
def untrained():
    torch.manual_seed(0)
    layer = BlockLayerConfig((2, 2), 4, 4)
    return LRNN(LRNNConfig(("0", "1", "2"), (0, 1, 2), (layer,), embedding_dim=4, readout_hidden=4))


@pytest.fixture(scope="module")
def document(untrained):
    return compare(SOURCE, {"untrained": untrained}, lengths=(4, 30), n_words=200)


def test_the_document(document):
    assert list(document["models"]) == ["untrained", CONSTRUCTED]
    learned, constructed = ([found["last"] for found in model["lengths"]] for model in document["models"].values())
    assert constructed == [200, 200]
    assert all(40 < right < 100 for right in learned)  # a guess among three
    assert json.loads(json.dumps(document))["models"][CONSTRUCTED]["lengths"][1]["length"] == 30


def test_the_table_and_the_plot(document, tmp_path):
    shown = table(document)
    assert shown.row_count == 9  # a name and two lengths, of each model and of the best constant answer
    printed = io.StringIO()
    Console(file=printed, width=80).print(shown)
    assert "…" not in printed.getvalue()
    assert max(map(len, printed.getvalue().splitlines())) <= 80
    for ending in ("svg", "png"):
        plot(document, tmp_path / f"plot.{ending}")
    drawing = (tmp_path / "plot.svg").read_text()
    assert "untrained" in drawing
    assert CONSTRUCTED in drawing
    plot(document, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == drawing
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_other_machines_and_names_are_refused(untrained):
    with pytest.raises(
        UnsupportedFormat, match=r"model 'x' reads .*'3'.* and task:sum_mod\(3\) .*: take models of one"
    ):
        compare(SOURCE, {"x": compile_machine(zoo.sum_mod(4))})
    with pytest.raises(UnsupportedFormat, match="output 2 of the machine is none of 0, 1"):
        compare("task:sum_mod(3)", {"x": compile_machine(zoo.even_pair(3))})
    with pytest.raises(UnsupportedFormat, match="'constructed' is the name of the compiled machine"):
        compare(SOURCE, {CONSTRUCTED: untrained})


@pytest.mark.parametrize("length", [2_000_001, 99_999_999_999_999, 10**30])
def test_words_that_no_time_would_do_for_are_refused_before_anything_is_made(monkeypatch, length):
    """Of a length at least one word was read, however long: this did not end."""
    monkeypatch.setattr(comparison, "compile_machine", None)
    with pytest.raises(UnsupportedFormat, match=r"longer than the 2,000,000 letters|too many to be meant"):
        compare(SOURCE, {}, lengths=(4, length), letters=2_000_000)


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
    counted = counts | {"noise": 0.1, "expected": 0.9}
    of_noise = replace(of_words, verdict={"verdict": "agreement", **counted})
    page = build(assemble_learned(replace(run, asked=noisy, recorded=of_noise), FEW))
    assert "the right machine is expected to reach 0.9000" in page
    assert "held-out words" not in page
    for wrong in ({"right": 41}, {"words": 0, "right": 0}, {"right_labels": 91}):
        recorded = replace(of_words, verdict={"verdict": "agreement", **counts, **wrong})
        with pytest.raises(UnsupportedFormat, match=r"words and .* labels are right"):
            assemble_learned(replace(run, recorded=recorded), FEW)


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
