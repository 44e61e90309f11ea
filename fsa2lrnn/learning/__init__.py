"""Training that ends in a proof: every head of a layer with one-hot columns is an automaton, so it can be verified.

`methods` has `learn`, `recipe` the settings, `examples` the words, `learning_run` the loop; `prune` selects heads,
`patching` repairs one that is nearly correct, `judging` verifies; `result` is the answer, `saving` its folder. Layers
whose heads implement a machine together (hard channels, reflections) are verified as a `whole`. For words with outputs
`choosing` runs `merging`, `hypotheses` and `search`, and takes the simplest machine. Hypotheses are `decision_lists`
over `literals` and `growing` machines, which `likelihood` refines.
"""

from fsa2lrnn.learning.methods import METHODS, learn, then_prove
from fsa2lrnn.learning.recipe import Recipe, recipe_for
from fsa2lrnn.learning.result import Agreement, Learned
from fsa2lrnn.learning.saving import summary
from fsa2lrnn.learning.word_files import Data, from_pairs, read_words

__all__ = [
    "METHODS",
    "Agreement",
    "Data",
    "Learned",
    "Recipe",
    "from_pairs",
    "learn",
    "read_words",
    "recipe_for",
    "summary",
    "then_prove",
]
