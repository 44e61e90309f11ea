"""`fsa2lrnn learn`: learn a machine from its words or from data, and prove it equal to the target if there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from fsa2lrnn.cli import given, outputs
from fsa2lrnn.cli.options import NO, SAMPLING, Sampler
from fsa2lrnn.errors import UnsupportedFormat

LearnMethod = Literal["train", "rpni", "merge"]
_NOISE = 'the share of outputs that are wrong (0.1), or "unknown"; by default none, and contradictory data are refused'


def learn(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE|DATA",
            help="regex:…, task:…, a file of an automaton; or words with outputs (.jsonl .csv .dat .abbadingo)",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="the folder of the run; a second call resumes it")],
    method: Annotated[
        LearnMethod,
        typer.Option(help="train; for DATA also rpni (no output is wrong) and merge (some are wrong)"),
    ] = "train",
    label_noise: Annotated[str | None, typer.Option(help=_NOISE)] = None,
    held_out: Annotated[float, typer.Option("--held-out", help="the share of DATA that is held out")] = 0.1,
    sampler: Annotated[Sampler, typer.Option(help=SAMPLING)] = "task",
    seed: Annotated[int, typer.Option(min=0, help="seed of weights and words")] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="the largest number of updates")] = None,
    seconds: Annotated[float | None, typer.Option("--max-seconds", min=0.1, help="time limit for every method")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="a setting of the recipe, such as heads=6 or block=40; repeatable"
        ),
    ] = None,
    alphabet: Annotated[
        str | None, typer.Option(metavar="LETTERS", help="the alphabet; DATA with other letters is refused")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="delete the run in the folder and begin again")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object on standard output")] = False,
) -> None:
    """Train a layer with one-hot columns (an automaton) until it is proved equal to SOURCE, or on the words of DATA.

    The folder contains the model, the trained network, the machine as DOT and JSON, and the evidence. The exit code is
    1 if the budget ended before a proof.
    """
    options = {"noise": _noise(label_noise), "steps": steps, "seconds": seconds}
    changed = given.assignments(changes or []) | {name: x for name, x in options.items() if x is not None}
    if label_noise is not None:
        changed["noise"] = options["noise"]
    outputs.check_runs(output)

    from fsa2lrnn.cli import learned, words

    letters = None if alphabet is None else words.letters(alphabet)
    if not learned.main(
        source, output, not fresh, as_json, method=method, held_out=held_out, sampler=sampler,
        alphabet=letters, seed=seed, **changed,
    ):  # fmt: skip
        raise typer.Exit(NO)


def _noise(text: str | None) -> float | None:
    """Return the share that a text states, None for "unknown" and for None; raise `UnsupportedFormat` for other texts.

    >>> _noise("0.1"), _noise("unknown")
    (0.1, None)
    """
    if text is None or text == "unknown":
        return None
    try:
        return float(text)
    except ValueError:
        raise UnsupportedFormat(f"--label-noise {text!r}: give a share as 0.1, or unknown") from None
