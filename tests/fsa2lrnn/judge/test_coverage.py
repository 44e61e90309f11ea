"""Every verdict names the runs that it covers, the same in Python, JSON and words; walks of one word alone are that."""

import torch

from fsa2lrnn import certify, check, compile_machine, prove_equivalent, zoo
from fsa2lrnn.cli.evidence import verdict_text
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.extraction import ModelSystem
from fsa2lrnn.judge.check import SCANS
from fsa2lrnn.judge.coverage import STEPPING, of_certificate
from fsa2lrnn.lower import lower
from fsa2lrnn.verdicts import EVERY, LETTERS, Proved

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
    assert of_certificate(certificate).shapes == LETTERS
    check(certificate, model)


def test_certificates_by_sets_bear_any_order():
    covers = of_certificate(certify(compile_machine(PARITY), PARITY, 1, work=1e6))
    assert (covers.shapes, covers.scans) == (EVERY, SCANS)
    assert set(STEPPING) == set(SCANS)
