import pytest

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.compile.onehot import visible_factors


def test_coordinates_that_the_others_tell_are_dropped():
    labels = [(q % 2, q % 3, q, "same") for q in range(6)]
    machine = MooreMachine([[1, 2, 3, 4, 5, 0]], range(6), labels=labels)
    assert [factor.size for factor in visible_factors(machine)] == [3, 2]


@pytest.mark.parametrize(
    "labels",
    [
        None,
        range(6),
        [(q // 2, q % 2) for q in range(6)],  # the first coordinate needs to know the second
        [(0, q % 3) for q in range(6)],  # states with one label
        [(q,) for q in range(6)],
        [(q % 2, q % 3) if q else (0,) for q in range(6)],
    ],
)
def test_labels_that_show_no_product_leave_one_block(labels):
    machine = MooreMachine([[1, 2, 3, 4, 5, 0]], range(6), labels=labels)
    assert [factor.size for factor in visible_factors(machine)] == [6]
