"""The command line: one verb a job. Exit codes: 0 done, 1 the answer is "no", 2 bad input.

torch and the automata are imported by the verbs that need them, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from fsa2lrnn.cli.options import (
    MODEL_SUFFIX,
    Against,
    Columns,
    Completion,
    CompletionOption,
    Dtype,
    DtypeOption,
    ExtractMethod,
    Form,
    Init,
    JsonOption,
    Layout,
    LearnedModel,
    LearnedModels,
    MaxBlockOption,
    Mode,
    ModelOrSource,
    Normalisation,
    OptionalModel,
    OptionalSource,
    Preset,
    Sampler,
    Scan,
    SecondsOption,
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
    from fsa2lrnn.extract import extract as extract_machine
    from fsa2lrnn.extract import extract_learned

    network = _model(model, dtype, completion)
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
    from experiments.seeds import Plan
    from fsa2lrnn.cli import train as training

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
    source: OptionalSource = None,
    memory: Annotated[int | None, typer.Option(min=1, help="letters that a set remembers; by default the best")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write the certificate here (.json)")] = None,
    check: Annotated[Path | None, typer.Option(help="judge this certificate of the model instead")] = None,
    as_json: JsonOption = False,
) -> None:
    """Prove up to which length a learned model is right on every word, in the floats that it computes."""
    from fsa2lrnn.cli import learned

    if (check is None) == (source is None) or (check is not None and (memory is not None or output is not None)):
        raise UnsupportedFormat("certify takes a MODEL and a SOURCE (--memory, -o), or a MODEL and --check FILE alone")
    if check is not None:
        code = learned.check(model, check, as_json)
    else:
        code = learned.certify(model, _read(str(source), None), memory, output, as_json)
    if code:
        raise typer.Exit(code)


@app.command()
def repair(
    model: LearnedModel,
    source: Source,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=f"write the repaired model here ({MODEL_SUFFIX})")
    ] = None,
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
    if output is not None and output.suffix != MODEL_SUFFIX:
        raise UnsupportedFormat(f"output {output}: a model is written to a file ending in {MODEL_SUFFIX}")
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
