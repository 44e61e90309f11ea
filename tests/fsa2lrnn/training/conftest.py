"""A run without a break, and what runs leave, read as a user would."""

import json

import pytest

from fsa2lrnn.training.run_folder import METRICS
from fsa2lrnn.training.train import train

from .runs import TINY


@pytest.fixture
def read_records():
    """Reads the lines of metrics in the folder of a run."""
    return lambda folder: [json.loads(line) for line in (folder / METRICS).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """Twenty steps without a break."""
    folder = tmp_path_factory.mktemp("straight")
    return train(TINY, folder), folder
