"""`report`: the page and its facts; what they say is in the tests of the report."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import fsa2lrnn.report as pages
from fsa2lrnn.report import assemble

KEPT = Path(__file__).parents[4] / "experiments" / "models"
SUM2, EVEN5 = str(KEPT / "sum2" / "seed-0.safetensors"), str(KEPT / "even5" / "seed-4.safetensors")


def test_a_page_and_its_facts(call, monkeypatch):
    seen, facts = [], SimpleNamespace(title="of EvenPair", models=[SimpleNamespace(name="mine", kind="learned")])

    def assembled(source, models, budget, evaluated, say, ignore):
        seen.append((source, list(models), budget.seconds, evaluated, ignore))
        say("looking")
        return facts

    monkeypatch.setattr(assemble, "assemble", assembled)
    monkeypatch.setattr(pages, "verdict", lambda found, model: f"said of {model.name} in {found.title}")
    monkeypatch.setattr(pages, "write", lambda _, path: (path, path.with_suffix(".json")))
    few = ("--lengths", "4,9", "--words", "5", "--letters", "100", "--seconds", "3")
    arguments = ("report", EVEN5, "--against", "task:even_pair(5)", "-o", "page.html", *few)
    code, out, err = call(*arguments)
    assert code == 0
    evaluated = {"lengths": (4, 9), "n_words": 5, "letters": 100}
    assert seen == [("task:even_pair(5)", ["even5/seed-4"], 3.0, evaluated, "lacked")]
    assert "looking" in err
    assert "said of mine in of EvenPair" in out
    assert json.loads(call(*arguments, "--json")[1]) == {"page": "page.html", "facts": "page.json"}


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
    code, out, err = call("report", *arguments, "--against", "task:sum_mod(2)")
    assert (code, out) == (2, "")
    assert message in err
