"""Pages of reports."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.report.assemble import write
from fsa2lrnn.extra.report.charts import LEVELS, blocks, change, eigenvalues, horizon, largest, strip
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.facts import NOWHERE, HistoryHead, HistorySnapshot, Learning, ReportFacts
from fsa2lrnn.extra.report.gather import machine_facts
from fsa2lrnn.extra.report.page import MOST, build
from fsa2lrnn.verdicts import Counterexample


def drawing(facts, title):
    """The first drawing of a page whose title begins like that."""
    return re.search(rf'<svg [^>]*aria-label="{title}.*?</svg>', build(facts), re.DOTALL)[0]


def test_signs_changes_and_zeros(facts):
    drawn = blocks(facts.models[0], ["a", "b"])
    below, above = (drawn.count(f'class="heat {sign} l{LEVELS}"') for sign in ("below", "above"))
    assert (below, above) == (1, 1)
    paths = {
        sign: re.search(rf'd="([^"]*)" class="heat {sign} l{LEVELS}"', drawn)[1].count("M")
        for sign in ("above", "below")
    }
    assert paths == {"above": 6, "below": 2}  # of swaps and turns, for two letters
    assert f"l{LEVELS // 2}" in blocks(facts.models[0], ["a", "b"], full=1.8)
    assert drawn.count('class="frame"') == 4
    found = change(*facts.models[:2])
    assert largest(found) == pytest.approx(0.1)
    assert change(facts.models[0], facts.models[0]) is not None
    single = replace(facts.models[1].inside, blocks=[[[[1.0]]]] * 2)
    assert change(facts.models[0], replace(facts.models[1], inside=single)) is None
    none = replace(facts.models[0], inside=replace(facts.models[0].inside, blocks=[[[[0.0]]]]))
    assert largest(none) == 1
    assert 'class="heat' not in blocks(none, ["a"])


def test_dots_and_ticks_of_eigenvalues(facts):
    repaired = replace(facts, models=facts.models[2:])  # eigenvalues ±1 of the first head, ±i of the second, idle
    drawn = drawing(repaired, "Eigenvalues")
    unit = float(re.search(r'r="([\d.]+)" class="unit"', drawn)[1])
    dots = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="3.4" class="dot (\w+)"', drawn)
    assert sorted({round((float(x) - 140) / unit, 2) for x, _, kind in dots if kind == "constructed"}) == [-1, 1]
    assert sorted({round((float(y) - 140) / unit, 2) for _, y, kind in dots if kind == "idle"}) == [-1, 1]
    assert len(dots) == 8
    assert "letter &lt;b a=&#34;1&#34;&gt;&amp;, head 1" in drawn
    tick = r'<line x1="([\d.]+)"[^>]*class="tick (?:learned|constructed)"'
    places = [{float(x) for x in re.findall(tick, drawing(one, "Eigenvalues"))} for one in (facts, repaired)]
    (learned,), (constructed,) = places
    assert constructed - learned > 100
    assert constructed == pytest.approx(18 + 244 * 5 / 9, abs=0.01)
    with pytest.raises(UnsupportedFormat, match="is not known from within"):
        eigenvalues(replace(facts.models[0], inside=None))
    assert [9 * strip(x) for x in (0, 0.9, 1, 1 + 1e-5, 1 - 1e-6, 1.01)] == pytest.approx([0, 1, 5, 5, 5, 8])


def bars(facts):
    ticks, found = horizon(facts)
    assert [place for _, place in ticks] == sorted(place for _, place in ticks)
    for pieces in found.values():  # a bar is whole
        assert [piece.begin for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
        assert pieces[-1].end == 100
    return ticks, [(model.name, [(p.kind, p.label) for p in found[model.name]]) for model in facts.models]


def test_bars_say_what_is_proved_unknown_and_wrong(facts):
    learned, repaired, _ = facts.models
    ticks, found = bars(facts)
    whole = [("proved", "proved on all words")]
    assert [text for text, _ in ticks] == ["1", "10", "100", "all words"]
    assert found == [
        (learned.name, [("proved", "≤ 2"), ("unknown", ""), ("fails", "fails at 3")]),
        ("repaired", whole),
        ("constructed", whole),
    ]
    far = Counterexample(["a"] * 40_000, ["0"] * 40_000, ["0"] * 39_999 + ["1"])
    fails, some = replace(learned, failure=far, proved=None), replace(learned, name="y", failure=None)
    none = replace(some, name="x", proved=None, accuracy=[])
    ticks, found = bars(replace(facts, models=[fails, none, some]))
    assert [text for text, _ in ticks] == ["1", "10", "100", "1k", "10k", "all words"]
    assert [pieces for _, pieces in found] == [
        [("unknown", ""), ("fails", "fails at 40,000")],
        [("unknown", "")],
        [("proved", "≤ 2"), ("unknown", ""), ("fails", "fails within 100")],
    ]
    assert horizon(facts)[1]["repaired"][0].said == f"proved on all words ({repaired.proof})"


VOID = {"meta", "br", "link", "img", "col", "wbr"}


class Reader(HTMLParser):
    """Tags must nest; what they are and hold is kept."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text, self.ids, self.links = [], [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        given = dict(attributes)
        self.tags.append(name)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given[key] for key in ("href", "src") if key in given]
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text.append(data)


