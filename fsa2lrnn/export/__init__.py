"""Write automata into whole models of other packages, and prove these models on the code of their packages.

A released model is a `packages.Target`. `whole_model.export` writes a folder, `folder.load` loads it as any user of its
package would, and `whole_model.prove` enumerates the states of the model's one-token step until no new state appears.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.layers import EXPORTED

if TYPE_CHECKING:
    from fsa2lrnn.export.packages import Target


def target(name: str) -> Target:
    """Return the released model `name`; raise `UnsupportedFormat` for one that is not in `EXPORTED`.

    >>> target("olmo-hybrid").name
    'olmo-hybrid'
    """
    if name not in EXPORTED:
        raise UnsupportedFormat(f"model {name!r} is not known: choose one of {', '.join(EXPORTED)}")
    from fsa2lrnn.export import gated_delta, hybrid_models, mamba_models, rwkv7

    targets = *gated_delta.TARGETS, *mamba_models.TARGETS, *hybrid_models.TARGETS, rwkv7.RWKV_7
    return {one.name: one for one in targets}[name]
