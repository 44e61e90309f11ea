"""The verbs for learned models: `train`, `compare`, `certify`, `repair` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsa2lrnn.cli import sources
from fsa2lrnn.cli.options import (
    Against,
    Columns,
    Init,
    JsonOption,
    LearnedModel,
    LearnedModels,
    Mode,
    ModelOutput,
    Preset,
    Sampler,
    SecondsOption,
    Source,
)
from fsa2lrnn.errors import UnsupportedFormat

app = typer.Typer()


@app.command("train")
def train_(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="the folder of the runs; called again, they go on")],
    preset: Annotated[Preset, typer.Option(help="settings by name")] = "released",
    seeds: Annotated[str, typer.Option(help="one run each, as many at once as there are cores: 0,1,2")] = "0",
    steps: Annotated[int | None, typer.Option(min=1, help="updates; by default the preset's")] = None,
    sampler: Annotated[Sampler | None, typer.Option(help="how words are drawn")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:N")] = None,
    init: Annotated[Init | None, typer.Option(help="start from random weights, or from compiled ones")] = None,
    noise: Annotated[float | None, typer.Option(min=0, help="deviation of the noise on compiled weights")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="any setting; repeatable")
    ] = None,
    lengths: Annotated[str, typer.Option(help="where the last checkpoint is judged")] = "40,100,500,5000,50000",
    words: Annotated[int, typer.Option(min=1, help="fresh words a length")] = 10_000,
    letters: Annotated[int, typer.Option(min=1, help="letters a length at most: fewer words where long")] = 20_000_000,
    fresh: Annotated[bool, typer.Option("--fresh", help="forget the runs that are in the folder")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="write events for TensorBoard too")] = False,
    as_json: JsonOption = False,
) -> None:
    """Train networks on an automaton's words, and judge them at lengths they have not seen."""
    from fsa2lrnn.cli import train as training
    from fsa2lrnn.training.seeds import Plan

    given = {"steps": steps, "sampler": sampler, "device": device, "init": init, "noise": noise}
    changed = training.assignments(changes or []) | {name: x for name, x in given.items() if x is not None}
    plan = Plan(not fresh, tensorboard, training.whole_numbers(lengths, "--lengths"), words, letters)
    if code := training.main(source, preset, out, seeds, changed, plan, as_json):
        raise typer.Exit(code)


@app.command()
def compare(
    models: LearnedModels,
    against: Against,
    lengths: Annotated[str, typer.Option(help="of the words they are compared on")] = "40,100,500,5000,50000",
    words: Annotated[int, typer.Option(min=1, help="fresh words a length")] = 10_000,
    letters: Annotated[int, typer.Option(min=1, help="letters a length at most: fewer words where long")] = 2_000_000,
    sampler: Annotated[Sampler, typer.Option(help="how words are drawn")] = "task",
    seconds: SecondsOption = 20.0,
    plot: Annotated[Path | None, typer.Option(help="draw accuracy over length here (.svg, .png, .pdf)")] = None,
    as_json: JsonOption = False,
) -> None:
    """Learned models beside the constructed one: accuracy by length, a failing word, what the heads carry."""
    from fsa2lrnn.cli import learned
    from fsa2lrnn.cli.train import whole_numbers

    evaluated = {"sampler": sampler, "lengths": whole_numbers(lengths, "--lengths"), "n_words": words}
    learned.compare(models, against, seconds, {**evaluated, "letters": letters}, plot, as_json)


@app.command()
def certify(
    model: LearnedModel,
    source: Source,
    memory: Annotated[int | None, typer.Option(min=1, help="letters that a set remembers; by default the best")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write the certificate here (.json)")] = None,
    check: Annotated[Path | None, typer.Option(help="judge this certificate of both instead")] = None,
    as_json: JsonOption = False,
) -> None:
    """Prove up to which length a learned model is right on every word, in the floats that it computes."""
    from fsa2lrnn.cli import learned

    if check is not None and (memory is not None or output is not None):
        raise UnsupportedFormat("--check judges a certificate that is there: it goes with neither --memory nor -o")
    machine = sources.read_machine(source)
    if check is not None:
        code = learned.check(model, machine, check, as_json)
    else:
        code = learned.certify(model, machine, memory, output, as_json)
    if code:
        raise typer.Exit(code)


@app.command()
def repair(
    model: LearnedModel,
    source: Source,
    output: ModelOutput = None,
    columns: Annotated[
        Columns, typer.Option(help="keep the columns as they come, or hold their p-norms to 1")
    ] = "keep",
    mode: Annotated[
        Mode, typer.Option(help="least change; forget all but the state; that in numbers that never round")
    ] = "least",
    snap: Annotated[bool, typer.Option("--snap", help="take the constructed model in its place")] = False,
    as_json: JsonOption = False,
) -> None:
    """Mend a learned model, so that it carries the state of its automaton for ever."""
    from fsa2lrnn.cli import learned

    if snap and (columns, mode) != ("keep", "least"):
        raise UnsupportedFormat("--snap replaces the model: it goes with neither --columns nor --mode")
    sources.check_output(output)
    learned.repair(model, source, columns, mode, snap, output, as_json)


@app.command()
def report(
    models: LearnedModels,
    against: Against,
    output: Annotated[Path, typer.Option("--output", "-o", help="the page (.html); its facts go beside it (.json)")],
    lengths: Annotated[str, typer.Option(help="of the words they are compared on")] = "40,100,500,5000",
    words: Annotated[int, typer.Option(min=1, help="fresh words a length")] = 10_000,
    letters: Annotated[int, typer.Option(min=1, help="letters a length at most: fewer words where long")] = 500_000,
    seconds: SecondsOption = 20.0,
    as_json: JsonOption = False,
) -> None:
    """Judge learned models, repair them, and write one page on learned, repaired and constructed."""
    from fsa2lrnn.cli import learned
    from fsa2lrnn.cli.train import whole_numbers

    evaluated = {"lengths": whole_numbers(lengths, "--lengths"), "n_words": words, "letters": letters}
    learned.report(models, against, output, seconds, evaluated, as_json)
