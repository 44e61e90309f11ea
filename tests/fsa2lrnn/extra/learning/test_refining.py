"""Refined labels and letter classes: what is learned maps back to the machine, and no transition is taken over."""

import numpy as np
import pytest
from hypothesis import given, settings

from fsa2lrnn import MooreMachine, equivalent
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning import learn
from fsa2lrnn.extra.learning.refining import refine
from fsa2lrnn.testing.strategies import machines


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


def test_a_rare_letter_at_the_end_of_a_long_path_is_learned():
    # Uniform words of 40 letters reach the accepting state once in 64 ** 9 / 40 words.
    machine = rare_path(64, 9)
    learned = learn(machine, steps=1500)
    assert learned.is_proved
    assert learned.machine.n_states == machine.n_states
    assert set(learned.machine.alphabet) == set(machine.alphabet)
    assert learned.network is not None
    assert learned.network.alphabet == (0, 32)
    assert not any(record.get("event") == "mended" for record in learned.trail)  # by gradient alone


@pytest.mark.parametrize(
    ("source", "changes"),
    [("task:mod_arith(2)", {}), ("task:sum_mod(3)", {"noise": 0.1}), ("task:sum_mod(3)", {"layers": 2})],
)
def test_suffixes_need_correct_labels_of_every_word(source, changes):
    with pytest.raises(UnsupportedFormat, match="suffixes = 3"):
        learn(source, suffixes=3, **changes)
