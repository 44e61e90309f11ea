"""The folder of one run: its settings, checkpoint and measurements; the trackers that record it. Writes are atomic.

`checkpoint.bin` is a safetensors file from which a run resumes: weights, optimiser, random generator states, records.
`settings.json` identifies the run. For readers, `model.safetensors` holds the weights of the last checkpoint, and
`metrics.jsonl` the records.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from fsa2lrnn.errors import CheckpointError, Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.files import write_atomically
from fsa2lrnn.nn.checkpoint import FileFormat, Shapes, check_shapes, open_tensors, write_tensors
from fsa2lrnn.optional import require
from fsa2lrnn.reading import Decoder, parse_json, read
from fsa2lrnn.training.evaluate import Record
from fsa2lrnn.training.settings import Settings

FORM = FileFormat("fsa2lrnn-run", 2)
SETTINGS, CHECKPOINT, MODEL, METRICS = "settings.json", "checkpoint.bin", "model.safetensors", "metrics.jsonl"

T = TypeVar("T")


@dataclass(frozen=True)
class Evaluation:
    """The record of an evaluation during training. "Since the last one" means: in the steps after the last evaluation.

    Args:
        step: the number of training steps done.
        loss: the mean training loss since the last one: cross-entropy in nats.
        accuracy: the share of test words whose last output is right, from 0 to 1.
        word_accuracy: the share of test words whose counted outputs are all right, from 0 to 1.
        length: the number of letters of each test word.
        words: the number of test words.
        gradient_norm: the largest norm of the gradient, before clipping, since the last one.
        weight_norm: the Euclidean norm of all parameters together.
        learning_rate: the learning rate of the last step, for parameters without a rate of their own.
        steps_per_second: training steps per second since the last one, without the time of evaluations.
    """

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


def prepare(
    folder: Path, settings: Settings, resume: bool, expected: Shapes
) -> tuple[RunState, Mapping[str, Tensor]] | None:
    """Create or check the folder for a run; return the state and tensors to resume from, or None for a new run.

    Without `resume` an earlier run in the folder is deleted. Metrics later than the checkpoint are dropped.

    Args:
        expected: the shapes of a checkpoint's tensors, with the optimiser's averages of every weight.

    Raises:
        UnsupportedFormat: if the folder holds a run of other settings; `steps` and `stop_at` may differ unless the
            schedule depends on them.
        CheckpointError: if the checkpoint cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SETTINGS
    checkpoint = None
    if resume and path.exists():
        free = {"stop_at", "steps"} if settings.schedule == "constant" else {"stop_at"}
        check_same_run(folder, Settings.from_json(path.read_bytes()), settings, free)
        checkpoint = read_state(folder / CHECKPOINT, FORM, RunState, lambda _: expected, _NUMBERS)
    else:
        for name in (CHECKPOINT, MODEL, METRICS):
            (folder / name).unlink(missing_ok=True)
    write_atomically(path, settings.to_json().encode())
    write_records(folder, [asdict(record) for record in checkpoint[0].records] if checkpoint else [])
    return checkpoint


def write_records(folder: Path, records: list[Record]) -> None:
    """Write all records to `metrics.jsonl` in a run's folder, one JSON object per line, atomically."""
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_atomically(folder / METRICS, "".join(lines).encode())


def read_records(folder: Path) -> list[Record]:
    """Return the records in `metrics.jsonl`. Raises `UnsupportedFormat`, naming the line, if a line is not a record."""
    path = folder / METRICS
    lines = enumerate(path.read_bytes().splitlines(), start=1)
    names = ((f"{path}, line {i}", line) for i, line in lines)
    return [asdict(read(Evaluation, parse_json(line, name, is_line=True), name, _NUMBERS)) for name, line in names]


def check_same_run(folder: Path, before: object, after: object, may_differ: Collection[str]) -> None:
    """Compare the settings of a folder with the present ones, two data classes of one type, nested fields included.

    Raises:
        UnsupportedFormat: with every field that differs and is not among `may_differ`.
    """
    earlier, present = _values(before), _values(after)
    if other := [name for name in earlier if name not in may_differ and earlier[name] != present[name]]:
        changes = ", ".join(f"{name} = {earlier[name]!r} there and {present[name]!r} here" for name in other)
        raise UnsupportedFormat(
            f"{folder} holds another run ({changes}): give another folder, or start afresh in this one"
        )


