"""Exported models on machines that were not used in development: `python -m experiments.studies.unseen_machines`.

For each model of transformers: random machines that its layers represent, of 3 to 6 states, are exported, proved,
loaded by `AutoModelForCausalLM`, and answer random words of `LETTERS` letters, whole without a cache and letter
by letter with one. With `--model NAME` only that model is run, and the others are kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from experiments import results_io, script
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
_ROWS = 250  # words per call


def main(
    model: Annotated[list[str] | None, typer.Option(help="run this model, and keep the others")] = None,
    machines: Annotated[int, typer.Option(help="machines per model")] = 40,
    words: Annotated[int, typer.Option(help="words per machine")] = 2_000,
) -> None:
    """Run every model and write results/unseen_machines.json after each."""
    names = [name for name in EXPORTED if isinstance(target(name).code, HuggingFace)]
    path = results_io.RESULTS / f"{NAME}.json"
    found = results_io.read(NAME)["results"] if path.exists() else {}
    for name in model or names:
        found[name] = run(name, machines, words)
        results_io.write(NAME, found, f"python -m experiments.studies.{NAME}")
        print(name, found[name], flush=True)


def run(name: str, machines: int, words: int) -> dict[str, Any]:
    """Return what was run for a model; raise `NotExact` for a wrong answer."""
    seeds, states, layers = list[int](), list[int](), list[int]()
    for seed, machine in islice(represented(name), machines):
        with tempfile.TemporaryDirectory() as place:
            done = export(machine, name, Path(place) / "model", "bfloat16" if seed % 2 else "float32")
            n_wrong = wrong(load(Path(place) / "model"), seed, words)
        if n_wrong:
            raise NotExact(f"{name}, seed {seed}: {n_wrong} words are answered wrongly")
        seeds.append(seed)
        states.append(machine.n_states)
        layers.append(done.plan.n_layers * target(name).layers_a_stage)
    return {
        "machines": len(states), "words": words, "letters": LETTERS, "wrong": 0, "most_states": max(states),
        "most_layers": max(layers), "last_seed": seeds[-1],
    }  # fmt: skip


def represented(name: str) -> Iterator[tuple[int, MooreMachine]]:
    """Yield random machines, with their seeds, that the layers of a model represent by a known construction."""
    for seed in count(FIRST_SEED):
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
    words, n_wrong, name = torch.from_numpy(letters), 0, cache_name(model)
    with transformers():
        for rows, right in zip(words.split(_ROWS), torch.from_numpy(expected).split(_ROWS), strict=True):
            whole, cache, stepped = model(input_ids=rows, use_cache=False).logits.argmax(-1), None, []
            for t in range(LETTERS):
                said = model(input_ids=rows[:, t : t + 1], use_cache=True, **{name: cache})
                cache = getattr(said, name)
                stepped.append(said.logits[:, 0].argmax(-1))
            is_right = (whole == right).all(1) & (torch.stack(stepped, 1) == right).all(1)
            n_wrong += int((~is_right).sum())
    return n_wrong


if __name__ == "__main__":
    script.run(main)
