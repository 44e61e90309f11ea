"""Languages of MLRegTest from balanced words alone: subregular hypotheses, training, RPNI, EDSM, merging with a test.

    python -m experiments.studies.mlregtest.data_alone FOLDER --minutes 30

Every method gets the same words (`words`), each with one label at its end; mergers get so much processor time, and
training as many steps as `STEPS`. A machine is
exact if it is right on all words of 20 letters and more: the data says nothing about shorter ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from math import gcd
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due, within
from experiments.studies.mlregtest.hierarchy import by_hierarchy, end_labels
from experiments.studies.mlregtest.languages import names
from experiments.studies.mlregtest.likelihood import likely
from experiments.studies.mlregtest.names import parse_name
from experiments.studies.mlregtest.networks import LAYERS, Network, by_gru, by_layer
from experiments.studies.mlregtest.state_merging import by_state_merging
from experiments.studies.mlregtest.words import LONG, SHORT, LanguageWords, data
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.zoo.mlregtest import from_mlregtest
from fsa2lrnn.errors import BudgetExceeded, Fsa2LrnnError, OutOfTime, UnsupportedFormat
from fsa2lrnn.learning import Data, learn

TESTS = {"SR": (SHORT, False), "SA": (SHORT, True), "LR": (LONG, False), "LA": (LONG, True)}
STEPS = 1000  # of training
FIRST = 117  # languages of the sample on which `likely` was developed; later ones are a second sample


def by_training(given: Data) -> MooreMachine:
    """Return the best machine after `STEPS` steps of the recipe for data."""
    return learn(given, held_out=0, steps=STEPS).machine


METHODS: dict[str, Callable[[Data], MooreMachine | Network]] = {
    "hierarchy": by_hierarchy,
    "likely": likely,
    "train": by_training,
    "rpni": lambda given: by_state_merging(given, by_evidence=False),
    "edsm": lambda given: by_state_merging(given, by_evidence=True),
    "merge": lambda given: learn(given, method="merge", held_out=0).machine,
    "gru": by_gru,
    **{arm: partial(by_layer, arm=arm) for arm in LAYERS},
}


def main(
    folder: Annotated[Path, typer.Argument(help="the folder of .att files")],
    sizes: Annotated[str, typer.Option(help="words to learn from, several sizes separated by commas")] = "1000",
    methods: Annotated[str, typer.Option(help="methods, separated by commas")] = ",".join(METHODS),
    languages: Annotated[int, typer.Option(min=0, help="languages in a stratified order, 0 for all")] = 0,
    test: Annotated[int, typer.Option(min=40, help="words in each test set")] = 400,
    seconds: Annotated[float, typer.Option(min=1, help="processor time of a run")] = 60.0,
    minutes: Annotated[float, typer.Option(min=0, help="after which no run begins")] = 30.0,
    part: Annotated[str, typer.Option(help="i/n: of the languages, the i-th and each n-th after it")] = "1/1",
    rows: Annotated[list[Path] | None, typer.Option(help="results of other parts, taken over")] = None,
) -> None:
    """Learn from data alone and write experiments/results/mlregtest_data_alone.json."""
    torch.set_num_threads(1)
    end = time.monotonic() + 60 * minutes
    each = [(size, method) for size in map(int, sizes.split(",")) for method in methods.split(",")]
    first, parts = map(int, part.split("/"))
    ordered = spread(names(folder, seed=31))
    drawn, second = ordered[: languages or None][first - 1 :: parts], {*ordered[FIRST:]}
    cells = [(name, *cell) for name in drawn for cell in each]
    plan = (cell for cell in cells if time.monotonic() < end)

    def run(name: str, size: int, method: str) -> Row:
        return run_one(folder, name, size, method, test, seconds) | {"second_sample": name in second}

    def write(runs: list[Row]) -> None:
        results = {"seconds": seconds, "test": test, "runs": runs}
        results_io.write("mlregtest_data_alone", results, "python -m experiments.studies.mlregtest.data_alone FOLDER")

    keys = ("name", "size", "method")
    known = {tuple(row[key] for key in keys): row for row in known_rows("mlregtest_data_alone", parts=rows or [])}
    write(run_due(plan, keys, [*known.values()], run, write))


def spread(stratified: list[str]) -> list[str]:
    """Return the names in an order in which few already belong to many classes and to all alphabet sizes.

    The groups of a round of `names` come sorted by alphabet and class: next comes the next alphabet and the next class.
    """
    n = len({parse_name(name)[::2][:2] for name in stratified})
    step = n // len({parse_name(name).letters for name in stratified}) + 1
    rounds = [stratified[first : first + n] for first in range(0, len(stratified), n)]
    return [
        each[step * i % len(each)] if gcd(step, len(each)) == 1 else each[i]
        for each in rounds
        for i in range(len(each))
    ]


def run_one(folder: Path, name: str, size: int, method: str, test: int, seconds: float) -> dict[str, Any]:
    """Return one run: the accuracy on the four test sets, and whether the machine is exact."""
    target = from_mlregtest(name, folder)
    row: dict[str, Any] = {
        "name": name, "letters": len(target.alphabet), "class": parse_name(name).kind, "states": target.n_states,
        "size": size, "method": method, "limit": seconds, "exact": False,
    }  # fmt: skip
    draw = LanguageWords(target)
    try:
        training = draw.training(size)
    except UnsupportedFormat as error:
        return row | {"error": str(error)}
    words = data(training, target)
    begun = time.process_time()
    try:
        with within(seconds):
            learned = METHODS[method](words)
    except (OutOfTime, BudgetExceeded) as error:
        return row | {"processor_seconds": round(time.process_time() - begun, 2), "error": str(error)}
    row["processor_seconds"] = round(time.process_time() - begun, 2)
    row["training_errors"] = wrong_words(learned, words)
    if isinstance(learned, Network):
        row["exact"] = None  # not decided
    else:
        row["learned_states"] = learned.n_states
        row["exact"] = agrees_from(learned, target, SHORT[0])
        row["equal"] = row["exact"] and agrees_from(learned, target, 0)
    for label, (lengths, is_adversarial) in TESTS.items():
        try:
            test_words = (
                draw.adversarial_test(lengths, test) if is_adversarial else draw.random_test(lengths, test, training)
            )
        except Fsa2LrnnError as error:
            row[label] = str(error)
            continue
        row[label] = 1 - wrong_words(learned, data(test_words, target)) / len(test_words)
    return row


def wrong_words(learned: MooreMachine | Network, words: Data) -> int:
    """Return how many words of a data set with one label at each end are labelled differently."""
    if isinstance(learned, Network):
        return int(learned.wrong(words).sum())
    tokens, lengths, labels = end_labels(words)
    order = np.array([learned.alphabet.index(letter) for letter in words.alphabet])
    q = np.full(len(tokens), learned.start)
    for k in range(tokens.shape[1]):
        inside = k < lengths
        q[inside] = learned.delta[order[tokens[inside, k]], q[inside]]
    outputs = np.array([words.outputs.index(output) for output in learned.outputs])
    return int((outputs[q] != labels).sum())


def agrees_from(learned: MooreMachine, target: MooreMachine, length: int) -> bool:
    """Return whether both machines have one output on all words of at least `length` letters."""
    order = [learned.alphabet.index(letter) for letter in target.alphabet]
    pairs = np.array([[learned.start, target.start]])
    for k in range(length + learned.n_states * target.n_states):
        if k >= length and any(learned.outputs[p] != target.outputs[q] for p, q in pairs.tolist()):
            return False
        after = np.stack([learned.delta[order][:, pairs[:, 0]], target.delta[:, pairs[:, 1]]], -1).reshape(-1, 2)
        if k >= length:
            after = np.concatenate([pairs, after])  # all pairs reached by `length` letters or more
        after = np.unique(after, axis=0)
        if k >= length and len(after) == len(pairs):
            return True
        pairs = after
    return True


if __name__ == "__main__":
    script.run(main)
