"""The folder of a run of `learn`: its request, its checkpoint, and at the end its results.

`learn.json` holds the recipe and the source; `checkpoint.bin` is a safetensors file with all that resuming needs. At
the end `model.safetensors` is the proved or tested model, `network.safetensors` the trained one, `machine.json` and
`machine.dot` the machine, `log.jsonl` the records, and `learned.json` the evidence. Files are replaced atomically. A
finished run that is called again keeps its results until the new ones are complete.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.files import write_atomically
from fsa2lrnn.learning.learning_run import LearningRun, LearningState
from fsa2lrnn.learning.recipe import Recipe
from fsa2lrnn.learning.result import Agreement, Learned
from fsa2lrnn.nn.checkpoint import FileFormat, save
from fsa2lrnn.reading import parse_json, read
from fsa2lrnn.training.run_folder import check_same_run, read_state, write_state
from fsa2lrnn.verdicts import Proved, Refuted, Undecided

_T = TypeVar("_T")
FORM = FileFormat("fsa2lrnn-learning", 1)
ASKED, CHECKPOINT = "learn.json", "checkpoint.bin"
MODEL, NETWORK, MACHINE, RESULT = "model.safetensors", "network.safetensors", "machine.json", "learned.json"
RESULTS = (MODEL, NETWORK, MACHINE, "machine.dot", "log.jsonl", RESULT)
_NEW_RESULTS = ".results"  # the folder that new results are written to first
_SAVE_SECONDS = 30.0


@dataclass(frozen=True)
class RunRequest:
    """The request of a run: its source and settings.

    Args:
        source: the name of the source; `digest` is the SHA-256 of the machine or of the words.
        method, sampler, held_out: the arguments of `learn`.
    """

    source: str
    digest: str
    method: str
    sampler: str
    held_out: float
    recipe: Recipe


class RunFolder:
    """The folder where a run is saved every half minute.

    Without `resume` the checkpoint and the results of an earlier run in the folder are deleted. With `resume` they
    stay; raises `UnsupportedFormat` if they are of another run, or `learn.json` cannot be read.
    """

    def __init__(self, folder: Path, asked: RunRequest, resume: bool) -> None:
        self.folder, self.saved_at = folder, time.monotonic()
        path = folder / ASKED
        if resume and path.exists():
            before = _read(RunRequest, path)
            check_same_run(folder, before, asked, ("steps", "seconds"))
        else:
            for name in (CHECKPOINT, *RESULTS):
                (folder / name).unlink(missing_ok=True)
        _write_json(path, asdict(asked))

    def restore(self, run: LearningRun) -> None:
        """Restore the checkpoint in this folder, if there is one, into a run.

        Raises `CheckpointError` if the checkpoint does not fit the run.
        """
        path = self.folder / CHECKPOINT
        checkpoint = read_state(path, FORM, LearningState, run.begin_again)
        try:
            if checkpoint is not None:
                run.restore(checkpoint[1])
        except CheckpointError as error:
            raise CheckpointError(f"{path}: {error}") from error

    def keep(self, run: LearningRun) -> None:
        """Save the run if the last save is half a minute ago."""
        if time.monotonic() - self.saved_at > _SAVE_SECONDS:
            self.save(run)

    def save(self, run: LearningRun) -> None:
        """Save the run now."""
        write_state(self.folder / CHECKPOINT, FORM, run.standing(), run.tensors())
        self.saved_at = time.monotonic()


def write_learned(folder: Path, found: Learned) -> None:
    """Replace the results in the folder: models, machine, trail and evidence.

    Raises `OSError` if they cannot be written; earlier results are then unchanged.
    """
    written = folder / _NEW_RESULTS
    shutil.rmtree(written, ignore_errors=True)  # of a call that was killed
    written.mkdir()
    try:
        _write_results(written, found)
        (folder / RESULT).unlink(missing_ok=True)  # so that evidence and model always belong together
        for name in RESULTS:
            if (written / name).exists():
                (written / name).replace(folder / name)
            else:
                (folder / name).unlink(missing_ok=True)
    finally:
        shutil.rmtree(written, ignore_errors=True)


def _write_results(folder: Path, found: Learned) -> None:
    save(found.model, folder / MODEL)
    if found.network is not None:
        save(found.network, folder / NETWORK)
    for name, text in ((MACHINE, found.machine.to_json()), ("machine.dot", found.machine.to_dot())):
        write_atomically(folder / name, text.encode())
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in found.trail)
    write_atomically(folder / "log.jsonl", lines.encode())
    _write_json(folder / RESULT, summary(found))


def _read(kind: type[_T], path: Path) -> _T:
    return read(kind, parse_json(path.read_bytes(), str(path)), str(path))


def summary(found: Learned) -> dict[str, Any]:
    """Return a learning result as a JSON object, without the model and the trail."""
    return {
        "verdict": verdict_json(found.verdict),
        "words": found.scope,
        "known": found.explain(),
        "states": found.machine.n_states,
        "blocks": [list(layer.block_sizes) for layer in found.model.recurrences],
        "heads": list(found.heads),
        "steps": found.steps,
        "starts": found.starts,
        "seconds": found.seconds,
        "faults": found.faults,
        "labels": found.labels,
    }


def verdict_json(verdict: Proved | Refuted | Undecided | Agreement | None) -> dict[str, Any] | None:
    """Return a verdict as a JSON object that names its kind, "agreement" for the agreement with held-out words."""
    if isinstance(verdict, Agreement):
        return {"verdict": "agreement", **verdict.to_json()}
    return None if verdict is None else verdict.to_json()


def _write_json(path: Path, value: object) -> None:
    write_atomically(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())
