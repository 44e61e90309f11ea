import re

from fsa2lrnn.extra.report.charts.blocks import geometry, hue


def test_dots_crosses_and_names(facts):
    drawn = geometry(facts.models[0], facts.machine)
    assert len(re.findall('class="state near"', drawn)) == 2
    assert len(re.findall('class="state far"', drawn)) == 2
    assert re.findall(r'class="label halo">([^<]*)<', drawn) == ["1", "2"]
    first, second = (float(x) for x in re.findall(r'cx="([\d.]+)"', drawn))
    assert first > 140 > second


def test_states_have_hues_of_their_own():
    assert len({hue(state, 30) for state in range(30)}) == 30
