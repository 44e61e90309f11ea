"""The public names of this extra."""

from fsa2lrnn.extra.learning.methods import METHODS, learn, then_prove
from fsa2lrnn.extra.learning.recipe import Recipe, recipe_for
from fsa2lrnn.extra.learning.result import Agreement, Learned
from fsa2lrnn.extra.learning.saving import summary
from fsa2lrnn.extra.learning.word_files import Data, from_pairs, read_words

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
