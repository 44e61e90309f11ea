"""Readers of what training and `learn` read and leave: settings, sweeps, checkpoints, words."""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from fsa2lrnn.automata import zoo
from fsa2lrnn.learning import saving
from fsa2lrnn.learning.examples import FreshWords
from fsa2lrnn.learning.judging import LearningTarget
from fsa2lrnn.learning.learning_run import LearningRun
from fsa2lrnn.learning.recipe import Recipe
from fsa2lrnn.learning.saving import RunFolder, RunRequest
from fsa2lrnn.learning.word_files import read_words
from fsa2lrnn.training import run_folder
from fsa2lrnn.training.grid import Sweep, read_sweep
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import TrainingRun, train
from tests.fuzz.mutate import Reader, encoded, given, in_json, json_text, of_json, of_text
from tests.fuzz.readers.models import of_tensors

TINY = Settings(
    "task:parity", embedding_dim=2, block=1, heads=2, normalisation="clip", connection="chain", batch=2, length=3,
    steps=2, test_length=3, test_words=2, evaluate_every=1, stop_at=None, sampler="uniform",
)  # fmt: skip
SETTINGS = given(
    *(other.to_json() for other in (
        TINY, replace(TINY, layer="householder", options={"factors": 2}), replace(TINY, gradient_clip=1.0),
    ))
)  # fmt: skip
SWEEPS = given(json.dumps({
    "preset": "quick", "tasks": ["task:parity", "regex:(ab)*"], "seeds": [0, 1], "lengths": [4], "words": 5,
    "networks": {"mine": {"block": 2, "heads": 3}, "products": {"layer": "householder", "factors": 2}},
    "settings": {"slow": {"learning_rate": 1e-4}, "wide": {"embedding_dim": 8, "connection": "chain"}},
}))  # fmt: skip
TOMLS = given(
    'preset = "quick"\ntasks = ["task:parity"]\nseeds = [0, 1]\n[networks.mine]\nblock = 2\nheads = 3\n'
    "[settings.slow]\nlearning_rate = 1e-4\n"
)
LEARNED = Recipe(heads=2, block=3, steps=2, letters=60, hidden=3)
ASKED = RunRequest("task:parity", "0", "train", "task", 0.1, LEARNED)
LINES = given(
    '{"word": ["a", "b"], "outputs": [0, 1]}\n\n{"word": "ba", "output": 1}\n[["b"], 0]\n',
    '[[{"tuple": ["x", 1]}, null], {"tuple": [true]}]\n["", false]\n[[0, 2.5], true]\n',
)
TABLES = given("word,output\nab,yes\ngo stop,no\n,no\n", 'word,outputs\nab,x y\n"a",y\nab a,x y x\n')


def own() -> list[Any]:
    return ["householder", "index", "my:Layer", {"factors": 10**9}, "cuda:99999", "mixed", "float64", 99_999_999_999]


@cache
def run_files() -> list[bytes]:
    """The checkpoint of a tiny run."""
    with tempfile.TemporaryDirectory() as folder:
        train(TINY, folder)
        return [(Path(folder) / run_folder.CHECKPOINT).read_bytes()]


def resume(path: Path) -> object:
    (path.parent / run_folder.SETTINGS).write_text(TINY.to_json())
    path.replace(path.parent / run_folder.CHECKPOINT)
    return TrainingRun(TINY, path.parent, resume=True)


def hostile_lines(rng: random.Random) -> bytes:
    """A file with one line changed as JSON, or as `of_text` changes it."""
    if rng.random() < 0.4:
        return of_text(LINES)(rng)
    lines = rng.choice(LINES()).splitlines()
    i = rng.choice([i for i, line in enumerate(lines) if line])
    lines[i] = encoded(json_text(in_json(json.loads(lines[i]), rng), rng))
    return b"\n".join(lines)


def learning() -> LearningRun:
    examples = FreshWords(zoo.parity())
    return LearningRun(LEARNED, examples, LearningTarget(examples.machine, examples.sampler, examples.outputs), 2)


@cache
def learning_files() -> list[bytes]:
    """The checkpoint of a tiny run of `learn`."""
    with tempfile.TemporaryDirectory() as folder:
        run, kept = learning(), RunFolder(Path(folder), ASKED, resume=False)
        run.go(after_step=kept.save)
        return [(Path(folder) / saving.CHECKPOINT).read_bytes()]


def resume_learning(path: Path) -> object:
    kept = RunFolder(path.parent, ASKED, resume=False)
    path.replace(path.parent / saving.CHECKPOINT)
    return kept.restore(learning())


READERS: dict[str, Reader] = {
    "settings": Reader(SETTINGS, of_json(SETTINGS, own), lambda path: Settings.from_json(path.read_bytes())),
    "sweep JSON": Reader(SWEEPS, of_json(SWEEPS, own), lambda path: Sweep.from_dict(read_sweep(path)), ".json"),
    "sweep TOML": Reader(TOMLS, of_text(TOMLS), lambda path: Sweep.from_dict(read_sweep(path)), ".toml"),
    "run": Reader(run_files, of_tensors(run_files, "standing"), resume),
    "word lines": Reader(LINES, hostile_lines, read_words, ".jsonl"),
    "word table": Reader(TABLES, of_text(TABLES), read_words, ".csv"),
    "learning": Reader(learning_files, of_tensors(learning_files, "standing"), resume_learning),
}
