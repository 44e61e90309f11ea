"""Repair of trained models: the least change after which they implement an exact image of their machine (L6, §8).

The names of `public` are loaded at first use: the command line shows its help without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fsa2lrnn.extra.repairing.public import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        public = import_module("fsa2lrnn.extra.repairing.public")
        if name not in public.__all__:
            raise AttributeError(f"module 'fsa2lrnn.extra.repairing' has no attribute {name!r}")
        return getattr(public, name)
