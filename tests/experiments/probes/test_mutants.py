"""The kernels of the study are correct without a fault, and both kinds of tests can tell."""

from functools import partial

import pytest
import torch

from experiments import results_io
from experiments.probes import mutants, tables
from fsa2lrnn.probes import OPERATORS


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(mutants, "DTYPES", (torch.float32,))
    monkeypatch.setattr(mutants, "LENGTHS", (65,))
    monkeypatch.setattr(mutants.diagnose, "SECONDS", 0.0)


@pytest.mark.long_cases("chunked SSD", "recurrent gated delta rule")
@pytest.mark.parametrize("kernel", ["recurrent gated delta rule", "chunked SSD", "diagonal scan", "causal convolution"])
def test_kernels_without_a_fault_pass_all_tests(kernel):
    op, run, _, _ = mutants.KERNELS[kernel]
    assert mutants.probe(op, run) is None
    assert mutants.random_tests(OPERATORS[op], run) == (True, True)


@pytest.mark.long
def test_faults_are_caught_and_known():
    row = mutants.examine("diagonal scan", "no carry between blocks")
    assert row["probes"].startswith("chunk boundary")
    assert row["error ratio"]
    source = (tables.results_io.RESULTS.parent / "probes/kernels.py").read_text(encoding="utf-8")
    faults = [fault for entry in mutants.KERNELS.values() for fault in entry[2] + entry[3]]
    assert len(faults) >= 40
    injected = [f for f in [*faults, *(f for _, _, f in mutants.HISTORICAL)] if f not in mutants.kernels.TABLE]
    assert [f for f in injected if f'"{f}"' not in source] == []


@pytest.mark.parametrize(
    "fault", ["", *(f"decay {a}: {b}" for a in ("in K D Kᵀ", "of w") for b in ("base 2", "halved"))]
)
@pytest.mark.parametrize("kernel", ["chunked gated delta rule, own backward", "chunked KDA, own backward"])
def test_a_wrong_decay_before_the_inverse_is_caught_without_a_wrong_gradient(kernel, fault):
    op, run, faults, _ = mutants.KERNELS[kernel]
    assert not fault or fault in faults
    assert (mutants.probe(op, partial(run, fault=fault)) is not None) == bool(fault)


pytest.importorskip("triton")


def test_what_the_documentation_says_of_the_kernels():
    rows = results_io.read("probe_gpu")["results"]["kernels"]
    wrong = {(row["kernel"], row["dtype"]) for row in rows if tables._verdict(row).startswith("accumulation")}
    chunked = ("chunk_gated_delta_rule", "chunk_kda", "chunk_rwkv7", "chunk_simple_gla", "mamba_chunk_scan_combined")
    assert wrong == {(kernel, "float32") for kernel in chunked}
    assert len({row["kernel"] for row in rows}) == 17
