import re

import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.report.charts.automaton import DRAWN, automaton
from fsa2lrnn.report.facts import Machine
from fsa2lrnn.report.gather import machine_facts


@pytest.mark.parametrize("source", ["sum_mod(5)", "even_pair(5)", "group(S4)", "tomita(3)", "dyck(2, 3)"])
def test_every_state_and_arrow_is_drawn_inside(source):
    machine = machine_facts(zoo.from_task(source))
    drawn = automaton(machine)
    assert drawn.count('class="node"') == len(machine.states)
    arrows = {(q, then) for row in machine.delta for q, then in enumerate(row)}
    assert drawn.count('class="edge"') == len(arrows)
    assert drawn.count('class="edge start"') == 1
    for x, y in re.findall(r'<circle cx="([\d.-]+)" cy="([\d.-]+)"', drawn):
        assert 0 < float(x) < 620
        assert 0 < float(y) < 460
    assert drawn == automaton(machine)


def test_a_single_state():
    drawn = automaton(machine_facts(MooreMachine([[0]], ["x"])))
    assert drawn.count('class="node"') == drawn.count('class="edge"') == 1


def test_arrows_say_their_letters(facts):
    drawn = automaton(facts.machine)
    assert "<title>even → even: a</title>" in drawn
    assert "→ even: &lt;b a=&quot;1&quot;&gt;&amp;</title>" in drawn or '→ even: &lt;b a="1"&gt;&amp;</title>' in drawn


def test_long_outputs_are_cut_and_look_it():
    drawn = automaton(Machine(["p", "q"], ["a"], ["(1,2,3)", "quiescent"], [[1, 0]], 0))
    assert re.findall(r'class="label tiny faint">([^<]*)<', drawn) == ["(1,2,3)", "quiesc…"]


def test_labels_beside_steep_arrows_lead_away_from_them():
    """Each letter of this pair leads up or down: its label stands wholly to one side."""
    drawn = automaton(Machine(["p", "q"], ["first", "second"], ["0", "1"], [[1, 0], [1, 0]], 0))
    found = re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="(\w+)" class="label halo">', drawn)
    assert sorted(anchor for _, anchor in found) == ["end", "start"]
    assert all((float(x) < 310) == (anchor == "end") for x, anchor in found)


def test_large_machines_are_not_drawn():
    assert automaton(machine_facts(zoo.sum_mod(DRAWN))) is not None
    assert automaton(machine_facts(zoo.sum_mod(DRAWN + 1))) is None
