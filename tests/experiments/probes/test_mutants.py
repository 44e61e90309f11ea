"""The kernels of the study are correct without a fault, and both kinds of tests can tell."""

import pytest
import torch

from experiments.probes import mutants, tables
from fsa2lrnn.extra.probes import OPERATORS


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(mutants, "DTYPES", (torch.float32,))
    monkeypatch.setattr(mutants, "LENGTHS", (65,))


@pytest.mark.parametrize("kernel", ["recurrent gated delta rule", "chunked SSD", "diagonal scan", "causal convolution"])
def test_kernels_without_a_fault_pass_all_tests(kernel):
    op, run, _, _ = mutants.KERNELS[kernel]
    assert mutants.probe(op, run) is None
    assert mutants.random_tests(OPERATORS[op], run) == (True, True)


def test_faults_are_caught_and_known():
    row = mutants.examine("diagonal scan", "no carry between blocks")
    assert row["probes"].startswith("chunk boundary")
    assert row["error ratio"]
    source = (tables.results_io.RESULTS.parent / "probes/kernels.py").read_text(encoding="utf-8")
    faults = [fault for entry in mutants.KERNELS.values() for fault in entry[2] + entry[3]]
    assert len(faults) >= 40
    assert [f for f in [*faults, *(f for _, _, f in mutants.HISTORICAL)] if f'"{f}"' not in source] == []
