"""The counts of the library's source, the figure of its packages, and the hook that sees which files a job enters."""

import importlib
import sys

import pytest

from experiments import architecture

TEXTS = {
    "fsa2lrnn.__init__": "",
    "fsa2lrnn.low.__init__": "",
    "fsa2lrnn.low.table": "from fsa2lrnn.low import __doc__\n",
    "fsa2lrnn.high.__init__": "if TYPE_CHECKING:\n    from fsa2lrnn.top import table\n",
    "fsa2lrnn.high.walk": "def f():\n from .. import low\n from ..low.table import a\n import fsa2lrnn.top.table",
    "fsa2lrnn.top.table": "import os\n",
}


def test_imports_are_found_in_functions_and_relative_to_a_package():
    edges = {
        ("fsa2lrnn.low.table", "fsa2lrnn.low.__init__"), ("fsa2lrnn.high.walk", "fsa2lrnn.low.__init__"),
        ("fsa2lrnn.high.walk", "fsa2lrnn.low.table"), ("fsa2lrnn.high.walk", "fsa2lrnn.top.table"),
    }  # fmt: skip
    assert set(architecture.imports(TEXTS, with_types=False).edges) == edges
    for_types = ("fsa2lrnn.high.__init__", "fsa2lrnn.top.table")
    assert set(architecture.imports(TEXTS, with_types=True).edges) == edges | {for_types}
    assert architecture.one_importer(TEXTS) == {"fsa2lrnn.low.table"}


def test_counts_and_figure_of_a_small_library():
    text = architecture.counts(TEXTS)
    assert "| **all** | 8 | 6 | 0 | 0 | 0 | 1 |" in text
    assert "more than once: 1 (table)." in text
    drawn = architecture.figure(TEXTS)
    assert all(f">{name}</text>" in drawn for name in ("low", "high", "top"))
    assert architecture.BASE not in drawn


@pytest.mark.parametrize(
    ("head", "expected"), [("def _f():\n", ["_f"]), ('def _f():\n    """Doc."""\n', []), ("def f():\n", [])]
)
def test_a_long_private_function_needs_a_docstring(head, expected):
    assert architecture.undocumented(head + "    x = 1\n" * 9) == expected
    assert architecture.undocumented(head + "    x = 1\n") == []


def test_only_files_whose_functions_are_called_count(tmp_path, monkeypatch):
    (tmp_path / "called_here.py").write_text(
        "from imported_here import g\nclass A:\n    x = g()\ndef f():\n    return 1\n"
    )
    (tmp_path / "imported_here.py").write_text("def g():\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = sys.getprofile()

    def job():
        return importlib.import_module("called_here").f()

    assert architecture.files_entered(job, tmp_path) == {"called_here.py"}
    assert sys.getprofile() is before
    for name in ("called_here", "imported_here"):
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.long
def test_the_figure_is_that_of_the_imports():
    drawn = architecture.figure(architecture.sources())
    assert architecture.FIGURE.read_text(encoding="utf-8") == drawn, "run python -m experiments.architecture"
