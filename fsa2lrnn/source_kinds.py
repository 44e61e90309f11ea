"""The formats from which an automaton can be read and to which it can be written, by prefix or file ending.

This module is data only, so that the help of the command line can list the formats without importing their readers. To
add a format, add a file to `automata/formats/` and an entry here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceFormat:
    """A format of automata, recognised by the prefix of a source or the ending of a file.

    Args:
        endings: the file endings; for a source such as `regex:(ab)*` the prefix alone.
        reader, writer: "module:function" within `fsa2lrnn.automata`, imported at first use.
    """

    name: str
    endings: tuple[str, ...]
    description: str
    reader: str
    writer: str | None = None

    @property
    def is_file(self) -> bool:
        """Whether the format is recognised by the ending of a path, rather than by a prefix."""
        return not self.endings[0].endswith(":")


FORMATS = (
    SourceFormat("regex", ("regex:",), "a regular expression, as in regex:(ab)*", "formats.regex:from_regex"),
    SourceFormat("task", ("task:",), "a machine of the zoo by name, as in task:mod_arith(5)", "zoo:from_task"),
    SourceFormat(
        "MLRegTest",
        ("mlregtest:",),
        "a language of MLRegTest by name, from the folder FSA2LRNN_MLREGTEST",
        "zoo.mlregtest:from_mlregtest",
    ),
    SourceFormat(
        "DOT",
        (".dot", ".gv"),
        "Graphviz: drawn by hand, by AALpy, LearnLib or us",
        "formats.dot:from_dot",
        "formats.dot:to_dot",
    ),
    SourceFormat(
        "JFLAP",
        (".jff",),
        "JFLAP finite automata, Moore and Mealy machines",
        "formats.jflap:from_jflap",
        "formats.jflap:to_jflap",
    ),
    SourceFormat(
        "OpenFst",
        (".fst.txt", ".att"),
        "OpenFst text; symbol tables in the same folder as NAME.syms, NAME.isyms, NAME.osyms",
        "formats.openfst:from_openfst",
        "formats.openfst:to_openfst",
    ),
    SourceFormat("KISS2", (".kiss2", ".kiss"), "circuits as Mealy machines over bits", "formats.kiss2:from_kiss2"),
    SourceFormat(
        "JSON",
        (".json",),
        "our own, which keeps symbols of every kind",
        "formats.json_file:from_json",
        "formats.json_file:to_json",
    ),
)
"""All formats, in the order in which help lists them."""


def endings(for_writing: bool = False) -> str:
    """Return the endings of all files that can be read, or written, separated by spaces.

    >>> endings()
    '.dot .gv .jff .fst.txt .att .kiss2 .kiss .json'
    """
    formats = [form for form in FORMATS if form.is_file and (form.writer or not for_writing)]
    return " ".join(ending for form in formats for ending in form.endings)
