"""A file is there whole, or as it was."""

import os
import stat

import pytest

from fsa2lrnn import files
from fsa2lrnn.files import check_file, check_folder, write_atomically


def test_content_and_ordinary_permissions(tmp_path):
    write_atomically(tmp_path / "f", b"one")
    write_atomically(tmp_path / "f", b"two")
    assert (tmp_path / "f").read_bytes() == b"two"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o666 & ~umask


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such folder, make it first: .*nowhere'"):
        write_atomically(tmp_path / "nowhere" / "f", b"")


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    (tmp_path / "f").write_bytes(b"old")

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_places_are_tried_and_left_as_they_were(tmp_path):
    (tmp_path / "old").write_bytes(b"old")
    for name in ("new", "old"):
        check_file(tmp_path / name)
    check_folder(tmp_path)
    check_folder(tmp_path / "to" / "be" / "made")
    assert [entry.name for entry in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_bytes() == b"old"


@pytest.mark.parametrize("act", [check_file, lambda path: write_atomically(path, b"")])
def test_no_file_where_a_folder_is_or_none(tmp_path, act):
    with pytest.raises(FileNotFoundError, match=r"no such folder, make it first: .*nowhere'"):
        act(tmp_path / "nowhere" / "f")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"this is a folder, give a file: .*folder'"):
        act(tmp_path / "folder")
    with pytest.raises(OSError, match="too long"):
        act(tmp_path / ("n" * 300))


def test_no_folder_where_a_file_is(tmp_path):
    (tmp_path / "f").write_bytes(b"")
    for path in (tmp_path / "f", tmp_path / "f" / "below" / "it"):
        with pytest.raises(NotADirectoryError, match=r"this is a file, give a folder: .*/f'"):
            check_folder(path)


@pytest.mark.parametrize("check", [lambda folder: check_file(folder / "f"), check_folder])
def test_a_folder_that_refuses_is_named(tmp_path, monkeypatch, check):
    def refuse(**_):
        raise PermissionError(13, "Permission denied", "/some/other/name")

    monkeypatch.setattr(files.tempfile, "mkstemp", refuse)
    with pytest.raises(PermissionError, match=r"can't be written in \(Permission denied\), choose another") as fault:
        check(tmp_path)
    assert fault.value.filename == str(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_without_rights(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="can't be written in"):
        check_file(tmp_path / "f")
