"""A folder is there whole, or as it was."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fsa2lrnn.export.whole_model import folder_written_whole

KILLED_FOLDER = """
import os, signal, sys
from pathlib import Path
from fsa2lrnn.export.whole_model import folder_written_whole
with folder_written_whole(Path(sys.argv[1]), "mark") as place:
    (place / "part").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def fail_in(path):
    with folder_written_whole(path, "mark") as place:
        (place / "mark").write_bytes(b"half")
        raise RuntimeError


def test_a_folder_is_there_whole_or_not_at_all(tmp_path):
    path = tmp_path / "to" / "f"
    path.parent.mkdir()
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED_FOLDER, path], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert len(list(path.parent.glob(".f.*"))) == 1  # the second removed what the first left
    with pytest.raises(RuntimeError):
        fail_in(path)
    assert list(path.parent.iterdir()) == []
    with folder_written_whole(path, "mark") as place:
        (place / "mark").write_bytes(b"one")
        assert not path.exists()
    assert [(file.name, file.read_bytes()) for file in path.iterdir()] == [("mark", b"one")]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o777 & ~umask
    assert [entry.name for entry in path.parent.iterdir()] == ["f"]


def test_a_folder_that_exists_keeps_its_other_files_and_gets_its_mark_last(tmp_path, monkeypatch):
    for name in ("mark", "part", "ours"):
        (tmp_path / name).write_bytes(b"old")
    with pytest.raises(RuntimeError):
        fail_in(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == dict.fromkeys(
        ("mark", "part", "ours"), b"old"
    )

    def write():
        with folder_written_whole(tmp_path, "mark") as place:
            for name in ("mark", "part"):
                (place / name).write_bytes(b"new")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: exec("raise OSError(28, 'No space left on device')"))
        with pytest.raises(OSError, match="No space left"):
            write()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"part": b"old", "ours": b"old"}
    write()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
        "mark": b"new", "part": b"new", "ours": b"old"
    }  # fmt: skip
