"""The explanation of a machine on one screen: its algebra, the families that can represent it, the cost of a network,
and its cascade of small blocks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.markup import escape
from rich.table import Table

from fsa2lrnn import registry, symbols
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid import classify
from fsa2lrnn.automata.monoid.classification import Classification
from fsa2lrnn.cli import activity, cascades, console, sizes
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.deadline import Deadline, limited, without_limits
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.families import FAMILIES, Impossibility, Unknown, Verdict, description_of, represent
from fsa2lrnn.families.in_use import IN_USE, Decision, decide
from fsa2lrnn.families.named import NAMED, LayerVerdict, say
from fsa2lrnn.files import write_atomically

_COLOURS = {"no": "red", "unknown": "yellow", "yes": "green", "undecided": "yellow"}
_ANSWERS = {answer: f"[{colour}]{answer}[/]" for answer, colour in _COLOURS.items()}


@dataclass(frozen=True)
class _OutOfBudget:
    reason: str
    answer: ClassVar[str] = "undecided"

    def explain(self) -> str:
        return self.reason


def main(
    machine: MooreMachine,
    families: list[str],
    folder: Path | None,
    as_json: bool,
    max_block: int | None = None,
    token_shift: bool = True,
    drawing: Path | None = None,
    max_seconds: float | None = None,
) -> None:
    """Classify a machine, decide and re-check each family, search for a cascade, and print the results.

    The table of layers in use and the least block sizes are computed only if no families are named; all families are
    decided where the answer is JSON, or certificates are written. Layers and the cascade that are not decided within
    `max_seconds` are "unknown"; they have half of the seconds that remain when their search begins.
    """
    deadline = Deadline.of(max_seconds)
    for name in families:
        if (layer := IN_USE.get(name)) is not None and layer.external and not (name in NAMED or name in FAMILIES):
            raise UnsupportedFormat(f"{name} names no family: write --layer {name}")
    # 1. Compute the verdicts, the costs and the cascade.
    are_all = not families and (as_json or folder is not None)
    layers = list(NAMED) if are_all else [name for name in families if name in NAMED]
    names = list(FAMILIES) if are_all else [name for name in families if name not in NAMED]
    for name in names:
        description_of(name)
    classification = classify(machine)
    verdicts = {name: _answer(machine, name) for name in names}
    layer_verdicts = {name: _layer_verdict(machine, name, verdicts) for name in layers}
    costs = _costs(machine)
    extra = registry.find("block_size.sentences")
    activity.note("block sizes")
    blocks = None if families or extra is None else extra.checked_needs(machine, deadline)
    rows = None if families else _layers_in_use(machine, classification, blocks, deadline.share(0.5))
    activity.note("cascade")
    with limited(deadline):
        small = cascades.look(machine, max_block, token_shift)
    # 2. Write the certificates, the drawing and the JSON object.
    if folder is not None:
        _write_certificates(verdicts, folder)
    if drawing is not None:
        cascades.draw(small, drawing)
    if as_json:
        console.emit_json(
            {
                "machine": sizes.machine_json(machine),
                "monoid": classification.to_json(),
                "families": {name: _json(verdict) for name, verdict in verdicts.items()},
                "layers": {name: answer.to_json() for name, answer in layer_verdicts.items()},
                "layers_in_use": rows and {name: row.to_json() for name, row in rows.items()},
                "blocks": None if blocks is None or isinstance(blocks, str) else blocks.to_json(),
                "costs": costs,
                "cascade": cascades.to_json(small),
            }
        )
        return
    # 3. Print the tables.
    console.facts("machine", sizes.machine_rows(machine))
    is_late = rows is not None and _print_layers(rows)
    console.facts("\nalgebra", classification.explain()[1:])
    if rows is None:
        _print_families(verdicts, layer_verdicts)
    if not families:
        if blocks is None:
            blocks = str(registry.not_installed("block_size", "the search"))
        sizes_of_blocks = [("not looked for", blocks)] if isinstance(blocks, str) else blocks.sentences()
        is_late |= _print_facts("least size of blocks, with one vector per state", sizes_of_blocks)
    console.facts("\none-hot layer", [(key.replace("_", " "), str(value)) for key, value in costs.items()])
    is_late |= _print_facts("cascade", cascades.rows(small))
    if is_late:
        more = "" if max_seconds is None else f", as --max-seconds {2 * max_seconds:g}"
        console.out.print(f"\nthe time limit passed before all questions were decided: allow more seconds{more}")
    if drawing is not None:
        console.out.print(f"\ncascade drawn in {escape(str(drawing))}")
    if folder is not None:
        console.out.print(f"\ncertificates in {folder}: python -m fsa2lrnn.families.recheck FILE checks one")


def _layers_in_use(
    machine: MooreMachine, classification: Classification, blocks: Any, deadline: Deadline
) -> dict[str, Decision]:
    """Return the decision on each layer in use, with stacks and block sizes where their extras are installed."""
    real = None if blocks is None or isinstance(blocks, str) else blocks.blocks["R"]
    bounds = None if real is None else (real.lower, real.upper)
    stacks = registry.find("huggingface.stacks")
    return decide(machine, classification, stacks, bounds, lambda title: activity.note(f"layers: {title}"), deadline)


def _print_layers(rows: dict[str, Decision]) -> bool:
    """Print the table of layers in use, and below it the reasons for "no" and "unknown", each once.

    Return whether the time limit left something undecided.
    """
    table = _table("which layer should I use?", "layer", "one layer", "a stack", "smallest that is known")
    reasons: dict[str, list[str]] = {}
    for name, row in rows.items():
        title = IN_USE[name].title
        late = "\n(time limit)" if row.is_out_of_time else ""
        cells = (_ANSWERS[answer] + (late if answer == "unknown" else "") for answer in (row.one, row.stack))
        table.add_row(escape(title), *cells, escape(row.smallest))
        if reason := _reason(row):
            reasons.setdefault(reason, []).append(title)
    console.out.print(table, soft_wrap=False)
    for why, titles in reasons.items():
        console.out.print(f"[cyan]{escape(', '.join(titles))}[/]: {escape(console.plain(why))}", soft_wrap=False)
    console.out.print(
        "[dim]One layer: its recurrence over letters, one vector per state, over the reals, with any read-out. A "
        "stack: any number of layers with finitely many states, without attention between. β ≤ 2 allows negative "
        "eigenvalues. Theorems and sections are those of docs/theory.md, papers are in docs/related-work.md; "
        "CITATION.cff says how to cite.[/]",
        soft_wrap=False,
    )
    console.out.print(f"[dim]{_evidence()}[/]", soft_wrap=False)
    open_rows = [row for row in rows.values() if "unknown" in (row.one, row.stack)]
    return any(row.is_out_of_time or without_limits(row.why) != row.why for row in open_rows)


def _reason(row: Decision) -> str:
    """Return the reason for the "no" of a row with its theorem, or what was tried; "" for none."""
    why = "" if row.is_out_of_time else without_limits(row.why).rstrip(".")
    if not row.theorem:
        return why
    if row.stack == "no" or why.endswith(" contains it"):
        return f"{why} ({row.theorem})"
    return f"not in one layer ({row.theorem})" + (f"; {why}" if why and row.stack == "unknown" else "")


def _evidence() -> str:
    """Return which options show the evidence for the layers of the table, by the names that they take."""
    families = ", ".join(name for name in IN_USE if name in NAMED or name in FAMILIES)
    layers = ", ".join(
        name if name == layer.external else f"{layer.external} ({layer.title})"
        for name, layer in IN_USE.items()
        if layer.external is not None
    )
    return f"Evidence: `explain --family NAME` for {families}; `explain --layer NAME` for {layers}."


def _print_facts(title: str, rows: list[tuple[str, str]]) -> bool:
    """Print names and values, time limits in short; return whether there was one."""
    short = [(name, without_limits(text)) for name, text in rows]
    console.facts(f"\n{title}", short)
    return short != rows


def _print_families(verdicts: dict[str, Verdict | _OutOfBudget], layer_verdicts: dict[str, LayerVerdict]) -> None:
    title = "which family can represent it (T3, T36 of docs/theory.md)"
    table = _table(title, "family", "answer", "evidence, re-checked independently")
    for name, verdict in verdicts.items():
        table.add_row(escape(name), _ANSWERS[verdict.answer], escape(verdict.explain()))
    if verdicts:
        console.out.print(table)
    table = _table("layers by name, one over letters", "layer", "answer", "since")
    for name, answer in layer_verdicts.items():
        facts = answer.to_json()
        since = f"{facts['is']}: {facts['why']}"
        table.add_row(escape(name), _ANSWERS.get(facts["answer"], facts["answer"]), escape(since))
    if layer_verdicts:
        console.out.print(table)


def _table(title: str, *headings: str) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("answer", "one layer", "a stack", "layer"))
    return table


def _layer_verdict(machine: MooreMachine, layer: str, verdicts: dict[str, Verdict | _OutOfBudget]) -> LayerVerdict:
    verdict = verdicts.get(NAMED[layer].family or "")
    if isinstance(verdict, _OutOfBudget):
        return LayerVerdict(layer, verdict.answer, verdict.explain())
    try:
        return say(machine, layer, verdict)
    except BudgetExceeded as fault:
        return LayerVerdict(layer, _OutOfBudget.answer, str(fault))


def _answer(machine: MooreMachine, family: str) -> Verdict | _OutOfBudget:
    try:
        verdict = represent(machine, family)
    except BudgetExceeded as fault:
        return _OutOfBudget(str(fault))
    if not isinstance(verdict, Unknown):
        verdict.check()
    return verdict


def _json(verdict: Verdict | _OutOfBudget) -> dict[str, Any]:
    value: dict[str, Any] = {"answer": verdict.answer, "evidence": verdict.explain()}
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


def _write_certificates(verdicts: dict[str, Verdict | _OutOfBudget], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, verdict in verdicts.items():
        if to_json := getattr(verdict, "to_json", None):
            safe = "".join(c if c.isalnum() else "_" for c in name).strip("_")
            write_atomically(folder / f"{safe}.json", (json.dumps(to_json(), indent=1) + "\n").encode())
