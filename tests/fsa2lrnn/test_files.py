"""A file is there whole, or as it was."""

import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
import threading

import pytest

from fsa2lrnn import files
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.files import (
    LOCK,
    alone,
    check_file,
    check_folder,
    remove_leftovers,
    write_atomically,
)


def test_content_and_ordinary_permissions(tmp_path):
    write_atomically(tmp_path / "f", b"one")
    write_atomically(tmp_path / "f", b"two")
    assert (tmp_path / "f").read_bytes() == b"two"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o666 & ~umask


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    (tmp_path / "f").write_bytes(b"old")

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    reason = r"No space left on device; what was here before is whole, make room and call again: '.*/f'"
    with pytest.raises(OSError, match=reason) as fault:
        write_atomically(tmp_path / "f", b"new")
    assert (fault.value.errno, fault.value.filename) == (28, str(tmp_path / "f"))
    assert ((tmp_path / "f").read_bytes(), [entry.name for entry in tmp_path.iterdir()]) == (b"old", ["f"])


def test_places_are_tried_and_left_as_they_were(tmp_path):
    (tmp_path / "old").write_bytes(b"old")
    for name in ("new", "old"):
        check_file(tmp_path / name)
    check_folder(tmp_path)
    check_folder(tmp_path / "to" / "be" / "made")
    assert ([entry.name for entry in tmp_path.iterdir()], (tmp_path / "old").read_bytes()) == (["old"], b"old")
    (tmp_path / "f").write_bytes(b"")
    for path in (tmp_path / "f", tmp_path / "f" / "below" / "it"):
        with pytest.raises(NotADirectoryError, match=r"this is a file, give a folder: .*/f'"):
            check_folder(path)


@pytest.mark.parametrize("act", [check_file, lambda path: write_atomically(path, b"")])
def test_no_file_where_a_folder_is_or_none(tmp_path, act):
    with pytest.raises(FileNotFoundError, match=r"no such folder, make it first: .*nowhere'"):
        act(tmp_path / "nowhere" / "f")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"this is a folder, give a file: .*folder'"):
        act(tmp_path / "folder")
    with pytest.raises(OSError, match="too long"):
        act(tmp_path / ("n" * 300))


@pytest.mark.parametrize("check", [lambda folder: check_file(folder / "f"), check_folder])
def test_a_folder_that_refuses_is_named(tmp_path, monkeypatch, check):
    def refuse(**_):
        raise PermissionError(13, "Permission denied", "/some/other/name")

    monkeypatch.setattr(files.tempfile, "mkstemp", refuse)
    with pytest.raises(PermissionError, match=r"this folder takes no file \(Permission denied\)") as fault:
        check(tmp_path)
    assert fault.value.filename == str(tmp_path)


def test_a_file_too_large_for_the_disk_is_named(tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large; what was here before is whole, make room .*: '.*/f'"):
            write_atomically(tmp_path / "f", bytes(1 << 17))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert ((tmp_path / "f").read_bytes(), [entry.name for entry in tmp_path.iterdir()]) == (b"old", ["f"])


KILLED = """
import os, signal, sys
from pathlib import Path
from fsa2lrnn.files import write_atomically
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
write_atomically(Path(sys.argv[1]), b"half")
"""


def test_what_a_killed_process_leaves_goes_with_the_next_write(tmp_path):
    path = tmp_path / "f"
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert len(leftovers(tmp_path)) == 1  # the second removed what the first left
    write_atomically(path, b"whole")
    assert (leftovers(tmp_path), path.read_bytes()) == ([], b"whole")


def leftovers(folder):
    return [entry.name for entry in folder.iterdir() if entry.name.startswith(".f.")]


def test_files_under_way_and_those_of_others_stay(tmp_path):
    names = [".f.12345678.fsa2lrnn-part", ".f.abcdefgh", ".g.12345678.fsa2lrnn-part", "f.12345678.fsa2lrnn-part"]
    for name in names:
        (tmp_path / name).touch()
    with (tmp_path / names[0]).open() as under_way:
        fcntl.flock(under_way, fcntl.LOCK_EX)
        write_atomically(tmp_path / "f", b"")
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "f"])
    write_atomically(tmp_path / "f", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names[1:], "f"])
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([names[1], names[3], "f"])


def test_writers_side_by_side_leave_one_whole_file(tmp_path):
    contents = [bytes([i]) * 1_000 for i in range(8)]

    def write(content):
        for _ in range(50):
            write_atomically(tmp_path / "f", content)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "f").read_bytes() in contents
    assert leftovers(tmp_path) == []


def test_one_at_work_in_a_folder_and_the_lock_of_a_killed_process(tmp_path):
    (tmp_path / ".f.12345678.fsa2lrnn-part").touch()
    message = rf"another run is at work in {tmp_path}: wait for it, or give another folder"
    with alone(tmp_path, "run"):
        assert leftovers(tmp_path) == []
        with pytest.raises(UnsupportedFormat, match=message), alone(tmp_path, "run"):
            pass
    with alone(tmp_path, "run"):
        pass
    with subprocess.Popen([sys.executable, "-c", HOLDING, tmp_path], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(UnsupportedFormat, match="another run is at work"), alone(tmp_path, "run"):
            pass
        process.kill()
    assert (tmp_path / LOCK).exists()
    with alone(tmp_path, "run"):
        pass


HOLDING = """
import sys, time
from pathlib import Path
from fsa2lrnn.files import alone
with alone(Path(sys.argv[1]), "run"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_disk_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match=r"no lock to be had \(No locks available\), give another disk: .*lock'"):
        alone(tmp_path, "run").__enter__()
    write_atomically(tmp_path / "f", b"written all the same")
    assert (tmp_path / "f").read_bytes() == b"written all the same"
