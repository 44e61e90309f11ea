"""A folder holds one run, and its files agree."""

from dataclasses import replace

import pytest

from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.lrnn import LRNN, load
from fsa2lrnn.training import run_folder
from fsa2lrnn.training.run_folder import append_record, prepare, read_records, write_checkpoint
from fsa2lrnn.training.settings import Settings

SETTINGS = Settings("task:parity", embedding_dim=2, block=1, heads=2, normalisation="clip", connection="chain")


@pytest.fixture
def folder(tmp_path):
    """A run with a checkpoint after its first of two records."""
    folder = tmp_path / "a" / "run"
    assert prepare(folder, SETTINGS, resume=True) is None
    append_record(folder, {"step": 1})
    write_checkpoint(folder, LRNN(SETTINGS.network(("0", "1"), (False, True))), {"records": [{"step": 1}]})
    append_record(folder, {"step": 2})
    with (folder / run_folder.METRICS).open("a") as file:
        file.write('{"ste')  # the power went off
    return folder


def test_metrics_go_back_to_the_checkpoint(folder):
    checkpoint = prepare(folder, SETTINGS, resume=True)
    assert checkpoint is not None
    assert checkpoint["records"] == read_records(folder) == [{"step": 1}]
    assert load(folder / run_folder.MODEL).alphabet == ("0", "1")


def test_a_fresh_start_forgets_the_run(folder):
    assert prepare(folder, replace(SETTINGS, seed=3), resume=False) is None
    assert read_records(folder) == []
    assert sorted(path.name for path in folder.iterdir()) == ["metrics.jsonl", "settings.json"]


def test_a_folder_keeps_to_its_settings(folder):
    with pytest.raises(
        UnsupportedFormat, match=r"other settings \(batch = 128 there and 64 here, seed = 0 there and 1"
    ):
        prepare(folder, replace(SETTINGS, seed=1, batch=64), resume=True)
    assert prepare(folder, replace(SETTINGS, steps=7, stop_at=None), resume=True) is not None
    falling = replace(SETTINGS, schedule="cosine")
    prepare(folder, falling, resume=False)
    with pytest.raises(UnsupportedFormat, match="steps = 40000 there and 7 here"):
        prepare(folder, replace(falling, steps=7), resume=True)


def test_a_damaged_checkpoint_is_named(folder):
    path = folder / run_folder.CHECKPOINT
    for content in (b"", b"rubbish", path.read_bytes()[:-200]):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"checkpoint.bin is damaged and can't be resumed: start afresh"):
            prepare(folder, SETTINGS, resume=True)


def test_a_checkpoint_of_another_version_is_named(folder, monkeypatch):
    monkeypatch.setattr(run_folder, "VERSION", 2)
    with pytest.raises(CheckpointError, match="is of version 1, and this fsa2lrnn resumes 2: start afresh"):
        prepare(folder, SETTINGS, resume=True)
