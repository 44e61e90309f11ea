"""The folder of one run: what it was asked, where it stands, what was measured. Every file is whole at any moment.

`settings.json`; `checkpoint.bin`, a safetensors file with all that going on needs (weights, optimiser, random numbers,
records); for readers, `model.safetensors`, the weights of the last checkpoint, and `metrics.jsonl`, a record a line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from torch import Tensor

from fsa2lrnn.errors import CheckpointError, Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.files import write_atomically
from fsa2lrnn.lrnn.checkpoint import save
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.tensor_file import FileFormat, Shapes, check_shapes, open_tensors, write_tensors
from fsa2lrnn.reading import parse_json, read
from fsa2lrnn.training.settings import Settings

FORM = FileFormat("fsa2lrnn-run", 2)
SETTINGS, CHECKPOINT, MODEL, METRICS = "settings.json", "checkpoint.bin", "model.safetensors", "metrics.jsonl"

Record = dict[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """A record: what a test on the way measured, after `step` steps."""

    step: int
    loss: float
    accuracy: float
    word_accuracy: float
    length: int
    words: int
    gradient_norm: float
    weight_norm: float
    learning_rate: float
    steps_per_second: float


@dataclass
class IntervalStatistics:
    """The steps since the last test: the sum of their losses, and their largest gradient norm."""

    loss: float = 0.0
    gradient_norm: float = 0.0
    steps: int = 0


@dataclass(frozen=True)
class RunState:
    """Where a run stands, beside its tensors.

    Args:
        step: steps done.
        records: of the tests on the way.
        since_test: the steps since the last one.
    """

    step: int
    records: tuple[Evaluation, ...]
    since_test: IntervalStatistics


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """All that going on needs. The tensors are weights, the state of the optimiser and random generators, by name."""

    standing: RunState
    tensors: Mapping[str, Tensor]


def prepare(folder: Path, settings: Settings, resume: bool, wanted: Shapes) -> Checkpoint | None:
    """Make the folder ready for a run, and return the checkpoint to go on from, None for a new start.

    Without `resume` a run that is there is forgotten. Metrics later than the checkpoint are dropped.

    Args:
        wanted: the shapes of a checkpoint's tensors; the optimiser has none for a weight that no step has moved yet.

    Raises:
        UnsupportedFormat: if the folder holds a run of other settings; more steps and another `stop_at` are no others,
            unless the schedule depends on them.
        CheckpointError: if the checkpoint can't be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SETTINGS
    checkpoint = None
    if resume and path.exists():
        _check_same(folder, Settings.from_json(path.read_bytes()), settings)
        checkpoint = _read(folder / CHECKPOINT, wanted)
    else:
        for name in (CHECKPOINT, MODEL, METRICS):
            (folder / name).unlink(missing_ok=True)
    write_atomically(path, settings.to_json().encode())
    write_records(folder, [asdict(look) for look in checkpoint.standing.records] if checkpoint else [])
    return checkpoint


def write_checkpoint(folder: Path, model: LRNN, checkpoint: Checkpoint) -> None:
    """Write `checkpoint.bin`, and the model beside it."""
    standing = json.dumps(asdict(checkpoint.standing))
    write_tensors(folder / CHECKPOINT, FORM, checkpoint.tensors, {"standing": standing})
    write_model(folder, model)


def write_model(folder: Path, model: LRNN) -> None:
    """The model that readers find."""
    save(model, folder / MODEL)


def write_records(folder: Path, records: list[Record]) -> None:
    """All lines of metrics."""
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_atomically(folder / METRICS, "".join(lines).encode())


def read_records(folder: Path) -> list[Record]:
    """The lines of metrics. Raises `UnsupportedFormat` naming one that is no record."""
    path = folder / METRICS
    lines = enumerate(path.read_bytes().splitlines(), start=1)
    names = ((f"{path}, line {i}", line) for i, line in lines)
    return [asdict(read(Evaluation, parse_json(line, name, is_line=True), name, _NUMBERS)) for name, line in names]


def _check_same(folder: Path, found: Settings, wanted: Settings) -> None:
    free = {"stop_at", "steps"} if wanted.schedule == "constant" else {"stop_at"}
    before, after = asdict(found), asdict(wanted)
    if other := [f.name for f in fields(Settings) if f.name not in free and before[f.name] != after[f.name]]:
        changes = ", ".join(f"{name} = {before[name]!r} there and {after[name]!r} here" for name in other)
        raise UnsupportedFormat(
            f"{folder} holds a run of other settings ({changes}): give another folder, or start afresh in this one"
        )


def _read(path: Path, wanted: Shapes) -> Checkpoint | None:
    if not path.exists():
        return None
    try:
        with open_tensors(path, FORM) as file:
            value = parse_json(file.metadata.get("standing", "null"), "standing")
            standing = read(RunState, value, "standing", _NUMBERS)
            check_shapes("it", with_state(wanted, file.shapes), file.shapes)
            return Checkpoint(standing, file.tensors())
    except Fsa2LrnnError as error:
        raise CheckpointError(f"{path} can't be resumed ({error}): start afresh") from error


def _number(value: Any, where: str) -> float:
    """A number; the norm of weights that diverge can be infinite."""
    if isinstance(value, float):
        return value
    return read(float, value, where)


_NUMBERS = {float: _number}


def with_state(wanted: Shapes, found: Shapes) -> Shapes:
    """Of the tensors wanted, those of the optimiser only for weights of which the file has any."""
    there = {name.rpartition(".")[0] for name in found}
    return {
        name: shape
        for name, shape in wanted.items()
        if not name.startswith("optimiser.") or name.rpartition(".")[0] in there
    }
