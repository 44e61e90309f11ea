"""What notebooks show, of every kind of object: well formed, its text escaped, no style but its own."""

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, compile_machine, compile_recurrence, falsify, prove_equivalent, represent, zoo
from fsa2lrnn.display import BAD, GOOD, OPEN, PLAIN, failing
from fsa2lrnn.draw.svg import picture, text
from fsa2lrnn.verdicts import Accepted, Counterexample, Coverage, Scope
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.falsify import Budget

NASTY = '<b a="1">&'


@pytest.fixture(scope="module")
def shown():
    """HTML by what it is of."""
    machine = MooreMachine([[0, 1], [1, 0]], ["yes", NASTY], 0, ["a", NASTY])
    wrong = MooreMachine([[0, 1], [1, 1]], ["yes", NASTY], 0, ["a", NASTY])
    model = compile_machine(machine)
    certificate = Certificate(5, np.zeros(0), "enumeration", "float32", ("sequential",), 0.0, "f" * 64, machine)
    return {
        name: thing._repr_html_()
        for name, thing in {
            "proved": prove_equivalent(model, machine),
            "refuted": prove_equivalent(model, wrong),
            "undecided": falsify(model, machine, Budget(seconds=10)),
            "accepted": Accepted(7, Scope(2, 1, (NASTY,)), Coverage("float32", ("fused",), "every", None)),
            "certificate": certificate,
            "model": model,
            "table": compile_machine(machine, layout="index"),
            "recurrence": compile_recurrence(machine),
            "witness": represent(machine, "diagonal[-1,1]"),
            "impossibility": represent(zoo.sum_mod(3), "diagonal[0,1]"),
        }.items()
    }


def test_all_are_well_formed_escaped_and_coloured_by_what_is_proved(shown):
    for html in shown.values():
        root = ET.fromstring(html)
        assert root.tag == "div"
        assert "<b" not in html
        assert not any("id" in part.attrib for part in root.iter())
    colour = {
        "proved": GOOD, "accepted": GOOD, "witness": GOOD, "refuted": BAD, "impossibility": BAD, "undecided": OPEN,
        "certificate": OPEN, "model": PLAIN, "table": PLAIN, "recurrence": PLAIN,
    }  # fmt: skip
    assert {name: html[html.index("#") :][:7] for name, html in shown.items()} == colour
    assert "every output counts" in shown["proved"]
    assert "in float32, by the scans" in shown["proved"]
    assert "length up to 7, wherever the output counts" in shown["accepted"]
    assert "outputs of 1 of 2 states do not count" in shown["accepted"]
    assert "no shorter word fails" in shown["refuted"]
    assert "no proof" in shown["undecided"]
    assert "to be checked" in shown["certificate"]
    assert shown["refuted"].count(f"background:{BAD}") == 1


def test_a_machine_is_a_picture_unless_it_is_too_large():
    assert zoo.parity()._repr_svg_().startswith("<svg")
    assert zoo.sum_mod(61)._repr_svg_() is None


class Rows(HTMLParser):
    """Cells of a table, by row."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.wrong = [], []
        self.feed(page)

    def handle_starttag(self, name, attributes):
        if name == "tr":
            self.rows.append([])
        if BAD in (dict(attributes).get("style") or ""):
            self.wrong.append((len(self.rows) - 1, len(self.rows[-1])))

    def handle_data(self, data):
        self.rows[-1].append(data)


@pytest.mark.parametrize("length", [1, 5, 30, 31, 32, 500])
def test_a_word_is_shown_up_to_where_it_fails_and_long_ones_have_a_gap(length):
    word = [f"a{k}" for k in range(length)]
    given = ["0"] * (length - 1) + ["1"]
    rows = Rows(failing(Counterexample(word, ["0"] * length, given))).rows
    assert [row[0] for row in rows] == ["position", "letter", "machine", "model"]
    assert len({len(row) for row in rows}) == 1
    assert len(rows[0]) <= 33
    assert (rows[0][-1], rows[1][-1], rows[3][-1]) == (str(length), f"a{length - 1}", "1")
    assert ("⋯" in rows[0]) == (length > 31)
    shown = [int(position) for position in rows[0][1:] if position != "⋯"]
    assert [rows[1][i + 1] for i, p in enumerate(rows[0][1:]) if p != "⋯"] == [f"a{k - 1}" for k in shown]


def test_the_first_wrong_output_is_marked_and_little_is_shown_behind_it():
    given = ["0"] * 10 + ["1"] * 40
    found = Rows(failing(Counterexample(["a"] * 50, ["0"] * 50, given)))
    assert found.wrong == [(3, 11)]
    assert len(found.rows[0]) == 1 + 14


@pytest.mark.parametrize("letter", ["\0", "\x1b", "\x85", "\r", "\ud800", "\ufffe", "\u202e", "&", "<", '"', "é", "😀"])
def test_whatever_a_letter_is_the_drawing_is_xml(letter):
    """A control character made a file that no reader took."""
    drawn = picture(10, 20, letter, text(1, 2, letter))
    found = ET.fromstring(drawn.encode())
    shown = letter if letter in '&<"é😀' else letter.encode("unicode_escape").decode()
    assert (found.get("aria-label"), found[0].text, found[1].text) == (shown, shown, shown)
