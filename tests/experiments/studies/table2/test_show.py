"""Table 2 as text and as a figure."""

from experiments.studies.table2 import cells, show
from experiments.studies.table2.columns import COLUMNS, TASKS

from .test_cells import record


def test_every_cell_is_filled_or_marked():
    lines = show.table(cells.document([record("ours", "paper", seed) for seed in range(5)])).splitlines()
    assert len(lines) == 2 + len(TASKS) * len(COLUMNS)
    ours = next(line for line in lines if line.startswith("| sum_mod(5) | the paper's layer"))
    assert "| 1.00 | 0.300 | 0.279 (0.264–0.297) | 0.500 (0.500–0.500) |" in ours
    assert ours.endswith("| paper, 0.001 | 5 of 5 |")
    assert sum("0 of" in line and line.endswith("unfinished |") for line in lines) == len(lines) - 3


def test_figures_are_reproducible(tmp_path):
    document = cells.document([record("ours", "paper", 0)])
    for name in ("one", "two"):
        show.figure(document, tmp_path / f"{name}.svg")
    one, two = ((tmp_path / f"{name}.svg").read_bytes() for name in ("one", "two"))
    assert one == two
    assert b"the paper" in one or b"<svg" in one
