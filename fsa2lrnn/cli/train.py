"""`fsa2lrnn train`: train networks on an automaton's words. `cli/training.py` displays the runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsa2lrnn.cli import given, options, outputs
from fsa2lrnn.layers import TRAINED


def train(
    source: options.Source,
    output: Annotated[Path, typer.Option("--output", "-o", help="the folder of the runs; a second call resumes them")],
    preset: Annotated[
        options.Preset, typer.Option(help="the settings of the paper's code, or those of a quick trial")
    ] = "paper",
    seeds: Annotated[str, typer.Option(help="one run per seed, in parallel on all cores: 0,1,2")] = "0",
    steps: Annotated[int | None, typer.Option(min=1, help="number of updates; by default the preset's")] = None,
    sampler: Annotated[options.Sampler | None, typer.Option(help=options.SAMPLING)] = None,
    device: Annotated[str | None, typer.Option(help="device: cpu, cuda or cuda:N")] = None,
    layer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"{', '.join(TRAINED)}, or module:Class for a user-defined layer"),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="a setting, such as layers=3 or stop_at=None; repeatable"),
    ] = None,
    lengths: options.LengthsOption = "40,100,500,5000,50000",
    words: options.WordsOption = 10_000,
    max_tokens: options.MaxTokensOption = 20_000_000,
    then_prove: Annotated[
        bool,
        typer.Option("--then-prove", help="extract the automaton of each network (normalisation=onehot) and prove it"),
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="delete the runs in the folder and begin again")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="write events for TensorBoard too")] = False,
    wandb: Annotated[
        bool, typer.Option("--wandb", help="log to Weights & Biases too; WANDB_MODE=offline keeps it in the folder")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Train networks on an automaton's words, and evaluate them on longer words."""
    named = {"steps": steps, "sampler": sampler, "device": device, "layer": layer}
    changed = given.assignments(changes or []) | {name: x for name, x in named.items() if x is not None}
    numbers, test_lengths = given.whole_numbers(seeds, "--seeds"), given.whole_numbers(lengths, "--lengths")
    outputs.check_runs(output)

    from fsa2lrnn.cli import training
    from fsa2lrnn.training.seeds import RunPlan

    write_to = tuple(name for name, is_set in (("tensorboard", tensorboard), ("wandb", wandb)) if is_set)
    plan = RunPlan(not fresh, write_to, test_lengths, words, max_tokens)
    if code := training.main(source, preset, output, numbers, changed, plan, as_json, then_prove):
        raise typer.Exit(code)
