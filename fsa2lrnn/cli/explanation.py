"""The explanation of an automaton: its algebra, families and layers that represent it, and costs, as text and JSON."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.cli import console
from fsa2lrnn.deadline import Deadline, limited, without_limits
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import BudgetExceeded, OutOfTime, check_type
from fsa2lrnn.layers import LAYERS, is_family, of_name

if TYPE_CHECKING:
    from fsa2lrnn.automata.monoid.classification import Classification
    from fsa2lrnn.export.in_use import Decision, LayerVerdict
    from fsa2lrnn.families import Verdict
    from fsa2lrnn.families.block_sizes.needs import BlockNeeds

_COLOURS = {"no": "red", "unknown": "yellow", "yes": "green", "undecided": "yellow"}
_ANSWERS = {answer: f"[{colour}]{answer}[/]" for answer, colour in _COLOURS.items()}


@dataclass(frozen=True)
class OutOfBudget:
    """The verdict on a family that was not decided within the budget."""

    reason: str
    answer: ClassVar[str] = "undecided"

    def explain(self) -> str:
        """Return the reason."""
        return self.reason


@dataclass(frozen=True, eq=False)
class Explanation(Brief):
    """What the library decides about a machine; `str` and `print` give the tables of the command `explain`.

    Attributes:
        machine: the machine.
        classification: the algebra of its transition monoid.
        families: the verdict on each family that was asked for, re-checked.
        layers: the verdict on each layer that was asked for by name.
        in_use: the decision on each layer in use; None if families were named.
        blocks: the least block sizes, or why they were not computed; None if families were named.
        costs: the size of one layer of one-hot blocks and its multiplications.
        max_seconds: the time limit, in seconds of processor time.
    """

    machine: MooreMachine
    classification: Classification
    families: dict[str, Verdict | OutOfBudget]
    layers: dict[str, LayerVerdict]
    in_use: dict[str, Decision] | None
    blocks: BlockNeeds | str | None
    costs: dict[str, object]
    max_seconds: float | None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, with the certificates of the families."""
        from fsa2lrnn.cli import evidence

        return {
            "machine": evidence.machine_json(self.machine),
            "monoid": self.classification.to_json(),
            "families": {name: _json(verdict) for name, verdict in self.families.items()},
            "layers": {name: answer.to_json() for name, answer in self.layers.items()},
            "layers_in_use": self.in_use and {name: row.to_json() for name, row in self.in_use.items()},
            "blocks": None if self.blocks is None or isinstance(self.blocks, str) else self.blocks.to_json(),
            "costs": self.costs,
        }

    def __str__(self) -> str:
        out = console.Printer(file=io.StringIO(), width=console.out.width)
        self.print(out)
        return out.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]

    def print(self, out: Console) -> None:
        """Print the tables on a console."""
        from fsa2lrnn.cli import evidence

        console.facts("machine", evidence.machine_rows(self.machine), out)
        is_late = False
        if self.in_use is not None:
            is_late = _print_layers_in_use(self.in_use, out)
        is_late |= _print_facts("algebra", self.classification.explain()[1:], out)
        if self.in_use is None:
            _print_verdicts(self.families, self.layers, out)
        if self.blocks is not None:
            blocks = self.blocks
            sizes_of_blocks = [("not looked for", blocks)] if isinstance(blocks, str) else blocks.sentences()
            is_late |= _print_facts("least size of blocks, with one vector per state", sizes_of_blocks, out)
        console.facts(
            "\none-hot layer", [(key.replace("_", " "), str(value)) for key, value in self.costs.items()], out
        )
        if is_late:
            more = "" if self.max_seconds is None else f", as --max-seconds {2 * self.max_seconds:g}"
            out.print(f"\nthe time limit passed before all questions were decided: allow more seconds{more}")


