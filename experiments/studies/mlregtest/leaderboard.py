"""Layers × a stratified sample of MLRegTest × seeds: trained, tested, searched for a counterexample, certified.

    python -m experiments.studies.mlregtest.leaderboard FOLDER --minutes 75

A call continues where the last one stopped. All layers of a language run before the next language, sizes and classes
take turns, and all first seeds come before the second ones: whenever it stops, what has been run is balanced.

Letters that act alike are one letter here. Of 64 letters most act alike, and words of letters drawn uniformly would
hardly ever contain the others.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due, within
from experiments.studies.learn_and_prove import learn_within
from experiments.studies.mlregtest import board
from experiments.studies.mlregtest.languages import names
from experiments.studies.mlregtest.names import parse_name
from experiments.studies.random_languages.arms import ARMS as COMMON
from experiments.studies.random_languages.arms import TRAINING, Arm
from fsa2lrnn import certify, falsify
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid import Action
from fsa2lrnn.automata.zoo.mlregtest import FOLDER, from_mlregtest
from fsa2lrnn.deadline import SearchCutShort
from fsa2lrnn.errors import Fsa2LrnnError, OutOfTime
from fsa2lrnn.export.in_use import NO, NOT_EXCLUDED, say
from fsa2lrnn.families import represent
from fsa2lrnn.learning import learn
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.training.data import make_sampler, shares_of, words
from fsa2lrnn.training.evaluate import evaluate
from fsa2lrnn.training.settings import preset
from fsa2lrnn.training.train import Diverged, train
from fsa2lrnn.verdicts import Refuted
from fsa2lrnn.verification.falsify import Budget

COMMAND = "python -m experiments.studies.mlregtest.leaderboard FOLDER"
SAMPLER, LENGTHS, WORDS = "balanced", (40, 500), 500
PROTOCOL: dict[str, Any] = {**TRAINING, "steps": 600, "test_words": 128, "evaluate_every": 300, "sampler": SAMPLER}
LEARN, CERTIFY, THEORY = 20.0, 2.0, 5.0  # processor seconds of `learn`, of a certificate, and of a verdict of theory
SEARCH = Budget(seconds=2.0, words=20_000, length=500, random_words=64)
UNKNOWN = "unknown"
_ROUND = 39  # one language of each alphabet size and class
_SEED = 1 << 20  # of the test words

# One layer over letters whose read-out sees the state, so that it has tables and can be certified.
_STATE: dict[str, Any] = {"connection": "chain", "normalisation": "none", "layer_norm": False, "heads": 4, "block": 4}
_DELTA: dict[str, Any] = {"reads": "state", "conv": 0, "neg_eigval": True, "expand_v": 1.0}


def _within_family(family: str) -> Callable[[MooreMachine], tuple[str, str]]:
    """Return a function for the verdict of a family on layers that it contains.

    The delta rules, RWKV-7 and SLiCE below act by matrices of 4 or 5 dimensions, which "block(8)" contains.
    """

    def theory(machine: MooreMachine) -> tuple[str, str]:
        answer = represent(machine, family, short_words=False).answer
        return NO if answer == "no" else NOT_EXCLUDED, f"{family}: {answer}; the layer is a part of that family"

    return theory


def _s5(machine: MooreMachine) -> tuple[str, str]:
    verdict = say(machine, "s5")
    return verdict.answer, verdict.why


def _undecided(_: MooreMachine) -> tuple[str, str]:
    return UNKNOWN, "no family of this library contains the layer"


def _selective(layer: str, **options: Any) -> dict[str, Any]:
    return {"layer": layer, "options": options, **_STATE}


ARMS: dict[str, Arm] = {
    "onehot": COMMON["onehot"]._replace(title="one-hot"),
    "released": COMMON["released"]._replace(title="block(8)"),
    "householder_1": COMMON["householder_1"]._replace(title="Householder(1)"),
    "householder_2": COMMON["householder_2"]._replace(title="Householder(2)"),
    "diagonal": COMMON["diagonal"]._replace(title="diagonal"),
    "s4d": COMMON["s4d"],
    "lru": COMMON["lru"]._replace(title="LRU"),
    "s5": Arm("S5", {"layer": "s5"}, _s5),
    "rwkv4": COMMON["rwkv4"],
    "gated_deltanet": Arm("GatedDeltaNet", _selective("gated_deltanet", **_DELTA), _within_family("block(8)")),
    "deltaproduct": Arm("DeltaProduct", _selective("deltaproduct", **_DELTA, factors=2), _within_family("block(8)")),
    "kda": Arm("KDA", _selective("kda", **_DELTA), _within_family("block(8)")),
    "mamba2": Arm("Mamba-2", _selective("mamba2", reads="state", conv=0), _within_family("diagonal[0,1]")),
    "rwkv7": Arm("RWKV-7", _selective("rwkv7", reads="state"), _within_family("block(8)")),
    "pd_ssm": Arm("PD-SSM", _selective("pd_ssm", reads="state"), _undecided),
    "slice": Arm("SLiCE", _selective("slice"), _within_family("block(8)")),
    "mingru": Arm("minGRU", _selective("mingru") | {"block": 16}, _within_family("diagonal[0,1]")),
    "slstm": Arm("sLSTM", _selective("slstm", conv=0) | {"embedding_dim": 16}, _undecided),
}


def languages(folder: Path, size: int) -> list[str]:
    """Return a stratified sample in an order in which alphabet sizes and classes take turns."""
    ordered = names(folder, seed=33)
    rounds = [ordered[i : i + _ROUND] for i in range(0, 8 * _ROUND, _ROUND)]  # a class has 8 languages at least
    return [each[13 * (i % 3) + i % 13] for each in rounds for i in range(_ROUND)][:size]


def language(name: str) -> MooreMachine:
    """Return the automaton of a language over one letter of each class of letters that act alike."""
    machine = from_mlregtest(name)
    action = Action.of(machine)
    return MooreMachine(action.letters.astype(np.int64), machine.outputs, machine.start, action.names)


def main(
    folder: Annotated[Path, typer.Argument(help="the folder of .att files")],
    sample: Annotated[int, typer.Option(min=1, help="languages")] = 96,
    seeds: Annotated[int, typer.Option(min=1, help="runs of each language and layer")] = 2,
    minutes: Annotated[float, typer.Option(min=0, help="processor minutes after which no run starts")] = 75.0,
    part: Annotated[str, typer.Option(help="i/n: of the languages, the i-th and each n-th after it")] = "1/1",
    rows: Annotated[list[Path] | None, typer.Option(help="results of other parts, taken over")] = None,
) -> None:
    """Run what is due and write experiments/results/mlregtest_leaderboard.json after each run, and the figure last."""
    torch.set_num_threads(1)
    os.environ[FOLDER] = str(folder)
    learn("task:parity")  # compiles what is compiled once
    first, parts = map(int, part.split("/"))
    end, drawn = time.process_time() + 60 * minutes, languages(folder, sample)[first - 1 :: parts]
    described = known_rows(board.NAME, "languages")
    known = {row["name"] for row in described}
    keys = ("name", "arm", "seed")
    by_cell = {tuple(run[key] for key in keys): run for run in known_rows(board.NAME, parts=rows or [])}
    known_runs = [*by_cell.values()]
    for name in dict.fromkeys(run["name"] for run in known_runs):
        if name not in known:
            known.add(name)
            described.append(describe(name))

    def plan() -> Iterator[tuple[str, str, int]]:
        for seed in range(seeds):
            for name in drawn:
                for arm in ARMS:
                    if time.process_time() > end:
                        return
                    yield name, arm, seed

    def run(name: str, arm: str, seed: int) -> Row:
        if name not in known:
            known.add(name)
            described.append(describe(name))
        return run_one(name, arm, seed)

    def write(runs: list[Row]) -> None:
        protocol = {**PROTOCOL, "lengths": LENGTHS, "words": WORDS, "learn_seconds": LEARN, "certify_seconds": CERTIFY}
        asked = {"languages": sample, "seeds": seeds, "arms": {name: arm.title for name, arm in ARMS.items()}}
        results = {
            "asked": asked,
            "protocol": protocol | {"search_seconds": SEARCH.seconds},
            "languages": described,
            "runs": runs,
        }
        results_io.write("mlregtest_leaderboard", results, COMMAND)

    try:
        write(run_due(plan(), keys, known_runs, run, write))
    finally:
        board.figure(results_io.RESULTS / f"{board.NAME}.svg")


def describe(name: str) -> Row:
    """Return a language's class and sizes, the accuracy of a constant answer, and what theory says of each layer."""
    machine, parsed = language(name), parse_name(name)
    test = words(machine, make_sampler(SAMPLER, machine))
    constant = {f"constant_{length}": max(shares_of(test, length).values()) for length in LENGTHS}
    theory = {arm: verdict(machine, arm) for arm in ARMS}
    sizes = {"letters": parsed.letters, "distinct_letters": len(machine.alphabet), "states": machine.n_states}
    return {"name": name, "class": parsed.kind, **sizes, **constant, "theory": theory}


