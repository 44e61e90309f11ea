"""`fsa2lrnn compare`: trained models compared with the compiled one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from fsa2lrnn.cli import console, sources
from fsa2lrnn.cli.options import (
    LACKED,
    MODEL_SUFFIX,
    SOURCE,
    JsonOption,
    LayersOption,
    LengthsOption,
    SecondsOption,
    WordsOption,
    check_output,
    whole_numbers,
)
from fsa2lrnn.errors import UnsupportedFormat, counted, shortened
from fsa2lrnn.files import write_atomically

if TYPE_CHECKING:
    from fsa2lrnn.symbols import Alphabet
    from fsa2lrnn.verdicts import Refuted, Undecided

_LETTERS = 2_000_000  # the most per length; long words are evaluated in smaller numbers
_SHOWN_WORD = 72  # the most characters of a counterexample in a row
_ARGUMENTS = f"trained models ({MODEL_SUFFIX}), then what they should compute: {SOURCE}"


def compare(
    arguments: Annotated[list[str], typer.Argument(metavar="MODEL… SOURCE", help=_ARGUMENTS)],
    lengths: LengthsOption = "40,100,500,5000,50000",
    words: WordsOption = 10_000,
    seconds: SecondsOption = 20.0,
    plot: Annotated[Path | None, typer.Option(help="write a chart of accuracy over length (.svg .png .pdf)")] = None,
    table_in: Annotated[Path | None, typer.Option("--table", help="write the accuracies (.csv .tex)")] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="the name of a model, in their order; repeatable")
    ] = None,
    layers: LayersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare trained models with the compiled one: accuracy per length, and a counterexample to each."""
    evaluated = {"lengths": whole_numbers(lengths, "--lengths"), "n_words": words}
    check_output(plot, "a plot", ".svg", ".png", ".pdf")
    check_output(table_in, "a table", ".csv", ".tex")
    *paths, source = arguments
    if not paths or sources.is_model(source):
        raise UnsupportedFormat(f"{' '.join(arguments)}: give models, and then the SOURCE that they should compute")
    machine = sources.read_machine(source)
    sources.know_layers(layers)
    networks = sources.learned_models(paths)
    if label:
        if len(set(label)) < len(label) or len(label) != len(networks):
            raise UnsupportedFormat(f"--label {', '.join(label)}: give {counted(len(networks), 'name')}, all different")
        networks = dict(zip(label, networks.values(), strict=True))
    for network in networks.values():
        sources.check_letters(network, machine, source)

    from fsa2lrnn.draw import comparison
    from fsa2lrnn.verification.falsify import falsify
    from fsa2lrnn.verification.falsify.model_comparison import Budget

    if plot is not None:
        comparison.matplotlib()  # before minutes of work
    document = comparison.compare(source, networks, **evaluated, letters=_LETTERS)
    document["verdicts"] = {}
    for name, network in networks.items():
        if (reason := network.not_causal) is not None:  # no prefix has an output of its own
            document["verdicts"][name] = {"refused": reason}
            if not as_json:
                console.facts(name, [("counterexample", f"none looked for: {reason}")])
            continue
        console.note(f"counterexample search, {name}")
        verdict = falsify(network, machine, Budget(seconds=seconds), LACKED)
        document["verdicts"][name] = verdict.to_json()
        if not as_json:
            found = counterexample_text(verdict, network.alphabet)
            console.facts(name, [("counterexample", found), ("where", str(verdict.scope))])
    if plot is not None:
        comparison.plot(document, plot)
    if table_in is not None:
        write_atomically(table_in, comparison.table_file(document, table_in.suffix).encode())
    if as_json:
        console.emit_json(document)
        return
    console.out.print(table(document))
    for file in (plot, table_in):
        if file is not None:
            console.out.print(f"written: {console.markup(str(file))}")


def counterexample_text(verdict: Refuted | Undecided, alphabet: Alphabet) -> str:
    """Return the result of a counterexample search in one line."""
    from fsa2lrnn.symbols import word_text
    from fsa2lrnn.verdicts import Refuted

    if not isinstance(verdict, Refuted):
        return f"none found among {'; '.join(search.what for search in verdict.searches)}"
    word = shortened(word_text(verdict.word, alphabet), _SHOWN_WORD)
    short = ", the shortest there is" if verdict.is_shortest else ""
    return f"{counted(verdict.position, 'letter')}{short}: {word} ({verdict.found_by})"


def table(document: console.Document) -> Table:
    """Format the result of `compare` as a table: a row with the name of each model, then one row per length."""
    rows = Table(title=document["source"], title_justify="left", box=None, pad_edge=False)
    rows.add_column("model, length", overflow="fold")
    for name in ("last output right", "whole word right"):
        rows.add_column(name, justify="right", no_wrap=True)
    for name, model in document["models"].items():
        rows.add_row(f"[cyan]{escape(name)}[/], {model['parameters']:,} parameters")
        for result in model["lengths"]:
            cells = (f"{result[key]['accuracy']:.4f}" for key in ("last_position", "whole_word"))
            rows.add_row(f"  {result['length']:,}", *cells)
    rows.add_row("[cyan]best constant answer[/]")
    for result in document["constant_answer"]:
        rows.add_row(f"  {result['length']:,}", f"{result['accuracy']:.4f}", "")
    return rows
