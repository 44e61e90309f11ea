"""`fsa2lrnn report`: one page on learned, repaired and constructed models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsa2lrnn.cli import given, outputs, sources
from fsa2lrnn.cli.options import (
    LACKED,
    Against,
    JsonOption,
    LayersOption,
    LearnedModels,
    LengthsOption,
    LettersOption,
    SecondsOption,
    WordsOption,
)


def report(
    models: LearnedModels,
    against: Against,
    output: Annotated[Path, typer.Option("--output", "-o", help="the page (.html); its facts go beside it (.json)")],
    lengths: LengthsOption = "40,100,500,5000",
    words: WordsOption = 10_000,
    letters: LettersOption = 500_000,
    seconds: SecondsOption = 20.0,
    layers: LayersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge learned models, repair them, and write one page on learned, repaired and constructed."""
    evaluated = {"lengths": given.whole_numbers(lengths, "--lengths"), "n_words": words, "letters": letters}
    outputs.check_page(output)
    networks, _ = sources.models_and_machine(models, against, layers)

    from fsa2lrnn.cli import console
    from fsa2lrnn.judge import Budget
    from fsa2lrnn.report import verdict, write
    from fsa2lrnn.report.assemble import assemble

    facts = assemble(against, networks, Budget(seconds=seconds), evaluated, console.say, ignore=LACKED)
    page, data = write(facts, output)
    if as_json:
        console.emit_json({"page": str(page), "facts": str(data)})
        return
    rows = [(model.name, verdict(model)) for model in facts.models if model.kind == "learned"]
    console.facts(facts.title, [*rows, ("page", str(page)), ("the same as JSON", str(data))])
