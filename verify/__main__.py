"""`python -m verify`: check every proposition and print a summary. Exit codes are those of `fsa2lrnn`."""

from __future__ import annotations

from typing import Annotated

import typer

from fsa2lrnn.cli import end_with_one_line

app = typer.Typer(pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command()
def verify(
    paper: Annotated[
        bool, typer.Option("--paper", help="what the paper, or its released code, claims, and what that comes to")
    ] = False,
    deep: Annotated[bool, typer.Option("--deep", help="thousands of cases each")] = False,
    only: Annotated[list[str] | None, typer.Option(metavar="ID", help="this proposition; repeatable")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Check the propositions of the paper and of this project; exit 1 if an answer is not the expected one."""
    from verify import runner

    runner.main(paper, deep, only or [], as_json)


if __name__ == "__main__":
    end_with_one_line(app)
