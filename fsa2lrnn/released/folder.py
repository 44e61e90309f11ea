"""Folders of whole models, which `AutoModelForCausalLM` loads; beside the weights stands what they are of."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fsa2lrnn.automata.formats.json_file import from_json, to_value
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.files import write_atomically
from fsa2lrnn.reading import parse_json
from fsa2lrnn.released import layer_file
from fsa2lrnn.released.packages import transformers, versions
from fsa2lrnn.released.plan import Plan
from fsa2lrnn.released.tokens import tokenizer

FORMAT, VERSION = "fsa2lrnn-released-model", 1
FILE = "fsa2lrnn.json"


@dataclass(frozen=True, eq=False)
class Exported:
    """A whole model of others, and the automaton that it was written from.

    Args:
        model: in evaluation mode.
        layer: its name in `released.LAYERS`.
        machine: minimal; tokens are its letters and then `outputs`.
        outputs: each once.
    """

    model: Any
    layer: str
    machine: MooreMachine
    outputs: tuple[Hashable, ...]

    @property
    def dtype(self) -> str:
        """Of the weights: "float32"."""
        return str(next(self.model.parameters()).dtype).removeprefix("torch.")


def save(model: Any, layer: str, plan: Plan, folder: Path) -> None:
    """Weights, configuration, tokenizer, and `fsa2lrnn.json`. Raises `UnsupportedFormat` for letters without text."""
    with transformers():
        words = tokenizer(plan.machine.alphabet, plan.outputs)
        model.save_pretrained(folder)
        words.save_pretrained(folder)
    value = {
        "format": FORMAT,
        "version": VERSION,
        "layer": layer,
        "how": plan.how,
        "written_with": versions(),
        "machine": {name: part for name, part in to_value(plan.machine).items() if name != "labels"},
    }
    write_atomically(folder / FILE, (json.dumps(value, indent=1) + "\n").encode())


def load(folder: Path) -> Exported:
    """A folder that `save` wrote, loaded as any user of transformers would. Raises `CheckpointError` for another."""
    path = folder / FILE
    try:
        value = parse_json(path.read_text(encoding="utf-8"), str(path))
        form = value["format"], value["version"]
        if form != (FORMAT, VERSION):
            raise CheckpointError(f"{path}: {form[0]!r}, version {form[1]!r}, where {FORMAT!r}, {VERSION}, is read")
        machine, layer = from_json(json.dumps(value["machine"])), str(value["layer"])
    except (OSError, KeyError, TypeError) as fault:
        raise CheckpointError(
            f"{folder} is no folder that `fsa2lrnn export` wrote ({fault!r}): export it again"
        ) from None
    with transformers() as package:
        model = package.AutoModelForCausalLM.from_pretrained(folder, dtype="auto", local_files_only=True)
    if (kind := type(model).__name__) not in layer_file(layer).LAYER.classes:
        raise CheckpointError(
            f"{folder}: a {kind}, where {layer} is {layer_file(layer).LAYER.classes[-1]}: export it again"
        )
    outputs = tuple(dict.fromkeys(machine.outputs))
    found = Exported(model.eval(), layer, machine, outputs)
    if found.model.config.vocab_size != len(machine.alphabet) + len(outputs):
        raise CheckpointError(
            f"{folder}: {found.model.config.vocab_size} tokens for {len(machine.alphabet)} letters and {len(outputs)} "
            "outputs: export it again"
        )
    if found.dtype not in ("float32", "bfloat16"):
        raise CheckpointError(
            f"{folder}: weights in {found.dtype}; float32 and bfloat16 are what gates were chosen for"
        )
    return found


@torch.no_grad()
def run(exported: Exported, tokens: Any, chunk: int = 2_048, cache: Any = None) -> tuple[Any, Any]:
    """The token put out after each letter, (T,), and the cache; letters go `chunk` at a time, 1 for decoding.

    Args:
        tokens: int64 tensor (T,).
        cache: of an earlier call, to go on from.
    """
    if not len(tokens):
        return tokens, cache
    found = list[torch.Tensor]()
    with transformers():
        for piece in tokens.split(chunk):
            answer = exported.model(input_ids=piece[None], past_key_values=cache, use_cache=True)
            cache = answer.past_key_values
            found.append(answer.logits[0].argmax(dim=1))
    return torch.cat(found), cache
