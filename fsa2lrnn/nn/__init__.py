"""Linear RNN models (`LRNN`) with their layers, scans and files, in PyTorch. It does not import `automata`."""

from fsa2lrnn.nn.affine import Readout, SwitchedAffine
from fsa2lrnn.nn.checkpoint import load, save
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.layer_checks import FalseDeclaration, check_layers
from fsa2lrnn.nn.layers import (
    BlockLayerConfig,
    HardChannelsConfig,
    HardReflectionsConfig,
    HouseholderLayerConfig,
    IndexLayerConfig,
    Layer,
    LayerConfig,
    layer_named,
    register,
)
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.network import Network
from fsa2lrnn.nn.scans import scan, scan_tokens
from fsa2lrnn.nn.scans.cpu import schedule
from fsa2lrnn.nn.wrapped import wrap

__all__ = [
    "LRNN",
    "FalseDeclaration",
    "check_layers",
    "BlockLayerConfig",
    "Gate",
    "HardChannelsConfig",
    "HardReflectionsConfig",
    "HouseholderLayerConfig",
    "IndexLayerConfig",
    "LRNNConfig",
    "Layer",
    "Network",
    "LayerConfig",
    "Readout",
    "SwitchedAffine",
    "layer_named",
    "load",
    "register",
    "save",
    "scan",
    "scan_tokens",
    "schedule",
    "wrap",
]
