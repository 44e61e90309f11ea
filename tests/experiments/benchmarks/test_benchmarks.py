"""The benchmarks measure what they say, on small sizes."""

import re
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

from experiments.benchmarks import checkouts, hard, layers, paper_speed, plain_layers
from experiments.benchmarks import machines as bench_machines
from experiments.benchmarks import scans as bench_scans
from experiments.benchmarks import steps as bench_steps
from experiments.benchmarks import words as bench_words
from experiments.benchmarks.baselines import authors_pscan, authors_sequential
from experiments.benchmarks.paper_speed import BLOCKS, CASES, NAMES
from experiments.benchmarks.steps import FORWARDS, prepare
from fsa2lrnn.automata import zoo
from fsa2lrnn.lrnn import normalise, scan, scans
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.scans.hard import hard_scan
from fsa2lrnn.training.settings import preset


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


def test_cases_name_what_they_measure_and_compute_the_same():
    torch.manual_seed(1)
    A, u, x0 = torch.randn(1, 7, 2, 2), torch.randn(1, 7, 2), torch.randn(1, 2)
    for baseline in (authors_sequential, authors_pscan):
        x = baseline(A[:, :, None], u[:, :, None], x0)
        assert [round(value, 4) for value in x[0, -1, 0].tolist()] == [2.5068, -0.6256]
    assert {"scan block", "step sum_mod(5) block", "s4 letters 128x40"} <= set(checkouts.CASES)
    drawn = torch.Generator().manual_seed(0)
    logits, index = torch.randn(3, 2, 4, 4, generator=drawn), torch.randint(3, (5, 7), generator=drawn)
    state = torch.eye(4)[torch.randint(4, (5, 2), generator=drawn)]
    wanted = hard_scan(index, logits, state)
    assert torch.equal(hard.by_einsum(index, logits, state), wanted)
    assert torch.equal(hard.by_tables(index, logits, state), wanted)


@pytest.mark.parametrize("of", ["letters", "inputs"])
def test_a_step_of_a_layer_runs(of):
    checkouts.layer_step("s5", of, 2, 7)()


@pytest.mark.parametrize("name", layers.SCANS)
def test_the_recurrences_that_are_compared_are_one_function(name):
    steps = layers.scan_steps(name, 2, 12)
    found = []
    for action in steps.values():
        action()
        found.append([weight.grad.clone() for weight in action.args[1]])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_streams_and_machines_are_the_same_each_time():
    text = b"".join(bench_machines.letters(1_000_003)).decode()
    assert len(text) == 1_000_003
    assert zoo.mod_arith(5).transduce(text[:2000])[-2] != "error"
    text = b"".join(bench_machines.letters(801)).decode()
    assert eval(text) % 5 == bench_machines.value_of_letters(801) == zoo.mod_arith(5).transduce(text)[-1]
    assert bench_machines.random_machine(50, 3) == bench_machines.random_machine(50, 3)


@pytest.mark.parametrize(("block", "heads"), BLOCKS)
def test_the_networks_are_one_function(block, heads):
    rule = "paper" if block > 1 else "clip"
    settings = preset("paper", "task:sum_mod(5)", block=block, heads=heads, normalisation=rule, length=9, batch=2)
    model, batch = prepare(settings)
    model.double()
    with torch.no_grad():
        first, *others = (FORWARDS[name](model, batch.tokens) for name in NAMES)
    for other in others:
        torch.testing.assert_close(other, first, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in plain_layers.FORWARDS if name != "s4"])
def test_plain_layers_are_ours(name):
    layer = layers.new_layer(name)
    u = torch.randn(2, 12, layers.WIDTH, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for weight in layer.parameters():
            weight += 0.02 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    ours, plain = layer.outputs(u, layer.initial_state(2)), plain_layers.FORWARDS[name](layer, u)
    torch.testing.assert_close(plain, ours, rtol=1e-3, atol=1e-3)


def test_the_plain_s4_is_ours_with_its_c_as_the_released_code_keeps_it():
    from fsa2lrnn.extra.baselines.channels import complex_of
    from fsa2lrnn.extra.baselines.kernels.generating import untruncated

    layer = layers.new_layer("s4")
    u = torch.randn(2, 13, layers.WIDTH, generator=torch.Generator().manual_seed(0))
    plain = plain_layers.s4(layer, u)
    with torch.no_grad():
        C = untruncated(layer.system().transition, complex_of(layer.C), 13)
        layer.C.copy_(torch.view_as_real(C).float())
    torch.testing.assert_close(plain, layer.outputs(u, layer.initial_state(2)), rtol=1e-2, atol=1e-2)


def test_lengths_and_counters():
    assert bench_scans.measure_length(5, 2)["nanoseconds_a_letter"] > 0

    for n, pattern in bench_words.COUNTING.items():
        machine = bench_words.counter(n)
        for seed in range(50):
            word = "".join(np.random.default_rng(seed).choice(list("ab"), size=seed))
            assert machine.accepts(word) == (re.fullmatch(pattern, word) is not None)


def small(task="task:sum_mod(5)", layers=1):
    return preset("paper", task, layers=layers, block=2, heads=4, embedding_dim=8, batch=6, length=9)


@pytest.mark.slow
def test_rates_and_ratios_are_of_the_same_actions(monkeypatch):
    monkeypatch.setattr(bench_words, "LETTERS", 10_000)
    monkeypatch.setattr(bench_words, "SLOW_LETTERS", 1_000)
    monkeypatch.setattr(bench_words, "BATCH", 10)
    found = bench_words.measure(bench_words.counter(5), None)
    rates = found["million_letters_a_second"]
    assert min(rates.values()) > 0
    for name, over in found["over"].items():
        assert over["automata-lib"] == rates[name] / rates["automata-lib"]


MEASURED = {
    "hard": lambda: hard.measure(2, 3, 2, 2),
    "layers": lambda: layers.measure("s4d", 2, 12),
    "scans": lambda: bench_scans.measure(1, 3, 2, 2),
    "training": lambda: paper_speed.measure(CASES[0][0], 5, 2, 4, embedding_dim=8, batch=3),
    "steps": lambda: bench_steps.measure(small("task:mod_arith(5)", layers=2), 1),
}


@pytest.mark.parametrize("name", MEASURED)
def test_every_way_has_a_time_and_every_ratio_is_one(name, monkeypatch):
    for module in (layers, bench_scans, paper_speed, bench_steps):
        monkeypatch.setattr(module, "TURNS", 1)
    row = MEASURED[name]()
    ratios = {key: ratio for key, ratio in row.items() if "over" in key and ratio is not None}
    assert min(row["milliseconds"].values()) > 0
    assert len(row["milliseconds"]) > 1
    assert ratios
    for ratio in ratios.values():
        assert min(ratio.values() if isinstance(ratio, dict) else [ratio]) > 0


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
    settings = preset("paper", "task:sum_mod(5)", layers=2, batch=16)
    model, batch = bench_steps.prepare(settings)
    bench_steps.loss(bench_steps.FORWARDS[bench_steps.TORCH](model, batch.tokens), batch).backward()
    with pytest.raises(RuntimeError, match="compiled"):
        bench_steps.FORWARDS[bench_steps.OURS](model, batch.tokens)
