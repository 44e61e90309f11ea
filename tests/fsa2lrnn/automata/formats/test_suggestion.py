"""What was meant by a source without its kind: suggested where it can be told, and read when it is typed."""

import pytest

from fsa2lrnn.automata.formats import read_source
from fsa2lrnn.automata.formats.suggestion import meant


@pytest.mark.parametrize(
    ("source", "suggestion"),
    [
        ("(ab)*", "regex:(ab)*"),
        ("a|b", "regex:a|b"),
        ("[ab]+/c", "regex:[ab]+/c"),
        ("REGEX:(ab)*", "regex:(ab)*"),
        ("regex :a", "regex:a"),
        ("parity", "task:parity"),
        ("mod_arith(5, completion=register)", "task:mod_arith(5, completion=register)"),
        ("mod_arth(5)", "task:mod_arith(5)"),
        (" Task: sum_mod(5)", "task:sum_mod(5)"),
        ('count_mod(4, letter="b")', 'task:count_mod(4, letter="b")'),
    ],
)
def test_what_is_meant_can_be_read(source, suggestion):
    assert meant(source) == suggestion
    read_source(
        suggestion, **({"alphabet": "(ab"} if "contains" in source else {})
    ) if "contains" not in source else None


@pytest.mark.parametrize("source", ["machine.xyz", "abab", "folder/machine", "", "m", "ñ"])
def test_nothing_is_made_up(source):
    assert meant(source) is None


def test_a_call_that_is_cut_off_is_a_task_all_the_same():
    assert meant("mod_arith(5") == "task:mod_arith(5"
    assert meant("ab(c)*") == "regex:ab(c)*"
