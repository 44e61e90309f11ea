"""What the checkers of compiled weights count."""

from fsa2lrnn.automata import zoo
from fsa2lrnn.compile import compile_recurrence
from verify.propositions import Effort, Refuted
from verify.propositions.compilation import columns_have_unit_norm, transitions_depend_on_the_input

SMOKE = Effort("smoke", examples=5, exhaustive=1)


def test_index_tables_are_counted_as_the_matrices_that_they_stand_for():
    dense, index = (
        columns_have_unit_norm(SMOKE, lambda m, layout=layout: compile_recurrence(m, layout=layout))
        for layout in ("dense", "index")
    )
    assert dense.cases > 1_000
    assert index.cases > 1_000


def test_machines_that_ignore_which_letter_it_was():
    answer = transitions_depend_on_the_input(SMOKE)
    assert isinstance(answer, Refuted)
    assert "length_mod(3)" in answer.data["machines"]
    assert all(len(set(map(bytes, zoo.from_task(name).minimise().delta))) == 1 for name in answer.data["machines"])
