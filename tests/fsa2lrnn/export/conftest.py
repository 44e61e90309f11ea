"""Exported folders, made once."""

from functools import cache

import pytest
import torch

from fsa2lrnn import MooreMachine, zoo

MACHINES = {  # that layers without negative eigenvalues hold
    "flip_flop": zoo.flip_flop(),
    "ab_star": zoo.ab_star(),
    "shift_register": zoo.shift_register(3),
    "register": MooreMachine([range(5), *([q] * 5 for q in range(5))], "vwxyz", alphabet="-01234"),
}


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Exports a machine, or one of the zoo by a call of it, to a layer: (folder, what was written)."""
    pytest.importorskip("transformers")
    from fsa2lrnn.export.whole_model import export

    @cache
    def write(task, layer="olmo-hybrid", dtype="float32"):
        folder = tmp_path_factory.mktemp("exported") / "model"
        machine = zoo.from_task(task) if isinstance(task, str) else task
        return folder, export(machine, layer, folder, dtype)

    return write


@pytest.fixture
def agrees():
    """Whether no letter of a word is answered wrongly, read `chunk` letters at a time: f(model, word, chunk)."""
    from fsa2lrnn.export.folder import run

    def compare(model, word, chunk=2_048):
        machine = model.machine
        numbers = {output: len(machine.alphabet) + j for j, output in enumerate(model.outputs)}
        wanted = [numbers[output] for output in machine.transduce([machine.alphabet[a] for a in word])]
        return run(model, torch.tensor(word), chunk)[0].tolist() == wanted

    return compare
