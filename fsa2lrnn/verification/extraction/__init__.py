"""Extraction of a machine: from a model's states if they are finitely many (`extract`), else from its outputs."""

from fsa2lrnn.verification.extraction.breadth_first import NOT_A_NUMBER, ModelSystem, extract, output_numbers
from fsa2lrnn.verification.extraction.suffixes import Extraction, HeldOutAgreement, extract_learned

__all__ = [
    "NOT_A_NUMBER",
    "Extraction",
    "HeldOutAgreement",
    "ModelSystem",
    "extract",
    "extract_learned",
    "output_numbers",
]
