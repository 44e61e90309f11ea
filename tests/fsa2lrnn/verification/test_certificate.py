"""Certificates, and what a proof covers."""

import copy
import json
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from fsa2lrnn import LRNN, MooreMachine, certify, check, compile_machine, load, prove_equivalent, save, zoo
from fsa2lrnn.cli.evidence import verdict_text
from fsa2lrnn.compile.lower import lower
from fsa2lrnn.compile.recurrence import compile_recurrence
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.verdicts import EVERY, LETTERS, Proved, Scope
from fsa2lrnn.verification import model_digest
from fsa2lrnn.verification.certificate import Certificate, Sets, Tail, Tube
from fsa2lrnn.verification.check import SCANS
from fsa2lrnn.verification.coverage import STEPPING, environment, of_certificate
from fsa2lrnn.verification.extraction import ModelSystem

RNG = np.random.default_rng(0)
SETS = Sets(
    4, np.array([[True, False]]), RNG.normal(size=(1, 2, 3, 2)), RNG.random((1, 2, 3, 2)), RNG.random((1, 2, 2)),
    RNG.normal(size=(1, 1, 2)), RNG.normal(size=(1, 1, 2)),
)  # fmt: skip
TUBE = Tube(
    memory=2,
    frame_memory=1,
    start=3,
    basis=RNG.normal(size=(1, 2, 3, 3)),
    slow=np.array([[[True, False, False]] * 2]),
    part=np.array([0, 0]),
    directions=np.float64(np.float32(RNG.normal(size=(1, 1, 2, 3)))),
    stored=(SETS, SETS),
    tail=(Tail(SETS, SETS.radius, SETS.ball, 7), Tail(SETS, SETS.radius, SETS.ball, None)),
)
CERTIFICATE = Certificate(
    horizon=11, margins=np.array([0.5, np.inf, 1e-300, 1e300, -0.0]), method="sets", dtype="float32",
    scans=("sequential", "fused"), slack=1e-6, sha256="ab" * 32,
    machine=MooreMachine([[1, 0]], ["odd", 2], 0, [("a", 1)]), tube=TUBE, ignore=("odd",),
)  # fmt: skip
ENUMERATION = replace(CERTIFICATE, method="enumeration", tube=None, margins=np.zeros(0), slack=0.0)