def _values(request: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields(request):
        value = getattr(request, field.name)
        values |= _values(value) if is_dataclass(value) else {field.name: value}
    return values


def write_state(path: Path, form: FileFormat, state: Any, tensors: Mapping[str, Tensor]) -> None:
    """Write a checkpoint: the tensors, and the state (a data class) as JSON in the metadata."""
    write_tensors(path, form, tensors, {"standing": json.dumps(asdict(state))})


def read_state(
    path: Path,
    form: FileFormat,
    kind: type[T],
    expected: Callable[[T], Shapes],
    decoders: Mapping[Any, Decoder] | None = None,
) -> tuple[T, Mapping[str, Tensor]] | None:
    """Return the state and the tensors of a checkpoint, None if it does not exist.

    Args:
        expected: returns the shapes of the tensors that belong to a state; raises `Fsa2LrnnError` for a wrong state.
        decoders: readers of single types, as in `fsa2lrnn.reading.read`.

    Raises:
        CheckpointError: if the checkpoint cannot be read, or its tensors are not the expected ones.
    """
    if not path.exists():
        return None
    try:
        with open_tensors(path, form) as file:
            value = parse_json(file.metadata.get("standing", "null"), "standing")
            state = read(kind, value, "standing", decoders)
            check_shapes("it", with_state(expected(state), file.shapes), file.shapes)
            return state, file.tensors()
    except Fsa2LrnnError as error:
        raise CheckpointError(f"{path} cannot be resumed ({error}): start afresh") from error


def _number(value: object, where: str) -> float:
    """Return a number, which may be infinite as the norm of diverging weights is."""
    if isinstance(value, float):
        return value
    return read(float, value, where)


_NUMBERS = {float: _number}


def with_state(expected: Shapes, stored: Shapes) -> Shapes:
    """Return the expected shapes without the optimiser's, for weights whose optimiser state the file does not hold."""
    weights = {name.rpartition(".")[0] for name in stored}
    return {
        name: shape
        for name, shape in expected.items()
        if not name.startswith("optimiser.") or name.rpartition(".")[0] in weights
    }


WRITERS = ("tensorboard", "wandb")
_MEASURED = ("loss", "accuracy", "word_accuracy", "gradient_norm", "weight_norm", "steps_per_second")
_ID = "wandb-id.txt"  # the file with the tracker's id of the run, under which a resumed run continues

Write = Callable[[Record], None]


def check_writers(names: Collection[str]) -> None:
    """Raise `UnsupportedFormat` unless `names` is a list of `WRITERS`, `MissingPackage` for one not installed."""
    if isinstance(names, str) or set(names) - set(WRITERS):
        raise UnsupportedFormat(f"write_to = {names!r}: give a list with any of {', '.join(WRITERS)}")
    if "tensorboard" in names:
        require("tensorboard", None, "tensorboard=True")
    if "wandb" in names:
        require("wandb", "wandb", "--wandb")


@contextmanager
def record_writers(names: Collection[str], settings: Settings, folder: Path, resume: bool) -> Iterator[Write]:
    """Open the trackers `names`, of `WRITERS`, and return a function that writes a record to each; close them after."""
    with ExitStack() as held:
        of_kind = {"tensorboard": _tensorboard, "wandb": _wandb}
        writers = [held.enter_context(of_kind[name](settings, folder, resume)) for name in names]

        def write(record: Record) -> None:
            measured = {name: record[name] for name in _MEASURED}
            for each in writers:
                each(measured | {"step": record["step"]})

        yield write


@contextmanager
def _tensorboard(_settings: Settings, folder: Path, _resume: bool) -> Iterator[Write]:
    """Open TensorBoard's writer on the folder of a run, and return a function that writes the measured numbers."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))

    def write(record: Record) -> None:
        for name in _MEASURED:
            writer.add_scalar(name, record[name], record["step"])
        writer.flush()

    try:
        yield write
    finally:
        writer.close()


@contextmanager
def _wandb(settings: Settings, folder: Path, resume: bool) -> Iterator[Write]:
    """Open a W&B run of its own, also if several runs are trained in parallel, and return its writer.

    The environment variables WANDB_MODE, WANDB_PROJECT and WANDB_ENTITY set the destination; the mode "offline" writes
    to the folder.
    """
    wandb, path = require("wandb", "wandb", "--wandb"), folder / _ID
    if not (resume and path.exists()):
        write_atomically(path, f"{secrets.token_hex(4)}\n".encode())
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", "fsa2lrnn"), dir=str(folder), id=path.read_text().strip(),
        name=f"{settings.task}, seed {settings.seed}", config=asdict(settings), resume="allow", reinit="create_new",
    )  # fmt: skip
    code = 1
    try:
        yield lambda record: run.log({name: record[name] for name in _MEASURED}, step=record["step"])
        code = 0
    finally:
        run.finish(exit_code=code)
