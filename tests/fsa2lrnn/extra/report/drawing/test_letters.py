import string

from fsa2lrnn.extra.report.drawing.layout import short_list, width


def test_runs_exceptions_and_what_is_cut():
    letters = [*string.ascii_lowercase, "_"]
    assert short_list(range(26), letters) == "a–z"
    assert short_list(range(27), letters) == "any"
    assert short_list([0, 1, 2, 25], letters) == "a, b, c, z"
    assert short_list([*range(3), *range(4, 27)], letters) == "not d"
    assert short_list(range(0, 26, 2), letters) == "a, c, e, g, i, …"
    assert short_list([0, 1], ["0", "1"]) == "0, 1"
    assert short_list([1], ["-", "tick tock"]) == "tick tock"
    assert short_list([1, 2], ["-", "tick tock", "two"]) == "not -"


def test_where_letters_may_lead_nowhere_they_are_not_told_by_the_others():
    assert short_list([0, 1, 3], ["0", "1", "2?", "2?"], names_others=False) == "0, 1, 2?"
    assert short_list([0, 1, 2], ["0", "1", "2"], names_others=False) == "0, 1, 2"


def test_wide_characters_are_wide():
    assert width("文字") > width("ab")
    assert width("") < width("a")
