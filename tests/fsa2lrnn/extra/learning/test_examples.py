import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.table_kernels import paths
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning.examples import FreshWords, UserWords, transition_cover
from fsa2lrnn.extra.learning.word_files import from_pairs


def checked(examples, batch):
    for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
        word = [examples.alphabet[a] for a in tokens]
        wanted = [examples.machine.outputs[examples.machine.start], *examples.machine.transduce(word)]
        given = [wanted[k] if label == UNCOUNTED else examples.outputs[label] for k, label in enumerate(labels)]
        assert given == wanted


@pytest.mark.parametrize("source", ["task:sum_mod(3)", "regex:(ab)*", "task:dyck(1, 2)", "task:mod_arith(2)"])
def test_labels_are_the_machines_outputs(source):
    examples = FreshWords(MooreMachine.from_source(source), source=source)
    draw = torch.Generator().manual_seed(0)
    checked(examples, examples.batch(40, examples.fit(9), draw))
    if source == "regex:(ab)*":
        examples.add(("b",))
        examples.add(("a", "a", "b"))
        checked(examples, examples.batch(40, 9, draw))
        checked(examples, examples.labelled(("a", "b", "b")))


def test_words_that_failed_come_back():
    examples = FreshWords(MooreMachine.from_source("task:sum_mod(3)"))
    examples.add("2221")
    batch = examples.batch(32, 6, torch.Generator().manual_seed(0))
    begun = (batch.tokens[:, :4] == torch.tensor([2, 2, 2, 1])).all(1)
    assert begun.sum() >= 4


def test_every_transition_is_drawn_even_at_the_end_of_a_long_path():
    machine = MooreMachine.from_source("regex:abacabadc*").minimise()
    examples = FreshWords(machine)
    cover, lengths = transition_cover(machine)
    assert len({tuple(row[:n]) for row, n in zip(cover.tolist(), lengths, strict=True)}) == machine.delta.size
    tokens = examples.batch(512, 12, torch.Generator().manual_seed(0)).tokens
    before = paths(machine.delta, np.full(512, machine.start), tokens.numpy())[:, :-1]
    drawn = set(zip(before.ravel().tolist(), tokens[:, 1:].ravel().tolist(), strict=True))
    first = {(machine.start, a) for a in tokens[:, 0].tolist()}
    assert len(drawn | first) == machine.delta.size


def test_the_share_of_labels_that_is_asked_for_is_wrong_and_every_other_label_as_likely():
    examples = FreshWords(MooreMachine.from_source("task:sum_mod(5)"), noise=0.5)
    clean = FreshWords(MooreMachine.from_source("task:sum_mod(5)"))
    draw = torch.Generator().manual_seed(0)
    batch = examples.batch(64, 40, draw)
    right = clean._labelled(batch.tokens).labels
    share = (batch.labels[:, 1:] != right).double().mean()
    assert abs(share - 0.5) < 0.03
    shift = (batch.labels[:, 1:] - right) % 5
    assert all(abs((shift == k).double().mean() - 0.125) < 0.03 for k in (1, 2, 3, 4))


def test_given_words_are_cut_off_and_padded():
    data = from_pairs([("ab", 1), ("abbb", 0), ("b", 0)])
    given = UserWords(data.alphabet, data.outputs, data.tokens, data.labels)
    assert (given.fit(1), given.fit(3), given.fit(100)) == (1, 3, 4)
    short = given.batch(20, 2, torch.Generator().manual_seed(0))
    assert set(map(tuple, short.labels.tolist())) <= {
        (UNCOUNTED, UNCOUNTED, 0),
        (UNCOUNTED, 1, UNCOUNTED),
        (UNCOUNTED, UNCOUNTED, 1),
        (UNCOUNTED, 0, UNCOUNTED),
    }
    assert len(given.evaluation_words(9, torch.Generator()).tokens) == 3


def test_a_machine_with_one_output_teaches_nothing():
    with pytest.raises(UnsupportedFormat, match=r"has the outputs \(1,\) and no other on these words"):
        FreshWords(MooreMachine([[0]], [1]))
