import numpy as np
import torch

from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.learning.prune import best_head, candidates, fewest, machine_of, observe
from fsa2lrnn.lower.harden import Heads
from fsa2lrnn.training.data import Batch

# Head 0 counts modulo 2, head 1 modulo 3, head 2 does nothing, all over the letters 0 (stay) and 1 (on).
NEXT = np.array([[[0, 1, 2], [0, 1, 2], [0, 1, 2]], [[1, 0, 2], [1, 2, 0], [0, 1, 2]]])
HEADS = Heads(NEXT, np.zeros(3, np.int64))


def seen(modulus, wrong=0.0):
    draw = torch.Generator().manual_seed(0)
    tokens = torch.randint(2, (64, 12), generator=draw)
    labels = torch.cat([torch.zeros(64, 1, dtype=torch.int64), tokens.cumsum(1) % modulus], dim=1)
    labels = torch.where(torch.rand(labels.shape, generator=draw) < wrong, (labels + 1) % modulus, labels)
    return observe(HEADS, Batch(tokens, labels), (0, 1), tuple(range(modulus)))


def count(modulus):
    return MooreMachine([range(modulus), [(q + 1) % modulus for q in range(modulus)]], range(modulus))


def test_one_head_where_one_is_enough():
    assert best_head(seen(3)) == (1, 0)
    found = next(candidates(seen(3), 0))
    assert found.heads == (1,)
    assert equivalent(found.machine, count(3)) is None


def test_two_heads_where_it_takes_two():
    found = next(candidates(seen(6), 0))
    assert found.heads == (0, 1)
    assert equivalent(found.machine, count(6)) is None
    assert list(candidates(seen(6), 0, most=1)) == []


def test_most_labels_decide_where_some_are_wrong():
    found = fewest(seen(3, wrong=0.2))
    assert found is not None
    assert found.heads == (1,)
    assert found.faults > 50
    assert equivalent(found.machine, count(3)) is None


def test_a_head_swapped_is_another_machine():
    swapped = seen(3)._replace(heads=Heads(NEXT[:, [1, 0, 2]], HEADS.start))
    found = machine_of(swapped, (1,))
    assert found is not None
    assert equivalent(found.machine, count(3)) is not None


def test_words_seen_later_count_too():
    first, second = seen(6), seen(6)
    assert len(first.joined(second).labels) == len(first.labels) + len(second.labels)
