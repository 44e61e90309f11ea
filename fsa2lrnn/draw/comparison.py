"""Compare learned models of one machine with each other and with the compiled model.

All models are evaluated on the same fresh words.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.lower import compile_machine
from fsa2lrnn.draw.figure import in_tex
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.network import Network
from fsa2lrnn.optional import require
from fsa2lrnn.training.data import make_sampler, shares_of, words
from fsa2lrnn.training.evaluate import LENGTHS, LETTERS, WORDS, check_amount, evaluate

_TICKS_APART = 1.8  # the least factor between two labelled lengths
_APART = 1.03  # the factor of the length by which neighbouring curves are shifted in a plot
_MARKS = "osD^vPX*<>"
COMPILED = "compiled"


def compare(
    source: str,
    models: Mapping[str, Network],
    sampler: str = "task",
    lengths: Sequence[int] = LENGTHS,
    n_words: int = WORDS,
    letters: int = LETTERS,
    seed: int = 0,
    machine: MooreMachine | None = None,
) -> dict[str, Any]:
    """Return the accuracies of models, the compiled model and the best constant answer per length, as a JSON object.

    The words come from `sampler` with `seed`: `n_words` per length, at most `letters` letters. `machine` is the target,
    by default read from `source`.

    Raises:
        UnsupportedFormat: for a model with other letters or outputs or the name "compiled", or too many words.
    """
    check_amount(lengths, n_words, letters)
    if COMPILED in models:
        raise UnsupportedFormat(f"{COMPILED!r} is the name of the compiled machine: give the model another one")
    machine = machine or MooreMachine.from_source(source)
    drawn = make_sampler(sampler, machine, source)
    shares = {length: shares_of(words(machine, drawn), length) for length in lengths}
    constant = [{"length": length, "accuracy": max(share.values())} for length, share in shares.items()]
    document: dict[str, Any] = {
        "source": source, "sampler": sampler, "seed": seed, "constant_answer": constant, "models": {}
    }  # fmt: skip
    for name, model in {**models, COMPILED: compile_machine(machine)}.items():
        if model.alphabet != machine.alphabet:
            raise UnsupportedFormat(
                f"model {name!r} reads {model.alphabet} and {source} {machine.alphabet}: take models of one machine"
            )
        fresh = words(machine, drawn, model.outputs, model.device)
        accuracies = evaluate(model, fresh, seed, lengths, n_words, letters)
        document["models"][name] = {
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "lengths": [accuracy.to_json() for accuracy in accuracies],
        }
    return document


def table_file(document: dict[str, Any], ending: str) -> str:
    """Return the accuracies with their 95 % intervals as CSV, or without them as a LaTeX table (`booktabs`).

    `document` is the result of `compare`, `ending` is ".csv" or ".tex".
    """
    keys, names = ("last_position", "whole_word"), ("last output right", "whole word right")
    if ending == ".csv":
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "length", *(part for name in names for part in (name, "from", "to"))])
        for name, model in document["models"].items():
            for result in model["lengths"]:
                shares = [share for key in keys for share in (result[key]["accuracy"], *result[key]["interval"])]
                writer.writerow([name, result["length"], *shares])
        return file.getvalue()
    lines = [
        "% \\usepackage{booktabs}",
        r"\begin{tabular}{lrrr}",
        r"\toprule",
        rf"model & length & {' & '.join(names)} \\",
    ]
    for name, model in document["models"].items():
        lines.append(r"\midrule")
        for result in model["lengths"]:
            shares = " & ".join(f"{result[key]['accuracy']:.4f}" for key in keys)
            lines.append(rf"{in_tex(name)} & {result['length']:,} & {shares} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _apart(lengths: Sequence[int]) -> list[int]:
    """Return lengths whose labels do not overlap on a logarithmic axis, including the smallest and the largest.

    >>> _apart([40, 60, 100, 500, 600])
    [40, 100, 600]
    """
    chosen = lengths[:1]
    for length in lengths[1:-1]:
        if length >= _TICKS_APART * chosen[-1] and _TICKS_APART * length <= lengths[-1]:
            chosen = [*chosen, length]
    return [*chosen, lengths[-1]] if len(lengths) > 1 else list(chosen)


def matplotlib() -> ModuleType:
    """Import `matplotlib`; raise `MissingPackage` if it is not installed."""
    return require("matplotlib", "plot", "a plot of accuracy over length")


def plot(document: dict[str, Any], path: Path) -> None:
    """Write a plot of accuracy over length, one line per model with 95 % intervals, in the format of the path's suffix.

    `document` is the result of `compare`. Raises `MissingPackage` if matplotlib is not installed.
    """
    mpl = matplotlib()
    from matplotlib.figure import Figure

    # Text stays text in SVG, and equal numbers give an identical file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": document["source"], "pdf.fonttype": 42}):
        figure = Figure(figsize=(10, 3.8), layout="constrained")
        for axes, (title, key) in zip(
            figure.subplots(1, 2, sharey=True),
            (("last output right", "last_position"), ("whole word right", "whole_word")),
            strict=True,
        ):
            for i, (name, model) in enumerate(document["models"].items()):
                aside = _APART ** (i - (len(document["models"]) - 1) / 2)  # so that equal curves do not overlap
                lengths = [result["length"] * aside for result in model["lengths"]]
                middle = [result[key]["accuracy"] for result in model["lengths"]]
                low, high = zip(*(result[key]["interval"] for result in model["lengths"]), strict=True)
                axes.plot(lengths, middle, marker=_MARKS[i % len(_MARKS)], markersize=5, label=name)
                axes.fill_between(lengths, low, high, alpha=0.2)
            axes.set(title=title, xlabel="length of the word", xscale="log", ylim=(-0.03, 1.03))
            lengths = sorted({result["length"] for each in document["models"].values() for result in each["lengths"]})
            apart = _apart(lengths)
            axes.set_xticks(apart, labels=[f"{length:,}" for length in apart])
            axes.minorticks_off()
        chance = [(result["length"], result["accuracy"]) for result in document["constant_answer"]]
        figure.axes[0].plot(*zip(*chance, strict=True), color="0.4", linestyle="--", label="best constant answer")
        figure.axes[0].set_ylabel("share of words")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right upper")
        figure.suptitle(document["source"])
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
