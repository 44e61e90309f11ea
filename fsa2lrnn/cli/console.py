"""Console output: rich tables, JSON objects for `--json`, one-line errors, and the progress line of long work."""

from __future__ import annotations

import io
import json
import math
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fsa2lrnn.deadline import present
from fsa2lrnn.errors import shortened

# Seconds until the first progress line and between two: on a terminal, with `--progress`, and in a log.
_ON_TERMINAL, _ASKED_FOR, _IN_LOG = (2.0, 0.5), (2.0, 10.0), (10.0, 30.0)


class _Activity:
    """The state of the display of the command that runs; one command runs per process."""

    def __init__(self) -> None:
        self.quiet, self.progress, self.text = False, False, ""
        self._lock, self._is_drawn = threading.Lock(), False

    def beat(self, name: str, begun: float, stopped: threading.Event) -> None:
        """Write the progress line repeatedly until the command has ended; on a terminal, rewrite it."""
        on_terminal = sys.stderr.isatty()
        pause, later = _ON_TERMINAL if on_terminal else _ASKED_FOR if self.progress else _IN_LOG
        while not stopped.wait(pause):
            pause, step = later, str(present)
            line = ", ".join(filter(None, (f"{name}: {time.monotonic() - begun:,.0f} s", self.text, step)))
            with self._lock:
                sys.stderr.write(f"\r\x1b[K{line[:79]}" if on_terminal else f"{line}\n")
                sys.stderr.flush()
                self._is_drawn = on_terminal

    def clear(self) -> None:
        """Remove the progress line from the terminal."""
        with self._lock:
            if self._is_drawn:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
                self._is_drawn = False


_activity = _Activity()


def is_quiet() -> bool:
    """Return whether `--quiet` was given."""
    return _activity.quiet


def note(text: str) -> None:
    """Set the text that describes the present stage in the progress line of long work."""
    _activity.text, present.name = text, ""


@contextmanager
def displayed(name: str, quiet: bool, progress: bool, beats: bool = True) -> Iterator[None]:
    """Display the progress of a command while it runs; `beats` is False for a command that waits for its input."""
    _activity.quiet, _activity.progress, _activity.text = quiet, progress, ""
    present.name = ""
    stopped = threading.Event()
    thread = threading.Thread(target=_activity.beat, args=(name, time.monotonic(), stopped), daemon=True)
    if beats and not quiet:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        if thread.ident is not None:
            thread.join()
        _activity.clear()
        _activity.quiet, _activity.progress, _activity.text = False, False, ""


class Printer(Console):
    """A console that removes the progress line before it prints, and prints `:b:` in `regex:a, regex:b:` as it is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, soft_wrap=True, emoji=False, **options)

    def print(self, *objects: object, **options: Any) -> None:
        _activity.clear()
        super().print(*objects, **options)


out = Printer()
err = Printer(stderr=True)

Document = dict[str, Any]  # a JSON object, whose parts may be objects too
_LONGEST = 2_000  # the most characters of an error message
# Keywords of Python that messages name, and the options that stand for them; some are those of `convert` alone.
_KEYWORDS = ("completion", "alphabet", "form", "max_block", "max_states", "method", "mode")
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in (*_KEYWORDS, "anyway")}
_OPTIONS |= {"seconds": "--max-seconds", "noise": "--label-noise"}
_OF_CONVERT = {name: f"--{name.replace('_', '-')}" for name in ("kind", "separator", "whole_labels", "acceptor")}
_KEYWORD = re.compile(
    rf"(?<![-\w])({'|'.join(_OPTIONS | _OF_CONVERT)})=(\"[^\"]*\"|'[^']*'|[\w.…-]+)|`[^`]*`|\w\([^()]*\)"
)


def plain(text: str) -> str:
    r"""Return text with unprintable characters escaped, except line ends, so that no terminal interprets it.

    >>> plain("a\x1b[31m\u202e\ud800")
    'a\\x1b[31m\\u202e\\ud800'
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def markup(text: str) -> str:
    """Return text escaped for rich markup."""
    return escape(plain(text))


def say(text: str) -> None:
    """Print a progress message on standard error, unless `--quiet` was given."""
    note(text)
    if not is_quiet():
        err.print(f"[dim]{markup(text)}[/]")


def then(*commands: str) -> None:
    """Print suggested next commands on standard output, unless `--quiet` was given."""
    if not is_quiet():
        out.print(f"[dim]next:[/] {markup('  ·  '.join(commands))}")


def error(kind: str, text: str) -> None:
    """Print an error on standard error, shortened in the middle to at most `_LONGEST` characters."""
    err.print(f"[red bold]{kind}:[/] {escape(message(text, len(kind) + 2))}")


def message(text: str, used: int = 0) -> str:
    """Return an error message as printable text that, with `used` more characters, has at most `_LONGEST`."""
    note = 40  # characters of the note on how many are left out
    text = plain(in_options(text))
    return text if len(text) + used <= _LONGEST else shortened(text, _LONGEST - used - note)


def in_options(text: str) -> str:
    """Return a message with options in place of Python's keywords, except in what is quoted as code.

    >>> print(in_options("choose completion='sink', or kind='moore'; `f(kind='moore')`; acceptor=False"))
    choose --completion sink, or `fsa2lrnn convert --kind moore`; `f(kind='moore')`; `fsa2lrnn convert --no-acceptor`
    """

    def option(match: re.Match[str]) -> str:
        """Return one keyword with its value as an option; quoted code stays."""
        name, value = match[1], match[2]
        if name is None:
            return match[0]
        written = _OPTIONS.get(name) or _OF_CONVERT[name]
        if value == "False":
            written = f"--no-{written[2:]}"
        elif value != "True":
            written += " " + value.strip("\"'")
        return written if name in _OPTIONS else f"`fsa2lrnn convert {written}`"

    return _KEYWORD.sub(option, text)


def emit_json(value: Mapping[str, object], indent: int | None = 2) -> None:
    """Print one JSON object on standard output, with unprintable characters escaped, and infinities and NaN as text."""
    is_unicode = (sys.stdout.encoding or "utf-8").lower().replace("-", "").startswith("utf")
    text = json.dumps(_finite(value), ensure_ascii=not is_unicode, indent=indent, allow_nan=False)
    _activity.clear()
    print("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text), flush=True)


def tolerate_any_text() -> None:
    """Make standard streams escape characters that they cannot encode."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def facts(title: str, rows: Iterable[tuple[str, str]], to: Console | None = None) -> None:
    """Print a two-column table of names and values, on standard output if no other console is given."""
    table = Table(
        title=plain(title), title_justify="left", title_style="bold", show_header=False, box=None, pad_edge=False
    )
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, markup(value))
    (to or out).print(table)


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _finite(x) for name, x in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(x) for x in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
