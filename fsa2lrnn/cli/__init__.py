"""The command line: one verb a job. Exit codes: 0 done, 1 the answer is "no", 2 bad input.

torch and the automata are imported by the verbs that need them, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from fsa2lrnn.cli.options import (
    MODEL_SUFFIX,
    Completion,
    CompletionOption,
    Dtype,
    DtypeOption,
    Form,
    JsonOption,
    Layout,
    MaxBlockOption,
    ModelOrSource,
    Normalisation,
    OptionalModel,
    OptionalSource,
    Preset,
    Sampler,
    Scan,
    Source,
    TokenShiftOption,
)
from fsa2lrnn.errors import Fsa2LrnnError, NotExpressible, UnsupportedFormat

if TYPE_CHECKING:
    import torch

    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.lrnn.model import LRNN
    from fsa2lrnn.recurrence import Recurrence

NO, BAD_INPUT = 1, 2

app = typer.Typer(
    name="fsa2lrnn",
    help="Compile finite automata into exact linear recurrent networks, and prove networks equal to automata.",
    epilog="SOURCE is regex:(ab)*, task:mod_arith(5), or a file: .dot .gv .jff .json .fst.txt",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("compile")
def compile_(
    source: Source,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=f"write the model here ({MODEL_SUFFIX})")
    ] = None,
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
    from fsa2lrnn.lower import lower
    from fsa2lrnn.lrnn.checkpoint import save

    if output is not None and output.suffix != MODEL_SUFFIX:
        raise UnsupportedFormat(f"output {output}: a model is written to a file ending in {MODEL_SUFFIX}")
    machine = _read(source, completion)
    recurrence, why = _recurrence(machine, form, max_block, token_shift, layout)
    model = lower(recurrence, _dtype(dtype), normalisation, p)
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

    network = _model(model, dtype, completion)
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
    explanation.main(_read(source, completion), family or [], certificates, wanted, as_json)


@app.command()
def verify(
    model: OptionalModel = None,
    source: OptionalSource = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="check the propositions instead, the paper's and ours")
    ] = False,
    deep: Annotated[bool, typer.Option("--deep", help="with --paper: thousands of cases each")] = False,
    only: Annotated[list[str] | None, typer.Option(metavar="ID", help="with --paper: this one; repeatable")] = None,
    budget: Annotated[int, typer.Option(min=1, help="joint states after which to give up")] = 1_000_000,
    empty_word: Annotated[bool, typer.Option(help="whether the output on the empty word counts")] = True,
    dtype: DtypeOption = "float32",
    completion: CompletionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prove a model equal to an automaton on every word, or show a shortest word on which they differ."""
    from fsa2lrnn.cli import console
    from verify.equivalence import Proved, prove_equivalent

    if paper != (model is None) or paper != (source is None) or (not paper and (deep or only)):
        given = " ".join(filter(None, [model, source, "--paper" * paper, "--deep" * deep, "--only" * bool(only)]))
        raise UnsupportedFormat(
            f"verify was given {given or 'nothing'}: it takes a MODEL and a SOURCE, or --paper alone (--deep, --only)"
        )
    if model is None or source is None:
        from fsa2lrnn.cli import paper as propositions

        propositions.main(deep, only or [], as_json)
        return
    machine = _read(source, completion)
    verdict = prove_equivalent(_model(model, dtype, completion), machine, budget, empty_word)
    if as_json:
        console.emit_json(console.verdict_json(verdict))
    else:
        console.out.print(console.verdict_text(verdict))
    if not isinstance(verdict, Proved):
        raise typer.Exit(NO)


