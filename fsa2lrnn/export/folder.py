"""Save and load folders of whole external models, with `fsa2lrnn.json`, which records the automaton of the model.

A folder may come from an untrusted source. `load` therefore writes the recorded automaton again with the installed code
and compares the folder with the result: the set of files, every field of every JSON file, the names, shapes and dtypes
of the weights, and the values that the package's own loaders read from the configuration and the tokenizer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from fsa2lrnn.automata.formats.json_file import from_json, to_value
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, CheckpointError, NotExpressible, UnsupportedFormat, shortened
from fsa2lrnn.export import target
from fsa2lrnn.export.packages import Code, State
from fsa2lrnn.export.plan import StagePlan
from fsa2lrnn.files import UNDER_WAY, write_atomically
from fsa2lrnn.reading import parse_json, read_text, shown

FORMAT, VERSION = "fsa2lrnn-released-model", 1
FILE = "fsa2lrnn.json"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}

# Fields that may differ from what `export` writes, since no output depends on them. "how" and "written_with" are notes
# for display. transformers reads "transformers_version" for tokenizers of Mistral models alone, and these are none.
_NOTES = {
    FILE: {"how", "written_with"},
    "config.json": {"transformers_version"},
    "generation_config.json": {"transformers_version"},
}
# Files that none of the packages reads: those of repositories.
_UNREAD = ("README.md", "LICENSE", ".gitattributes", ".gitignore", ".git", ".cache")
_SHOWN = 5  # the most faults that a message names
MOST_OTHER_STATES = 12  # of a recorded machine that is not the expected one: planning it takes a second or two


@dataclass(frozen=True, eq=False)
class ExportedModel:
    """A whole external model, with the automaton from which it was written.

    Args:
        model: the model of the package, in evaluation mode.
        layer: the name of the layer in `fsa2lrnn.export.LAYERS`.
        machine: the minimal machine; the tokens of the model are its letters, followed by `outputs`.
        outputs: the distinct outputs.
        code: the interface that runs the model.
        digest: SHA-256 of the names and contents of the files that a package reads, at the time of loading.
        changed: the names of the weights that differ from those that `export` writes for the machine.
    """

    model: nn.Module
    layer: str
    machine: MooreMachine
    outputs: tuple[Hashable, ...]
    code: Code
    digest: str
    changed: tuple[str, ...] = ()

    @property
    def dtype(self) -> str:
        """The dtype of the weights, "float32" or "bfloat16"."""
        return self.code.dtype(self.model)


def save(model: nn.Module, layer: str, plan: StagePlan, folder: Path) -> None:
    """Write a model and `fsa2lrnn.json` into a folder; raise `UnsupportedFormat` for letters without distinct texts."""
    code = target(layer).code
    code.save(model, plan.machine.alphabet, plan.outputs, folder)
    value = {
        "format": FORMAT,
        "version": VERSION,
        "layer": layer,
        "how": plan.how,
        "written_with": code.versions(),
        "machine": {name: part for name, part in to_value(plan.machine).items() if name != "labels"},
    }
    write_atomically(folder / FILE, (json.dumps(value, indent=1) + "\n").encode())


def described(folder: Path) -> tuple[MooreMachine, str]:
    """Return the machine and the layer that a folder of `save` records; raise `CheckpointError` for another folder."""
    path = folder / FILE
    try:
        value = parse_json(read_text(path), str(path))
        form = value["format"], value["version"]
        if form != (FORMAT, VERSION):
            raise CheckpointError(f"{path}: {form[0]!r}, version {form[1]!r}, where {FORMAT!r}, {VERSION}, is read")
        return from_json(json.dumps(value["machine"])), str(value["layer"])
    except (OSError, KeyError, TypeError) as fault:
        raise CheckpointError(
            f"{folder} is not a folder that `fsa2lrnn export` wrote ({fault!r}): export it again"
        ) from None


def load(folder: Path, expected: MooreMachine | None = None) -> ExportedModel:
    """Load the model of a folder as any user of its package would, after comparing the folder with a new export.

    Args:
        folder: a folder that `save` wrote, possibly from an untrusted source.
        expected: the machine with which the model will be compared. Writing a machine again can take minutes, so the
            recorded machine must be equivalent to this one, or have at most `MOST_OTHER_STATES` states.

    Raises:
        CheckpointError: if anything but the values of the weights differs from what `export` writes today, or the
            recorded machine is too large.
    """
    machine, layer = described(folder)
    if expected is not None:
        _check_recorded(folder, machine, expected)
    into = target(layer)
    code: Code = into.code
    weights = code.weights(folder)
    dtypes = {part.dtype for part in weights.values()}
    if len(dtypes) != 1 or not dtypes <= set(DTYPES.values()):
        names = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
        raise CheckpointError(
            f"{folder}: weights in {names}; float32 and bfloat16, one of them for all, are what gates were chosen for"
        )
    # Write the recorded machine again, and compare files, fields, weights and settings before the package loads them.
    with TemporaryDirectory() as place:
        reference = Path(place)
        try:
            plan = into.plan(machine)
            save(into.build(plan, *dtypes), layer, plan, reference)
        except (BudgetExceeded, NotExpressible, UnsupportedFormat) as fault:
            raise CheckpointError(f"{folder / FILE}: `export` writes no {layer} for that machine ({fault})") from None
        check_files(folder, [path.name for path in reference.iterdir()])
        _check_fields(folder, reference)
        changed = _changed(folder, weights, code.weights(reference))
        settings, written = code.settings(folder), code.settings(reference)
    _refuse(
        folder,
        (
            f"{name} becomes {settings.get(name)}, where `export` leads to {written.get(name)}"
            for name in sorted({*settings, *written})
            if settings.get(name) != written.get(name)
        ),
    )
    return ExportedModel(code.load(folder), layer, machine, plan.outputs, code, _digest(folder), changed)


def _check_recorded(folder: Path, machine: MooreMachine, expected: MooreMachine) -> None:
    """Raise `CheckpointError` for a machine of more than `MOST_OTHER_STATES` states unless it is the expected one."""
    if machine.n_states <= MOST_OTHER_STATES:
        return
    is_same = set(machine.alphabet) == set(expected.alphabet) and equivalent(machine, expected) is None
    if not is_same or machine.n_states > expected.minimise().n_states:
        raise CheckpointError(
            f"{folder / FILE} records a machine of {machine.n_states:,} states, which is not the minimal form of the "
            f"machine to compare with: other machines are read up to {MOST_OTHER_STATES} states; compare with the "
            "recorded one, or export again"
        )


def check_files(folder: Path, names: Iterable[str]) -> None:
    """Raise `CheckpointError` if a folder contains files other than `names` that a package may read instead."""
    _refuse(
        folder,
        (
            f"{shown(name)} is not a file that `export` writes, and a package may read it"
            for name in sorted(path.name for path in folder.iterdir())
            if name not in {*names, *_UNREAD} and not name.endswith(UNDER_WAY)
        ),
        "move it elsewhere",
    )


def _check_fields(folder: Path, reference: Path) -> None:
    """Raise `CheckpointError` if a JSON file has a field that `export` does not write, or another value.

    A field may be missing, because versions of a package differ in which fields they write; the default that its loader
    uses instead is compared afterwards, by `Code.settings`.
    """
    for path in sorted(reference.glob("*.json")):
        file = folder / path.name
        try:
            fields, expected = (parse_json(read_text(place), str(place)) for place in (file, path))
        except (OSError, UnsupportedFormat) as fault:
            raise CheckpointError(f"{file} cannot be read ({fault}): export it again") from None
        notes = _NOTES.get(path.name, set())
        fields, expected = (
            {name: part for name, part in value.items() if name not in notes} if isinstance(value, dict) else value
            for value in (fields, expected)
        )
        _refuse(folder, _differences(fields, expected, path.name))


def _differences(value: Any, expected: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(expected, dict):
        for name, part in value.items():
            if name in expected:
                yield from _differences(part, expected[name], f"{where}: {name}")
            else:
                yield f"{where}: {shown(name)[1:-1]} is a field that `export` does not write"
    elif json.dumps(value) != json.dumps(expected):  # 1, 1.0 and true differ
        yield f"{where} is {shown(value)}, where `export` writes {shown(expected)}"


def _changed(folder: Path, weights: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> tuple[str, ...]:
    """Return the names of the weights whose bits differ from those that `export` writes.

    Refuses the folder if names, shapes or dtypes differ.
    """
    kinds, right = ({name: (part.shape, part.dtype) for name, part in parts.items()} for parts in (weights, expected))
    _refuse(
        folder,
        (
            f"the weight {shown(name)[1:-1]} is {_kind(kinds.get(name))}; `export` has it {_kind(right.get(name))}"
            for name in sorted({*kinds, *right})
            if kinds.get(name) != right.get(name)
        ),
    )
    return tuple(name for name, part in expected.items() if not torch.equal(_bits(part), _bits(weights[name])))


def _kind(of: tuple[torch.Size, torch.dtype] | None) -> str:
    return "missing" if of is None else f"of shape {shown(tuple(of[0]))} in {str(of[1]).removeprefix('torch.')}"


def _bits(part: torch.Tensor) -> torch.Tensor:
    return part.contiguous().reshape(-1).view(torch.uint8)


def _refuse(folder: Path, faults: Iterable[str], remedy: str = "export it again") -> None:
    """Raise `CheckpointError` with the first faults and the remedy, if there are any faults."""
    listed = list(faults)
    if listed:
        more = f"; and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
        raise CheckpointError(f"{folder}: {'; '.join(map(shortened, listed[:_SHOWN]))}{more}: {remedy}")


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file() and path.name not in _UNREAD):
        with path.open("rb") as file:
            digest.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


@torch.no_grad()
def run(exported: ExportedModel, tokens: Any, chunk: int = 2_048, cache: Any = None) -> tuple[Any, Any]:
    """Return the output token after each letter, int64 (T,), and the cache after the last letter.

    Args:
        exported: the model.
        tokens: the letters, int64 tensor (T,).
        chunk: the number of letters per call of the model; 1 for decoding.
        cache: the cache of an earlier call from which to continue, None at the start of a word.
    """
    if not len(tokens):
        return tokens, cache
    found = list[torch.Tensor]()
    for piece in tokens.split(chunk):
        answer, cache = exported.code.read(exported.model, piece, cache)
        found.append(answer)
    return torch.cat(found), cache


class SteppedModule(torch.nn.Module):
    """A module that maps letters, int64 (B, T), to the one-hot outputs of an external model, float32 (B, T, |Γ|).

    If the model outputs a letter or a padding token, the result is NaN. Words of a batch are read one after the other,
    by the model's own calls. A state is the state of the model's `Code`, after a flag that is 0 before a word and 1
    after a letter.
    """

    def __init__(self, exported: ExportedModel) -> None:
        super().__init__()
        self._exported = exported
        code, model = exported.code, exported.model
        code.check(model)
        _, cache = code.read(model, torch.tensor([0]), None)
        self._like = code.state(model, cache)

    @torch.no_grad()
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the outputs of whole words: int64 (B, T) -> float32 (B, T, |Γ|)."""
        return self._logits(torch.stack([run(self._exported, word)[0] for word in tokens]) if len(tokens) else tokens)

    def initial_state(self, batch: int) -> State:
        """Return the state before a word: the flag 0, (B,), and zeros in the shapes of the model's state, (B, …)."""
        return torch.zeros(batch), *(torch.zeros(batch, *part.shape) for part in self._like)

    @torch.no_grad()
    def step(self, tokens: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Return the outputs and the state after one letter: int64 (B,) -> float32 (B, |Γ|)."""
        code, model = self._exported.code, self._exported.model
        logits, after = list[torch.Tensor](), list[State]()
        for row, token in enumerate(tokens):
            parts = tuple(part[row].to(like.dtype) for part, like in zip(state[1:], self._like, strict=True))
            put_out, cache = code.read(model, token[None], code.cache(model, parts) if state[0][row] else None)
            logits.append(self._logits(put_out)[0])
            after.append((torch.ones(()), *(part.float() for part in code.state(model, cache))))
        return torch.stack(logits), tuple(torch.stack(parts) for parts in zip(*after, strict=True))

    def _logits(self, tokens: torch.Tensor) -> torch.Tensor:
        n, n_outputs = len(self._exported.machine.alphabet), len(self._exported.outputs)
        is_output = (tokens >= n) & (tokens < n + n_outputs)
        encoded = torch.nn.functional.one_hot((tokens - n).clamp(0, n_outputs - 1), n_outputs).float()
        return torch.where(is_output[..., None], encoded, torch.nan)
