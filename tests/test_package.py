"""The package and the README: version, contracts of imports, types of public names; the README does what it says."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import fsa2lrnn
from experiments import learning_tables, readme, results_io
from tests.test_pages import Follower

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {fsa2lrnn.__version__, PROJECT["version"], citation["version"], versions[0]} == {PROJECT["version"]}


def test_packages_import_only_what_the_contracts_allow(capsys):
    """The contracts of `tool.importlinter` in pyproject.toml: the output of a failed test names the imports."""
    linter = pytest.importorskip("importlinter.cli")
    ended = linter.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert ended == 0, capsys.readouterr().out


CONSUMER = ROOT / "tests" / "consumer.py"


@pytest.mark.slow
def test_a_users_file_is_read_as_it_says(tmp_path):
    shutil.copy(CONSUMER, tmp_path)
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    ended = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "-p", tmp_path, "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    found = {entry["range"]["start"]["line"] for entry in json.loads(ended.stdout)["generalDiagnostics"]}
    lines = CONSUMER.read_text(encoding="utf-8").splitlines()
    refused = {number for number, line in enumerate(lines) if line.endswith("# refused")}
    assert (len(refused), {lines[number] for number in found ^ refused}) == (7, set())


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


def test_its_numbers_are_those_of_the_results():
    models = results_io.read("learned")["results"]["models"].values()
    failing = sum(row["failure"] is not None for row in models)
    repaired = [row["repairs"][-1] for row in models if row["repairs"]]
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


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)", README)
    assert len(targets) > 20
    assert [target for target in targets if not target.startswith("https://") and not (ROOT / target).exists()] == []
