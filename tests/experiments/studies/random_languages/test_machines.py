from collections import Counter

import numpy as np
import pytest

from experiments.studies.random_languages.machines import KINDS, _memories, _order_keeping, _translations, drawn
from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.monoid.classification import classify


@pytest.mark.parametrize("number", [0, 1, 2, 9, 10])
def test_a_machine_is_minimal_of_its_class_and_the_same_every_time(number):
    found = drawn(number)
    assert found.kind == classify(found.machine).kind == KINDS[number % 3]
    assert minimise(found.machine).n_states == found.machine.n_states
    assert drawn(number).machine == found.machine


def test_classes_and_sizes_take_turns():
    sizes = [(m.kind, m.machine.n_states) for m in map(drawn, range(12))]
    assert Counter(kind for kind, _ in sizes) == dict.fromkeys(KINDS, 4)
    assert [n for kind, n in sizes if kind == "mixed"] == [4, 9, 14, 6]


@pytest.mark.parametrize("table", [_order_keeping, _memories])
def test_both_ways_to_draw_aperiodic_machines_draw_no_other(table):
    generator = np.random.default_rng(0)
    tables = [delta for _ in range(20) if (delta := table(6, 2, generator)) is not None]
    assert tables
    for delta in tables:
        everywhere = MooreMachine(delta, range(delta.shape[1]))
        assert classify(everywhere).aperiodic.value


def test_translations_are_letters_of_a_group():
    delta = _translations(8, 3, np.random.default_rng(0))
    assert delta.shape == (3, 8)
    assert (np.sort(delta, 1) == np.arange(8)).all()
    assert zoo.group("Q8", generators="all").n_states == 8
