"""Weighted automata: the functions that linear recurrent layers with linear read-outs compute.

Algebra over ℚ is exact (`weighted_automaton`, `spaces`), and its certificates are checked by `families.recheck` with
the standard library alone. `networks` compiles a weighted automaton into an `LRNN` and reads one out; it imports torch.

>>> from fsa2lrnn.weighted import WeightedAutomaton
>>> fair = WeightedAutomaton.from_probabilities("ab", [1], [[["1/4"]], [["1/4"]]], ["1/2"])
>>> fair("ab")
Fraction(1, 32)
"""

from fsa2lrnn.weighted.spaces import EqualFunctions, SeparatingWord, compare, minimal
from fsa2lrnn.weighted.weighted_automaton import WeightedAutomaton

__all__ = ["EqualFunctions", "SeparatingWord", "WeightedAutomaton", "compare", "minimal"]
