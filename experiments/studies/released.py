"""Which external layers represent which machine: `python -m experiments.studies.released`.

Every yes is written as a whole model, loaded and proved on its own one-token step in float32. If that needs more than
`BUDGET` states, the model is run on a word of `LETTERS` letters instead, and the table says so. Every no is a
certificate that `fsa2lrnn/export/recheck.py` accepts. The package of each layer must be installed; with
`--layer NAME` only that column is computed, and the others are taken from the table.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from experiments import results_io, script
from experiments.machines import of_zoo
from experiments.studies.families import SERIES, TRIED
from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.errors import NotExact
from fsa2lrnn.export import target
from fsa2lrnn.export.confused_words import ConfusedWords
from fsa2lrnn.export.folder import load, run, save
from fsa2lrnn.export.plan import StagePlan
from fsa2lrnn.export.refuse import answer
from fsa2lrnn.export.whole_model import prove
from fsa2lrnn.verdicts import Proved, Undecided

MACHINES = (
    *TRIED,
    *(f"group(S{n}, transpositions)" for n in (3, 4, 5)),
    *SERIES,
    "even_pair(2)", "mod_arith(2)", "even_pairs", "cycle_navigation(5)", "cerny(4)", "all_maps(3)", "elevator(3)",
    "resettable_counter(3)", "remainder(3)", "contains(abaab)", "count_mod(2)", "group(Z2xZ2)", "tomita(6)",
)  # fmt: skip
# Other models with the same layers have the same plans and the same refusals, hence the same answers.
COLUMNS = ("mamba", "mamba-2", "qwen3-next", "qwen3.5", "olmo-hybrid", "kimi-linear", "rwkv-7")
BUDGET = 150
LETTERS = 2_000


def main(
    layer: Annotated[list[str] | None, typer.Option(help="compute this layer's column, and keep the others")] = None,
) -> None:
    """Decide which layer holds which machine, prove or check it, write results/released_table.json, print the table."""
    kept = {line["machine"]: line["layers"] for line in results_io.read("released_table")["results"]} if layer else {}
    rows = list[dict]()
    for source in track(dict.fromkeys(MACHINES), description="machines", transient=True):
        there = {name: said for name, said in kept.get(source, {}).items() if name not in (layer or ())}
        rows.append(row(source, there))
    path = results_io.write("released_table", rows, "python -m experiments.studies.released")
    table = Table("machine", "states", *COLUMNS)
    for line in rows:
        cells = [said["answer"] for said in line["layers"].values()]
        table.add_row(line["machine"], str(line["states"]), *cells)
    Console(width=130).print(table, f"written to {path.name}")


def row(source: str, there: Mapping[str, dict] = MappingProxyType({})) -> dict:
    """Return the answer of each layer on one machine of the zoo; cells in `there` are not computed again."""
    machine, facts = of_zoo(source)
    return {**facts, "layers": {layer: there.get(layer) or cell(machine, layer) for layer in COLUMNS}}


def cell(machine: MooreMachine, layer: str) -> dict:
    """Return an answer, proved, run or checked. Raises `NotExact` if the layer's code contradicts the construction."""
    said = answer(machine, layer)
    refused = dict[str, list[str]]()
    if said.refusal is not None:
        said.refusal.check()
        assert not isinstance(said.refusal, ConfusedWords), "a refusal of a layer without an export"
        words = [[str(machine.alphabet[a]) for a in word] for word in (said.refusal.before, said.refusal.repeated)]
        refused = {"before": words[0], "repeated": words[1]}
    one_layer = {"one_layer": refused} if refused else {}
    if said.plan is None:  # every "yes" has a plan
        return {"answer": said.kind, **(refused if said.kind == "no" else one_layer)}
    into = target(layer)
    n_layers = said.plan.n_layers * into.layers_a_stage
    found = {"answer": "yes", "how": said.plan.how, "layers": n_layers, **shown(said.plan, layer)}
    return {**found, **one_layer}


def shown(plan: StagePlan, layer: str) -> dict:
    """Return the check of a plan as a whole model loaded from its folder: proved states, or letters run correctly."""
    into = target(layer)
    with tempfile.TemporaryDirectory() as folder:
        save(into.build(plan, torch.float32), layer, plan, Path(folder))
        model = load(Path(folder))
    verdict = prove(model, budget=BUDGET)
    if isinstance(verdict, Proved):
        return {"nodes": verdict.pairs, "transitions": verdict.transitions}
    machine = model.machine
    numbers = {output: len(machine.alphabet) + j for j, output in enumerate(model.outputs)}
    word = np.random.default_rng(0).integers(len(machine.alphabet), size=LETTERS)
    wanted = [numbers[output] for output in machine.transduce([machine.alphabet[a] for a in word])]
    if not isinstance(verdict, Undecided) or run(model, torch.from_numpy(word))[0].tolist() != wanted:
        raise NotExact(f"{layer} does not follow {machine}: {verdict}")
    return {"run": LETTERS}


if __name__ == "__main__":
    script.run(main)
