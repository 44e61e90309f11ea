"""What a layer of others says of itself here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReleasedLayer:
    """A layer, as its own code executes it.

    Args:
        name: as users write it.
        package, model: where its code is; transformers' name of the architecture.
        classes: the layer and the whole model.
        executed: the step, in formulas.
        transition: what multiplies the state, and the range that is reached.
        convolved: which inputs see letters before the current one.
        start: the state before a word.
        largest_beta: β is that times a sigmoid.
    """

    name: str
    package: str
    model: str
    classes: tuple[str, ...]
    executed: str
    transition: str
    convolved: str
    start: str
    largest_beta: int
