"""The public names of this extra; the page on a run of `learn` takes them from here too."""

from fsa2lrnn.extra.learning.cascades import CascadePlan, distil_cascade, plan_cascade
from fsa2lrnn.extra.learning.distilling import distil
from fsa2lrnn.extra.learning.film import NEVER
from fsa2lrnn.extra.learning.methods import METHODS, learn, then_prove
from fsa2lrnn.extra.learning.recipe import Recipe, recipe_for
from fsa2lrnn.extra.learning.result import EVERY_WORD, Agreement, Learned, told
from fsa2lrnn.extra.learning.saving import read_agreement, read_finished, summary
from fsa2lrnn.extra.learning.word_files import Data, from_pairs, read_words

__all__ = [
    "EVERY_WORD",
    "METHODS",
    "NEVER",
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
    "read_agreement",
    "read_finished",
    "read_words",
    "recipe_for",
    "summary",
    "then_prove",
    "told",
]
