"""A labelled table as a few boxes: a two-level cover of a function of many-valued coordinates.

A *box* is a product of sets of values, one set a coordinate. Each box will be one hidden unit of a gate (docs/theory.md
§6), so the fewer the better. The least number is out of reach (two-level minimisation is hard for NP), hence greedy
methods (`gates.cover`); of what they find for a label the better is taken.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.gates.cover import Sets, Table
from fsa2lrnn.rows import number_rows

Box = tuple[tuple[frozenset[int] | None, ...], int]


def boxes(keys: np.ndarray, labels: np.ndarray) -> tuple[list[Box], int]:
    """Boxes for all labels but one, the default, which is the label that would take the most of them.

    Every key of another label lies in exactly one box, which has its label; keys of the default label lie in none.
    What is not in the table may lie anywhere.

    Args:
        keys: distinct rows of values, int ≥ 0, shape (R, J).
        labels: int, shape (R,).

    Returns:
        The boxes, (a set for each coordinate or None where any value of the table will do, label), and the default.

    Raises:
        InvalidMachine: if a key stands twice.

    >>> keys = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> boxes(keys, np.array([0, 0, 0, 7]))
    ([((frozenset({1}), frozenset({1})), 7)], 0)
    """
    if len(np.unique(number_rows(keys))) < len(keys):
        raise InvalidMachine(f"of {len(keys)} keys some are equal: give each key once, with one label")
    table = Table(keys)
    values, sizes = np.unique(labels, return_counts=True)
    order = np.lexsort((values, sizes))  # the largest last: most often it is the default, and need not be finished
    covers: dict[int, list[Sets]] = {}
    for i in order:
        most = max((len(cover) for cover in covers.values()), default=0)
        covers[int(values[i])] = table.cover(labels == values[i], most + 1 if i == order[-1] else None)
    default = max(covers, key=lambda label: len(covers[label]))
    found = [
        (tuple(None if s == v else s for s, v in zip(sets, table.values, strict=True)), label)
        for label, cover in covers.items()
        if label != default
        for sets in cover
    ]
    return found, default
