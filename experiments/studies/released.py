"""Which layers of others can hold which machine: `python -m experiments.studies.released` (docs/released.md).

Every yes is written as a whole model and proved on its own one-token step, in float32; every no is a certificate that
`fsa2lrnn/released/recheck.py` accepts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from experiments import results_io, script
from experiments.studies.families import SERIES, TRIED
from fsa2lrnn.automata import MooreMachine, minimise, zoo
from fsa2lrnn.released import LAYERS
from fsa2lrnn.released.answers import answer
from fsa2lrnn.released.export import export

MACHINES = (
    *TRIED,
    *(f"group(S{n}, transpositions)" for n in (3, 4, 5)),
    *SERIES,
    "even_pair(2)", "mod_arith(2)", "even_pairs", "cycle_navigation(5)", "cerny(4)", "all_maps(3)", "elevator(3)",
    "resettable_counter(3)", "remainder(3)", "contains(abaab)", "count_mod(2)", "group(Z2xZ2)", "tomita(6)",
)  # fmt: skip


def main() -> None:
    """Decide which layer holds which machine, prove or check it, write results/released_table.json, print the table."""
    rows = [row(source) for source in track(dict.fromkeys(MACHINES), description="machines", transient=True)]
    path = results_io.write("released_table", rows, "python -m experiments.studies.released")
    table = Table("machine", "states", *LAYERS)
    for line in rows:
        cells = [said["answer"] for said in line["layers"].values()]
        table.add_row(line["machine"], str(line["states"]), *cells)
    Console(width=130).print(table, f"written to {path.name}")


def row(source: str) -> dict:
    """What each layer does with one machine of the zoo."""
    machine = minimise(zoo.from_task(source))
    return {
        "machine": source,
        "states": machine.n_states,
        "letters": len(machine.alphabet),
        "layers": {layer: cell(machine, layer) for layer in LAYERS},
    }


def cell(machine: MooreMachine, layer: str) -> dict:
    """An answer, proved or checked. Raises `NotExact` for a construction that its layer's code does not follow."""
    said = answer(machine, layer)
    if said.refusal is not None:
        said.refusal.check()
        words = [[str(machine.alphabet[a]) for a in word] for word in (said.refusal.before, said.refusal.repeated)]
        return {"answer": "no", "before": words[0], "repeated": words[1]}
    if said.plan is None:
        return {"answer": "unknown"}
    with tempfile.TemporaryDirectory() as folder:
        written = export(machine, layer, Path(folder) / "model")
    proof = {"nodes": written.verdict.pairs, "transitions": written.verdict.transitions}
    return {"answer": "yes", "how": said.why, "layers": said.plan.n_layers, **proof}


if __name__ == "__main__":
    script.run(main)
