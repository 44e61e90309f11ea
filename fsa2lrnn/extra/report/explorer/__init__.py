"""The explorer: one page, which needs nothing beside it, on which an automaton and its networks run letter by letter.

The page computes by itself, in the arithmetic that the models have (`engine.js`); what it needs for that stands in it.
"""

from fsa2lrnn.extra.report.explorer.page import build
from fsa2lrnn.extra.report.explorer.scene import MODELS, SceneModel, scene

__all__ = ["MODELS", "SceneModel", "build", "scene"]
