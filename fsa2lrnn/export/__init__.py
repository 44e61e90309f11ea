"""Write automata into whole models of other packages, and prove these models on the code of their packages.

A released model is a `declared.Target`. `export.export` writes a folder, `folder.load` loads it as any user of its
package would, and `proof.prove` enumerates the states of the model's one-token step until no new state appears.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.layers import EXPORTED

if TYPE_CHECKING:
    from fsa2lrnn.export.declared import Target


def target(name: str) -> Target:
    """Return the released model `name`; raise `UnsupportedFormat` for one that is not in `EXPORTED`.

    >>> target("olmo-hybrid").name
    'olmo-hybrid'
    """
    if name not in EXPORTED:
        raise UnsupportedFormat(f"model {name!r} is not known: choose one of {', '.join(EXPORTED)}")
    from fsa2lrnn.export import gated_delta, mamba, rwkv7

    targets = (gated_delta.OLMO_HYBRID, gated_delta.QWEN3_NEXT, gated_delta.QWEN3_5, gated_delta.KIMI_LINEAR)
    return {one.name: one for one in (*targets, mamba.MAMBA, mamba.MAMBA_2, rwkv7.RWKV_7)}[name]
