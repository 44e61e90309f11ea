"""The public interface as a strict type checker sees it, from a user's file."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
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
