import torch

from fsa2lrnn import __version__
from fsa2lrnn.versions import versions


def test_the_versions_are_those_that_compute():
    found = versions()
    assert found["torch"] == torch.__version__
    assert found["fsa2lrnn"] == __version__
