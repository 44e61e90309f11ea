"""External layers: automata written into whole models of other packages, run and proved on the external code.

A layer is one file, which declares what it executes, and an entry in `LAYERS`. `export.export` writes a folder,
`folder.load` loads it as any user of its package would, `proof.prove` walks their one-token step until nothing new
turns up.
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

    Where no whole model runs on a CPU, `CODE` is None, and plans have `closed` in the place of `build`.

    Raises `UnsupportedFormat` for others.

    >>> layer_file("olmo-hybrid").LAYER.name
    'olmo-hybrid'
    """
    if name not in LAYERS:
        raise UnsupportedFormat(f"layer {name!r} is not known: choose one of {', '.join(LAYERS)}")
    return import_module(f"fsa2lrnn.extra.huggingface.{LAYERS[name]}")
