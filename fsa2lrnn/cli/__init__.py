"""The command line, with one verb per task. Exit codes: 0 success, 1 a negative answer, 2 bad input.

Each command is a file, which imports torch and the automata only when it runs, so that `--help` is fast.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin

import typer

from fsa2lrnn import __version__
from fsa2lrnn.cli import canary, console
from fsa2lrnn.cli.certify import certify
from fsa2lrnn.cli.compare import compare
from fsa2lrnn.cli.compile import compile_
from fsa2lrnn.cli.convert import convert
from fsa2lrnn.cli.demo import demo
from fsa2lrnn.cli.draw import draw
from fsa2lrnn.cli.explain import explain
from fsa2lrnn.cli.export import export
from fsa2lrnn.cli.extract import extract
from fsa2lrnn.cli.falsify import falsify
from fsa2lrnn.cli.gates import gates
from fsa2lrnn.cli.learn import learn
from fsa2lrnn.cli.options import BAD_INPUT, INTERRUPTED, NO
from fsa2lrnn.cli.repair import repair
from fsa2lrnn.cli.run import run
from fsa2lrnn.cli.sweep import sweep
from fsa2lrnn.cli.tasks import tasks
from fsa2lrnn.cli.train import train
from fsa2lrnn.cli.verify import verify
from fsa2lrnn.errors import Fsa2LrnnError, NotExpressible
from fsa2lrnn.files import endings

_COMMANDS = {
    "Automata and exact models": {
        "compile": compile_,
        "run": run,
        "explain": explain,
        "verify": verify,
        "extract": extract,
        "convert": convert,
        "tasks": tasks,
    },
    "Learned models": {
        "train": train,
        "sweep": sweep,
        "learn": learn,
        "falsify": falsify,
        "certify": certify,
        "repair": repair,
    },
    "Released models": {"export": export, "gates": gates},
    "Pictures": {"draw": draw, "compare": compare, "demo": demo},
}
# A command with commands of its own: its panel, its help, and these.
_GROUPS = {
    "canary": (
        "Released models", "Test whole inference stacks by models whose every token is known.",
        {"make": canary.make, "run": canary.run, "gguf": canary.gguf},
    )
}  # fmt: skip
# The exception that typer raises for a wrong call, whichever underlying library defines it.
_WrongCall: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

_NO_MEMORY = re.compile("can't allocate memory|out of memory")  # the messages of torch


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


def _with_display(name: str, verb: Callable[..., None]) -> Callable[..., None]:
    """Return the function of a command with the options `--quiet`, `--progress` and `--help`."""

    @functools.wraps(verb)
    def call(
        *args: object, quiet: bool = False, progress: bool = False, show_help: bool = False, **options: object
    ) -> None:
        del show_help  # its callback has run
        with console.displayed(name, quiet, progress, beats=name != "run"):
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


app = typer.Typer(
    name="fsa2lrnn",
    help="Compile finite automata into exact linear recurrent networks, and prove networks equal to automata.",
    epilog=f"SOURCE is regex:(ab)*, task:mod_arith(5), or a file: {endings()}",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _panel, _verbs in _COMMANDS.items():
    for _name, _verb in _verbs.items():
        app.command(_name, add_help_option=False, rich_help_panel=_panel)(_with_display(_name, _verb))
for _name, (_panel, _help, _verbs) in _GROUPS.items():
    _group = typer.Typer(help=_help, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
    for _verb_name, _verb in _verbs.items():
        _group.command(_verb_name, add_help_option=False)(_with_display(f"{_name} {_verb_name}", _verb))
    app.add_typer(_group, name=_name, rich_help_panel=_panel)


def _show_version(is_set: bool) -> None:
    if is_set:
        print(f"fsa2lrnn {__version__}")
        raise typer.Exit


@app.callback()
def _without_verb(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - the callback has already run
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(BAD_INPUT)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the console script and exit."""
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    end_with_one_line(app, arguments, "fsa2lrnn", as_json)


def end_with_one_line(
    app: typer.Typer, arguments: list[str] | None = None, name: str | None = None, as_json: bool = False
) -> NoReturn:
    """Run an app under this name and turn errors that input can cause into one line and an exit code.

    With `as_json`, a negative answer is also printed as an object on standard output.
    """
    console.tolerate_any_text()
    # Each kind of error that input can cause ends with one line and an exit code; all others are faults of the program.
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: console.error("warning", str(message))
            code = app(arguments, standalone_mode=False, prog_name=name)
    except NotExpressible as error:
        if as_json:
            console.emit_json({"answer": "no", "evidence": console.message(str(error))})
        console.error("no", str(error))
        sys.exit(NO)
    except (Fsa2LrnnError, UnicodeError) as error:
        console.error("error", str(error))
        sys.exit(BAD_INPUT)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not _NO_MEMORY.search(str(error)):
            raise
        console.error("error", "not enough memory: give smaller sizes")
        sys.exit(BAD_INPUT)
    except OSError as error:
        console.error("error", f"{error.strerror}: {error.filename!r}" if error.filename else str(error))
        sys.exit(BAD_INPUT)
    except _WrongCall as error:
        console.error("error", _with_help(error))
        sys.exit(BAD_INPUT)
    except typer.Abort:
        sys.exit(INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _with_help(error: Any) -> str:
    """Return the message of a wrong call, with the command whose help says what is right."""
    text, context = " ".join(error.format_message().split()), getattr(error, "ctx", None)
    if context is None:
        return text
    hint = ""
    if "No such option" in text and context.info_name == "run":
        hint = "write -- before a word that begins with -; "
    elif "No such option" in text and any(parameter.name == "changes" for parameter in context.command.params):
        hint = "settings are written --set NAME=VALUE; "
    return f"{text} ({hint}`{context.command_path} --help` tells what there is)"
