"""Table 2 as text and as a figure."""

from experiments.studies.table2 import cells, show
from experiments.studies.table2.columns import COLUMNS, TASKS

from .test_cells import TASK, record


def test_every_cell_is_filled_or_marked():
    lines = show.table(cells.document([record("ours", "paper", seed) for seed in range(5)])).splitlines()
    assert len(lines) == 2 + len(TASKS) * len(COLUMNS)
    ours = next(line for line in lines if line.startswith("| sum_mod(5) | the paper's layer"))
    assert "| 1.00 | 0.300 | 0.279 (0.264–0.297) | 0.500 (0.500–0.500) |" in ours
    assert ours.endswith("| paper, 0.001 | 5 of 5 |")
    assert sum("0 of" in line and line.endswith("unfinished |") for line in lines) == len(lines) - 3


def test_numbers_that_are_not_reproduced_and_reruns_are_named():
    records = [record("ours", "paper", seed, best=0.97) for seed in range(5)]
    records += [record("liquid_polyb", rate, 0, best=0.4) for rate in ("own", "paper")]
    seeds = [{"seed": 0, "end": "stop_at", "step": 3_000, "paper_protocol": {"accuracy": 1.0}}]
    seeds += [{"seed": 1, "end": "interrupted", "step": 27_000, "paper_protocol": {"accuracy": 0.9}}]
    training = [{"task": TASK, "settings": {"device": "tpu"}, "seeds": seeds}]
    document = cells.document(records)
    assert show.remarks(document, training) == [
        "1 of 2 printed numbers are reproduced to within 0.05.",
        "Liquid-S4 on sum_mod(5) is not reproduced: the paper prints 0.27, the best evaluation here is 0.400.",
        "Seed 1 of the paper's layer on sum_mod(5) is a rerun on cpu: the first run, on tpu, was cut short at step "
        "27,000 with a best evaluation of 0.900.",
    ]
    assert all(f"\n- {remark}\n" in show.notes(document, training) for remark in show.remarks(document, training))


def test_figures_are_reproducible(tmp_path):
    document = cells.document([record("ours", "paper", 0)])
    for name in ("one", "two"):
        show.figure(document, tmp_path / f"{name}.svg")
    one, two = ((tmp_path / f"{name}.svg").read_bytes() for name in ("one", "two"))
    assert one == two
    assert b"the paper" in one or b"<svg" in one
