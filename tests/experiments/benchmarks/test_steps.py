"""The networks that are compared are one function, and the benchmark measures what it says, at a small size."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from experiments.benchmarks import steps as bench_steps
from fsa2lrnn.lrnn import normalise, scans
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.training.settings import preset


def small(task="task:sum_mod(5)", layers=1):
    return preset("released", task, layers=layers, block=2, heads=4, embedding_dim=8, batch=6, length=9)


@pytest.mark.parametrize("layers", [1, 3])
def test_all_networks_have_the_same_loss_and_gradients(layers):
    model, batch = bench_steps.prepare(small(layers=layers))
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


@pytest.mark.parametrize("name", bench_steps.FORWARDS)
def test_steps_learn(name):
    settings = preset("quick", "task:sum_mod(5)", block=2, heads=4, embedding_dim=8, batch=6, length=9)
    model, batch = bench_steps.prepare(settings)

    def loss():
        with torch.no_grad():
            return float(bench_steps.loss(model(batch.tokens), batch))

    before, update = loss(), bench_steps.step(model, name, batch, settings)
    for _ in range(10):
        update()
    assert loss() < before


def test_a_deep_network_is_measured_against_its_matrix_products(monkeypatch):
    monkeypatch.setattr(bench_steps, "TURNS", 1)
    row = bench_steps.measure(small("task:mod_arith(5)", layers=2), 1)
    milliseconds = row["milliseconds"]
    assert set(milliseconds) == {*bench_steps.FORWARDS, bench_steps.FLOOR}
    assert row["ours_over_floor"] == milliseconds["ours"] / milliseconds[bench_steps.FLOOR]
    assert row["over_ours"].keys() == bench_steps.FORWARDS.keys() - {"ours"}
    for name, ratio in row["over_ours"].items():
        assert ratio == milliseconds[name] / milliseconds["ours"] > 0


def test_a_network_of_one_layer_has_no_floor(monkeypatch):
    monkeypatch.setattr(bench_steps, "TURNS", 1)
    row = bench_steps.measure(small(), 1)
    assert bench_steps.FLOOR not in row["milliseconds"]
    assert "ours_over_floor" not in row


def test_the_floor_is_three_products_for_each_linear_map_of_the_layers(monkeypatch):
    settings, shapes, multiply = small(layers=2), [], torch.mm
    model, _ = bench_steps.prepare(settings)

    def watch(left, right, out):
        shapes.append((*left.shape, right.shape[1]))
        return multiply(left, right, out=out)

    monkeypatch.setattr(torch, "mm", watch)
    bench_steps.matrix_products([model.layers[1]], 7)()
    maps = [m for m in model.layers[1].modules() if isinstance(m, nn.Linear)]
    wanted = [
        shape for m in maps for d, e in [(m.in_features, m.out_features)] for shape in [(7, d, e), (7, e, d), (e, 7, d)]
    ]
    assert len(maps) == 4
    assert shapes == wanted


def test_ours_are_the_model_itself_and_compile_no_scan_in_torch_alone(monkeypatch):
    assert bench_steps.FORWARDS[bench_steps.OURS] is LRNN.forward

    def refuse(*_):
        raise RuntimeError("compiled")

    for known in (scans.METHODS, scans.TOKEN_METHODS, normalise.METHODS):
        monkeypatch.setitem(known, "fused", refuse)
    settings = preset("released", "task:sum_mod(5)", layers=2, batch=16)
    model, batch = bench_steps.prepare(settings)
    bench_steps.loss(bench_steps.FORWARDS[bench_steps.TORCH](model, batch.tokens), batch).backward()
    with pytest.raises(RuntimeError, match="compiled"):
        bench_steps.FORWARDS[bench_steps.OURS](model, batch.tokens)
