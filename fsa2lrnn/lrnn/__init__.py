"""The network, in torch alone: it knows of letters and outputs, not of automata."""

from fsa2lrnn.lrnn.checkpoint import load, save
from fsa2lrnn.lrnn.config import BlockLayerConfig, HouseholderLayerConfig, IndexLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.scans import scan, scan_tokens
from fsa2lrnn.lrnn.scans.pscan import schedule

__all__ = [
    "LRNN",
    "BlockLayerConfig",
    "HouseholderLayerConfig",
    "IndexLayerConfig",
    "LRNNConfig",
    "load",
    "save",
    "scan",
    "scan_tokens",
    "schedule",
]
