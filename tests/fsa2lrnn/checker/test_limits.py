"""What a check may take: small files that ask for much are refused; what is allocated is at most what is estimated."""

import json
import tracemalloc
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.checker.proof import MOST_WORK, WORK, allowed_work, demands
from fsa2lrnn.checker.replay import TubeReplay
from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.lrnn.switched import Readout, SwitchedAffine
from fsa2lrnn.verification.certificate import Certificate, Tube
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import CertificateRefused, check
from fsa2lrnn.verification.plain import plain

from .conftest import walks


def wide_tables(heads, b=1):
    """Tables of a model with many heads that is always right, and its machine."""
    readout = Readout.linear(torch.zeros(2, heads * b), torch.tensor([1.0, 0.0]))
    A = torch.full((2, heads, b, b), 0.5)
    return SwitchedAffine.of(A, torch.zeros(2, heads, b), torch.zeros(heads, b), readout), MooreMachine([[0], [0]], [0])


def small_certificate(tables, machine, start, lengths=None, directions=0, memory=1):
    """A certificate whose arrays compress to nearly nothing."""
    H, b = tables.x0.shape
    F = 2**memory
    tube = Tube(
        memory, memory, start, np.tile(np.eye(b), (F, H, 1, 1)), np.ones((F, H, b), bool), np.zeros(1, np.int64),
        np.zeros((1, directions, H, b)),
    )  # fmt: skip
    margins = np.full(lengths or start, 1e-9)
    return Certificate(
        len(margins), margins, "sets", "float32", ("sequential",), 0.0, tables.sha256, machine, tube
    )  # fmt: skip


def test_a_small_file_that_asks_for_much_memory_is_refused():
    tables, machine = wide_tables(512)
    certificate = small_certificate(tables, machine, 14)
    text = json.dumps(certificate.to_json())
    assert len(text) < 1_000
    with pytest.raises(CertificateRefused, match=r"holds 1\d\d,\d+,\d+ numbers at a time, its bound is 83,886,080: "):
        check(Certificate.from_json(json.loads(text)), tables)


def test_a_small_file_that_asks_for_much_work_is_refused_unless_more_is_allowed():
    tables, machine = wide_tables(64)
    certificate = small_certificate(tables, machine, 4, 16_000)
    with pytest.raises(CertificateRefused, match=r"takes \d+,\d+,\d+,\d+ operations, .* is 2,\d+,\d+,\d+: .*`work`"):
        check(certificate, tables)
    short = replace(certificate, horizon=40, margins=certificate.margins[:40])
    assert check(short, tables).horizon == 40
    with pytest.raises(CertificateRefused, match="its bound for a certificate of this size is 1,000:"):
        check(short, tables, work=1_000)


def test_a_certificate_may_ask_for_more_the_more_it_holds():
    tables, machine = wide_tables(64)
    certificate = small_certificate(tables, machine, 4)
    random = replace(certificate.tube, basis=np.random.default_rng(0).normal(size=certificate.tube.basis.shape))
    few, more = allowed_work(certificate.tube, certificate.margins), allowed_work(random, certificate.margins)
    assert WORK < few < 1.1 * WORK
    assert few + 2**19 * random.basis.nbytes / 2 < more < MOST_WORK
    large = replace(random, basis=np.random.default_rng(0).normal(size=(2, 64, 64, 64)))
    assert allowed_work(large, certificate.margins) == MOST_WORK


def test_what_certify_finds_is_within_the_bounds(drifting, forgetful):
    """Fixtures of one small model that drifts for thousands of letters, and of one that forgets."""
    for machine, tables in (drifting, forgetful):
        check(certify(tables, machine), tables)


@settings(max_examples=20)
@given(walks())
def test_no_more_is_allocated_than_is_estimated(walk):
    _, tables, goal, tube = walk
    numbers, _ = demands(tube, plain(tables), tube.start + 3)
    tracemalloc.start()
    try:
        with np.errstate(all="ignore"):
            for _ in islice(TubeReplay(plain(tables), goal.target, tube, Slack()).lengths(), tube.start + 3):
                pass
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most <= 2 * 8 * numbers + 500_000  # and what Python's own objects take
