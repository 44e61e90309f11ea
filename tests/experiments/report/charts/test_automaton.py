import re

import pytest

from experiments.report.charts.automaton import DRAWN, automaton
from experiments.report.gather import machine_facts
from fsa2lrnn.automata import MooreMachine, zoo


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


def test_large_machines_are_not_drawn():
    assert automaton(machine_facts(zoo.sum_mod(DRAWN))) is not None
    assert automaton(machine_facts(zoo.sum_mod(DRAWN + 1))) is None
