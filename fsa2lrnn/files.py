"""The formats of automata by file ending, and atomic writes: a crash or a full disk leaves the old content unchanged.

`FORMATS` is data only, so that the help of the command line can list the formats without importing their readers. To
add a format, add a file to `automata/formats/` and an entry here.

New content goes into a hidden file next to the old one, locked by the writing process. A killed process leaves this
file without the lock, so that the next writer recognises and removes it.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fsa2lrnn.errors import UnsupportedFormat

LOCK = ".lock"
UNDER_WAY = ".fsa2lrnn-part"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class SourceFormat:
    """A format of automata, recognised by the prefix of a source or the ending of a file.

    Args:
        endings: the file endings; for a source such as `regex:(ab)*` the prefix alone.
        reader, writer: "module:function" within `fsa2lrnn.automata`, imported at first use.
    """

    name: str
    endings: tuple[str, ...]
    description: str
    reader: str
    writer: str | None = None

    @property
    def is_file(self) -> bool:
        """Whether the format is recognised by the ending of a path, rather than by a prefix."""
        return not self.endings[0].endswith(":")


FORMATS = (
    SourceFormat("regex", ("regex:",), "a regular expression, as in regex:(ab)*", "formats.regex:from_regex"),
    SourceFormat("task", ("task:",), "a machine of the zoo by name, as in task:mod_arith(5)", "zoo:from_task"),
    SourceFormat(
        "MLRegTest",
        ("mlregtest:",),
        "a language of MLRegTest by name, from the folder FSA2LRNN_MLREGTEST",
        "zoo.mlregtest:from_mlregtest",
    ),
    SourceFormat(
        "DOT",
        (".dot", ".gv"),
        "Graphviz: drawn by hand, by AALpy, LearnLib or us",
        "formats.dot:from_dot",
        "formats.dot:to_dot",
    ),
    SourceFormat(
        "JFLAP",
        (".jff",),
        "JFLAP finite automata, Moore and Mealy machines",
        "formats.jflap:from_jflap",
        "formats.jflap:to_jflap",
    ),
    SourceFormat(
        "OpenFst",
        (".fst.txt", ".att"),
        "OpenFst text; symbol tables in the same folder as NAME.syms, NAME.isyms, NAME.osyms",
        "formats.openfst:from_openfst",
        "formats.openfst:to_openfst",
    ),
    SourceFormat("KISS2", (".kiss2", ".kiss"), "circuits as Mealy machines over bits", "formats.kiss2:from_kiss2"),
    SourceFormat(
        "JSON",
        (".json",),
        "our own, which keeps symbols of every kind",
        "formats.json_file:from_json",
        "formats.json_file:to_json",
    ),
)
"""All formats, in the order in which help lists them."""


def endings(for_writing: bool = False) -> str:
    """Return the endings of all files that can be read, or written, separated by spaces.

    >>> endings()
    '.dot .gv .jff .fst.txt .att .kiss2 .kiss .json'
    """
    formats = [form for form in FORMATS if form.is_file and (form.writer or not for_writing)]
    return " ".join(ending for form in formats for ending in form.endings)


def is_folder(path: str | Path) -> bool:
    """Return whether a folder exists; False for text that cannot be a path."""
    return exists(path) and Path(path).is_dir()


def exists(path: str | Path) -> bool:
    r"""Return whether a file or folder exists; False for text that cannot be a path (too long, a null character).

    >>> exists("."), exists("regex:(ab)*"), exists("\0" + 5000 * "a")
    (True, False, False)
    """
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def check_file(path: Path) -> None:
    """Raise `OSError` unless a file can be written at `path`, tested with an empty temporary file in its folder."""
    _check_place(path)
    _try(path.parent, f".{path.name}.")


def check_folder(path: Path) -> None:
    """Raise `OSError` unless files can be written in a folder, or in its nearest existing parent if it is missing."""
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
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=UNDER_WAY)
    except OSError as error:
        raise OSError(error.errno, f"this folder takes no file ({error.strerror})", str(folder)) from None
    os.close(handle)
    Path(temporary).unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path`: write it to a temporary file, flush that to disk, then move it into place.

    Raises `OSError` naming the path or its missing folder; the old content of `path` is then unchanged.
    """
    _check_place(path)
    remove_leftovers(path.parent, path.name)
    temporary = None
    try:
        handle, temporary = begin(path)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            temporary.chmod(0o666 & ~umask())  # mkstemp makes files that only their owner reads
            temporary.replace(path)  # before the lock ends with the file
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            remedy = ", make room and call again" if error.errno in _FULL else ""
            raise OSError(error.errno, f"{error.strerror}; what was here before is whole{remedy}", str(path)) from error
        raise


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove the temporary files and folders of killed processes in a folder: those for `name`, or all if None."""
    with os.scandir(folder) as entries:
        leftovers = [
            entry
            for entry in entries
            if entry.name.startswith("." if name is None else f".{name}.") and entry.name.endswith(UNDER_WAY)
        ]
    for entry in leftovers:
        with suppress(OSError), ExitStack() as stack:  # removed by another process, or locked by its writer
            handle = os.open(entry.path, os.O_RDONLY)
            stack.callback(os.close, handle)
            _lock(handle, wait=False)
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                Path(entry.path).unlink(missing_ok=True)


@contextmanager
def alone(folder: Path, work: str) -> Iterator[None]:
    """Lock a folder against other processes inside this block, and remove the leftovers of killed processes.

    Raises `UnsupportedFormat`, which names the `work` ("sweep" or "run"), if another process has the lock; `OSError` on
    a file system without locks.
    """
    path = folder / LOCK
    with path.open("w") as file:
        try:
            _lock(file.fileno(), wait=False)
        except BlockingIOError as error:
            raise UnsupportedFormat(
                f"another {work} is at work in {folder}: wait for it, or give another folder"
            ) from error
        except OSError as error:
            raise OSError(error.errno, f"no lock to be had ({error.strerror}), give another disk", str(path)) from error
        remove_leftovers(folder)
        yield


def begin(path: Path, make: Callable[..., tuple[int, str]] = tempfile.mkstemp) -> tuple[int, Path]:
    """Return the handle and path of a new locked temporary file in the folder of `path`; `make` creates it."""
    while True:
        handle, temporary = make(dir=path.parent, prefix=f".{path.name}.", suffix=UNDER_WAY)
        with suppress(OSError):  # a file system without locks: nothing is removed there
            _lock(handle, wait=True)
        if Path(temporary).exists():  # else it was taken for a leftover before it was locked
            return handle, Path(temporary)
        os.close(handle)


def umask() -> int:
    """Return the umask of this process: the permission bits that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _lock(handle: int, wait: bool) -> None:
    """Lock an open file until it is closed; raise `BlockingIOError` if it is locked and not `wait`, or `OSError`."""
    if sys.platform == "win32":
        raise OSError(errno.ENOLCK, "no locks on Windows")
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