def explain(
    machine: MachineSource,
    families: Sequence[str] = (),
    max_seconds: float | None = 30.0,
    *,
    decide_all: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> Explanation:
    """Return the explanation of a machine: its algebra, the layers that can represent it, and the cost of a network.

    Args:
        machine: any machine, or its source.
        families: families or layers, by name; only these are decided then, in place of all layers in use.
        max_seconds: the time limit, in seconds of processor time; what is not decided by then is "unknown: time limit".
            The algebra, each family, and the layers have half of the seconds that remain when their search begins.
        decide_all: whether to decide every family, with certificates, in addition to the layers in use.
        report: called with the name of each step before it begins.

    Raises `UnsupportedFormat` for an unknown name of a family or layer.

    >>> explain("task:parity", ["diagonal[0,1]"]).families["diagonal[0,1]"].answer
    'no'
    """
    deadline = Deadline.of(max_seconds)
    from fsa2lrnn.automata.monoid import classify
    from fsa2lrnn.families import FAMILIES, family_of
    from fsa2lrnn.families.block_sizes.needs import checked_needs

    machine = as_machine(machine)
    check_type(families, (list, tuple), "families", "a list of names of families or layers")
    # A layer is answered by the family that contains it.
    layers = [name for name, row in LAYERS.items() if row.family] if decide_all and not families else []
    for name in families:
        if not is_family(name):
            family_of(name)
            layers.append(of_name(name).name)
    named = [*filter(is_family, families), *(LAYERS[name].family for name in layers)]
    report("algebra")
    classification = classify(machine, max_seconds=deadline.share(0.5))
    verdicts = dict[str, "Verdict | OutOfBudget"]()
    for name in dict.fromkeys(FAMILIES if decide_all and not families else named):
        report(f"family {name}")
        verdicts[name] = _answer(machine, name, deadline.share(0.5))
    layer_verdicts: dict[str, LayerVerdict] = {}
    for name in layers:
        report(f"layer {name}")
        with limited(deadline.share(0.5)):
            layer_verdicts[name] = _verdict_on(machine, name, verdicts)
    blocks = in_use = None
    costs = _costs(machine)
    if not families:
        report("block sizes")
        blocks = checked_needs(machine, deadline)
        in_use = _in_use(machine, classification, blocks, deadline.share(0.5), report)
    return Explanation(machine, classification, verdicts, layer_verdicts, in_use, blocks, costs, max_seconds)


def _print_facts(title: str, rows: list[tuple[str, str]], out: Console) -> bool:
    """Print names and values, with long notes on time limits shortened; return whether there was such a note."""
    short = [(name, without_limits(text)) for name, text in rows]
    console.facts(f"\n{title}", short, out)
    return short != rows or any("unknown: time limit" in text for _, text in rows)


def _print_verdicts(
    families: Mapping[str, Verdict | OutOfBudget], layers: Mapping[str, LayerVerdict], out: Console
) -> None:
    """Print the verdicts on families, and those on layers by name."""
    if families:
        title = "which family can represent it in one layer (T3, T36 of docs/theory.md)"
        table = _table_of(title, "family", "answer", "evidence, re-checked independently")
        for name, verdict in families.items():
            table.add_row(escape(name), _ANSWERS[verdict.answer], escape(verdict.explain()))
        out.print(table)
    if layers:
        table = _table_of("layers by name, one over letters", "layer", "answer", "since")
        for name, answer in layers.items():
            facts = answer.to_json()
            since = f"{facts['is']}: {facts['why']}"
            table.add_row(escape(name), _ANSWERS.get(facts["answer"], facts["answer"]), escape(since))
        out.print(table)


def _table_of(title: str, *headings: str) -> Table:
    """Return an empty table with these headings."""
    table = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("answer", "one layer", "a stack", "layer"))
    return table


def _answer(machine: MooreMachine, family: str, deadline: Deadline) -> Verdict | OutOfBudget:
    """Return the verdict on a family, checked anew by the code that only checks, or why it was not decided."""
    from fsa2lrnn.families import Unknown, represent

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


