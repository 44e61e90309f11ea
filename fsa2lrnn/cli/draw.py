"""`fsa2lrnn draw`: an automaton as a picture, or with its networks as a page on which they run letter by letter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsa2lrnn.cli import console, options, sources
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.files import write_atomically

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.draw.explorer import SceneModel
    from fsa2lrnn.nn.model import LRNN

_STATES = 5_000  # the most states to enumerate; the automaton of a larger model is extracted from its outputs
_FIGURES = (".svg", ".pdf", ".tex")
_OF_MACHINES = (*_FIGURES, ".dot", ".gv")
_WHAT = (
    "a source (regex:…, task:…, a file), whose network is compiled, and models "
    f"({options.MODEL_SUFFIX}) of the same automaton"
)


def draw(
    what: Annotated[list[str], typer.Argument(metavar="SOURCE|MODEL…", help=_WHAT)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="the page (.html), or the automaton alone (.svg .pdf .tex .dot .gv)")
    ],
    matrices: Annotated[
        bool, typer.Option("--matrices", help="beside the automaton the matrix of each letter, up to 12 states")
    ] = False,
    seconds: options.SecondsOption = 10.0,
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    layers: options.LayersOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Draw an automaton, or a page on which it and its networks run letter by letter."""
    options.check_output(output, "a drawing", ".html", *_OF_MACHINES)
    if matrices and output.suffix not in _FIGURES:
        raise UnsupportedFormat(f"output {output}: --matrices is written to a file ending in {' or '.join(_FIGURES)}")
    models = [name for name in what if sources.is_model(name)]
    given = [name for name in what if name not in models]
    if len(given) > 1:
        raise UnsupportedFormat(
            f"{', '.join(given)}: give one automaton, with which all models are compared, and draw others apart"
        )
    source = next(iter(given), None)
    sources.know_layers(layers)
    networks = sources.learned_models(models)
    if source is not None:
        machine = sources.read_machine(source, completion, alphabet)
        for network in networks.values():
            sources.check_letters(network, machine, source)
    else:
        machine = _machine_of(*next(iter(networks.items())))

    if output.suffix != ".html":
        write_atomically(output, _picture(machine, output.suffix, matrices))
        if as_json:
            console.emit_json({"drawing": str(output), "states": machine.n_states})
        else:
            console.out.print(f"{machine.n_states:,} states drawn in {console.markup(str(output))}")
        return
    from fsa2lrnn import symbols
    from fsa2lrnn.compile.lower import compile_machine
    from fsa2lrnn.draw.explorer import build, compiled, searched

    shown: dict[str, SceneModel] = {}
    for name, network in networks.items():
        console.say(f"{name}: searching for a counterexample")
        shown[name] = searched(network, machine, seconds, options.LACKED)
    if source is not None:
        shown["compiled"] = compiled(compile_machine(machine), machine)
    page = build(source or next(iter(networks)), machine, shown, options.LACKED)
    write_atomically(output, page.encode())
    if as_json:
        found = {
            name: {
                "said": model.said,
                "failing": [[symbols.to_json(letter) for letter in word] for word in model.failing],
            }
            for name, model in shown.items()
        }
        console.emit_json({"page": str(output), "bytes": len(page.encode()), "models": found})
        return
    console.facts(source or "models", [(name, model.said) for name, model in shown.items()])
    console.out.print(f"{console.markup(str(output))}: open it in a browser, it needs nothing beside it")


def _picture(machine: MooreMachine, ending: str, matrices: bool) -> bytes:
    """Return the file of an automaton alone."""
    if ending in (".dot", ".gv"):
        return machine.to_dot().encode()
    if ending == ".svg" and not matrices:
        return machine.to_svg().encode()
    from fsa2lrnn.draw.figure import figure_of

    figure = figure_of(machine, matrices)
    return figure.to_pdf() if ending == ".pdf" else (figure.to_svg() if ending == ".svg" else figure.to_tikz()).encode()


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
