"""`classify` on the languages of MLRegTest, compared with their class labels.

python -m experiments.studies.mlregtest.classes FOLDER
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows, run_due
from experiments.studies.mlregtest.languages import names
from fsa2lrnn.automata.monoid import classify
from fsa2lrnn.automata.zoo.mlregtest import from_mlregtest, parse_name

FACTS = (
    "strictly_local", "tier_strictly_local", "strictly_piecewise", "locally_testable", "tier_locally_testable",
    "j_trivial", "aperiodic",
)  # fmt: skip
LABEL = {
    "SL": "strictly_local", "TSL": "tier_strictly_local", "SP": "strictly_piecewise", "LT": "locally_testable",
    "TLT": "tier_locally_testable", "PT": "j_trivial", "LTT": "aperiodic", "TLTT": "aperiodic", "PLT": "aperiodic",
    "TPLT": "aperiodic", "SF": "aperiodic",
}  # fmt: skip
"""The fact that a label asserts; where `classify` does not decide the class itself, the least class that contains it.
Zp and Reg assert that the language is not star-free."""


def main(
    folder: Annotated[Path, typer.Argument(help="the folder of .att files")],
    monoid: Annotated[int, typer.Option(min=1, help="elements of a monoid to enumerate")] = 5000,
    minutes: Annotated[float, typer.Option(min=0, help="after which no language begins")] = 60.0,
) -> None:
    """Classify the languages of a folder and write experiments/results/mlregtest_classes.json."""
    end = time.monotonic() + 60 * minutes
    plan = ((name,) for name in names(folder) if time.monotonic() < end)

    def write(rows: list[Row]) -> None:
        if len(rows) % 50 == 0:
            keep(rows)

    def keep(rows: list[Row]) -> None:
        command = "python -m experiments.studies.mlregtest.classes FOLDER"
        results_io.write(
            "mlregtest_classes", {"monoid": monoid, "languages": len(names(folder)), "runs": rows}, command
        )

    keep(run_due(plan, ("name",), known_rows("mlregtest_classes"), lambda name: facts(folder, name, monoid), write))


def facts(folder: Path, name: str, monoid: int) -> dict[str, Any]:
    """Return the facts of a language, and whether its label holds; None where `classify` does not decide it."""
    target, parsed = from_mlregtest(name, folder), parse_name(name)
    classes = classify(target, monoid)
    values = {fact: classes.facts[fact].value for fact in FACTS}
    is_periodic = parsed.kind not in LABEL
    value = values[LABEL.get(parsed.kind, "aperiodic")]
    row = {"name": name, "letters": parsed.letters, "class": parsed.kind, "states": target.n_states, **values}
    return row | {
        "holds": None if value is None else value != is_periodic,
        "k": classes.strictly_local_order,
        "tier": len(target.alphabet) - int((target.delta == range(target.n_states)).all(1).sum()),
    }


if __name__ == "__main__":
    script.run(main)
