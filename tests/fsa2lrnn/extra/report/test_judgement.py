"""All judges at once, on a kept model whose failing words are short, and on constructed ones."""

import json

import pytest
import torch

from experiments.studies.keep_models import MODELS
from fsa2lrnn import LRNN, compile_machine, extract, load, zoo
from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.extra.learning import Recipe
from fsa2lrnn.extra.learning.attempt import network
from fsa2lrnn.extra.report import judgement as judging
from fsa2lrnn.extra.report.compare import judgement_rows
from fsa2lrnn.extra.report.judgement import judge
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.repairing.evaluation import evaluate_repair, long_accuracy
from fsa2lrnn.verification.check import check
from fsa2lrnn.verification.falsify import Budget


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
    for mended in found.repairs:
        assert "looking for an affine image of the machine: a share of 0 s of the limit of 3 s" in mended.refused


@pytest.mark.slow
def test_certificates_are_those_of_the_models(monkeypatch):
    monkeypatch.setattr(judging, "REPAIRS", judging.REPAIRS[:1])
    model, machine = load(MODELS / "even5" / "seed-4.safetensors"), zoo.even_pair(5)
    judgement = judge(model, machine, Budget(seconds=5, length=60, random_words=16), work=1e6)
    check(judgement.certificate, model)
    (mended,) = judgement.repairs
    check(mended.certificate, mended.repaired.model)
    assert 5 <= judgement.certificate.horizon <= mended.certificate.horizon


def test_a_model_of_one_hot_columns_is_proved_and_there_is_nothing_to_mend():
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
def test_what_could_be_proved_and_is_wrong_is_judged_like_any_other(monkeypatch):
    monkeypatch.setattr(judging, "REPAIRS", ())
    found = judge(compile_machine(zoo.length_mod(3)), zoo.length_mod(4), Budget(seconds=2, length=20))
    assert (found.proof, found.failure) == (None, 3)
    assert list(found.seconds) == ["extract", "prove", "falsify", "certify", "align"]


def test_a_judgement_is_json(judged):
    judgement, *_ = judged
    facts = json.loads(json.dumps(judgement.to_json()))
    assert facts["extraction"]["isomorphic"]
    assert facts["alignment"]["carrying"] == len(facts["alignment"]["kinds"])
    assert [mended["mode"] for mended in facts["mended"]] == ["least", "least", "dyadic"]
    assert facts["failure"] == json.loads(json.dumps(judgement.falsified.failure.to_json()))
    assert facts["failure"]["length"] == judgement.failure
    assert facts["scope"] == {"states": 11, "ignored_states": 0, "ignored": [], "empty_word": False}
    assert all(mended["scope"] == facts["scope"] for mended in facts["mended"])
    assert facts["mended"][2]["proved"]["arithmetic"] == "float32"
    assert (facts["certified"], facts["memory"]) == (judgement.certificate.horizon, judgement.certificate.memory)


def test_what_can_not_be_mended_says_why():
    machine = zoo.parity()
    tables = switched(compile_machine(zoo.tomita(1)))
    still = LRNN.from_affine(type(tables)(0 * tables.A, 0 * tables.v, tables.x0, tables.readout, (0, 1), (False, True)))
    mended = evaluate_repair(still, MooreMachine(machine.delta, (False, True), 0, (0, 1)), "keep", "least")
    assert mended.repaired is None
    assert "train it first" in mended.refused
    assert mended.to_json() == {"columns": "keep", "mode": "least", "refused": mended.refused}


def test_accuracy_along_a_word_counts_every_output():
    parity = zoo.parity()
    model = compile_machine(parity)
    wrong = MooreMachine(parity.delta, [not output for output in parity.outputs], 0, parity.alphabet)
    assert (long_accuracy(model, parity, 40_000), long_accuracy(model, wrong, 500)) == (1.0, 0.0)
    broken = compile_machine(parity)
    with torch.no_grad():
        broken.readout[2].bias.fill_(torch.nan)
    assert long_accuracy(broken, parity, 100) == 0.0


def test_only_outputs_that_the_model_has_count():
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
