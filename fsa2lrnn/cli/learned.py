"""The verbs for learned models: `compare`, `certify`, `repair` and `report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from fsa2lrnn.cli import console
from fsa2lrnn.cli.options import NO
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.judge import Budget, Refuted, Undecided, falsify
from fsa2lrnn.lrnn.checkpoint import load, save
from fsa2lrnn.lrnn.model import LRNN

if TYPE_CHECKING:
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.judge.certificate import Certificate
    from fsa2lrnn.repairing import Columns, Mode
    from fsa2lrnn.report.judgement import Judgement
    from fsa2lrnn.verdicts import Scope

LACKED = "lacked"  # a trained model is not asked for outputs that it was never shown; what is said of it says so
_SHOWN_WORD = 72  # letters of a failing word


def compare(
    paths: Sequence[str], source: str, seconds: float, evaluated: dict[str, Any], plot: Path | None, as_json: bool
) -> None:
    """Accuracy by length beside the constructed model, and what is known of each learned one but a certificate."""
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.report.align import align
    from fsa2lrnn.training import compare as comparison

    machine, models = MooreMachine.from_source(source), _load_all(paths)
    if plot is not None:
        comparison.matplotlib()  # before minutes of work
    document = comparison.compare(source, models, **evaluated)
    document["judged"] = {}
    for name, model in models.items():
        found = falsify(model, machine, Budget(seconds=seconds), LACKED)
        aligned = align(model, machine, ignore=LACKED).to_json() if model.is_switched else None
        document["judged"][name] = {**found.to_json(), "alignment": aligned}
        if not as_json:
            console.facts(name, [*_failure_rows(found), ("where", str(found.scope)), *_alignment_rows(aligned)])
    if plot is not None:
        comparison.plot(document, plot)
    if as_json:
        console.emit_json(document)
    else:
        console.out.print(comparison.table(document))


def certify(path: str, machine: MooreMachine, memory: int | None, out: Path | None, as_json: bool) -> int:
    """N such that the model is right on every word of at most N letters, with the sets that prove it."""
    from fsa2lrnn.judge.certify import certify as certify_model

    model = load(path)
    certificate = certify_model(model, machine, "auto" if memory is None else memory, ignore=LACKED)
    if out is not None:
        certificate.save(out)
    facts = certificate_json(certificate, certificate.scope)
    if as_json:
        console.emit_json({**facts, "saved": str(out) if out else None})
    else:
        saved = ("saved", str(out) if out else "no (-o FILE saves it, for --check)")
        console.facts(path, [*_certificate_rows(certificate, certificate.scope), saved])
    return NO if certificate.horizon == 0 else 0


def check(path: str, machine: MooreMachine, file: Path, as_json: bool) -> int:
    """Whether a certificate is of this model and this machine and holds, by the checker, which imports nothing of the
    search."""
    from fsa2lrnn.automata.language import equivalent
    from fsa2lrnn.judge.certificate import Certificate
    from fsa2lrnn.judge.check import CertificateRefused
    from fsa2lrnn.judge.check import check as check_certificate

    model, certificate = load(path), Certificate.load(file)
    why, scope = None, certificate.scope
    try:
        if (word := equivalent(machine, certificate.machine)) is not None:
            told = console.show_word(word) or "no letters"
            raise CertificateRefused(f"it is of another machine: they differ after {told}")
        scope = check_certificate(certificate, model, LACKED).scope
    except CertificateRefused as error:
        why = str(error)
    if as_json:
        console.emit_json({**certificate_json(certificate, scope), "accepted": why is None, "why_not": why})
    elif why is None:
        console.facts(str(file), [*_certificate_rows(certificate, scope), ("checked", "accepted")])
    else:
        console.out.print(f"[red bold]refused:[/] {escape(why)}")
    return 0 if why is None else NO


def repair(
    path: str, source: str, columns: Columns, mode: Mode, use_snap: bool, out: Path | None, as_json: bool
) -> None:
    """The learned model with its errors mended, and what that changed."""
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.errors import NotExpressible
    from fsa2lrnn.repairing import snap
    from fsa2lrnn.report.judgement import long_accuracy, mend

    model, machine = load(path), MooreMachine.from_source(source)
    if use_snap:
        repaired = snap(model, machine)
        found: dict[str, Any] = {"mode": "snap", "accuracy": long_accuracy(repaired, machine)}
        rows = [("snapped", "to the constructed model: exact on every word")]
    else:
        mended = mend(model, machine, columns, mode, ignore=LACKED)
        if mended.repaired is None:
            raise NotExpressible(str(mended.refused))
        repaired, found = mended.repaired.model, mended.to_json()
        rows = _mended_rows(found)
    rows.append(("right outputs", f"{found['accuracy']:.6f} along 500,000 random letters"))
    if out is not None:
        save(repaired, out)
    if as_json:
        console.emit_json({**found, "saved": str(out) if out else None})
    else:
        console.facts(path, [*rows, ("saved", str(out) if out else "no (-o FILE saves it)")])


def report(
    paths: Sequence[str], source: str, out: Path, seconds: float, evaluated: dict[str, Any], as_json: bool
) -> None:
    """One page on learned, repaired and constructed models, and the same facts as JSON."""
    from fsa2lrnn.report import verdict, write
    from fsa2lrnn.report.assemble import assemble

    if out.suffix != ".html":
        raise UnsupportedFormat(f"output {out}: the page is written to a file ending in .html")
    facts = assemble(source, _load_all(paths), Budget(seconds=seconds), evaluated, _say, ignore=LACKED)
    page, data = write(facts, out)
    if as_json:
        console.emit_json({"page": str(page), "facts": str(data)})
        return
    rows = [(model.name, verdict(facts, model)) for model in facts.models if model.kind == "learned"]
    console.facts(facts.title, [*rows, ("page", str(page)), ("the same as JSON", str(data))])


def certificate_json(certificate: Certificate, scope: Scope | None) -> dict[str, Any]:
    """What a certificate says, without its sets, and which outputs count by it."""
    names = ("horizon", "method", "memory", "dtype", "slack", "sha256")
    facts = {name: getattr(certificate, name) for name in names}
    margin = float(certificate.margins.min()) if len(certificate.margins) else None
    return {**facts, "scans": list(certificate.scans), "least_margin": margin, "scope": scope and scope.to_json()}


def judgement_rows(judgement: Judgement) -> list[tuple[str, str]]:
    """A judgement in lines, for people."""
    rows = [*_failure_rows(judgement.falsified), *_certificate_rows(judgement.certificate, judgement.scope)]
    for mended in judgement.mended:
        name = "repair" if mended.mode == "least" else f"repair, {mended.mode}"
        name += "" if mended.columns == "keep" else f", {mended.columns}"
        facts = mended.to_json()
        text = "; ".join(value for _, value in _mended_rows(facts)) if mended.refused is None else mended.refused
        rows.append((name, text))
    return rows


def _failure_rows(found: Refuted | Undecided) -> list[tuple[str, str]]:
    if not isinstance(found, Refuted):
        looked = "; ".join(search.what for search in found.searches)
        return [("failing word", f"none found among {looked}")]
    word = [str(letter) for letter in found.word]
    shown = "".join(word) if all(len(a) == 1 for a in word) else " ".join(word)
    shown = shown if len(shown) <= _SHOWN_WORD else shown[: _SHOWN_WORD // 2] + "…" + shown[-_SHOWN_WORD // 2 :]
    short = ", the shortest there is" if found.is_shortest else ""
    return [("failing word", f"{found.position:,} letters{short}: {shown} ({found.found_by})")]


def _certificate_rows(certificate: Certificate, scope: Scope | None) -> list[tuple[str, str]]:
    facts = certificate_json(certificate, scope)
    horizon = facts["horizon"]
    right = "on every word of every length" if horizon is None else f"on every word of at most {horizon:,} letters"
    how = "all joint states enumerated" if facts["method"] == "enumeration" else f"sets of memory {facts['memory']}"
    return [
        ("proved right", f"{right} ({how})"),
        ("in", f"{facts['dtype']}, scans {', '.join(facts['scans'])}"),
        ("where", str(scope)),
    ]


def _alignment_rows(aligned: dict[str, Any] | None) -> list[tuple[str, str]]:
    if aligned is None:
        return []
    heads = aligned["heads"]
    kinds = ", ".join(f"{h} {heads[h]['kind']}" for h in aligned["carrying"])
    probe = aligned["probe"]
    return [
        ("affine probe", f"R² {probe['r2']:.4f}, worst error {probe['worst_error']:.3f}"),
        ("heads", f"{len(aligned['carrying'])} of {len(heads)} carry the state: {kinds}"),
    ]


def _mended_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("change", f"{100 * found['change']['A']:.1f} % of A, {100 * found['change']['v']:.1f} % of v")]
    norms = f"{found['column_norm_before']:.3f} before, {found['column_norm_after']:.3f} after"
    rows.append((f"largest column {found['p']:g}-norm", norms))
    if "proved" in found:
        proved = found["proved"]
        how = f"{proved['joint_states']} joint states closed, bit for bit, in {proved['arithmetic']}"
        rows.append(("proved", f"right on all words of every length: {how}"))
    if "certified" in found:
        certified = found["certified"]
        text = certified if isinstance(certified, str) else f"every word of at most {certified:,} letters"
        rows.append(("proved right on", text))
    return rows


def _load_all(paths: Sequence[str]) -> dict[str, LRNN]:
    if len(set(paths)) < len(paths):
        raise UnsupportedFormat(f"models {', '.join(paths)}: one is given twice")
    names = ["/".join(Path(path).with_suffix("").parts[-2:]) for path in paths]
    if len(set(names)) < len(names):
        names = list(paths)
    return {name: load(path) for name, path in zip(names, paths, strict=True)}


def _say(text: str) -> None:
    console.err.print(f"[dim]{text}[/]")
