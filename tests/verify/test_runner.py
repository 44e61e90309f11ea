"""The registry on the command line: lines, JSON, the live table, exit codes."""

import io
import json
import subprocess
import sys

import pytest
import torch
from rich.console import Console

from fsa2lrnn.cli import console
from verify import propositions, runner
from verify.propositions import Outcome, Proved, Undecided

QUICK = ["worked-examples", "p-1.2-stable", "liquid-s4-dense"]


def outcomes(*answers):
    chosen = propositions.select(propositions.REGISTRY, ["worked-examples"])
    return [Outcome(chosen[0], answer) for answer in answers]


def test_lines_and_a_summary(capsys):
    runner.main(False, False, QUICK, as_json=False)
    out = capsys.readouterr().out
    assert "worked-examples        proved    3 cases" in out
    assert "float32 256" in out
    assert "instead: p = 1 stabilises" in out
    assert "3 propositions: 2 proved, 1 refuted, all as expected; 5 cases, fast profile (150 examples" in out


def test_json(capsys):
    runner.main(False, False, QUICK, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["counts"] == {"proved": 2, "refuted": 1}
    assert document["unexpected"] == []
    stable = next(p for p in document["propositions"] if p["id"] == "p-1.2-stable")
    assert stable["data"]["overflow"]["float32"] == 256
    assert stable["instead"]
    assert stable["expected"]


@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_not_expected_exits_with_one(monkeypatch, capsys, as_json):
    monkeypatch.setattr(propositions, "run", lambda chosen, effort: iter(outcomes(Undecided("a second"))))  # noqa: ARG005
    with pytest.raises(SystemExit) as stop:
        runner.main(False, False, ["worked-examples"], as_json)
    assert stop.value.code == 1
    out = capsys.readouterr().out
    assert '"unexpected": [\n    "worked-examples"' in out if as_json else "unexpected: proved was expected" in out


def test_a_terminal_gets_a_table_that_fills(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(
        console, "out", Console(file=screen, force_terminal=True, width=120, highlight=False, soft_wrap=True)
    )
    runner.main(False, False, QUICK, as_json=False)
    text = screen.getvalue()
    assert "running" in text
    assert "more" in text
    assert "3 propositions" in text


def test_the_number_of_threads_is_put_back():
    before = torch.get_num_threads()
    runner.main(False, False, ["worked-examples"], as_json=True)
    assert torch.get_num_threads() == before


def test_square_brackets_in_a_witness_are_no_markup():
    (outcome,) = outcomes(Undecided("[bold]"))
    assert "\\[bold]" in runner.summary([outcome], propositions.FAST)
    assert "3 cases" in runner.line(outcomes(Proved("so", 3))[0])


def test_python_m_verify_is_the_same():
    command = [sys.executable, "-m", "verify", "--only", "worked-examples", "--json"]
    document = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert [p["id"] for p in document["propositions"]] == ["worked-examples"]


def test_the_papers_own_alone(capsys):
    runner.main(True, False, [*QUICK, "growth-bound"], as_json=True)
    found = [p["id"] for p in json.loads(capsys.readouterr().out)["propositions"]]
    assert sorted(found) == sorted(QUICK)


def test_an_unknown_proposition_is_refused_in_a_line():
    command = [sys.executable, "-m", "verify", "--only", "eq-8"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "proposition 'eq-8' is not in the registry" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_two_propositions_by_name(capsys):
    runner.main(False, False, ["worked-examples", "prop-1-words"], as_json=False)
    assert "2 propositions: 2 proved, all as expected" in capsys.readouterr().out
