"""Notebooks run, and give what stands in them."""

import json
import re

import pytest

from experiments import notebooks

BOOKS = sorted(notebooks.FOLDER.glob("*.ipynb"))


def read(path):
    return json.loads(path.read_bytes())


def test_there_are_three():
    assert len(BOOKS) == 3


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_was_run_whole(path):
    cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not any(output["output_type"] == "error" for cell in cells for output in cell["outputs"])
    assert sum(map(bool, notebooks.printed(read(path)))) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_what_stands_in_it(path):
    pytest.importorskip("nbclient")
    again, before = notebooks.printed(notebooks.executed(path)), notebooks.printed(read(path))
    if path.stem == "learned":  # floats that another processor adds up in another order
        again, before = ([re.sub(r"\d+", "0", text) for text in texts] for texts in (again, before))
    assert again == before


def test_what_a_cell_prints_is_read():
    outputs = [
        {"output_type": "stream", "text": ["a\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["1"]}},
    ]
    assert notebooks.printed({"cells": [{"cell_type": "code", "outputs": outputs}, {"cell_type": "markdown"}]}) == [
        "a\n1",
        "",
    ]
