"""Training that ends in a proof: every head of a layer with one-hot columns is an automaton, so it can be verified.

`methods` has `learn`; `recipe` holds the settings, `examples` the words, `run` the loop; `prune` selects heads,
`patching` repairs one that is nearly correct, `judging` verifies; `result` is the answer, `saving` its folder, `ending`
produces both. Layers whose heads implement a machine together (hard channels, reflections) are verified as a `whole`.

The names of `public` are loaded at first use: the command line shows its help without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fsa2lrnn.extra.learning.public import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        public = import_module("fsa2lrnn.extra.learning.public")
        if name not in public.__all__:
            raise AttributeError(f"module 'fsa2lrnn.extra.learning' has no attribute {name!r}")
        return getattr(public, name)
