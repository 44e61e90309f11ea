"""The verbs for automata and exact models: `compile`, `run`, `explain`, `verify`, `extract` and `demo`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fsa2lrnn.cli import sources
from fsa2lrnn.cli.options import (
    NO,
    CompletionOption,
    Dtype,
    DtypeOption,
    ExtractMethod,
    Form,
    JsonOption,
    Layout,
    MaxBlockOption,
    ModelOrSource,
    ModelOutput,
    Normalisation,
    Scan,
    Source,
    TokenShiftOption,
)

app = typer.Typer()


@app.command("compile")
def compile_(
    source: Source,
    output: ModelOutput = None,
    form: Annotated[
        Form, typer.Option(help="one layer of one-hot blocks, layers of small blocks, or the cheaper")
    ] = "onehot",
    max_block: MaxBlockOption = None,
    token_shift: TokenShiftOption = True,
    layout: Annotated[Layout, typer.Option(help="dense weights or an index table; auto: dense to 64 states")] = "auto",
    dtype: Annotated[Dtype, typer.Option(help="arithmetic of the model")] = "float32",
    normalisation: Annotated[Normalisation, typer.Option(help="column rule of the model")] = "clip",
    p: Annotated[float, typer.Option(min=1, help="order of the column norm")] = 1.2,
    completion: CompletionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile an automaton into exact weights."""
    from fsa2lrnn.cli import console
    from fsa2lrnn.compile import compile_with_reason
    from fsa2lrnn.lower import lower
    from fsa2lrnn.lrnn.checkpoint import save

    sources.check_output(output)
    machine = sources.read_machine(source, completion)
    recurrence, why = compile_with_reason(machine, form, max_block, token_shift, layout)
    model = lower(recurrence, sources.torch_dtype(dtype), normalisation, p)
    if output is not None:
        save(model, output)
    if as_json:
        saved = str(output) if output else None
        facts = {"machine": console.machine_json(machine), "model": console.model_json(model)}
        console.emit_json({**facts, "why": why, "saved": saved})
        return
    console.facts("machine", console.machine_rows(machine))
    chosen = [("chosen", why)] if why else []
    saved = ("saved", str(output) if output else "no (-o FILE saves it)")
    console.facts("model", [*chosen, *console.model_rows(model), saved])


@app.command()
def run(
    model: ModelOrSource,
    word: Annotated[str, typer.Argument(help="letters together or separated by spaces; - reads standard input")],
    trace: Annotated[bool, typer.Option(help="the output after every letter, not only the last")] = False,
    scan: Annotated[Scan, typer.Option(help="how the recurrence is computed")] = "auto",
    dtype: DtypeOption = "float32",
    completion: CompletionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a model on a word, of any length when it comes from standard input."""
    from fsa2lrnn import streaming
    from fsa2lrnn.cli import console

    network = sources.model_of(model, dtype, completion)
    pieces = [word] if word != "-" else streaming.read_pieces(sys.stdin)
    result = streaming.run(network, pieces, scan, streaming.printer(network) if trace and not as_json else None)
    if as_json:
        console.emit_json(streaming.result_json(network, result, keep_trace=trace))
    elif not trace:
        console.out.print(streaming.result_text(network, result))


@app.command("explain")
def explain_(
    source: Source,
    family: Annotated[list[str] | None, typer.Option(metavar="NAME", help="only this family; repeatable")] = None,
    certificates: Annotated[Path | None, typer.Option(help="write each answer's certificate into this folder")] = None,
    max_block: MaxBlockOption = None,
    token_shift: TokenShiftOption = True,
    dot: Annotated[Path | None, typer.Option(metavar="FILE", help="draw the cascade into this Graphviz file")] = None,
    completion: CompletionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is known of an automaton: its algebra, which LRNN families can represent it, what a network costs."""
    from fsa2lrnn.cli import cascade
    from fsa2lrnn.cli import explain as explanation

    wanted = cascade.Wanted(max_block, token_shift, dot)
    explanation.main(sources.read_machine(source, completion), family or [], certificates, wanted, as_json)


@app.command()
def verify(
    model: ModelOrSource,
    source: Source,
    budget: Annotated[int, typer.Option(min=1, help="joint states after which to give up")] = 1_000_000,
    empty_word: Annotated[bool, typer.Option(help="whether the output on the empty word counts")] = True,
    dtype: DtypeOption = "float32",
    completion: CompletionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prove a model equal to an automaton on every word, or show a shortest word on which they differ."""
    from fsa2lrnn.cli import console
    from fsa2lrnn.judge import Proved, prove_equivalent

    machine = sources.read_machine(source, completion)
    verdict = prove_equivalent(sources.model_of(model, dtype, completion), machine, budget, empty_word)
    if as_json:
        console.emit_json(verdict.to_json())
    else:
        console.out.print(console.verdict_text(verdict))
    if not isinstance(verdict, Proved):
        raise typer.Exit(NO)


@app.command()
def extract(
    model: ModelOrSource,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write the machine here, by ending")] = None,
    method: Annotated[
        ExtractMethod,
        typer.Option(help="its states, which must close, or what a model puts out on short words"),
    ] = "closure",
    max_states: Annotated[int, typer.Option(min=1, help="states after which to give up")] = 100_000,
    dtype: DtypeOption = "float32",
    completion: CompletionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read the minimal automaton out of a model: exactly where its states close, else as it behaves on short words."""
    from fsa2lrnn.automata.formats import write_file
    from fsa2lrnn.cli import console
    from fsa2lrnn.extraction import extract as extract_machine
    from fsa2lrnn.extraction import extract_learned

    network = sources.model_of(model, dtype, completion)
    evidence: dict[str, Any] | None = None
    if method == "closure":
        machine = extract_machine(network, max_states)
    else:
        found = extract_learned(network, method, max_classes=max_states)
        machine, evidence = found.machine, console.extraction_json(found)
    if output is not None:
        write_file(machine, output)
    if as_json:
        saved = str(output) if output else None
        facts = {"machine": console.machine_json(machine), "saved": saved}
        console.emit_json(facts if evidence is None else {**facts, "evidence": evidence})
        return
    rows = [*console.machine_rows(machine), *(console.extraction_rows(evidence) if evidence else [])]
    console.facts("machine", [*rows, *([("saved", str(output))] if output else [])])
    if output is None and (table := console.transition_table(machine)) is not None:
        console.out.print(table)


@app.command("demo")
def demo_(
    out: Annotated[Path, typer.Option(help="a folder for the learned model, its repairs and the page")] = Path(
        "runs/demo"
    ),
    learned: Annotated[bool, typer.Option(help="whether to train, judge and mend a model too: two minutes")] = True,
    as_json: JsonOption = False,
) -> None:
    """Compile the paper's hardest task, prove it for all lengths and use it; then train, judge and mend a model."""
    from fsa2lrnn.cli import demo as demonstration

    demonstration.main(out if learned else None, as_json)
