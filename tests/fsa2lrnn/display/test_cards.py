"""What notebooks show, of every kind of object: well formed, its text escaped, no style but its own."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, compile_machine, compile_recurrence, falsify, prove_equivalent, represent, zoo
from fsa2lrnn.display.cards import BAD, GOOD, OPEN, PLAIN, blocks_text, card
from fsa2lrnn.verdicts import Accepted, Scope
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
            "undecided": falsify(model, machine, Budget(seconds=0.2)),
            "accepted": Accepted(7, Scope(2, 1, (NASTY,))),
            "certificate": certificate,
            "model": model,
            "table": compile_machine(machine, layout="index"),
            "recurrence": compile_recurrence(machine),
            "witness": represent(machine, "diagonal[-1,1]"),
            "impossibility": represent(zoo.sum_mod(3), "diagonal[0,1]"),
        }.items()
    }


def test_all_are_well_formed_and_escaped(shown):
    for html in shown.values():
        root = ET.fromstring(html)
        assert root.tag == "div"
        assert "<b" not in html
        assert not any("id" in part.attrib for part in root.iter())


def test_colours_say_what_is_proved(shown):
    colour = {
        "proved": GOOD, "accepted": GOOD, "witness": GOOD, "refuted": BAD, "impossibility": BAD, "undecided": OPEN,
        "certificate": OPEN, "model": PLAIN, "table": PLAIN, "recurrence": PLAIN,
    }  # fmt: skip
    assert {name: html[html.index("#") :][:7] for name, html in shown.items()} == colour


def test_claims_keep_their_scope(shown):
    assert "every output counts" in shown["proved"]
    assert "in float32, by the scans" in shown["proved"]
    assert "length up to 7, wherever the output counts" in shown["accepted"]
    assert "outputs of 1 of 2 states do not count" in shown["accepted"]
    assert "no shorter word fails" in shown["refuted"]
    assert "no proof" in shown["undecided"]
    assert "to be checked" in shown["certificate"]
    assert shown["refuted"].count(f"background:{BAD}") == 1


@pytest.mark.extra("report")
def test_a_machine_is_a_picture_unless_it_is_too_large():
    assert zoo.parity()._repr_svg_().startswith("<svg")
    assert zoo.sum_mod(61)._repr_svg_() is None


def test_rows_may_be_none():
    assert "table" not in card("only", [])
    assert blocks_text([]) == ""
