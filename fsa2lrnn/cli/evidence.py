"""What the judges found, for people and as JSON: verdicts, failing words, certificates, what heads carry, repairs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from fsa2lrnn import symbols
from fsa2lrnn.cli import console, words
from fsa2lrnn.cli.console import markup
from fsa2lrnn.errors import counted, shortened
from fsa2lrnn.verdicts import Proved, Refuted, Undecided

if TYPE_CHECKING:
    from fsa2lrnn.extraction import Extraction
    from fsa2lrnn.symbols import Alphabet
    from fsa2lrnn.verdicts import Scope
    from fsa2lrnn.verification.certificate import Certificate

_OUTPUTS = 40  # at the end of a trace
_SHOWN_WORD = 72  # letters of a failing word in a row


def verdict_text(verdict: Proved | Refuted | Undecided, alphabet: Alphabet | None = None) -> str:
    """A verdict with its evidence, in a few lines of rich markup; the word as it is typed over the alphabet."""
    where = f"\n  {markup(str(verdict.scope))}"
    if isinstance(verdict, Proved):
        return (
            f"[green bold]proved[/]: equal on every word of every length\n"
            f"  {counted(verdict.pairs, 'joint state')} and {counted(verdict.transitions, 'transition')} explored, no "
            f"other can be reached\n  covered: {markup(str(verdict.covers))}{where}"
        )
    if isinstance(verdict, Refuted):
        word = markup(words.shown(verdict.word, alphabet)) or "the empty word"
        checked, long = (counted(n, "letter") for n in (verdict.checked_length, len(verdict.word)))
        short = "on no shorter word" if verdict.is_shortest else f"on none of at most {checked}"
        return (
            f"[red bold]refuted[/]: they differ on [bold]{word}[/] ({long}), and {short}"
            f"{_by(verdict)}\n{_outputs('model', verdict.failure.given)}\n{_outputs('machine', verdict.failure.wanted)}"
            f"{where}"
        )
    reach = verdict.checked_length
    equal = "every length" if reach is None else f"at most {counted(reach, 'letter')}"
    if verdict.budget is not None:
        return (
            f"[yellow bold]undecided[/]: {verdict.budget:,} joint states were not enough; equal on every word of "
            f"{equal}. Raise --budget{where}"
        )
    if verdict.seconds is not None:
        return (
            f"[yellow bold]undecided[/]: the time limit of {verdict.seconds:g} s has passed; equal on every word of "
            f"{equal}. Raise --seconds{where}"
        )
    looked = [
        f"  {search.name:12}{search.what}{'' if search.finished else ', cut short'}" for search in verdict.searches
    ]
    lines = [f"[yellow bold]undecided[/]: no failing word was found; equal on every word of {equal}, by single steps"]
    return "\n".join([*lines, *map(markup, looked)]) + where


def tell(verdict: Proved | Refuted | Undecided, alphabet: Alphabet, as_json: bool) -> None:
    """Print a verdict, as JSON or in words."""
    if as_json:
        console.emit_json(verdict.to_json())
    else:
        console.out.print(verdict_text(verdict, alphabet))


def failure_rows(found: Refuted | Undecided, alphabet: Alphabet | None = None) -> list[tuple[str, str]]:
    """What a search for a failing word found, in one row of a table."""
    if not isinstance(found, Refuted):
        looked = "; ".join(search.what for search in found.searches)
        return [("failing word", f"none found among {looked}")]
    shown = shortened(words.shown(found.word, alphabet), _SHOWN_WORD)
    short = ", the shortest there is" if found.is_shortest else ""
    return [("failing word", f"{counted(found.position, 'letter')}{short}: {shown} ({found.found_by})")]


def _by(verdict: Refuted) -> str:
    return f" ({verdict.found_by})" if verdict.searches else ""


def _outputs(name: str, trace: Sequence[Hashable]) -> str:
    """What one of both puts out along a word, of long ones the end, in rich markup."""
    shown = " ".join(symbols.show(output) for output in trace[-_OUTPUTS:])
    return f"  {name:8}{'… ' if len(trace) > _OUTPUTS else ''}{markup(shown)}"


def certificate_json(certificate: Certificate, scope: Scope | None) -> dict[str, Any]:
    """What a certificate says, without its sets, and which outputs count by it."""
    from fsa2lrnn.verification.coverage import of_certificate

    names = ("horizon", "method", "memory", "dtype", "slack", "sha256")
    facts = {name: getattr(certificate, name) for name in names}
    margin = float(certificate.margins.min()) if len(certificate.margins) else None
    covers = of_certificate(certificate)
    runs = {"scans": list(covers.scans), "shapes": covers.shapes, "threads": covers.threads}
    runs |= {"environment": list(covers.environment), "covered": str(covers)}
    return {**facts, **runs, "least_margin": margin, "scope": scope and scope.to_json()}


def certificate_rows(certificate: Certificate, scope: Scope | None) -> list[tuple[str, str]]:
    """Return what a certificate proves as names and values."""
    facts = certificate_json(certificate, scope)
    horizon = facts["horizon"]
    right = "on every word of every length" if horizon is None else f"on every word of at most {horizon:,} letters"
    how = "all joint states enumerated" if facts["method"] == "enumeration" else f"sets of memory {facts['memory']}"
    return [
        ("proved right", f"{right} ({how})"),
        ("covered", facts["covered"]),
        ("where", str(scope)),
    ]


def repair_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What a repair changed and what is known of its model, from its JSON."""
    rows = [("change", f"{100 * found['change']['A']:.1f} % of A, {100 * found['change']['v']:.1f} % of v")]
    norms = f"{found['column_norm_before']:.3f} before, {found['column_norm_after']:.3f} after"
    rows.append((f"largest column {found['p']:g}-norm", norms))
    if "proved" in found:
        proved = found["proved"]
        how = f"{counted(proved['joint_states'], 'joint state')} closed, bit for bit, {proved['covered']}"
        rows.append(("proved", f"right on all words of every length: {how}"))
    if "certified" in found:
        certified = found["certified"]
        text = certified if isinstance(certified, str) else f"every word of at most {certified:,} letters"
        rows.append(("proved right on", text))
    return rows


def extraction_json(found: Extraction) -> dict[str, Any]:
    """The evidence for a machine that was found on short words."""
    return {
        **{name: value for name, value in vars(found).items() if name != "machine"},
        "held_out": vars(found.held_out),
    }


def extraction_rows(evidence: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a certificate proves as names and values."""
    held_out = evidence["held_out"]
    asked = "queries" if evidence["method"] == "lstar" else "words"
    return [
        ("found by", f"{evidence['method']}: {evidence['prefixes']:,} {asked}, {evidence['suffixes']:,} suffixes"),
        (
            "held out",
            f"agrees on {100 * held_out['agreement']:.2f} % of {held_out['words']} random words of "
            f"{held_out['length']} letters",
        ),
    ]
