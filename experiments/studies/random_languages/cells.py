"""One cell of the study: a machine, a layer and a seed, trained and assessed."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiments.studies.learn_and_prove import learn_within
from experiments.studies.random_languages.arms import ARMS, settings
from experiments.studies.random_languages.machines import Drawn
from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.export.in_use import NO
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.training.data import make_sampler, shares_of, words
from fsa2lrnn.training.evaluate import evaluate
from fsa2lrnn.training.train import Diverged, train
from fsa2lrnn.verdicts import Refuted
from fsa2lrnn.verification.falsify import Budget, falsify

LENGTHS, WORDS = (40, 500), 1_000
SECONDS = 60.0  # of a processor, that `learn` may take
SEARCH = Budget(seconds=4.0, words=20_000, length=500, random_words=64)
LONG_SEARCH = Budget(seconds=60.0, words=400_000, length=5_000, random_words=256)  # of what should not be there
_SEED = 1 << 20  # of the words that models are judged on: no run's own


def theory(found: Drawn) -> dict[str, dict[str, str]]:
    """Return the prediction of theory for each layer and the machine."""
    said = {arm: ARMS[arm].theory(found.machine) for arm in ARMS}
    return {arm: {"answer": answer} for arm, (answer, _) in said.items()}


def constant_answer(machine: MooreMachine, length: int) -> float:
    """Return the accuracy of the best constant answer at the end of uniformly random words of that length.

    >>> from fsa2lrnn.automata import zoo
    >>> constant_answer(zoo.parity(), 40), constant_answer(zoo.length_mod(2), 40)
    (0.5, 1.0)
    """
    return max(shares_of(words(machine, make_sampler("uniform", machine)), length).values())


def run_cell(found: Drawn, arm: str, seed: int) -> dict[str, Any]:
    """Train and judge; `steps` are those to the first look that found every letter of every word right, or all.

    Where theory says no and no failing word is found, the search is longer.

    Raises `KeyboardInterrupt` if training was asked to stop: such a cell has not been run.
    """
    begun = time.process_time()
    model, cell = (_learned if ARMS[arm].changes is None else _trained)(found, arm, seed)
    cell = {"machine": found.number, "arm": arm, "seed": seed, **cell, "seconds": time.process_time() - begun}
    if model is None:
        return cell
    cell |= judged(model, found)
    if cell["fails_at"] is None and ARMS[arm].theory(found.machine)[0] == NO:
        cell["fails_at"] = failing_length(model, found, LONG_SEARCH)
    return cell


def _trained(found: Drawn, arm: str, seed: int) -> tuple[LRNN | None, dict[str, Any]]:
    with TemporaryDirectory() as folder:
        source = Path(folder) / "machine.json"
        source.write_text(found.machine.to_json(), encoding="utf-8")
        try:
            outcome = train(settings(arm, str(source), seed), Path(folder) / "run")
        except Diverged:
            return None, {"end": "diverged", "proved": False}
    if outcome.end == "interrupted":
        raise KeyboardInterrupt
    best = max(record["word_accuracy"] for record in outcome.records)
    whole = (record["step"] for record in outcome.records if record["word_accuracy"] == 1)
    return outcome.model, {"end": "steps", "steps": next(whole, outcome.step), "best_look": best, "proved": False}


def _learned(found: Drawn, arm: str, seed: int) -> tuple[LRNN | None, dict[str, Any]]:  # noqa: ARG001 - as `_trained`
    learned, last = learn_within(found.machine, seed, SECONDS)
    if learned is None:
        return None, {"end": "out of time", "steps": last["step"], "proved": False}
    return learned.model, {"end": "learned", "steps": learned.steps, "proved": learned.is_proved}


def judged(model: LRNN, found: Drawn) -> dict[str, Any]:
    """Return the number of right fresh words at each length, and the length of the shortest counterexample found."""
    sampler = make_sampler("uniform", found.machine)
    drawn = words(found.machine, sampler, model.outputs)
    rows: dict[str, Any] = {}
    for accuracy in evaluate(model, drawn, _SEED + found.number, LENGTHS, WORDS):
        rows |= {f"last_{accuracy.length}": accuracy.last, f"whole_{accuracy.length}": accuracy.whole}
    return rows | {"fails_at": failing_length(model, found, SEARCH)}


def failing_length(model: LRNN, found: Drawn, budget: Budget) -> int | None:
    """Return the length of the shortest counterexample that a search finds, or None."""
    verdict = falsify(model, found.machine, budget)
    return len(verdict.word) if isinstance(verdict, Refuted) else None
