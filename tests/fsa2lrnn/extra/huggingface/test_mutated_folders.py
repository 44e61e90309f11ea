"""Folders with one thing changed are refused, or answer as they are proved to: see `mutated_folders.py`."""

import os

import pytest

pytest.importorskip("transformers")

from tests.fsa2lrnn.extra.huggingface.mutated_folders import try_all, violations, write_all


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("mutated"))


def test_a_few_mutated_folders(folders):
    assert violations(try_all(12, 0, folders)) == []


@pytest.mark.slow
def test_mutated_folders(folders):
    """MUTATED_FOLDERS says how many, 100 if it is not set."""
    assert violations(try_all(int(os.environ.get("MUTATED_FOLDERS", "100")), 1, folders)) == []
