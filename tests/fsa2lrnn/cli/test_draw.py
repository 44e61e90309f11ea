"""The verbs `compare`, `demo` and `draw`."""

import json
import xml.etree.ElementTree as ET

import pytest

from experiments.studies.keep_models import MODELS
from fsa2lrnn import MooreMachine, compile_machine, save, zoo
from fsa2lrnn.verdicts import Counterexample

EVEN5, SUM2 = str(MODELS / "even5" / "seed-4.safetensors"), str(MODELS / "sum2" / "seed-0.safetensors")


def test_text_and_plot_show_the_same(call, wrong, tmp_path):
    files = ("--plot", "c.svg", "--table", "c.tex", "--label", "another_language")
    code, out, _ = call("compare", *wrong, "--lengths", "10", "--words", "20", *files)
    assert code == 0
    assert "written: c.svg" in out
    assert r"another\_language & 10 & " in (tmp_path / "c.tex").read_text()
    assert call("compare", *wrong, "--lengths", "10", "--words", "20", "--table", "c.csv")[0] == 0
    header, row, *_ = (tmp_path / "c.csv").read_text().splitlines()
    assert header == "model,length,last output right,from,to,whole word right,from,to"
    assert row.startswith("wrong,10,")
    assert "counterexample" in out
    assert "compiled" in out
    assert (tmp_path / "c.svg").read_text().count("<svg") == 1


@pytest.fixture
def wrong(call):
    """Return a model of another language than parity's, and parity."""
    assert call("compile", "regex:(0|1)*1(0|1)*", "-o", "wrong.safetensors")[0] == 0
    return "wrong.safetensors", "task:parity"


def test_a_failing_word_has_one_shape_in_json(call, wrong):
    """In `compare`, `falsify` and `verify`."""
    compared = json.loads(call("compare", *wrong, "--lengths", "10", "--words", "20", "--json")[1])
    model, source = wrong
    found = [compared["verdicts"]["wrong"]]
    found += [json.loads(call(verb, model, source, "--json")[1]) for verb in ("falsify", "verify")]
    for answer in found:
        assert answer["verdict"] == "refuted"
        assert set(answer) == set(found[2])
        assert set(answer["failure"]) == set(Counterexample((0,), (0,), (1,)).to_json())
        assert answer["failure"]["length"] == len(answer["failure"]["word"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", SUM2, SUM2, "task:sum_mod(2)"), "one is given twice"),
        (("compare", SUM2, "task:sum_mod(2)", "--plot", "c.txt"), "a plot is written to a file ending in .svg or .png"),
        (
            ("compare", SUM2, "task:sum_mod(2)", "--label", "a", "--label", "b"),
            "--label a, b: give 1 name, all different",
        ),
        (("draw", SUM2, "--matrices", "-o", "m.dot"), "--matrices is written to a file ending in .svg or .pdf or .tex"),
        (
            ("draw", "task:sum_mod(13)", "--matrices", "-o", "m.svg"),
            "13 states and a drawing with matrices shows up to 12",
        ),
        (("compare", SUM2, "task:sum_mod(2)", "--plot", "no/c.svg"), "no such folder, make it first: 'no'"),
        (("compare", SUM2, "task:sum_mod(3)"), "the alphabets differ (only the first has [], only the second ['2'])"),
        (("compare", SUM2, "sum_mod(2)"), "did you mean task:sum_mod(2)?"),
        (
            ("compare", SUM2, "task:sum_mod(2)", "--lengths", "10,99999999999999"),
            "99999999999999 words or letters are too many to be meant",
        ),
        (("compare", SUM2, "task:sum_mod(2)", "--lengths", "10,3000000"), "one such word is longer than the 2,000,000"),
        (("compare", SUM2, "task:sum_mod(2)", "--lengths", "4;5"), "--lengths '4;5': give whole numbers"),
        (("demo", "--output", "file"), "this is a file, give a folder: 'file'"),
        (("draw", "regex:a", "-o", "m.png"), "a drawing is written to a file ending in .html or .svg or .pdf or .tex"),
        (("draw", "regex:a", "regex:b", "-o", "p.html"), "regex:a, regex:b: give one automaton, with which all"),
        (("draw", "task:sum_mod(61)", "-o", "m.svg"), "61 states and a drawing shows up to 60"),
        (("draw", "task:sum_mod(3)", EVEN5, "-o", "p.html"), "the alphabets differ"),
    ],
)
def test_bad_input_is_one_line(call, tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    code, out, err = call(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.long
def test_the_demo_tells_the_story(call, tmp_path):
    code, out, _ = call("demo", "-o", "runs")
    assert code == 0
    pieces = (
        "51 joint states and 408 transitions explored", "1+2-3*4 = 1 (mod 5); integers: 1",
        "1,000 of 1,000 new words of 40 letters", "refuted: they differ on",
        "26 joint states and 130 transitions explored", "Open runs/sum5.html",
    )  # fmt: skip
    assert all(piece in out for piece in pieces)
    data = (tmp_path / "runs" / "sum5.html").read_text().partition('type="application/json">')[2].partition("</script>")
    data = json.loads(data[0])
    assert [model["kind"] for model in data["models"]] == ["learned", "repaired", "compiled"]
    assert [word["of"] for word in data["words"]] == ["trained"]


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
    assert ([model["name"] for model in data["models"]], len(data["words"])) == (["wrong", "compiled"], 1)
    save(compile_machine(zoo.sum_mod(3)), tmp_path / "m.safetensors")
    code, out, _ = call("draw", "m.safetensors", "-o", "page.html", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["models"]["m"]["failing"] == []
    assert found["bytes"] == len((tmp_path / "page.html").read_bytes())
    assert call("draw", SUM2, "-o", "m.svg")[0] == 0
    assert (tmp_path / "m.svg").read_text().count('class="node"') == 2


def test_pictures_by_ending(call, tmp_path):
    code, out, _ = call("draw", "regex:(ab)*", "-o", "m.svg")
    assert (code, out) == (0, "3 states drawn in m.svg\n")
    assert ET.fromstring((tmp_path / "m.svg").read_text()).tag.endswith("svg")
    assert call("draw", "regex:(ab)*", "--matrices", "-o", "m.svg")[0] == 0
    assert ET.fromstring((tmp_path / "m.svg").read_text()).tag.endswith("svg")
    assert call("draw", "regex:(ab)*", "--matrices", "-o", "m.pdf")[0] == 0
    assert (tmp_path / "m.pdf").read_bytes().startswith(b"%PDF-")
    assert call("draw", "regex:(ab)*", "-o", "m.tex")[0] == 0
    assert (tmp_path / "m.tex").read_text().count("circle[") == 4  # three states, of which one accepts
    assert call("draw", "regex:(ab)*", "-o", "m.dot")[0] == 0
    assert (tmp_path / "m.dot").read_text() == MooreMachine.from_source("regex:(ab)*").to_dot()
