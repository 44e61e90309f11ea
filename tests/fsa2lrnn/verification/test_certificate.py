"""Certificates on disk: what is read is what was written, and what is damaged is named."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.verdicts import Scope
from fsa2lrnn.verification.certificate import Certificate, Sets, Tail, Tube

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
    horizon=11,
    margins=np.array([0.5, np.inf, 1e-300, 1e300, -0.0]),
    method="sets",
    dtype="float32",
    scans=("sequential", "fused"),
    slack=1e-6,
    sha256="ab" * 32,
    machine=MooreMachine([[1, 0]], ["odd", 2], 0, [("a", 1)]),
    tube=TUBE,
    ignore=("odd",),
)
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


def test_what_is_read_is_what_was_written(tmp_path):
    for certificate in (
        CERTIFICATE,
        replace(CERTIFICATE, horizon=None),
        ENUMERATION,
    ):
        certificate.save(tmp_path / "certificate.json")
        assert_alike(Certificate.load(tmp_path / "certificate.json"), certificate)
        json.dumps(certificate.to_json(), allow_nan=False)


def test_a_file_with_the_header_of_before_ignores_what_the_model_lacks(tmp_path):
    whole = CERTIFICATE.to_json()
    assert whole["format"] == "fsa2lrnn-horizon-certificate"
    old = {name: value for name, value in whole.items() if name != "ignore"} | {"format": "fsa2lrnn-certificate"}
    (tmp_path / "old.json").write_text(json.dumps(old))
    found = Certificate.load(tmp_path / "old.json")
    assert (found.ignore, found.scope) == ("lacked", None)
    assert_alike(replace(found, ignore=("odd",)), CERTIFICATE)
    found.save(tmp_path / "new.json")
    assert_alike(Certificate.load(tmp_path / "new.json"), found)


def test_what_it_covers():
    assert CERTIFICATE.covers(11)
    assert CERTIFICATE.scope == Scope(2, 1, ("odd",))
    assert not CERTIFICATE.covers(12)
    assert replace(CERTIFICATE, horizon=None).covers(10**12)
    assert (CERTIFICATE.memory, ENUMERATION.memory) == (2, 0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"method": "faith"}, "method 'faith' is not known"),
        ({"method": "enumeration"}, "has a tube if, and only if"),
        ({"tube": None}, "has a tube if, and only if"),
        ({"horizon": -1}, "horizon = -1"),
        ({"margins": np.ones((2, 2))}, "margins of shape .2, 2. and dtype float64: they are a row"),
        ({"margins": np.ones(2, bool)}, "margins of shape .2,. and dtype bool"),
        ({"margins": [1.0]}, r"margins = \[1.0\] must be a ndarray"),
        ({"horizon": True}, "horizon = True must be a whole number or null"),
        ({"slack": np.nan}, "slack = nan must be a finite number"),
        ({"slack": True}, "slack = True must be a finite number"),
        ({"scans": ()}, r"scans = \(\): name at least one, each once"),
        ({"scans": ("fused", "fused")}, "name at least one, each once"),
        ({"sha256": None}, "sha256 = None must be text"),
    ],
)
def test_what_can_not_be_is_refused(changes, reason):
    with pytest.raises(UnsupportedFormat, match=reason):
        replace(CERTIFICATE, **changes)


@pytest.mark.parametrize(
    ("part", "changes", "reason"),
    [
        (TUBE, {"memory": True}, "memory = True must be a whole number"),
        (TUBE, {"start": 3.0}, "start = 3.0 must be a whole number"),
        (TUBE, {"stored": [SETS]}, "stored = .* must be a list"),
        (TUBE, {"stored": (TUBE,)}, r"stored\[0\] = .* must be a Sets"),
        (TUBE.tail[0], {"steps": 7.0}, "steps = 7.0 must be a whole number or null"),
        (SETS, {"length": np.float64(4)}, "length = .* must be a whole number"),
        (SETS, {"ball": 0.0}, "ball = 0.0 must be a ndarray"),
    ],
)
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
    with pytest.raises(UnsupportedFormat, match="margins and slack are of sets: an enumeration bounds neither"):
        replace(ENUMERATION, **claim)
    (name,) = claim
    assert name not in ENUMERATION.to_json()
    with pytest.raises(UnsupportedFormat, match=f"{name}: an enumeration has none, and nothing would check it"):
        Certificate.from_json(ENUMERATION.to_json() | {name: CERTIFICATE.to_json()[name]})


def test_damaged_files_are_named(tmp_path):
    path = tmp_path / "certificate.json"
    whole = CERTIFICATE.to_json()
    tube = whole["tube"]
    damaged = [
        ({**whole, "format": "other"}, "format 'other'"),
        ({**whole, "version": 2}, "version 2"),
        ({**whole, "version": True}, "version True"),
        ({**whole, "version": 1.0}, "version 1.0"),
        ({**whole, "claim": 1}, "certificate.claim is not known: remove it"),
        ({name: value for name, value in whole.items() if name != "margins"}, "certificate.margins is missing"),
        ({**whole, "margins": {**whole["margins"], "data": "!"}}, "certificate.margins is damaged"),
        ({**whole, "margins": {**whole["margins"], "shape": [4]}}, "are not the 32 bytes of its shape"),
        ({**whole, "margins": {**whole["margins"], "shape": [-1]}}, r"\[-1\] is not a valid shape"),
        ({**whole, "margins": {**whole["margins"], "dtype": "object"}}, "an array of 'object'"),
        ({**whole, "margins": {**whole["margins"], "size": 5}}, "expected are dtype, shape and data"),
        ({**whole, "tube": {}}, "certificate.tube.memory is missing; .*tube.directions is missing"),
        *(({**whole, "horizon": value}, "horizon = .* must be") for value in (1.5, True, "7", float("inf"))),
        *(({**whole, "slack": value}, "slack = .* must be") for value in ("0", None, False, 10**400, 10**40)),
        ({**whole, "scans": "sequential"}, "scans = 'sequential' must be a list"),
        ({**whole, "scans": [["sequential"]]}, r"scans\[0\] = \['sequential'\] must be text"),
        ({**whole, "sha256": 7}, "sha256 = 7 must be text"),
        *(({**whole, "tube": {**tube, "memory": value}}, "tube.memory = .* must") for value in (2.0, None, "2", True)),
        ({**whole, "tube": {**tube, "basis": [[1.0]]}}, r"tube.basis: .* is not an array"),
        ({**whole, "tube": {**tube, "tail": {}}}, "tube.tail = {} must be a list"),
        ({**whole, "machine": {**whole["machine"], "start": True}}, "start = True, but states run"),
        ({**whole, "format": "fsa2lrnn-family-certificate"}, "'fsa2lrnn-family-certificate', version 1: this reads"),
        ({**whole, "format": "fsa2lrnn-certificate"}, "ignore is not known in a file of format 'fsa2lrnn-certificate'"),
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
