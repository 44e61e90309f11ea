"""The command line of a script: `python -m experiments.NAME`, with `--help`, options by type, errors in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import typer

from fsa2lrnn.cli import end_with_one_line


def app(main: Callable[..., None]) -> typer.Typer:
    """Return the command of a script's `main`; its docstring is the help text."""
    command = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    command.command()(main)
    return command


def run(main: Callable[..., None]) -> NoReturn:
    """Run a script's `main` on the arguments of this process."""
    end_with_one_line(app(main))
