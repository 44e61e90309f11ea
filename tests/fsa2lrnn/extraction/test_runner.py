"""Side by side gives what one word at a time gives; outputs that count; words come back letter by letter."""

import numpy as np
import pytest
import torch

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.counting import UNCOUNTED, positions_of
from fsa2lrnn.errors import NotExact
from fsa2lrnn.extraction.runner import MaskedModel, Runner, join, pick, to_bytes
from fsa2lrnn.extraction.walk import Tree
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig


def models():
    torch.manual_seed(0)
    layers = (BlockLayerConfig((2, 2), 4, 4), BlockLayerConfig((2, 2), 4, 4))
    for options in ({"token_shift": True}, {"connection": "residual"}, {"layer_norm": True}):
        yield LRNN(LRNNConfig(("a", "b", "c"), (0, 1), layers, embedding_dim=4, readout_hidden=16, **options)).double()
    yield LRNN(LRNNConfig(("a", "b", "c"), (0, 1), layers[:1], 4, 4)).double()
    yield compile_machine(zoo.sum_mod(3), dtype=torch.float16)
    yield compile_machine(zoo.sum_mod(3), layout="index")


@pytest.mark.parametrize("i", range(6))
def test_reading_in_parts_picking_and_joining(i, monkeypatch):
    model = list(models())[i]
    tokens = np.random.default_rng(0).integers(0, 3, (7, 9))
    with torch.no_grad():
        wanted = model(torch.from_numpy(tokens), "sequential")
    runner = Runner(model)
    for batch in (1, 5, 10_000):
        monkeypatch.setattr(runner, "batch", batch)
        first, states = runner.read(runner.start(7), tokens[:, :4])
        halves = join([pick(states, slice(0, 2)), pick(states, np.arange(2, 7))])
        second, after = runner.read(halves, tokens[:, 4:8])
        torch.testing.assert_close(torch.cat([first, second], dim=1), wanted[:, :8])
        live = np.zeros((7, 3), bool)
        live[np.arange(7), tokens[:, 8]] = True
        last, final = runner.fan(after, live)
        torch.testing.assert_close(last, wanted[:, 8])
        every, _ = runner.fan(after, np.ones((7, 3), bool))
        torch.testing.assert_close(every.view(7, 3, -1)[live], last)
        assert len(to_bytes(final)) == 7


def test_bits_tell_states_apart():
    rows = to_bytes((torch.tensor([[0.0], [-0.0], [0.0]]), torch.tensor([1, 1, 1])))
    assert rows.shape == (3, 12)
    assert (rows[0] == rows[2]).all()
    assert (rows[0] != rows[1]).any()


PARITY = MooreMachine([[0, 1], [1, 0]], [0, 1])
AFTER_ONES = MooreMachine([[0, 0], [1, 1]], [False, True])  # counts after the letter 1 alone


def test_only_what_counts_is_asked_and_numbers_that_are_none_are_refused():
    masked = MaskedModel(compile_machine(PARITY), positions_of((0, 1), AFTER_ONES, True))
    tokens = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1]])
    assert masked.words(tokens).tolist() == [[1, UNCOUNTED, 0], [UNCOUNTED] * 3, [UNCOUNTED, 1, 0]]
    assert masked.letters == 6  # the word without a 1 was not run
    assert masked.words(np.zeros((2, 4), np.int64)).tolist() == [[UNCOUNTED] * 4] * 2
    masked = MaskedModel(compile_machine(PARITY), positions_of((0, 1), AFTER_ONES, True))
    logits, accepting = torch.tensor([[float("nan"), 0.0]]), masked.mask.delta[1, masked.mask.start]
    assert masked.numbers(logits, np.array([masked.mask.start])).tolist() == [UNCOUNTED]
    with pytest.raises(NotExact, match="logits that count are NaN"):
        masked.numbers(logits, np.array([accepting]))


def test_every_path_is_its_word():
    rng = np.random.default_rng(0)
    tree, words = Tree(), [()]
    for _ in range(6):
        parents, letters = rng.integers(0, len(words), 5), rng.integers(0, 3, 5)
        words += [words[p] + (a,) for p, a in zip(parents.tolist(), letters.tolist(), strict=True)]
        assert tree.grow(parents, letters).tolist() == list(range(len(words) - 5, len(words)))
        assert len(tree) == len(words)
        assert [tuple(tree.word(i).tolist()) for i in range(len(words))] == words
