"""The subregular classes of the languages of MLRegTest, compared with their class labels.

python -m experiments.studies.mlregtest.classes FOLDER
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from experiments.studies.mlregtest.languages import names
from experiments.studies.mlregtest.names import parse_name
from experiments.studies.mlregtest.subregular import subregular_facts
from fsa2lrnn.automata.zoo.mlregtest import from_mlregtest

FACTS = (
    "strictly_local", "tier_strictly_local", "strictly_piecewise", "locally_testable", "tier_locally_testable",
    "j_trivial", "threshold_testable", "tier_threshold_testable", "dot_depth_one", "tier_dot_depth_one", "aperiodic",
)  # fmt: skip
LABEL = {
    "SL": "strictly_local", "TSL": "tier_strictly_local", "SP": "strictly_piecewise", "LT": "locally_testable",
    "TLT": "tier_locally_testable", "PT": "j_trivial", "LTT": "threshold_testable", "TLTT": "tier_threshold_testable",
    "PLT": "dot_depth_one", "TPLT": "tier_dot_depth_one", "SF": "aperiodic",
}  # fmt: skip
"""The fact that a label asserts. Zp and Reg assert that the language is not star-free."""


def main(
    folder: Annotated[Path, typer.Argument(help="the folder of .att files")],
    monoid: Annotated[int, typer.Option(min=1, help="elements of a monoid to enumerate")] = 5000,
    minutes: Annotated[float, typer.Option(min=0, help="after which no language begins")] = 60.0,
) -> None:
    """Classify the languages of a folder and write experiments/results/mlregtest_classes.json."""
    drawn, known = names(folder), known_rows("mlregtest_classes")
    plan = [(name,) for name in drawn]
    before = [{"name": name, "facts": text} for name, text in known.items()] if isinstance(known, dict) else []

    def keep(rows: list[Row]) -> None:
        runs = {row["name"]: row["facts"] for row in rows}  # a line per language
        command = "python -m experiments.studies.mlregtest.classes FOLDER"
        results_io.write("mlregtest_classes", {"monoid": monoid, "languages": len(drawn), "runs": runs}, command)

    def write(rows: list[Row]) -> None:
        if len(rows) % 50 == 0:
            keep(rows)

    keep(run_due(plan, ("name",), before, lambda name: facts(folder, name, monoid), write, minutes))


def facts(folder: Path, name: str, monoid: int) -> dict[str, Any]:
    """Return a language's name and its facts: those that hold, undecided ones with a question mark, and the least k."""
    classes, k = subregular_facts(from_mlregtest(name, folder), monoid)
    marks = {True: "{}", None: "{}?", False: ""}
    said = [marks[classes[fact].value].format(fact) for fact in FACTS]  # type: ignore[index]
    order = [] if k is None else [f"k={k}"]
    return {"name": name, "facts": " ".join([*filter(None, said), *order])}


def holds(name: str, text: str) -> bool | None:
    """Return whether the label of a language holds by its facts; None if it is undecided.

    >>> holds("04.04.SL.2.1.0", "strictly_local aperiodic"), holds("04.04.Zp.2.1.0", "aperiodic")
    (True, False)
    """
    kind, known = parse_name(name).kind, text.split()
    fact = LABEL.get(kind, "aperiodic")
    return None if f"{fact}?" in known else (fact in known) == (kind in LABEL)


if __name__ == "__main__":
    script.run(main)
