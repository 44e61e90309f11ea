"""Drawings for notebooks: by Graphviz where it is installed, else by the library."""

import pytest

from fsa2lrnn import zoo
from fsa2lrnn.errors import BudgetExceeded

pytestmark = pytest.mark.extra("report")


def program(folder, text):
    path = folder / "dot"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_graphviz_draws_where_it_is_installed(tmp_path, monkeypatch):
    machine = zoo.parity()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.draw()._repr_svg_() == str(machine.draw()) == machine.to_svg()
    with pytest.raises(BudgetExceeded, match="states"):
        zoo.group("S5").draw()
    program(tmp_path, "while read -r line; do :; done; echo '<?xml?><svg>by Graphviz</svg>'")
    assert str(machine.draw()) == "<svg>by Graphviz</svg>\n"
    assert repr(machine.draw()) == "Drawing(23 characters of SVG)"
    program(tmp_path, "exit 1")
    assert str(machine.draw()) == machine.to_svg()
