"""The whole way, on every machine of the zoo and on 200 random ones: compile, run, prove, extract, in four dtypes."""

import numpy as np
import pytest
import torch

from fsa2lrnn.automata import equivalent, zoo
from fsa2lrnn.extract import extract
from fsa2lrnn.lower import DTYPES, compile_machine
from fsa2lrnn.lrnn import load, save
from verify import Proved, prove_equivalent

N_RANDOM, N_BATCHES = 200, 20
LENGTH = 37  # no power of two, and long enough for six rounds of pscan


def random_machine(seed):
    """n ≤ 40 states and |Σ| ≤ 6 letters, both drawn from the seed."""
    rng = np.random.default_rng(seed)
    return zoo.random_dfa(int(rng.integers(1, 41)), int(rng.integers(1, 7)), seed)


def go_all_the_way(machine, seed):
    minimal = machine.minimise()
    rng = np.random.default_rng(seed)
    tokens = torch.from_numpy(rng.integers(len(machine.alphabet), size=(4, LENGTH)))
    expected = [minimal.transduce([machine.alphabet[a] for a in word]) for word in tokens.tolist()]
    for dtype in DTYPES:
        model = compile_machine(machine, dtype=dtype)
        n = minimal.n_states
        assert prove_equivalent(model, machine) == Proved(
            n, n * len(machine.alphabet), n, str(dtype).removeprefix("torch."), ("sequential", "pscan")
        )
        one_hot = torch.eye(len(model.outputs), dtype=dtype)
        exact = one_hot[torch.tensor([[model.outputs.index(y) for y in outputs] for outputs in expected])]
        for method in ("sequential", "pscan"):
            assert torch.equal(model(tokens, method), exact)
        if dtype == torch.float32:
            assert extract(model) == minimal


@pytest.mark.parametrize("name", zoo.ZOO)
def test_zoo(name):
    machine = zoo.from_task(name)
    go_all_the_way(machine, seed=0)


@pytest.mark.parametrize("batch", range(N_BATCHES))
def test_random_machines(batch):
    for seed in range(batch * N_RANDOM // N_BATCHES, (batch + 1) * N_RANDOM // N_BATCHES):
        go_all_the_way(random_machine(seed), seed)


def test_from_text_to_disk_and_back(tmp_path):
    machine = zoo.mod_arith(5)
    save(compile_machine(machine, dtype=torch.bfloat16), tmp_path / "m.safetensors")
    assert equivalent(extract(load(tmp_path / "m.safetensors")), machine) is None
