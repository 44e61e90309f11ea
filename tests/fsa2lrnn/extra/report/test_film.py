"""The film on the page, and a browser that goes through it by keys."""

import re
from dataclasses import replace

import pytest

from fsa2lrnn.extra.report.assemble import write
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.facts import NOWHERE, HistoryHead, HistorySnapshot, Learning
from fsa2lrnn.extra.report.film import MOST, film
from fsa2lrnn.extra.report.page import build


def learning(steps, kept=0):
    small = DrawnMachine(["0", "1"], ["a"], ["yes", "<no>"], [[1, 0]], 0)
    odd = DrawnMachine(["0", "1"], ["a"], ["yes", NOWHERE], [[1, 1]], 0)
    heads = [HistoryHead(0, 3, 2, 0.0, small), HistoryHead(1, 2, 2, 0.25, odd), HistoryHead(2, 40, 40, 0.5, None)]
    shots = [HistorySnapshot(step, 5, "", heads) for step in steps]
    return Learning("a machine of 2 states", [kept], 3, 40, 1, 0.5, ["yes", "<no>", NOWHERE], shots)


@pytest.fixture
def filmed(facts):
    learned, _, constructed = facts.models
    model = replace(learned, name="run", failure=None, learning=learning([0, 1, 20, 40]))
    return replace(facts, models=[model, constructed])


def test_each_frame_says_its_step_its_heads_and_which_was_kept(filmed):
    page = build(filmed)
    assert [int(step) for step in re.findall(r'for="film-0-\d+">(\d+)<', page)] == [0, 1, 20, 40]
    assert page.count("head 1, kept: 3 states, 2 once merged; no output wrong") == 4
    assert page.count("head 2: 2 states, 2 once merged; 25.0 % of outputs wrong") == 4
    assert page.count("head 3: 40 states, 40 once merged; 50.0 % of outputs wrong; too many states to draw") == 4
    assert page.count('class="automaton"') == 1 + 2 * 4
    assert "puts out yes" in page
    assert "puts out &lt;no&gt;" in page
    assert "no word led there" in page
    assert "<script" not in page


def test_a_long_film_and_large_drawings_keep_to_the_page(filmed, monkeypatch):
    model = filmed.models[0]
    many = film(model, learning(range(40)), 1)
    assert many.count("<input") == MOST
    assert many.count("checked") == 1
    monkeypatch.setattr("fsa2lrnn.extra.report.film._BYTES", 20_000)
    few = re.findall(r'for="film-1-\d+">(\d+)<', film(model, learning(range(9)), 1))
    assert 2 <= len(few) < 9
    assert few[-1] == "8"


def test_what_happened_on_the_way_is_said(filmed):
    found = learning([3, 4])
    mended = replace(found, film=[found.film[0], replace(found.film[1], event="the best head is mended")])
    page = film(filmed.models[0], mended, 0)
    assert 'class="event" title="the best head is mended">4<' in page
    assert "trained on words of 5 letters. The best head is mended." in page


def test_a_machine_that_was_merged_has_no_film(filmed):
    page = film(filmed.models[0], Learning("a machine of 2 states", [], 0, 0, 0, 0.1), 0)
    assert "A machine of 2 states. No network was trained." in page
    assert "<input" not in page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_arrow_keys_go_through_the_film(filmed, tmp_path, browser, scheme):
    path, _ = write(filmed, tmp_path / "r.html")
    said = []
    page = browser.new_page(color_scheme=scheme, viewport={"width": 390, "height": 800})
    page.on("console", lambda message: said.append(message.text))
    page.goto(path.as_uri())
    shots = "[...document.querySelectorAll('.shot')].filter(s => s.checkVisibility())"
    seen = f"{shots}.map(s => s.innerText.split(',')[0])"
    assert page.evaluate(seen) == ["Step 40"]
    page.focus(".film input:checked")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(seen) == ["Step 20"]
    page.click("label[for=film-0-1]")
    assert page.evaluate(seen) == ["Step 1"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    chips = "[...document.querySelectorAll('.film > label')].map(x => Math.min(x.offsetWidth, x.offsetHeight))"
    assert min(page.evaluate(chips)) >= 24
    assert said == []
    page.close()
