"""Examples, pruning, refining and judging of learned machines."""

import os
import signal

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from fsa2lrnn import MooreMachine, Proved, Refuted, equivalent, zoo
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.table_kernels import paths
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.learning import learn
from fsa2lrnn.learning.examples import FreshWords, UserWords, transition_cover
from fsa2lrnn.learning.judging import LearningTarget, agreement
from fsa2lrnn.learning.learning_run import LearningRun
from fsa2lrnn.learning.methods import refine, trained
from fsa2lrnn.learning.recipe import Recipe
from fsa2lrnn.learning.saving import RunFolder, RunRequest
from fsa2lrnn.learning.word_files import from_pairs
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.training.data import Batch, make_sampler


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


def test_words_that_failed_come_back_and_given_ones_are_cut_and_padded():
    examples = FreshWords(MooreMachine.from_source("task:sum_mod(3)"))
    examples.add("2221")
    batch = examples.batch(32, 6, torch.Generator().manual_seed(0))
    begun = (batch.tokens[:, :4] == torch.tensor([2, 2, 2, 1])).all(1)
    assert begun.sum() >= 4
    data = from_pairs([("ab", 1), ("abbb", 0), ("b", 0)])
    given = UserWords(data.alphabet, data.outputs, data.tokens, data.labels)
    assert (given.fit(1), given.fit(3), given.fit(100)) == (1, 3, 4)
    short = given.batch(20, 2, torch.Generator().manual_seed(0))
    assert set(map(tuple, short.labels.tolist())) <= {
        (UNCOUNTED, UNCOUNTED, 0), (UNCOUNTED, 1, UNCOUNTED), (UNCOUNTED, UNCOUNTED, 1), (UNCOUNTED, 0, UNCOUNTED),
    }  # fmt: skip
    assert len(given.evaluation_words(9, torch.Generator()).tokens) == 3


def test_every_transition_is_drawn_and_the_share_of_wrong_labels_is_as_asked_for():
    machine = MooreMachine.from_source("regex:abacabadc*").minimise()
    examples = FreshWords(machine)
    cover, lengths = transition_cover(machine)
    assert len({tuple(row[:n]) for row, n in zip(cover.tolist(), lengths, strict=True)}) == machine.delta.size
    tokens = examples.batch(512, 12, torch.Generator().manual_seed(0)).tokens
    before = paths(machine.delta, np.full(512, machine.start), tokens.numpy())[:, :-1]
    drawn = set(zip(before.ravel().tolist(), tokens[:, 1:].ravel().tolist(), strict=True))
    first = {(machine.start, a) for a in tokens[:, 0].tolist()}
    assert len(drawn | first) == machine.delta.size
    examples = FreshWords(MooreMachine.from_source("task:sum_mod(5)"), noise=0.5)
    clean = FreshWords(MooreMachine.from_source("task:sum_mod(5)"))
    draw = torch.Generator().manual_seed(0)
    batch = examples.batch(64, 40, draw)
    right = clean._labelled(batch.tokens).labels
    share = (batch.labels[:, 1:] != right).double().mean()
    assert abs(share - 0.5) < 0.03
    shift = (batch.labels[:, 1:] - right) % 5
    assert all(abs((shift == k).double().mean() - 0.125) < 0.03 for k in (1, 2, 3, 4))


@pytest.mark.long
def test_one_output_teaches_nothing_and_samplers_give_words():
    with pytest.raises(UnsupportedFormat, match=r"has the outputs \(1,\) and no other on these words"):
        FreshWords(MooreMachine([[0]], [1]))
    assert learn("regex:(ab)*", sampler="live", layer="hard_channels").is_proved


@settings(max_examples=60, deadline=None)
@given(machines())
def test_refined_machines_map_back_and_tell_states_apart(machine):
    minimal = machine.minimise()
    for length in (0, 1, minimal.n_states):
        refined = refine(minimal, length)
        assert equivalent(refined.original(refined.machine), machine) is None
        assert len(set(map(bytes, refined.machine.delta))) == len(refined.machine.delta)
    assert len(set(refined.machine.outputs)) == minimal.n_states
    assert refine(minimal, 0).machine.outputs == minimal.outputs


def rare_path(letters: int, length: int) -> MooreMachine:
    """Return a machine that accepts the words that end in one run of `length` letters, one of many letters."""
    delta = np.zeros((letters, length + 1), int)
    delta[letters // 2] = [min(q + 1, length) for q in range(length + 1)]
    return MooreMachine(delta, [False] * length + [True], alphabet=tuple(range(letters)))


@pytest.mark.long
def test_a_rare_letter_at_the_end_of_a_long_path_is_learned():
    # Uniform words of 40 letters reach the accepting state once in 64 ** 9 / 40 words.
    machine = rare_path(64, 9)
    learned = learn(machine, steps=1500)
    assert learned.is_proved
    assert learned.machine.n_states == machine.n_states
    assert set(learned.machine.alphabet) == set(machine.alphabet)
    assert learned.network is not None
    assert learned.network.alphabet == (0, 32)
    assert not any(record.get("event") == "repaired" for record in learned.trail)  # by gradient alone


@pytest.mark.parametrize(
    ("source", "changes"),
    [("task:mod_arith(2)", {}), ("task:sum_mod(3)", {"noise": 0.1})],
)
def test_suffixes_need_correct_labels_of_every_word(source, changes):
    with pytest.raises(UnsupportedFormat, match="suffixes = 3"):
        learn(source, suffixes=3, **changes)


def test_judging_counts_labels_and_refutes_by_a_shortest_word():
    right = zoo.sum_mod(3)
    target = LearningTarget(right, make_sampler("task", right), (0, 1, 2))
    assert isinstance(target.judge(right).verdict, Proved)
    delta = right.delta.copy()
    delta[1, 2] = 1
    wrong = MooreMachine(delta, right.outputs, right.start, right.alphabet)
    verdict = target.judge(wrong).verdict
    assert isinstance(verdict, Refuted)
    assert len(verdict.word) == len(target.failing_word(wrong)) == 2
    tokens = torch.tensor([[1, 1], [2, 0]])
    labels = torch.tensor([[0, 1, 2], [UNCOUNTED, 2, 1]])
    found = agreement(zoo.sum_mod(3), Batch(tokens, labels), (0, 1, 2))
    assert (found.words, found.right, found.labels, found.right_labels) == (2, 1, 5, 4)
    assert found.to_json()["interval"] == found.interval
    assert agreement(zoo.sum_mod(3), Batch(tokens, labels), (0, 1, 2), 0.1).noise == 0.1


def test_what_has_nothing_to_show_is_said(monkeypatch):
    run = LearningRun(Recipe(steps=7), FreshWords(zoo.parity()), None, 2)
    monkeypatch.setattr(run, "go", lambda _: None)
    with pytest.raises(BudgetExceeded, match="after 0 steps and 1 starts every head reaches too many states"):
        trained(run, None, None)


def test_an_end_that_is_asked_for_is_saved_first(tmp_path):
    recipe = Recipe(steps=40, look=3)
    folder = RunFolder(tmp_path, RunRequest("s", "d", "train", "task", 0.0, recipe), resume=True)
    run = LearningRun(recipe, FreshWords(zoo.sum_mod(5)), None, 5)
    with pytest.raises(KeyboardInterrupt):
        trained(run, folder, lambda _: os.kill(os.getpid(), signal.SIGINT))
    again = LearningRun(recipe, FreshWords(zoo.sum_mod(5)), None, 5)
    folder.restore(again)
    assert again.steps == run.steps == 3
