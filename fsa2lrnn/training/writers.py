"""Write the records of training to experiment trackers: TensorBoard, Weights & Biases."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.files import write_atomically
from fsa2lrnn.optional import require
from fsa2lrnn.training.evaluate import Record
from fsa2lrnn.training.settings import Settings

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
        require("wandb", "wandb", "wandb=True")


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
    wandb, path = require("wandb", "wandb", "wandb=True"), folder / _ID
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
