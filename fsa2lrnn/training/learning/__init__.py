"""Training that ends in a proof: a layer of one-hot columns is an automaton, and one of its heads mostly the machine.

`learn` is the door; `recipe` says how a start is trained, `examples` on what, `run` is the loop, `prune` finds the
heads, `mending` searches where one is nearly right, `judging` decides, `result` is the answer, `saving` its folder,
`ending` how a run comes to both;
`distilling` has a trained model for the teacher. Layers whose heads share a machine out are proved as a `whole`: lanes
and reflections, of which `theory` says before what they can be, and several layers of blocks (`deep`), which `cascades`
teaches a machine's components one by one.
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
