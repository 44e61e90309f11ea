"""The command line as a user calls it."""

import io
import sys

import pytest

from fsa2lrnn import cli


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the command line in an empty folder: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["fsa2lrnn", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return run
