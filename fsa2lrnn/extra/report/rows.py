"""Rows of names and values of assessments and alignments, for the terminal."""

from __future__ import annotations

from typing import Any

from fsa2lrnn.cli import evidence
from fsa2lrnn.extra.report.judgement import ModelAssessment


def judgement_rows(judgement: ModelAssessment) -> list[tuple[str, str]]:
    """Return an assessment as names and values."""
    rows: list[tuple[str, str]] = []
    if judgement.falsified is not None:
        rows += evidence.failure_rows(judgement.falsified)
    if judgement.certificate is not None:
        rows += evidence.certificate_rows(judgement.certificate, judgement.scope)
    if judgement.proof is not None:
        rows += [*judgement.proof.in_words()]
    for repair in judgement.repairs:
        name = "repair" if repair.mode == "least" else f"repair, {repair.mode}"
        name += "" if repair.columns == "keep" else f", {repair.columns}"
        facts = repair.to_json()
        text = (
            "; ".join(value for _, value in evidence.repair_rows(facts)) if repair.refused is None else repair.refused
        )
        rows.append((name, text))
    return rows


def alignment_rows(aligned: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return the summary of the heads of a model, from the JSON of an alignment."""
    if aligned is None:
        return []
    heads = aligned["heads"]
    kinds = ", ".join(f"{h} {heads[h]['kind']}" for h in aligned["carrying"])
    probe = aligned["probe"]
    return [
        ("affine probe", f"R² {probe['r2']:.4f}, worst error {probe['worst_error']:.3f}"),
        ("heads", f"{len(aligned['carrying'])} of {len(heads)} carry the state: {kinds}"),
    ]
