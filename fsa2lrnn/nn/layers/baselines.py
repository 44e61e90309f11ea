"""Published recurrent layers as baselines: S4, S4D, S5, LRU, Liquid-S4, RWKV-4 and a plain linear RNN."""

from fsa2lrnn.nn.layers.liquid_s4 import LiquidS4Config, LiquidS4Layer
from fsa2lrnn.nn.layers.lru import LRUConfig, LRULayer
from fsa2lrnn.nn.layers.rwkv4 import RWKV4Config, RWKV4Layer
from fsa2lrnn.nn.layers.s4 import S4Config, S4Layer
from fsa2lrnn.nn.layers.s4d import S4DConfig, S4DLayer
from fsa2lrnn.nn.layers.s5 import S5Config, S5Layer
from fsa2lrnn.nn.layers.vanilla import VanillaConfig, VanillaLayer

__all__ = [
    "LRUConfig",
    "LRULayer",
    "LiquidS4Config",
    "LiquidS4Layer",
    "RWKV4Config",
    "RWKV4Layer",
    "S4Config",
    "S4DConfig",
    "S4DLayer",
    "S4Layer",
    "S5Config",
    "S5Layer",
    "VanillaConfig",
    "VanillaLayer",
]
