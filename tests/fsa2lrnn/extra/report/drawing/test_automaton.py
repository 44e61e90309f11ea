import re
import xml.etree.ElementTree as ET

import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.extra.report.drawing.automaton import LOOK, alone, automaton, notes
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine

NASTY = '<b a="1">&'


def drawn(machine):
    return DrawnMachine.of(machine.delta, machine.outputs, machine.start, machine.alphabet, machine.labels)


@pytest.mark.parametrize("source", ["sum_mod(5)", "even_pair(5)", "group(S4)", "tomita(3)", "dyck(2, 3)"])
def test_every_state_and_arrow_is_drawn(source):
    machine = drawn(zoo.from_task(source).minimise())
    found = automaton(machine)
    assert found.count('class="node"') == len(machine.states)
    folded = len(re.findall('class="place folded"', found))
    assert found.count('class="edge"') == sum(
        not (folded and all(row[then] == then for row in machine.delta)) for _, then in machine.arrows
    )
    assert found.count('class="edge start"') == 1
    assert found == automaton(machine)


def test_a_single_state():
    found = automaton(drawn(MooreMachine([[0]], ["x"])))
    assert found.count('class="node"') == found.count('class="edge"') == 1


def test_acceptors_have_double_rings_and_others_their_outputs():
    assert automaton(drawn(zoo.parity())).count("node inner") == 1
    found = automaton(DrawnMachine(["p", "q"], ["a"], ["(1,2,3)", "quiescent"], [[1, 0]], 0))
    assert re.findall(r'class="label tiny faint">([^<]*)<', found) == ["(1,2,…", "quies…"]
    assert "node inner" not in found


def test_text_is_escaped_and_every_letter_is_told():
    machine = DrawnMachine(["even", NASTY], ["a", NASTY], ["yes", "no"], [[0, 1], [1, 0]], 0)
    for text in (automaton(machine), alone(machine)):
        assert "<b" not in text
        titles = [title.text for title in ET.fromstring(text).iter() if title.tag.endswith("title")]
        assert "even → even: a" in titles
        assert f"{NASTY} → even: {NASTY}" in titles
        assert f"state {NASTY}, output no" in titles


@pytest.mark.parametrize("letter", ["\0", "\x1b", "\x85", "\n", "\ud800"])
def test_letters_that_show_nothing_are_escaped_in_a_file_that_can_be_read(letter):
    machine = MooreMachine([[1, 1], [0, 0]], (letter, "x"), alphabet=(letter, "a"))
    found = ET.fromstring(machine.to_svg().encode())
    shown = letter.encode("unicode_escape").decode()
    assert shown in [part.text for part in found.iter() if "halo" in (part.get("class") or "")]
    assert machine.to_png().startswith(b"\x89PNG")


def test_what_the_reader_has_to_know_is_said():
    assert notes(drawn(MooreMachine.from_source("regex:abcd"))) == [
        "Letters that are not drawn lead to the sink 2, which none leaves."
    ]
    assert notes(drawn(zoo.sum_mod(5))) == []
    assert notes(drawn(zoo.sum_mod(61))) == ["It has 61 states; up to 60 are drawn."]
    assert "arrows have no room for their letters" in notes(drawn(zoo.mod_arith(5).minimise()))[1]


def test_large_machines_are_not_drawn():
    assert automaton(drawn(zoo.sum_mod(61))) is None
    assert alone(drawn(zoo.sum_mod(61))) is None


def test_a_file_stands_by_itself():
    root = ET.fromstring(alone(drawn(zoo.sum_mod(3))))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(root.get("width")) == float(root.get("viewBox").split()[2])
    style = next(child.text for child in root if child.tag.endswith("style"))
    used = {name for part in root.iter() for name in (part.get("class") or "").split()}
    assert all(f".{name}" in style for name in used - {"arrow", "place", "automaton", "start"})
    assert "var(" not in style
    assert "var(" in LOOK
