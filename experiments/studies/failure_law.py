"""Train many small models and predict the length of the first failure from each model's tables.

`python -m experiments.studies.failure_law --minutes 15`, three seconds per model. A call continues where the last one
stopped. The settings of model i are drawn from the seed i, each factor independently of the others, so that models that
differ in one factor are comparable on average.

For each model: its certified length N, the shortest counterexample that `falsify` finds, the same after rounding all
weights to bfloat16, and what the law reads from the tables. Let c(q) be the mean state of random words that lead the
automaton to q. Then

- `residual` is the greatest norm of e(q, a) = A(a) c(q) + v(a) - c(delta(q, a)), the drift per letter from the image of
  the automaton that the means c would be if all e were zero;
- `loss_k` is the share of the margin of a state that e costs k letters later, to first order, for random words: the
  root mean square of -grad m(q_k) A(a_k) ... A(a_1) e / m(q_k), where m is the margin of the read-out;
- `worst_k` is the greatest such share among those words, and `radius` the least m(q) / |grad m(q)|.

The law, chosen on the first 149 models: log10 t = alpha + beta log10(radius / residual) + gamma log10(worst_0). Its
constants are fitted on those models and judged on the later ones (`experiments/law_tables.py`). It is compared with
tau, the number of letters after which shares `worst_k` would add up to the whole margin, continued geometrically.
"""

from __future__ import annotations

import copy
import math
import random
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due, within
from experiments.studies.random_languages.machines import drawn
from fsa2lrnn import certify, falsify
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.checker.nodes import CountedAutomaton
from fsa2lrnn.errors import Fsa2LrnnError, OutOfTime
from fsa2lrnn.nn.affine import EPS, SwitchedAffine
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.training.settings import Settings, preset
from fsa2lrnn.training.train import Diverged, train
from fsa2lrnn.verdicts import Refuted
from fsa2lrnn.verification.certify.work_budget import SearchCutShort
from fsa2lrnn.verification.falsify import Budget
from fsa2lrnn.verification.specification import specification_of

NAME = "failure_law"
COMMAND = "python -m experiments.studies.failure_law"
CERTIFY = 1.0  # processor seconds
SEARCH = Budget(seconds=0.7, words=20_000, length=1_000, random_words=64)
LAGS = (0, 1, 2, 4, 8, 16, 32)  # k of `loss_k`
_WORDS, _BURN = 256, (4, 17)  # random words, and the lengths whose states are averaged
_FAR = 200.0  # letters: the greatest tau

_DELTA = {"reads": "state", "conv": 0, "neg_eigval": True, "expand_v": 1.0}
LAYERS: dict[str, dict[str, Any]] = {
    "block(8)": {"block": 8},
    "Householder(1)": {"block": 8, "layer": "householder", "factors": 1, "normalisation": "none"},
    "Householder(2)": {"block": 8, "layer": "householder", "factors": 2, "normalisation": "none"},
    "diagonal": {"block": 1, "normalisation": "clip", "p": 1.0},
    "GatedDeltaNet": {
        "block": 4, "layer": "gated_deltanet", "options": _DELTA, "connection": "chain", "normalisation": "none",
        "layer_norm": False,
    },
}  # fmt: skip
_TASKS = ("task:parity", "task:sum_mod(3)", "task:sum_mod(5)", "task:even_pair(3)", "task:mod_arith(2)")
_REGEXES = ("regex:(ab)*", "regex:(a|b)*abb", "regex:(aa|bb)*")
SOURCES = (*_TASKS, *_REGEXES, *(f"random:{i}" for i in range(6)))
FACTORS: dict[str, tuple[Any, ...]] = {
    "source": SOURCES,
    "layer": tuple(LAYERS),
    "steps": (75, 150, 300, 600),
    "length": (15, 30, 60),
    "width": (16, 32, 64),
    "weight_decay": (0.0, 0.01, 0.1),
    "dtype": ("float32", "float32", "float64"),
}


def main(
    models: Annotated[int, typer.Option(min=1, help="how many models")] = 400,
    minutes: Annotated[float, typer.Option(min=0, help="minutes after which no model is begun")] = 15.0,
) -> None:
    """Run what is due and write experiments/results/failure_law.json after each model."""
    torch.set_num_threads(1)

    def write(rows: list[Row]) -> None:
        protocol = {"certify_seconds": CERTIFY, "search_seconds": SEARCH.seconds, "search_length": SEARCH.length}
        results_io.write("failure_law", {"asked": models, "protocol": protocol, "runs": rows}, COMMAND)

    write(run_due([(i,) for i in range(models)], ("seed",), known_rows(NAME), run_one, write, minutes))


