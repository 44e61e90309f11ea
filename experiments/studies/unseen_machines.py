"""Exported models on machines that were not used in development: `python -m experiments.studies.unseen_machines`.

For each model of transformers: random machines that its layers represent, of 3 to 6 states, are exported, proved,
loaded by `AutoModelForCausalLM`, and answer random words of `LETTERS` letters, whole without a cache and letter
by letter with one. float32 and bfloat16 alternate. Results are written after each machine, and machines that are in the
file with this number of words are not run again. With `--model NAME` only those models are run, in this order.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

from experiments import results_io, script
from experiments.resumable import Row, known_rows
from experiments.tables import facts, markdown
from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.export import target
from fsa2lrnn.export.folder import ExportedModel, load
from fsa2lrnn.export.huggingface import HuggingFace
from fsa2lrnn.export.packages import cache_name, transformers
from fsa2lrnn.export.refuse import answer
from fsa2lrnn.export.whole_model import export
from fsa2lrnn.layers import EXPORTED

NAME = "unseen_machines"
LETTERS = 300
FIRST_SEED = 50_000  # no test or study draws from here on
_WHOLE = 50  # words per call without a cache, whose time grows with the memory it takes
_DTYPES = ("float32", "bfloat16")


def main(
    model: Annotated[list[str] | None, typer.Option(help="run this model; repeatable")] = None,
    machines: Annotated[int, typer.Option(help="machines per model")] = 40,
    words: Annotated[int, typer.Option(help="words per machine")] = 2_000,
) -> None:
    """Run every model and write results/unseen_machines.json after each machine."""
    rows = known_rows(NAME)
    for name in model or [name for name in EXPORTED if isinstance(target(name).code, HuggingFace)]:
        row = next((row for row in rows if (row["model"], row["words"]) == (name, words)), None)
        if row is None:
            row = {
                "model": name, "words": words, "letters": LETTERS, **dict.fromkeys(_DTYPES, 0), "wrong": 0,
                "most_states": 0, "most_layers": 0, "last_seed": FIRST_SEED - 1, "seconds": 0.0,
            }  # fmt: skip
            rows.append(row)
        n_done = sum(row[dtype] for dtype in _DTYPES)
        drawn = represented(name, row["last_seed"] + 1)
        for number, (seed, machine) in enumerate(islice(drawn, max(0, machines - n_done)), n_done):
            run(row, seed, machine, _DTYPES[number % 2])
            results_io.write("unseen_machines", {"runs": rows}, f"python -m experiments.studies.{NAME}")
        print(row, flush=True)
    print(table())


def run(row: Row, seed: int, machine: MooreMachine, dtype: str) -> None:
    """Run a machine and add it to the row of its model; raise `NotExact` for a wrong answer."""
    begun, name = time.process_time(), row["model"]
    with tempfile.TemporaryDirectory() as place:
        done = export(machine, name, Path(place) / "model", dtype)
        n_wrong = wrong(load(Path(place) / "model"), seed, row["words"])
    if n_wrong:
        raise NotExact(f"{name}, seed {seed}, {dtype}: {n_wrong} words are answered wrongly")
    row[dtype] += 1
    row["most_states"] = max(row["most_states"], machine.n_states)
    row["most_layers"] = max(row["most_layers"], done.plan.n_layers * target(name).layers_a_stage)
    row["last_seed"] = seed
    row["seconds"] = round(row["seconds"] + time.process_time() - begun, 1)


def table() -> str:
    """Return for each model and number of words how many machines it answered, and the largest of them."""
    document = results_io.read(NAME)
    runs = sorted(document["results"]["runs"], key=lambda row: (EXPORTED.index(row["model"]), -row["words"]))
    counted = (*_DTYPES, "words", "wrong", "most_states", "most_layers")
    rows = [[f"`{row['model']}`", *(f"{row[name]:,}" for name in counted)] for row in runs]
    heads = ["model", "machines in float32", "in bfloat16", "words each", "wrong", "most states", "most layers"]
    return markdown(heads, rows) + facts(document, f"Words of {LETTERS} letters, read whole and letter by letter")


def represented(name: str, first: int = FIRST_SEED) -> Iterator[tuple[int, MooreMachine]]:
    """Yield random machines, with their seeds, that the layers of a model represent by a known construction."""
    for seed in count(first):
        machine = zoo.random_dfa(3 + seed % 4, 2 + seed % 2, seed, minimal=True)
        if answer(machine, name).plan is not None:
            yield seed, machine


@torch.no_grad()
def wrong(exported: ExportedModel, seed: int, n: int) -> int:
    """Return how many of n words are answered wrongly after some letter, in one of the two ways of reading them."""
    machine, model = exported.machine, exported.model
    letters = np.random.default_rng(seed).integers(len(machine.alphabet), size=(n, LETTERS))
    numbers = np.array([len(machine.alphabet) + exported.outputs.index(output) for output in machine.outputs])
    q, expected = np.full(n, machine.start), np.zeros_like(letters)
    for t, column in enumerate(letters.T):
        q = machine.delta[column, q]
        expected[:, t] = numbers[q]
    words, right, cache, stepped = torch.from_numpy(letters), torch.from_numpy(expected), None, []
    with transformers():
        whole = [model(input_ids=rows, use_cache=False).logits.argmax(-1) for rows in words.split(_WHOLE)]
        for column in words.T:
            said = model(input_ids=column[:, None], use_cache=True, **{cache_name(model): cache})
            cache = getattr(said, cache_name(model))
            stepped.append(said.logits[:, 0].argmax(-1))
    is_right = (torch.cat(whole) == right).all(1) & (torch.stack(stepped, 1) == right).all(1)
    return int((~is_right).sum())


if __name__ == "__main__":
    script.run(main)
