"""The folder of one run: what it was asked, where it stands, what was measured. Every file is whole at any moment.

`settings.json`; `checkpoint.bin`, all that going on needs (weights, optimiser, random numbers, records); for readers,
`model.safetensors`, the weights of the last checkpoint, and `metrics.jsonl`, a record a line.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.files import write_atomically
from fsa2lrnn.lrnn.checkpoint import save
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.training.settings import Settings

VERSION = 1
SETTINGS, CHECKPOINT, MODEL, METRICS = "settings.json", "checkpoint.bin", "model.safetensors", "metrics.jsonl"

_HEAD = hashlib.sha256().digest_size


def prepare(folder: Path, settings: Settings, resume: bool) -> dict[str, Any] | None:
    """Make the folder ready for a run, and return the checkpoint to go on from, None for a new start.

    Without `resume` a run that is there is forgotten. Metrics later than the checkpoint are dropped.

    Raises:
        UnsupportedFormat: if the folder holds a run of other settings; more steps and another `stop_at` are no others,
            unless the schedule depends on them.
        CheckpointError: if the checkpoint can't be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SETTINGS
    checkpoint = None
    if resume and path.exists():
        _check_same(folder, Settings.from_json(path.read_text(encoding="utf-8")), settings)
        checkpoint = _read(folder / CHECKPOINT)
    else:
        for name in (CHECKPOINT, MODEL, METRICS):
            (folder / name).unlink(missing_ok=True)
    write_atomically(path, settings.to_json().encode())
    records = checkpoint["records"] if checkpoint else []
    write_atomically(folder / METRICS, "".join(map(_line, records)).encode())
    return checkpoint


def write_checkpoint(folder: Path, model: LRNN, checkpoint: dict[str, Any]) -> None:
    """Write `checkpoint.bin`, headed by its SHA-256, and the model beside it."""
    buffer = io.BytesIO()
    torch.save({"version": VERSION, **checkpoint}, buffer)
    content = buffer.getvalue()
    write_atomically(folder / CHECKPOINT, hashlib.sha256(content).digest() + content)
    save(model, folder / MODEL)


def append_record(folder: Path, record: dict[str, Any]) -> None:
    """One more line of metrics."""
    with (folder / METRICS).open("a", encoding="utf-8") as file:
        file.write(_line(record))


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics."""
    return [json.loads(line) for line in (folder / METRICS).read_text(encoding="utf-8").splitlines()]


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def _check_same(folder: Path, found: Settings, wanted: Settings) -> None:
    free = {"stop_at", "steps"} if wanted.schedule == "constant" else {"stop_at"}
    before, after = asdict(found), asdict(wanted)
    if other := [f.name for f in fields(Settings) if f.name not in free and before[f.name] != after[f.name]]:
        changes = ", ".join(f"{name} = {before[name]!r} there and {after[name]!r} here" for name in other)
        raise UnsupportedFormat(
            f"{folder} holds a run of other settings ({changes}): give another folder, or start afresh in this one"
        )


def _read(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    head, content = (whole := path.read_bytes())[:_HEAD], whole[_HEAD:]
    if hashlib.sha256(content).digest() != head:
        raise CheckpointError(f"{path} is damaged and can't be resumed: start afresh")
    checkpoint = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    if checkpoint["version"] != VERSION:
        raise CheckpointError(
            f"{path} is of version {checkpoint['version']}, and this fsa2lrnn resumes {VERSION}: start afresh"
        )
    return checkpoint