def machine_of(source: str) -> MooreMachine:
    """Return the machine of an entry of `SOURCES`."""
    kind, _, number = source.partition(":")
    return drawn(int(number)).machine if kind == "random" else MooreMachine.from_source(source)


def drawn_factors(seed: int) -> dict[str, Any]:
    """Return the factors of a model."""
    generator = random.Random(seed)
    return {name: generator.choice(values) for name, values in FACTORS.items()}


def settings(row: Row, task: str) -> Settings:
    """Return the settings of training of a row's factors."""
    changes = {**LAYERS[row["layer"]]}
    changes |= {"heads": row["width"] // changes["block"]}
    return preset(
        "quick", task, seed=row["seed"], steps=row["steps"], batch=32, length=row["length"], test_length=row["length"],
        test_words=128, evaluate_every=row["steps"], stop_at=None, optimiser="adamw", learning_rate=2e-3,
        weight_decay=row["weight_decay"], dtype=row["dtype"], **changes,
        sampler="task" if row["source"].startswith("task:") else "balanced",
    )  # fmt: skip


def run_one(seed: int) -> Row:
    """Return the row of one model: trained, searched for a counterexample, certified, and its drift measured."""
    begun, row = time.process_time(), {"seed": seed, **drawn_factors(seed)}
    machine = machine_of(row["source"])
    with TemporaryDirectory() as folder:
        task = row["source"]
        if task.startswith("random:"):
            task = str(Path(folder) / "machine.json")
            Path(task).write_text(machine.to_json(), encoding="utf-8")
        try:
            outcome = train(settings(row, task), Path(folder) / "run")
        except Diverged:
            return row | {"end": "diverged"}
    if outcome.end == "interrupted":
        raise KeyboardInterrupt
    row |= {"end": outcome.end, "accuracy": outcome.records[-1]["word_accuracy"]}
    tables = switched(outcome.model)
    model = LRNN.from_affine(tables)
    row |= {"fails_at": shortest(model, machine)}
    row |= {"fails_at_bfloat16": shortest(copy.deepcopy(model).to(torch.bfloat16), machine)}
    try:
        with within(3 * CERTIFY), warnings.catch_warnings():
            warnings.simplefilter("ignore", SearchCutShort)
            row["certified"] = certify(model, machine, ignore="lacked", seconds=CERTIFY).horizon
    except (OutOfTime, Fsa2LrnnError) as error:
        row |= {"certified": None, "why": f"{type(error).__name__}: {str(error)[:80]}"}
    target = specification_of(tables, machine, "lacked").target
    row |= {name: float(f"{value:.4g}") for name, value in drift(tables, target, seed).items()}
    return row | {"processor_seconds": round(time.process_time() - begun, 2)}


def shortest(model: LRNN, machine: MooreMachine) -> int | None:
    """Return the length of the shortest counterexample that the search finds, None without one."""
    answer = falsify(model, machine, SEARCH, ignore="lacked")
    return len(answer.word) if isinstance(answer, Refuted) else None


def drift(tables: SwitchedAffine, target: CountedAutomaton, seed: int) -> dict[str, float]:
    """Return what the law reads from the tables, as the module's docstring defines it."""
    A, v, x0 = (x.detach().double() for x in (tables.A, tables.v, tables.x0))
    generator = np.random.default_rng(seed)
    letters, states = random_words(target, _WORDS, _BURN[1] + 1, generator)
    x, sums = x0.expand(_WORDS, *x0.shape), torch.zeros(target.delta.shape[1], *x0.shape).double()
    counts = torch.zeros(len(sums)).double()
    for k in range(_BURN[1]):
        x = torch.einsum("nhij,nhj->nhi", A[letters[:, k]], x) + v[letters[:, k]]
        if k >= _BURN[0] - 1:
            reached = torch.nn.functional.one_hot(torch.from_numpy(states[:, k + 1]), len(sums)).double()
            sums, counts = sums + torch.einsum("nq,nhi->qhi", reached, x), counts + reached.sum(0)
    known = (counts > 0).numpy()
    c = sums / torch.clamp(counts, min=1)[:, None, None]
    margins, slopes = margins_of(tables, target, c)
    counted = known & target.answerable & (margins > 0).numpy()
    norms = slopes.flatten(1).norm(dim=1)
    # e(q, a) for the transitions between states that random words reach
    e = torch.einsum("ahij,qhj->aqhi", A, c) + v[:, None] - c[torch.from_numpy(target.delta)]
    used = torch.from_numpy(known[None] & known[target.delta] & target.coaccessible[target.delta])
    sizes = e.flatten(2).norm(dim=2)[used]
    result = {"residual": float(sizes.max()) if len(sizes) else math.nan}
    result["wrong_means"] = float((known & target.answerable & (margins <= 0).numpy()).sum())
    result["radius"] = float((margins / norms)[torch.from_numpy(counted)].min()) if counted.any() else math.nan
    # the share of the margin that e costs k letters later
    letters, states = random_words(target, 4 * _WORDS, LAGS[-1] + 1, generator, anywhere=known)
    d = e[letters[:, 0], states[:, 0]]
    for k in range(LAGS[-1] + 1):
        if k:
            d = torch.einsum("nhij,nhj->nhi", A[letters[:, k]], d)
        if k in LAGS:
            q = states[:, k + 1]
            some = torch.from_numpy(counted[q])
            share = -(slopes[q] * d).flatten(1).sum(1)[some] / margins[q][some]
            result[f"loss_{k}"] = float(share.square().mean().sqrt()) if len(share) else math.nan
            result[f"worst_{k}"] = float(share.max()) if len(share) else math.nan
    return result


def random_words(
    target: CountedAutomaton,
    words: int,
    length: int,
    generator: np.random.Generator,
    anywhere: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return random letters, (words, length), and the states on the way, (words, length + 1).

    Letters after which no output counts any more are left out; words begin at the start, or in one of `anywhere`.
    """
    states = np.full((words, length + 1), target.start)
    if anywhere is not None:
        states[:, 0] = generator.choice(np.flatnonzero(anywhere), words)
    letters, allowed = np.zeros((words, length), np.int64), target.coaccessible[target.delta]
    for k in range(length):
        drawn = generator.random((words, len(target.delta))) * allowed[:, states[:, k]].T
        letters[:, k] = drawn.argmax(1)
        states[:, k + 1] = target.delta[letters[:, k], states[:, k]]
    return letters, states


def margins_of(tables: SwitchedAffine, target: CountedAutomaton, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return the margin of the read-out at each mean state, (|Q|,), and its gradient, (|Q|, H, b)."""
    x, readout = c.clone().requires_grad_(), tables.readout
    W1, b1, W2, b2 = (readout.W1.double(), readout.b1.double(), readout.W2.double(), readout.b2.double())
    y = x.flatten(1)
    if readout.norm_weight is not None and readout.norm_bias is not None:
        weight, bias = readout.norm_weight.double(), readout.norm_bias.double()
        y = torch.nn.functional.layer_norm(y, y.shape[1:], weight, bias, EPS)
    logits = torch.relu(y @ W1.T + b1) @ W2.T + b2
    expected = torch.from_numpy(np.where(target.answerable, target.expected, 0))[:, None]
    rival = logits.scatter(1, expected, -math.inf).amax(1)
    margin = logits.gather(1, expected)[:, 0] - rival
    (slope,) = torch.autograd.grad(margin.sum(), x)
    return margin.detach(), slope


def tau(row: Row) -> float:
    """Return the number of letters whose worst drifts add up to the margin, at most 200.

    >>> [tau({f"worst_{k}": share for k in LAGS}) for share in (0.1, 0.0)]
    [10.0, 200.0]
    """
    losses = np.maximum([row[f"worst_{k}"] for k in LAGS], 0.0)
    per_letter = np.interp(np.arange(LAGS[-1] + 1), LAGS, losses)
    total = np.cumsum(per_letter)
    if total[-1] >= 1:
        k = int(np.argmax(total >= 1 - 1e-9))
        return float(k + 1)
    last, before = losses[-1], losses[-2]
    if last <= 0 or before <= 0:
        return _FAR
    ratio, missing = (last / before) ** (1 / (LAGS[-1] - LAGS[-2])), 1 - total[-1]
    if abs(ratio - 1) < 1e-6:
        more = missing / last
    else:
        inside = 1 + missing * (ratio - 1) / (last * ratio)
        more = math.log(inside) / math.log(ratio) if inside > 0 else _FAR
    return float(min(len(per_letter) + more, _FAR))


if __name__ == "__main__":
    script.run(main)
