"""`fsa2lrnn explain`: the algebra of an automaton, families and layers that represent it, and costs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer
from rich.markup import escape
from rich.table import Table

from fsa2lrnn.cli import console, options, sources
from fsa2lrnn.cli.weighted import explain_weighted, read_weighted
from fsa2lrnn.deadline import Deadline, limited, without_limits
from fsa2lrnn.errors import BudgetExceeded, OutOfTime, UnsupportedFormat
from fsa2lrnn.files import check_folder, write_atomically
from fsa2lrnn.layers import LAYERS, LayerRow, is_family, of_name, released_model

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.automata.monoid.classification import Classification
    from fsa2lrnn.export.in_use import Decision, LayerVerdict
    from fsa2lrnn.export.refuse import LayerAnswer
    from fsa2lrnn.families import Verdict
    from fsa2lrnn.families.block_sizes.needs import BlockNeeds

_COLOURS = {"no": "red", "unknown": "yellow", "yes": "green", "undecided": "yellow"}
_ANSWERS = {answer: f"[{colour}]{answer}[/]" for answer, colour in _COLOURS.items()}


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
            help="time limit; what is not decided by then is unknown",
        ),
    ] = 30.0,
    as_json: options.JsonOption = False,
) -> None:
    """Describe an automaton: its algebra, the families and layers that can represent it, and the cost of a network."""
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
        explain_model(machine, model, certificates, as_json, max_seconds)
        return
    if layer:
        explain_layers(machine, layer, certificates, as_json, max_seconds)
        return
    explain_machine(machine, family or [], certificates, as_json, max_seconds)
    if not as_json:
        typed = f"{quote(source)}{sources.repeated(completion, alphabet)}"
        console.then(f"fsa2lrnn compile {typed} -o m.safetensors --form auto", f"fsa2lrnn draw {typed} -o p.html")


def explain_model(
    machine: MooreMachine | None,
    path: Path,
    folder: Path | None,
    as_json: bool,
    max_seconds: float | None = None,
) -> None:
    """Print the card of a released model's configuration, or its answer on a machine with the layers that it is about.

    The certificate of a "no" is written into a folder if one is given.
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
        return
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


