"""Every script of experiments/ is a command: `--help` says what it does, and does nothing else."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments import results_io, script
from fsa2lrnn.errors import UnsupportedFormat

ROOT = Path(script.__file__).parents[1]


def guarded(path):
    """What a module does when it is run: the code under `if __name__ == "__main__"`, None if it is no script."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            return "; ".join(map(ast.unparse, node.body))
    return None


FOUND = {path: code for path in sorted((ROOT / "experiments").rglob("*.py")) if (code := guarded(path)) is not None}
SCRIPTS = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FOUND]


def test_all_scripts_begin_alike():
    assert len(SCRIPTS) >= 12
    assert set(FOUND.values()) == {"script.run(main)"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_says_what_a_script_does_and_does_nothing(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results_io, "RESULTS", tmp_path / "results")
    main = import_module(name).main
    for option in ("--help", "-h"):
        asked = CliRunner().invoke(script.app(main), [option], env={"COLUMNS": "200"})
        assert asked.exit_code == 0
        assert main.__doc__.splitlines()[0].rstrip(".") in " ".join(asked.output.split())
    wrong = CliRunner().invoke(script.app(main), ["--no-such-option"])
    assert wrong.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_script_is_run_as_a_module(tmp_path):
    command = [sys.executable, "-m", "experiments.studies.training", str(tmp_path / "runs")]
    asked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert asked.stderr.startswith("error: No such file or directory")


def test_what_a_user_can_mend_is_said_in_one_line(monkeypatch, capsys):
    def main() -> None:
        """Fail."""
        raise UnsupportedFormat("the moon is full: wait")

    monkeypatch.setattr(sys, "argv", ["script"])
    with pytest.raises(SystemExit) as stop:
        script.run(main)
    assert stop.value.code == 2
    assert capsys.readouterr().err == "error: the moon is full: wait\n"
