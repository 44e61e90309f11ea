"""Weights of the code published with the paper, against that architecture written out."""

import pytest
import torch

from experiments.paper_weights import from_paper_weights
from fsa2lrnn.errors import CheckpointError


def published(n_layers, heads=2, b=3, n_letters=4, n_outputs=5, dtype=torch.float64, seed=0):
    """Weights as the released code saves them, at random."""
    torch.manual_seed(seed)
    d, shapes = heads * b, {}
    for i in range(n_layers):
        shapes[f"layers.{i}.a0"] = (1, heads, b)
        for gate, hidden, out in (("gen_block", 7, d * b), ("gen_value", 6, d)):
            shapes |= {f"layers.{i}.{gate}.0.weight": (hidden, d), f"layers.{i}.{gate}.0.bias": (hidden,)}
            shapes |= {f"layers.{i}.{gate}.2.weight": (out, hidden), f"layers.{i}.{gate}.2.bias": (out,)}
        shapes |= {f"ln.{i}.weight": (d,), f"ln.{i}.bias": (d,)}
    shapes |= {"ln_final.weight": (d,), "ln_final.bias": (d,), "embedding.weight": (n_letters, d)}
    shapes |= {"Wo1.weight": (9, d), "Wo1.bias": (9,), "Wo2.weight": (n_outputs, 9), "Wo2.bias": (n_outputs,)}
    return {name: torch.randn(shape, dtype=dtype) for name, shape in shapes.items()}


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight + bias


def run_as_published(weights, n_layers, tokens, p=1.2):
    """Logits (B, T, |Γ|) of the released architecture, step by step."""
    x = weights["embedding.weight"][tokens]
    for i in range(n_layers):
        u = layer_norm(x, weights[f"ln.{i}.weight"], weights[f"ln.{i}.bias"])
        made = {}
        for gate in ("gen_block", "gen_value"):
            W1, b1, W2, b2 = (weights[f"layers.{i}.{gate}.{j}.{kind}"] for j in (0, 2) for kind in ("weight", "bias"))
            made[gate] = (u @ W1.T + b1).clamp(min=0) @ W2.T + b2
        state = weights[f"layers.{i}.a0"]
        _, heads, b = state.shape
        A = made["gen_block"].reshape(*tokens.shape, heads, b, b)
        A = A - A.mean(-2, keepdim=True)
        A = A / A.abs().pow(p).sum(-2).pow(1 / p).amax(-1)[..., None, None]
        v = made["gen_value"].reshape(*tokens.shape, heads, b)
        new, state = [], state.expand(len(tokens), heads, b)
        for k in range(tokens.shape[1]):
            state = torch.einsum("nhij,nhj->nhi", A[:, k], state) + v[:, k]
            new.append(state.reshape(len(tokens), heads * b))
        out = torch.stack(new, 1)
        x = out if i + 1 == n_layers else x + out
    x = layer_norm(x, weights["ln_final.weight"], weights["ln_final.bias"])
    return (x @ weights["Wo1.weight"].T + weights["Wo1.bias"]).clamp(min=0) @ weights["Wo2.weight"].T + weights[
        "Wo2.bias"
    ]


@pytest.mark.parametrize("n_layers", [1, 3])
@pytest.mark.parametrize("p", [1.2, 2.0])
def test_published_weights_compute_what_they_computed(n_layers, p):
    weights = published(n_layers)
    model = from_paper_weights(weights, alphabet="abcd", outputs=range(10, 15), p=p)
    assert (model.alphabet, model.outputs) == (tuple("abcd"), (10, 11, 12, 13, 14))
    for length in (1, 2, 30):
        tokens = torch.randint(4, (3, length))
        wanted = run_as_published(weights, n_layers, tokens, p)
        for method in ("auto", "sequential"):
            torch.testing.assert_close(model(tokens, method), wanted, rtol=1e-9, atol=1e-9)
    assert not torch.allclose(model(tokens), run_as_published(weights, n_layers, tokens, p=3.0))


def test_every_missing_and_unknown_weight_is_named():
    for name in published(2):
        with pytest.raises(CheckpointError, match=name.replace(".", r"\.") + " is missing"):
            from_paper_weights({old: tensor for old, tensor in published(2).items() if old != name})
    weights = published(1)
    weights |= {"ln.1.weight": weights["ln.0.weight"], "head.weight": weights["ln.0.weight"]}
    with pytest.raises(CheckpointError, match=r"ln\.1\.weight is not a weight .*; head\.weight is not a weight of"):
        from_paper_weights(weights)
    with pytest.raises(CheckpointError, match=r"layers\.1\.a0 is missing"):
        from_paper_weights(
            {name.replace("layers.1", "layers.4"): t for name, t in published(2).items() if "4" not in name}
        )
    with pytest.raises(CheckpointError, match=r"embedding\.weight is missing"):
        from_paper_weights({})
