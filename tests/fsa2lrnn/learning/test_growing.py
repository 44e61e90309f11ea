"""Machines grown from labels at the ends of words."""

import numpy as np

from fsa2lrnn import MooreMachine, equivalent
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.learning.growing import grown
from fsa2lrnn.learning.literals import ends


def test_a_small_machine_grows_from_labels_at_the_ends_of_words():
    target = MooreMachine([[1, 2, 0, 3], [0, 1, 3, 3], [2, 0, 1, 0]], [0, 1, 1, 0], 0, range(3))
    tokens, lengths = np.random.default_rng(0).integers(3, size=(3000, 12)), np.full(3000, 12)
    labels = np.array(target.outputs)[ends(target, tokens, lengths)]
    found = next(grown((tokens, lengths, labels), 3, Deadline(30)))
    assert equivalent(found, target.minimise()) is None
