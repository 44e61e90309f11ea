"""What each layer reads: widths, and "concat" against the recurrence written out; configurations."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import layer_norm

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import LRNN, BlockLayerConfig, IndexLayerConfig, LRNNConfig
from fsa2lrnn.nn.scans import METHODS

SIZES = ((2, 2), (3, 1), (1, 1, 1))
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
WIRINGS = [
    {"token_shift": shift, "layer_norm": norm} for shift, norm in itertools.product((False, True), (False, True))
]


def concat_model(dtype=torch.float64, **options):
    torch.manual_seed(0)
    layers = tuple(BlockLayerConfig(sizes, 6, 5) for sizes in SIZES)
    config = LRNNConfig(tuple("abc"), (0, 1, 2, 3), layers, 3, 7, connection="concat", **options)
    model = LRNN(config).to(dtype)
    with torch.no_grad():
        for norm in model.norms:  # new norms scale by 1 and shift by 0, and would hide that they are not applied
            norm.weight += 0.3 * torch.randn_like(norm.weight)
            norm.bias += 0.3 * torch.randn_like(norm.bias)
        probe = torch.randint(3, (5, 20), generator=torch.Generator().manual_seed(0))
        model.readout[2].bias -= model(probe).mean((0, 1))  # or one output would win on every word
    return model


def slowly(model, tokens):
    """Logits by the definition: each word and letter for itself, layer by layer, head by head, from the weights."""
    config, weights = model.config, dict(model.named_parameters())

    def mlp(name, z):
        hidden = torch.relu(weights[f"{name}.0.weight"] @ z + weights[f"{name}.0.bias"])
        return weights[f"{name}.2.weight"] @ hidden + weights[f"{name}.2.bias"]

    def normed(i, z):
        return layer_norm(z, z.shape, weights[f"norms.{i}.weight"], weights[f"norms.{i}.bias"]) if model.norms else z

    def read_by(i, first, x):
        return normed(i, torch.cat([first, *(part for below in x[:i] for part in below)]))

    def start(i):
        b = max(SIZES[i])
        real = torch.arange(b) < torch.tensor(SIZES[i])[:, None]
        return list((weights[f"layers.{i}.x0"] * real).unbind())

    def step(i, u, x):
        b, heads = max(SIZES[i]), []
        A, v = mlp(f"layers.{i}.transition", u).reshape(-1, b, b), mlp(f"layers.{i}.value", u).reshape(-1, b)
        for h, size in enumerate(SIZES[i]):
            block = A[h, :size, :size]
            block = block / (block.abs() ** config.p).sum(0).pow(1 / config.p).clamp(min=1)
            heads.append(torch.cat([block @ x[h][:size] + v[h, :size], torch.zeros(b - size, dtype=x[h].dtype)]))
        return heads

    rows = []
    for word in tokens.tolist():
        x = [start(i) for i in range(len(SIZES))]
        before = [read_by(i, torch.zeros(config.embedding_dim, dtype=model.dtype), x) for i in range(len(SIZES))]
        for letter in word:
            for i in range(len(SIZES)):
                u = read_by(i, weights["embedding.weight"][letter], x)
                x[i] = step(i, torch.cat([u, before[i]]) if config.token_shift else u, x[i])
                before[i] = u
            rows.append(mlp("readout", normed(len(SIZES), torch.cat([part for layer in x for part in layer]))))
    return torch.stack(rows).reshape(*tokens.shape, -1) if rows else torch.zeros(*tokens.shape, 4, dtype=model.dtype)


def logits_and_gradients(model, logits):
    weight = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).reshape(logits.shape)
    model.zero_grad(set_to_none=True)
    if logits.requires_grad:
        (logits * weight).sum().backward()
    return [logits.detach(), *(torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters())]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("options", WIRINGS, ids=str)
def test_concat_is_the_recurrence_letter_by_letter(options, length, batch, dtype):
    model = concat_model(dtype, **options)
    tokens = torch.randint(3, (batch, length), generator=torch.Generator().manual_seed(length))
    reference = logits_and_gradients(model, slowly(model, tokens))
    for method in METHODS:
        for wanted, found in zip(reference, logits_and_gradients(model, model(tokens, method)), strict=True):
            torch.testing.assert_close(found, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("options", WIRINGS, ids=str)
def test_the_read_out_of_the_start_sees_all_x0_and_no_letter(options):
    model = concat_model(**options)
    x0 = torch.cat([layer.initial_state(1).flatten() for layer in model.layers])
    logits = model.initial_logits()
    torch.testing.assert_close(logits, model.readout(model._norm(len(SIZES), x0)), rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        model.embedding.weight.fill_(7)
    assert torch.equal(model.initial_logits(), logits)


LAYER = BlockLayerConfig((8, 8), 16, 16)
GOOD = {"alphabet": ("a", "b"), "outputs": (False, True), "layers": (LAYER,), "embedding_dim": 16}


@pytest.mark.parametrize(("change", "message"), [
    ({"alphabet": ()}, "must each have at least one entry"),
    ({"layers": ()}, "must each have at least one entry"),
    ({"outputs": (1, 1)}, r"outputs = \(1, 1\): the entries must be distinct"),
    ({"embedding_dim": 0}, "embedding_dim = 0"),
    ({"normalisation": "batch"}, "normalisation 'batch' is not known: one of clip, paper, none"),
    ({"p": 0.5}, r"p = 0.5: a column norm needs a finite p of at least 1"),
    ({"p": float("inf")}, "p = inf"),
    ({"p": float("nan")}, "p = nan"),
    ({"connection": "skip"}, "connection 'skip' is not known: one of chain, residual, full-residual, concat"),
    ({"connection": "residual", "layers": (BlockLayerConfig((3,), 4, 4), LAYER)}, "3 wide and the residual stream 16"),
    ({"layers": (IndexLayerConfig(3, 2), LAYER)}, "must be the only layer"),
    ({"layers": (IndexLayerConfig(3, 2),), "token_shift": True}, "an index layer takes no token_shift"),
    ({"layers": (IndexLayerConfig(3, 2),), "connection": "concat"}, "and no connection but chain"),
    ({"normalisation": "paper", "layers": (BlockLayerConfig((2, 3), 4, 4),)}, "paper rule takes blocks of one"),
])  # fmt: skip
def test_a_bad_value_is_named(change, message):
    with pytest.raises(UnsupportedFormat, match=message):
        LRNNConfig(**{**GOOD, **change})
    for sizes in ((), (0,), (3, -1)):
        with pytest.raises(UnsupportedFormat, match="give at least one block, each of size 1 or more"):
            BlockLayerConfig(sizes, 1, 1)
    with pytest.raises(UnsupportedFormat, match="value_hidden = 0"):
        BlockLayerConfig((2,), 1, 0)


def test_the_widest_step_counts_gates_and_streams_too():
    """Memory is planned by it: channels have few entries in A and may yet have wide gates."""
    channels = BlockLayerConfig((1, 1), 3, 3)
    config = LRNNConfig("ab", (0, 1), (channels, channels), embedding_dim=5, readout_hidden=2, connection="concat")
    assert (config.stream_widths, config.entries_per_token) == ([5, 7, 4], 7)
    assert replace(config, token_shift=True).entries_per_token == 14
    assert replace(config, layers=(BlockLayerConfig((1, 1), 3, 30), channels)).entries_per_token == 30
    assert replace(config, layers=(BlockLayerConfig((4, 1), 3, 3), channels)).entries_per_token == 32
    assert replace(config, readout_hidden=50).entries_per_token == 50
