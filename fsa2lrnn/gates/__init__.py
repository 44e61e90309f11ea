"""Gates Linear–ReLU–Linear with integer weights, and the synthesis of a gate that computes a table."""

from fsa2lrnn.gates.cover import boxes
from fsa2lrnn.gates.gate import Coordinate, ReluGate, features, synthesise

__all__ = ["Coordinate", "ReluGate", "boxes", "features", "synthesise"]
