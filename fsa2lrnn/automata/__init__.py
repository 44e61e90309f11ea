"""Automata: the Moore machine, what it computes, where it comes from. Knows nothing of torch."""

from fsa2lrnn.automata.explore import explore
from fsa2lrnn.automata.language import complete, equivalent, minimise, product, trim
from fsa2lrnn.automata.machine import MooreMachine

__all__ = ["MooreMachine", "complete", "equivalent", "explore", "minimise", "product", "trim"]
