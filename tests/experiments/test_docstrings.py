"""Docstrings as the site shows them."""

import pytest

from experiments.docstrings import as_markdown


def test_an_example_ends_with_its_paragraph():
    text = "Adds.\n\n>>> add(\n...     1, 1)\n2\n>>> add(2, 2)\n4\n\nArgs:\n    x: one."
    assert as_markdown(text) == (
        "Adds.\n\n```pycon\n>>> add(\n...     1, 1)\n2\n>>> add(2, 2)\n4\n```\n\nArgs:\n    x: one."
    )


@pytest.mark.parametrize("code", ["`a[i][j]`", "Text:\n\n    a[i][j] = 1\n    b[i][j] = 2\n", ">>> a[i][j]\n1"])
def test_code_stays_as_it_is(code):
    assert "[i][j]" in as_markdown(code)


def test_an_index_in_prose_is_no_link():
    assert as_markdown("Args:\n    A: A[a][q] of it.") == "Args:\n    A: A[a]\\[q] of it."
