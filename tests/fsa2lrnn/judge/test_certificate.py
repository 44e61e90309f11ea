"""Certificates on disk: what is read is what was written, and what is damaged is named."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.judge.certificate import Certificate, Sets, Tail, Tube

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
)


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
        replace(CERTIFICATE, method="enumeration", tube=None, margins=np.zeros(0)),
    ):
        certificate.save(tmp_path / "certificate.json")
        assert_alike(Certificate.load(tmp_path / "certificate.json"), certificate)
        json.dumps(certificate.to_json(), allow_nan=False)


def test_what_it_covers():
    assert CERTIFICATE.covers(11)
    assert not CERTIFICATE.covers(12)
    assert replace(CERTIFICATE, horizon=None).covers(10**12)
    assert (CERTIFICATE.memory, replace(CERTIFICATE, method="enumeration", tube=None).memory) == (2, 0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"method": "faith"}, "method 'faith' is not known"),
        ({"method": "enumeration"}, "has a tube if, and only if"),
        ({"tube": None}, "has a tube if, and only if"),
        ({"horizon": -1}, "horizon = -1"),
        ({"margins": np.ones((2, 2))}, "margins of shape .2, 2. and dtype float64: they are a row"),
        ({"margins": np.ones(2, bool)}, "margins of shape .2,. and dtype bool"),
    ],
)
def test_what_can_not_be_is_refused(changes, reason):
    with pytest.raises(UnsupportedFormat, match=reason):
        replace(CERTIFICATE, **changes)


def test_damaged_files_are_named(tmp_path):
    path = tmp_path / "certificate.json"
    whole = CERTIFICATE.to_json()
    damaged = [
        ({**whole, "format": "other"}, "format 'other'"),
        ({**whole, "version": 2}, "version 2"),
        ({name: value for name, value in whole.items() if name != "margins"}, "damaged .KeyError: 'margins'"),
        ({**whole, "margins": {**whole["margins"], "data": "!"}}, "damaged"),
        ({**whole, "margins": {**whole["margins"], "shape": [4]}}, "damaged"),
        ({**whole, "margins": {**whole["margins"], "dtype": "object"}}, "an array of 'object'"),
        ({**whole, "tube": {}}, "damaged"),
        *(({**whole, "horizon": value}, "damaged") for value in (1.5, True, "7", float("inf"))),
        *(({**whole, "slack": value}, "damaged") for value in ("0", None, False, 10**400)),
        ({**whole, "scans": "sequential"}, "'sequential' in place of list"),
        ({**whole, "scans": [["sequential"]]}, "in place of str"),
        ({**whole, "sha256": 7}, "7 in place of str"),
        *(({**whole, "tube": {**whole["tube"], "memory": value}}, "damaged") for value in (2.0, None, "2")),
        ({**whole, "tube": {**whole["tube"], "basis": [[1.0]]}}, "damaged"),
        ({**whole, "tube": {**whole["tube"], "tail": {}}}, ".. in place of list"),
        ([], "holds no certificate, but a JSON list"),
    ]
    for value, reason in damaged:
        path.write_text(json.dumps(value))
        with pytest.raises(UnsupportedFormat, match=reason):
            Certificate.load(path)
    for text in ('{"format"', "[" * 100_000, '{"horizon": ' + "9" * 5_000 + "}"):
        path.write_text(text)
        with pytest.raises(UnsupportedFormat, match="is damaged or no JSON file"):
            Certificate.load(path)
    with pytest.raises(FileNotFoundError):
        Certificate.load(tmp_path / "none.json")
