"""Write the explorer, a self-contained page on which an automaton and its networks run letter by letter.

The page computes the models in their own arithmetic (`engine.js`) and contains all data for this.
"""

from fsa2lrnn.extra.report.explorer.page import build
from fsa2lrnn.extra.report.explorer.scene import MODELS, SceneModel, scene

__all__ = ["MODELS", "SceneModel", "build", "scene"]
