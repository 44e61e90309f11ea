"""Docstrings as Markdown, for the API reference that `docs/site/extension.py` builds."""

from __future__ import annotations

import re

DOCTEST = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)  # to the next blank line
CODE = re.compile(r"(```.*?```|`[^`\n]+`|(?<=\n\n) {4}[^\n]*(?:\n {4}[^\n]*)*)", re.DOTALL)


def as_markdown(text: str) -> str:
    r"""Return a docstring as Markdown, with examples as fenced sessions and without links made from indices in prose.

    >>> as_markdown("A[a][q] as in `B[a][q]`.\n\n>>> 1 + 1\n2")
    'A[a]\\[q] as in `B[a][q]`.\n\n```pycon\n>>> 1 + 1\n2\n```'
    """
    text = DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
    pieces = CODE.split(text)
    return "".join(piece if i % 2 else piece.replace("][", "]\\[") for i, piece in enumerate(pieces))
