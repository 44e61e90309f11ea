"""Exported folders, made once."""

from functools import cache

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, zoo


def random_cascade(seed, n_letters=3, values=2):
    """A register, and a second one that each letter resets or keeps depending on the first one's value."""
    rng = np.random.default_rng(seed)
    lower = rng.integers(-1, values, size=n_letters)  # −1 keeps the value
    upper = rng.integers(-1, values, size=(n_letters, values))
    delta = [
        [
            values * (x if lower[a] < 0 else lower[a]) + (y if upper[a, x] < 0 else upper[a, x])
            for x in range(values)
            for y in range(values)
        ]
        for a in range(n_letters)
    ]
    return MooreMachine(delta, range(values**2))


MACHINES = {  # that layers without negative eigenvalues hold
    "flip_flop": zoo.flip_flop(),
    "ab_star": zoo.ab_star(),
    "shift_register": zoo.shift_register(3),
    "cascade": random_cascade(2),
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
