"""A run without a break, as a fixture."""

import pytest

from fsa2lrnn.training.train import train

from .runs import TINY


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """Twenty steps without a break."""
    folder = tmp_path_factory.mktemp("straight")
    return train(TINY, folder), folder
