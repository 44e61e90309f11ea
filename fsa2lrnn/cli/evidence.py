"""Machines, models, verdicts, certificates, extractions and repairs, as JSON and as rows of text."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from fsa2lrnn import symbols
from fsa2lrnn.cli import console
from fsa2lrnn.cli.console import markup
from fsa2lrnn.display import blocks_text
from fsa2lrnn.errors import counted
from fsa2lrnn.verdicts import Proved, Refuted, Undecided

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.nn.model import LRNN
    from fsa2lrnn.symbols import Alphabet
    from fsa2lrnn.verdicts import Scope
    from fsa2lrnn.verification.certificate import Certificate
    from fsa2lrnn.verification.extraction import Extraction

_OUTPUTS = 40  # outputs displayed at the end of a trace
_SHOWN_STATES, _SHOWN_LETTERS = 40, 16  # the most states and letters of a printed transition table


def verdict_text(
    verdict: Proved | Refuted | Undecided, alphabet: Alphabet | None = None, may_close: bool = True
) -> str:
    """Return a verdict with its evidence as rich markup in a few lines, with words as typed over the alphabet.

    With `may_close` False it does not advise more states, because the model may reach infinitely many.
    """
    where = f"\n  {markup(str(verdict.scope))}"
    if isinstance(verdict, Proved):
        return (
            f"[green bold]proved[/]: equal on every word of every length\n"
            f"  {counted(verdict.pairs, 'joint state')} and {counted(verdict.transitions, 'transition')} explored, no "
            f"other can be reached\n  covered: {markup(str(verdict.covers))}{where}"
        )
    if isinstance(verdict, Refuted):
        word = markup(symbols.word_text(verdict.word, alphabet)) or "the empty word"
        checked, long = (counted(n, "letter") for n in (verdict.checked_length, len(verdict.word)))
        short = "no shorter word" if verdict.is_shortest else f"no word of at most {checked}, which were all checked"
        found = f", found by the {verdict.found_by} search" if verdict.searches else ""
        return (
            f"[red bold]refuted[/]: they differ on [bold]{word}[/] ({long}{found}), and on {short}"
            f"\n{_outputs('model', verdict.failure.given)}\n{_outputs('machine', verdict.failure.wanted)}{where}"
        )
    # Undecided: state what was exhausted, and which option or command helps.
    reach = verdict.checked_length
    equal = "every length" if reach is None else f"at most {counted(reach, 'letter')}"
    spent = advice = ""
    if verdict.budget is not None:
        spent, advice = f"{verdict.budget:,} joint states were not enough; ", "Raise --max-states"
    elif verdict.seconds is not None:
        spent, advice = f"the time limit of {verdict.seconds:g} s has passed; ", "Raise --max-seconds"
    if spent and not may_close:
        spent, advice = (
            "",
            (
                "This model may reach a new state with every letter, so that no\n  budget is enough for a proof of all "
                "lengths: `fsa2lrnn certify` proves it up to a length"
            ),
        )
    if advice:
        return f"[yellow bold]undecided[/]: {spent}equal on every word of {equal}. {advice}{where}"
    searches = [
        f"  {search.name:12}{search.what}{'' if search.finished else ', cut short'}" for search in verdict.searches
    ]
    lines = [f"[yellow bold]undecided[/]: no counterexample was found; equal on every word of {equal}, by single steps"]
    return "\n".join([*lines, *map(markup, searches)]) + where


def tell(verdict: Proved | Refuted | Undecided, alphabet: Alphabet, as_json: bool, may_close: bool = True) -> None:
    """Print a verdict as JSON or as text; `may_close` as in `verdict_text`."""
    if as_json:
        console.emit_json(verdict.to_json())
    else:
        console.out.print(verdict_text(verdict, alphabet, may_close))


def _outputs(name: str, trace: Sequence[Hashable]) -> str:
    text = " ".join(symbols.show(output) for output in trace[-_OUTPUTS:])
    return f"  {name:8}{'… ' if len(trace) > _OUTPUTS else ''}{markup(text)}"


def certificate_json(certificate: Certificate, scope: Scope | None) -> console.Document:
    """Return a certificate as JSON without its sets, with its coverage and scope."""
    from fsa2lrnn.verification.coverage import of_certificate

    names = ("horizon", "method", "memory", "dtype", "slack", "sha256")
    facts = {name: getattr(certificate, name) for name in names}
    margin = float(certificate.margins.min()) if len(certificate.margins) else None
    covers = of_certificate(certificate)
    runs = {"scans": list(covers.scans), "shapes": covers.shapes, "threads": covers.threads}
    runs |= {"environment": list(covers.environment), "covered": str(covers)}
    return {**facts, **runs, "least_margin": margin, "scope": scope and scope.to_json()}


def certificate_rows(certificate: Certificate, scope: Scope | None) -> list[tuple[str, str]]:
    """Return what a certificate proves as rows of a name and a value."""
    facts = certificate_json(certificate, scope)
    horizon = facts["horizon"]
    right = "on every word of every length" if horizon is None else f"on every word of at most {horizon:,} letters"
    ways = {"enumeration": "all joint states enumerated", "joint sets": "sets of the joint states of all layers"}
    how = ways.get(facts["method"], f"sets of memory {facts['memory']}")
    return [("proved right", f"{right} ({how})"), ("covered", facts["covered"]), ("where", str(scope))]


def repair_rows(facts: console.Document) -> list[tuple[str, str]]:
    """Return the changes of a repair and the guarantees for its model, from its JSON, as names and values."""
    rows = [("change", f"{100 * facts['change']['A']:.1f} % of A, {100 * facts['change']['v']:.1f} % of v")]
    if "proved" in facts:
        proved = facts["proved"]
        how = f"{counted(proved['joint_states'], 'joint state')} closed, bit for bit, {proved['covered']}"
        rows.append(("proved", f"right on all words of every length: {how}"))
    if "certified" in facts:
        certified = facts["certified"]
        text = certified if isinstance(certified, str) else f"every word of at most {certified:,} letters"
        rows.append(("proved right on", text))
    return rows


def extraction_json(evidence: Extraction) -> console.Document:
    """Return the evidence for an extracted machine as a JSON object."""
    return {
        **{name: value for name, value in vars(evidence).items() if name != "machine"},
        "held_out": vars(evidence.held_out),
    }


def extraction_rows(evidence: console.Document) -> list[tuple[str, str]]:
    """Return the evidence for an extracted machine as names and values."""
    held_out = evidence["held_out"]
    agreement = f"{100 * held_out['agreement']:.2f} % of {held_out['words']} random words"
    return [
        ("found by", f"{evidence['prefixes']:,} words, {evidence['suffixes']:,} suffixes"),
        ("held out", f"agrees on {agreement} of {held_out['length']} letters"),
    ]


def machine_json(machine: MooreMachine) -> dict[str, object]:
    """Return the sizes of a machine as a JSON object."""
    return {
        "states": machine.n_states,
        "minimal_states": machine.minimise().n_states,
        "letters": [symbols.to_json(letter) for letter in machine.alphabet],
        "outputs": [symbols.to_json(output) for output in dict.fromkeys(machine.outputs)],
    }


def machine_rows(machine: MooreMachine) -> list[tuple[str, str]]:
    """Return the sizes of a machine as names and values."""
    minimal = machine.minimise().n_states
    smaller = "" if minimal == machine.n_states else f" ({minimal:,} when minimised)"
    return [
        ("states", f"{machine.n_states:,}{smaller}"),
        ("letters", f"{len(machine.alphabet):,}: {symbols.listed(machine.alphabet)}"),
        ("outputs", symbols.listed(dict.fromkeys(machine.outputs))),
    ]


def model_json(model: LRNN) -> console.Document:
    """Return the sizes of a model as a JSON object."""
    from fsa2lrnn.nn.gate import Gate

    config = model.config
    return {
        "layers": [{"block_sizes": list(layer.block_sizes), "n_heads": layer.n_heads} for layer in model.recurrences],
        "layout": "index" if config.reads_letters else "dense",
        "token_shift": config.token_shift,
        "hidden_units": sum(module.n_hidden for module in model.modules() if isinstance(module, Gate)),
        "dtype": str(model.dtype).removeprefix("torch."),
        "normalisation": config.normalisation,
        "parameters": sum(p.numel() for p in model.parameters()),
        "bytes": sum(t.numel() * t.element_size() for t in model.state_dict().values()),
    }


def model_rows(model: LRNN) -> list[tuple[str, str]]:
    """Return the sizes of a model as names and values, with one row per layer if it has several."""
    sizes = model_json(model)
    layers = [blocks_text(layer["block_sizes"]) for layer in sizes["layers"]]
    kind = "index table of the linear map" if sizes["layout"] == "index" else "dense"
    weights = ("weights", f"{sizes['parameters']:,} parameters, {sizes['bytes'] / 1024:,.0f} KiB in {sizes['dtype']}")
    units = [] if model.config.reads_letters else [("hidden units", f"{sizes['hidden_units']:,} of gates and read-out")]
    if len(layers) == 1:
        return [("layers", f"1 ({layers[0]}), {kind}"), *units, weights]
    shift = "yes: gates see the step before too" if sizes["token_shift"] else "no: gates see this step alone"
    return [
        ("layers", f"{len(layers)}, {kind}"),
        *((f"  layer {i}", text) for i, text in enumerate(layers)),
        ("token shift", shift),
        *units,
        weights,
    ]


def transition_table(machine: MooreMachine) -> Table | None:
    """Return δ and ω as a table, None for a machine that is too large to print."""
    if machine.n_states > _SHOWN_STATES or len(machine.alphabet) > _SHOWN_LETTERS:
        return None
    table = Table("state", *(markup(symbols.show(letter)) for letter in machine.alphabet), "output", box=None)
    for q in range(machine.n_states):
        mark = "→ " if q == machine.start else "  "
        targets = [str(int(target)) for target in machine.delta[:, q]]
        table.add_row(f"{mark}{q}", *targets, markup(symbols.show(machine.outputs[q])))
    return table
