"""What a reader is, to those that give it hostile files."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fsa2lrnn.errors import Fsa2LrnnError


class Reader(NamedTuple):
    """A reader of files.

    Args:
        valid: files that it accepts.
        hostile: one more file, at random.
        read: reads the file at a path.
        ending: of the file's name.
        refuses: what it may raise.
        spare: bytes of memory that it may take beside twenty times the file.
    """

    valid: Callable[[], list[bytes]]
    hostile: Callable[[random.Random], bytes]
    read: Callable[[Path], object]
    ending: str = ""
    refuses: tuple[type[Exception], ...] = (Fsa2LrnnError, OSError)
    spare: int = 50 << 20
