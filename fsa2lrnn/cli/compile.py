"""`fsa2lrnn compile`: compile an automaton into exact weights."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer

from fsa2lrnn.cli import console, options, sources
from fsa2lrnn.cli.weighted import compile_weighted, read_weighted
from fsa2lrnn.errors import UnsupportedFormat


def compile_(
    source: options.Source,
    output: options.ModelOutput = None,
    form: Annotated[
        options.Form,
        typer.Option(help="one layer of one-hot blocks, a cascade of small blocks, or the cheaper of the two"),
    ] = "onehot",
    max_block: Annotated[
        int | None, typer.Option(min=1, help="the largest block; by default no limit for one layer, 8 for a cascade")
    ] = None,
    dtype: Annotated[
        options.Dtype | None, typer.Option(help="arithmetic of the model: by default float32, float64 with weights")
    ] = None,
    normalisation: Annotated[
        options.Normalisation,
        typer.Option(help="rule for the columns of A: clip: p-norms at most 1; paper: as in its code; none; onehot"),
    ] = "clip",
    p: Annotated[float, typer.Option(min=1, help="order of the column norm")] = 1.2,
    completion: options.CompletionOption = None,
    alphabet: options.AlphabetOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Compile an automaton into exact weights, or a weighted one into the nearest weights."""
    options.check_model(output)
    if (weighted := read_weighted(source)) is not None:
        if (form, max_block, normalisation, p, completion, alphabet) != ("onehot", None, "clip", 1.2, None, None):
            raise UnsupportedFormat(f"{source} is a weighted automaton: give --dtype, --output and --json alone")
        compile_weighted(weighted, output, dtype or "float64", as_json)
        return
    machine = sources.read_machine(source, completion, alphabet)

    import torch

    from fsa2lrnn.cli import evidence
    from fsa2lrnn.compile.lower import lower
    from fsa2lrnn.compile.recurrence import compile_with_reason
    from fsa2lrnn.nn.checkpoint import save

    recurrence, why = compile_with_reason(machine, form, max_block)
    model = lower(recurrence, getattr(torch, dtype or "float32"), normalisation, p)
    if output is not None:
        save(model, output)
    if as_json:
        saved = str(output) if output else None
        facts = {"machine": evidence.machine_json(machine), "model": evidence.model_json(model)}
        console.emit_json({**facts, "why": why, "saved": saved})
        return
    console.facts("machine", evidence.machine_rows(machine))
    chosen = [("chosen", why)] if why else []
    saved = ("saved", str(output) if output else "no (-o FILE saves it)")
    console.facts("model", [*chosen, *evidence.model_rows(model), saved])
    more = sources.repeated(completion, alphabet)
    named, typed = quote(str(output or source)), f"{quote(source)}{more}"
    console.then(
        f"fsa2lrnn run {named} WORD --trace{'' if output else more}",
        f"fsa2lrnn verify {named} {typed}",
        f"fsa2lrnn draw {typed} -o p.html",
    )
