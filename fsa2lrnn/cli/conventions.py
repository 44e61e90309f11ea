"""The conventions of all commands: `--quiet`, `--progress` and a line about long work."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from fsa2lrnn.cli import activity

_SHOW_THEMSELVES = {"demo", "learn", "run", "sweep", "train"}  # these print while they work

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print only results, warnings and errors")]
ShowProgress = Annotated[
    bool, typer.Option("--progress", help="show progress even if standard error is not a terminal")
]


def _show_help(context: typer.Context, is_set: bool) -> None:
    if is_set:
        print(context.get_help())
        raise typer.Exit


# Replaces the option that typer adds, whose text is capitalised unlike all others.
ShowHelp = Annotated[
    bool, typer.Option("--help", "-h", callback=_show_help, is_eager=True, help="show this message and exit")
]


def _with_choices(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return an option whose help breaks a list of choices between the choices, not within a word."""
    kind, *information = get_args(parameter.annotation) or (None,)
    choices = [
        str(choice) for part in (kind, *get_args(kind)) if get_origin(part) is Literal for choice in get_args(part)
    ]
    if not choices:
        return parameter
    option = copy.copy(information[0])
    option.metavar = " | ".join(choices)
    return parameter.replace(annotation=Annotated[kind, option])


def with_display(name: str, verb: Callable[..., None]) -> Callable[..., None]:
    """Return the function of a command with the options `--quiet`, `--progress` and `--help`."""

    @functools.wraps(verb)
    def call(*args: Any, quiet: bool = False, progress: bool = False, show_help: bool = False, **options: Any) -> None:
        del show_help  # its callback has run
        with activity.displayed(name, quiet, progress, beats=name not in _SHOW_THEMSELVES):
            verb(*args, **options)

    signature = inspect.signature(verb, eval_str=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter("quiet", keyword, default=False, annotation=Quiet),
        inspect.Parameter("progress", keyword, default=False, annotation=ShowProgress),
        inspect.Parameter("show_help", keyword, default=False, annotation=ShowHelp),
    ]
    parameters = [*map(_with_choices, signature.parameters.values()), *added]
    # Typer keeps the line breaks of a docstring, which are for another width.
    call.__doc__ = "\n\n".join(" ".join(part.split()) for part in (inspect.getdoc(verb) or "").split("\n\n"))
    call.__signature__ = signature.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}
    del call.__wrapped__  # typer would read the verb's own signature
    return call
