"""Readers of what `learn` reads and leaves: words, runs."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from functools import cache
from pathlib import Path

import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.learning import saving
from fsa2lrnn.learning.examples import FreshWords
from fsa2lrnn.learning.judging import LearningTarget
from fsa2lrnn.learning.learning_run import LearningRun as Learning
from fsa2lrnn.learning.recipe import Recipe
from fsa2lrnn.learning.saving import RunFolder, RunRequest
from fsa2lrnn.learning.word_files import read_words
from tests.fuzz.base import Reader
from tests.fuzz.mutate import encoded, in_json, json_text
from tests.fuzz.readers.hostile import of_json, of_text
from tests.fuzz.readers.models import hostile_tensors, model_file


@cache
def word_lines() -> list[bytes]:
    dense = '{"word": ["a", "b"], "outputs": [0, 1]}\n\n{"word": "ba", "output": 1}\n[["b"], 0]\n'
    odd = '[[{"tuple": ["x", 1]}, null], {"tuple": [true]}]\n["", false]\n[[0, 2.5], true]\n'
    return [dense.encode(), odd.encode()]


@cache
def word_tables() -> list[bytes]:
    return [b"word,output\nab,yes\ngo stop,no\n,no\n", b'word,outputs\nab,x y\n"a",y\nab a,x y x\n']


TABLE = (",", '"', "\n", "\r", " ", "\0", "word", "outputs", "a" * 999)


def hostile_lines(rng: random.Random) -> bytes:
    """A file with one line changed as JSON, or as `of_text` changes it."""
    if rng.random() < 0.4:
        return of_text(word_lines, ("[", "]", "{", "}", '"', "word", "output", "1e999", "a" * 999, "\n" * 99))(rng)
    lines = rng.choice(word_lines()).splitlines()
    i = rng.choice([i for i, line in enumerate(lines) if line])
    lines[i] = encoded(json_text(in_json(json.loads(lines[i]), rng), rng))
    return b"\n".join(lines)


LEARNED = Recipe(heads=2, block=3, steps=2, letters=60, hidden=3)
ASKED = RunRequest("task:parity", "0", "train", "task", 0.1, LEARNED)


def learning() -> Learning:
    examples = FreshWords(zoo.parity())
    return Learning(LEARNED, examples, LearningTarget(examples.machine, examples.sampler, examples.outputs), 2)


@cache
def learning_files() -> list[tuple[dict[str, torch.Tensor], dict[str, str]]]:
    """The checkpoint of a tiny run of `learn`, by its parts."""
    import tempfile

    from fsa2lrnn.nn.tensor_file import open_tensors

    with tempfile.TemporaryDirectory() as folder:
        run, kept = learning(), RunFolder(Path(folder), ASKED, resume=False)
        run.go(after_step=kept.save)
        with open_tensors(Path(folder) / saving.CHECKPOINT, saving.FORM) as file:
            return [(dict(file.tensors()), {k: v for k, v in file.metadata.items() if k != "sha256"})]


@cache
def whole_learning() -> list[bytes]:
    return [model_file(*parts) for parts in learning_files()]


@cache
def asked_files() -> list[bytes]:
    return [json.dumps(asdict(ASKED)).encode()]


def resume_learning(path: Path) -> object:
    kept = RunFolder(path.parent, ASKED, resume=False)
    path.replace(path.parent / saving.CHECKPOINT)
    return kept.restore(learning())


def read_asked(path: Path) -> object:
    path.replace(path.parent / saving.ASKED)
    return RunFolder(path.parent, ASKED, resume=True)


READERS: dict[str, Reader] = {
    "word lines": Reader(word_lines, hostile_lines, read_words, ".jsonl"),
    "word table": Reader(word_tables, of_text(word_tables, TABLE), read_words, ".csv"),
    "learning": Reader(whole_learning, hostile_tensors(learning_files, "standing"), resume_learning),
    "what was asked": Reader(asked_files, of_json(asked_files), read_asked),
}
