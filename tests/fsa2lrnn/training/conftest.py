"""What a run leaves, read as a user would."""

import json

import pytest

from fsa2lrnn.training.run_folder import METRICS


@pytest.fixture
def read_records():
    """Reads the lines of metrics in the folder of a run."""
    return lambda folder: [json.loads(line) for line in (folder / METRICS).read_text(encoding="utf-8").splitlines()]
