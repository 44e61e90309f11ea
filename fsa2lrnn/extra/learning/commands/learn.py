"""`fsa2lrnn learn`: learn a machine from its words or from data, and prove it equal to the target if there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fsa2lrnn.cli import given, outputs, sources
from fsa2lrnn.cli.options import NO, Sampler
from fsa2lrnn.errors import UnsupportedFormat

LearnMethod = Literal["train", "rpni", "merge", "cascade"]
_NOISE = 'the share of outputs that are wrong (0.1), or "unknown"; by default none is, and contradictions are refused'


def learn(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE|DATA",
            help="regex:…, task:…, a file of an automaton; or words with outputs (.jsonl .csv)",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="the folder of the run; the next call resumes it")],
    method: Annotated[
        LearnMethod,
        typer.Option(
            help="train; of DATA, at once: rpni where no output is wrong, merge where some are; of SOURCE: cascade, "
            "small blocks in layers"
        ),
    ] = "train",
    max_block: Annotated[
        int | None, typer.Option(min=2, help="for --method cascade: the largest block, by default 8")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="for --method cascade: the machine to distil, by default SOURCE"),
    ] = None,
    label_noise: Annotated[str | None, typer.Option(help=_NOISE)] = None,
    held_out: Annotated[float, typer.Option("--held-out", help="the share of DATA that is held out")] = 0.1,
    sampler: Annotated[Sampler, typer.Option(help="how words of a SOURCE are drawn")] = "task",
    seed: Annotated[int, typer.Option(min=0, help="the seed of weights and words")] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="the maximum number of updates")] = None,
    seconds: Annotated[float | None, typer.Option("--max-seconds", min=0.1, help="time limit of every method")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="any setting of the recipe, heads=6 or block=40; repeatable"),
    ] = None,
    alphabet: Annotated[
        str | None, typer.Option(metavar="LETTERS", help="the alphabet; DATA with other letters is refused")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="discard the run in the folder")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Train a layer that is an automaton until it is proved; from DATA, report its agreement with held-out words.

    With --method cascade a machine is distributed over layers of small blocks: each layer is distilled from its
    components, all are trained as a whole, and the network itself is proved. The folder receives the model, the trained
    network, the machine as DOT and JSON, the cascade as a drawing, and the evidence. The exit code is 1 if the budget
    ended before a proof against SOURCE.
    """
    if method != "cascade" and not (max_block is None and target is None):
        raise UnsupportedFormat("--max-block and --target are for --method cascade: a block's size is --set block=40")
    options = {"block": max_block, "noise": given.noise(label_noise), "steps": steps, "seconds": seconds}
    changed = given.assignments(changes or []) | {name: x for name, x in options.items() if x is not None}
    if label_noise is not None:
        changed["noise"] = options["noise"]
    outputs.check_runs(output)

    from fsa2lrnn.cli import words
    from fsa2lrnn.extra.learning.commands import display

    letters = None if alphabet is None else words.letters(alphabet)
    distilled = None if target is None else sources.read_machine(target, alphabet=alphabet)
    if not display.main(
        source, output, not fresh, as_json, method=method, teacher=distilled, held_out=held_out, sampler=sampler,
        alphabet=letters, seed=seed, **changed,
    ):  # fmt: skip
        raise typer.Exit(NO)
