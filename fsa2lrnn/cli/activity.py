"""The line on standard error that reports work of more than two seconds, and the effect of `--quiet`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_AFTER, _EVERY_ON_TERMINAL, _EVERY = 2.0, 0.5, 10.0  # seconds


class _Activity:
    """The state of the display of the command that runs; one command runs per process."""

    def __init__(self) -> None:
        self.quiet, self.progress, self.text = False, False, ""
        self._lock, self._is_drawn = threading.Lock(), False

    def is_live(self) -> bool:
        """Return whether progress is displayed: on a terminal or with `--progress`, and not with `--quiet`."""
        return not self.quiet and (self.progress or sys.stderr.isatty())

    def beat(self, name: str, begun: float, stopped: threading.Event) -> None:
        """Rewrite the progress line repeatedly until the command has ended."""
        on_terminal = sys.stderr.isatty()
        pause = _AFTER
        while not stopped.wait(pause):
            pause = _EVERY_ON_TERMINAL if on_terminal else _EVERY
            line = f"{name}: {time.monotonic() - begun:,.0f} s{self.text and f', {self.text}'}"
            with self._lock:
                sys.stderr.write(f"\r\x1b[K{line[:79]}" if on_terminal else f"{line}\n")
                sys.stderr.flush()
                self._is_drawn = on_terminal

    def clear(self) -> None:
        with self._lock:
            if self._is_drawn:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
                self._is_drawn = False


_activity = _Activity()
clear, is_live = _activity.clear, _activity.is_live


def is_quiet() -> bool:
    """Return whether `--quiet` was given."""
    return _activity.quiet


def note(text: str) -> None:
    """Set the text that describes the present step in the progress line of long work."""
    _activity.text = text


@contextmanager
def displayed(name: str, quiet: bool, progress: bool, beats: bool = True) -> Iterator[None]:
    """Display the progress of a command while it runs; `beats` is False for commands with a display of their own."""
    _activity.quiet, _activity.progress, _activity.text = quiet, progress, ""
    stopped = threading.Event()
    thread = threading.Thread(target=_activity.beat, args=(name, time.monotonic(), stopped), daemon=True)
    if beats and is_live():
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        if thread.ident is not None:
            thread.join()
        clear()
        _activity.quiet, _activity.progress, _activity.text = False, False, ""
