"""The package: versions, workflow, hooks, and the types of its public names."""

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

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {fsa2lrnn.__version__, PROJECT["version"], citation["version"], versions[0]} == {PROJECT["version"]}


def test_the_workflow_runs_what_we_run():
    """`on` is true to YAML 1.1."""
    matrix = WORKFLOW["jobs"]["tests"]["strategy"]["matrix"]
    said = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r"3\.\d+$", line)}
    assert set(matrix["python"]) == said
    assert min(said, key=lambda text: int(text.split(".")[1])) == PROJECT["requires-python"].removeprefix(">=")
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos"}
    assert [step["run"] for step in WORKFLOW["jobs"]["tests"]["steps"] if "run" in step] == [".ci/run"]
    assert set(WORKFLOW[True]) == {"push", "pull_request", "workflow_dispatch"}
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_packages_import_only_what_the_contracts_allow(capsys):
    """The contracts of `tool.importlinter` in pyproject.toml: the output of a failed test names the imports."""
    linter = pytest.importorskip("importlinter.cli")
    ended = linter.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert ended == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "path", [*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml"], ids=lambda p: p.name
)
def test_a_file_of_settings_can_be_read(path):
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_hooks_are_those_of_the_environment():
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert local["repo"] == "local"
    assert all(hook["language"] == "system" and hook["entry"].startswith(".venv/bin/") for hook in local["hooks"])


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
    assert len(refused) == 7
    assert {lines[number] for number in found ^ refused} == set()


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "fsa2lrnn" / "py.typed").exists()
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert "py.typed" in tools["setuptools"]["package-data"]["fsa2lrnn"]
