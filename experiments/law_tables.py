"""The law of the first failure and the comparison of certified training, as tables and a figure, from their results."""

from __future__ import annotations

import math
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import numpy as np

from experiments import results_io, script
from experiments.studies import certified_training, failure_law
from experiments.studies.failure_law import FACTORS, LAYERS, tau
from experiments.tables import markdown
from fsa2lrnn.draw.comparison import matplotlib
from fsa2lrnn.files import write_atomically

Row = dict[str, Any]
_FITTED = 149  # models on which the law was chosen and is fitted; it is judged on the later ones


class Fit(NamedTuple):
    """A law fitted on the first models: coefficients; log10 of predicted and true lengths, and rows, of later ones."""

    coefficients: np.ndarray
    predicted: np.ndarray
    true: np.ndarray
    rows: list[Row]

    @property
    def error(self) -> float:
        """The median of |log10(predicted / true)|."""
        return float(np.median(np.abs(self.predicted - self.true)))

    @property
    def correlation(self) -> float:
        """Spearman's rank correlation; NaN for a constant prediction."""
        ranks = [_ranks(values) for values in (self.predicted, self.true)]
        if min(np.ptp(each) for each in ranks) == 0:
            return math.nan
        return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks; equal values get the mean of theirs."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[group]


def _margin(row: Row) -> list[float]:
    return [math.log10(row["radius"] / row["residual"])]


def _first_loss(row: Row) -> list[float]:
    return [math.log10(max(row["worst_0"], 1e-6))]


LAW = "law: both"
PREDICTORS: dict[str, Callable[[Row], list[float]]] = {
    "the median": lambda _: [],
    "training steps, length, width": lambda row: [math.log10(row[name]) for name in ("steps", "length", "width")],
    "radius / residual": _margin,
    "worst_0": _first_loss,
    LAW: lambda row: _margin(row) + _first_loss(row),
    "tau": lambda row: [math.log10(tau(row))],
    "certified N + 1": lambda row: [math.log10(1 + row["certified"])],
}


def usable(rows: list[Row]) -> list[Row]:
    """Return the models with a counterexample, a certificate of finite length and a finite drift."""
    return [
        row
        for row in rows
        if row["end"] == "steps"
        and row["fails_at"] is not None
        and row["certified"] is not None
        and all(math.isfinite(row[name]) for name in row if name.startswith(("loss_", "worst_", "radius", "residual")))
        and row["radius"] > 0 < row["residual"]
    ]


def is_learned(row: Row) -> bool:
    """Return whether all test words of the training length were right at every letter."""
    return row["end"] == "steps" and row["accuracy"] == 1


def fitted(rows: list[Row], predictor: Callable[[Row], list[float]]) -> Fit:
    """Return the law with these predictors, fitted on the first models; without predictors, the median.

    >>> rows = [{"seed": seed, "fails_at": seed + 2} for seed in range(200)]
    >>> round(fitted(rows, lambda row: [math.log10(row["seed"] + 2)]).error, 6)
    0.0
    """
    later = [row for row in rows if row["seed"] >= _FITTED]
    order = [row for row in rows if row["seed"] < _FITTED] + later
    n = len(order) - len(later)
    X = np.array([[1.0, *predictor(row)] for row in order])
    y = np.log10([row["fails_at"] for row in order])
    is_median = X.shape[1] == 1
    coefficients = np.array([np.median(y[:n])]) if is_median else np.linalg.lstsq(X[:n], y[:n], rcond=None)[0]
    return Fit(coefficients, X[n:] @ coefficients, y[n:], later)


def law() -> str:
    """Return the held-out error of each predictor, and lengths by the factors of training."""
    rows = results_io.read(failure_law.NAME)["results"]["runs"]
    some, lines = usable(rows), list[list[str]]()
    learned = [row for row in some if is_learned(row)]
    for name, predictor in PREDICTORS.items():
        fits = [fitted(each, predictor) for each in (some, learned)]
        values = [value for fit in fits for value in (fit.error, fit.correlation)]
        cells = [f"{value:.2f}" if math.isfinite(value) else "–" for value in values]
        lines.append([name, *cells, ", ".join(f"{x:.2f}" for x in fits[1].coefficients)])
    heads = ["predictor", "all: error", "rank correlation", "learned: error", "rank correlation", "constants (learned)"]
    best = fitted(learned, PREDICTORS[LAW])
    inside = sum(
        math.log10(row["certified"] + 1) <= predicted <= math.log10(row["fails_at"])
        for row, predicted in zip(best.rows, best.predicted, strict=True)
    )
    n_open = sum(row["end"] == "steps" and row["fails_at"] is None for row in rows)
    text = (
        f"\n{len(rows)} models were trained; {len(some)} have a counterexample and a certified length, of which "
        f"{len(learned)} learned (all test words of the training length right). Fits exclude {n_open} models without a "
        f"known counterexample. Fits use the first {_FITTED} models; errors are medians of "
        f"|log10(predicted / true)| over the later ones. For {inside} of the {len(best.rows)} later models that "
        f"learned, the law's prediction lies between N + 1 and the shortest counterexample "
        f"(`experiments/results/{failure_law.NAME}.json`, by `{failure_law.COMMAND}`).\n\n"
    )
    return markdown(heads, lines) + text + _growth(rows)


