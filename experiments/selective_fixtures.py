"""Numbers that the published code of each selective layer computes, and how far ours are from them.

    python -m experiments.selective_fixtures                        # the largest errors
    python -m experiments.selective_fixtures --references FOLDER    # the numbers anew, then the errors

FOLDER holds checkouts of flash-linear-attention, mamba, RWKV-LM, expressive-sparse-state-space-model,
structured-linear-cdes, xlstm and minGRU-pytorch, each with a file COMMIT; einops has to be importable. Only numbers are
written.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from experiments import results_io, script
from experiments.selective_references import HEADS, KEYS, LENGTH, REFERENCES, WIDTH, Reference
from fsa2lrnn.nn.fla import to_fla, wrap_fla
from fsa2lrnn.nn.layers import Columns, Layer, Shape, layer_named
from fsa2lrnn.nn.layers.slice_layer import SliceLayer

OUT = Path(__file__).parent.parent / "tests/fsa2lrnn/nn/selective/data"
WORDS = 2


def main(
    references: Annotated[Path | None, typer.Option(help="the folder of checkouts", exists=True)] = None,
) -> None:
    """Write a file per layer and options into the tests' data, and results/selective_errors.json."""
    OUT.mkdir(parents=True, exist_ok=True)
    for name, reference in REFERENCES.items() if references is not None else ():
        assert references is not None
        folder = references / reference.repository
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = reference.build(folder)
        write(name, reference, module, (folder / "COMMIT").read_text("utf-8").strip())
        torch.set_default_dtype(torch.float32)
    rows = {path.stem: {**about(path), **errors(path)} for path in files()}
    results_io.write("selective_errors", rows, "python -m experiments.selective_fixtures")
    table = Table("numbers", "layer", "forward", "backward", "steps")
    for name, row in rows.items():
        table.add_row(name, str(row["layer"]), *(f"{row[key]:.0e}" for key in ("forward", "backward", "steps")))
    Console().print(table)


def files() -> list[Path]:
    """Return the files of numbers."""
    return sorted(OUT.glob("*.safetensors"))


def check_carried(reference: Reference, module: nn.Module) -> None:
    """Assert that `wrap_fla` and `to_fla` carry the weights of a layer of flash-linear-attention there and back."""
    if reference.repository != "flash-linear-attention":
        return
    layer, u = wrap_fla(module), torch.randn(WORDS, LENGTH, WIDTH)
    torch.testing.assert_close(layer(u, layer.initial_state(WORDS))[0], module(u)[0], rtol=1e-9, atol=1e-9)
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    with torch.no_grad():
        for weight in module.parameters():
            weight.zero_()
    to_fla(layer, module)
    assert all(torch.equal(weight, before[name]) for name, weight in module.state_dict().items())


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


def write(name: str, reference: Reference, module: nn.Module, commit: str) -> None:
    """Run a module on random words with random weights, and write inputs, weights, outputs and gradients."""
    check_carried(reference, module)
    rename = reference.names or (lambda key, value: (key, value))
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.2 * torch.randn_like(weight)).copy_(weight.float().double())
    u = torch.randn(WORDS, LENGTH, WIDTH).float().double().requires_grad_()
    y = module(u)
    y = y[0] if isinstance(y, tuple) else y
    loss_weight = torch.randn_like(y).float().double()
    named = {key: weight for key, weight in module.named_parameters() if weight.requires_grad}
    gradients = torch.autograd.grad((y * loss_weight).sum(), [u, *named.values()], allow_unused=True)
    arrays = {"input": u, "output": y, "loss_weight": loss_weight, "grad_input": gradients[0]}
    for key, weight in module.state_dict().items():
        ours, value = rename(key, weight)
        arrays[f"param.{ours}"] = value
    for key, gradient in zip(named, gradients[1:], strict=True):
        if gradient is not None:
            ours, value = rename(key, gradient)
            arrays[f"grad.{ours}"] = value
    stored = {
        key: array.detach().to(torch.bool if array.dtype == torch.bool else torch.float32).contiguous()
        for key, array in arrays.items()
        if not key.endswith(".")
    }
    options, of = json.dumps(reference.options), f"{reference.repository}@{commit}"
    save_file(stored, OUT / f"{name}.safetensors", {"layer": reference.layer, "options": options, "reference": of})


if __name__ == "__main__":
    script.run(main)
