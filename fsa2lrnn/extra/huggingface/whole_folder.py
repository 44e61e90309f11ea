"""Write folders atomically, so that a crash leaves no mixture of old and new files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from fsa2lrnn.files import begin, check_folder, remove_leftovers, umask


@contextmanager
def folder_written_whole(path: Path, mark: str) -> Iterator[Path]:
    """Open an empty temporary folder, and move its files to `path` if the block ends without an error.

    Until then `path` is unchanged; its files of other names remain. `mark` is the file by which readers recognise the
    folder. It is removed first and written last, so that no reader accepts a mixture of old and new files.
    """
    check_folder(path)
    path = path.absolute()
    # The temporary folder is inside `path` if it exists, otherwise in its closest ancestor that exists.
    place = next(folder for folder in (path, *path.parents) if folder.exists())
    remove_leftovers(place, path.name)
    with ExitStack() as stack:
        handle, temporary = begin(place / path.name, _make_folder)
        stack.callback(os.close, handle)
        stack.callback(shutil.rmtree, temporary, ignore_errors=True)
        yield temporary
        for file in temporary.iterdir():
            with file.open("r+b") as content:
                os.fsync(content.fileno())
        if path.exists():
            (path / mark).unlink(missing_ok=True)
            for file in sorted(temporary.iterdir(), key=lambda file: file.name == mark):
                file.replace(path / file.name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.chmod(0o777 & ~umask())  # mkdtemp makes folders that only their owner reads
            temporary.replace(path)


def _make_folder(**names: Any) -> tuple[int, str]:
    while True:
        folder = tempfile.mkdtemp(**names)
        with suppress(FileNotFoundError):  # another process may have removed it as a leftover
            return os.open(folder, os.O_RDONLY), folder
