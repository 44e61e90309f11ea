"""Whole training steps on the CPU, ours and the authors': `python -m experiments.benchmarks.steps`.

A step is the forward pass, the loss, the backward pass and Adam, with the released settings, on one batch of words.
All networks are the same function of the same weights. They run in turns in one process; medians, and ratios to ours.
In the same turns, the matrix products that the deep layers' gates cannot do without: the floor under any step.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from experiments import results_io, script
from experiments.benchmarks.baselines import authors_pscan, authors_sequential
from experiments.benchmarks.scans import interleaved
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.nn.config import connect
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.scans import sequential
from fsa2lrnn.training.data import Batch
from fsa2lrnn.training.settings import Settings, preset
from fsa2lrnn.training.train import prepare_words
from fsa2lrnn.training.trainer import use_threads

TASKS = ["task:sum_mod(5)", "task:mod_arith(5)"]  # with one layer and with three
THREADS = [1, 2]
TURNS = 9
OURS, TORCH, FLOOR = "ours", "ours in torch alone", "matrix products"

Forward = Callable[[LRNN, Tensor], Tensor]
Scan = Callable[[Tensor, Tensor, Tensor], Tensor]


def main(
    threads: Annotated[list[int], typer.Option(min=1, help="threads of torch; repeatable")] = THREADS,
) -> None:
    """Measure whole training steps on the CPU, write results/bench_steps.json, print the table."""
    cases = [(preset("paper", task), n) for task in TASKS for n in threads]
    rows = [measure(*case) for case in track(cases, description="steps", transient=True)]
    path = results_io.write("bench_steps", rows, "python -m experiments.benchmarks.steps")
    Console().print(_table(rows), f"float32, batches of {rows[0]['batch']} words; written to {path.name}")


def _table(rows: list[dict[str, Any]]) -> Table:
    names = list(FORWARDS)[1:]
    table = Table("task", "layers", "threads", "ours ms", *(f"{n} / ours" for n in names), f"ours / {FLOOR}")
    for row in rows:
        table.add_row(
            *(str(row[name]) for name in ("task", "layers", "threads")),
            f"{row['milliseconds'][OURS]:.1f}",
            *(f"{row['over_ours'][name]:.1f}" for name in names),
            f"{row['ours_over_floor']:.2f}" if "ours_over_floor" in row else "",
        )
    return table


def measure(settings: Settings, threads: int) -> dict[str, Any]:
    """Return median milliseconds per step of each network of `FORWARDS`, with `threads` threads, and ratios.

    `over_ours` is the ratio of another network's time to ours; with deep layers, `ours_over_floor` is the ratio of our
    time to that of their matrix products.
    """
    model, batch = prepare(settings)
    actions = {name: step(deepcopy(model), name, batch, settings) for name in FORWARDS}
    if settings.layers > 1:
        actions[FLOOR] = matrix_products(list(model.layers)[1:], batch.tokens.numel())
    with use_threads(threads):
        milliseconds = interleaved(actions, TURNS)
    ours = milliseconds[OURS]
    row = {
        "task": settings.task,
        "layers": settings.layers,
        "heads": settings.heads,
        "block": settings.block,
        "batch": settings.batch,
        "length": batch.tokens.shape[1],
        "threads": threads,
        "milliseconds": milliseconds,
        "over_ours": {name: milliseconds[name] / ours for name in FORWARDS if name != OURS},
    }
    return row | {"ours_over_floor": ours / milliseconds[FLOOR]} if FLOOR in milliseconds else row


def prepare(settings: Settings) -> tuple[LRNN, Batch]:
    """Return a new network and a batch of words for its training."""
    words = prepare_words(settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = LRNN(settings.network(words.alphabet, words.outputs))
    return model, words.batch(settings.batch, words.fit(settings.length), torch.Generator().manual_seed(0))


def step(model: LRNN, name: str, batch: Batch, settings: Settings) -> Callable[[], None]:
    """Return a function that trains the network `name` by one step.

    Adam is fused for our two networks, plain for the rest.
    """
    forward = FORWARDS[name]
    optimiser = torch.optim.Adam(
        model.parameters(), settings.learning_rate, weight_decay=settings.weight_decay, fused=name in (OURS, TORCH)
    )

    def update() -> None:
        optimiser.zero_grad()
        loss(forward(model, batch.tokens), batch).backward()
        optimiser.step()

    return update


def loss(logits: Tensor, batch: Batch) -> Tensor:
    """Return the cross-entropy over the outputs that count."""
    return cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=UNCOUNTED)


def naive(model: LRNN, tokens: Tensor, scan: Scan) -> Tensor:
    """Compute the model's logits in plain torch: A and v from the gates at each step of each word, then a scan."""
    stream = model.embedding(tokens)
    for i, layer in enumerate(model.layers):
        x0 = layer.initial_state(len(tokens))  # type: ignore[operator]
        x = scan(*layer.tables(_norm(model, i, stream), "reference"), x0)  # type: ignore[operator]
        is_last = i + 1 == len(model.layers)
        stream = connect(model.config.connection, stream, x.flatten(-2), model.config.embedding_dim, is_last)
    return model.readout(_norm(model, len(model.layers), stream))


def _norm(model: LRNN, i: int, stream: Any) -> Tensor:
    return model.norms[i](stream) if model.config.layer_norm else stream


def _from_one_state(scan: Scan) -> Scan:
    """Return one of the authors' scans, which take one initial state (H, b) for all words, with our signature."""
    return lambda A, v, x0: scan(A, v, x0[0])


FORWARDS: dict[str, Forward] = {
    OURS: LRNN.forward,
    TORCH: partial(LRNN.forward, method="letters"),
    "Sequential with unbind": partial(naive, scan=sequential),
    "authors' Sequential": partial(naive, scan=_from_one_state(authors_sequential)),
    "authors' PScan": partial(naive, scan=_from_one_state(authors_pscan)),
}


def matrix_products(layers: list[nn.Module], n_inputs: int) -> Callable[[], None]:
    """Return the products of the layers' gates on `n_inputs` inputs, forward and backward, into allocated memory.

    Each linear map X ↦ X Wᵀ takes three: itself, the gradient of X and that of W.
    """
    products: list[tuple[Tensor, Tensor, Tensor]] = []
    for layer in layers:
        for linear in layer.modules():
            if isinstance(linear, nn.Linear):
                W = linear.weight.detach()
                x, y = torch.randn(n_inputs, linear.in_features), torch.randn(n_inputs, linear.out_features)
                products += [
                    (left, right, torch.empty(len(left), right.shape[1]))
                    for left, right in ((x, W.T), (y, W), (y.T, x))
                ]

    def multiply() -> None:
        for left, right, product in products:
            torch.mm(left, right, out=product)

    return multiply


if __name__ == "__main__":
    script.run(main)
