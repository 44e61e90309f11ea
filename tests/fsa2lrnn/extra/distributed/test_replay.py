"""Replayed steps train what steps by themselves do: on a GPU, and the bookkeeping where there is none."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.distributed import replay
from fsa2lrnn.extra.distributed.replay import GraphReplay
from fsa2lrnn.extra.distributed.stacked import train_stacked
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import TrainingRun, train

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="graphs are a GPU's")
TINY = Settings(
    "task:mod_arith(2)", embedding_dim=8, block=4, heads=2, layers=2, batch=16, length=7, test_length=9, test_words=5,
    steps=12, evaluate_every=4, stop_at=None, learning_rate=1e-2,
)  # fmt: skip
BACKBONE = {"connection": "full-residual", "optimiser": "adamw"}
LAYERS = {
    "block": {},
    "householder": {"layer": "householder", "normalisation": "none"},
    "s4": {"layer": "s4", **BACKBONE},
    "s4d": {"layer": "s4d", **BACKBONE},
    "liquid exact": {"layer": "liquid_s4", **BACKBONE},
    "liquid polyb": {"layer": "liquid_s4", "options": {"kernel": "polyb"}, "task": "task:sum_mod(3)", **BACKBONE},
    "s5": {"layer": "s5", **BACKBONE},
    "lru": {"layer": "lru", **BACKBONE},
    "rwkv4": {"layer": "rwkv4", "connection": "chain", "layer_norm": "readout", "gradient_clip": 1.0},
    "vanilla": {"layer": "vanilla", "gradient_clip": 1.0},
}


@pytest.fixture
def stood_in(monkeypatch):
    """Stand-ins for a GPU's streams and graphs: one that is replayed takes the step again."""
    recorded = []

    class Graph:
        def register_generator_state(self, generator):
            recorded.append(generator)

        def replay(self):
            self.step()

    def record(graph, **_):
        graph.step = record.step
        return nullcontext()

    def stream(device):
        return SimpleNamespace(device=device, wait_stream=bool)

    cuda = {
        "Stream": stream,
        "current_stream": stream,
        "stream": nullcontext,
        "graph": record,
        "CUDAGraph": Graph,
    }
    monkeypatch.setattr(replay.torch, "cuda", SimpleNamespace(**cuda))
    return SimpleNamespace(record=record, recorded=recorded)


def test_a_step_is_recorded_once_after_the_libraries_have_warmed_up(stood_in):
    calls, generator = [], torch.Generator()
    found = torch.zeros(())

    def step():
        calls.append(len(calls))
        return found.fill_(len(calls))

    stood_in.record.step = step
    steps = GraphReplay(step, generator)
    given = [int(steps()) for _ in range(6)]
    assert given[:3] == [1, 2, 3]
    assert given[3:] == [5, 6, 7]  # what is recorded is not run
    assert stood_in.recorded == [generator]


def test_what_a_replay_gave_is_not_overwritten_by_the_next(stood_in):
    found = torch.zeros(())
    stood_in.record.step = lambda: found.add_(1)
    steps = GraphReplay(stood_in.record.step, torch.Generator())
    for _ in range(4):
        steps()
    one, other = steps(), steps()
    assert int(other) == int(one) + 1


def test_a_step_that_cannot_be_recorded_is_refused_in_words(stood_in):
    def step():
        if not stood_in.recorded:
            return torch.zeros(())
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    stood_in.record.step = step
    steps = GraphReplay(step, torch.Generator())
    for _ in range(3):
        steps()
    with pytest.raises(UnsupportedFormat, match=r"recorded as a CUDA graph \(operation .* capturing\): set cuda_graph"):
        steps()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cuda_graph": True}, "cuda_graph = True with device = 'cpu': graphs are a GPU's"),
        ({"cuda_graph": True, "device": "cuda", "schedule": "cosine"}, "a graph holds its learning rate"),
        ({"cuda_graph": 1}, "cuda_graph = 1 must be true or false"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(UnsupportedFormat, match=message):
        replace(TINY, **changes)


def test_settings_say_of_graphs_only_where_there_are_some():
    """So that sweeps of before find their folders."""
    replayed = replace(TINY, device="cuda", cuda_graph=True)
    assert "cuda_graph" not in TINY.to_json()
    assert Settings.from_json(TINY.to_json()) == TINY
    assert Settings.from_json(replayed.to_json()) == replayed


@on_a_gpu
@pytest.mark.parametrize("name", LAYERS)
def test_replayed_steps_are_steps(name, tmp_path):
    settings = replace(TINY, device="cuda", **LAYERS[name])
    alone = train(settings, tmp_path / "alone")
    replayed = train(replace(settings, cuda_graph=True), tmp_path / "replayed")
    for one, other in zip(replayed.model.parameters(), alone.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    for one, other in zip(replayed.records, alone.records, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-3)


@on_a_gpu
@pytest.mark.parametrize("name", LAYERS)
def test_a_gpu_gives_what_the_cpu_gives(name, tmp_path):
    settings = replace(TINY, dtype="float64", **LAYERS[name])
    run = TrainingRun(settings, tmp_path, resume=False)
    batch = run.words.batch(5, 70, run.words.generator(0))
    outputs, gradients = [], []
    for device in ("cpu", "cuda"):
        model = run.model.to(device)
        logits = model(batch.tokens.to(device))
        found = torch.autograd.grad(logits.square().sum(), list(model.parameters()), materialize_grads=True)
        outputs.append(logits.detach().cpu())
        gradients.append([gradient.cpu() for gradient in found])
    torch.testing.assert_close(*outputs, rtol=1e-8, atol=1e-9)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)


@on_a_gpu
def test_replays_side_by_side_are_replays_alone(tmp_path):
    wanted = [replace(TINY, device="cuda", cuda_graph=True, **LAYERS[name]) for name in ("block", "s4", "rwkv4")]
    together = train_stacked([(each, tmp_path / f"together-{i}") for i, each in enumerate(wanted)])
    for i, (settings, outcome) in enumerate(zip(wanted, together, strict=True)):
        alone = train(settings, tmp_path / f"alone-{i}")
        for one, other in zip(outcome.model.parameters(), alone.model.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@on_a_gpu
def test_a_replayed_run_goes_on_where_it_stood(tmp_path):
    settings = replace(TINY, device="cuda", cuda_graph=True, layer="s4d", **BACKBONE)
    train(replace(settings, steps=8), tmp_path / "halved")
    halved, whole = train(settings, tmp_path / "halved"), train(settings, tmp_path / "whole")
    for one, other in zip(halved.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
