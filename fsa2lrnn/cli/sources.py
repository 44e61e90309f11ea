"""The inputs of the verbs: automata, models, user-defined layers, words and alphabets, by the texts that users type."""

from __future__ import annotations

import codecs
import io
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, cast

from fsa2lrnn.cli.options import MODEL_SUFFIX, Completion
from fsa2lrnn.errors import CheckpointError, InvalidMachine, InvalidWord, MissingFile, UnsupportedFormat, shortened
from fsa2lrnn.files import exists, is_folder

_PICKLES = (".pt", ".pth", ".bin")

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.nn.model import LRNN
    from fsa2lrnn.nn.wrapped import Wrapped
    from fsa2lrnn.symbols import Alphabet


def read_machine(
    source: str, completion: Completion | None = None, alphabet: str | None = None, **options: object
) -> MooreMachine:
    """Return the automaton of a source, over the letters of `alphabet` (`typed_letters`) if it is not None.

    If the source lacks a letter, its transitions are missing. `completion` defines missing transitions; by default,
    acceptors reject there. `options` are the reader's. Raises `UnsupportedFormat` for a model
    file, and `UnsupportedFormat`, `InvalidMachine` and `BudgetExceeded` as `MooreMachine.from_source` does.
    """
    from fsa2lrnn.automata.machine import MooreMachine

    _check_no_pickle(source)
    letters = None if alphabet is None else typed_letters(alphabet)
    return MooreMachine.from_source(source, completion=completion, alphabet=letters, **options)


def model_of(source: str, completion: Completion | None = None, alphabet: str | None = None) -> LRNN:
    """Return the model of a file or exported folder, or compile a source; raise `CheckpointError` for other ones."""
    if is_model(source):
        return learned_model(source)
    if is_folder(source):
        raise CheckpointError(
            f"{shortened(source)} is a folder that `fsa2lrnn export` did not write: give a model in it, a file ending "
            f"in {MODEL_SUFFIX}, or a source"
        )
    from fsa2lrnn.compile.lower import compile_machine

    return compile_machine(read_machine(source, completion, alphabet))


def learned_model(path: str) -> LRNN:
    """Return the model in a file or in a folder that `export` wrote; raise `CheckpointError` for others."""
    if (folder := exported_folder(path)) is not None:
        return cast("LRNN", _as_network(folder))  # what takes a model takes it by the same methods
    _check_no_pickle(path)
    if not path.endswith(MODEL_SUFFIX):
        raise CheckpointError(
            f"{shortened(path)} is not a model: give a file ending in {MODEL_SUFFIX}, which `fsa2lrnn train` and "
            "`fsa2lrnn compile` write"
        )
    from fsa2lrnn.nn.checkpoint import load

    return load(path)


def learned_models(paths: Sequence[str]) -> dict[str, LRNN]:
    """Load models, named by the unambiguous ends of their paths; raise `UnsupportedFormat` if a path occurs twice."""
    if len(set(paths)) < len(paths):
        raise UnsupportedFormat(f"models {', '.join(paths)}: one is given twice")
    names = ["/".join(Path(path).with_suffix("").parts[-2:]) for path in paths]
    if len(set(names)) < len(names):
        names = list(paths)
    return {name: learned_model(path) for name, path in zip(names, paths, strict=True)}


def is_model(name: str) -> bool:
    """Return whether an argument names a model: a file by its ending, or a folder that `export` wrote."""
    return name.endswith((MODEL_SUFFIX, *_PICKLES)) or exported_folder(name) is not None


def run_folder(path: str) -> Path | None:
    """Return the path of a folder that holds no exported model, None for other paths."""
    return Path(path) if is_folder(path) and exported_folder(path) is None else None


def _as_network(folder: Path) -> Wrapped:
    """Load the model of a folder as a network that `falsify` and `extract_learned` accept, with one-hot logits."""
    from fsa2lrnn.export.folder import SteppedModule, load
    from fsa2lrnn.nn.wrapped import wrap

    model = load(folder)
    return wrap(SteppedModule(model), model.machine.alphabet, model.outputs)


def refuse_for_folder(folder: Path, options: Mapping[str, object]) -> None:
    """Raise `UnsupportedFormat` if an option is set that has no effect on the model of a folder that `export` wrote."""
    if given := [name for name, value in options.items() if value]:
        raise UnsupportedFormat(
            f"{', '.join(given)}: {folder} runs on its own code and knows its letters; leave it out"
        )


def _check_no_pickle(path: str) -> None:
    """Raise `UnsupportedFormat`, naming the way by Python, for a pickle file, or `MissingFile` where it is none."""
    if path.endswith(_PICKLES):
        if not exists(path):
            raise MissingFile(f"no such file: {shortened(path)}")
        raise UnsupportedFormat(
            f"{shortened(path)} is a pickle file: it can run code when it is loaded, so it is not read. In Python, for "
            f"weights: `model.load_state_dict(torch.load({path!r}, weights_only=True))`; for a whole module, if you "
            f"trust its author and can import its class: `model = torch.load({path!r}, weights_only=False)`. Then "
            "`fsa2lrnn.save(model, 'm.safetensors')` for an LRNN, or `fsa2lrnn.wrap(model, alphabet, outputs)` for "
            "another module"
        )


def exported_folder(path: str) -> Path | None:
    """Return the path of a folder that `fsa2lrnn export` wrote, None for other paths."""
    return Path(path) if is_folder(path) and (Path(path) / "fsa2lrnn.json").is_file() else None


