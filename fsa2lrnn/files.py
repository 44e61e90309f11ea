"""Files that are written whole or not at all, so that a crash or a full disk leaves the old one as it was."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def check_file(path: Path) -> None:
    """Raises `OSError` where `write_atomically` would, before there is anything to write: a file is made beside `path`
    and removed."""
    _check_place(path)
    _try(path.parent, f".{path.name}.")


def check_folder(path: Path) -> None:
    """Raises `OSError` unless files can be written in a folder, or in the nearest one above where it can be made."""
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not existing.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "this is a file, give a folder", str(existing))
    _try(existing, ".")


def _check_place(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder, make it first", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder, give a file", str(path))


def _try(folder: Path, prefix: str) -> None:
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=prefix)
    except OSError as error:
        raise OSError(error.errno, f"can't be written in ({error.strerror}), choose another", str(folder)) from None
    os.close(handle)
    Path(temporary).unlink()


def write_atomically(path: Path, content: bytes) -> None:
    """Put `content` at `path`: written beside it, flushed to disk, then moved into place. Raises `OSError`."""
    _check_place(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)  # mkstemp makes files that only their owner reads
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
