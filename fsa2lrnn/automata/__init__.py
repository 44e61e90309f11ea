"""Moore machines, with operations on them, file formats, analysis and a zoo; this package does not import torch."""

from fsa2lrnn.automata.language import complete, equivalent, explore, minimise, product, trim
from fsa2lrnn.automata.machine import MooreMachine

__all__ = ["MooreMachine", "complete", "equivalent", "explore", "minimise", "product", "trim"]
