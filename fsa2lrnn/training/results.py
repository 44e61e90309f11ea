"""Schemas of the JSON results of training runs, and readers that check files against them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.reading import parse_json, read


@dataclass(frozen=True)
class Proportion:
    """An accuracy with its 95 % interval."""

    accuracy: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class LengthResult:
    """The accuracies of the last checkpoint on `words` words of one length."""

    length: int
    words: int
    whole_word: Proportion
    last_position: Proportion


@dataclass(frozen=True)
class ProtocolResult:
    """The score of a run under the paper's protocol: its best accuracy, None without any evaluation."""

    looks: int
    accuracy: float | None
    step: int | None = None


@dataclass(frozen=True)
class RunResult:
    """The content of `result.json` for one run; `last_checkpoint` is None if the run diverged or failed."""

    seed: int
    end: str
    step: int | None = None
    error: str | None = None
    paper_protocol: ProtocolResult | None = None
    last_checkpoint: tuple[LengthResult, ...] | None = None


@dataclass(frozen=True)
class EvaluationScope:
    """The lengths, the number of words per length, and the limit on letters of the evaluation of a run."""

    lengths: tuple[int, ...]
    words: int
    letters: int


@dataclass(frozen=True, kw_only=True)
class SweepLine(RunResult):
    """The record of a run of a sweep, one line of `results.jsonl`."""

    folder: str
    judged: EvaluationScope


@dataclass(frozen=True, kw_only=True)
class KeptModelOrigin(RunResult):
    """The origin of a saved model, from the JSON file next to it."""

    task: str
    command: str


def parse_result(kind: type[RunResult], text: str | bytes, origin: str) -> dict[str, Any]:
    """Parse the JSON object in a text, check its fields against a schema, and return it with its unknown fields.

    Raises `CheckpointError` with the first field that is missing or of another type.
    """
    try:
        value = parse_json(text, origin)
        read(kind, value, "the result", pass_over=True)
    except UnsupportedFormat as error:
        raise CheckpointError(f"{origin} is not a result of a run ({error}): remove it") from error
    return value


def read_result(path: Path, kind: type[RunResult] = RunResult) -> dict[str, Any]:
    """Read a file such as `result.json` by `parse_result`. Raises `CheckpointError`, and `OSError` if unreadable."""
    return parse_result(kind, path.read_bytes(), str(path))
