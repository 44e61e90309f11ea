"""Write automata into whole models of other packages, and prove these models on the code of their packages.

An external layer is one file, which describes what the layer executes, and an entry in `LAYERS`. `export.export` writes
a folder, `folder.load` loads it as any user of its package would, and `proof.prove` enumerates the states of the
model's one-token step until no new state appears.
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
    "rwkv-7": "rwkv7",
    "kimi-linear": "kimi_linear",
}  # the names of layers and of their files


def layer_file(name: str) -> Any:
    """Return the module of the external layer `name`; raise `UnsupportedFormat` for a name that is not in `LAYERS`.

    It defines `LAYER` (the declaration), `CODE` (the interface to run models), `plan` and `build`.

    >>> layer_file("olmo-hybrid").LAYER.name
    'olmo-hybrid'
    """
    if name not in LAYERS:
        raise UnsupportedFormat(f"layer {name!r} is not known: choose one of {', '.join(LAYERS)}")
    return import_module(f"fsa2lrnn.extra.huggingface.{LAYERS[name]}")
