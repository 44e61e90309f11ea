"""docs/guides/add-a-layer.md, followed word for word."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "guides" / "add-a-layer.md").read_text(encoding="utf-8")
CODE, *_ = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
COMMANDS = re.findall(r"^\$ fsa2lrnn (.*)$", GUIDE, re.MULTILINE)


# Commands one after another in one process, which takes seconds to begin.
IN_TURN = """
import shlex, sys
from fsa2lrnn import cli

for command in sys.argv[1:]:
    try:
        cli.main(shlex.split(command))
    except SystemExit as end:
        print("ended with", end.code or 0)
"""


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the layer is written, and trained by the first command."""
    folder = tmp_path_factory.mktemp("mine")
    (folder / "my_layers.py").write_text(CODE, encoding="utf-8")
    ended = run(folder, "-P", "-m", "fsa2lrnn", *shlex.split(COMMANDS[0]))
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), f"{ended.stdout}{ended.stderr}"
    return folder


def test_the_example_is_short():
    assert len(CODE.strip().splitlines()) <= 50
    verbs = [command.split()[0] for command in COMMANDS]
    assert verbs == ["train", "compare", "falsify", "extract", "certify", "explain"]


@pytest.mark.slow
def test_the_other_commands_run_in_turn(folder):
    ended = run(folder, "-P", "-c", IN_TURN, *COMMANDS[1:])
    # A failing word that is found, and states that do not close, are answers; bad input is not.
    codes = re.findall(r"^ended with (\d+)$", ended.stdout, re.MULTILINE)
    assert len(codes) == len(COMMANDS) - 1, f"{ended.stdout}{ended.stderr}"
    assert set(codes) <= {"0", "1"}, f"{ended.stdout}{ended.stderr}"
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_without_its_name_the_model_is_refused(folder):
    path = folder / "runs" / "mine" / "seed-0" / "model.safetensors"
    ended = run(ROOT, "-m", "fsa2lrnn", "falsify", str(path), "regex:(ab)*")
    assert ended.returncode == 2
    assert "--import my_layers:MinGRU" in ended.stderr.replace("\n", " ")