def verdict(machine: MooreMachine, arm: str) -> dict[str, str]:
    """Return the answer of theory for one layer, within a limit of processor time."""
    try:
        with within(THEORY):
            answer, _ = ARMS[arm].theory(machine)
    except (OutOfTime, Fsa2LrnnError):
        answer = UNKNOWN
    return {"answer": answer}


def run_one(name: str, arm: str, seed: int) -> Row:
    """Return one run: trained, tested at both lengths, searched for a counterexample, and certified."""
    begun, machine = time.process_time(), language(name)
    model, row = (_learned if ARMS[arm].changes is None else _trained)(machine, arm, seed)
    row = {"name": name, "arm": arm, "seed": seed, **row, "training_seconds": _since(begun)}
    if model is not None:
        test = words(machine, make_sampler(SAMPLER, machine), model.outputs)
        for accuracy in evaluate(model, test, _SEED, LENGTHS, WORDS):
            row |= {f"last_{accuracy.length}": accuracy.last, f"whole_{accuracy.length}": accuracy.whole}
        row |= _verified(model, machine) if not row["proved"] else {"fails_at": None, "certified": None}
    return row | {"processor_seconds": _since(begun), "torch": torch.__version__}


def _since(begun: float) -> float:
    return round(time.process_time() - begun, 2)


