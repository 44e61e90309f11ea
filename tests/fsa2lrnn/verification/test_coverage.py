"""Every verdict names the runs that it covers, the same in Python, JSON and words; walks of one word alone are that."""

import copy
from dataclasses import replace

import torch

from fsa2lrnn import LRNN, certify, check, compile_machine, load, prove_equivalent, save, zoo
from fsa2lrnn.cli.evidence import verdict_text
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.extraction import ModelSystem
from fsa2lrnn.lower import lower
from fsa2lrnn.scope import EVERY, LETTERS
from fsa2lrnn.verdicts import Proved
from fsa2lrnn.verification import model_digest
from fsa2lrnn.verification.check import SCANS
from fsa2lrnn.verification.coverage import STEPPING, of_certificate
from fsa2lrnn.versions import environment

PARITY = zoo.parity()


def smeared():
    """A compiled model whose gate takes 10⁻³⁰ away before the ReLU: its sums round, and its states close."""
    model = compile_machine(PARITY, normalisation="none")
    with torch.no_grad():
        model.layers[0].transition[0].bias -= 1e-30
    return model


def test_compiled_models_and_tables_are_covered_in_every_shape():
    for verdict in (
        prove_equivalent(compile_machine(PARITY), PARITY),
        prove_equivalent(compile_recurrence(PARITY), PARITY),
    ):
        assert isinstance(verdict, Proved)
        assert (verdict.covers.shapes, verdict.covers.threads) == (EVERY, None)
        assert "every shape of call, batch and number of threads" in verdict_text(verdict)


def test_a_model_that_rounds_is_walked_one_word_alone(monkeypatch):
    sizes = []
    step = ModelSystem._step

    def seen(system, rows, letters):
        sizes.append(len(rows))
        return step(system, rows, letters)

    monkeypatch.setattr(ModelSystem, "_step", seen)
    verdict = prove_equivalent(smeared(), PARITY, 50)
    assert isinstance(verdict, Proved)
    assert verdict.covers.shapes == LETTERS
    assert sizes[-4:] == [1, 1, 1, 1]
    assert "words read letter by letter, one at a time (batch 1), with" in verdict_text(verdict)
    written = verdict.to_json()
    assert (written["shapes"], written["scans"], written["threads"]) == (
        LETTERS,
        ["sequential"],
        torch.get_num_threads(),
    )


def test_a_proof_of_words_alone_names_the_environment_and_others_none():
    rounds = prove_equivalent(smeared(), PARITY, 50)
    assert rounds.covers.environment == environment()
    assert rounds.to_json()["environment"] == list(environment())
    assert ", ".join(environment()) in verdict_text(rounds)
    exact = prove_equivalent(compile_machine(PARITY), PARITY)
    assert exact.covers.environment == ()
    assert exact.to_json()["environment"] == []


def test_a_proof_carries_the_digest_of_weights_and_configuration(tmp_path):
    model = compile_machine(PARITY)
    digest = prove_equivalent(model, PARITY).digest
    assert prove_equivalent(model, PARITY).to_json()["digest"] == digest == model_digest(model)
    assert digest == model_digest(copy.deepcopy(model).requires_grad_(False).eval())
    others = [copy.deepcopy(model) for _ in range(4)]
    with torch.no_grad():
        others[0].readout[2].bias[0] += 2**-20
    others[1].config = replace(model.config, p=1.5)
    others[2].config = replace(model.config, alphabet=model.alphabet[::-1])
    others[3].double()
    assert len({digest, *map(model_digest, others)}) == 5

    whole = LRNN(replace(model.config, p=1))  # a number of another type, until it is read from a file
    save(whole, tmp_path / "whole.safetensors")
    assert model_digest(load(tmp_path / "whole.safetensors")) == model_digest(whole)
    letter = object()
    assert len(model_digest(LRNN(replace(model.config, alphabet=(letter, "b"))))) == 64


def test_the_digest_of_exact_tables():
    machines = [PARITY, zoo.mod_arith(3), zoo.sum_mod(3), zoo.sum_mod(5), PARITY]
    settings = [{}, {"form": "cascade"}, {}, {}, {"layout": "index"}]
    recurrences = [compile_recurrence(machine, **each) for machine, each in zip(machines, settings, strict=True)]
    pairs = zip(recurrences, machines, strict=True)
    digests = [prove_equivalent(recurrence, machine).digest for recurrence, machine in pairs]
    assert digests == [model_digest(recurrence) for recurrence in recurrences]
    assert len(set(digests)) == len(digests)
    renamed = replace(recurrences[0], outputs=recurrences[0].outputs[::-1])
    assert model_digest(renamed) != digests[0]


def test_what_a_batch_gets_right_and_a_word_alone_does_not_is_refuted(monkeypatch):
    """The words of a batch are right; each word alone is wrong: the verdict is about the latter."""
    step = ModelSystem._step

    def otherwise(system, rows, letters):
        outputs, after = step(system, rows, letters)
        return (1 - outputs if len(rows) == 1 and not system.steps_in_batches else outputs), after

    monkeypatch.setattr(ModelSystem, "_step", otherwise)
    verdict = prove_equivalent(smeared(), PARITY, 50)
    assert verdict.kind == "refuted"
    assert prove_equivalent(compile_machine(PARITY), PARITY).kind == "proved"


def test_enumerations_of_models_that_round_are_of_words_alone(stack):
    recurrence, machine = stack
    exact = certify(lower(recurrence), machine)
    assert of_certificate(exact).shapes == EVERY
    model = lower(recurrence)
    with torch.no_grad():
        model.readout[0].weight *= 1 / 3
        model.readout[0].bias *= 1 / 3
    assert certify(model, machine).scans == model.methods  # it rounds by less than it leads
    with torch.no_grad():
        model.readout[2].bias += 2**20
    certificate = certify(model, machine)
    assert certificate.scans == ("sequential",)
    covers = of_certificate(certificate)
    assert (covers.shapes, covers.threads) == (LETTERS, torch.get_num_threads())
    assert covers.environment == environment()
    check(certificate, model)


def test_certificates_by_sets_bear_any_order():
    covers = of_certificate(certify(compile_machine(PARITY), PARITY, 1, work=1e6))
    assert (covers.shapes, covers.scans) == (EVERY, SCANS)
    assert set(STEPPING) == set(SCANS)
