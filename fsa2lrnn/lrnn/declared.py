"""What a model's layers declare of themselves, where somebody is about to rely on the contrary."""

from __future__ import annotations

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.layers import name_of
from fsa2lrnn.lrnn.model import LRNN


def check_causal(model: object) -> None:
    """Raises `UnsupportedFormat` for a model that reads words whole, naming the layer whose outputs need that."""
    if isinstance(model, LRNN) and (reason := model.not_causal) is not None:
        raise UnsupportedFormat(reason)


def unproved(model: LRNN) -> list[str]:
    """Why nothing can be proved of a model: for each layer that says so, its place, its name and its reason."""
    return [
        f"layers.{i} is of kind {name_of(layer)}, {reason}"
        for i, layer in enumerate(model.config.layers)
        if (reason := model.recurrences[i].unproved) is not None
    ]


def check_provable(model: LRNN) -> None:
    """Raises `UnsupportedFormat` for a model of which no judge says anything, with what can be asked of it instead."""
    if not isinstance(model, LRNN):
        raise UnsupportedFormat(f"{type(model).__name__} is no LRNN, and shows nothing of its states: {FOREIGN}")
    check_causal(model)
    if reasons := unproved(model):
        raise UnsupportedFormat(f"{reasons[0]}: {INSTEAD}")


FOREIGN = (
    "a module that is wrapped is judged by what it puts out, by falsify and extract_learned; a layer over letters that "
    "is all in its tables comes in by LRNN.from_tables"
)
"""What can be asked of a module of another make."""
INSTEAD = "compare and falsify run it on words, extract --method suffixes says what it seems to compute"
