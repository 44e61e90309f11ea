"""What the verbs are given: automata, models and number types by name, and text by pieces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fsa2lrnn.cli.options import MODEL_SUFFIX, Completion, Dtype
from fsa2lrnn.errors import CheckpointError, InvalidMachine, UnsupportedFormat, shortened

if TYPE_CHECKING:
    import torch

    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.lrnn.model import LRNN
    from fsa2lrnn.symbols import Alphabet


def read_machine(source: str, completion: Completion | None = None, alphabet: str | None = None) -> MooreMachine:
    """The automaton that a source names, over the letters of `alphabet` (`words.letters`) where they are given.

    Letters that the source does not know are missing transitions: `completion` says what they do, and by default
    acceptors reject.
    """
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.cli import words

    if source.endswith(MODEL_SUFFIX):
        raise UnsupportedFormat(
            f"{shortened(source)} is a model, where an automaton is asked for: `fsa2lrnn extract` reads the automaton "
            "out of a model"
        )
    letters = None if alphabet is None else words.letters(alphabet)
    return MooreMachine.from_source(source, completion=completion, alphabet=letters)


def model_of(
    source: str, dtype: Dtype = "float32", completion: Completion | None = None, alphabet: str | None = None
) -> LRNN:
    """The model in a file, or one compiled from the automaton that a source names."""
    if source.endswith(MODEL_SUFFIX):
        return learned_model(source)
    if _is_folder(source):
        raise CheckpointError(
            f"{shortened(source)} is a folder that `fsa2lrnn export` did not write: give a model in it, a file ending "
            f"in {MODEL_SUFFIX}, or a source"
        )
    from fsa2lrnn.lower import compile_machine

    return compile_machine(read_machine(source, completion, alphabet), dtype=torch_dtype(dtype))


def learned_model(path: str) -> LRNN:
    """The model in a file."""
    if not path.endswith(MODEL_SUFFIX):
        raise CheckpointError(
            f"{shortened(path)} is no model: give a file ending in {MODEL_SUFFIX}, which `fsa2lrnn train` and "
            "`fsa2lrnn compile` write"
        )
    from fsa2lrnn.lrnn.checkpoint import load

    return load(path)


def exported_folder(path: str) -> Path | None:
    """The folder that `fsa2lrnn export` wrote, where a path is that of one."""
    return Path(path) if _is_folder(path) and (Path(path) / "fsa2lrnn.json").is_file() else None


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):  # a regular expression, or another text that is no path
        return False


def learned_models(paths: Sequence[str]) -> dict[str, LRNN]:
    """Models in files, by the ends of their paths where these tell them apart."""
    if len(set(paths)) < len(paths):
        raise UnsupportedFormat(f"models {', '.join(paths)}: one is given twice")
    names = ["/".join(Path(path).with_suffix("").parts[-2:]) for path in paths]
    if len(set(names)) < len(names):
        names = list(paths)
    return {name: learned_model(path) for name, path in zip(names, paths, strict=True)}


def model_and_machine(
    model: str,
    source: str,
    completion: Completion | None,
    alphabet: str | None,
    layers: list[str] | None,
    dtype: Dtype | None = None,
) -> tuple[LRNN, MooreMachine]:
    """A model and the automaton that it is judged by, over the same letters; without `dtype` the model is a file's."""
    machine = read_machine(source, completion, alphabet)
    know_layers(layers)
    network = learned_model(model) if dtype is None else model_of(model, dtype, completion, alphabet)
    check_letters(network, machine, source)
    return network, machine


def models_and_machine(
    paths: Sequence[str], source: str, layers: list[str] | None
) -> tuple[dict[str, LRNN], MooreMachine]:
    """Models in files by name, and the automaton that all are judged by."""
    machine = read_machine(source)
    know_layers(layers)
    networks = learned_models(paths)
    for network in networks.values():
        check_letters(network, machine, source)
    return networks, machine


def check_letters(model: LRNN, machine: MooreMachine, source: str) -> None:
    """Raises `InvalidMachine` unless model and machine have the same letters, with the options that give them these."""
    from fsa2lrnn import symbols

    try:
        symbols.align(model.alphabet, machine.alphabet)
    except InvalidMachine as error:
        raise InvalidMachine(f"{error}{_remedy(model.alphabet, machine, source)}") from None


def _remedy(letters: Alphabet, machine: MooreMachine, source: str) -> str:
    """How to give both the letters of either, where that is what they lack."""
    from fsa2lrnn.cli import words

    if set(map(str, letters)) == set(map(str, machine.alphabet)):
        return ""
    both = tuple(dict.fromkeys((*letters, *machine.alphabet)))
    typed, remedies = words.shown_letters(both), list[str]()
    if len(both) > len(machine.alphabet):
        new = "" if machine.is_acceptor else ", where --completion sink or ignore says what new ones do"
        remedies.append(f"--alphabet '{typed}' reads {shortened(source)} over the letters of both{new}")
    if len(both) > len(letters):
        remedies.append(f"a model knows more letters where it is compiled with --alphabet '{typed}'")
    return "".join(f"; {remedy}" for remedy in remedies)


def torch_dtype(name: Dtype) -> torch.dtype:
    """torch's type of that name."""
    import torch

    return getattr(torch, name)


def know_layers(names: list[str] | None) -> None:
    """Import the layers of a user's own that models may name: no file is a reason to import a module."""
    if names:
        from fsa2lrnn.lrnn.layers import layer_named

        for name in names:
            layer_named(name)
