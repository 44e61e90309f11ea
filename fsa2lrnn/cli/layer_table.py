"""Print the answers of `explain` on layers: the table of layers in use, and verdicts on layers by name."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid.classification import Classification
from fsa2lrnn.cli import activity, console
from fsa2lrnn.cli.explanation import ANSWERS, OutOfBudget, table_of
from fsa2lrnn.deadline import Deadline, without_limits
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.export.in_use import Decision, LayerVerdict, decide, say, title_of
from fsa2lrnn.export.refuse import decide_stack
from fsa2lrnn.families import Verdict
from fsa2lrnn.layers import LAYERS


def in_use(
    machine: MooreMachine, classification: Classification, blocks: Any, deadline: Deadline
) -> dict[str, Decision]:
    """Return the decision on each layer in use; `blocks` are the block sizes if their extra computed them."""
    real = None if blocks is None or isinstance(blocks, str) else blocks.blocks["R"]
    bounds = None if real is None else (real.lower, real.upper)
    return decide(
        machine, classification, decide_stack, bounds, lambda title: activity.note(f"layers: {title}"), deadline
    )


def print_table(rows: dict[str, Decision]) -> bool:
    """Print the table of layers in use and the reasons for "no" and "unknown"; return whether a time limit left some.

    The result is True if a row is "unknown" because of a limit.
    """
    table = table_of("which layer should I use?", "layer", "one layer", "a stack", "smallest that is known")
    reasons: dict[str, list[str]] = {}
    for name, row in rows.items():
        title = title_of(name)
        late = "\n(time limit)" if row.is_out_of_time else ""
        cells = (ANSWERS[answer] + (late if answer == "unknown" else "") for answer in (row.one, row.stack))
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
    """Return the reason for the "no" or "unknown" of a row, with the theorem of a "no"; "" for none."""
    why = "" if row.is_out_of_time else without_limits(row.why).rstrip(".")
    if not row.theorem:
        return why
    if row.stack == "no" or why.endswith(" contains it"):
        return f"{why} ({row.theorem})"
    return f"not in one layer ({row.theorem})" + (f"; {why}" if why and row.stack == "unknown" else "")


def _evidence() -> str:
    """Return a sentence that states which options show the evidence for the layers of the table."""
    families = ", ".join(row.name for row in LAYERS.values() if row.decided_as and row.family)
    layers = ", ".join(row.name for row in LAYERS.values() if row.exported_to)
    return f"Evidence: `explain --family NAME` for {families}; `explain --layer NAME` for {layers}."


def print_verdicts(verdicts: dict[str, LayerVerdict]) -> None:
    """Print the verdict on each layer."""
    table = table_of("layers by name, one over letters", "layer", "answer", "since")
    for name, answer in verdicts.items():
        facts = answer.to_json()
        since = f"{facts['is']}: {facts['why']}"
        table.add_row(escape(name), ANSWERS.get(facts["answer"], facts["answer"]), escape(since))
    console.out.print(table)


def verdict_on(machine: MooreMachine, layer: str, verdicts: dict[str, Verdict | OutOfBudget]) -> LayerVerdict:
    """Return the verdict on the layer named `layer`, from the verdict on its family if `verdicts` has it."""
    verdict = verdicts.get(LAYERS[layer].family)
    if isinstance(verdict, OutOfBudget):
        return LayerVerdict(layer, verdict.answer, verdict.explain())
    try:
        return say(machine, layer, verdict)
    except BudgetExceeded as fault:
        return LayerVerdict(layer, OutOfBudget.answer, str(fault))
