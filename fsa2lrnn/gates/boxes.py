"""Covers of a labelled table by few boxes: two-level minimisation of a function of many-valued coordinates.

A *box* is a product of sets of values, one set per coordinate. Each box becomes one hidden unit of a gate
(docs/theory.md §6), so fewer boxes are better. Two-level minimisation is NP-hard, so the methods are greedy
(`gates.cover`), and for each label the smallest cover is taken.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.gates.cover import Sets, Table
from fsa2lrnn.rows import number_rows

Box = tuple[tuple[frozenset[int] | None, ...], int]


def boxes(keys: np.ndarray, labels: np.ndarray) -> tuple[list[Box], int]:
    """Return boxes for all labels except the default, which is the label that needs the most boxes.

    Every key of another label is in exactly one box, which has its label; keys of the default label are in none.
    Rows that are not in the table may be in any box.

    Args:
        keys: distinct rows of values, int ≥ 0, shape (R, J).
        labels: int, shape (R,).

    Returns:
        The boxes, (a set per coordinate, or None if all values of the table are in it; label), and the default label.

    Raises:
        InvalidMachine: if a key occurs twice.

    >>> keys = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> boxes(keys, np.array([0, 0, 0, 7]))
    ([((frozenset({1}), frozenset({1})), 7)], 0)
    """
    if len(np.unique(number_rows(keys))) < len(keys):
        raise InvalidMachine(f"of {len(keys)} keys some are equal: give each key once, with one label")
    table = Table(keys)
    values, sizes = np.unique(labels, return_counts=True)
    order = np.lexsort(
        (values, sizes)
    )  # the largest last: it is usually the default, whose cover need not be completed
    covers: dict[int, list[Sets]] = {}
    for i in order:
        most = max((len(cover) for cover in covers.values()), default=0)
        covers[int(values[i])] = table.cover(labels == values[i], most + 1 if i == order[-1] else None)
    default = max(covers, key=lambda label: len(covers[label]))
    result = [
        (tuple(None if s == v else s for s, v in zip(sets, table.values, strict=True)), label)
        for label, cover in covers.items()
        if label != default
        for sets in cover
    ]
    return result, default
