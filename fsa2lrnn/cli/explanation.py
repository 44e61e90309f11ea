"""The explanation of a machine on one screen: algebra, families that can represent it, costs, and a cascade."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.markup import escape
from rich.table import Table

from fsa2lrnn import symbols
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid import classify
from fsa2lrnn.cli import activity, cascades, console, sizes
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.deadline import Deadline, limited, without_limits
from fsa2lrnn.errors import BudgetExceeded, OutOfTime
from fsa2lrnn.families import FAMILIES, Impossibility, Unknown, Verdict, family_of, represent
from fsa2lrnn.files import write_atomically
from fsa2lrnn.layers import LAYERS, is_family, of_name

_COLOURS = {"no": "red", "unknown": "yellow", "yes": "green", "undecided": "yellow"}
ANSWERS = {answer: f"[{colour}]{answer}[/]" for answer, colour in _COLOURS.items()}


@dataclass(frozen=True)
class OutOfBudget:
    """The verdict on a family that was not decided within the budget."""

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
    decided where the answer is JSON, or certificates are written. What is not decided within `max_seconds` is "unknown:
    time limit"; the facts of algebra, each family, and the layers have half of the seconds that remain when their
    search begins, the cascade all that then remain. An unknown name of a family or layer raises `UnsupportedFormat`.
    """
    deadline = Deadline.of(max_seconds)
    from fsa2lrnn.cli import layer_table
    from fsa2lrnn.families.block_sizes.needs import checked_needs

    # 1. Compute the verdicts, the costs and the cascade. A layer is answered by the family that contains it.
    are_all = not families and (as_json or folder is not None)
    layers = [name for name, row in LAYERS.items() if row.family] if are_all else []
    for name in families:
        if not is_family(name):
            family_of(name)
            layers.append(of_name(name).name)
    named = FAMILIES if are_all else [*filter(is_family, families), *(LAYERS[name].family for name in layers)]
    names = list(dict.fromkeys(named))
    classification = classify(machine, max_seconds=deadline.share(0.5))
    verdicts = {name: _answer(machine, name, deadline.share(0.5)) for name in names}
    layer_verdicts: dict[str, Any] = {}
    for name in layers:
        with limited(deadline.share(0.5)):
            layer_verdicts[name] = layer_table.verdict_on(machine, name, verdicts)
    costs = _costs(machine)
    activity.note("block sizes")
    blocks = rows = None
    if not families:
        blocks = checked_needs(machine, deadline)
        rows = layer_table.in_use(machine, classification, blocks, deadline.share(0.5))
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
    is_late = False
    if rows is not None:
        is_late = layer_table.print_table(rows)
    is_late |= _print_facts("algebra", classification.explain()[1:])
    if families:
        _print_families(verdicts)
        if layer_verdicts:
            layer_table.print_verdicts(layer_verdicts)
    if blocks is not None:
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


def _print_facts(title: str, rows: list[tuple[str, str]]) -> bool:
    """Print names and values, with long notes on time limits shortened; return whether there was such a note."""
    short = [(name, without_limits(text)) for name, text in rows]
    console.facts(f"\n{title}", short)
    return short != rows or any("unknown: time limit" in text for _, text in rows)


def _print_families(verdicts: dict[str, Verdict | OutOfBudget]) -> None:
    title = "which family can represent it (T3, T36 of docs/theory.md)"
    table = table_of(title, "family", "answer", "evidence, re-checked independently")
    for name, verdict in verdicts.items():
        table.add_row(escape(name), ANSWERS[verdict.answer], escape(verdict.explain()))
    if verdicts:
        console.out.print(table)


def table_of(title: str, *headings: str) -> Table:
    """Return an empty table with these headings."""
    table = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("answer", "one layer", "a stack", "layer"))
    return table


def _answer(machine: MooreMachine, family: str, deadline: Deadline) -> Verdict | OutOfBudget:
    try:
        with limited(deadline):
            verdict = represent(machine, family)
            if not isinstance(verdict, Unknown):
                verdict.check()
            return verdict
    except OutOfTime:
        return OutOfBudget("unknown: time limit")
    except BudgetExceeded as fault:
        return OutOfBudget(str(fault))


def _json(verdict: Verdict | OutOfBudget) -> dict[str, Any]:
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


def _write_certificates(verdicts: dict[str, Verdict | OutOfBudget], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, verdict in verdicts.items():
        if to_json := getattr(verdict, "to_json", None):
            safe = "".join(c if c.isalnum() else "_" for c in name).strip("_")
            write_atomically(folder / f"{safe}.json", (json.dumps(to_json(), indent=1) + "\n").encode())
