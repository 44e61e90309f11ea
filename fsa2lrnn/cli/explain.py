"""`fsa2lrnn explain`: the explanation of an automaton, and answers for layers and for released models."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from fsa2lrnn.cli import console, options, sources
from fsa2lrnn.cli.weighted import explain_weighted, read_weighted
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.errors import OutOfTime, UnsupportedFormat
from fsa2lrnn.files import check_folder, write_atomically
from fsa2lrnn.layers import LayerRow, is_family, of_name, released_model

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.export.refuse import LayerAnswer


def explain(
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=options.SOURCE, show_default=False)] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="decide for this released model: a config.json or its folder; without SOURCE, describe it"),
    ] = None,
    family: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="decide only this family or layer; repeatable")
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="decide only whether stacks of this layer can represent it; repeatable"),
    ] = None,
    certificates: Annotated[Path | None, typer.Option(help="write each answer's certificate into this folder")] = None,
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    max_seconds: Annotated[
        float,
        typer.Option(
            "--max-seconds",
            min=0.1,
            help="time limit in seconds of processor time; what is not decided by then is unknown",
        ),
    ] = 30.0,
    as_json: options.JsonOption = False,
) -> None:
    """Describe an automaton: its algebra, the families and layers that can represent it, and the cost of a network.

    With SOURCE and --family, --layer or --model the exit code is 1 if an answer is "no".
    """
    if certificates is not None:
        check_folder(certificates)
    if model is not None and (family or layer):
        raise UnsupportedFormat("--model decides for one released model: give it without --family and --layer")
    if source is None:
        if model is None:
            raise UnsupportedFormat("nothing to explain: give a SOURCE, or --model with a config.json")
        explain_model(None, model, certificates, as_json)
        return
    if (weighted := read_weighted(source)) is not None:
        if model is not None or family or layer:
            raise UnsupportedFormat("--model, --family and --layer decide for automata without weights")
        explain_weighted(weighted, certificates, as_json, max_seconds)
        return
    machine = sources.read_machine(source, completion, alphabet)
    if model is not None:
        _end({explain_model(machine, model, certificates, as_json, max_seconds)})
        return
    if layer:
        _end(explain_layers(machine, layer, certificates, as_json, max_seconds))
        return
    from fsa2lrnn.cli.explanation import explain as explain_machine

    found = explain_machine(
        machine, family or [], max_seconds, decide_all=as_json or certificates is not None, report=console.note
    )
    if certificates is not None:
        _write_certificates(found.families, certificates)
    if as_json:
        console.emit_json(found.to_json())
    else:
        found.print(console.out)
        if certificates is not None:
            console.out.print(f"\ncertificates in {certificates}: python -m fsa2lrnn.families.recheck FILE checks one")
        typed = f"{quote(source)}{sources.repeated(completion, alphabet)}"
        console.then(f"fsa2lrnn compile {typed} -o m.safetensors --form auto", f"fsa2lrnn draw {typed} -o p.html")
    # A layer's verdict stands beside that of the family that contains it, which nobody asked for.
    named = [found.families[name] if is_family(name) else found.layers[of_name(name).name] for name in family or ()]
    _end({verdict.answer for verdict in named})


def _end(answers: Collection[str]) -> None:
    """End with the exit code of a negative answer if there is one."""
    if "no" in answers:
        raise typer.Exit(options.NO)


def explain_model(
    machine: MooreMachine | None,
    path: Path,
    folder: Path | None,
    as_json: bool,
    max_seconds: float | None = None,
) -> str:
    """Print the card of a released model's configuration, or its answer on a machine, and return the answer's kind.

    The certificate of a "no" is written into a folder if one is given. Without a machine the kind is "".
    """
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.export.configuration import ModelAnswer, answer, read_card

    card = read_card(path)
    found: ModelAnswer | None = None
    if machine is not None:
        found = ModelAnswer("unknown", "unknown: time limit", card.scope)
        with suppress(OutOfTime), limited(Deadline.of(max_seconds)):
            found = answer(machine, card)
        if folder is not None and found.certificate is not None:
            _write_certificates({card.model.folder: found.certificate}, folder)
    if as_json:
        value = {"model": card.to_json()}
        if machine is not None and found is not None:
            value |= {"machine": evidence.machine_json(machine), **found.to_json()}
        console.emit_json(value)
        return "" if found is None else found.kind
    console.facts(f"{card.model.folder}: layers", card.lines())
    facts = [("note", note) for note in card.notes] + [("ignored by the code", name) for name in card.ignored]
    if found is not None:
        facts += [("answer", f"{found.kind}: {found.why}"), ("scope", found.scope)]
    else:
        holds = card.holds
        facts += [
            ("can hold", f"{holds.title} ({holds.theorem}), in large enough stacks"),
            *((f"  smallest: {source}", what) for source, what in holds.can),
            ("cannot hold", "no machine is excluded" if not holds.cannot else "all others"),
            *((f"  smallest: {source}", what) for source, what in holds.cannot),
            ("scope", card.scope),
        ]
    console.facts("\nwhat these recurrent layers hold", facts)
    return "" if found is None else found.kind


def explain_layers(
    machine: MooreMachine, layers: Sequence[str], folder: Path | None, as_json: bool, max_seconds: float | None = None
) -> set[str]:
    """Print for each layer whether stacks of it represent a machine, and return the kinds of the answers.

    The certificates of refusals are written into a folder if one is given. A layer of a released model is answered for
    that model's code, another one by its row in the table of layers.
    """
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.export.refuse import LayerAnswer, answer

    deadline, found = Deadline.of(max_seconds), dict[str, LayerAnswer]()
    rows = [of_name(layer) for layer in layers]
    if undecided := [row for row in rows if not (row.exported_to or row.decided_as or row.confused_by)]:
        raise UnsupportedFormat(f"stacks of {undecided[0].name} are not decided: {undecided[0].abilities}")
    for layer, row in zip(layers, rows, strict=True):
        name = released_model(layer) if row.exported_to else row.name
        try:
            with limited(deadline):
                found[name] = answer(machine, name) if row.exported_to else _answer_of_row(machine, row)
        except OutOfTime:
            found[name] = LayerAnswer("unknown", "unknown: time limit")
    refusals = {layer: said.refusal for layer, said in found.items() if said.refusal is not None}
    if folder is not None:
        _write_certificates(refusals, folder)
    if as_json:
        layers_json = {layer: said.to_json() for layer, said in found.items()}
        console.emit_json({"machine": evidence.machine_json(machine), "layers": layers_json})
    else:
        console.facts("machine", evidence.machine_rows(machine))
        console.facts("\nlayers", [(layer, f"{said.kind}: {said.why}") for layer, said in found.items()])
        if folder is not None:
            console.say(f"certificates of refusals in {folder}: python -m fsa2lrnn.export.recheck FILE checks one")
    return {said.kind for said in found.values()}


def _answer_of_row(machine: MooreMachine, layer: LayerRow) -> LayerAnswer:
    """Return the answer on stacks of a layer by its row in the table of layers, and those that bear upon it."""
    from fsa2lrnn.automata.monoid import classify
    from fsa2lrnn.export.confused_words import confused
    from fsa2lrnn.export.in_use import decide
    from fsa2lrnn.export.refuse import LayerAnswer

    if layer.confused_by:
        if (words := confused(machine, layer.confused_by)) is not None:
            return LayerAnswer("no", f"{words.explain()} ({layer.theorem})", refusal=words)
        return LayerAnswer("yes", f"no words are confused ({layer.theorem})")
    row = decide(machine, classify(machine))[layer.decided_as]
    by = {"unknown": "neither a construction nor an argument against one is known"}
    one = f"; one layer: {row.one}" + (f" ({row.theorem})" if row.one == "no" else "")
    return LayerAnswer(row.stack, f"{row.why or row.smallest or by.get(row.stack, 'a theorem')}{one}")


def _write_certificates(verdicts: Mapping[str, object], folder: Path) -> None:
    """Write each verdict that is a certificate into a file named after the family or layer."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, verdict in verdicts.items():
        if to_json := getattr(verdict, "to_json", None):
            safe = "".join(c if c.isalnum() or c in "-." else "_" for c in name).strip("_")
            write_atomically(folder / f"{safe}.json", (json.dumps(to_json(), indent=1) + "\n").encode())
