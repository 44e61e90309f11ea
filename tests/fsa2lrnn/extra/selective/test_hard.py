"""Hard PD-SSM, DeltaProduct and SLiCE: values, gradients, exactness, and a proof at the end of learning."""

import pytest
import torch

from fsa2lrnn import prove_equivalent
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.learning import learn
from fsa2lrnn.extra.selective.hard import HardDeltaProductConfig, HardPDSSMConfig, HardSliceConfig, permutation
from fsa2lrnn.lrnn import LRNN, LRNNConfig
from fsa2lrnn.lrnn.layers import LAYERS, name_of
from fsa2lrnn.verdicts import Proved, Refuted

CONFIGS = [
    HardPDSSMConfig(3, "table", size=4),
    HardPDSSMConfig(3, "table", size=4, signs=True),
    HardDeltaProductConfig(3, "table", size=4),
    HardSliceConfig(3, "table", size=4),
]


def layer_of(config):
    torch.manual_seed(0)
    layer = LAYERS[name_of(config)](5, config)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.copy_(torch.randn_like(weight))
    return layer


@pytest.mark.parametrize("config", CONFIGS)
def test_rows_copy_one_number_or_write_one(config):
    A, v = layer_of(config).tables(torch.eye(5))
    copies, writes = (A != 0).sum(-1), v != 0
    assert ((copies <= 1) & ~((copies == 1) & writes)).all()
    assert set(A.unique().tolist()) <= {-1.0, 0.0, 1.0}
    if not isinstance(config, HardPDSSMConfig):
        assert ((A != 0).sum(-2) <= 1).all()  # an exchange: no number goes to two places
    assert writes.any() == (isinstance(config, HardDeltaProductConfig))
    assert (A < 0).any() == (isinstance(config, HardPDSSMConfig) and config.signs)


@pytest.mark.parametrize("config", CONFIGS)
def test_every_scan_gives_the_same_bits(config):
    layer, index = layer_of(config), torch.randint(5, (4, 60))
    assert layer.starts_exact()
    assert layer.is_exact(torch.eye(5), 2.0**24)
    found = [layer(torch.eye(5), layer.initial_state(4), method, index)[0] for method in ("auto", *layer.methods)]
    assert all(torch.equal(x, found[0]) for x in found)
    with torch.no_grad():  # a mutant: a coordinate that doubles
        halved = layer.tables(torch.eye(5))
    layer.chosen = lambda _: (2 * halved[0], halved[1])
    assert not layer.is_exact(torch.eye(5), 2.0**24)


def test_a_permutation_takes_the_largest_entries_first_and_learns_as_sinkhorn_does():
    torch.manual_seed(0)
    logits = torch.randn(7, 4, 4, dtype=torch.float64, requires_grad=True)
    hard = permutation(logits, 0.5)
    assert torch.equal(hard.sum(-1), torch.ones(7, 4)) and torch.equal(hard.sum(-2), torch.ones(7, 4))  # noqa: PT018
    largest = logits.detach().flatten(1).argmax(1)
    assert (hard.flatten(1).gather(1, largest[:, None]) == 1).all()
    dy = torch.randn_like(hard)
    (found,) = torch.autograd.grad(hard, logits, dy)
    soft = (logits / 0.5).exp()
    for _ in range(8):
        soft = soft / soft.sum(-1, keepdim=True)
        soft = soft / soft.sum(-2, keepdim=True)
    (expected,) = torch.autograd.grad(soft, logits, dy)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("layer", ["hard_pd_ssm", "hard_slice"])
def test_learned_networks_are_proved(layer):
    learned = learn("task:group(S3)", layer=layer, block=3, steps=3_000)
    assert learned.is_proved
    source = MooreMachine.from_source("task:group(S3)")
    assert isinstance(prove_equivalent(learned.network, source), Proved)
    with torch.no_grad():  # a mutant: another permutation for one letter in every head
        learned.network.layers[0].transition.table[:, 0] *= -1
    assert isinstance(prove_equivalent(learned.network, source), Refuted)


def test_rounding_that_may_change_a_choice_is_seen():
    config = HardSliceConfig(1, "relu", hidden=4, size=2)
    model = LRNN(LRNNConfig("ab", (0, 1), (config,), embedding_dim=3))
    layer, rows = model.recurrences[0], model.first_inputs().detach()
    assert layer.is_exact(rows, 2.0**24)
    with torch.no_grad():
        gate = layer.transition.weights
        gate.W2.copy_(gate.W2[:1].expand_as(gate.W2))
        gate.b2.copy_(gate.b2[:1].expand_as(gate.b2))
    assert not layer.is_exact(rows, 2.0**24)