def _trained(machine: MooreMachine, arm: str, seed: int) -> tuple[LRNN | None, Row]:
    changes = ARMS[arm].changes
    assert changes is not None
    with TemporaryDirectory() as folder:
        source = Path(folder) / "machine.json"
        source.write_text(machine.to_json(), encoding="utf-8")
        try:
            outcome = train(preset("quick", str(source), seed=seed, **PROTOCOL, **changes), Path(folder) / "run")
        except Diverged:
            return None, {"end": "diverged", "proved": False}
    if outcome.end == "interrupted":
        raise KeyboardInterrupt
    return outcome.model, {"end": outcome.end, "proved": False}


def _learned(machine: MooreMachine, arm: str, seed: int) -> tuple[LRNN | None, Row]:  # noqa: ARG001 - as `_trained`
    learned, _ = learn_within(machine, seed, LEARN)
    if learned is None:
        return None, {"end": "out of time", "proved": False}
    return learned.model, {"end": "learned", "proved": learned.is_proved}


def _verified(model: LRNN, machine: MooreMachine) -> Row:
    """Return the length of the shortest counterexample of a search, and the certified length of models with tables."""
    answer = falsify(model, machine, SEARCH)
    row: Row = {"fails_at": len(answer.word) if isinstance(answer, Refuted) else None, "certified": 0}
    if not model.is_switched:
        return row | {"certified": None, "why": "no tables"}
    try:
        with within(2 * CERTIFY), warnings.catch_warnings():
            warnings.simplefilter("ignore", SearchCutShort)
            certificate = certify(LRNN.from_affine(switched(model)), machine, seconds=CERTIFY)
    except (OutOfTime, Fsa2LrnnError) as error:
        return row | {"why": f"{type(error).__name__}: {str(error)[:120]}"}
    return row | {"certified": certificate.horizon, "proved": certificate.horizon is None}


if __name__ == "__main__":
    script.run(main)
