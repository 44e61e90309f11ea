"""`python -m verify`: the registry of propositions as a table that fills during the run, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from fsa2lrnn.cli import console
from verify import audit, propositions
from verify.propositions import Effort, Outcome, Proposition, Proved, Refuted, Tested

_COLOUR = {"proved": "green", "tested": "green", "refuted": "yellow", "undecided": "yellow"}


def main(paper: bool, deep: bool, only: Iterable[str], as_json: bool) -> None:
    """Check the named propositions, or all, or those of the paper; exit 1 if an answer is not of the expected kind."""
    chosen = propositions.select(propositions.REGISTRY, only)
    if paper:
        chosen = [proposition for proposition in chosen if proposition.is_of_paper]
    effort = propositions.DEEP if deep else propositions.FAST
    with _one_thread():
        if as_json:
            outcomes = list(propositions.run(chosen, effort))
            claims = {"claims": audit.to_json()} if paper else {}
            console.emit_json({**to_json(outcomes, effort), **claims})
        else:
            outcomes = _shown(chosen, effort)
            console.out.print(summary(outcomes, effort))
            if paper:
                console.out.print(f"\n{escape(audit.text())}")
    if not all(outcome.expected for outcome in outcomes):
        raise SystemExit(1)


def to_json(outcomes: Iterable[Outcome], effort: Effort) -> dict[str, Any]:
    """Return every outcome with its statement and evidence, and the counts."""
    outcomes = list(outcomes)
    return {
        "effort": {"name": effort.name, "examples": effort.examples, "seed": effort.seed},
        "propositions": [
            {
                "id": outcome.proposition.id,
                "statement": outcome.proposition.statement,
                "hypotheses": outcome.proposition.hypotheses,
                "source": outcome.proposition.source,
                **outcome.answer.to_json(),
                "expected": outcome.expected,
                **({"instead": outcome.proposition.instead} if outcome.proposition.instead else {}),
            }
            for outcome in outcomes
        ],
        "counts": dict(Counter(outcome.answer.kind for outcome in outcomes)),
        "unexpected": [outcome.proposition.id for outcome in outcomes if not outcome.expected],
    }


def line(outcome: Outcome) -> str:
    """Return one outcome as one line of rich markup: identifier, verdict, cases, statement."""
    kind = outcome.answer.kind
    colour = _COLOUR[kind] if outcome.expected else "red bold"
    note = "" if outcome.expected else f"  [red bold]expected {outcome.proposition.expects.__name__.lower()}[/]"
    statement = f"[dim]{escape(outcome.proposition.statement)}[/]"
    return f"{outcome.proposition.id:22} [{colour}]{kind:9}[/] {_count(outcome):24} {statement}{note}"


def summary(outcomes: Iterable[Outcome], effort: Effort) -> str:
    """Return the failed statements with what holds instead, unexpected answers, and counts, in rich markup."""
    outcomes = list(outcomes)
    lines: list[str] = []
    for outcome in outcomes:
        proposition, answer = outcome.proposition, outcome.answer
        if isinstance(answer, Proved | Tested) and outcome.expected:
            continue
        text = answer.witness if isinstance(answer, Refuted) else getattr(answer, "how", getattr(answer, "budget", ""))
        lines += [
            f"\n[bold]{escape(proposition.id)}[/]  {escape(proposition.statement)} ({escape(proposition.source)})",
            f"  {answer.kind}: {escape(text)}",
        ]
        if proposition.instead and outcome.expected:
            lines.append(f"  instead: {escape(proposition.instead)}")
        if not outcome.expected:
            lines.append(f"  [red bold]unexpected[/]: {proposition.expects.__name__.lower()} was expected")
    kinds = Counter(outcome.answer.kind for outcome in outcomes)
    cases = sum(getattr(outcome.answer, "cases", 0) for outcome in outcomes)
    unexpected = sum(not outcome.expected for outcome in outcomes)
    shown = ", ".join(f"{kinds[kind]} {kind}" for kind in _COLOUR if kinds[kind])
    end = f"[red bold]{unexpected} of them unexpected[/]" if unexpected else "all as expected"
    return "\n".join(
        [
            *lines,
            "",
            f"[bold]{len(outcomes)} propositions[/]: {shown}, {end}; {cases:,} cases, {effort.name} profile "
            f"({effort.examples:,} examples a property, seed {effort.seed})",
        ]
    )


def _shown(chosen: list[Proposition], effort: Effort) -> list[Outcome]:
    """Run with a live table on a terminal, otherwise with one line per outcome."""
    outcomes: list[Outcome] = []
    if not console.out.is_terminal:
        for outcome in propositions.run(chosen, effort):
            console.out.print(line(outcome))
            outcomes.append(outcome)
        return outcomes
    with Live(_table(chosen, outcomes, ""), console=console.out, refresh_per_second=8) as live:

        def progress(done: int, total: int) -> None:
            live.update(_table(chosen, outcomes, f"{done:,} of {total:,}"))

        for outcome in propositions.run(chosen, replace(effort, progress=progress)):
            outcomes.append(outcome)
            live.update(_table(chosen, outcomes, ""))
    return outcomes


def _table(chosen: list[Proposition], outcomes: list[Outcome], progress: str) -> Table:
    """Return a table of the finished outcomes, the running one, and the number of waiting ones."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for outcome in outcomes:
        table.add_row(line(outcome))
    if waiting := chosen[len(outcomes) :]:
        table.add_row(f"{waiting[0].id:22} [cyan]running[/]   {progress}")
        table.add_row(f"[dim]{len(waiting) - 1} more[/]")
    return table


@contextmanager
def _one_thread() -> Generator[None]:
    """Use one thread within the context, because the products are too small for several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _count(outcome: Outcome) -> str:
    cases = getattr(outcome.answer, "cases", None)
    seed = f", seed {outcome.answer.seed}" if isinstance(outcome.answer, Tested) else ""
    return f"{cases:,} cases{seed}" if cases is not None else ""
