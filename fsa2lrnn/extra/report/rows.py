"""Write judgements and alignments as rows of names and values, for the terminal."""

from __future__ import annotations

from typing import Any

from fsa2lrnn.cli import evidence
from fsa2lrnn.extra.report.judgement import ModelAssessment


def judgement_rows(judgement: ModelAssessment) -> list[tuple[str, str]]:
    """Return a judgement as names and values."""
    rows: list[tuple[str, str]] = []
    if judgement.falsified is not None:
        rows += evidence.failure_rows(judgement.falsified)
    if judgement.certificate is not None:
        rows += evidence.certificate_rows(judgement.certificate, judgement.scope)
    if judgement.proof is not None:
        rows += [*judgement.proof.in_words()]
    for mended in judgement.mended:
        name = "repair" if mended.mode == "least" else f"repair, {mended.mode}"
        name += "" if mended.columns == "keep" else f", {mended.columns}"
        facts = mended.to_json()
        text = (
            "; ".join(value for _, value in evidence.repair_rows(facts)) if mended.refused is None else mended.refused
        )
        rows.append((name, text))
    return rows


def alignment_rows(aligned: dict[str, Any] | None) -> list[tuple[str, str]]:
    """What the heads of a model carry, from the JSON of an alignment."""
    if aligned is None:
        return []
    heads = aligned["heads"]
    kinds = ", ".join(f"{h} {heads[h]['kind']}" for h in aligned["carrying"])
    probe = aligned["probe"]
    return [
        ("affine probe", f"R² {probe['r2']:.4f}, worst error {probe['worst_error']:.3f}"),
        ("heads", f"{len(aligned['carrying'])} of {len(heads)} carry the state: {kinds}"),
    ]
