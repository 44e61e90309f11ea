"""The conventions of all commands: `--quiet`, `--progress`, a line about long work, and earlier names of options."""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperGroup

from fsa2lrnn.cli import activity

# An earlier option, today's name ("" where the value is an argument without a flag), and the commands that had it.
# Version 0.1 accepts them with a warning.
_RENAMED = (
    ("--out", "--output", "demo learn sweep train"),
    ("--seconds", "--max-seconds", "certify compare draw falsify learn repair report verify"),
    ("--letters", "--max-tokens", "compare report sweep train"),
    ("--budget", "--max-states", "verify"),
    ("--words", "--max-states", "falsify"),
    ("--length", "--max-length", "falsify"),
    ("--layer", "--import", "certify compare draw extract falsify repair report run sweep verify"),
    ("--to", "--layer", "export"),
    ("--noise", "--label-noise", "learn"),
    ("--noise", "--weight-noise", "train"),
    ("--teacher", "--target", "learn"),
    ("--against", "", "compare report"),
    ("--against", "--models-only", "draw"),
)
_EARLIER_VALUES = {
    ("--preset", "released"): "paper",
    ("--normalisation", "released"): "paper",
    ("--layer", "hard_lanes"): "hard_channels",
}
RENAMED = {command: {old: new for old, new, used in _RENAMED if command in used.split()}
           for _, _, commands in _RENAMED for command in commands.split()}  # fmt: skip
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


class Group(TyperGroup):
    """The group of all commands, which accepts earlier names of options with a warning."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command and its arguments, with today's names of options."""
        return super().resolve_command(ctx, [*args[:1], *renamed(args[0], args[1:])] if args else args)


def renamed(command: str, arguments: list[str]) -> list[str]:
    """Return the arguments of a command with today's names of options; warn about each earlier one.

    >>> renamed("run", ["m.safetensors", "--", "--layer"])
    ['m.safetensors', '--', '--layer']
    """
    names, result = RENAMED.get(command, {}), list[str]()
    for position, argument in enumerate(arguments):
        before = arguments[position - 1] if position else ""
        if argument == "--":
            return result + arguments[position:]
        name, sign, value = argument.partition("=")
        for option, earlier in _EARLIER_VALUES.keys() & {(name, value), (before, argument)}:
            new = _EARLIER_VALUES[option, earlier]
            warnings.warn(f"{earlier} is an earlier value of {option}: write {option} {new}", stacklevel=2)
            argument = argument.removesuffix(earlier) + new
        if name not in names:
            result.append(argument)
            continue
        new = names[name]
        instead = f"write {new}" if new else "give SOURCE after the models"
        warnings.warn(f"{name} is an earlier name of `fsa2lrnn {command}`: {instead}", stacklevel=2)
        result += ([new] if new else []) + ([value] if sign else [])
    return result


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
