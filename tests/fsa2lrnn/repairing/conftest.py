"""Models to repair: constructed ones in a basis of chance, disturbed."""

import numpy as np
import pytest
import torch

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.nn import LRNN
from fsa2lrnn.nn.switched import Readout, switched
from fsa2lrnn.repairing.observed import RepairStates, observe
from fsa2lrnn.repairing.probe import Block
from fsa2lrnn.repairing.representation import learned_representation
from fsa2lrnn.verification.specification import specification_of


def one_hot(machine):
    """The minimal machine as maps of one-hot vectors: M (|Σ|, n, n), and Ω (|Γ|, n) with its outputs."""
    minimal = minimise(machine)
    n = minimal.n_states
    M = np.eye(n)[minimal.delta].swapaxes(1, 2)
    outputs = tuple(dict.fromkeys(minimal.outputs))
    omega = np.array([[float(output == wanted) for output in minimal.outputs] for wanted in outputs])
    return minimal, M, omega, outputs


def disturb(machine, noise=2e-3, fast=2, seed=0, dtype=torch.float64):
    """One block: e_q beside a fading memory of the letters, in a well-conditioned basis of chance, plus noise."""
    rng = np.random.default_rng(seed)
    minimal, M, omega, outputs = one_hot(machine)
    n_letters, n, _ = M.shape
    b = n + fast
    A, v, x0 = np.zeros((n_letters, b, b)), np.zeros((n_letters, b)), np.zeros(b)
    A[:, :n, :n], A[:, n:, n:] = M, 0.2 * np.eye(fast)
    v[:, n:] = 0.3 * rng.standard_normal((n_letters, fast))
    x0[minimal.start] = 1
    left, right = (np.linalg.qr(rng.standard_normal((b, b)))[0] for _ in range(2))
    mix = left * rng.uniform(0.7, 1.4, b) @ right
    back = np.linalg.inv(mix)
    tables = [mix @ A @ back, v @ mix.T, mix @ x0]
    A, v, x0 = (
        torch.tensor(table + noise * rng.standard_normal(table.shape)).unsqueeze(-3 if table.ndim == 3 else -2)
        for table in tables
    )
    readout = Readout.linear(torch.tensor(omega @ back[:n]), torch.zeros(len(outputs), dtype=torch.float64))
    return LRNN.from_tables(A, v, x0, readout, minimal.alphabet, outputs).to(dtype)


@pytest.fixture(scope="session")
def disturbed():
    """The function `disturb`."""
    return disturb


@pytest.fixture(scope="session")
def work():
    """A function that looks at a model: its tables by head, the states, what was observed, the images found by head."""

    def look(model, machine):
        tables = switched(model).to(torch.float64)
        states = RepairStates.of(specification_of(model, machine))
        observed = observe(tables, states)
        A, v, x0 = (table.numpy() for table in (tables.A, tables.v, tables.x0))
        found = []
        for h in range(len(x0)):
            seen = observed.head(h)
            image = learned_representation(seen, x0[h], states, 0.8)
            found.append((Block(A[:, h], v[:, h], x0[h]), image, seen))
        return found

    return look
