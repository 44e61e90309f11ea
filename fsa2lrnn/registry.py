"""Look up the layers, commands and features that installed packages add to the core by entry points.

A package adds layers, commands or features under the entry-point groups `fsa2lrnn.layers`, `fsa2lrnn.commands` and
`fsa2lrnn.features`; `pyproject.toml` declares those of the extras in this tree. A feature is named "EXTRA.WHAT".
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from fsa2lrnn.errors import MissingPackage

Kind = Literal["layers", "commands", "features"]
_LIBRARY = Path(__file__).parent
_PREFIX = "fsa2lrnn.extra."


@cache
def declared(kind: Kind) -> dict[str, EntryPoint]:
    """Return all entry points of a kind by name, including those whose extra was deleted from this tree.

    >>> {"liquid_s4", "lru"} <= set(declared("layers"))
    True
    """
    return {point.name: point for point in entry_points(group=f"fsa2lrnn.{kind}")}


@cache
def available(kind: Kind) -> dict[str, EntryPoint]:
    """Return the entry points of a kind by name, without those whose extra was deleted from this tree."""
    return {name: point for name, point in declared(kind).items() if missing_extra(point) is None}


def missing_extra(point: EntryPoint) -> str | None:
    """Return the name of the extra that an entry point needs if it was deleted from this tree, else None."""
    if not point.module.startswith(_PREFIX):
        return None
    extra = point.module.removeprefix(_PREFIX).partition(".")[0]
    return None if (_LIBRARY / "extra" / extra).is_dir() else extra


def is_ours(point: EntryPoint) -> bool:
    """Return whether an entry point belongs to an extra of this distribution, not to another package."""
    return point.dist is not None and point.dist.name == "fsa2lrnn" and point.module.startswith(_PREFIX)


def find(name: str) -> Any | None:
    """Return the feature named "EXTRA.WHAT", or None if its extra is not installed."""
    point = available("features").get(name)
    return None if point is None else point.load()


def require(name: str, purpose: str) -> Any:
    """Return the feature named "EXTRA.WHAT"; raise `MissingPackage` (`purpose` needs it) without its extra."""
    feature = find(name)
    if feature is None:
        raise not_installed(name.partition(".")[0], purpose)
    return feature


def not_installed(extra: str, purpose: str) -> MissingPackage:
    """Return the error that `purpose`, its subject, needs an extra that is not installed."""
    return MissingPackage(
        f"{purpose} needs the extra {extra!r} (fsa2lrnn/extra/{extra}), which this installation does not have: "
        "install the whole of fsa2lrnn"
    )
