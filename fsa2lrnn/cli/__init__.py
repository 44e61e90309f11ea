"""The command line: one verb a job. Exit codes: 0 done, 1 the answer is "no", 2 bad input.

torch and the automata are imported by the verbs that need them, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from fsa2lrnn.cli import exact_verbs, learned_verbs
from fsa2lrnn.cli.options import BAD_INPUT, NO
from fsa2lrnn.errors import Fsa2LrnnError, NotExpressible

app = typer.Typer(
    name="fsa2lrnn",
    help="Compile finite automata into exact linear recurrent networks, and prove networks equal to automata.",
    epilog="SOURCE is regex:(ab)*, task:mod_arith(5), or a file: .dot .gv .jff .json .fst.txt",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(exact_verbs.app)
app.add_typer(learned_verbs.app)


def main(arguments: list[str] | None = None) -> NoReturn:
    """The console script."""
    end_with_one_line(app, arguments)


def end_with_one_line(app: typer.Typer, arguments: list[str] | None = None) -> NoReturn:
    """Run an app and turn errors that input can cause into one line and an exit code."""
    from rich.markup import escape

    from fsa2lrnn.cli import console

    try:
        app(arguments)
    except NotExpressible as error:
        console.err.print(f"[red bold]no:[/] {escape(str(error))}")
        sys.exit(NO)
    except (Fsa2LrnnError, OSError, UnicodeDecodeError) as error:
        console.err.print(f"[red bold]error:[/] {escape(str(error))}")
        sys.exit(BAD_INPUT)
    sys.exit(0)
