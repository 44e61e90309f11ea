"""External layers: automata written into whole models of other packages, run and proved on the external code.

A layer is one file, which declares what it executes, and an entry in `LAYERS`. `export.export` writes a folder,
`folder.load` loads it as any user of its package would, and `proof.prove` enumerates the states of the model's
one-token step until no new state appears.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fsa2lrnn.errors import UnsupportedFormat

LAYERS = {
    "olmo-hybrid": "olmo_hybrid",
    "qwen3-next": "qwen3_next",
    "qwen3.5": "qwen3_5",
    "mamba-2": "mamba2",
    "mamba": "mamba",
    "pd-ssm": "pd_ssm",
    "rwkv-7": "rwkv7",
    "kimi-linear": "kimi_linear",
    "slstm": "slstm",
    "delta-product": "delta_product",
}  # a file each


def layer_file(name: str) -> Any:
    """Return the module of a layer: `LAYER`, its declaration, `CODE`, the interface to run it, `plan` and `build`.

    If no whole model of the layer runs on a CPU, `CODE` is None, and plans have `closed` instead of `build`.

    Raises `UnsupportedFormat` for other names.

    >>> layer_file("olmo-hybrid").LAYER.name
    'olmo-hybrid'
    """
    if name not in LAYERS:
        raise UnsupportedFormat(f"layer {name!r} is not known: choose one of {', '.join(LAYERS)}")
    return import_module(f"fsa2lrnn.extra.huggingface.{LAYERS[name]}")
