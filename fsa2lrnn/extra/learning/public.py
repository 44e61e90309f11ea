"""The public names of this extra, and the names that a page on a run of `learn` needs."""

from fsa2lrnn.extra.learning.film import NEVER as NEVER
from fsa2lrnn.extra.learning.methods import METHODS, learn, then_prove
from fsa2lrnn.extra.learning.recipe import Recipe, recipe_for
from fsa2lrnn.extra.learning.result import EVERY_WORD as EVERY_WORD
from fsa2lrnn.extra.learning.result import Agreement, Learned
from fsa2lrnn.extra.learning.result import verdict_clause as verdict_clause
from fsa2lrnn.extra.learning.saving import read_agreement as read_agreement
from fsa2lrnn.extra.learning.saving import read_finished as read_finished
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
