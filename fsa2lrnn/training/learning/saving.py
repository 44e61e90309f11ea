"""The folder of a run of `learn`: what it was asked, where it stands, and in the end what was learned.

`learn.json`, the recipe and the source; `checkpoint.bin`, all that going on needs; at the end `model.safetensors`, the
proved or tested model, `network.safetensors`, the trained one, `machine.json`, `machine.dot`, `trail.jsonl` and
`learned.json`. Every file is whole at any moment.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from fsa2lrnn import symbols
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.files import write_atomically
from fsa2lrnn.judge.equivalence import Proved, Refuted, Undecided
from fsa2lrnn.lrnn.checkpoint import save
from fsa2lrnn.training import run_folder
from fsa2lrnn.training.learning.recipe import Recipe
from fsa2lrnn.training.learning.result import Agreement, Learned
from fsa2lrnn.training.learning.run import Run

ASKED, CHECKPOINT = "learn.json", "checkpoint.bin"
_SAVE_SECONDS = 30.0
_MAY_CHANGE = ("steps", "seconds")


class RunFolder:
    """Where a run is saved every half minute. Raises `UnsupportedFormat` if the folder holds another run."""

    def __init__(self, folder: Path, recipe: Recipe, source: str, resume: bool) -> None:
        self.folder, self.saved_at = folder, time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        asked = {"source": source, "recipe": recipe.to_json()}
        path = folder / ASKED
        if resume and path.exists():
            _check_same(folder, json.loads(path.read_text(encoding="utf-8")), asked)
        else:
            (folder / CHECKPOINT).unlink(missing_ok=True)
        _write_json(path, asked)

    def state(self) -> dict[str, Any] | None:
        """What `Run.restore` takes; None for a new run. Raises `CheckpointError` if it can't be read."""
        return run_folder.read_checkpoint(self.folder / CHECKPOINT)

    def keep(self, run: Run) -> None:
        """Save, if it is time."""
        if time.monotonic() - self.saved_at > _SAVE_SECONDS:
            self.save(run)

    def save(self, run: Run) -> None:
        """Save now."""
        run_folder.write_state(self.folder / CHECKPOINT, run.state())
        self.saved_at = time.monotonic()

    def finish(self, found: Learned) -> None:
        """Write what was learned."""
        save(found.model, self.folder / "model.safetensors")
        if found.network is not None:
            save(found.network, self.folder / "network.safetensors")
        for name, text in (("machine.json", found.machine.to_json()), ("machine.dot", found.machine.to_dot())):
            write_atomically(self.folder / name, text.encode())
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in found.trail)
        write_atomically(self.folder / "trail.jsonl", lines.encode())
        _write_json(self.folder / "learned.json", summary(found))


def summary(found: Learned) -> dict[str, Any]:
    """What was learned as a JSON object, the model and the trail left out."""
    return {
        "verdict": verdict_json(found.verdict),
        "scope": found.scope,
        "states": found.machine.n_states,
        "heads": list(found.heads),
        "steps": found.steps,
        "starts": found.starts,
        "seconds": found.seconds,
        "faults": found.faults,
        "labels": found.labels,
    }


def verdict_json(verdict: Proved | Refuted | Undecided | Agreement | None) -> dict[str, Any] | None:
    """A verdict as a JSON object that names its kind."""
    match verdict:
        case None:
            return None
        case Refuted(word=word, model_trace=given, machine_trace=wanted):
            traces = {"word": word, "model_trace": given, "machine_trace": wanted}
            return {"kind": "refuted"} | {name: [symbols.to_json(s) for s in trace] for name, trace in traces.items()}
        case Agreement():
            return {"kind": "agreement", **verdict.to_json()}
        case _:
            return {"kind": type(verdict).__name__.lower(), **vars(verdict)}


def _write_json(path: Path, value: Any) -> None:
    write_atomically(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def _check_same(folder: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
    pairs = {"source": (before.get("source"), after["source"])}
    recipe: dict[str, Any] = before.get("recipe", {})
    pairs |= {name: (recipe.get(name), value) for name, value in after["recipe"].items() if name not in _MAY_CHANGE}
    if other := [f"{name} = {was!r} there and {now!r} here" for name, (was, now) in pairs.items() if was != now]:
        raise UnsupportedFormat(
            f"{folder} holds another run ({', '.join(other)}): give another folder, or start afresh in this one"
        )
