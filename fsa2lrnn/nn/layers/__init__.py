"""The classes of layers by name. A user-defined layer is named by its import path, "my_module:MyLayer".

>>> LAYERS["lru"].__name__, "mamba2" in LAYERS
('LRULayer', True)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from fsa2lrnn.errors import UnsupportedFormat, meant
from fsa2lrnn.layers import TRAINED, is_layer, trained_name
from fsa2lrnn.nn.layers.base import Columns, Layer, LayerConfig, Shape
from fsa2lrnn.nn.layers.block import BlockLayer, BlockLayerConfig
from fsa2lrnn.nn.layers.hard import (
    HardChannelsConfig,
    HardChannelsLayer,
    HardDeltaProductLayer,
    HardPDSSMLayer,
    HardReflectionsConfig,
    HardReflectionsLayer,
    HardSliceLayer,
)
from fsa2lrnn.nn.layers.householder_layer import HouseholderLayer, HouseholderLayerConfig
from fsa2lrnn.nn.layers.index import IndexLayer, IndexLayerConfig
from fsa2lrnn.reading import shown


def _published() -> dict[str, type[Layer]]:
    """Import the paper's baselines and the layers with transitions of their input, on demand."""
    from fsa2lrnn.nn.layers.delta_rules import (
        DeltaProductLayer,
        GatedDeltaNetLayer,
        GatedDeltaProductLayer,
        GDN2Layer,
        KDALayer,
    )
    from fsa2lrnn.nn.layers.diagonal import LRULayer, S5Layer
    from fsa2lrnn.nn.layers.gated import MinGRULayer, SLSTMLayer
    from fsa2lrnn.nn.layers.liquid_s4 import LiquidS4Layer
    from fsa2lrnn.nn.layers.mamba_layers import Mamba2Layer, Mamba3Layer
    from fsa2lrnn.nn.layers.pd_ssm import PDSSMLayer
    from fsa2lrnn.nn.layers.rwkv import RWKV4Layer, RWKV7Layer
    from fsa2lrnn.nn.layers.s4 import S4DLayer, S4Layer
    from fsa2lrnn.nn.layers.slice_layer import SliceLayer
    from fsa2lrnn.nn.layers.vanilla import VanillaLayer

    return {
        "s4": S4Layer,
        "s4d": S4DLayer,
        "liquid_s4": LiquidS4Layer,
        "s5": S5Layer,
        "lru": LRULayer,
        "rwkv4": RWKV4Layer,
        "vanilla": VanillaLayer,
        "gated_deltanet": GatedDeltaNetLayer,
        "deltaproduct": DeltaProductLayer,
        "gated_deltaproduct": GatedDeltaProductLayer,
        "kda": KDALayer,
        "gdn2": GDN2Layer,
        "mamba2": Mamba2Layer,
        "mamba3": Mamba3Layer,
        "rwkv7": RWKV7Layer,
        "pd_ssm": PDSSMLayer,
        "slice": SliceLayer,
        "mingru": MinGRULayer,
        "slstm": SLSTMLayer,
    }


class LayerTable(Mapping[str, type[Layer]]):
    """A mapping from names to layer classes, the library's and registered ones.

    Published layers are imported when one of them is first looked up; `loaded` holds what is imported.
    """

    def __init__(self, layers: Mapping[str, type[Layer]]) -> None:
        self.loaded = dict(layers)

    def __getitem__(self, name: str) -> type[Layer]:
        if name not in self.loaded and name in TRAINED:
            found = _published()
            OURS.update(found.values())
            self.loaded |= found
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.loaded, *TRAINED]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self.loaded or name in TRAINED


LAYERS = LayerTable(
    {
        "block": BlockLayer,
        "householder": HouseholderLayer,
        "hard_channels": HardChannelsLayer,
        "hard_reflections": HardReflectionsLayer,
        "hard_pd_ssm": HardPDSSMLayer,
        "hard_deltaproduct": HardDeltaProductLayer,
        "hard_slice": HardSliceLayer,
        "index": IndexLayer,
    }
)
"""All layers by name."""
OURS: set[type[Layer]] = set(LAYERS.loaded.values())
"""The library's own layers. Declarations of all other layers are tested on random inputs (`layer_checks`)."""
_REQUIRED = ("forward", "initial_state", "emit")


def layer_named(name: str) -> type[Layer]:
    """Return the class that trains a layer of any name (`fsa2lrnn.layers`), or of "my_module:MyLayer".

    The latter imports the module and registers the layer.

    Raises:
        UnsupportedFormat: for an unknown name, a layer that no class trains, a module that cannot be imported, or a
            class that is not a layer.
    """
    if name not in LAYERS and is_layer(name):
        return LAYERS[trained_name(name)]
    if name not in LAYERS and ":" in name:
        register(name, _imported(name))
    if name not in LAYERS:
        raise UnsupportedFormat(
            f"layer {name!r} is not known: {meant(name, LAYERS)}one of {', '.join(LAYERS)}, or module:Class for one of "
            "your own"
        )
    return LAYERS[name]


def layer_in_file(name: object) -> type[Layer]:
    """Return the layer class that a file names; raise `UnsupportedFormat` unless it is ours or registered.

    A file cannot cause any other import.
    """
    if not isinstance(name, str) or name not in LAYERS:
        fault = f"layer kind {shown(name)} is not known: one of {', '.join(LAYERS)}"
        hint = f"; a layer of your own is made known first, by fsa2lrnn.nn.layer_named({name!r}) or --import {name}"
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
        raise UnsupportedFormat(f"{name} is not a layer: derive it from fsa2lrnn.nn.Layer and set its Config")
    if not issubclass(config, LayerConfig):
        raise UnsupportedFormat(f"{name}.Config is {config.__name__}: derive it from fsa2lrnn.nn.LayerConfig")
    if missing := [method for method in _REQUIRED if getattr(layer, method) is getattr(Layer, method)]:
        raise UnsupportedFormat(f"{name} lacks {', '.join(missing)}: define it, as fsa2lrnn.nn.Layer describes it")
    for other, registered in others.items():
        if registered.Config is config and other != name:
            raise UnsupportedFormat(
                f"{name}.Config is {config.__name__}, which {other} has: derive one of its own, as a model tells its "
                "layers by it"
            )


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
        "(fsa2lrnn.nn.register)"
    )


def _imported(name: str) -> type[Layer]:
    """Return the class of "module:Class", searched for in the working directory last, or raise `UnsupportedFormat`."""
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
