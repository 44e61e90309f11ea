import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.extra.learning import mending
from fsa2lrnn.extra.learning.examples import FreshWords
from fsa2lrnn.extra.learning.mending import patch_table


def words_of(machine, length=14):
    examples = FreshWords(machine)
    batch = examples.many(length, torch.Generator().manual_seed(0))
    return examples, batch.tokens.numpy(), batch.labels.numpy()


def as_machine(f, start, examples, tokens, labels):
    counts = mending._count(f, start, tokens, labels, len(examples.outputs))
    outputs = [examples.outputs[j] for j in counts.argmax(1)]
    return MooreMachine(f, outputs, start, examples.alphabet)


@pytest.mark.parametrize("name", ["group(S3)", "even_pair(3)", "shift_register(3)"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_machine_with_wrong_columns_is_the_machine_again(name, seed):
    examples, tokens, labels = words_of(MooreMachine.from_source(f"task:{name}"))
    target, rng = examples.machine, np.random.default_rng(seed)
    n = target.n_states
    f = rng.integers(0, n, (len(target.alphabet), 2 * n))
    f[:, :n] = target.delta
    for _ in range(3):
        f[rng.integers(len(f)), rng.integers(n)] = rng.integers(2 * n)
    found = patch_table(f, target.start, tokens, labels, len(examples.outputs))
    assert found.after == 0
    assert equivalent(as_machine(found.next_state, target.start, examples, tokens, labels), target) is None


def test_copies_are_merged():
    examples, tokens, labels = words_of(zoo.sum_mod(3))
    delta = examples.machine.delta
    f = np.concatenate([delta + 3 * (np.arange(3) % 2), delta], axis=1)  # two copies that lead into each other
    found = patch_table(f, 0, tokens, labels, 3)
    assert (found.before, found.after, found.changes) == (0, 0, 0)
    assert found.merged == 3
    assert as_machine(found.next_state, 0, examples, tokens, labels).minimise().n_states == 3


def test_labels_that_no_machine_of_that_size_gives_are_left_over():
    examples, tokens, labels = words_of(zoo.sum_mod(5))
    found = patch_table(np.zeros((5, 3), np.int64), 0, tokens, labels, len(examples.outputs))
    assert 0 < found.after <= found.before


def test_kernels_as_python(monkeypatch):
    _, tokens, labels = words_of(zoo.parity(), 5)
    f = np.array([[1, 0, 2], [1, 1, 2]])
    compiled = patch_table(f, 0, tokens[:40], labels[:40], 2)
    for name in ("_count", "_gains"):
        monkeypatch.setattr(mending, name, getattr(mending, name).py_func)
    plain = patch_table(f, 0, tokens[:40], labels[:40], 2)
    np.testing.assert_array_equal(plain.next_state, compiled.next_state)
    assert plain[1:] == compiled[1:]


def test_the_gain_of_a_redirection_is_what_it_saves_where_a_column_is_visited_once():
    f, tokens = np.array([[1, 2, 0], [0, 1, 2]]), np.array([[0, 1, 0, 1]])
    labels, cost = np.array([[-1, 0, 1, 0, 1]]), np.random.default_rng(0).random((2, 3))

    def total(first):
        q, sum_of = first, cost[labels[0, 1], first]
        for k in range(1, 4):
            q = f[tokens[0, k], q]
            sum_of += cost[labels[0, k + 1], q]
        return sum_of

    direct, split = mending._gains(f, 0, tokens, labels, cost)
    for to in range(3):
        assert direct[0, 0, to] == pytest.approx(total(to) - total(f[0, 0]))
    assert not split[:, :, 0].any() or split[0, 0, 1].any()
