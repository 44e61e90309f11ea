"""Training that ends in a proof: a layer of one-hot columns is an automaton, and usually one of its heads the machine.

`learn` is the entry point; `recipe` holds the settings, `examples` the words, `run` the loop; `prune` selects heads,
`mending` repairs one that is nearly correct, `judging` verifies; `result` is the answer, `saving` its folder, `ending`
produces both. `distilling` learns from a trained model. Layers whose heads implement a machine together are verified as
a `whole`: hard lanes and reflections, whose limits `theory` predicts, and several layers of blocks (`deep`), into which
`cascades` distils a machine's components.
"""

from fsa2lrnn.training.learning.cascades import CascadePlan, distil_cascade, plan_cascade
from fsa2lrnn.training.learning.distilling import distil
from fsa2lrnn.training.learning.learn import METHODS, learn, then_prove
from fsa2lrnn.training.learning.recipe import Recipe, recipe_for
from fsa2lrnn.training.learning.result import Agreement, Learned
from fsa2lrnn.training.learning.saving import summary
from fsa2lrnn.training.learning.word_files import Data, from_pairs, read_words

__all__ = [
    "METHODS",
    "Agreement",
    "CascadePlan",
    "Data",
    "Learned",
    "Recipe",
    "distil",
    "distil_cascade",
    "from_pairs",
    "learn",
    "plan_cascade",
    "read_words",
    "recipe_for",
    "summary",
    "then_prove",
]