def explain_layers(
    machine: MooreMachine, layers: Sequence[str], folder: Path | None, as_json: bool, max_seconds: float | None = None
) -> None:
    """Print for each layer whether stacks of it represent a machine, and write certificates of refusals into a folder.

    A layer of a released model is answered for that model's code, another one by its row in the table of layers.
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
        return
    console.facts("machine", evidence.machine_rows(machine))
    console.facts("\nlayers", [(layer, f"{said.kind}: {said.why}") for layer, said in found.items()])
    if folder is not None:
        console.say(f"certificates of refusals in {folder}: python -m fsa2lrnn.export.recheck FILE checks one")


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


@dataclass(frozen=True)
class OutOfBudget:
    """The verdict on a family that was not decided within the budget."""

    reason: str
    answer: ClassVar[str] = "undecided"

    def explain(self) -> str:
        """Return the reason."""
        return self.reason


def explain_machine(
    machine: MooreMachine,
    families: list[str],
    folder: Path | None,
    as_json: bool,
    max_seconds: float | None = None,
) -> None:
    """Classify a machine, decide and re-check each family, and print the results.

    The table of layers in use and the least block sizes are computed only if no families are named; all families are
    decided where the answer is JSON, or certificates are written. What is not decided within `max_seconds` is "unknown:
    time limit"; the facts of algebra, each family, and the layers have half of the seconds that remain when their
    search begins. An unknown name of a family or layer raises `UnsupportedFormat`.
    """
    deadline = Deadline.of(max_seconds)
    from fsa2lrnn.automata.monoid import classify
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.families import FAMILIES, family_of
    from fsa2lrnn.families.block_sizes.needs import checked_needs

    # 1. Compute the verdicts and the costs. A layer is answered by the family that contains it.
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
    layer_verdicts: dict[str, LayerVerdict] = {}
    for name in layers:
        with limited(deadline.share(0.5)):
            layer_verdicts[name] = _verdict_on(machine, name, verdicts)
    costs = _costs(machine)
    console.note("block sizes")
    blocks = rows = None
    if not families:
        blocks = checked_needs(machine, deadline)
        rows = _in_use(machine, classification, blocks, deadline.share(0.5))
    # 2. Write the certificates and the JSON object.
    if folder is not None:
        _write_certificates(verdicts, folder)
    if as_json:
        console.emit_json(
            {
                "machine": evidence.machine_json(machine),
                "monoid": classification.to_json(),
                "families": {name: _json(verdict) for name, verdict in verdicts.items()},
                "layers": {name: answer.to_json() for name, answer in layer_verdicts.items()},
                "layers_in_use": rows and {name: row.to_json() for name, row in rows.items()},
                "blocks": None if blocks is None or isinstance(blocks, str) else blocks.to_json(),
                "costs": costs,
            }
        )
        return
    # 3. Print the tables.
    console.facts("machine", evidence.machine_rows(machine))
    is_late = False
    if rows is not None:
        is_late = _print_layers_in_use(rows)
    is_late |= _print_facts("algebra", classification.explain()[1:])
    if families:
        _print_verdicts(verdicts, layer_verdicts)
    if blocks is not None:
        sizes_of_blocks = [("not looked for", blocks)] if isinstance(blocks, str) else blocks.sentences()
        is_late |= _print_facts("least size of blocks, with one vector per state", sizes_of_blocks)
    console.facts("\none-hot layer", [(key.replace("_", " "), str(value)) for key, value in costs.items()])
    if is_late:
        more = "" if max_seconds is None else f", as --max-seconds {2 * max_seconds:g}"
        console.out.print(f"\nthe time limit passed before all questions were decided: allow more seconds{more}")
    if folder is not None:
        console.out.print(f"\ncertificates in {folder}: python -m fsa2lrnn.families.recheck FILE checks one")


def _print_facts(title: str, rows: list[tuple[str, str]]) -> bool:
    """Print names and values, with long notes on time limits shortened; return whether there was such a note."""
    short = [(name, without_limits(text)) for name, text in rows]
    console.facts(f"\n{title}", short)
    return short != rows or any("unknown: time limit" in text for _, text in rows)


def _print_verdicts(families: Mapping[str, Verdict | OutOfBudget], layers: Mapping[str, LayerVerdict]) -> None:
    """Print the verdicts on families, and those on layers by name."""
    if families:
        title = "which family can represent it (T3, T36 of docs/theory.md)"
        table = _table_of(title, "family", "answer", "evidence, re-checked independently")
        for name, verdict in families.items():
            table.add_row(escape(name), _ANSWERS[verdict.answer], escape(verdict.explain()))
        console.out.print(table)
    if layers:
        table = _table_of("layers by name, one over letters", "layer", "answer", "since")
        for name, answer in layers.items():
            facts = answer.to_json()
            since = f"{facts['is']}: {facts['why']}"
            table.add_row(escape(name), _ANSWERS.get(facts["answer"], facts["answer"]), escape(since))
        console.out.print(table)


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


def _write_certificates(verdicts: Mapping[str, object], folder: Path) -> None:
    """Write each verdict that is a certificate into a file named after the family or layer."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, verdict in verdicts.items():
        if to_json := getattr(verdict, "to_json", None):
            safe = "".join(c if c.isalnum() or c in "-." else "_" for c in name).strip("_")
            write_atomically(folder / f"{safe}.json", (json.dumps(to_json(), indent=1) + "\n").encode())


def _in_use(
    machine: MooreMachine, classification: Classification, blocks: BlockNeeds | str, deadline: Deadline
) -> dict[str, Decision]:
    """Return the decision on each layer in use; `blocks` are the block sizes, or why they were not computed."""
    from fsa2lrnn.export.in_use import decide
    from fsa2lrnn.export.refuse import decide_stack

    bounds = None if isinstance(blocks, str) else (blocks.blocks["R"].lower, blocks.blocks["R"].upper)
    return decide(
        machine, classification, decide_stack, bounds, lambda title: console.note(f"layers: {title}"), deadline
    )


def _print_layers_in_use(rows: dict[str, Decision]) -> bool:
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
    console.out.print(table, soft_wrap=False)
    for why, titles in reasons.items():
        console.out.print(f"[cyan]{escape(', '.join(titles))}[/]: {escape(console.plain(why))}", soft_wrap=False)
    families = ", ".join(row.name for row in LAYERS.values() if row.decided_as and row.family)
    layers = ", ".join(row.name for row in LAYERS.values() if row.exported_to)
    console.out.print(
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
