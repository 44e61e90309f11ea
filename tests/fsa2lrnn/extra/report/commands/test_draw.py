import json
import xml.etree.ElementTree as ET

import pytest

from experiments.studies.keep_models import MODELS
from fsa2lrnn import MooreMachine, compile_machine, save, zoo

EVEN5 = str(MODELS / "even5" / "seed-4.safetensors")


def test_a_page_of_a_source_and_a_model(call, tmp_path):
    machine = zoo.parity()
    wrong = MooreMachine([[0, 1], [1, 1]], machine.outputs, 0, machine.alphabet)
    save(compile_machine(wrong), tmp_path / "wrong.safetensors")
    code, out, err = call("draw", "task:parity", "wrong.safetensors", "-o", "page.html", "--max-seconds", "1")
    assert code == 0
    assert "wrong: looking for a failing word" in err
    assert "Fails on a word of" in out
    assert "Proved right on all words" in out
    page = (tmp_path / "page.html").read_text()
    data = json.loads(page.partition('type="application/json">')[2].partition("</script>")[0])
    assert [model["name"] for model in data["models"]] == ["wrong", "constructed"]
    assert len(data["words"]) == 1


def test_a_model_alone_brings_its_automaton(call, tmp_path):
    save(compile_machine(zoo.sum_mod(3)), tmp_path / "m.safetensors")
    code, out, _ = call("draw", "m.safetensors", "-o", "page.html", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["models"]["m"]["failing"] == []
    assert found["bytes"] == len((tmp_path / "page.html").read_bytes())


def test_a_learned_model_alone_is_drawn_by_what_it_puts_out(call):
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["regex:a"], "give -o page.html for the page; --format svg and --format dot print without a file"),
        (["regex:a", "-o", "m.pdf"], "output m.pdf: write a file ending in .html, .svg, .png, .dot, .gv"),
        (["regex:a", "-o", "m.svg", "--format", "png"], "output m.svg and --format png are two formats"),
        (["regex:a", "regex:b", "-o", "p.html"], "regex:a, regex:b: give one automaton, with which all models are"),
        (["regex:a", "--models-only", "-o", "p.html"], "--models-only leaves out the compiled network: name"),
        (["task:sum_mod(61)", "-o", "m.svg"], "61 states and a drawing shows up to 60"),
        (["task:sum_mod(3)", EVEN5, "-o", "p.html"], "the alphabets differ"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_line(call, arguments, said):
    code, _, err = call("draw", *arguments)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


def test_json_of_what_is_only_printed_is_refused(call):
    code, out, err = call("draw", "task:parity", "--format", "svg", "--json")
    assert (code, out) == (2, "")
    assert "--json says what was written: name a file with -o" in err
