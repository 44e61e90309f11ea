"""The folder of one run: its settings, its checkpoint and its measurements. Files are replaced atomically.

`settings.json`; `checkpoint.bin`, a safetensors file with all that resuming needs (weights, optimiser, random generator
states, records); for readers, `model.safetensors` with the weights of the last checkpoint, and `metrics.jsonl`.
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
    """The record of an evaluation during training, after `step` steps."""

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
    """Statistics of the steps since the last evaluation: the sum of losses and the largest gradient norm."""

    loss: float = 0.0
    gradient_norm: float = 0.0
    steps: int = 0


@dataclass(frozen=True)
class RunState:
    """The state of a run without its tensors.

    Args:
        step: the number of steps done.
        records: the evaluations so far.
        since_test: the statistics of the steps since the last evaluation.
    """

    step: int
    records: tuple[Evaluation, ...]
    since_test: IntervalStatistics


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """All that resuming needs; `tensors` holds the weights and the optimiser and generator states, by name."""

    standing: RunState
    tensors: Mapping[str, Tensor]


def prepare(folder: Path, settings: Settings, resume: bool, expected: Shapes) -> Checkpoint | None:
    """Prepare the folder for a run; return the checkpoint to resume from, None for a new start.

    Without `resume` an earlier run in the folder is deleted. Metrics later than the checkpoint are dropped.

    Args:
        expected: the shapes of a checkpoint's tensors; the optimiser has none for a weight that no step changed yet.

    Raises:
        UnsupportedFormat: if the folder holds a run of other settings; `steps` and `stop_at` may differ unless the
            schedule depends on them.
        CheckpointError: if the checkpoint cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SETTINGS
    checkpoint = None
    if resume and path.exists():
        _check_same(folder, Settings.from_json(path.read_bytes()), settings)
        checkpoint = _read(folder / CHECKPOINT, expected)
    else:
        for name in (CHECKPOINT, MODEL, METRICS):
            (folder / name).unlink(missing_ok=True)
    write_atomically(path, settings.to_json().encode())
    write_records(folder, [asdict(record) for record in checkpoint.standing.records] if checkpoint else [])
    return checkpoint


def write_checkpoint(folder: Path, model: LRNN, checkpoint: Checkpoint) -> None:
    """Write `checkpoint.bin` and the model."""
    standing = json.dumps(asdict(checkpoint.standing))
    write_tensors(folder / CHECKPOINT, FORM, checkpoint.tensors, {"standing": standing})
    write_model(folder, model)


def write_model(folder: Path, model: LRNN) -> None:
    """Write the model to `model.safetensors`."""
    save(model, folder / MODEL)


def write_records(folder: Path, records: list[Record]) -> None:
    """Write all records to `metrics.jsonl`."""
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_atomically(folder / METRICS, "".join(lines).encode())


def read_records(folder: Path) -> list[Record]:
    """Return the records in `metrics.jsonl`. Raises `UnsupportedFormat` with a line that is not a record."""
    path = folder / METRICS
    lines = enumerate(path.read_bytes().splitlines(), start=1)
    names = ((f"{path}, line {i}", line) for i, line in lines)
    return [asdict(read(Evaluation, parse_json(line, name, is_line=True), name, _NUMBERS)) for name, line in names]


def _check_same(folder: Path, earlier: Settings, settings: Settings) -> None:
    free = {"stop_at", "steps"} if settings.schedule == "constant" else {"stop_at"}
    before, after = asdict(earlier), asdict(settings)
    if other := [f.name for f in fields(Settings) if f.name not in free and before[f.name] != after[f.name]]:
        changes = ", ".join(f"{name} = {before[name]!r} there and {after[name]!r} here" for name in other)
        raise UnsupportedFormat(
            f"{folder} holds a run of other settings ({changes}): give another folder, or start afresh in this one"
        )


def _read(path: Path, expected: Shapes) -> Checkpoint | None:
    if not path.exists():
        return None
    try:
        with open_tensors(path, FORM) as file:
            value = parse_json(file.metadata.get("standing", "null"), "standing")
            standing = read(RunState, value, "standing", _NUMBERS)
            check_shapes("it", with_state(expected, file.shapes), file.shapes)
            return Checkpoint(standing, file.tensors())
    except Fsa2LrnnError as error:
        raise CheckpointError(f"{path} can't be resumed ({error}): start afresh") from error


def _number(value: Any, where: str) -> float:
    """Return a number, which may be infinite as the norm of diverging weights is."""
    if isinstance(value, float):
        return value
    return read(float, value, where)


_NUMBERS = {float: _number}


def with_state(expected: Shapes, stored: Shapes) -> Shapes:
    """Return the expected shapes, those of the optimiser only for weights whose optimiser state the file holds."""
    weights = {name.rpartition(".")[0] for name in stored}
    return {
        name: shape
        for name, shape in expected.items()
        if not name.startswith("optimiser.") or name.rpartition(".")[0] in weights
    }
