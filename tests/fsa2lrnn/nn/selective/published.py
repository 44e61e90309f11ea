"""How far our selective layers are from numbers that their published code computed: the largest errors.

The script that computed the numbers from checkouts of the published code stands at commit 387f70e9; each file names its
repository and commit.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from fsa2lrnn.nn.layers import Columns, Layer, Shape, layer_named
from fsa2lrnn.nn.layers.slice_layer import SliceLayer

OUT = Path(__file__).parent / "data"
WIDTH, HEADS, KEYS, WORDS = 8, 2, 4, 2  # of the numbers


def files() -> list[Path]:
    """Return the files of numbers."""
    return sorted(OUT.glob("*.safetensors"))


def about(path: Path) -> dict[str, str]:
    """Return the layer, its options and the reference, with its commit, of a file."""
    with safe_open(path, "pt") as file:
        return dict(file.metadata())


def errors(path: Path) -> dict[str, float]:
    """Return the largest errors of our layer, relative to the largest number of each array, over all its methods."""
    arrays = {name: x if x.dtype == torch.bool else x.double() for name, x in load_file(path).items()}
    layer = of_file(path).double()
    weights = {name.removeprefix("param."): x for name, x in arrays.items() if name.startswith("param.")}
    layer.load_state_dict(weights)
    named = {name: x for name, x in layer.named_parameters() if f"grad.{name}" in arrays}
    assert len(named) == sum(name.startswith("grad.") for name in arrays)
    worst = {"forward": 0.0, "backward": 0.0, "steps": 0.0}

    def note(what: str, ours: Tensor, theirs: Tensor) -> None:
        worst[what] = max(worst[what], float((ours - theirs).detach().abs().max() / theirs.abs().max()))

    for method in ("auto", *layer.methods):
        u = arrays["input"].clone().requires_grad_()
        y = outputs(layer, layer(u, layer.initial_state(WORDS), method)[0])
        note("forward", y, arrays["output"])
        gradients = torch.autograd.grad((y * arrays["loss_weight"]).sum(), [u, *named.values()])
        note("backward", gradients[0], arrays["grad_input"])
        for name, gradient in zip(named, gradients[1:], strict=True):
            note("backward", gradient, arrays[f"grad.{name}"])
    state, steps = layer.initial_state(WORDS), list[Tensor]()
    for u_k in arrays["input"].unbind(1):
        y, state = layer.step(u_k, state)
        steps.append(y)
    note("steps", outputs(layer, torch.stack(steps, 1)), arrays["output"])
    return worst


def of_file(path: Path) -> Layer:
    """Return a new layer of ours for a file of numbers."""
    kind, options = layer_named(about(path)["layer"]), json.loads(about(path)["options"])
    return kind.build(WIDTH, kind.Config.of_shape(Shape(HEADS, KEYS), options), Columns("none", 2.0))


def outputs(layer: Layer, y: Tensor) -> Tensor:
    """Return what the published layer outputs: of SLiCE, the states without the flags."""
    if not isinstance(layer, SliceLayer):
        return y
    return y.unflatten(-1, (layer.n_heads, -1))[..., :-1].flatten(-2)