@app.command()
def extract(
    model: ModelOrSource,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write the machine here, by ending")] = None,
    max_states: Annotated[int, typer.Option(min=1, help="states after which to give up")] = 100_000,
    dtype: DtypeOption = "float32",
    completion: CompletionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read the minimal automaton out of a model whose states close."""
    from fsa2lrnn.automata.formats import write_file
    from fsa2lrnn.cli import console
    from fsa2lrnn.extract import extract as extract_machine

    machine = extract_machine(_model(model, dtype, completion), max_states)
    if output is not None:
        write_file(machine, output)
    if as_json:
        saved = str(output) if output else None
        console.emit_json({"machine": console.machine_json(machine), "saved": saved})
        return
    console.facts("machine", [*console.machine_rows(machine), *([("saved", str(output))] if output else [])])
    if output is None and (table := console.transition_table(machine)) is not None:
        console.out.print(table)


@app.command("train")
def train_(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="the folder of the runs; called again, they go on")],
    preset: Annotated[Preset, typer.Option(help="settings by name")] = "released",
    seeds: Annotated[str, typer.Option(help="one run each, as many at once as there are cores: 0,1,2")] = "0",
    steps: Annotated[int | None, typer.Option(min=1, help="updates; by default the preset's")] = None,
    sampler: Annotated[Sampler | None, typer.Option(help="how words are drawn")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:N")] = None,
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
    from experiments.seeds import Plan
    from fsa2lrnn.cli import train as training

    given = {"steps": steps, "sampler": sampler, "device": device}
    changed = training.assignments(changes or []) | {name: x for name, x in given.items() if x is not None}
    plan = Plan(not fresh, tensorboard, training.whole_numbers(lengths, "--lengths"), words, letters)
    if code := training.main(source, preset, out, seeds, changed, plan, as_json):
        raise typer.Exit(code)


@app.command("demo")
def demo_(as_json: JsonOption = False) -> None:
    """Compile the paper's hardest task, prove it for all lengths and evaluate expressions with it."""
    from fsa2lrnn.cli import demo as demonstration

    demonstration.main(as_json)


def main(arguments: list[str] | None = None) -> NoReturn:
    """The console script: runs the app and turns errors that input can cause into one line and an exit code."""
    from rich.markup import escape

    from fsa2lrnn.cli import console

    try:
        app(arguments)
    except NotExpressible as error:
        console.err.print(f"[red bold]no:[/] {escape(str(error))}")
        sys.exit(NO)
    except (Fsa2LrnnError, OSError, UnicodeDecodeError) as error:
        console.err.print(f"[red bold]error:[/] {escape(str(error))}")
        sys.exit(BAD_INPUT)
    sys.exit(0)


def _read(source: str, completion: Completion | None) -> MooreMachine:
    from fsa2lrnn.automata.machine import MooreMachine

    return MooreMachine.from_source(source, completion=completion)


def _recurrence(
    machine: MooreMachine, form: Form, max_block: int | None, token_shift: bool, layout: Layout
) -> tuple[Recurrence, str | None]:
    """`compile_recurrence`, and why it took the form that it took where that was left to it."""
    from fsa2lrnn.compile import compile_recurrence
    from fsa2lrnn.compile.cascade import stack_recurrence
    from fsa2lrnn.compile.choice import choose

    why = None
    if form == "auto" and layout == "index":
        form, why = "onehot", "one layer: layout index holds one large block"
    elif form == "auto":
        choice = choose(machine, max_block, token_shift)
        if choice.decomposition is not None:  # found once, which may take seconds
            return stack_recurrence(choice.decomposition.cascade), choice.why
        form, why = choice.form, choice.why
    return compile_recurrence(machine, form, max_block, token_shift, layout), why


def _model(source: str, dtype: Dtype, completion: Completion | None) -> LRNN:
    from fsa2lrnn.lower import compile_machine
    from fsa2lrnn.lrnn.checkpoint import load

    if source.endswith(MODEL_SUFFIX):
        return load(source)
    return compile_machine(_read(source, completion), dtype=_dtype(dtype))


def _dtype(dtype: Dtype) -> torch.dtype:
    import torch

    return getattr(torch, dtype)
