"""Readers of models, and of weights that others have released."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as to_bytes

from experiments.paper_weights import from_paper_weights
from fsa2lrnn import compile_machine, zoo
from fsa2lrnn.nn import LRNN, BlockLayerConfig, HouseholderLayerConfig, LRNNConfig, load
from fsa2lrnn.nn import checkpoint as models
from fsa2lrnn.nn.tensor_file import _in_order, digest
from fsa2lrnn.reading import parse_json
from tests.fuzz.base import Reader
from tests.fuzz.mutate import HOSTILE, encoded, in_bytes, in_json, json_text
from tests.fuzz.readers.hostile import of_json
from tests.fuzz.readers.machines import machines


@cache
def networks() -> list[LRNN]:
    torch.manual_seed(0)
    small = LRNNConfig(
        ("a", "b"), (0, 1), (BlockLayerConfig((2, 1), 3, 2),) * 2, 4, 3, "clip", 1.2, "chain", True, True
    )
    householder = LRNNConfig(("a",), (0, None), (HouseholderLayerConfig(2, 2, 3, 3, 2, True),), 4, 3)
    models = [compile_machine(zoo.parity(), layout=layout) for layout in ("dense", "index")]
    return [*models, LRNN(small), LRNN(householder), compile_machine(machines()[-1])]


def model_file(tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> bytes:
    return _in_order(to_bytes(tensors, {"sha256": digest(tensors)} | metadata))


@cache
def model_files() -> list[tuple[dict[str, torch.Tensor], dict[str, str]]]:
    form = {"format": models.FORM.name, "version": str(models.FORM.version)}
    return [
        (
            {name: x.contiguous() for name, x in model.state_dict().items()},
            form | {"config": json.dumps(model.config.to_json())},
        )
        for model in networks()
    ]


def with_other_header(content: bytes, rng: random.Random, own: list[Any]) -> bytes:
    """A safetensors file with values of its header changed."""
    size = int.from_bytes(content[:8], "little")
    header = encoded(json_text(in_json(json.loads(content[8 : 8 + size]), rng, own), rng))
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def other_tensors(tensors: dict[str, torch.Tensor], rng: random.Random) -> dict[str, torch.Tensor]:
    """A tensor more or less, or one of another shape, type or name."""
    tensors = dict(tensors)
    name = rng.choice(list(tensors))
    shape = rng.choice(((), (0,), (1,), (3, 3), (0, 1 << 40), (1, 1, 1, 1, 1), (1000,)))
    kinds = "float32 float64 float16 bfloat16 int64 uint8 bool complex64 float8_e4m3fn int8"
    dtype = getattr(torch, rng.choice(kinds.split()))
    match rng.randrange(5):
        case 0:
            filled = torch.tensor(rng.choice((-1, 1, 2, 10**5, 10**12))).to(tensors[name].dtype)  # bytes wrap around
            tensors[name] = torch.zeros_like(tensors[name]) + filled
        case 1:
            del tensors[name]
        case 2:
            tensors[rng.choice(("x", "", "embedding.weight", "é" * 50, "layers.0.x0"))] = torch.zeros(shape).to(dtype)
        case 3:
            tensors[name] = tensors[name].to(dtype)
        case _:
            tensors[name] = torch.full(shape, float("nan")).to(dtype)
    return tensors


def hostile_tensors(
    files: Callable[[], list[tuple[dict[str, torch.Tensor], dict[str, str]]]], part: str
) -> Callable[[random.Random], bytes]:
    """Files changed in their bytes, their header, the JSON of one part of their metadata, or their tensors."""

    def hostile(rng: random.Random) -> bytes:
        tensors, metadata = rng.choice(files())
        match rng.randrange(5):
            case 0:
                return in_bytes(model_file(tensors, metadata), rng)
            case 1:
                return with_other_header(model_file(tensors, metadata), rng, list(range(8)))
            case 2:
                tensors = other_tensors(tensors, rng)
            case 3:
                key = rng.choice([*metadata, "sha256"])
                value = rng.choice((*map(str, HOSTILE[:30]), "9" * 5_000, "[" * 100_000))
                metadata = metadata | {key: value.encode(errors="replace").decode()}
            case _:
                other = json_text(in_json(json.loads(metadata[part]), rng), rng)
                metadata = metadata | {part: encoded(other).decode(errors="replace")}
        return model_file(tensors, metadata)

    return hostile


def run_model(path: Path) -> object:
    """Load a model, and run it on words that are read letter by letter, at once, and by compiled loops."""
    model = load(path)
    letters = list(model.alphabet[:3])
    return [model.transduce(letters * repetitions) for repetitions in (1, 50, 1_000)], model.initial_logits()


@cache
def whole_models() -> list[bytes]:
    return [model_file(*parts) for parts in model_files()]


@cache
def released_specs() -> list[bytes]:
    """State dictionaries as the released code saves them, as JSON of shapes and types."""
    d, shapes = (
        4,
        {"embedding.weight": [3, 4], "Wo1.weight": [5, 4], "Wo1.bias": [5], "Wo2.weight": [2, 5], "Wo2.bias": [2]},
    )
    for i in range(2):
        shapes |= {f"layers.{i}.a0": [1, 2, 2], f"ln.{i}.weight": [d], f"ln.{i}.bias": [d]}
        for gate, out in (("gen_block", 8), ("gen_value", 4)):
            shapes |= {f"layers.{i}.{gate}.0.weight": [3, d], f"layers.{i}.{gate}.0.bias": [3]}
            shapes |= {f"layers.{i}.{gate}.2.weight": [out, 3], f"layers.{i}.{gate}.2.bias": [out]}
    shapes |= {"ln_final.weight": [d], "ln_final.bias": [d]}
    return [json.dumps({name: {"shape": shape, "kind": "float32"} for name, shape in shapes.items()}).encode()]


KINDS = ["float64", "int64", "bool", "complex64", "meta", "sparse", "list", "none", "expanded"]


def read_released(path: Path) -> object:
    """What a specification says is made of one entry, or of little; what is no specification is refused."""
    specs = parse_json(path.read_bytes(), "specs")
    return from_paper_weights({name: of_spec(spec) for name, spec in specs.items()} if isinstance(specs, dict) else {})


def of_specs() -> list[Any]:
    return [*KINDS, [1, 10**11], [0], []]


def of_spec(spec: Any) -> Any:
    if not isinstance(spec, dict) or not isinstance(spec.get("shape"), list):
        return spec
    shape, kind = spec["shape"], spec.get("kind")
    if not all(type(size) is int and 0 <= size < 1 << 40 for size in shape):
        return shape
    if math.prod(max(size, 1) for size in shape) > 1 << 60:  # torch multiplies strides past a size of 0 too
        return shape
    if kind == "list":
        return [0.0] * 3
    if kind == "none":
        return None
    if kind == "meta":
        return torch.zeros(shape, device="meta")
    dtype = getattr(torch, kind) if kind in ("float64", "int64", "bool", "complex64") else torch.float32
    if kind == "expanded" or np.prod(shape, dtype=float) > 1e6:
        return torch.zeros(1).expand(shape)
    made = torch.zeros(shape, dtype=dtype)
    return made.to_sparse() if kind == "sparse" and shape else made


READERS: dict[str, Reader] = {
    "model": Reader(whole_models, hostile_tensors(model_files, "config"), run_model, ".safetensors"),
    "released weights": Reader(released_specs, of_json(released_specs, of_specs), read_released),
}
