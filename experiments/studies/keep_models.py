"""Trained models, kept small: `python -m experiments.studies.keep_models FOLDER…`.

Gathers runs of `fsa2lrnn train --output FOLDER` into experiments/models/FOLDER/seed-N.safetensors, each with a
seed-N.json that says how it came about. A model of one layer over letters is kept as its tables, some 35 KB in place of
several hundred: its gates compute nothing else. One of several layers is kept as it is.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from experiments import script
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.files import write_atomically
from fsa2lrnn.nn.checkpoint import load, save
from fsa2lrnn.nn.switched import as_tables, switched
from fsa2lrnn.training import seeds
from fsa2lrnn.training.run_folder import MODEL, SETTINGS
from fsa2lrnn.training.settings import Settings, preset
from fsa2lrnn.training.sweep import read_result
from fsa2lrnn.verification.coverage import versions

MODELS = Path(__file__).parent.parent / "models"


def keep(run: Path, to: Path) -> dict[str, Any]:
    """Keep the model of one run's folder as `to`.safetensors and `to`.json, and return what the latter says.

    Raises:
        CheckpointError: if the run has not ended, or the kept model's logits are not bit for bit the trained one's.
    """
    facts = _facts(run)
    trained = load(run / MODEL)
    one_layer = trained.is_switched
    kept = as_tables(trained) if one_layer else trained
    facts |= {
        "kept_as": "tables" if one_layer else "weights",
        "parameters_trained": sum(weight.numel() for weight in trained.parameters()),
        "sha256": switched(kept).sha256 if one_layer else None,
    }
    to.parent.mkdir(parents=True, exist_ok=True)
    save(kept, to.with_suffix(".safetensors"))
    write_atomically(to.with_suffix(".json"), (json.dumps(facts, indent=2, ensure_ascii=False) + "\n").encode())
    return facts


def _facts(run: Path) -> dict[str, Any]:
    """Return the origin of a run's model: settings, command, end of training, and measurements."""
    path = run / seeds.RESULT
    if not path.is_file():
        raise CheckpointError(f"{run} has no {seeds.RESULT}: only runs that have ended are kept; train until then")
    result = read_result(path)
    if "last_checkpoint" not in result:
        raise CheckpointError(f"{run}: the run was {result['end']}: only runs that have ended are kept; train on")
    settings = Settings.from_json((run / SETTINGS).read_bytes())
    return {
        "task": settings.task,
        "seed": settings.seed,
        "command": _command(settings),
        "end": result["end"],
        "step": result["step"],
        "settings": asdict(settings),
        "paper_protocol": result["paper_protocol"],
        "last_checkpoint": result["last_checkpoint"],
        "versions": versions(),
    }


def _command(settings: Settings) -> str:
    """Return the command that trains this model again: the published preset with the differences from it."""
    usual = asdict(preset("paper", settings.task, seed=settings.seed))
    changed = {name: value for name, value in asdict(settings).items() if value != usual[name]}
    changed |= changed.pop("options", {})
    steps = f" --steps {changed.pop('steps')}" if "steps" in changed else ""
    sets = "".join(f" --set {name}={json.dumps(value)}" for name, value in changed.items())
    return f'fsa2lrnn train "{settings.task}" --output FOLDER --seeds {settings.seed}{steps}{sets}'


def main(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER…", help="what `fsa2lrnn train --output` was given")],
    to: Annotated[Path, typer.Option(help="where a folder of the same name is made")] = MODELS,
) -> None:
    """Save every ended run of the folders in small form with its origin; print what was saved."""
    shown = Table("model", "task", "step", "best on the way", "kept as", "KB")
    for folder in folders:
        for run in sorted(folder.glob("seed-*"), key=lambda path: int(path.name.partition("-")[2])):
            kept = to / folder.name / run.name
            facts = keep(run, kept)
            size = kept.with_suffix(".safetensors").stat().st_size / 1000
            best = f"{facts['paper_protocol']['accuracy']:.3f}"
            name = f"{folder.name}/{run.name}"
            shown.add_row(name, facts["task"], f"{facts['step']:,}", best, facts["kept_as"], f"{size:.1f}")
    Console().print(shown)


if __name__ == "__main__":
    script.run(main)
