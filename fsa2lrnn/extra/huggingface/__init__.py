"""Write automata into whole models of other packages, and prove these models on the code of their packages.

A released model is one file, which describes what its layers execute, and an entry in `fsa2lrnn.layers`.
`export.export` writes a folder, `folder.load` loads it as any user of its package would, and `proof.prove` enumerates
the states of the model's one-token step until no new state appears.
"""

from __future__ import annotations

from types import ModuleType

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.layers import EXPORTED


def layer_file(name: str) -> ModuleType:
    """Return the module of the released model `name`; raise `UnsupportedFormat` for one that is not in `EXPORTED`.

    It defines `LAYER` (the declaration), `CODE` (the interface to run models), `plan` and `build`.

    >>> layer_file("olmo-hybrid").LAYER.name
    'olmo-hybrid'
    """
    match name:  # each imports the code of its package when it is asked for
        case "olmo-hybrid":
            from fsa2lrnn.extra.huggingface import olmo_hybrid as file
        case "qwen3-next":
            from fsa2lrnn.extra.huggingface import qwen3_next as file
        case "qwen3.5":
            from fsa2lrnn.extra.huggingface import qwen3_5 as file
        case "mamba-2":
            from fsa2lrnn.extra.huggingface import mamba2 as file
        case "mamba":
            from fsa2lrnn.extra.huggingface import mamba as file
        case "rwkv-7":
            from fsa2lrnn.extra.huggingface import rwkv7 as file
        case "kimi-linear":
            from fsa2lrnn.extra.huggingface import kimi_linear as file
        case _:
            raise UnsupportedFormat(f"model {name!r} is not known: choose one of {', '.join(EXPORTED)}")
    return file
