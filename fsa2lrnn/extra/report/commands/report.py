"""`fsa2lrnn report`: one page on learned, repaired and constructed models, or on a run of `learn`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsa2lrnn.cli import given, outputs, sources
from fsa2lrnn.cli.options import (
    LACKED,
    MODEL_SUFFIX,
    JsonOption,
    LayersOption,
    LengthsOption,
    MaxTokensOption,
    WordsOption,
)
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.report.commands.models import models_and_machine, models_then_source
from fsa2lrnn.files import check_file

_SECONDS = (
    "time limit per model for extraction, counterexample search, certificates and repairs together; evaluation on "
    "words, analysis of the heads and drawing are not limited; by default 20 s for the search only"
)


def report(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL… SOURCE|FOLDER",
            help=f"trained models ({MODEL_SUFFIX}), then what they should compute; or the folder of one run of "
            "`learn`, with or without a SOURCE",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="the page (.html); its data are written next to it (.json)")
    ],
    lengths: LengthsOption = "40,100,500,5000",
    words: WordsOption = 10_000,
    max_tokens: MaxTokensOption = 500_000,
    seconds: Annotated[float | None, typer.Option("--max-seconds", min=0.1, help=_SECONDS)] = None,
    layers: LayersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate and repair learned models, and write one page that compares learned, repaired and compiled models.

    For a folder that `learn` wrote the page shows what was learned, whether it is proved, and the automata of the heads
    at several steps.
    """
    evaluated = {"lengths": given.whole_numbers(lengths, "--lengths"), "n_words": words, "letters": max_tokens}
    outputs.check(output, "the page", ".html")
    check_file(output.with_suffix(".json"))
    run_folder = sources.run_folder(models[0])
    if run_folder is not None and (len(models) > 2 or any(map(sources.is_model, models[1:]))):
        raise UnsupportedFormat(f"{', '.join(models)}: give the folder of one run alone, or models without folders")
    paths, against = (models, None) if run_folder and len(models) == 1 else models_then_source(models)
    networks = {} if run_folder or against is None else models_and_machine(paths, against, layers)[0]

    from fsa2lrnn.cli import console
    from fsa2lrnn.extra.report.assemble import write
    from fsa2lrnn.extra.report.facts import verdict
    from fsa2lrnn.verification import Budget

    if run_folder is not None:
        from fsa2lrnn.extra.learning import public as learning
        from fsa2lrnn.extra.report.learned import assemble_learned

        run = learning.read_finished(run_folder)
        facts = assemble_learned(run, evaluated, against, LACKED, console.say, seconds)
    else:
        from fsa2lrnn.extra.report.assemble import assemble

        assert against is not None  # refused above
        facts = assemble(against, networks, Budget(), evaluated, console.say, ignore=LACKED, seconds=seconds)
    page, data = write(facts, output)
    if as_json:
        console.emit_json({"page": str(page), "facts": str(data)})
        return
    rows = [(model.name, verdict(model)) for model in facts.models if model.kind == "learned"]
    console.facts(facts.title, [*rows, ("page", str(page)), ("the same as JSON", str(data))])