def _json(verdict: Verdict | OutOfBudget) -> dict[str, object]:
    """Return the verdict on a family as a JSON object, with its certificate if it has one."""
    from fsa2lrnn import symbols
    from fsa2lrnn.families import Impossibility

    value: dict[str, object] = {"answer": verdict.answer, "evidence": verdict.explain()}
    if isinstance(verdict, Impossibility) and (four := verdict.four_words) is not None:
        texts = [symbols.word_text(word, verdict.machine.alphabet) for word in four]
        value["four_words"] = dict(zip(("prefix", "u", "other"), texts, strict=True))
    if to_json := getattr(verdict, "to_json", None):
        value["certificate"] = to_json()
    return value


def _costs(machine: MooreMachine) -> dict[str, object]:
    """Return the size and the multiplications of one layer of one-hot blocks: b² per step, b³ per product of a scan."""
    from fsa2lrnn.compile.recurrence import compile_recurrence

    b = compile_recurrence(machine).tables.block_sizes
    return {
        "layers": 1,
        "block_sizes": list(b),
        "multiplications_a_step_sequential": sum(size**2 for size in b),
        "multiplications_a_product_parallel": sum(size**3 for size in b),
        "layout": "dense" if max(b) <= 64 else "index table: a look-up a step",
    }


def _in_use(
    machine: MooreMachine,
    classification: Classification,
    blocks: BlockNeeds | str,
    deadline: Deadline,
    report: Callable[[str], None],
) -> dict[str, Decision]:
    """Return the decision on each layer in use; `blocks` are the block sizes, or why they were not computed."""
    from fsa2lrnn.export.in_use import decide
    from fsa2lrnn.export.refuse import decide_stack

    bounds = None if isinstance(blocks, str) else (blocks.blocks["R"].lower, blocks.blocks["R"].upper)
    return decide(machine, classification, decide_stack, bounds, lambda title: report(f"layers: {title}"), deadline)


def _print_layers_in_use(rows: dict[str, Decision], out: Console) -> bool:
    """Print the table of layers in use and the reasons for "no" and "unknown"; return whether a time limit left some.

    The result is True if a row is "unknown" because of a limit.
    """
    from fsa2lrnn.export.in_use import title_of

    table = _table_of("which layer should I use?", "layer", "one layer", "a stack", "smallest that is known")
    reasons: dict[str, list[str]] = {}
    for name, row in rows.items():
        title = title_of(name)
        late = "\n(time limit)" if row.is_out_of_time else ""
        cells = (_ANSWERS[answer] + (late if answer == "unknown" else "") for answer in (row.one, row.stack))
        table.add_row(escape(title), *cells, escape(row.smallest))
        if reason := _reason(row):
            reasons.setdefault(reason, []).append(title)
    out.print(table, soft_wrap=False)
    for why, titles in reasons.items():
        out.print(f"[cyan]{escape(', '.join(titles))}[/]: {escape(console.plain(why))}", soft_wrap=False)
    families = ", ".join(row.name for row in LAYERS.values() if row.decided_as and row.family)
    layers = ", ".join(row.name for row in LAYERS.values() if row.exported_to)
    out.print(
        "[dim]One layer: its recurrence over letters, one vector per state, over the reals, with any read-out. A "
        "stack: any number of layers with finitely many states, without attention between. β ≤ 2 allows negative "
        "eigenvalues. Theorems and sections are those of docs/theory.md, papers are in docs/related-work.md; "
        "CITATION.cff says how to cite.[/]\n"
        f"[dim]Evidence: `explain --family NAME` for {families}; `explain --layer NAME` for {layers}.[/]",
        soft_wrap=False,
    )
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


def _verdict_on(machine: MooreMachine, layer: str, verdicts: Mapping[str, Verdict | OutOfBudget]) -> LayerVerdict:
    """Return the verdict on a layer by its canonical name, from the verdict on its family if `verdicts` has it."""
    from fsa2lrnn.export.in_use import LayerVerdict, say

    verdict = verdicts.get(LAYERS[layer].family)
    if isinstance(verdict, OutOfBudget):
        return LayerVerdict(layer, verdict.answer, verdict.explain())
    try:
        return say(machine, layer, verdict)
    except BudgetExceeded as fault:
        return LayerVerdict(layer, OutOfBudget.answer, str(fault))
