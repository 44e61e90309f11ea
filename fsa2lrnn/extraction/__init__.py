"""From a network back to a machine: exactly where its states close (`extract`), by what it puts out where they do not
(`extract_learned`)."""

from fsa2lrnn.extraction.closed import NOT_A_NUMBER, Interner, ModelSystem, extract, output_numbers
from fsa2lrnn.extraction.counting import blank_outputs, equivalent_after_first, paths, smallest_after_first
from fsa2lrnn.extraction.learned import Extraction, HeldOut, extract_learned

__all__ = [
    "NOT_A_NUMBER",
    "Extraction",
    "HeldOut",
    "Interner",
    "ModelSystem",
    "blank_outputs",
    "equivalent_after_first",
    "extract",
    "extract_learned",
    "output_numbers",
    "paths",
    "smallest_after_first",
]
