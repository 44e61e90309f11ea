"""What is changed in an exported folder, one thing at a time; `mutated_folders.py` tries it.

Every field of every JSON file is changed, removed, duplicated, given another type, and other fields are added; tensors
are shuffled, exchanged, scaled, renamed; files are added, cut short and removed.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file

from fsa2lrnn.export import target

WEIGHTS = "weights"

# What a field becomes that is changed or added. Strings are those that choose a class, a method or a type.
STRINGS = (
    "", "x", "mamba", "mamba2", "olmo_hybrid", "qwen3_next", "qwen3_5_moe_text", "llama", "MambaForCausalLM", "linear",
    "dynamic", "longrope", "yarn", "gelu", "relu", "bfloat16", "float16", "float64", "linear_attention",
    "full_attention", "sparse", "dense", "Whitespace", "Removed", "PreTrainedTokenizerFast", "LlamaTokenizer", "0",
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 3, 64, 1e-38, 3e-36, 1e30, 0.5, 1e-6, 10**9)
OTHER_TYPES = (None, True, False, 0, 1.0, "1", "x", [], {}, [0])
ADDED = {
    "config.json": {
        "rope_parameters": {"rope_type": "linear", "factor": 1e-38, "rope_theta": 10000.0},
        "rope_scaling": {"rope_type": "linear", "factor": 3e-36}, "rope_theta": 1e-30, "attn_implementation": "eager",
        "_attn_implementation": "eager", "quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True},
        "torch_dtype": "bfloat16", "auto_map": {"AutoModelForCausalLM": "evil.Evil", "AutoConfig": "evil.Config"},
        "suppress_tokens": [2], "eos_token_id": 2, "forced_bos_token_id": 2, "sliding_window": 1,
        "linear_attn_config": {"head_dim": 4}, "tokenizer_class": "LlamaTokenizer", "is_decoder": False,
        "num_logits_to_keep": 1, "text_config": {}, "per_layer_config": {"0": {"rms_norm_eps": 1.0}},
    },
    "generation_config.json": {
        "suppress_tokens": [2, 3], "begin_suppress_tokens": [2, 3], "forced_bos_token_id": 0, "eos_token_id": 0,
        "do_sample": True, "temperature": 9.0, "sequence_bias": [[[2], 1e9]], "bad_words_ids": [[2]], "num_beams": 3,
        "repetition_penalty": 9.0, "min_length": 5, "forced_eos_token_id": 0, "max_length": 1,
    },
    "tokenizer_config.json": {
        "add_bos_token": True, "add_eos_token": True, "bos_token": "=x", "unk_token": "0", "pad_token": "0",
        "clean_up_tokenization_spaces": True, "chat_template": "{{ messages }}", "tokenizer_class": "LlamaTokenizer",
        "padding_side": "left", "truncation_side": "left", "model_max_length": 2, "add_prefix_space": True,
        "additional_special_tokens": ["0"], "do_lower_case": True, "auto_map": {"AutoTokenizer": ["e.E", None]},
    },
    "tokenizer.json": {
        "normalizer": {"type": "Lowercase"}, "truncation": {"direction": "Right", "max_length": 1,
                                                            "strategy": "LongestFirst", "stride": 0},
        "decoder": {"type": "Fuse"}, "pre_tokenizer": None, "post_processor": None, "padding": None,
        "added_tokens": [{"id": 0, "content": "x", "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
    },
    "fsa2lrnn.json": {"layer": "mamba", "outputs": [0], "machine": None, "labels": ["x"]},
}  # fmt: skip
FILES = {
    "chat_template.jinja": b"{{ messages }}",
    "special_tokens_map.json": b'{"unk_token": "0", "bos_token": "1"}',
    "added_tokens.json": b'{"0": 1}',
    "vocab.json": b'{"0": 1, "1": 0}',
    "adapter_config.json": b'{"peft_type": "LORA", "base_model_name_or_path": "."}',
    "model.safetensors.index.json": b'{"metadata": {}, "weight_map": {}}',
    "pytorch_model.bin": b"x",
    "modeling_evil.py": b"raise SystemExit",
    "config.5.0.0.json": b"{}",
    "quantize_config.json": b"{}",
    "README.md": b"# A model",
}


class Mutation(NamedTuple):
    """What is changed in which layer's folder: `apply` takes the folder and a generator of random numbers."""

    layer: str
    file: str
    kind: str
    apply: Callable[[Path, random.Random], None]


def mutations(layer: str, folder: Path) -> Iterator[Mutation]:
    """Everything that is done to a folder, each field of each file by each kind once."""
    for path in sorted(folder.glob("*.json")):
        value = json.loads(path.read_text())
        for place in _places(value):
            kinds = (_changed, _retyped, _removed, _duplicated) if isinstance(place[-1], str) else (_changed, _retyped)
            for act in kinds:
                name = act.__name__.removeprefix("_")
                yield Mutation(layer, path.name, name, partial(_in_json, path.name, place, act))
        for name, part in ADDED[path.name].items():
            yield Mutation(layer, path.name, "added", partial(_in_json, path.name, (name,), partial(_set, part)))
    for _ in range(4):
        yield Mutation(layer, "fsa2lrnn.json", "shuffled", _shuffle_machine)
        if (folder / "tokenizer.json").exists():
            yield Mutation(layer, "tokenizer.json", "shuffled", _shuffle_vocabulary)
    for name in target(layer).code.weights(folder):
        for act in (_shuffled, _exchanged, _scaled, _one_value, _renamed, _without, _cast):
            kind = act.__name__.removeprefix("_").replace("_", " ")
            yield Mutation(layer, WEIGHTS, kind, partial(_in_weights, layer, name, act))
    for name in sorted(path.name for path in folder.iterdir()):
        yield Mutation(layer, name, "no file", lambda place, _, name=name: (place / name).unlink())
        yield Mutation(layer, name, "cut short", partial(_cut_short, name))
    for name, content in FILES.items():
        yield Mutation(
            layer, "another file", "added", lambda place, _, n=name, c=content: (place / n).write_bytes(c) and None
        )


