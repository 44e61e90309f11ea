"""Layers whose transitions depend on the input: delta rules, Mamba-2 and 3, RWKV-7, PD-SSM, SLiCE, minGRU, sLSTM."""

from fsa2lrnn.nn.layers.delta_rules import (
    DeltaProductConfig,
    DeltaProductLayer,
    GatedDeltaNetConfig,
    GatedDeltaNetLayer,
    GatedDeltaProductConfig,
    GatedDeltaProductLayer,
)
from fsa2lrnn.nn.layers.hard_maps import (
    HardDeltaProductConfig,
    HardDeltaProductLayer,
    HardPDSSMConfig,
    HardPDSSMLayer,
    HardSliceConfig,
    HardSliceLayer,
)
from fsa2lrnn.nn.layers.kda import GDN2Config, GDN2Layer, KDAConfig, KDALayer
from fsa2lrnn.nn.layers.mamba2 import Mamba2Config, Mamba2Layer
from fsa2lrnn.nn.layers.mamba3 import Mamba3Config, Mamba3Layer
from fsa2lrnn.nn.layers.mingru import MinGRUConfig, MinGRULayer
from fsa2lrnn.nn.layers.pd_ssm import PDSSMConfig, PDSSMLayer
from fsa2lrnn.nn.layers.rwkv7 import RWKV7Config, RWKV7Layer
from fsa2lrnn.nn.layers.slice_layer import SliceConfig, SliceLayer
from fsa2lrnn.nn.layers.slstm import SLSTMConfig, SLSTMLayer

__all__ = [
    "DeltaProductConfig",
    "DeltaProductLayer",
    "GDN2Config",
    "GDN2Layer",
    "GatedDeltaNetConfig",
    "GatedDeltaNetLayer",
    "GatedDeltaProductConfig",
    "GatedDeltaProductLayer",
    "HardDeltaProductConfig",
    "HardDeltaProductLayer",
    "HardPDSSMConfig",
    "HardPDSSMLayer",
    "HardSliceConfig",
    "HardSliceLayer",
    "KDAConfig",
    "KDALayer",
    "Mamba2Config",
    "Mamba2Layer",
    "Mamba3Config",
    "Mamba3Layer",
    "MinGRUConfig",
    "MinGRULayer",
    "PDSSMConfig",
    "PDSSMLayer",
    "RWKV7Config",
    "RWKV7Layer",
    "SLSTMConfig",
    "SLSTMLayer",
    "SliceConfig",
    "SliceLayer",
]
