"""Learned and constructed models of one machine side by side.

All models read the same fresh words, so that they differ in nothing but themselves. The machine compiled into exact
weights stands among them as "constructed".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.table import Table

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn.network import Network
from fsa2lrnn.optional import require
from fsa2lrnn.training.data import make_sampler, words
from fsa2lrnn.training.evaluate import LENGTHS, LETTERS, WORDS, check_amount, evaluate

_APART = 1.03  # by what factor of the length neighbouring curves are shifted in a plot
_MARKS = "osD^vPX*<>"
CONSTRUCTED = "constructed"


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
    """Accuracies of models of `source` and of its constructed one, over lengths, on the same words, as a JSON object.

    `machine` is that of `source`, by default as it is read without further letters.

    Raises `UnsupportedFormat` if a model's letters or outputs are not the machine's, or its name is "constructed", and
    for more words than can be meant.
    """
    check_amount(lengths, n_words, letters)
    if CONSTRUCTED in models:
        raise UnsupportedFormat(f"{CONSTRUCTED!r} is the name of the compiled machine: give the model another one")
    machine = machine or MooreMachine.from_source(source)
    drawn = make_sampler(sampler, machine, source)
    document: dict[str, Any] = {"source": source, "sampler": sampler, "seed": seed, "models": {}}
    for name, model in {**models, CONSTRUCTED: compile_machine(machine)}.items():
        if model.alphabet != machine.alphabet:
            raise UnsupportedFormat(
                f"model {name!r} reads {model.alphabet} and {source} {machine.alphabet}: take models of one machine"
            )
        found = evaluate(model, words(machine, drawn, model.outputs, model.device), seed, lengths, n_words, letters)
        document["models"][name] = {
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "lengths": [accuracy.to_json() for accuracy in found],
        }
    return document


def table(document: dict[str, Any]) -> Table:
    """Whole words and last outputs right, a column a length."""
    lengths = [found["length"] for found in next(iter(document["models"].values()))["lengths"]]
    shown = Table("model", "parameters", "right", *(f"{length:,}" for length in lengths), title=document["source"])
    for name, model in document["models"].items():
        for i, (label, key) in enumerate((("last output", "last_position"), ("whole word", "whole_word"))):
            cells = [f"{found[key]['accuracy']:.4f}" for found in model["lengths"]]
            shown.add_row(*((name, f"{model['parameters']:,}") if i == 0 else ("", "")), label, *cells)
    return shown


def matplotlib() -> ModuleType:
    """The package that draws. Raises `MissingPackage`."""
    return require("matplotlib", "plot", "a plot of accuracy over length")


def plot(document: dict[str, Any], path: Path) -> None:
    """Accuracy over length with 95 % intervals, a line a model, in the format of the path's ending.

    Raises `MissingPackage` without matplotlib.
    """
    mpl = matplotlib()
    from matplotlib.figure import Figure

    # Text stays text in SVG, and the same numbers give the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": document["source"]}):
        figure = Figure(figsize=(9, 3.5), layout="constrained")
        for axes, (title, key) in zip(
            figure.subplots(1, 2, sharey=True),
            (("last output right", "last_position"), ("whole word right", "whole_word")),
            strict=True,
        ):
            for i, (name, model) in enumerate(document["models"].items()):
                aside = _APART ** (i - (len(document["models"]) - 1) / 2)  # equal curves stand side by side
                lengths = [found["length"] * aside for found in model["lengths"]]
                middle = [found[key]["accuracy"] for found in model["lengths"]]
                low, high = zip(*(found[key]["interval"] for found in model["lengths"]), strict=True)
                axes.plot(lengths, middle, marker=_MARKS[i % len(_MARKS)], markersize=5, label=name)
                axes.fill_between(lengths, low, high, alpha=0.2)
            axes.set(title=title, xlabel="length of the word", xscale="log", ylim=(-0.03, 1.03))
            judged = sorted({found["length"] for model in document["models"].values() for found in model["lengths"]})
            if judged[-1] < 10 * judged[0]:  # else no power of ten is named, and all between overlap
                axes.set_xticks(named := sorted({judged[0], judged[-1]}), labels=[f"{length:,}" for length in named])
                axes.minorticks_off()
        figure.axes[0].set_ylabel("share of words")
        figure.axes[0].legend()
        figure.suptitle(document["source"])
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
