"""Hard layers against their definitions: choices are the largest logit's, gradients a softmax's, and nothing rounds."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import LRNN, HardChannelsConfig, HardReflectionsConfig, LRNNConfig
from fsa2lrnn.nn.layers import Shape
from fsa2lrnn.nn.layers.base import exchanges_closed
from fsa2lrnn.nn.layers.hard import MAPS, STARTS, HardChannelsLayer, HardReflectionsLayer
from fsa2lrnn.nn.rounded_numbers import FloatFormat, RoundedNumbers

CONFIGS = [
    HardChannelsConfig(5, "table"),
    HardReflectionsConfig(3, "table", size=4, factors=2),
    HardChannelsConfig(3, gate="relu", hidden=6),
    HardReflectionsConfig(2, size=3, factors=3, gate="relu", hidden=6),
]


def model_of(config, seed=0):
    torch.manual_seed(seed)
    return LRNN(LRNNConfig(tuple("abc"), (0, 1), (config,), embedding_dim=3, readout_hidden=8))


@pytest.mark.parametrize("config", CONFIGS)
def test_no_scan_and_no_format_rounds(config):
    model, tokens = model_of(config), torch.randint(3, (4, 37), generator=torch.Generator().manual_seed(1))
    layer, u = model.layers[0], model.first_inputs()
    assert layer.family == ("diagonal[-1,1]" if isinstance(config, HardChannelsConfig) else "householder")
    assert layer.starts_exact()
    assert layer.is_exact(u, 2**24)
    x, _ = layer(u[tokens], layer.initial_state(4), "sequential")
    assert set(x.unique().tolist()) <= {-1.0, 0.0, 1.0}
    with torch.no_grad():
        assert torch.equal(layer(u[tokens], layer.initial_state(4), "sequential")[0], x)
    assert torch.equal(layer.eval()(u[tokens], layer.initial_state(4), "sequential")[0], x)
    for method in model.methods:
        assert torch.equal(layer(u[tokens], layer.initial_state(4), method)[0], x), method
    A, v = layer.tables(u)
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        again, _ = layer.to(dtype)(u.to(dtype)[tokens], layer.initial_state(4), "pscan")
        if config.gate == "table" and dtype == torch.float64:
            assert torch.equal(again.float(), x)
        assert layer.starts_exact()
        assert exchanges_closed(*layer.tables(u.to(dtype)))
    assert exchanges_closed(A, v)


def test_a_choice_that_rounding_may_change_is_not_called_exact():
    model = model_of(HardChannelsConfig(2, "table"))
    layer, u = model.layers[0], model.first_inputs()
    with torch.no_grad():
        layer.transition.table.fill_(1.0)  # all logits equal: of exact numbers the first is the largest
    assert layer.is_exact(u, 2**24)
    blurred = RoundedNumbers(u.double(), torch.full(u.shape, 1e-3).double(), FloatFormat.of(torch.float32))
    with torch.no_grad():
        layer.transition.table.view(2, len(MAPS), 3)[0, 1] = 2.0  # channel 0 now leads by far
        A, v = layer.rounded_tables(blurred)
    assert not A.off[:, 0].any()
    assert A.off[:, 1].min() >= 2  # from −1 to 1
    assert v.off[:, 1].min() >= 2


def test_what_a_training_run_says_of_its_shape():
    shape = Shape(3, 4)
    assert HardChannelsConfig.of_shape(shape, {}) == HardChannelsConfig(3)
    assert HardReflectionsConfig.of_shape(shape, {"factors": 2}) == HardReflectionsConfig(3, size=4, factors=2)
    with pytest.raises(UnsupportedFormat, match="size: no such option of HardReflectionsConfig"):
        HardReflectionsConfig.of_shape(shape, {"size": 2})


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"heads": 0}, "heads = 0: HardReflectionsConfig needs a positive whole number"),
        ({"factors": 1.5}, "factors = 1.5: HardReflectionsConfig needs"),
        ({"gate": "mlp"}, "gate 'mlp' is not known: one of relu, table"),
        ({"temperature": 0}, "temperature = 0: a softmax needs a finite one above 0"),
    ],
)
def test_what_does_not_fit_is_named(changes, fault):
    with pytest.raises(UnsupportedFormat, match=fault):
        HardReflectionsConfig(**{"heads": 2, **changes})
    with pytest.raises(UnsupportedFormat, match="embedding_dim = 5: a table gate reads 3 letters one-hot"):
        LRNN(LRNNConfig(tuple("abc"), (0, 1), (HardChannelsConfig(2, "table"),), embedding_dim=5))


def through(logits, temperature):
    """Straight through: the value of the largest, the gradient of the softmax."""
    soft = (logits / temperature).softmax(-1)
    hard = torch.zeros_like(soft).scatter_(-1, logits.argmax(-1, keepdim=True), 1)
    return hard + soft - soft.detach()


def defined_channels(layer, u, index):
    """x_k = a x_{k−1} + v, letter after letter, by einsum."""
    logits = torch.einsum("lm,nm->nl", layer.transition.table, u).unflatten(-1, (-1, len(MAPS)))
    maps = torch.einsum("nhm,mc->nhc", through(logits, layer.temperature), u.new_tensor(MAPS))
    x = torch.einsum("hm,m->h", through(layer.x0, layer.temperature), u.new_tensor(STARTS)).expand(len(index), -1)
    states = []
    for a in index.unbind(1):
        x = torch.einsum("bh,bh->bh", maps[a][..., 0], x) + maps[a][..., 1]
        states.append(x)
    return torch.stack(states, 1)


def defined_reflections(layer, u, index):
    """The factors multiplied out, and what is written where nothing is left, by einsum."""
    heads, n = layer.x0.shape[:2]
    logits = torch.einsum("lm,nm->nl", layer.transition.table, u).unflatten(-1, (heads, -1))
    m, eye = (logits.shape[-1] - 3 * n) // (2 * n + 2), torch.eye(n, dtype=u.dtype)
    ends = through(logits[..., : 2 * m * (n + 1)].unflatten(-1, (m, 2, n + 1)), layer.temperature)[..., :n]
    writes = through(logits[..., 2 * m * (n + 1) :].unflatten(-1, (n, 3)), layer.temperature)
    A = eye.expand(len(u), heads, n, n)
    for j in range(m):
        key = ends[:, :, j, 0] - ends[:, :, j, 1]
        A = torch.einsum("ahij,ahjk->ahik", eye - torch.einsum("ahi,ahj->ahij", key, key), A)
    v = (1 - torch.einsum("ahij,ahij->ahi", A, A)) * torch.einsum("ahic,c->ahi", writes, u.new_tensor((-1, 0, 1)))
    x, states = through(layer.x0, layer.temperature).expand(len(index), -1, -1), []
    for a in index.unbind(1):
        x = torch.einsum("bhij,bhj->bhi", A[a], x) + v[a]
        states.append(x)
    return torch.stack(states, 1).flatten(-2)


CHANNELS = (HardChannelsLayer, HardChannelsConfig(4, "table", temperature=0.7), defined_channels)
REFLECTIONS = [
    (HardReflectionsLayer, HardReflectionsConfig(3, "table", size=3, factors=n, temperature=0.7), defined_reflections)
    for n in (1, 2, 3)
]


@pytest.mark.parametrize("method", ["auto", "sequential", "pscan", "fused"])
@pytest.mark.parametrize(("kind", "config", "defined"), [CHANNELS, *REFLECTIONS])
def test_value_and_gradient_are_those_of_the_definition(method, kind, config, defined):
    torch.manual_seed(0)
    layer = kind(4, config).double()
    index, u = torch.randint(4, (5, 9)), torch.eye(4, dtype=torch.float64)
    weights = torch.randn(5, 9, config.width, dtype=torch.float64)
    found = [
        (x, torch.autograd.grad(x, [layer.transition.table, layer.x0], weights))
        for x in (layer(u, layer.initial_state(5), method, index)[0], defined(layer, u, index))
    ]
    torch.testing.assert_close(found[0][0], found[1][0], rtol=0, atol=1e-14)
    for ours, theirs in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
        assert ours.abs().max() > 0
