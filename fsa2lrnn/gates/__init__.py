"""Gates Linear–ReLU–Linear: what they compute, and how to make one that computes a given table."""

from fsa2lrnn.gates.boxes import boxes
from fsa2lrnn.gates.gate import ReluGate
from fsa2lrnn.gates.synthesis import Coordinate, features, synthesise

__all__ = ["Coordinate", "ReluGate", "boxes", "features", "synthesise"]
