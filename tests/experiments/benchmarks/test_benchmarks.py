"""The benchmarks measure what they say, on small sizes."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from experiments.benchmarks import paper_speed
from experiments.benchmarks import scans as bench_scans
from experiments.benchmarks import steps as bench_steps
from experiments.benchmarks.baselines import authors_pscan, authors_sequential
from experiments.benchmarks.paper_speed import BLOCKS, CASES
from fsa2lrnn.nn import scan
from fsa2lrnn.training.settings import preset


@pytest.mark.long_cases("1-authors_pscan", "1-authors_sequential")
@pytest.mark.parametrize("baseline", [authors_pscan, authors_sequential])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 13])
def test_a_baseline_is_a_scan_forward_and_backward(length, baseline):
    generator = torch.Generator().manual_seed(0)
    A = torch.linalg.qr(torch.randn(2, length, 3, 4, 4, generator=generator, dtype=torch.float64)).Q
    v, x0 = (torch.randn(*shape, 3, 4, generator=generator, dtype=torch.float64) for shape in ((2, length), ()))
    results = []
    for run in (baseline, lambda *inputs: scan(*inputs, method="sequential")):
        inputs = [t.clone().requires_grad_() for t in (A, v, x0)]
        x = run(*inputs)
        (x * torch.linspace(-1, 1, x.numel()).reshape(x.shape)).sum().backward()
        results.append([x, *(t.grad for t in inputs)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def small(task="task:sum_mod(5)", layers=1):
    return preset("paper", task, layers=layers, block=2, heads=4, embedding_dim=8, batch=6, length=9)


MEASURED = {
    "scans": lambda: bench_scans.measure(1, 3, 2, 2),
    "training": lambda: paper_speed.measure(CASES[0][0], 5, 2, 4, embedding_dim=8, batch=3),
    "steps": lambda: bench_steps.measure(small("task:mod_arith(5)", layers=2), 1),
}


@pytest.mark.long_cases("scans", "steps")
@pytest.mark.parametrize("name", sorted(MEASURED))
def test_every_way_has_a_time_and_every_ratio_is_one(name, monkeypatch):
    for module in (bench_scans, paper_speed, bench_steps):
        monkeypatch.setattr(module, "TURNS", 1)
    row = MEASURED[name]()
    ratios = {key: ratio for key, ratio in row.items() if "over" in key and ratio is not None}
    assert min(row["milliseconds"].values()) > 0
    assert len(row["milliseconds"]) > 1
    assert ratios
    for ratio in ratios.values():
        assert min(ratio.values() if isinstance(ratio, dict) else [ratio]) > 0


PAPER = [{"block": block, "heads": heads, "normalisation": "paper" if block > 1 else "clip"} for block, heads in BLOCKS]


@pytest.mark.long_cases("changes2")
@pytest.mark.parametrize("changes", [{}, {"layers": 3}, *PAPER])
def test_all_networks_have_the_same_loss_and_gradients(changes):
    model, batch = bench_steps.prepare(replace(small(), **changes))
    model.double()
    found = []
    for forward in bench_steps.FORWARDS.values():
        copy = deepcopy(model)
        loss = bench_steps.loss(forward(copy, batch.tokens), batch)
        loss.backward()
        found.append([loss, *(weight.grad for weight in copy.parameters())])
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)