def test_pages_are_well_formed_and_whole_fetch_nothing_and_escape_symbols(facts):
    page = build(facts, "page.json")
    found = Reader(page)
    assert {"verdicts", "horizon", "accuracy", "automaton", "models", "provenance"} <= set(found.ids)
    assert len(set(found.ids)) == len(found.ids)
    assert found.tags.count("svg") == 2 + 1 + 3 + 3 + 4  # accuracies, automaton, planes, states, blocks
    assert found.tags.count("h1") == 1
    assert not {"script", "b"} & set(found.tags)
    said = " ".join(found.text)
    for part in ("fails on a word of 3 letters", "closed, 7 joint states", "all short words", "10 %", "1/2 at letter"):
        assert part in said
    assert "http" not in page
    assert [link for link in found.links if not link.startswith("#")] == ["page.json"]
    assert {link[1:] for link in found.links if link.startswith("#")} <= set(found.ids)
    assert found.text.count('Parity <b a="1">&') >= 2


def test_pages_lie_beside_their_facts_and_few_facts_will_do(facts, tmp_path):
    learned = facts.models[0]
    bare = replace(
        learned, name="x", inside=None, alignment=None, failure=None, accuracy=[], provenance={}, proved=None
    )
    found = Reader(build(replace(facts, models=[bare])))
    assert "accuracy" not in found.ids
    assert found.tags.count("svg") == 1
    large = replace(facts, machine=machine_facts(zoo.sum_mod(61)), models=[bare])
    assert any("It has 61 states" in text for text in Reader(build(large)).text)
    only_constructed = replace(facts, models=facts.models[2:])
    assert Reader(build(only_constructed)).tags.count("details") == 2
    page, data = write(facts, tmp_path / "r.html")
    assert data == tmp_path / "r.json"
    assert json.loads(data.read_text()) == json.loads(json.dumps(facts.to_json()))
    assert page.read_text() == build(facts, "r.json")


def test_the_table_of_transitions_has_a_row_a_state(facts):
    machine = DrawnMachine.of([[1, 0], [0, 0]], ["<", "y"], 1, ["a", "b"], ["first <one>", "second"])
    table = build(replace(facts, machine=machine)).partition('aria-label="Transitions"')[2].partition("</table>")[0]
    assert table.count("<tr>") == 3
    assert "<td>first &lt;one&gt;</td><td>&lt;</td><td>1</td><td>0</td>" in table
    assert "1 (start)" in table


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_all_of_it(facts, tmp_path, browser, scheme):
    path, _ = write(facts, tmp_path / "r.html")
    said, asked = [], []
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1100, "height": 800})
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert min(min(size) for size in pictures(page)) > 20
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) > 600) == (scheme == "light")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1100
    assert (said, asked) == ([], [path.as_uri()])
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert max(size[0] for size in pictures(page)) <= 400 - 2 * 12
    cut = "[...document.querySelectorAll('figure div')].filter(d => d.scrollWidth > d.clientWidth + 1).length"
    assert page.evaluate(cut) == 0
    small = "[...document.querySelectorAll('.track > span')].map(t => t.getBoundingClientRect().height)"
    assert min(page.evaluate(small)) > 9
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    page.emulate_media(media="print", color_scheme=scheme)  # paper is white, and nothing on it is folded
    ink, paper = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    assert sum(map(int, re.findall(r"\d+", ink))) < 200 < 700 < sum(map(int, re.findall(r"\d+", paper)))
    assert min(page.evaluate("[...document.querySelectorAll('details table')].map(t => t.offsetHeight)")) > 50
    page.close()


def pictures(page):
    """Sizes of all drawings that are seen; there are 13."""
    sizes = page.evaluate(
        "[...document.querySelectorAll('svg,img')].filter(s => s.checkVisibility())"
        ".map(s => s.getBoundingClientRect()).map(r => [r.width, r.height])"
    )
    assert len(sizes) == 13
    return sizes


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


def film(model, learning):
    """What the page says of how a model was learned."""
    facts = ReportFacts("t", "s", "1 May", machine_facts(zoo.parity()), [replace(model, learning=learning)])
    return build(facts).partition(" was learned</h3>")[2].partition("<h3>")[0]


def test_each_frame_says_its_step_its_heads_and_which_was_kept(filmed):
    page = build(filmed)
    assert [int(step) for step in re.findall(r'for="film-0-\d+">(\d+)<', page)] == [0, 1, 20, 40]
    assert page.count("head 0, kept: 3 states, 2 after merging; no output wrong") == 4
    assert page.count("head 1: 2 states, 2 after merging; 25.0 % of outputs wrong") == 4
    assert page.count("head 2: 40 states, 40 after merging; 50.0 % of outputs wrong; too many states to draw") == 4
    assert page.count('class="automaton"') == 1 + 2 * 4
    assert "outputs yes" in page
    assert "outputs &lt;no&gt;" in page
    assert "no word led there" in page
    assert "<script" not in page


def test_a_long_film_and_large_drawings_keep_to_the_page(filmed, monkeypatch):
    model = filmed.models[0]
    many = film(model, learning(range(40)))
    assert many.count("<input") == MOST
    assert many.count("checked") == 1
    monkeypatch.setattr("fsa2lrnn.extra.report.page._BYTES", 20_000)
    few = re.findall(r'for="film-0-\d+">(\d+)<', film(model, learning(range(9))))
    assert 2 <= len(few) < 9
    assert few[-1] == "8"


def test_films_of_merged_machines_and_events(filmed):
    found = learning([3, 4])
    repaired = replace(found, film=[found.film[0], replace(found.film[1], event="the best head is repaired")])
    page = film(filmed.models[0], repaired)
    assert 'class="event" title="the best head is repaired">4<' in page
    assert "trained on words of 5 letters. The best head is repaired." in page
    page = film(filmed.models[0], Learning("a machine of 2 states", [], 0, 0, 0, 0.1))
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
