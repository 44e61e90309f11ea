"""What runs left, as it stands in JSON: the parts that are read again, with their types."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.reading import parse_json, read


@dataclass(frozen=True)
class Proportion:
    """How often something was right, with a 95 % interval."""

    accuracy: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class LengthResult:
    """The last checkpoint at one length."""

    length: int
    words: int
    whole_word: Proportion
    last_position: Proportion


@dataclass(frozen=True)
class ProtocolResult:
    """What the paper's protocol makes of a run; no accuracy without a look."""

    looks: int
    accuracy: float | None
    step: int | None = None


@dataclass(frozen=True)
class RunResult:
    """How one run ended, as `result.json` says it; the last checkpoint of one that diverged or failed is not judged."""

    seed: int
    end: str
    step: int | None = None
    error: str | None = None
    paper_protocol: ProtocolResult | None = None
    last_checkpoint: tuple[LengthResult, ...] | None = None


@dataclass(frozen=True)
class EvaluationScope:
    """At which lengths a run was judged, and on how many words."""

    lengths: tuple[int, ...]
    words: int
    letters: int


@dataclass(frozen=True, kw_only=True)
class SweepLine(RunResult):
    """A run of a sweep, as `results.jsonl` says it."""

    folder: str
    judged: EvaluationScope


@dataclass(frozen=True, kw_only=True)
class KeptModelOrigin(RunResult):
    """Where a kept model comes from, as the file beside it says."""

    task: str
    command: str


def parse_result(kind: type[RunResult], text: str | bytes, origin: str) -> dict[str, Any]:
    """A JSON object that can be read as this kind, its other fields as they are.

    Raises `CheckpointError` naming what is missing or of another type.
    """
    try:
        value = parse_json(text, origin)
        read(kind, value, "the result", pass_over=True)
    except UnsupportedFormat as error:
        raise CheckpointError(f"{origin} is no result of a run ({error}): remove it") from error
    return value


def read_result(path: Path, kind: type[RunResult] = RunResult) -> dict[str, Any]:
    """What a file such as `result.json` says. Raises as `parse_result` does, and `OSError`."""
    return parse_result(kind, path.read_bytes(), str(path))
