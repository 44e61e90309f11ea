"""`fsa2lrnn compare`: trained models compared with the compiled one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsa2lrnn.cli import given, outputs
from fsa2lrnn.cli.options import (
    LACKED,
    SAMPLING,
    JsonOption,
    LayersOption,
    LengthsOption,
    MaxTokensOption,
    Sampler,
    SecondsOption,
    WordsOption,
)
from fsa2lrnn.extra.report.commands.models import ModelsAndSource, models_and_machine, models_then_source


def compare(
    models: ModelsAndSource,
    lengths: LengthsOption = "40,100,500,5000,50000",
    words: WordsOption = 10_000,
    max_tokens: MaxTokensOption = 2_000_000,
    sampler: Annotated[Sampler, typer.Option(help=SAMPLING)] = "task",
    seconds: SecondsOption = 20.0,
    plot: Annotated[Path | None, typer.Option(help="write a chart of accuracy over length (.svg .png .pdf)")] = None,
    layers: LayersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare trained models with the compiled one: accuracy per length, a counterexample, what the heads represent."""
    evaluated = {"sampler": sampler, "lengths": given.whole_numbers(lengths, "--lengths"), "n_words": words}
    outputs.check(plot, "a plot", ".svg", ".png", ".pdf")
    paths, source = models_then_source(models)
    networks, machine = models_and_machine(paths, source, layers)

    from fsa2lrnn.cli import activity, console
    from fsa2lrnn.extra.report import compare as comparison
    from fsa2lrnn.extra.report.align import align
    from fsa2lrnn.extra.report.compare import alignment_rows, failure_rows
    from fsa2lrnn.verification import Budget, falsify

    if plot is not None:
        comparison.matplotlib()  # before minutes of work
    document = comparison.compare(source, networks, **evaluated, letters=max_tokens)
    document["judged"] = {}
    for name, network in networks.items():
        if (reason := network.not_causal) is not None:  # no prefix has an output of its own
            document["judged"][name] = {"refused": reason}
            if not as_json:
                console.facts(name, [("counterexample", f"none looked for: {reason}")])
            continue
        activity.note(f"counterexample search, {name}")
        found = falsify(network, machine, Budget(seconds=seconds), LACKED)
        aligned = align(network, machine, ignore=LACKED).to_json() if network.is_switched else None
        document["judged"][name] = {**found.to_json(), "alignment": aligned}
        if not as_json:
            rows = failure_rows(found, network.alphabet)
            console.facts(name, [*rows, ("where", str(found.scope)), *alignment_rows(aligned)])
    if plot is not None:
        comparison.plot(document, plot)
    if as_json:
        console.emit_json(document)
    else:
        console.out.print(comparison.table(document))
