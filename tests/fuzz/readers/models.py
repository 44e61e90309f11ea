"""Readers of models: ours, the released weights of the paper, folders of transformers, and what `export` leaves."""

from __future__ import annotations

import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as tensors_in
from safetensors.torch import save as to_bytes

from fsa2lrnn import compile_machine, save, zoo
from fsa2lrnn.automata.formats.json_file import to_value
from fsa2lrnn.export import folder as exported
from fsa2lrnn.export.configuration import read_card
from fsa2lrnn.export.eigenvalues import eigenvalues
from fsa2lrnn.export.model_folders import FOLDERS
from fsa2lrnn.nn import LRNN, BlockLayerConfig, HouseholderLayerConfig, LRNNConfig, load
from fsa2lrnn.nn.checkpoint import _in_order, digest
from tests.fsa2lrnn.export.test_eigenvalues import SIZES
from tests.fuzz.mutate import HOSTILE, Hostile, Reader, Valid, encoded, in_bytes, in_json, json_text, of_json
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


@cache
def model_files() -> list[bytes]:
    with tempfile.TemporaryDirectory() as place:
        path, files = Path(place) / "model.safetensors", []
        for model in networks():
            save(model, path)
            files.append(path.read_bytes())
        return files


def header_of(content: bytes) -> Any:
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])


def with_other_header(content: bytes, rng: random.Random) -> bytes:
    """A safetensors file with values of its header changed."""
    header = encoded(json_text(in_json(header_of(content), rng, list(range(8))), rng))
    return len(header).to_bytes(8, "little") + header + content[8 + int.from_bytes(content[:8], "little") :]


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


def of_tensors(valid: Valid, part: str = "") -> Hostile:
    """Safetensors files changed in their bytes, header, tensors, or metadata: a value or the JSON of one part."""

    def hostile(rng: random.Random) -> bytes:
        content = rng.choice(valid())
        tensors, metadata = tensors_in(content), header_of(content)["__metadata__"]
        match rng.randrange(5 if part else 3):
            case 0:
                return in_bytes(content, rng)
            case 1:
                return with_other_header(content, rng)
            case 2:
                tensors = other_tensors(dict(sorted(tensors.items())), rng)
                if "sha256" in metadata:
                    metadata["sha256"] = digest(tensors)
            case 3:
                value = rng.choice((*map(str, HOSTILE[:30]), "9" * 5_000, "[" * 100_000))
                metadata[rng.choice([*sorted(metadata), "more"])] = value.encode(errors="replace").decode()
            case _:
                other = json_text(in_json(json.loads(metadata[part]), rng), rng)
                metadata[part] = encoded(other).decode(errors="replace")
        return _in_order(to_bytes(tensors, metadata))

    return hostile


def run_model(path: Path) -> object:
    """Load a model, and run it on words that are read letter by letter, at once, and by compiled loops."""
    model = load(path)
    letters = list(model.alphabet[:3])
    return [model.transduce(letters * repetitions) for repetitions in (1, 50, 1_000)], model.initial_logits()


NAMES = ("config.json", "model.safetensors")


@cache
def folders() -> dict[str, tuple[bytes, bytes]]:
    """The two files of models with random weights, by their model_type."""
    from fsa2lrnn.export.packages import modeling, transformers

    found = {}
    for kind in ("olmo_hybrid", "mamba2"):
        torch.manual_seed(0)
        with transformers(), tempfile.TemporaryDirectory() as place:
            code, settings = modeling(kind), {**SIZES[kind], "vocab_size": 5, "num_hidden_layers": 2}
            prefix = settings.pop("prefix")
            config = getattr(code, f"{prefix}Config")(**settings)
            getattr(code, f"{prefix}Model")(config).save_pretrained(place)
            found[kind] = tuple((Path(place) / name).read_bytes() for name in NAMES)
    return found


def configurations() -> list[bytes]:
    return [config for config, _ in folders().values()]


def cards() -> list[bytes]:
    nested = {"model_type": "qwen3_5", "text_config": {"num_hidden_layers": 4}}
    kda = {"model_type": "glm5_next", "linear_attn_config": {"head_dim": 8, "gate_lower_bound": -2.0}}
    limits = {"model_type": "mamba2", "time_step_limit": [0.0, {"__float__": "Infinity"}], "num_heads": 4}
    return [json.dumps(value).encode() for value in (*({"model_type": name} for name in FOLDERS), nested, kda, limits)]


def weights() -> list[bytes]:
    return [held for _, held in folders().values()]


def read_folder(path: Path, at: int) -> object:
    """Read one of the two files beside the other of the model that it shares most bytes with."""
    content = path.read_bytes()
    shared = {kind: len({*content.split(b'"')} & {*files[at].split(b'"')}) for kind, files in folders().items()}
    other = folders()[max(shared, key=lambda kind: shared[kind])][1 - at]
    path.replace(path.parent / NAMES[at])
    (path.parent / NAMES[1 - at]).write_bytes(other)
    return eigenvalues(path.parent, [0, 1, 2])


@cache
def descriptions() -> list[bytes]:
    head = {"format": exported.FORMAT, "version": exported.VERSION, "how": "", "written_with": {}}
    layers = ((zoo.parity(), "olmo-hybrid"), (zoo.flip_flop(), "mamba-2"))
    return [json.dumps({**head, "layer": layer, "machine": to_value(machine)}).encode() for machine, layer in layers]


def read_description(path: Path) -> object:
    path.replace(path.parent / exported.FILE)
    return exported.described(path.parent)


READERS: dict[str, Reader] = {
    "model": Reader(model_files, of_tensors(model_files, "config"), run_model, ".safetensors"),
    "configuration of others": Reader(configurations, of_json(configurations), lambda path: read_folder(path, 0)),
    "card of a configuration": Reader(cards, of_json(cards), read_card),
    "weights of others": Reader(weights, of_tensors(weights), lambda path: read_folder(path, 1)),
    "exported folder": Reader(descriptions, of_json(descriptions), read_description),
}
