"""Certificates made to deceive the checker, or to keep it busy for ever."""

import copy
import subprocess
import sys
from pathlib import Path

import pytest

from fsa2lrnn.families import recheck
from tests.fsa2lrnn.families.conftest import CASES, OTHERS, accepted, at_path, leaves, rejected

FOLDER = Path(sys.modules[recheck.__module__].__file__).parent


@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_whatever_is_added_is_refused(name):
    certificate = {**CASES, **OTHERS}[name]
    assert accepted(certificate)
    for path in ((), *leaves(certificate)):
        value = at_path(certificate, path)
        more = copy.deepcopy(certificate)
        if isinstance(value, dict):
            at_path(more, path)["claim"] = 1
            rejected(more, "'claim' is missing or too many")
        elif (
            isinstance(value, list) and path[-1] not in ("then", "separator", "terms", "lanes") and "words" not in path
        ):
            at_path(more, path).append(copy.deepcopy(value[-1]) if value else 0)
            assert not accepted(more), path


def test_files_that_can_not_be_read_are_rejected_without_a_traceback(tmp_path):
    def run(*arguments):
        command = [sys.executable, "-I", "-S", FOLDER, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    texts = {"deep": "[" * 100_000, "twice": '{"format": 1, "format": 2}', "long": "9" * 5_000, "none": "{}"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name in (*texts, "bytes", "missing"):
        done = run(name)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("rejected: ")
        assert done.stderr.count("\n") == 1
    assert run().stderr == "usage: python -m fsa2lrnn.families.recheck certificate.json\n"
