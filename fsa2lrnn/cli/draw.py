"""`fsa2lrnn draw`: an automaton as a picture, or with its networks as a page on which they run letter by letter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fsa2lrnn.cli import console, sources
from fsa2lrnn.cli.options import (
    LACKED,
    MODEL_SUFFIX,
    AlphabetOption,
    CompletionOption,
    Form,
    JsonOption,
    LayersOption,
    SecondsOption,
)
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.files import check_file, write_atomically

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.draw.explorer import SceneModel
    from fsa2lrnn.nn.model import LRNN

DrawFormat = Literal["html", "svg", "dot"]

_STATES = 5_000  # the most states to enumerate; the automaton of a larger model is extracted from its outputs
_WHAT = (
    f"a source (regex:…, task:…, a file), whose network is compiled, and models ({MODEL_SUFFIX}) of the same automaton"
)


def draw(
    what: Annotated[list[str], typer.Argument(metavar="SOURCE|MODEL…", help=_WHAT)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="the page (.html), or the automaton alone (.svg .dot)"),
    ] = None,
    format_: Annotated[
        DrawFormat | None,
        typer.Option("--format", help="format, by default by the ending of the output; svg and dot can be printed"),
    ] = None,
    models_only: Annotated[
        bool, typer.Option("--models-only", help="leave out the network that is compiled from the SOURCE")
    ] = False,
    form: Annotated[Form, typer.Option(help="form of the compiled network")] = "onehot",
    seconds: SecondsOption = 10.0,
    completion: CompletionOption = None,
    alphabet: AlphabetOption = None,
    layers: LayersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw an automaton, or a page on which it and its networks run letter by letter."""
    kind = _drawing_format(output, format_)
    if as_json and output is None:
        raise UnsupportedFormat("--json says what was written: name a file with -o, or leave --json out")
    models = [name for name in what if sources.is_model(name)]
    given = [name for name in what if name not in models]
    if len(given) > 1:
        raise UnsupportedFormat(
            f"{', '.join(given)}: give one automaton, with which all models are compared, and draw others apart"
        )
    if models_only and not models:
        raise UnsupportedFormat("--models-only leaves out the compiled network: name a model too")
    source = next(iter(given), None)
    sources.know_layers(layers)
    networks = sources.learned_models(models)
    if source is not None:
        machine = sources.read_machine(source, completion, alphabet)
        for network in networks.values():
            sources.check_letters(network, machine, source)
    else:
        machine = _machine_of(*next(iter(networks.items())))

    if kind != "html":
        _picture(machine, kind, output, as_json)
        return
    assert output is not None  # _drawing_format sees to it
    from fsa2lrnn.compile.lower import compile_machine
    from fsa2lrnn.draw.explorer import build, constructed, searched

    shown: dict[str, SceneModel] = {}
    for name, network in networks.items():
        console.say(f"{name}: searching for a counterexample")
        shown[name] = searched(network, machine, seconds, LACKED)
    if given and not models_only:
        compiled = compile_machine(machine, form)
        shown["constructed" if form == "onehot" else f"constructed, {form}"] = constructed(compiled, machine)
    page = build(source or next(iter(networks)), machine, shown, LACKED)
    write_atomically(output, page.encode())
    if as_json:
        found = {name: {"said": model.said, "failing": _written(model.failing)} for name, model in shown.items()}
        console.emit_json({"page": str(output), "bytes": len(page.encode()), "models": found})
        return
    console.facts(source or "models", [(name, model.said) for name, model in shown.items()])
    console.out.print(f"{console.markup(str(output))}: open it in a browser, it needs nothing beside it")


def _drawing_format(path: Path | None, requested: DrawFormat | None) -> DrawFormat:
    """Return the format to write: the requested one, or that of the path's ending.

    Raises `UnsupportedFormat` if the two differ or are missing, or if a page has no path; `OSError` for an
    unwritable path.
    """
    by_ending: dict[str, DrawFormat] = {".html": "html", ".svg": "svg", ".dot": "dot", ".gv": "dot"}
    if path is None:
        if requested in ("svg", "dot"):
            return requested
        raise UnsupportedFormat("give -o page.html for the page; --format svg and --format dot print without a file")
    chosen = requested or by_ending.get(path.suffix)
    if chosen is None:
        raise UnsupportedFormat(f"output {path}: write a file ending in {', '.join(by_ending)}, or name the --format")
    if by_ending.get(path.suffix, chosen) != chosen:
        raise UnsupportedFormat(f"output {path} and --format {chosen} are two formats: leave one of them out")
    check_file(path)
    return chosen


def _written(words: Sequence[Sequence[Hashable]]) -> list[list[object]]:
    from fsa2lrnn import symbols

    return [[symbols.to_json(letter) for letter in word] for word in words]


def _machine_of(name: str, model: LRNN) -> MooreMachine:
    """Return the automaton that a model computes: exactly if it has few states, else that of its outputs on words."""
    from fsa2lrnn.errors import BudgetExceeded, NotExact
    from fsa2lrnn.verification.extraction import extract, extract_learned

    try:
        try:
            return extract(model, _STATES)
        except (BudgetExceeded, NotExact):
            return extract_learned(model).machine
    except Fsa2LrnnError as error:
        raise type(error)(f"model {name}: {error}; name its automaton, `fsa2lrnn draw SOURCE {name}…`") from error


def _picture(machine: MooreMachine, kind: DrawFormat, output: Path | None, as_json: bool) -> None:
    """Write the drawing of an automaton as SVG or DOT, to standard output if there is no file."""

    text = machine.to_dot() if kind == "dot" else machine.to_svg()
    if output is None:
        print(text, end="")
        return
    write_atomically(output, text.encode())
    if as_json:
        console.emit_json({"drawing": str(output), "states": machine.n_states})
    else:
        console.out.print(f"{machine.n_states:,} states drawn in {console.markup(str(output))}")
