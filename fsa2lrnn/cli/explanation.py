"""What is known of a machine, on one screen: its algebra, which families can represent it, what a network costs,
and its cascade of small blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import track
from rich.table import Table

from fsa2lrnn import registry, symbols
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid import classify
from fsa2lrnn.cli import cascades, console, sizes
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.families import FAMILIES, Impossibility, Unknown, Verdict, description_of, represent
from fsa2lrnn.families.named import NAMED, LayerVerdict, say
from fsa2lrnn.files import write_atomically

_ANSWERS = {
    "no": "[red]no[/]",
    "unknown": "[yellow]unknown[/]",
    "yes": "[green]yes[/]",
    "undecided": "[yellow]undecided[/]",
}
_LARGE = 40  # states from which the explanation names how many families are left to do


def main(
    machine: MooreMachine, families: list[str], folder: Path | None, wanted: cascades.CascadeRequest, as_json: bool
) -> None:
    """Classify, represent in each family, re-check every answer, look for a cascade, and print or return it all.

    The least sizes of blocks are looked for unless families are named, to which the question is restricted then.
    """
    layers = [name for name in families if name in NAMED] if families else list(NAMED)
    names = [name for name in families if name not in NAMED] if families else list(FAMILIES)
    for name in names:
        description_of(name)
    classification = classify(machine)
    busy = machine.n_states >= _LARGE and console.err.is_terminal
    turns = track(names, description="families", console=console.err, transient=True, disable=not busy)
    verdicts = {name: _answer(machine, name) for name in turns}
    said = {name: _said(machine, name, verdicts) for name in layers}
    costs = _costs(machine)
    extra = registry.find("block_size.sentences")
    blocks = None if families or extra is None else extra.checked_needs(machine)
    small = cascades.look(machine, wanted)
    if folder is not None:
        _write_certificates(verdicts, folder)
    if wanted.drawing is not None:
        cascades.draw(small, wanted.drawing)
    if as_json:
        console.emit_json(
            {
                "machine": sizes.machine_json(machine),
                "monoid": classification.to_json(),
                "families": {name: _json(verdict) for name, verdict in verdicts.items()},
                "layers": {name: _said_json(name, answer) for name, answer in said.items()},
                "blocks": None if blocks is None or isinstance(blocks, str) else blocks.to_json(),
                "costs": costs,
                "cascade": cascades.to_json(small),
            }
        )
        return
    console.facts("machine", sizes.machine_rows(machine))
    console.facts("\nalgebra", classification.explain()[1:])
    table = _table("which layer can represent it", "family", "answer", "evidence, re-checked independently")
    for name, verdict in verdicts.items():
        table.add_row(escape(name), _ANSWERS[_kind(verdict)], escape(_evidence(verdict)))
    if verdicts:
        console.out.print(table)
    table = _table("layers by name, one over letters", "layer", "answer", "since")
    for name, answer in said.items():
        facts = _said_json(name, answer)
        since = f"{facts['is']}: {facts['why']}"
        table.add_row(escape(name), _ANSWERS.get(facts["answer"], facts["answer"]), escape(since))
    if said:
        console.out.print(table)
    if not families:
        if blocks is None:
            blocks = str(registry.not_installed("block_size", "the search"))
        rows = [("not looked for", blocks)] if isinstance(blocks, str) else blocks.sentences()
        console.facts("\nleast size of blocks, with one vector a state", rows)
    console.facts("\none-hot layer", [(key.replace("_", " "), str(value)) for key, value in costs.items()])
    console.facts("\ncascade", cascades.rows(small))
    if wanted.drawing is not None:
        console.out.print(f"\ncascade drawn in {escape(str(wanted.drawing))}")
    if folder is not None:
        console.out.print(f"\ncertificates in {folder}: python -m fsa2lrnn.families.recheck FILE checks one")


def _table(title: str, *headings: str) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading == "answer")
    return table


def _said(
    machine: MooreMachine, layer: str, verdicts: dict[str, Verdict | BudgetExceeded]
) -> LayerVerdict | BudgetExceeded:
    """Of a layer by name, from what was found of its family."""
    known = verdicts.get(NAMED[layer].family or "")
    if isinstance(known, BudgetExceeded):
        return known
    try:
        return say(machine, layer, known)
    except BudgetExceeded as fault:
        return fault


def _said_json(layer: str, said: LayerVerdict | BudgetExceeded) -> dict[str, Any]:
    if isinstance(said, LayerVerdict):
        return said.to_json()
    return {"is": NAMED[layer].what, "family": NAMED[layer].family, "answer": "undecided", "why": str(said)}


def _answer(machine: MooreMachine, family: str) -> Verdict | BudgetExceeded:
    """The verdict of a family, its certificate re-checked."""
    try:
        verdict = represent(machine, family)
    except BudgetExceeded as fault:
        return fault
    if not isinstance(verdict, Unknown):
        verdict.check()
    return verdict


def _kind(verdict: Verdict | BudgetExceeded) -> str:
    if isinstance(verdict, BudgetExceeded):
        return "undecided"
    return verdict.answer


def _evidence(verdict: Verdict | BudgetExceeded) -> str:
    return str(verdict) if isinstance(verdict, BudgetExceeded) else verdict.explain()


def _json(verdict: Verdict | BudgetExceeded) -> dict[str, Any]:
    value: dict[str, Any] = {"answer": _kind(verdict), "evidence": _evidence(verdict)}
    if isinstance(verdict, Impossibility) and (four := verdict.four_words) is not None:
        texts = [symbols.word_text(word, verdict.machine.alphabet) for word in four]
        value["four_words"] = dict(zip(("prefix", "u", "other"), texts, strict=True))
    if to_json := getattr(verdict, "to_json", None):
        value["certificate"] = to_json()
    return value


def _costs(machine: MooreMachine) -> dict[str, Any]:
    layer = compile_recurrence(machine).tables
    b = layer.block_sizes
    return {
        "layers": 1,
        "block_sizes": list(b),
        "multiplications_a_step_sequential": sum(size**2 for size in b),
        "multiplications_a_product_parallel": sum(size**3 for size in b),
        "layout": "dense" if max(b) <= 64 else "index table: a look-up a step",
    }


def _write_certificates(verdicts: dict[str, Verdict | BudgetExceeded], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, verdict in verdicts.items():
        if to_json := getattr(verdict, "to_json", None):
            safe = "".join(c if c.isalnum() else "_" for c in name).strip("_")
            write_atomically(folder / f"{safe}.json", (json.dumps(to_json(), indent=1) + "\n").encode())
