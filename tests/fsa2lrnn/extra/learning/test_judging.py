import torch

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.extra.learning.judging import LearningTarget, agreement
from fsa2lrnn.training.data import Batch, make_sampler
from fsa2lrnn.verification import Proved, Refuted


def test_a_wrong_column_is_refuted_by_a_shortest_word():
    right = zoo.sum_mod(3)
    target = LearningTarget(right, make_sampler("task", right), (0, 1, 2))
    assert isinstance(target.judge(right).verdict, Proved)
    delta = right.delta.copy()
    delta[1, 2] = 1
    wrong = MooreMachine(delta, right.outputs, right.start, right.alphabet)
    verdict = target.judge(wrong).verdict
    assert isinstance(verdict, Refuted)
    assert len(verdict.word) == len(target.failing_word(wrong)) == 2


def test_agreement_counts_words_and_labels():
    tokens = torch.tensor([[1, 1], [2, 0]])
    labels = torch.tensor([[0, 1, 2], [UNCOUNTED, 2, 1]])
    found = agreement(zoo.sum_mod(3), Batch(tokens, labels), (0, 1, 2))
    assert (found.words, found.right, found.labels, found.right_labels) == (2, 1, 5, 4)
    assert found.to_json()["interval"] == found.interval
    assert agreement(zoo.sum_mod(3), Batch(tokens, labels), (0, 1, 2), 0.1).noise == 0.1
