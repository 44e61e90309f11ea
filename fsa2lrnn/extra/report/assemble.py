"""Assemble the facts of a report: assess and repair each model, and compare all with the constructed one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import counted
from fsa2lrnn.extra.report.align import Alignment, align
from fsa2lrnn.extra.report.compare import CONSTRUCTED, compare
from fsa2lrnn.extra.report.facts import REPAIRED, LayerInternals, Model, ReportFacts
from fsa2lrnn.extra.report.gather import accuracy_of, inside, machine_facts
from fsa2lrnn.extra.report.judgement import REPAIRS, ModelAssessment, judge
from fsa2lrnn.extra.report.page import build
from fsa2lrnn.files import write_atomically
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.verdicts import Proved, Refuted, Scope
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.falsify import Budget
from fsa2lrnn.versions import versions

_NAMES = dict(zip(REPAIRS, REPAIRED, strict=True))


def assemble(
    source: str,
    models: Mapping[str, LRNN],
    budget: Budget,
    evaluated: dict[str, Any],
    say: Callable[[str], None] | None = None,
    provenance: Mapping[str, dict[str, str]] | None = None,
    ignore: Ignore = (),
    seconds: float | None = None,
) -> ReportFacts:
    """Return all facts on learned models of `source`, their repairs and the constructed model.

    `evaluated` holds the arguments of `fsa2lrnn.extra.report.compare.compare` except `source` and `models`.
    `provenance` is the origin of each learned model, by name. `say` is called with the name of each step. `ignore` and
    `seconds`, a time limit per model, are as in `judge`, whose errors the function raises.
    """
    machine = MooreMachine.from_source(source)
    assessments: dict[str, ModelAssessment] = {}
    for name, model in models.items():
        assessments[name] = judge(
            model, machine, budget, say=lambda text, name=name: say and say(f"{name}: {text}"), ignore=ignore,
            seconds=seconds,
        )  # fmt: skip
    return of_judgements(source, models, assessments, evaluated, provenance)


def of_judgements(
    source: str,
    models: Mapping[str, LRNN],
    assessments: Mapping[str, ModelAssessment],
    evaluated: dict[str, Any],
    provenance: Mapping[str, dict[str, str]] | None = None,
) -> ReportFacts:
    """Return the facts that `assemble` returns, from assessments of the models by name."""
    machine = MooreMachine.from_source(source)
    repairs = {
        name: [(repair, repair.repaired) for repair in assessment.repairs if repair.repaired is not None]
        for name, assessment in assessments.items()
    }
    repaired_models = {_name(of, repair): new.model for of, several in repairs.items() for repair, new in several}
    document = compare(source, {**models, **repaired_models}, **evaluated)
    reported: list[Model] = []
    for name, model in models.items():
        assessment = assessments[name]
        measured = measure(name, model, machine, document, None, assessment.alignment, assessment.scope.ignored)
        reported.append(_learned(name, model, assessment, measured, (provenance or {}).get(name, {})))
        like = measured["inside"]
        for repair, new in repairs[name]:  # an `EvaluatedRepair` and its `Repaired` model
            of = _name(name, repair)
            measured = measure(of, new.model, machine, document, like, ignore=new.scope.ignored)
            reported.append(_repaired(name, repair, new, measured))
    reported.append(constructed_model(machine, document, reported[0].inside if reported else None))
    title = f"{source.removeprefix('task:')}: learned against constructed"
    return report_facts(title, source, machine, reported)


def report_facts(title: str, source: str, machine: MooreMachine, models: list[Model]) -> ReportFacts:
    return ReportFacts(title, source, date.today().isoformat(), machine_facts(machine), models, versions())


def _name(of: str, repair: Any) -> str:
    return f"{of}: {_NAMES[repair.columns, repair.mode]}"


def _learned(
    name: str, model: LRNN, assessment: ModelAssessment, measured: dict[str, Any], provenance: dict[str, str]
) -> Model:
    extracted, falsified = assessment.extraction, assessment.falsified
    if not isinstance(extracted, str):
        same = "the machine itself" if assessment.isomorphic else "another machine"
        extracted = f"{extracted.machine.n_states} states: {same}"
    notes = {"extracted": extracted}
    for repair in assessment.repairs:
        if repair.refused is not None:
            notes[f"{_NAMES[repair.columns, repair.mode]}: refused"] = repair.refused
    return Model(
        name,
        "learned",
        **measured,
        **proof_facts(assessment.certificate, assessment.proof),
        failure=falsified.failure.as_text() if isinstance(falsified, Refuted) else None,
        scope=_scope(assessment.scope),
        searched=None if falsified is None else "; ".join(search.what for search in falsified.searches),
        notes=notes,
        provenance={**provenance, **digest_facts(model)},
    )


def _repaired(of: str, repair: Any, repaired: Any, measured: dict[str, Any]) -> Model:
    accuracy, letters = repair.accuracy or 0.0, f"{repair.letters:,} random letters"
    notes = {
        "change": f"{100 * repaired.change.A:.1f} % of A, {100 * repaired.change.v:.1f} % of v (Frobenius)",
        f"largest column {repaired.p:g}-norm": f"{repaired.column_norm_before:.3f} before, "
        f"{repaired.column_norm_after:.3f} after",
        "right outputs": f"{100 * accuracy:.4f} % along {letters} in {repair.dtype}",
    }
    return Model(
        _name(of, repair),
        "repaired",
        of=of,
        **measured,
        **proof_facts(repair.certificate, repair.proof),
        scope=_scope(repaired.scope),
        searched=letters,
        wrong=f"at {100 * (1 - accuracy):.2g} % of {letters}" if accuracy < 1 else None,
        notes=notes,
        provenance=digest_facts(repaired.model),
    )


def constructed_model(machine: MooreMachine, document: dict[str, Any], like: LayerInternals | None) -> Model:
    model = compile_machine(machine)
    verdict = prove_equivalent(model, machine)
    return Model(
        CONSTRUCTED,
        "constructed",
        **measure(CONSTRUCTED, model, machine, document, like),
        **proof_facts(None, verdict if isinstance(verdict, Proved) else None),
        provenance={"command": "fsa2lrnn compile"},
    )


def measure(
    name: str,
    model: LRNN,
    machine: MooreMachine,
    document: dict[str, Any],
    like: LayerInternals | None = None,
    alignment: Alignment | None = None,
    ignore: Ignore = (),
) -> dict[str, Any]:
    """Return fields of `Model`: parameters and accuracies from a comparison, and for one layer also the internals."""
    facts = {"parameters": document["models"][name]["parameters"], "accuracy": accuracy_of(document, name)}
    if not model.is_switched:
        return {**facts, "inside": None, "alignment": None}
    alignment = alignment or align(model, machine, ignore=ignore)
    return {**facts, "inside": inside(model, machine, alignment, like), "alignment": alignment.to_json()}


def proof_facts(certificate: Certificate | None, proof: Proved | None) -> dict[str, Any]:
    if proof is not None:
        return {"proof": f"{counted(proof.pairs, 'joint state')} closed, bit for bit, {proof.covers}"}
    if certificate is None:
        return {}
    if certificate.horizon is None:
        return {"proof": f"sets that no letter leads out of, in {certificate.dtype}"}
    return {"proved": certificate.horizon}


def _scope(scope: Scope) -> str | None:
    return str(scope) if scope.ignored_states else None


def digest_facts(model: LRNN) -> dict[str, str]:
    return {"SHA-256 of the tables": switched(model).sha256} if model.is_switched else {}


def write(facts: ReportFacts, path: Path) -> tuple[Path, Path]:
    """Write the page to `path` and the facts to the .json file of the same name; return both paths."""
    data = path.with_suffix(".json")
    write_atomically(data, (json.dumps(facts.to_json(), indent=1, ensure_ascii=False) + "\n").encode())
    write_atomically(path, build(facts, data.name).encode())
    return path, data
