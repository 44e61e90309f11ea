"""Load transformers models with any weights, with memory bounded by the size of their files.

A model is loaded by the class of its architecture, without code from its folder, from safetensors only. Before that it
is built on the meta device, and must not have more numbers than its weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from fsa2lrnn.errors import CheckpointError, UnsupportedFormat, shortened
from fsa2lrnn.extra.huggingface.packages import modeling, transformers
from fsa2lrnn.reading import parse_json, read_text, shown

_INDEX = "model.safetensors.index.json"
_EAGER = {"attn_implementation": "eager"}
_MOST_LAYERS = 512  # the most layers of a model; each takes some milliseconds to build, before its sizes are known
_COMPUTED = 2**16  # the most numbers other than weights that a small model may have


def configuration(path: Path) -> dict[str, Any]:
    """Return the JSON object of a config.json. Raises `UnsupportedFormat` for another JSON value."""
    value = parse_json(read_text(path), str(path))
    if not isinstance(value, dict):
        raise UnsupportedFormat(f"{path} does not hold a JSON object: give the folder of a model")
    return value


def of_folder(folder: Path, kind: str, body: str) -> Any:
    """Load the model of class `body` in a folder, in evaluation mode; raise `CheckpointError` for unsuitable files."""
    return _made(str(folder), configuration(folder / "config.json"), held(folder), _body(kind, body), folder, _EAGER)


def of_weights(config: Mapping[str, Any], weights: Mapping[str, torch.Tensor], kind: str, body: str) -> Any:
    """Return the model of a configuration and weights, as `of_folder` does; raise `CheckpointError` on a mismatch."""
    numbers, given = (sum(part.numel() for part in weights.values()), len(weights)), {"state_dict": dict(weights)}
    return _made("the weights", dict(config), numbers, _body(kind, body), None, _EAGER | given)


def held(folder: Path) -> tuple[int, int]:
    """Return the numbers of entries and of tensors in a folder's weights; raise `CheckpointError` for damaged files."""
    names = ["model.safetensors"]
    if (index := folder / _INDEX).is_file():
        table = parse_json(read_text(index), str(index))
        found = table.get("weight_map") if isinstance(table, dict) else None
        if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
            raise CheckpointError(f"{index} has no weight_map from names to files: download it again")
        names = sorted(set(found.values()))
    numbers = tensors = 0
    for name in names:
        if Path(name).name != name:
            raise CheckpointError(f"{index} names {shown(name)}, which is not in its folder: download it again")
        try:
            with safe_open(folder / name, framework="pt") as source:
                for key in source.keys():  # noqa: SIM118
                    size = 1
                    for length in source.get_slice(key).get_shape():
                        size *= length
                    numbers, tensors = numbers + size, tensors + 1
        except (SafetensorError, OSError) as fault:
            raise CheckpointError(
                f"{folder / name} is missing, damaged or no safetensors file ({said(fault)}): save the model again, "
                "save_pretrained writes that"
            ) from None
    return numbers, tensors


def tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read the tensors of a safetensors file. Raises `CheckpointError` for another file."""
    try:
        return load_file(path)
    except (SafetensorError, OSError) as fault:
        raise CheckpointError(f"{path} is missing, damaged or no safetensors file ({said(fault)})") from None


def check_like(origin: str, kind: str, empty: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Raise `CheckpointError` unless weights have the names and shapes of `empty`, a `kind` on the meta device."""
    wanted = empty.state_dict()
    if wrong := [
        name
        for name in sorted({*wanted, *weights})
        if name not in wanted or name not in weights or wanted[name].shape != weights[name].shape
    ]:
        raise CheckpointError(f"{origin}: {shortened(', '.join(wrong))} are not as a {kind} of these sizes has them")


def _body(kind: str, body: str) -> Any:
    with transformers():
        return getattr(modeling(kind), body)


def _made(
    origin: str, config: dict[str, Any], numbers: tuple[int, int], made: Any, folder: Path | None, given: dict[str, Any]
) -> Any:
    if config.get("quantization_config") is not None:
        raise CheckpointError(f"{origin}: quantized weights, whose gates other code computes: give those they are of")
    n = config.get("num_hidden_layers")
    if not isinstance(n, int) or not 0 < n <= numbers[1]:
        raise CheckpointError(
            f"{origin}: num_hidden_layers = {shown(n)}, and the weights are {numbers[1]:,} tensors: correct the "
            "configuration"
        )
    if n > _MOST_LAYERS:
        raise CheckpointError(
            f"{origin}: num_hidden_layers = {n:,}: models of up to {_MOST_LAYERS} layers are loaded, give one of these"
        )
    with transformers():
        try:
            if folder is None:
                settings = made.config_class.from_dict(config)
            else:
                settings = made.config_class.from_pretrained(folder, local_files_only=True)
            with torch.device("meta"):
                empty = made(settings)
            needed = sum(part.numel() for part in empty.state_dict().values())
            computed = sum(part.numel() for part in (*empty.parameters(), *empty.buffers())) - needed
        except Exception as fault:  # any error of the package's code on unexpected values
            name = made.__name__
            raise CheckpointError(f"{origin}: the configuration describes no {name} ({said(fault)})") from None
        if needed > numbers[0]:
            raise CheckpointError(
                f"{origin}: the configuration describes a model of {needed:,} numbers, and the weights are "
                f"{numbers[0]:,}: one of them is of another model"
            )
        if computed > max(numbers[0], _COMPUTED):
            raise CheckpointError(
                f"{origin}: the configuration asks for {computed:,} numbers that no file holds, frequencies of "
                f"positions and the like, beside {numbers[0]:,} weights: correct the configuration"
            )
        try:
            model, found = made.from_pretrained(
                folder,
                config=settings,
                dtype="auto",
                local_files_only=True,
                use_safetensors=True,
                output_loading_info=True,
                **given,
            )
        except Exception as fault:
            raise CheckpointError(f"{origin}: it does not load as {made.__name__} ({said(fault)})") from None
    if lacked := sorted(found["missing_keys"]):
        more = f" and {len(lacked) - 3} more" if len(lacked) > 3 else ""
        raise CheckpointError(f"{origin}: the weights lack {', '.join(lacked[:3])}{more}")
    return model.eval()


def said(fault: Exception) -> str:
    """Return the message of an external exception, shortened to one line."""
    return shortened(" ".join(shortened(str(fault), 400).split()) or type(fault).__name__)
