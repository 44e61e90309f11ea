"""A start at the exact solution is one, in the network that the settings describe; noise moves every weight."""

import pytest
import torch

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.training.data import make_sampler, words
from fsa2lrnn.training.evaluate import count
from fsa2lrnn.training.initial import compiled_start
from fsa2lrnn.training.settings import Settings


def start(task, noise=0.0, **changes):
    settings = Settings(task, **{"normalisation": "clip", **changes})
    machine = settings.machine()
    drawn = words(machine, make_sampler(settings.sampler, machine, settings.task))
    return settings, drawn, compiled_start(settings, drawn, noise)


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("task:sum_mod(5)", {}),
        ("task:sum_mod(5)", {"normalisation": "none", "layer_norm": False}),
        ("task:sum_mod(3)", {"layers": 3}),
        ("task:tomita(4)", {"layers": 2, "connection": "concat", "token_shift": True}),
        ("task:group(S3)", {"dtype": "float64"}),
        ("task:flip_flop", {"block": 3, "heads": 1, "embedding_dim": 5}),
        ("task:mod_arith(5, completion=register)", {"block": 25, "heads": 2}),
    ],
)
def test_without_noise_it_is_right_on_long_words(task, changes):
    settings, drawn, model = start(task, **changes)
    assert model.config == settings.network(drawn.alphabet, drawn.outputs)
    length = drawn.fit(2_000)
    found = count(model, drawn, length, 20, drawn.generator(0))
    assert found.whole == found.words == 20


def test_products_use_a_head_for_each_factor():
    _, drawn, model = start("task:group(Z5xZ3)")
    assert count(model, drawn, 300, 20, drawn.generator(1)).whole == 20
    assert (model.layers[0].x0.detach().sum(1) == torch.tensor([1.0, 1, 0, 0, 0, 0, 0, 0])).all()


def test_a_step_of_training_keeps_weights_finite_and_the_loss_small():
    _, drawn, model = start("task:sum_mod(5)", noise=0.01)
    optimiser = torch.optim.Adam(model.parameters(), 1e-4)
    for _ in range(3):
        batch = drawn.batch(16, 20, drawn.generator(0))
        loss = torch.nn.functional.cross_entropy(
            model(batch.tokens).flatten(0, 1), batch.labels.flatten(), ignore_index=UNCOUNTED
        )
        loss.backward()
        optimiser.step()
    assert loss < 0.5
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_noise_moves_every_weight_by_its_size_and_comes_from_the_seed():
    exact, noisy = start("task:sum_mod(5)")[2], start("task:sum_mod(5)", noise=0.1)[2]
    moved = torch.cat([(a - b).flatten() for a, b in zip(noisy.parameters(), exact.parameters(), strict=True)])
    assert abs(moved.std() - 0.1) < 0.001
    again, other = start("task:sum_mod(5)", noise=0.1)[2], start("task:sum_mod(5)", noise=0.1, seed=1)[2]
    assert all(torch.equal(a, b) for a, b in zip(noisy.parameters(), again.parameters(), strict=True))
    assert not torch.equal(noisy.readout[0].weight, other.readout[0].weight)
    assert isinstance(noisy, LRNN)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"normalisation": "released"}, "released"),
        ({"layers": 2, "connection": "chain"}, "the last sees no letters"),
        ({"embedding_dim": 4}, "embedding_dim: 4, 5 needed"),
        ({"block": 4}, "more than max_block"),
        (
            {"layer": "householder", "normalisation": "none"},
            "layer = 'householder': one-hot maps are written into blocks",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(changes, message):
    with pytest.raises(NotExpressible, match=message):
        start("task:sum_mod(5)", **changes)
