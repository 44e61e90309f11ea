"""Readers of what training leaves: settings, sweeps, runs, results."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from fsa2lrnn.training import run_folder
from fsa2lrnn.training.grid import Sweep, read_sweep
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.sweep import RESULTS, KeptModelOrigin, Ledger, RunResult, read_result
from fsa2lrnn.training.train import TrainingRun, train
from tests.fuzz.base import Reader
from tests.fuzz.readers.hostile import of_json, of_text
from tests.fuzz.readers.models import hostile_tensors, model_file

MODELS = Path(__file__).parents[3] / "experiments" / "models"


TINY = Settings(
    "task:parity", embedding_dim=2, block=1, heads=2, normalisation="clip", connection="chain", batch=2, length=3,
    steps=2, test_length=3, test_words=2, evaluate_every=1, stop_at=None, sampler="uniform",
)  # fmt: skip
SWEEP: dict[str, Any] = {
    "preset": "quick", "tasks": ["task:parity", "regex:(ab)*"], "seeds": [0, 1], "lengths": [4], "words": 5,
    "networks": {"mine": {"block": 2, "heads": 3}, "products": {"layer": "householder", "factors": 2}},
    "settings": {"slow": {"learning_rate": 1e-4}, "wide": {"embedding_dim": 8, "connection": "chain"}},
}  # fmt: skip
TOML = (
    "[settings.x]\n", "heads=99999999999\n", "layer='os:path'\n", "a.b.c=1\n", "[[x]]\n", "= ", "'''", '"""',
    "1979-05-27", "nan", "inf", "0x" + "f" * 5_000, "[1,", "{a=1,", "}", "]", "#", "seeds=[1,2]\n",
    "options={factors=3}\n", "\\u0000", "tasks=['task:group(S9)']\n", "lengths=[0]\n",
)  # fmt: skip


@cache
def settings_files() -> list[bytes]:
    others = [TINY, replace(TINY, layer="householder", options={"factors": 2}), replace(TINY, gradient_clip=1.0)]
    return [settings.to_json().encode() for settings in others]


@cache
def of_settings() -> list[Any]:
    return ["householder", "index", "my:Layer", {"factors": 10**9}, "cuda:99999", "mixed", "float64", 99_999_999_999]


@cache
def sweep_files() -> list[bytes]:
    return [json.dumps(SWEEP).encode()]


@cache
def toml_files() -> list[bytes]:
    text = (
        'preset = "quick"\ntasks = ["task:parity"]\nseeds = [0, 1]\n[networks.mine]\nblock = 2\nheads = 3\n'
        "[settings.slow]\nlearning_rate = 1e-4\n"
    )
    return [text.encode()]


def read_settings(path: Path) -> object:
    return Settings.from_json(path.read_bytes())


def sweep_of(path: Path) -> object:
    return Sweep.from_dict(read_sweep(path))


@cache
def run_files() -> list[tuple[dict[str, torch.Tensor], dict[str, str]]]:
    """The checkpoint of a tiny run, by its parts."""
    import tempfile

    from fsa2lrnn.nn.tensor_file import open_tensors

    with tempfile.TemporaryDirectory() as folder:
        train(TINY, folder)
        with open_tensors(Path(folder) / run_folder.CHECKPOINT, run_folder.FORM) as file:
            return [(dict(file.tensors()), {k: v for k, v in file.metadata.items() if k != "sha256"})]


@cache
def whole_runs() -> list[bytes]:
    return [model_file(*parts) for parts in run_files()]


def resume(path: Path) -> object:
    folder = path.parent
    (folder / run_folder.SETTINGS).write_text(TINY.to_json())
    path.replace(folder / run_folder.CHECKPOINT)
    return TrainingRun(TINY, folder, resume=True)


SHARE = {"accuracy": 0.5, "interval": [0.25, 0.75]}
LENGTH = {"length": 40, "words": 4, "whole": 2, "last": 2, "whole_word": SHARE, "last_position": SHARE}
RESULT = {
    "seed": 3, "end": "steps", "step": 20, "paper_protocol": {"accuracy": None, "looks": 0},
    "last_checkpoint": [LENGTH], "folder": "x", "judged": {"lengths": [40], "words": 4, "letters": 9},
    "task": "task:parity", "command": "",
}  # fmt: skip


@cache
def result_files() -> list[bytes]:
    return [json.dumps(RESULT).encode(), *(path.read_bytes() for path in sorted(MODELS.rglob("*.json"))[:1])]


def read_results(path: Path) -> object:
    return read_result(path, RunResult), read_result(path, KeptModelOrigin)


@cache
def ledgers() -> list[bytes]:
    return [json.dumps(RESULT).encode()]


def read_ledger(path: Path) -> object:
    path.replace(path.parent / RESULTS)
    return Ledger(path.parent / RESULTS)


@cache
def metrics() -> list[bytes]:
    return [json.dumps(asdict(run_folder.Evaluation(1, 0.5, 0.25, 0.125, 40, 8, 1.5, 3.0, 1e-4, 100.0))).encode()]


def read_metrics(path: Path) -> object:
    path.replace(path.parent / run_folder.METRICS)
    return run_folder.read_records(path.parent)


READERS: dict[str, Reader] = {
    "settings": Reader(settings_files, of_json(settings_files, of_settings), read_settings),
    "sweep JSON": Reader(sweep_files, of_json(sweep_files, of_settings), sweep_of, ".json"),
    "sweep TOML": Reader(toml_files, of_text(toml_files, TOML), sweep_of, ".toml"),
    "run": Reader(whole_runs, hostile_tensors(run_files, "standing"), resume),
    "result": Reader(result_files, of_json(result_files), read_results, ".json"),
    "ledger": Reader(ledgers, of_json(ledgers), read_ledger),
    "metrics": Reader(metrics, of_json(metrics), read_metrics),
}
