"""Read the arguments MODEL… SOURCE: several trained models, then the automaton that they should compute."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsa2lrnn.cli.options import MODEL_SUFFIX, SOURCE
from fsa2lrnn.cli.sources import check_letters, is_model, know_layers, learned_model, read_machine
from fsa2lrnn.errors import UnsupportedFormat

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.lrnn.model import LRNN

ModelsAndSource = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL… SOURCE",
        help=f"trained models ({MODEL_SUFFIX}), then what they should compute: {SOURCE}",
    ),
]


def models_then_source(arguments: list[str]) -> tuple[list[str], str]:
    """Split the arguments MODEL… SOURCE into models and source; raise `UnsupportedFormat` if one is missing."""
    *models, source = arguments
    if not models or is_model(source):
        raise UnsupportedFormat(f"{' '.join(arguments)}: give models, and then the SOURCE that they should compute")
    return models, source


def learned_models(paths: Sequence[str]) -> dict[str, LRNN]:
    """Load models, named by the unambiguous ends of their paths; raise `UnsupportedFormat` if a path occurs twice."""
    if len(set(paths)) < len(paths):
        raise UnsupportedFormat(f"models {', '.join(paths)}: one is given twice")
    names = ["/".join(Path(path).with_suffix("").parts[-2:]) for path in paths]
    if len(set(names)) < len(names):
        names = list(paths)
    return {name: learned_model(path) for name, path in zip(names, paths, strict=True)}


def models_and_machine(
    paths: Sequence[str], source: str, layers: list[str] | None
) -> tuple[dict[str, LRNN], MooreMachine]:
    """Load models from files by name, as `learned_models` does, and their common target automaton."""
    machine = read_machine(source)
    know_layers(layers)
    networks = learned_models(paths)
    for network in networks.values():
        check_letters(network, machine, source)
    return networks, machine