def model_and_machine(
    model: str,
    source: str,
    completion: Completion | None,
    alphabet: str | None,
    layers: list[str] | None,
    may_compile: bool = False,
) -> tuple[LRNN, MooreMachine]:
    """Return a model and its target automaton over the same letters; if `may_compile`, the model may be a source."""
    if is_model(source) and not is_model(model):
        raise UnsupportedFormat(f"{shortened(source)} is a model, and stands first: give MODEL, then SOURCE")
    machine = read_machine(source, completion, alphabet)
    know_layers(layers)
    network = model_of(model, completion, alphabet) if may_compile else learned_model(model)
    check_letters(network, machine, source)
    return network, machine


def check_letters(model: LRNN, machine: MooreMachine, source: str) -> None:
    """Raise `InvalidMachine`, naming a remedy, unless model and machine have the same letters.

    It also refuses outputs that have the same texts in both but different types, such as "true" and True.
    """
    from fsa2lrnn import symbols

    try:
        symbols.align(model.alphabet, machine.alphabet)
    except InvalidMachine as error:
        raise InvalidMachine(f"{error}{_remedy(model.alphabet, machine, source)}") from None
    texts = {str(output).casefold(): output for output in model.outputs}
    if any(str(output).casefold() not in texts or output in model.outputs for output in machine.outputs):
        return
    ours, other = texts[str(machine.outputs[0]).casefold()], machine.outputs[0]
    raise InvalidMachine(
        f"no output of the model is one of {shortened(source)}, though their texts are the same: {ours!r} is of type "
        f"{type(ours).__name__}, {other!r} of {type(other).__name__}. Labels of a .csv file are booleans if all are "
        "true or false, else texts; `fsa2lrnn convert` writes a .json file in which outputs can be changed"
    )


def _remedy(letters: Alphabet, machine: MooreMachine, source: str) -> str:
    """Return the options that give both the same letters; "" if letters are not the cause, or cannot be typed."""
    both = tuple(dict.fromkeys((*letters, *machine.alphabet)))
    texts = [letter for letter in both if isinstance(letter, str) and letter.split() == [letter]]
    if set(map(str, letters)) == set(map(str, machine.alphabet)) or len(texts) < len(both):
        return ""
    typed = ("" if len(max(texts, key=len)) == 1 else " ").join(texts)
    option, remedies = f"--alphabet '{typed}'", list[str]()
    if len(both) > len(machine.alphabet):
        new = "" if machine.is_acceptor else ", where --completion sink or ignore says what new ones do"
        remedies.append(f"{option} reads {shortened(source)} over the letters of both{new}")
    if len(both) > len(letters):
        remedies.append(f"a model knows more letters where it is compiled with {option}")
    return "".join(f"; {remedy}" for remedy in remedies)


def repeated(completion: Completion | None, alphabet: str | None, layers: list[str] | None = None) -> str:
    """Return the options that make a suggested command read the same machine and model, each after a space.

    >>> repeated("sink", "up down", ["mine:Layer"])
    " --completion sink --alphabet 'up down' --import mine:Layer"
    """
    values = [("--completion", completion), ("--alphabet", alphabet), *(("--import", name) for name in layers or ())]
    return "".join(f" {option} {quote(value)}" for option, value in values if value is not None)


def know_layers(names: list[str] | None) -> None:
    """Import the user-defined layers that options name, which a model file alone cannot do."""
    if names:
        from fsa2lrnn.nn.layers import layer_named

        for name in names:
            layer_named(name)


_PIECE = 1 << 20  # bytes per read, at most
_REPORT_SECONDS = 2.0


def checked(text: str) -> str:
    """Return a word from the command line; raise `InvalidWord` naming a byte that is not UTF-8.

    Python passes such a byte on as a surrogate.
    """
    try:
        text.encode("utf-8", "surrogateescape").decode()
    except UnicodeDecodeError as fault:
        raise InvalidWord(
            f"the word is not UTF-8 (byte 0x{fault.object[fault.start]:02x} at offset {fault.start}): type it in that "
            "encoding"
        ) from None
    return text


def read_pieces(stream: io.BufferedIOBase, name: str = "standard input") -> Iterator[str]:
    """Yield the text of a UTF-8 stream in pieces, as soon as it arrives, each line end at the end of a piece.

    The progress is printed to standard error if that is a terminal.

    Raises `UnsupportedFormat` naming `name`, the invalid byte and its offset.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True)
    read, reported = 0, time.monotonic()
    while True:
        data = stream.read1(_PIECE)
        incomplete, _ = decoder.getstate()  # the first bytes of a character that the last read cut
        try:
            piece = decoder.decode(data, final=not data)
        except UnicodeDecodeError as fault:
            offset = read - len(incomplete) + fault.start
            raise UnsupportedFormat(
                f"{name} is not UTF-8 (byte 0x{fault.object[fault.start]:02x} at offset {offset:,}): give it in that "
                "encoding"
            ) from None
        read += len(data)
        yield from re.findall(r"[^\n]*\n|[^\n]+", piece)
        if not data:
            return
        if sys.stderr.isatty() and time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            print(f"\r{read:,} bytes read", end="", file=sys.stderr, flush=True)


def typed_letters(text: str) -> tuple[str, ...]:
    """Return an alphabet typed as characters, or as words separated by spaces.

    Raises `UnsupportedFormat` if it is empty.

    >>> typed_letters("ab"), typed_letters("up down")
    (('a', 'b'), ('up', 'down'))
    """
    typed = tuple(text.split()) if any(c.isspace() for c in text.strip()) else tuple(text.strip())
    if not typed:
        raise UnsupportedFormat(f"--alphabet {text!r}: give at least one letter, ab or 'up down'")
    return typed
