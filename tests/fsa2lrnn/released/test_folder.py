"""Folders: written, read, and those that are none of ours."""

import json

import pytest
import torch

pytest.importorskip("transformers")

from fsa2lrnn import zoo
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.released.folder import FILE, load, run


def test_what_is_loaded_is_what_was_written(exported):
    folder, written = exported("parity")
    model = load(folder)
    assert model.machine == zoo.parity()
    assert (model.layer, model.dtype) == ("olmo-hybrid", "float32")
    assert sum(parameter.numel() for parameter in model.model.parameters()) == written.n_parameters
    assert "trust_remote_code" not in (folder / "config.json").read_text()


def test_no_letters(exported):
    assert run(load(exported("parity")[0]), torch.zeros(0, dtype=torch.int64))[0].tolist() == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "no folder that `fsa2lrnn export` wrote"),
        ('{"format": "x", "version": 1}', "'x', version 1, where"),
        (None, "no folder"),
    ],
)
def test_another_folder_is_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / FILE).write_text(text)
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path)


def test_a_machine_that_does_not_fit_the_weights_is_refused(exported, tmp_path):
    import shutil

    folder = tmp_path / "changed"
    shutil.copytree(exported("parity")[0], folder)
    value = json.loads((folder / FILE).read_text())
    value["machine"]["outputs"] = [7, 7]
    (folder / FILE).write_text(json.dumps(value))
    with pytest.raises(CheckpointError, match="4 tokens for 2 letters and 1 outputs"):
        load(folder)
