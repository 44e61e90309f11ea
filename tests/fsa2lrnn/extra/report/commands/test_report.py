"""`report`: the page and its facts; what they say is in the tests of the report."""

import json
from pathlib import Path

import pytest

from fsa2lrnn import learn
from fsa2lrnn.extra.report import assemble
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.facts import Model, ReportFacts, verdict

KEPT = Path(__file__).parents[5] / "experiments" / "models"
SUM2, EVEN5 = str(KEPT / "sum2" / "seed-0.safetensors"), str(KEPT / "even5" / "seed-4.safetensors")


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
    code, _, err = call("report", EVEN5, "-o", "page.html")
    assert (code, err.count("give models, and then the SOURCE")) == (2, 1)
    Path("empty").mkdir()
    code, _, err = call("report", "empty", "-o", "page.html")
    assert (code, err.count("no run of `fsa2lrnn learn` has ended there")) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SUM2, "-o", "x.pdf"), "the page is written to a file ending in .html"),
        ((SUM2, "-o", "no/x.html"), "no such folder, make it first: 'no'"),
        ((SUM2, "-o", "taken.html"), "this is a folder, give a file: 'taken.json'"),
        ((SUM2, SUM2, "-o", "x.html"), "one is given twice"),
        ((EVEN5, "-o", "x.html"), "the alphabets differ"),
    ],
)
def test_bad_input_is_one_line(call, tmp_path, arguments, message):
    (tmp_path / "taken.json").mkdir()
    code, out, err = call("report", *arguments, "task:sum_mod(2)")
    assert (code, out) == (2, "")
    assert message in err
