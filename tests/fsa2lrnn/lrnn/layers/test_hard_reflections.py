"""Hard reflections against their definition, value and gradient."""

import pytest
import torch

from fsa2lrnn.lrnn import HardReflectionsConfig
from fsa2lrnn.lrnn.layers.hard import HardReflectionsLayer


def through(logits, temperature):
    """Straight through: the value of the largest, the gradient of the softmax."""
    soft = (logits / temperature).softmax(-1)
    hard = torch.zeros_like(soft).scatter_(-1, logits.argmax(-1, keepdim=True), 1)
    return hard + soft - soft.detach()


def defined(layer, config, u, index):
    """The factors multiplied out, and what is written where nothing is left, by einsum."""
    n, m, eye = config.size, config.factors, torch.eye(config.size, dtype=u.dtype)
    logits = torch.einsum("lm,nm->nl", layer.transition.table, u).unflatten(-1, (config.heads, -1))
    ends = through(logits[..., : 2 * m * (n + 1)].unflatten(-1, (m, 2, n + 1)), layer.temperature)[..., :n]
    writes = through(logits[..., 2 * m * (n + 1) :].unflatten(-1, (n, 3)), layer.temperature)
    A = eye.expand(len(u), config.heads, n, n)
    for j in range(m):
        key = ends[:, :, j, 0] - ends[:, :, j, 1]
        A = torch.einsum("ahij,ahjk->ahik", eye - torch.einsum("ahi,ahj->ahij", key, key), A)
    v = (1 - torch.einsum("ahij,ahij->ahi", A, A)) * torch.einsum("ahic,c->ahi", writes, u.new_tensor((-1, 0, 1)))
    x, states = through(layer.x0, layer.temperature).expand(len(index), -1, -1), []
    for a in index.unbind(1):
        x = torch.einsum("bhij,bhj->bhi", A[a], x) + v[a]
        states.append(x)
    return torch.stack(states, 1).flatten(-2)


@pytest.mark.parametrize("method", ["auto", "sequential", "pscan", "fused"])
@pytest.mark.parametrize("factors", [1, 2, 3])
def test_value_and_gradient_are_those_of_the_definition(method, factors):
    torch.manual_seed(factors)
    config = HardReflectionsConfig(3, "table", size=3, factors=factors, temperature=0.7)
    layer = HardReflectionsLayer(4, config).double()
    index, u = torch.randint(4, (5, 9)), torch.eye(4, dtype=torch.float64)
    weights = torch.randn(5, 9, 9, dtype=torch.float64)
    found = [
        (x, torch.autograd.grad(x, [layer.transition.table, layer.x0], weights))
        for x in (layer(u, layer.initial_state(5), method, index)[0], defined(layer, config, u, index))
    ]
    torch.testing.assert_close(found[0][0], found[1][0], rtol=0, atol=1e-14)
    for ours, theirs in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
        assert ours.abs().max() > 0


def test_a_key_exchanges_or_erases_and_what_is_erased_is_written():
    layer = HardReflectionsLayer(3, HardReflectionsConfig(1, "table", size=3))
    ends = [(0, 2), (1, 3), (3, 3)]  # exchange 0 and 2; erase 1; nothing
    with torch.no_grad():
        layer.transition.table.zero_()
        for letter, (i, j) in enumerate(ends):
            layer.transition.table[i, letter] = layer.transition.table[4 + j, letter] = 1
        layer.transition.table[8:].view(3, 3, 3)[:, 2] = 1  # a 1 into every coordinate
    A, v = layer.tables(torch.eye(3))
    assert A[0, 0].tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert A[1, 0].tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert torch.equal(A[2, 0], torch.eye(3))
    assert v[:, 0].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert layer.family == "householder"
