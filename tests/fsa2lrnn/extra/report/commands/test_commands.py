"""The verbs `compare`, `demo`, `draw` and `report`."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from experiments.studies.keep_models import MODELS
from fsa2lrnn import MooreMachine, compile_machine, learn, save, zoo
from fsa2lrnn.extra.report import assemble
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.facts import Model, ReportFacts, verdict
from fsa2lrnn.verdicts import Counterexample

EVEN5, SUM2 = str(MODELS / "even5" / "seed-4.safetensors"), str(MODELS / "sum2" / "seed-0.safetensors")


def test_text_and_plot_show_the_same(call, wrong, tmp_path):
    code, out, _ = call("compare", *wrong, "--lengths", "10", "--words", "20", "--plot", "c.svg")
    assert code == 0
    assert "counterexample" in out
    assert "carries the state alone" in out
    assert "constructed" in out
    assert (tmp_path / "c.svg").read_text().count("<svg") == 1


@pytest.fixture
def wrong(call):
    """Return a model of another language than parity's, and parity."""
    assert call("compile", "regex:(0|1)*1(0|1)*", "-o", "wrong.safetensors")[0] == 0
    return "wrong.safetensors", "task:parity"


def test_a_failing_word_has_one_shape_in_json(call, wrong):
    """In `compare`, `falsify` and `verify`; the facts of a page have it too (tests of `report.facts`)."""
    compared = json.loads(call("compare", *wrong, "--lengths", "10", "--words", "20", "--json")[1])
    model, source = wrong
    found = [compared["judged"]["wrong"]]
    found += [json.loads(call(verb, model, source, "--json")[1]) for verb in ("falsify", "verify")]
    for answer in found:
        assert answer["verdict"] == "refuted"
        assert set(answer) - {"alignment"} == set(found[2])
        assert set(answer["failure"]) == set(Counterexample((0,), (0,), (1,)).to_json())
        assert answer["failure"]["length"] == len(answer["failure"]["word"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", SUM2, SUM2, "task:sum_mod(2)"), "one is given twice"),
        (("compare", SUM2, "task:sum_mod(2)", "--plot", "c.txt"), "a plot is written to a file ending in .svg or .png"),
        (("compare", SUM2, "task:sum_mod(2)", "--plot", "no/c.svg"), "no such folder, make it first: 'no'"),
        (("compare", SUM2, "task:sum_mod(3)"), "the alphabets differ (only the first has [], only the second ['2'])"),
        (("compare", SUM2, "sum_mod(2)"), "did you mean task:sum_mod(2)?"),
        (
            ("compare", SUM2, "task:sum_mod(2)", "--lengths", "10,99999999999999", "--max-tokens", "9999"),
            "99999999999999 words or letters are too many to be meant",
        ),
        (("compare", SUM2, "task:sum_mod(2)", "--lengths", "10,3000000"), "one such word is longer than the 2,000,000"),
        (("compare", SUM2, "task:sum_mod(2)", "--lengths", "4;5"), "--lengths '4;5': give whole numbers"),
        (("demo", "--output", "file"), "this is a file, give a folder: 'file'"),
        (("draw", "task:parity", "--format", "svg", "--json"), "--json says what was written: name a file with -o"),
        (("draw", "regex:a"), "give -o page.html for the page; --format svg and --format dot print without a file"),
        (("draw", "regex:a", "-o", "m.pdf"), "output m.pdf: write a file ending in .html, .svg, .png, .dot, .gv"),
        (("draw", "regex:a", "-o", "m.svg", "--format", "png"), "output m.svg and --format png are two formats"),
        (("draw", "regex:a", "regex:b", "-o", "p.html"), "regex:a, regex:b: give one automaton, with which all"),
        (("draw", "regex:a", "--models-only", "-o", "p.html"), "--models-only leaves out the compiled network: name"),
        (("draw", "task:sum_mod(61)", "-o", "m.svg"), "61 states and a drawing shows up to 60"),
        (("draw", "task:sum_mod(3)", EVEN5, "-o", "p.html"), "the alphabets differ"),
        (("report", SUM2, "task:sum_mod(2)", "-o", "x.pdf"), "the page is written to a file ending in .html"),
        (("report", SUM2, "task:sum_mod(2)", "-o", "no/x.html"), "no such folder, make it first: 'no'"),
        (("report", SUM2, "task:sum_mod(2)", "-o", "taken.html"), "this is a folder, give a file: 'taken.json'"),
        (("report", SUM2, SUM2, "task:sum_mod(2)", "-o", "x.html"), "one is given twice"),
        (("report", EVEN5, "task:sum_mod(2)", "-o", "x.html"), "the alphabets differ"),
        (("report", EVEN5, "-o", "x.html"), "give models, and then the SOURCE"),
        (("report", "empty", "-o", "x.html"), "no run of `fsa2lrnn learn` has ended there"),
    ],
)
def test_bad_input_is_one_line(call, tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    (tmp_path / "taken.json").mkdir()
    (tmp_path / "empty").mkdir()
    code, out, err = call(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_the_demo_tells_the_story(call):
    code, out, _ = call("demo", "--no-learned")
    assert code == 0
    for piece in (
        "ModArith(5)",
        "1+2-3*4 = 1 (mod 5); integers: 1  equal",
        "10,000 digits",
        "51 joint states",
        "bfloat16",
        "5. Three parts.",
        "layer 2, accumulator",
        "2 channels · 1 block of 5 · 1 block of 5, and 39 hidden units, instead of a block of 75",
        "75 joint states, 600 transitions, closed",
        "6. And back.",
    ):
        assert piece in out
    code, out, _ = call("demo", "--no-learned", "--json")
    facts = json.loads(out)
    assert facts["extracted_machine_is_the_source"]
    assert [e["model"] == e["integers"] for e in facts["evaluated"]] == [True, True]
    assert [layer["block_sizes"] for layer in facts["rooms"]["layers"]] == [[1, 1], [5], [5]]
    assert {proof["verdict"] for proof in facts["rooms"]["proofs"].values()} == {"proved"}


def test_pages_of_models_and_sources(call, tmp_path):
    machine = zoo.parity()
    wrong = MooreMachine([[0, 1], [1, 1]], machine.outputs, 0, machine.alphabet)
    save(compile_machine(wrong), tmp_path / "wrong.safetensors")
    code, out, err = call("draw", "task:parity", "wrong.safetensors", "-o", "page.html", "--max-seconds", "1")
    assert code == 0
    assert "wrong: searching for a counterexample" in err
    assert "Fails on a word of" in out
    assert "Proved correct on all words" in out
    page = (tmp_path / "page.html").read_text()
    data = json.loads(page.partition('type="application/json">')[2].partition("</script>")[0])
    assert [model["name"] for model in data["models"]] == ["wrong", "constructed"]
    assert len(data["words"]) == 1
    save(compile_machine(zoo.sum_mod(3)), tmp_path / "m.safetensors")
    code, out, _ = call("draw", "m.safetensors", "-o", "page.html", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["models"]["m"]["failing"] == []
    assert found["bytes"] == len((tmp_path / "page.html").read_bytes())
    code, out, _ = call("draw", str(MODELS / "sum2" / "seed-0.safetensors"), "--format", "svg")
    assert code == 0
    assert out.count('class="node"') == 2


def test_pictures_by_ending_and_in_print(call, tmp_path):
    code, out, _ = call("draw", "regex:(ab)*", "-o", "m.svg")
    assert (code, out) == (0, "3 states drawn in m.svg\n")
    code, out, _ = call("draw", "regex:(ab)*", "--format", "svg")
    assert code == 0
    assert out == (tmp_path / "m.svg").read_text()
    assert ET.fromstring(out).tag.endswith("svg")
    code, out, _ = call("draw", "regex:(ab)*", "--format", "dot")
    assert code == 0
    assert out == MooreMachine.from_source("regex:(ab)*").to_dot()
    pytest.importorskip("matplotlib")
    assert call("draw", "regex:(ab)*", "-o", "m.png")[0] == 0
    assert (tmp_path / "m.png").read_bytes()[:4] == b"\x89PNG"


def test_a_page_and_its_facts(call, monkeypatch):
    seen, machine = [], DrawnMachine(["even", "odd"], ["a"], ["yes", "no"], [[1, 0]], 0)
    mine = Model("mine", "learned", parameters=3, proved=2)
    facts = ReportFacts("of EvenPair", "task:even_pair(5)", "1 May", machine, [mine], {"torch": "2"})

    def assembled(source, models, budget, evaluated, say, ignore, seconds):
        seen.append((source, list(models), budget.seconds, seconds, evaluated, ignore))
        say("looking")
        return facts

    monkeypatch.setattr(assemble, "assemble", assembled)
    few = ("--lengths", "4,9", "--words", "5", "--max-tokens", "100", "--max-seconds", "3")
    arguments = ("report", EVEN5, "task:even_pair(5)", "-o", "page.html", *few)
    code, out, err = call(*arguments)
    assert code == 0
    evaluated = {"lengths": (4, 9), "n_words": 5, "letters": 100}
    assert seen == [("task:even_pair(5)", ["even5/seed-4"], 20.0, 3.0, evaluated, "lacked")]
    assert "looking" in err
    assert ("of EvenPair" in out, verdict(mine) in out) == (True, True)
    assert json.loads(Path("page.json").read_text()) == json.loads(json.dumps(facts.to_json()))
    assert "mine" in Path("page.html").read_text()
    assert json.loads(call(*arguments, "--json")[1]) == {"page": "page.html", "facts": "page.json"}


def test_a_page_of_a_run_of_learn(call):
    learn("task:parity", folder="run", steps=500, suffixes=0)
    code, out, _ = call("report", "run", "-o", "page.html", "--lengths", "4", "--words", "5", "--max-tokens", "100")
    assert code == 0
    assert "parity: learned and proved" in out
    assert Path("page.html").read_text().count('type="radio"') > 3
    code, _, err = call("report", "run", EVEN5, "-o", "page.html")
    assert (code, err.count("give the folder of one run alone")) == (2, 1)
