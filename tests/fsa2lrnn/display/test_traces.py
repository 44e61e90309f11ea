from html.parser import HTMLParser

import pytest

from fsa2lrnn.display.cards import trace
from fsa2lrnn.verdicts import Counterexample


class Rows(HTMLParser):
    """Cells of a table, by row."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.wrong = [], []
        self.feed(page)

    def handle_starttag(self, name, attributes):
        if name == "tr":
            self.rows.append([])
        if dict(attributes).get("class") == "wrong":
            self.wrong.append((len(self.rows) - 1, len(self.rows[-1])))

    def handle_data(self, data):
        self.rows[-1].append(data)


@pytest.mark.parametrize("length", [1, 5, 30, 31, 32, 500])
def test_a_word_is_shown_up_to_where_it_fails_and_long_ones_have_a_gap(length):
    word = [f"a{k}" for k in range(length)]
    given = ["0"] * (length - 1) + ["1"]
    rows = Rows(trace(Counterexample(word, ["0"] * length, given), "m")).rows
    assert [row[0] for row in rows] == ["position", "letter", "machine", "model"]
    assert len({len(row) for row in rows}) == 1
    assert len(rows[0]) <= 33
    assert (rows[0][-1], rows[1][-1], rows[3][-1]) == (str(length), f"a{length - 1}", "1")
    assert ("⋯" in rows[0]) == (length > 31)
    shown = [int(position) for position in rows[0][1:] if position != "⋯"]
    assert [rows[1][i + 1] for i, p in enumerate(rows[0][1:]) if p != "⋯"] == [f"a{k - 1}" for k in shown]


def test_the_first_wrong_output_is_marked_and_little_is_shown_behind_it():
    given = ["0"] * 10 + ["1"] * 40
    found = Rows(trace(Counterexample(["a"] * 50, ["0"] * 50, given), "m"))
    assert found.wrong == [(3, 11)]
    assert len(found.rows[0]) == 1 + 14