def assert_alike(a, b):
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
    elif isinstance(a, (Certificate, Tube, Tail, Sets)):
        for field in fields(a):
            assert_alike(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_alike(x, y)
    else:
        assert a == b


def test_files_are_read_as_written_those_of_before_too(tmp_path):
    for certificate in (
        CERTIFICATE,
        replace(CERTIFICATE, horizon=None),
        ENUMERATION,
    ):
        certificate.save(tmp_path / "certificate.json")
        assert_alike(Certificate.load(tmp_path / "certificate.json"), certificate)
        json.dumps(certificate.to_json(), allow_nan=False)
    whole = CERTIFICATE.to_json()
    assert whole["format"] == "fsa2lrnn-horizon-certificate"
    assert CERTIFICATE.covers(11)
    assert CERTIFICATE.scope == Scope(2, 1, ("odd",))
    assert not CERTIFICATE.covers(12)
    assert replace(CERTIFICATE, horizon=None).covers(10**12)
    assert (CERTIFICATE.memory, ENUMERATION.memory) == (2, 0)


@pytest.mark.parametrize(("changes", "reason"), [
    ({"method": "faith"}, "method 'faith' is not known"),
    ({"method": "enumeration"}, "has a tube if, and only if"),
    ({"tube": None}, "has a tube if, and only if"),
    ({"horizon": -1}, "horizon = -1"),
    ({"margins": np.ones((2, 2))}, "margins of shape .2, 2. and dtype float64: they are a row"),
    ({"margins": np.ones(2, bool)}, "margins of shape .2,. and dtype bool"),
    ({"margins": [1.0]}, r"margins = \[1.0\] must be a ndarray"),
    ({"slack": np.nan}, "slack = nan must be a finite number"),
    ({"scans": ()}, r"scans = \(\): name at least one, each once"),
    ({"scans": ("fused", "fused")}, "name at least one, each once"),
])  # fmt: skip
def test_what_can_not_be_is_refused(changes, reason):
    with pytest.raises(UnsupportedFormat, match=reason):
        replace(CERTIFICATE, **changes)


@pytest.mark.parametrize(("part", "changes", "reason"), [
    (TUBE, {"memory": True}, "memory = True must be a whole number"),
    (TUBE, {"stored": (TUBE,)}, r"stored\[0\] = .* must be a Sets"),
    (TUBE.tail[0], {"steps": 7.0}, "steps = 7.0 must be a whole number or null"),
    (SETS, {"ball": 0.0}, "ball = 0.0 must be a ndarray"),
])  # fmt: skip
def test_parts_of_another_type_are_refused(part, changes, reason):
    wrong = replace(part, **changes)
    tube = wrong if part is TUBE else replace(TUBE, **({"stored": (wrong,)} if part is SETS else {"tail": (wrong,)}))
    with pytest.raises(UnsupportedFormat, match=reason):
        replace(CERTIFICATE, tube=tube)


@pytest.mark.parametrize(
    "claim",
    [{"slack": 1e30}, {"slack": -1.0}, {"margins": np.full(3, 1e300)}, {"margins": np.array([np.nan])}],
)
def test_an_enumeration_claims_nothing_that_only_sets_show(claim):
    with pytest.raises(UnsupportedFormat, match=r"an enumeration bounds none|which only sets of one layer allow"):
        replace(ENUMERATION, **claim)
    (name,) = claim
    assert name not in ENUMERATION.to_json()
    with pytest.raises(
        UnsupportedFormat, match=f"{name}: the method 'enumeration' has none, and nothing would check it"
    ):
        Certificate.from_json(ENUMERATION.to_json() | {name: CERTIFICATE.to_json()[name]})


def test_damaged_files_are_named(tmp_path):
    path = tmp_path / "certificate.json"
    whole = CERTIFICATE.to_json()
    tube = whole["tube"]
    damaged = [
        ({**whole, "format": "other"}, "format 'other'"),
        ({**whole, "version": 2}, "version 2"),
        ({**whole, "version": True}, "version True"),
        ({**whole, "claim": 1}, "certificate.claim is not known: remove it"),
        ({name: value for name, value in whole.items() if name != "margins"}, "certificate.margins is missing"),
        ({**whole, "margins": {**whole["margins"], "data": "!"}}, "certificate.margins is damaged"),
        ({**whole, "tube": {}}, "certificate.tube.memory is missing; .*tube.directions is missing"),
        *(({**whole, "horizon": value}, "horizon = .* must be") for value in (1.5, True, "7", float("inf"))),
        *(({**whole, "slack": value}, "slack = .* must be") for value in ("0", None, False, 10**400, 10**40)),
        ({**whole, "scans": "sequential"}, "scans = 'sequential' must be a list"),
        ({**whole, "scans": [["sequential"]]}, r"scans\[0\] = \['sequential'\] must be text"),
        *(({**whole, "tube": {**tube, "memory": value}}, "tube.memory = .* must") for value in (2.0, None, "2", True)),
        ({**whole, "tube": {**tube, "basis": [[1.0]]}}, r"tube.basis: .* is not an array"),
        ({**whole, "tube": {**tube, "tail": {}}}, "tube.tail = {} must be a list"),
        ({**whole, "machine": {**whole["machine"], "start": True}}, "start = True, but states run"),
        ({**whole, "format": "fsa2lrnn-family-certificate"}, "'fsa2lrnn-family-certificate', version 1: this reads"),
        ({**whole, "ignore": "all"}, "ignore = 'all' must be 'lacked' or a list"),
        ({**whole, "ignore": [[1]]}, "is not a symbol"),
        ([], r"\[\] is not a certificate: it must be a JSON object"),
    ]
    for value, reason in damaged:
        path.write_text(json.dumps(value))
        with pytest.raises(UnsupportedFormat, match=f"certificate.json holds no certificate .*{reason}"):
            Certificate.load(path)
    for text in ('{"format"', "[" * 100_000, '{"horizon": ' + "9" * 5_000 + "}"):
        path.write_text(text)
        with pytest.raises(UnsupportedFormat, match=r"certificate\.json holds no certificate"):
            Certificate.load(path)
    with pytest.raises(FileNotFoundError):
        Certificate.load(tmp_path / "none.json")


PARITY = zoo.parity()


def smeared():
    """A compiled model whose gate takes 10⁻³⁰ away before the ReLU: its sums round, and its states close."""
    model = compile_machine(PARITY, normalisation="none")
    with torch.no_grad():
        model.layers[0].transition[0].bias -= 1e-30
    return model


@pytest.mark.long
def test_coverage_of_exact_and_of_rounding_models():
    for verdict in (
        prove_equivalent(compile_machine(PARITY), PARITY),
        prove_equivalent(compile_recurrence(PARITY), PARITY),
    ):
        assert isinstance(verdict, Proved)
        assert (verdict.covers.shapes, verdict.covers.threads) == (EVERY, None)
        assert "every shape of call, batch and number of threads" in verdict_text(verdict)
    rounds = prove_equivalent(smeared(), PARITY, 50)
    assert rounds.covers.environment == environment()
    assert rounds.to_json()["environment"] == list(environment())
    assert ", ".join(environment()) in verdict_text(rounds)
    exact = prove_equivalent(compile_machine(PARITY), PARITY)
    assert exact.covers.environment == ()
    assert exact.to_json()["environment"] == []
    machines = [PARITY, zoo.mod_arith(3), zoo.sum_mod(3), zoo.sum_mod(5), PARITY]
    settings = [{}, {"form": "cascade"}, {}, {}, {"layout": "index"}]
    recurrences = [compile_recurrence(machine, **each) for machine, each in zip(machines, settings, strict=True)]
    pairs = zip(recurrences, machines, strict=True)
    digests = [prove_equivalent(recurrence, machine).digest for recurrence, machine in pairs]
    assert digests == [model_digest(recurrence) for recurrence in recurrences]
    assert len(set(digests)) == len(digests)
    renamed = replace(recurrences[0], outputs=recurrences[0].outputs[::-1])
    assert model_digest(renamed) != digests[0]
    covers = of_certificate(certify(compile_machine(PARITY), PARITY, 1, work=1e6))
    assert (covers.shapes, covers.scans) == (EVERY, SCANS)
    assert set(STEPPING) == set(SCANS)


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
        LETTERS, ["sequential"], torch.get_num_threads(),
    )  # fmt: skip


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


@pytest.mark.parametrize("name", ["counter", "repeats", pytest.param("registers", marks=pytest.mark.slow)])
def test_enumerations_of_models_that_round_are_of_words_alone(stacks, name):
    recurrence, machine = stacks[name]
    exact = certify(lower(recurrence), machine, work=1e6)
    assert of_certificate(exact).shapes == EVERY
    model = lower(recurrence)
    with torch.no_grad():
        model.readout[0].weight *= 1 / 3
        model.readout[0].bias *= 1 / 3
    assert certify(model, machine, work=1e6).scans == model.methods  # it rounds by less than it leads
    with torch.no_grad():
        model.readout[2].bias += 2**20
    certificate = certify(model, machine, work=1e6)
    assert certificate.scans == ("sequential",)
    covers = of_certificate(certificate)
    assert (covers.shapes, covers.threads) == (LETTERS, torch.get_num_threads())
    assert covers.environment == environment()
    check(certificate, model)
