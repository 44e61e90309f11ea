"""Models that compute a machine nearly: tables of a conjugate of the one-hot solution, with noise."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from fsa2lrnn import LRNN, MooreMachine, zoo
from fsa2lrnn.automata import minimise
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.nn import scan_tokens
from fsa2lrnn.nn.switched import Readout, SwitchedAffine, switched
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification.certify import tubes
from fsa2lrnn.verification.specification import specification_of


def perturbed(machine, noise=0.01, heads=1, layer_norm=True, dtype=torch.float32, seed=0):
    """Tables with A_a s_q + v_a ≈ s_δ(q,a) for well-separated random s_q in the first head; other heads just mix."""
    rng = np.random.default_rng(seed)
    machine = minimise(machine)
    n, k, outputs = machine.n_states, len(machine.delta), tuple(dict.fromkeys(machine.outputs))
    b = n + 1
    basis = np.linalg.qr(rng.normal(size=(b, b)))[0] + 0.2 * rng.normal(size=(b, b))
    A, v = 0.3 * rng.normal(size=(k, heads, b, b)) / np.sqrt(b), 0.3 * rng.normal(size=(k, heads, b))
    x0 = rng.normal(size=(heads, b))
    there = np.linalg.inv(basis)
    one_hot = np.zeros((k, b, b))
    for a in range(k):
        one_hot[a, machine.delta[a], np.arange(n)] = 1
    A[:, 0] = basis @ one_hot @ there + noise * rng.normal(size=(k, b, b))
    v[:, 0] = noise * rng.normal(size=(k, b))
    x0[0] = basis[:, machine.start]
    votes = np.zeros((len(outputs), b))
    votes[[outputs.index(output) for output in machine.outputs], np.arange(n)] = 1
    W = np.zeros((len(outputs), heads * b))
    W[:, :b] = votes @ there
    tensor = lambda x: torch.tensor(x, dtype=dtype)  # noqa: E731
    readout = Readout.linear(tensor(W), tensor(0.01 * rng.normal(size=len(outputs))))
    if layer_norm:
        weight, bias = 1 + 0.1 * rng.normal(size=heads * b), 0.05 * rng.normal(size=heads * b)
        readout = Readout(readout.W1, readout.b1, readout.W2, readout.b2, tensor(weight), tensor(bias))
    return SwitchedAffine.of(tensor(A), tensor(v), tensor(x0), readout, machine.alphabet, outputs)


@st.composite
def perturbed_machines(draw):
    """A machine of up to 3 states and 2 letters, and tables that compute it for a while, with LayerNorm or without, in
    float32 or float64, of one head or two."""
    machine = draw(machines(max_states=3, max_letters=2, outputs=(0, 1)))
    tables = perturbed(
        machine, noise=draw(st.sampled_from([0.0, 0.003, 0.03, 0.1])), heads=draw(st.integers(1, 2)),
        layer_norm=draw(st.booleans()), dtype=draw(st.sampled_from([torch.float32, torch.float64])),
        seed=draw(st.integers(0, 99)),
    )  # fmt: skip
    return machine, tables


@pytest.fixture(scope="module", autouse=True)
def short_searches():
    """Sets begin after a thousand words, not twenty thousand, and a tail has at most 12 ramps: all else is as ever."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tubes, "_WORDS", 1_000)
        patch.setattr(tubes, "_MOST_RAMPS", 12)
        yield


@pytest.fixture(scope="session")
def drifting():
    """Sums modulo 3, nearly: a machine and tables that are right for some dozens of letters."""
    machine = zoo.sum_mod(3)
    return machine, perturbed(machine, noise=0.01, heads=2, seed=3)


@pytest.fixture(scope="session")
def forgetful():
    """Whether the last letter was b: contracting tables, right for ever."""
    machine = MooreMachine([[0, 0], [1, 1]], [0, 1], 0, "ab")
    tables = perturbed(machine, noise=0.02, layer_norm=False, seed=1)
    there = torch.einsum("ahij,hj->ahi", tables.A, tables.x0)  # where each letter leads from the start, and so from all
    half = SwitchedAffine.of(
        0.5 * tables.A, 0.5 * there, tables.x0, tables.readout, tables.alphabet, tables.outputs
    )  # fmt: skip
    return machine, half


def model_of(tables):
    """The LRNN with these tables."""
    return LRNN.from_tables(tables.A, tables.v, tables.x0, tables.readout, tables.alphabet, tables.outputs)


SCANS = ("sequential", "fused", "letters")


def worst_margins(model, machine, length, method, ignore):
    """The least margin at each length, over all words, from logits as this scan and the read-out compute them."""
    goal = specification_of(model, machine, ignore)
    words = np.array(list(itertools.product(range(len(model.alphabet)), repeat=length)))
    labels = goal.labels[goal.path(words)]
    tables = switched(model)
    x = scan_tokens(torch.from_numpy(words), tables.A, tables.v, tables.x0, method)
    logits = tables.logits(x).double().numpy()
    at = np.maximum(labels, 0)[..., None]
    own = np.take_along_axis(logits, at, -1)[..., 0]
    np.put_along_axis(logits, at, -np.inf, -1)
    return np.where(labels == UNCOUNTED, np.inf, own - logits.max(-1)).min(0)


def assert_uncontradicted(certificate, tables, machine):
    n = len(tables.alphabet)
    length = 12 if n == 1 else int(np.log(5_000) / np.log(n))
    length = min(length, 12 if certificate.horizon is None else certificate.horizon)
    if not length:
        return
    for method in SCANS:
        margins = worst_margins(model_of(tables), machine, length, method, certificate.ignore)
        claimed = certificate.margins[:length]
        assert (margins[: len(claimed)] >= claimed).all()
        assert (margins > 0).all()
