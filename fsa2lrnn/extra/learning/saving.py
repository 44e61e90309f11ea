"""The folder of a run of `learn`: its request, its checkpoint, and at the end its results.

`learn.json` holds the recipe and the source; `checkpoint.bin` is a safetensors file with all that resuming needs. At
the end `model.safetensors` is the proved or tested model, `network.safetensors` the trained one, `machine.json` and
`machine.dot` the machine, `trail.jsonl` the records, `film.json` the head history,
and `learned.json` the evidence. Files are replaced atomically. A finished run that is called again keeps its results
until the new ones are complete.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.extra.learning.examples import FreshWords
from fsa2lrnn.extra.learning.film import HeadHistory, read_film
from fsa2lrnn.extra.learning.judging import LearningTarget
from fsa2lrnn.extra.learning.recipe import Recipe
from fsa2lrnn.extra.learning.result import Agreement, Learned
from fsa2lrnn.extra.learning.run import LearningRun, LearningState
from fsa2lrnn.files import write_atomically
from fsa2lrnn.lrnn.checkpoint import load, save
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.tensor_file import FileFormat
from fsa2lrnn.reading import parse_json, read
from fsa2lrnn.training.run_folder import check_same_run, read_state, write_state
from fsa2lrnn.verdicts import Proved, Refuted, Undecided

_T = TypeVar("_T")
FORM = FileFormat("fsa2lrnn-learning", 1)
ASKED, CHECKPOINT = "learn.json", "checkpoint.bin"
MODEL, NETWORK, FILM, RESULT = "model.safetensors", "network.safetensors", "film.json", "learned.json"
RESULTS = (
    MODEL, NETWORK, "machine.json", "machine.dot", "trail.jsonl", FILM, RESULT,
)  # fmt: skip
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
    for name, text in (("machine.json", found.machine.to_json()), ("machine.dot", found.machine.to_dot())):
        write_atomically(folder / name, text.encode())
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in found.trail)
    write_atomically(folder / "trail.jsonl", lines.encode())
    if found.film is not None:
        text = json.dumps(found.film.to_json(), ensure_ascii=False, separators=(",", ":"))
        write_atomically(folder / FILM, f"{text}\n".encode())
    _write_json(folder / RESULT, summary(found))


@dataclass(frozen=True)
class LearnedRecord:
    """The content of `learned.json`: fields of `Learned`, the verdict as JSON, and each layer's block sizes."""

    verdict: dict[str, Any] | None
    words: str
    known: str
    states: int
    heads: tuple[int, ...]
    steps: int
    starts: int
    seconds: float
    faults: int
    labels: int
    blocks: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """The folder of a finished run: its request and its results.

    Args:
        model: the proved or tested model.
        network: the trained network; None if the method trains none.
        film: the head history; None if the tables were too large to save.
    """

    folder: Path
    asked: RunRequest
    recorded: LearnedRecord
    model: LRNN
    network: LRNN | None
    film: HeadHistory | None

    def target(self, machine: MooreMachine, source: str) -> LearningTarget:
        """Return the learning target for the machine that `source` names, on the words that counted in the run."""
        examples = FreshWords(machine, self.asked.sampler, source)
        return LearningTarget(examples.machine, examples.sampler, examples.outputs)


def read_finished(folder: Path) -> FinishedRun:
    """Return the finished run in a folder. Raises `UnsupportedFormat` with the missing files if no run ended there."""
    if missing := [name for name in (ASKED, RESULT, MODEL) if not (folder / name).is_file()]:
        raise UnsupportedFormat(
            f"{folder} lacks {', '.join(missing)}, so no run of `fsa2lrnn learn` has ended there: call it again, it "
            "goes on"
        )
    request, recorded = _read(RunRequest, folder / ASKED), _read(LearnedRecord, folder / RESULT)
    if recorded.verdict is not None and not isinstance(recorded.verdict.get("verdict"), str):
        raise UnsupportedFormat(f"{folder / RESULT}: verdict.verdict is missing: learn again")
    network = load(folder / NETWORK) if (folder / NETWORK).exists() else None
    film = read_film(folder / FILM) if (folder / FILM).exists() else None
    if film is not None and network is not None:
        n_heads = len(film.frames[-1].heads)
        if odd := [h for h in recorded.heads if not 0 <= h < n_heads]:
            raise UnsupportedFormat(f"{folder / RESULT}: heads {odd[:5]} of the film's {n_heads}: learn again")
    return FinishedRun(folder, request, recorded, load(folder / MODEL), network, film)


def _read(kind: type[_T], path: Path) -> _T:
    return read(kind, parse_json(path.read_bytes(), str(path)), str(path), _VERDICTS)


def read_agreement(run: FinishedRun) -> Agreement | None:
    """Return the agreement of a machine learned from words with the held-out words; None if none were held out.

    Raises `UnsupportedFormat` for counts that contradict each other.
    """
    if run.recorded.verdict is None:
        return None
    derived = ("verdict", "interval", "expected")
    counts = {name: value for name, value in run.recorded.verdict.items() if name not in derived}
    return read(Agreement, counts, "verdict")


# Each verifier writes verdicts with its own keys, so their values are read without a schema; readers check the kind.
_VERDICTS = {Any: lambda value, _: value}


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


def _write_json(path: Path, value: Any) -> None:
    write_atomically(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())