def _places(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*above, key)
            yield from _places(value[key], (*above, key))


def _in_json(
    name: str, place: tuple[str | int, ...], act: Callable[..., Any], folder: Path, rng: random.Random
) -> None:
    value = json.loads((folder / name).read_text())
    holder = value
    for key in place[:-1]:
        holder = holder[key]
    act(holder, place[-1], rng)
    text = json.dumps(value).replace(' "a second time, ', ' "')
    (folder / name).write_text(text)


def _changed(holder: Any, key: str | int, rng: random.Random) -> None:
    old = holder[key]
    if isinstance(old, bool):
        holder[key] = not old
    elif isinstance(old, int | float):
        holder[key] = rng.choice([x for x in (*NUMBERS, old + 1, old * 2) if x != old])
    elif isinstance(old, str):
        holder[key] = rng.choice([x for x in STRINGS if x != old])
    elif isinstance(old, list):
        holder[key] = rng.choice([old[::-1], old[1:], old + old, [old]])
    elif isinstance(old, dict):
        holder[key] = dict(zip(old, list(old.values())[1:] + list(old.values())[:1], strict=True))
    else:
        holder[key] = rng.choice((*NUMBERS, *STRINGS, True, False))


def _retyped(holder: Any, key: str | int, rng: random.Random) -> None:
    old = holder[key]
    near = (
        [float(old), str(old), [old], bool(old)] if isinstance(old, int) else [[old], {"value": old}, json.dumps(old)]
    )
    holder[key] = rng.choice([x for x in (*near, *OTHER_TYPES) if type(x) is not type(old)])


def _removed(holder: Any, key: str, _: random.Random) -> None:
    del holder[key]


def _duplicated(holder: Any, key: str, rng: random.Random) -> None:
    twice = {}
    for name, part in list(holder.items()):
        twice[name] = part
        if name == key:
            twice[f"a second time, {name}"] = copy.deepcopy(part)
    if rng.random() < 0.7:
        _changed(twice, f"a second time, {key}", rng)
    holder.clear()
    holder.update(twice)


def _set(part: Any, holder: Any, key: str, _: random.Random) -> None:
    holder[key] = part


def _shuffle_vocabulary(folder: Path, rng: random.Random) -> None:
    def act(holder: Any, key: str, _: random.Random) -> None:
        ids = list(holder[key].values())
        while ids == list(holder[key].values()):
            rng.shuffle(ids)
        holder[key] = dict(zip(holder[key], ids, strict=True))

    _in_json("tokenizer.json", ("model", "vocab"), act, folder, rng)


def _shuffle_machine(folder: Path, rng: random.Random) -> None:
    def act(holder: Any, key: str, _: random.Random) -> None:
        before = list(holder[key])
        while holder[key] == before:
            rng.shuffle(holder[key])

    _in_json("fsa2lrnn.json", ("machine", rng.choice(("alphabet", "outputs", "delta"))), act, folder, rng)


def _in_weights(layer: str, name: str, act: Callable[..., Any], folder: Path, rng: random.Random) -> None:
    weights = {key: part.clone() for key, part in target(layer).code.weights(folder).items()}
    act(weights, name, rng)
    if (path := folder / "model.pth").exists():
        torch.save(weights, path)
    else:
        save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _shuffled(weights: dict[str, torch.Tensor], name: str, rng: random.Random) -> None:
    part = weights[name]
    order = torch.randperm(part.numel(), generator=torch.Generator().manual_seed(rng.randrange(2**31)))
    weights[name] = part.flatten()[order].reshape(part.shape)


def _exchanged(weights: dict[str, torch.Tensor], name: str, rng: random.Random) -> None:
    other = rng.choice([key for key, part in weights.items() if part.shape == weights[name].shape])
    weights[name], weights[other] = weights[other], weights[name]


def _scaled(weights: dict[str, torch.Tensor], name: str, rng: random.Random) -> None:
    weights[name] = weights[name] * rng.choice((-1, 2, 0.5, 0, 1 + 2**-20, 1e30))


def _one_value(weights: dict[str, torch.Tensor], name: str, rng: random.Random) -> None:
    flat = weights[name].flatten().clone()
    flat[rng.randrange(len(flat))] = rng.choice((0.0, 1.0, -1.0, 88.0, 1e-30, 1e38, float("nan"), float("inf")))
    weights[name] = flat.reshape(weights[name].shape)


def _renamed(weights: dict[str, torch.Tensor], name: str, rng: random.Random) -> None:
    weights[rng.choice((f"{name}.x", f"x.{name}", name.replace("0", "1")))] = weights.pop(name)


def _without(weights: dict[str, torch.Tensor], name: str, _: random.Random) -> None:
    del weights[name]


def _cast(weights: dict[str, torch.Tensor], name: str, rng: random.Random) -> None:
    weights[name] = weights[name].to(rng.choice((torch.bfloat16, torch.float16, torch.float64)))


def _cut_short(name: str, folder: Path, rng: random.Random) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: rng.randrange(len(content))])
