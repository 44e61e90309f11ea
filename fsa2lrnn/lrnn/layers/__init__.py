"""The registry of layers by name. A user-defined layer is named by its import path, "my_module:MyLayer".

>>> sorted(name for name in LAYERS if LAYERS[name].__module__.startswith("fsa2lrnn.lrnn."))  # without optional packages
['block', 'hard_channels', 'hard_reflections', 'householder', 'index']
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from fsa2lrnn import registry
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.layers.base import Columns, Layer, LayerConfig, Shape
from fsa2lrnn.lrnn.layers.block import BlockLayer, BlockLayerConfig
from fsa2lrnn.lrnn.layers.hard import HardChannelsConfig, HardChannelsLayer, HardReflectionsConfig, HardReflectionsLayer
from fsa2lrnn.lrnn.layers.householder import HouseholderLayer, HouseholderLayerConfig
from fsa2lrnn.lrnn.layers.index import IndexLayer, IndexLayerConfig
from fsa2lrnn.reading import shown

OURS: set[type[Layer]] = {
    BlockLayer, HouseholderLayer, HardChannelsLayer, HardReflectionsLayer, IndexLayer,
}  # fmt: skip
"""The library's own layers. Declarations of all other layers are tested on random inputs (`layer_checks`)."""


class LayerTable(Mapping[str, type[Layer]]):
    """A mapping from names to layer classes: those of the core, registered ones, and those of installed packages.

    A package's layer is imported when its name is first looked up; `loaded` holds the layers that are imported.
    """

    def __init__(self, layers: Mapping[str, type[Layer]]) -> None:
        self.loaded = dict(layers)

    def __getitem__(self, name: str) -> type[Layer]:
        if name not in self.loaded:
            point = registry.available("layers")[name]
            layer = point.load()
            if registry.is_ours(point):
                OURS.add(layer)
            check_layer(name, layer, self.loaded)
            self.loaded[name] = layer
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.loaded, *registry.available("layers")]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self.loaded or name in registry.available("layers")


LAYERS = LayerTable(
    {
        "block": BlockLayer,
        "householder": HouseholderLayer,
        "hard_channels": HardChannelsLayer,
        "hard_reflections": HardReflectionsLayer,
        "index": IndexLayer,
    }
)
"""All layers by name."""
_REQUIRED = ("forward", "initial_state", "emit")


def layer_named(name: str) -> type[Layer]:
    """Return the layer class of a name; "my_module:MyLayer" imports the module and registers the layer.

    Raises:
        MissingPackage: for the name of a deleted extra's layer.
        UnsupportedFormat: for an unknown name, a module that cannot be imported, or a class that is not a layer.
    """
    if name not in LAYERS and ":" in name:
        register(name, _imported(name))
    if name not in LAYERS:
        check_is_installed(name)
        raise UnsupportedFormat(
            f"layer {name!r} is not known: one of {', '.join(LAYERS)}, or module:Class for a layer of your own"
        )
    return LAYERS[name]


def layer_in_file(name: object) -> type[Layer]:
    """Return the layer class that a file names, if it is registered or an installed package declares it.

    A file cannot cause any other import. Raises `UnsupportedFormat` for other names, and `MissingPackage` as
    `layer_named`.
    """
    if not isinstance(name, str) or name not in LAYERS:
        check_is_installed(name)
        fault = f"layer kind {shown(name)} is not known: one of {', '.join(LAYERS)}"
        hint = f"; a layer of your own is made known first, by fsa2lrnn.lrnn.layer_named({name!r}) or --import {name}"
        raise UnsupportedFormat(fault + (hint if isinstance(name, str) and ":" in name else ""))
    return LAYERS[name]


def register(name: str, layer: type[Layer]) -> None:
    """Register a layer under a name, for configurations and files; raise `UnsupportedFormat` as `check_layer`."""
    check_layer(name, layer, LAYERS.loaded)
    LAYERS.loaded[name] = layer


def check_layer(name: str, layer: type[Layer], others: Mapping[str, type[Layer]]) -> None:
    """Raise `UnsupportedFormat` if a class is not a layer, lacks a method, or has a `Config` of `others`."""
    config = getattr(layer, "Config", None)
    if not (isinstance(layer, type) and issubclass(layer, Layer) and isinstance(config, type)):
        raise UnsupportedFormat(f"{name} is not a layer: derive it from fsa2lrnn.lrnn.Layer and set its Config")
    if not issubclass(config, LayerConfig):
        raise UnsupportedFormat(f"{name}.Config is {config.__name__}: derive it from fsa2lrnn.lrnn.LayerConfig")
    if missing := [method for method in _REQUIRED if getattr(layer, method) is getattr(Layer, method)]:
        raise UnsupportedFormat(f"{name} lacks {', '.join(missing)}: define it, as fsa2lrnn.lrnn.Layer describes it")
    for other, registered in others.items():
        if registered.Config is config and other != name:
            raise UnsupportedFormat(
                f"{name}.Config is {config.__name__}, which {other} has: derive one of its own, as a model tells its "
                "layers by it"
            )


def check_is_installed(name: object) -> None:
    """Raise `MissingPackage` for a layer whose extra was deleted from this installation."""
    point = registry.declared("layers").get(str(name))
    if point is not None and (extra := registry.missing_extra(point)) is not None:
        raise registry.not_installed(extra, f"layer {name!r}")


def name_of(config: LayerConfig) -> str:
    """Return the name of the layer of a configuration. Raises `UnsupportedFormat` if it is not registered."""
    for name, layer in LAYERS.loaded.items():
        if layer.Config is type(config):
            return name
    for name, layer in LAYERS.items():  # a configuration that was created before its layer was loaded
        if layer.Config is type(config):
            return name
    raise UnsupportedFormat(
        f"{type(config).__name__} is the configuration of no layer that is known: register it first "
        "(fsa2lrnn.lrnn.register)"
    )


def _imported(name: str) -> type[Layer]:
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError, SyntaxError) as error:
        raise UnsupportedFormat(
            f"layer {name!r} cannot be imported ({error}): give module:Class, with a module that Python finds here"
        ) from error
    finally:
        sys.path.remove(here)


__all__ = [
    "LAYERS",
    "OURS",
    "BlockLayer",
    "BlockLayerConfig",
    "Columns",
    "HardChannelsConfig",
    "HardChannelsLayer",
    "HardReflectionsConfig",
    "HardReflectionsLayer",
    "HouseholderLayer",
    "HouseholderLayerConfig",
    "IndexLayer",
    "IndexLayerConfig",
    "Layer",
    "LayerConfig",
    "Shape",
    "layer_in_file",
    "layer_named",
    "name_of",
    "register",
]
