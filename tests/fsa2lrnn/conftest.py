"""Checks that every layer and every compiled loop must pass, as fixtures."""

import json
from copy import deepcopy

import pytest
import torch

from fsa2lrnn.nn import LRNN, LRNNConfig, compiled, load, save
from fsa2lrnn.nn.layers import LAYERS, Columns, name_of
from fsa2lrnn.training.run_folder import METRICS

WIDTH, LETTERS, WORDS = 8, 5, 3
LENGTHS = (1, 2, 39, 40, 500)


def drawn(config):
    """A layer whose weights are none of those that a new one has, in double precision."""
    torch.manual_seed(0)
    layer = LAYERS[name_of(config)].build(WIDTH, config, Columns("none", 2.0)).double()
    with torch.no_grad():
        for weight in layer.parameters():
            weight += 0.05 * torch.randn_like(weight)
    return layer


def by_steps(layer, u):
    state, outputs = layer.initial_state(len(u)), []
    for u_k in u.unbind(1):
        y, state = layer.step(u_k, state)
        outputs.append(y)
    return torch.stack(outputs, 1), state


def check_close(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


def check_sequences(config, lengths=LENGTHS):
    """Sequences, steps, words in pieces, rows by index and every method agree, before and after a longer word."""
    layer, rows = drawn(config), torch.randn(LETTERS, WIDTH, dtype=torch.float64)
    before = deepcopy(layer.state_dict())
    with torch.no_grad():
        for length in lengths:
            index = torch.randint(LETTERS, (WORDS, length))
            u, start = rows[index], layer.initial_state(WORDS)
            y, state = layer(u, start)
            check_close(by_steps(layer, u), (y, state))
            check_close([layer.outputs(u, start)], [y])
            if layer.takes_index:
                check_close(layer(rows, start, "auto", index), (y, state))
                check_close([layer.outputs(rows, start, "auto", index)], [y])
            for method in layer.methods:
                check_close(layer(u, start, method), (y, state))
            cut = length // 3
            first, between = layer(u[:, :cut], start)
            second, after = layer(u[:, cut:], between)
            check_close((torch.cat([first, second], 1), after), (y, state))
    assert all(torch.equal(layer.state_dict()[name], weight) for name, weight in before.items())
    assert layer.emit(layer.initial_state(2)).shape == (2, config.width)


def check_letters(config, length=40, words=12):
    """On words of few inputs, outputs alone and all gradients are those of rows that are written out."""
    layer, found = drawn(config), []
    rows = torch.randn(LETTERS, WIDTH, dtype=torch.float64).requires_grad_()
    index, dy = torch.randint(LETTERS, (words, length)), torch.randn(words, length, WIDTH, dtype=torch.float64)
    for given in ((rows, index), (rows[index], None)):
        y = layer.outputs(given[0], layer.initial_state(words), "auto", given[1])
        found.append([y, *torch.autograd.grad(y, [rows, *layer.parameters()], dy)])
    check_close(*found)


def check_model(config, folder, **options):
    """A model of two such layers is trained a step, saved, loaded, and streams a word in pieces."""
    torch.manual_seed(0)
    layers = tuple(config.at(i, 2) if hasattr(config, "at") else config for i in range(2))
    model = LRNN(LRNNConfig(tuple(range(LETTERS)), (0, 1), layers, embedding_dim=WIDTH, **options))
    tokens = torch.randint(LETTERS, (WORDS, 12))
    logits = model(tokens)
    logits.square().sum().backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())
    save(model, folder / "model.safetensors")
    again = load(folder / "model.safetensors")
    assert again.config == model.config
    assert torch.equal(again(tokens), logits)
    first, state = model.advance(tokens[:, :5], model.initial_state(WORDS))
    second, _ = model.advance(tokens[:, 5:], state)
    torch.testing.assert_close(torch.cat([first, second], 1), logits, rtol=1e-4, atol=1e-5)
    assert model.initial_logits().shape == (2,)


@pytest.fixture
def sequences():
    return check_sequences


@pytest.fixture
def on_letters():
    return check_letters


@pytest.fixture
def model_of(tmp_path):
    return lambda config, **options: check_model(config, tmp_path, **options)


@pytest.fixture
def same_by_any_threads(monkeypatch):
    """Asserts that a function's tensors are the same to the bit by 1, 2 and 3 threads, however little work there is."""
    monkeypatch.setattr(compiled, "WORTH_A_THREAD", 1)
    before = torch.get_num_threads()

    def check(results):
        found = []
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            found.append(results())
        for others in found[1:]:
            assert all(torch.equal(one, other) for one, other in zip(found[0], others, strict=True))

    yield check
    torch.set_num_threads(before)


@pytest.fixture
def read_records():
    """Reads the lines of metrics in the folder of a run."""
    return lambda folder: [json.loads(line) for line in (folder / METRICS).read_text(encoding="utf-8").splitlines()]
