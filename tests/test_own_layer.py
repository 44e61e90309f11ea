"""docs/own-layer.md, followed word for word."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "own-layer.md").read_text(encoding="utf-8")
CODE, *_ = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
COMMANDS = re.findall(r"^\$ fsa2lrnn (.*)$", GUIDE, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    (folder / "my_layers.py").write_text(CODE, encoding="utf-8")
    return folder


def test_the_example_is_short():
    assert len(CODE.strip().splitlines()) <= 50
    assert [command.split()[0] for command in COMMANDS] == ["train", "compare", "falsify", "extract"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.split()[0])
def test_every_command_runs(folder, command):
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "fsa2lrnn", *shlex.split(command)],
        cwd=folder,
        env={**__import__("os").environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    # A failing word that is found, and states that do not close, are answers; bad input is not.
    assert ended.returncode in (0, 1), f"{ended.stdout}{ended.stderr}"
    assert "Traceback" not in ended.stderr


def test_without_its_name_the_model_is_refused(folder):
    path = folder / "runs" / "mine" / "seed-0" / "model.safetensors"
    ended = subprocess.run(
        [sys.executable, "-m", "fsa2lrnn", "falsify", str(path), "regex:(ab)*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "--layer my_layers:MinGRU" in ended.stderr.replace("\n", " ")
