"""The README does what it says: its code runs, its commands work, CONTRIBUTING gives a reason for every dependency."""

import re
import tomllib
from pathlib import Path

import pytest

from experiments import learning_tables, readme, results_io
from tests.test_pages import Follower

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


TITLES = "## S5 in a Hugging Face model, proved", "## The same in Python"
BEFORE, EXPORTED, AFTER = re.split("|".join(TITLES), README)


def test_the_example_prints_what_it_says_and_the_commands_work(call, tmp_path):
    Follower(tmp_path, call).follow(BEFORE + AFTER)


@pytest.mark.slow
def test_the_export_can_be_loaded(call, tmp_path):
    lines = [line for line in EXPORTED.splitlines() if line and not line.startswith("```")]
    assert len(lines) <= 12
    Follower(tmp_path, call).follow(EXPORTED)


def test_it_is_short():
    assert len(README.split()) <= 900


def test_its_numbers_are_those_of_the_results():
    models = results_io.read("learned")["results"]["models"].values()
    failing = sum(row["failure"] is not None for row in models)
    repaired = [row["repairs"][1] for row in models if row["repairs"]]
    mlregtest = results_io.read("mlregtest_learned")["results"]["runs"]
    rows = learning_tables.in_short().splitlines()[2:]
    counts = re.findall(r"(\d+) of (\d+) \|", "\n".join(rows))
    proved, runs = (sum(map(int, column)) for column in zip(*counts, strict=True))
    answers, unknown = re.search(r"Of (\d+) answers: .*unknown (\d+)", readme.released()).groups()
    for claim in (
        f"all {len(models)} trained models",
        f"found for {failing} ",
        f"{sum('proved' in each for each in repaired)} of {len(repaired)} ",
        f"{proved} of {runs} runs",
        f"{sum(row['proved'] for row in mlregtest)} of {len(mlregtest)} languages",
        f"of {answers} questions to seven external layers {unknown} remain open",
    ):
        assert claim in " ".join(README.split()), claim
    (length,) = {
        line["length"]
        for line in results_io.read("training")["results"][0]["seeds"][0]["last_checkpoint"]
        if line["length"] == 500 and line["last_position"]["accuracy"] == 1
    }
    assert f"right on 10,000 words of {length} letters" in " ".join(README.split())


def test_the_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([a-z0-9-]+)", README):
        assert f"\n{target}:" in makefile


def test_every_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = contributing.split("## Dependencies")[1]
    rows = re.findall(r"^\| ([a-z][a-z0-9, -]*) \| ", section, re.MULTILINE)
    assert set(", ".join(rows).split(", ")) - {"package", "extra"} == names(project["dependencies"])
    extras = dict(re.findall(r"^\| `([a-z]+)` \| ([a-z0-9, -]*) \| ", section, re.MULTILINE))
    wanted = project["optional-dependencies"]
    assert {extra: set(row.split(", ")) for extra, row in extras.items()} == {
        extra: names(wanted[extra]) for extra in wanted.keys() - {"dev"}
    }
    every, *others = wanted["dev"]
    assert every == f"fsa2lrnn[{','.join(sorted(extras.keys() - {'wandb'}))}]"
    assert all(name in section for name in names(others))


def names(requirements):
    return {re.split(r"[<>=;\[]", text)[0] for text in requirements}


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)", README)
    assert len(targets) > 20
    assert [target for target in targets if not target.startswith("https://") and not (ROOT / target).exists()] == []
