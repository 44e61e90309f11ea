"""Readers of folders that others have written: configurations and weights of transformers, and what `export` leaves."""

from __future__ import annotations

import json
import random
import re
import tempfile
from functools import cache
from pathlib import Path

import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.export import folder as exported
from fsa2lrnn.export.eigenvalues import eigenvalues
from fsa2lrnn.nn.tensor_file import _in_order
from tests.fuzz.base import Reader
from tests.fuzz.mutate import in_bytes
from tests.fuzz.readers.hostile import either, of_json
from tests.fuzz.readers.models import other_tensors, with_other_header

SIZES = {
    "olmo_hybrid": (
        "OlmoHybrid",
        {
            "hidden_size": 16, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 1,
            "layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 1,
            "linear_num_value_heads": 1, "linear_key_head_dim": 4, "linear_value_head_dim": 8, "pad_token_id": None,
            "eos_token_id": None,
        },
    ),
    "mamba2": (
        "Mamba2",
        {
            "hidden_size": 8, "num_heads": 2, "head_dim": 8, "state_size": 4, "n_groups": 1, "num_hidden_layers": 1,
            "chunk_size": 8,
        },
    ),
    "qwen3_next": (
        "Qwen3Next",
        {
            "hidden_size": 16, "intermediate_size": 8, "num_hidden_layers": 1, "layer_types": ["linear_attention"],
            "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 8, "linear_num_key_heads": 1,
            "linear_num_value_heads": 1, "linear_key_head_dim": 4, "linear_value_head_dim": 4, "num_experts": 2,
            "num_experts_per_tok": 1, "moe_intermediate_size": 4, "shared_expert_intermediate_size": 4,
        },
    ),
}  # fmt: skip


@cache
def folders() -> dict[str, tuple[bytes, bytes]]:
    """config.json and model.safetensors of models with random weights, by their model_type."""
    from fsa2lrnn.export.packages import modeling, transformers

    found = {}
    for kind, (prefix, settings) in SIZES.items():
        torch.manual_seed(0)
        with transformers(), tempfile.TemporaryDirectory() as place:
            code = modeling(kind)
            config = getattr(code, f"{prefix}Config")(vocab_size=5, **settings)
            getattr(code, f"{prefix}Model")(config).save_pretrained(place)
            found[kind] = tuple((Path(place) / name).read_bytes() for name in ("config.json", "model.safetensors"))
    return found


def configurations() -> list[bytes]:
    return [config for config, _ in folders().values()]


def weights() -> list[bytes]:
    return [held for _, held in folders().values()]


def kind_of(content: bytes, at: int) -> str:
    """Of the configuration, or the weights, that a hostile file was made of: the one it shares most bytes with."""
    return max(folders(), key=lambda kind: len({*content.split(b'"')} & {*folders()[kind][at].split(b'"')}))


def read_configuration(path: Path) -> object:
    content = path.read_bytes()
    path.replace(path.parent / "config.json")
    weights = folders()[kind_of(content, 0)][1]
    layers = re.search(rb'"num_hidden_layers": (\d{1,4})\b', content)
    if layers and int(layers[1]) > 2:
        weights = with_empty_tensors(weights, int(layers[1]))
    (path.parent / "model.safetensors").write_bytes(weights)
    return eigenvalues(path.parent, [0])


def read_weights(path: Path) -> object:
    content = path.read_bytes()
    path.replace(path.parent / "model.safetensors")
    (path.parent / "config.json").write_bytes(folders()[kind_of(content, 1)][0])
    return eigenvalues(path.parent, [0, 1, 2])


def many_layers(rng: random.Random) -> bytes:
    """A configuration of many layers; the file of weights gets as many empty tensors."""
    value = json.loads(rng.choice(configurations()))
    n = rng.choice((3, 100, 512, 513, 8_000))
    kinds = [rng.choice(value["layer_types"])] * n if "layer_types" in value else None
    return json.dumps(value | {"num_hidden_layers": n} | ({"layer_types": kinds} if kinds else {})).encode()


def with_empty_tensors(content: bytes, n: int) -> bytes:
    """Weights with n tensors of no entries more."""
    from safetensors.torch import load
    from safetensors.torch import save as to_bytes

    return to_bytes(load(content) | {f"layers.{i}.empty": torch.zeros(0) for i in range(n)}, {"format": "pt"})


def hostile_weights(rng: random.Random) -> bytes:
    """Bytes, the header or a tensor changed."""
    from safetensors.torch import load
    from safetensors.torch import save as to_bytes

    content = rng.choice(weights())
    match rng.randrange(3):
        case 0:
            return in_bytes(content, rng)
        case 1:
            return with_other_header(content, rng, list(range(8)))
        case _:
            return _in_order(to_bytes(other_tensors(dict(sorted(load(content).items())), rng), {"format": "pt"}))


@cache
def descriptions() -> list[bytes]:
    from fsa2lrnn.automata.formats.json_file import to_value

    head = {"format": exported.FORMAT, "version": exported.VERSION, "how": "", "written_with": {}}
    layers = ((zoo.parity(), "olmo-hybrid"), (zoo.flip_flop(), "mamba-2"))
    return [json.dumps({**head, "layer": layer, "machine": to_value(machine)}).encode() for machine, layer in layers]


def read_description(path: Path) -> object:
    path.replace(path.parent / exported.FILE)
    return exported.described(path.parent)


READERS: dict[str, Reader] = {
    "configuration of others": Reader(
        configurations, either(of_json(configurations), many_layers, 0.1), read_configuration
    ),
    "weights of others": Reader(weights, hostile_weights, read_weights),
    "exported folder": Reader(descriptions, of_json(descriptions), read_description),
}
