"""Write, run and verify folders of external models, for the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

from fsa2lrnn import symbols, tracing
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid import classify
from fsa2lrnn.cli import console, evidence, sizes, words
from fsa2lrnn.cli.options import NO
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.errors import InvalidWord, NotExpressible, OutOfTime, UnsupportedFormat, counted
from fsa2lrnn.export.in_use import decide
from fsa2lrnn.export.refuse import LayerAnswer, answer
from fsa2lrnn.files import write_atomically
from fsa2lrnn.layers import of_name, released_model
from fsa2lrnn.verdicts import Proved

if TYPE_CHECKING:
    from fsa2lrnn.nn.wrapped import Wrapped


def write(machine: MooreMachine, layer: str, folder: Path, dtype: str, as_json: bool) -> None:
    """Export a machine and print the model and its proof, or as JSON the reason why it was not exported."""
    from fsa2lrnn.export.whole_model import export

    layer = released_model(layer)
    try:
        written = export(machine, layer, folder, dtype)
    except NotExpressible as why:
        if not as_json:
            raise
        _tell_no(machine, layer, str(why))
        raise typer.Exit(NO) from why
    plan, model = written.plan, {"layer": layer, "how": written.plan.how, "dtype": dtype}
    if as_json:
        facts = {**model, "parameters": written.n_parameters, "saved": str(folder)}
        machine_facts = sizes.machine_json(plan.machine)
        console.emit_json({"machine": machine_facts, "model": facts, "proof": written.verdict.to_json()})
        return
    console.facts("machine", sizes.machine_rows(plan.machine))
    rows = [*model.items(), ("parameters", f"{written.n_parameters:,}"), ("saved", str(folder))]
    console.facts("model", rows)
    console.out.print(evidence.verdict_text(written.verdict, plan.machine.alphabet))


def _tell_no(machine: MooreMachine, layer: str, why: str) -> None:
    said = {**answer(machine, layer).to_json(), "evidence": console.message(why)}
    if said["answer"] == "yes":  # a plan that the layer's file could not write, which proves nothing
        said["answer"] = "unknown"
    console.emit_json({"machine": sizes.machine_json(machine), "model": {"layer": layer, "saved": None}, **said})
    console.error("no", why)


def explain(
    machine: MooreMachine, layers: Sequence[str], folder: Path | None, as_json: bool, max_seconds: float | None = None
) -> None:
    """Print for each layer whether stacks of it represent a machine, and write certificates of refusals into a folder.

    A layer of a released model is answered for that model's code, another one by its row in the table of layers.
    """
    deadline, found = Deadline.of(max_seconds), dict[str, LayerAnswer]()
    rows = [of_name(layer) for layer in layers]
    if undecided := [row for row in rows if not (row.exported_to or row.decided_as)]:
        raise UnsupportedFormat(f"stacks of {undecided[0].name} are not decided: {undecided[0].abilities}")
    for layer, row in zip(layers, rows, strict=True):
        name = released_model(layer) if row.exported_to else row.name
        try:
            with limited(deadline):
                found[name] = answer(machine, name) if row.exported_to else _answer_of_row(machine, row.decided_as)
        except OutOfTime:
            found[name] = LayerAnswer("unknown", "unknown: time limit")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for layer, said in found.items():
            if said.refusal is not None:
                content = json.dumps(said.refusal.to_json(), indent=1) + "\n"
                write_atomically(folder / f"{layer}.json", content.encode())
    if as_json:
        layers_json = {layer: said.to_json() for layer, said in found.items()}
        console.emit_json({"machine": sizes.machine_json(machine), "layers": layers_json})
        return
    console.facts("machine", sizes.machine_rows(machine))
    console.facts("\nlayers", [(layer, f"{said.kind}: {said.why}") for layer, said in found.items()])
    if folder is not None:
        console.say(f"certificates of refusals in {folder}: python -m fsa2lrnn.export.recheck FILE checks one")


def _answer_of_row(machine: MooreMachine, name: str) -> LayerAnswer:
    """Return the answer on stacks of a layer by its row in the table of layers, and those that bear upon it."""
    row = decide(machine, classify(machine))[name]
    one = f"; one layer: {row.one}" + (f" ({row.theorem})" if row.one == "no" else "")
    return LayerAnswer(row.stack, f"{row.why or row.smallest or 'a theorem'}{one}")


def as_network(folder: Path) -> Wrapped:
    """Load the model of a folder as a network that `falsify` and `extract_learned` accept, with one-hot logits."""
    from fsa2lrnn.export import folder as folders
    from fsa2lrnn.export.folder import SteppedModule
    from fsa2lrnn.nn.wrapped import wrap

    model = folders.load(folder)
    return wrap(SteppedModule(model), model.machine.alphabet, model.outputs)


def run(folder: Path, word: str, trace: bool, as_json: bool, given: list[str]) -> None:
    """Run the model of a folder on a word ("-" for standard input), piece by piece, and print the output.

    Raises `UnsupportedFormat` for options in `given`, which have no effect here, and for outputs that are letters;
    `InvalidWord` for the empty word.
    """
    import torch

    from fsa2lrnn.export import folder as folders

    _refuse(given, folder)
    model = folders.load(folder)
    alphabet, n = model.machine.alphabet, len(model.machine.alphabet)
    pieces = [words.checked(word)] if word != "-" else words.read_pieces(sys.stdin.buffer)
    tracer = tracing.Tracer(alphabet, tuple(model.outputs), model.machine)
    cache, length, last, kept = None, 0, -1, list[tracing.Step]()
    if trace and not as_json:
        print(tracing.header(has_states=True))
    for tokens in tracer.read(words.read(pieces, alphabet)):
        if not len(tokens):
            continue
        found, cache = folders.run(model, torch.from_numpy(np.asarray(tokens)), cache=cache)
        if (least := int(found.min())) < n:
            raise UnsupportedFormat(f"{folder} put out the letter {alphabet[least]!r}: its weights were changed")
        if int(found.max()) - n >= len(model.outputs):
            raise UnsupportedFormat(f"{folder} put out padding: its weights were changed")
        length, last = length + len(tokens), int(found[-1]) - n
        if trace and as_json:
            kept += tracer.steps(found - n)
        elif trace:
            for k, step in enumerate(tracer.steps(found - n), start=length - len(found) + 1):
                print(tracing.line(k, step, has_states=True))
    if not length:
        raise InvalidWord("a language model puts out nothing before the first letter: give a word of one or more")
    output = model.outputs[last]
    if as_json:
        value = {"length": length, "output": symbols.to_json(output), "method": model.layer, "dtype": model.dtype}
        console.emit_json({**value, **tracing.steps_json(kept)} if trace else value)
    elif not trace:
        shown = console.markup(symbols.show(output))
        console.out.print(f"[bold]{shown}[/]  ({counted(length, 'letter')}, {model.dtype}, {model.layer})")


def verify(
    folder: Path, machine: MooreMachine, budget: int, seconds: float | None, as_json: bool, given: list[str]
) -> None:
    """Prove the model of a folder on its own code, one token per call, and print the verdict.

    Raises `UnsupportedFormat` for options in `given`, which have no effect here.
    """
    from fsa2lrnn.export.folder import load
    from fsa2lrnn.export.whole_model import prove

    _refuse(given, folder)
    model = load(folder, machine)
    verdict = prove(model, machine, budget, seconds)
    evidence.tell(verdict, model.machine.alphabet, as_json)
    if not isinstance(verdict, Proved):
        raise typer.Exit(NO)


def _refuse(given: list[str], folder: Path) -> None:
    if given:
        raise UnsupportedFormat(
            f"{', '.join(given)}: {folder} runs on its own code and knows its letters; leave it out"
        )
