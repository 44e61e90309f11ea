"""`fsa2lrnn train`: train networks on an automaton's words: one run per seed, with progress and two accuracies."""

from __future__ import annotations

import json
import statistics
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fsa2lrnn.cli import console, options
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.files import check_folder, write_atomically
from fsa2lrnn.layers import LAYERS, TRAINED, LayerRow

if TYPE_CHECKING:
    from fsa2lrnn.training.seeds import FinalAccuracy, RunPlan
    from fsa2lrnn.training.settings import Settings
    from fsa2lrnn.training.train import Progress

_CONSTANT = 0.95  # share of words above which a constant answer gets a warning
_SECONDS = 5.0  # of processor time, for what theory says of the layer and the machine


def train(
    source: options.Source,
    output: Annotated[Path, typer.Option("--output", "-o", help="the folder of the runs; a second call resumes them")],
    preset: Annotated[
        options.Preset, typer.Option(help="the settings of the paper's code, or those of a quick trial")
    ] = "paper",
    seeds: Annotated[str, typer.Option(help="one run per seed, in parallel on all cores: 0,1,2")] = "0",
    steps: Annotated[int | None, typer.Option(min=1, help="number of updates; by default the preset's")] = None,
    layer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"{', '.join(TRAINED)}, or module:Class for a user-defined layer"),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="MODEL", help="start from the network and the weights of this .safetensors file"
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="a setting, such as layers=3, sampler=balanced or device=cuda; repeatable",
        ),
    ] = None,
    lengths: options.LengthsOption = "40,100,500,5000,50000",
    words: options.WordsOption = 10_000,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="the most letters per length; long words are evaluated in smaller numbers")
    ] = 20_000_000,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="write events for TensorBoard too")] = False,
    wandb: Annotated[
        bool, typer.Option("--wandb", help="log to Weights & Biases too; WANDB_MODE=offline keeps it in the folder")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Train networks on an automaton's words, and evaluate them on longer words."""
    if start is not None and layer is not None:
        raise UnsupportedFormat(f"--layer {layer}: --from takes the network of {start}, so leave one of the two out")
    named = {"steps": steps, "layer": layer, "start": start and str(start)}
    changed = options.assignments(changes or []) | {name: x for name, x in named.items() if x is not None}
    numbers, test_lengths = options.whole_numbers(seeds, "--seeds"), options.whole_numbers(lengths, "--lengths")
    check_folder(output)

    from fsa2lrnn.training.seeds import RunPlan

    write_to = tuple(name for name, is_set in (("tensorboard", tensorboard), ("wandb", wandb)) if is_set)
    plan = RunPlan(True, write_to, test_lengths, words, max_tokens)
    if code := train_seeds(source, preset, output, numbers, changed, plan, as_json):
        raise typer.Exit(code)


def train_seeds(
    task: str, name: str, out: Path, seeds: Sequence[int], changes: dict[str, object], plan: RunPlan, as_json: bool,
) -> int:  # fmt: skip
    """Train `task` with the preset `name` and `changes`, and return the exit code.

    It is 0, 1 if a run diverged, and 130 if interrupted.
    """
    from fsa2lrnn.training.seeds import run_seeds
    from fsa2lrnn.training.settings import preset

    settings = preset(name, task, **changes)
    for sentence in (_chance_level(settings), _theory(settings)):
        console.say(sentence)
    console.note("training")
    results = run_seeds(settings, seeds, out, plan, partial(_tell, settings))
    document = {"task": task, "preset": name, "settings": json.loads(settings.to_json()), "seeds": results}
    accuracies = [result.get("paper_protocol", {}).get("accuracy") for result in results]
    document["paper_protocol_mean"] = None if None in accuracies else statistics.mean(accuracies)
    write_atomically(out / "result.json", (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
    if as_json:
        console.emit_json(document)
    else:
        _print(document, out)
    ends = {result["end"] for result in results}
    return options.INTERRUPTED if "interrupted" in ends else int("diverged" in ends)


def _theory(settings: Settings) -> str:
    """Return what theorems say of the trained layers and the machine, as far as a few seconds decide it."""
    if settings.start:
        return "theory: the layers are those of the model that training starts from; `explain` says what each kind can"
    from fsa2lrnn.automata.monoid import classify
    from fsa2lrnn.export.in_use import decide, say
    from fsa2lrnn.families import represent

    def is_set(row: LayerRow) -> bool:
        """Return whether a row is that of the layer with this setting, such as neg_eigval=true, and it is set."""
        return bool(row.setting) and options.assignments([row.setting]).items() <= settings.options.items()

    rows = [row for row in LAYERS.values() if row.trained_by == settings.layer]
    row = next(filter(is_set, rows), None) or next((row for row in rows if not row.setting), None)
    if settings.layer == "slice":
        forms = {"diagonal": "slice-diagonal", "hadamard": "slice-hadamard", "sparse": "slice-sparse"}
        row = LAYERS[forms.get(str(settings.options.get("form")), "slice")]
    is_one, answer, why = settings.layers == 1 and not settings.token_shift, "unknown", ""
    machine, limit = settings.machine(), Deadline.of(_SECONDS)
    with suppress(BudgetExceeded), limited(limit):
        if settings.layer == "block" and is_one:
            answer, why = represent(machine, f"block({settings.block})").answer, f"blocks of {settings.block}"
        elif row is not None and row.decided_as:
            found = decide(machine, classify(machine, max_seconds=limit.share(0.5)), max_seconds=limit)[row.decided_as]
            answer, why = (
                found.one if is_one else found.stack,
                ", ".join(filter(None, (found.why.rstrip("."), found.theorem))),
            )
        elif row is not None and row.family and is_one:
            verdict = say(machine, row.name)
            answer, why = verdict.answer, verdict.why
    what = f"{'one layer' if is_one else 'a stack of layers'} of {row.title if row else settings.layer}"
    if answer == "no":
        because = f" ({why})" if why else ""
        return f"theory: {what} cannot represent the machine{because}: expect chance beyond the trained length"
    undecided = ", or not: it is not decided"
    return f"theory: {what} can represent the machine{', if it is large enough' if answer == 'yes' else undecided}"


def _chance_level(settings: Settings) -> str:
    """Return the shares of words on which one constant output is right; warn if it is over 95 % of them."""
    from fsa2lrnn.symbols import show
    from fsa2lrnn.training.data import make_sampler, shares_of, words

    machine = settings.machine()
    drawn = words(machine, make_sampler(settings.sampler, machine, settings.task))
    best = {
        length: max(shares_of(drawn, length).items(), key=lambda pair: pair[1])
        for length in (settings.length, settings.test_length)
    }
    for length, (output, share) in best.items():
        if share > _CONSTANT:
            remedy = "--set sampler=balanced draws accepted and rejected words" if settings.sampler != "balanced" else (
                "no accuracy at this length says that anything was learned")  # fmt: skip
            warnings.warn(
                f"the answer {show(output)!r} alone is right on {100 * share:.4g} % of the words of {length} letters "
                f"that the sampler {settings.sampler!r} draws: {remedy}", stacklevel=2,
            )  # fmt: skip
            break
    levels = (f"{share:.3f} at length {length:,}" for length, (_, share) in best.items())
    return f"chance level, the best constant answer: {', '.join(levels)}"


def _tell(settings: Settings, event: Progress | FinalAccuracy) -> None:
    """Print an evaluation during training, or the accuracy of the last checkpoint at one length, on standard error."""
    from fsa2lrnn.training.seeds import FinalAccuracy

    if isinstance(event, FinalAccuracy):
        accuracy = event.accuracy
        facts = f"length {accuracy.length:,}: {accuracy.last:,} of {accuracy.words:,} right at the end"
    elif event.record:
        right = "" if event.accuracy is None else f", {event.accuracy:.3f} at length {settings.test_length}"
        left = (event.steps - event.step) / max(event.steps_per_second, 1e-9)
        facts = (
            f"step {event.step:,} of {event.steps:,}, {event.steps_per_second:.1f} steps/s, loss {event.loss:.4f}"
            f"{right}, at most {left:,.0f} s left"
        )
    else:
        console.note(f"seed {event.seed}: step {event.step:,} of {event.steps:,}")
        return
    console.say(f"seed {event.seed}: {facts}")


def _print(document: console.Document, out: Path) -> None:
    """Print how each run ended, and its accuracies by the paper's protocol and on fresh words."""
    results = document["seeds"]
    ends, accuracies = (Table(title_justify="left", title_style="bold", box=None, pad_edge=False) for _ in range(2))
    ends.title, accuracies.title = document["task"], "the last checkpoint on fresh words, with 95 % intervals"
    for name in ("seed", "end", "best accuracy on the way (the paper's protocol)"):
        ends.add_column(name, overflow="fold")
    for name in ("seed", "length", "words", "last output right", "whole word right"):
        accuracies.add_column(name, no_wrap=True)
    for result in results:
        best = result.get("paper_protocol", {})
        best_text = "" if best.get("accuracy") is None else f"{best['accuracy']:.4f} at step {best['step']:,}"
        end = f"{result['end']} at {result['step']:,}" if "step" in result else result.get("error", result["end"])
        ends.add_row(str(result["seed"]), end, best_text)
        for row in result.get("last_checkpoint", []):
            shares = share(row["last_position"]), share(row["whole_word"])
            accuracies.add_row(str(result["seed"]), f"{row['length']:,}", f"{row['words']:,}", *shares)
    console.out.print(ends)
    if document["paper_protocol_mean"] is not None:
        console.out.print(f"mean over {len(results)}: {document['paper_protocol_mean']:.4f}")
    if accuracies.row_count:
        console.out.print("", accuracies)
    console.out.print(f"\nmodels, metrics and results: {out}")


def share(result: console.Document) -> str:
    """Return an accuracy with its interval as text.

    >>> share({"accuracy": 1.0, "interval": (0.99962, 1.0)})
    '1.0000 [0.9996, 1.0000]'
    """
    low, high = result["interval"]
    return f"{result['accuracy']:.4f} [{low:.4f}, {high:.4f}]"