def _growth(rows: list[Row]) -> str:
    lines: list[list[str]] = []
    of_task: dict[str, list[float]] = {}
    failing = [row for row in usable(rows) if is_learned(row)]
    for row in failing:
        of_task.setdefault(row["source"], []).append(math.log10(row["fails_at"]))
    beyond = {row["seed"]: math.log10(row["fails_at"]) - mean(of_task[row["source"]]) for row in failing}
    for factor in ("steps", "length", "width", "weight_decay", "dtype", "layer"):
        for value in dict.fromkeys(FACTORS[factor]):
            of = [row for row in rows if row[factor] == value]
            learned = [row for row in of if is_learned(row)]
            some = [beyond[row["seed"]] for row in learned if row["seed"] in beyond]
            against = f"{10 ** mean(some):.2f}" if some else "–"
            lines.append([f"{factor} = {value}", str(len(of)), str(len(learned)), *_medians(learned), against])
    both = [row for row in rows if is_learned(row) and row["dtype"] == "float32"]
    sooner = sum((row["fails_at_bfloat16"] or math.inf) < (row["fails_at"] or math.inf) for row in both)
    later = sum((row["fails_at_bfloat16"] or math.inf) > (row["fails_at"] or math.inf) for row in both)
    table = markdown(["factor", "models", "learned", "median N", "median counterexample", "÷ the task's mean"], lines)
    return table + (
        f"\nMedians are of the models that learned; a model without a counterexample counts as longer than any. The "
        "last column is the geometric mean of counterexamples' lengths divided by that of their tasks. After "
        f"rounding to bfloat16, {sooner} of the {len(both)} float32 models that learned fail at a shorter length, "
        f"{later} at a longer one.\n"
    )


def _medians(rows: list[Row]) -> list[str]:
    N = [row["certified"] for row in rows if row["certified"] is not None]
    fails = median(row["fails_at"] or math.inf for row in rows) if rows else math.nan
    return [f"{median(N):g}" if N else "–", f"{fails:g}" if math.isfinite(fails) else "none found" if rows else "–"]


def certified_training_table() -> str:
    """Return, by task and weight of the penalty, medians over seeds of accuracy, N and the shortest counterexample."""
    rows = results_io.read(certified_training.NAME)["results"]["runs"]
    lines: list[list[str]] = []
    for task, weight in dict.fromkeys((row["task"], row["weight"]) for row in rows):
        of = [row for row in rows if (row["task"], row["weight"]) == (task, weight) and row["end"] == "steps"]
        last = [f"{median(row[f'last_{length}'] for row in of):.3f}" for length in (40, 500)]
        each = ", ".join(f"{row['certified']}/{row['fails_at'] or '–'}" for row in of)
        lines.append([task.removeprefix("task:"), f"{weight:g}", str(len(of)), *last, *_medians(of), each])
    heads = ["task", "weight", "seeds", "right at 40", "right at 500", "median N", "counterexample", "N/counterexample"]
    return markdown(heads, lines) + (
        f"\nMedians over seeds; last column per seed (`experiments/results/{certified_training.NAME}.json`, by "
        f"`{certified_training.COMMAND}`).\n"
    )


def figure(path: Path) -> None:
    """Draw predicted against found lengths of the held-out models that learned, with certified lengths, as SVG.

    Raises `MissingPackage` without matplotlib.
    """
    mpl = matplotlib()
    from matplotlib.figure import Figure

    rows = [row for row in usable(results_io.read(failure_law.NAME)["results"]["runs"]) if is_learned(row)]
    fit = fitted(rows, PREDICTORS[LAW])
    with mpl.rc_context({"svg.hashsalt": failure_law.NAME}):  # the same numbers make the same file
        drawn = Figure(figsize=(7, 5.5), layout="constrained")
        axis = drawn.subplots()
        for i, layer in enumerate(LAYERS):
            of = np.array([row["layer"] == layer for row in fit.rows], bool)
            low = [row["certified"] + 1 for row in fit.rows if row["layer"] == layer]
            high = [row["fails_at"] for row in fit.rows if row["layer"] == layer]
            axis.vlines(10 ** fit.predicted[of], low, high, color=f"C{i}", linewidth=0.8)
            axis.plot(10 ** fit.predicted[of], high, "o", color=f"C{i}", markersize=4, label=layer)
        ends = [1, 10 ** max(fit.predicted.max(), fit.true.max())]
        axis.plot(ends, ends, color="grey", linewidth=0.8)
        axis.set(xscale="log", yscale="log", xlabel="predicted first failure, letters")
        axis.set(ylabel="letters: N + 1 (lower end) to the shortest counterexample (dot)")
        axis.legend(fontsize="small")
        buffer = BytesIO()
        drawn.savefig(buffer, format="svg", metadata={"Date": None})
    write_atomically(path, buffer.getvalue())


def main() -> None:
    """Draw experiments/results/failure_law.svg."""
    figure(results_io.RESULTS / f"{failure_law.NAME}.svg")


if __name__ == "__main__":
    script.run(main)
