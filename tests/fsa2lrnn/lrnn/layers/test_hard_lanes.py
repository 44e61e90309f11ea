"""Hard lanes against their definition, value and gradient."""

import pytest
import torch

from fsa2lrnn.lrnn import HardLanesConfig
from fsa2lrnn.lrnn.layers.hard import MAPS, STARTS, HardLanesLayer


def through(logits, temperature):
    """Straight through: the value of the largest, the gradient of the softmax."""
    soft = (logits / temperature).softmax(-1)
    hard = torch.zeros_like(soft).scatter_(-1, logits.argmax(-1, keepdim=True), 1)
    return hard + soft - soft.detach()


def defined(layer, u, index):
    """x_k = a x_{k−1} + v, letter after letter, by einsum."""
    logits = torch.einsum("lm,nm->nl", layer.transition.table, u).unflatten(-1, (-1, len(MAPS)))
    maps = torch.einsum("nhm,mc->nhc", through(logits, layer.temperature), u.new_tensor(MAPS))
    x = torch.einsum("hm,m->h", through(layer.x0, layer.temperature), u.new_tensor(STARTS)).expand(len(index), -1)
    states = []
    for a in index.unbind(1):
        x = torch.einsum("bh,bh->bh", maps[a][..., 0], x) + maps[a][..., 1]
        states.append(x)
    return torch.stack(states, 1)


@pytest.mark.parametrize("method", ["auto", "sequential", "pscan", "fused"])
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_are_those_of_the_definition(method, seed):
    torch.manual_seed(seed)
    layer = HardLanesLayer(3, HardLanesConfig(4, "table", temperature=0.7)).double()
    index, u = torch.randint(3, (5, 9)), torch.eye(3, dtype=torch.float64)
    weights = torch.randn(5, 9, 4, dtype=torch.float64)
    found = [
        (x, torch.autograd.grad(x, [layer.transition.table, layer.x0], weights))
        for x in (layer(u, layer.initial_state(5), method, index)[0], defined(layer, u, index))
    ]
    torch.testing.assert_close(found[0][0], found[1][0], rtol=0, atol=1e-15)
    for ours, theirs in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
        assert ours.abs().max() > 0


def test_each_map_is_chosen_by_its_logit():
    layer = HardLanesLayer(len(MAPS), HardLanesConfig(1, "table"))
    with torch.no_grad():
        layer.transition.table.copy_(torch.eye(len(MAPS)))
    A, v = layer.tables(torch.eye(len(MAPS)))
    assert list(zip(A.flatten().tolist(), v.flatten().tolist(), strict=True)) == [*MAPS]
    assert layer.family == "diagonal[-1,1]"
