"""Exported folders, made once."""

from functools import cache

import pytest

from fsa2lrnn import zoo


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Exports a machine, or one of the zoo by a call of it, to a layer: (folder, what was written)."""
    pytest.importorskip("transformers")
    from fsa2lrnn.released.export import export

    @cache
    def write(task, layer="olmo-hybrid", dtype="float32"):
        folder = tmp_path_factory.mktemp("exported") / "model"
        machine = zoo.from_task(task) if isinstance(task, str) else task
        return folder, export(machine, layer, folder, dtype)

    return write
