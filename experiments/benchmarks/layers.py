"""Other published layers on the CPU, ours and in plain torch: `python -m experiments.benchmarks.layers`.

A step is the forward and the backward pass of one layer with all its gates on a batch of words, or, in rows without a
layer's name, of the recurrence alone. For words of letters, both implementations embed few distinct inputs; otherwise
there is one input per position. Ours and the plain one (`plain_layers`) take turns in one process. The table states
medians and ratios, of processor time with one thread, of wall-clock time with more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor
from torch.nn.functional import embedding

from experiments import results_io, script
from experiments.benchmarks import plain_layers
from experiments.benchmarks.scans import interleaved
from fsa2lrnn.nn.layers import LAYERS, Layer
from fsa2lrnn.nn.layers.diagonal import pairs, scan_diagonal
from fsa2lrnn.nn.layers.rwkv import NOTHING, wkv
from fsa2lrnn.training.trainer import use_threads

WIDTH, STATES = 64, 64
SHAPES = [(128, 40), (16, 500), (8, 4096)]  # words, letters
LETTERS = 5  # different ones, in rows of words of letters
OPTIONS: dict[str, dict[str, Any]] = {
    "s4": {"d_state": STATES},
    "s4d": {"d_state": STATES},
    "liquid_s4": {"d_state": STATES},
    "s5": {"ssm_size": STATES},
    "lru": {"states": STATES},
    "rwkv4": {},
    "vanilla": {},
}
ON_LETTERS = ("s4", "s4d", "s5", "lru", "rwkv4")  # that are measured on words of letters too
SCANS = ("wkv", "diagonal scan")
TURNS, FEW_TURNS = 9, 3
_LONG = 1 << 16  # inputs from which a few turns must do
_TOO_LARGE = ("liquid_s4", 4096)  # the plain one would keep 7 GiB of states

COMMAND = "python -m experiments.benchmarks.layers"


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help="these rows alone, written nowhere", show_default=False)
    ] = None,
    threads: Annotated[int, typer.Option(help="of torch and of the kernels")] = 1,
    lengths: Annotated[list[int] | None, typer.Option(help="of the words, from 40, 500 and 4096")] = None,
) -> None:
    """Measure, write results/bench_layers.json, print the table."""
    wanted = [
        (name, *shape, of)
        for name in names or [*OPTIONS, *SCANS]
        for of in (("letters", "inputs") if name in ON_LETTERS else ("inputs",))
        for shape in SHAPES
        if shape[1] in (lengths or [length for _, length in SHAPES]) and (name, shape[1]) != _TOO_LARGE
    ]
    if unknown := [name for name, *_ in wanted if name not in (*OPTIONS, *SCANS)]:
        raise typer.BadParameter(f"no row {unknown[0]!r}: there are {', '.join((*OPTIONS, *SCANS))}")
    with use_threads(threads):
        rows = [measure(*case) for case in track(wanted, description="layers", transient=True)]
    console = Console()
    console.print(_table(rows), f"float32, width {WIDTH}, {STATES} states, {threads} thread(s)")
    if not names and not lengths:
        path = results_io.write("bench_layers", {"threads": threads, "rows": rows}, COMMAND)
        console.print(f"written to {path.name}")


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table("layer", "words", "letters", "of", "ours ms", "plain ms", "plain / ours")
    for row in rows:
        table.add_row(
            row["layer"],
            *(f"{row[name]:,}" for name in ("words", "letters")),
            row["of"],
            *(f"{row['milliseconds'][name]:.2f}" for name in ("ours", "plain")),
            f"{row['plain_over_ours']:.1f}",
        )
    return table


def measure(name: str, batch: int, length: int, of: str = "inputs") -> dict[str, Any]:
    """Return median milliseconds per step of ours and of the plain layer, and their ratio."""
    steps = scan_steps(name, batch, length) if name in SCANS else layer_steps(name, batch, length, of)
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    milliseconds = interleaved(steps, TURNS if batch * length < _LONG // 8 else FEW_TURNS, clock)
    return {
        "layer": name,
        "words": batch,
        "letters": length,
        "of": of,
        "milliseconds": milliseconds,
        "plain_over_ours": milliseconds["plain"] / milliseconds["ours"],
    }


def new_layer(name: str, width: int = WIDTH) -> Layer:
    """Return a layer by name, with random weights."""
    kind = LAYERS[name]
    config: Any = kind.Config
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind.build(width, config(width=width, **OPTIONS[name]), None)  # type: ignore[arg-type]


def layer_steps(name: str, batch: int, length: int, of: str = "inputs") -> dict[str, Callable[[], None]]:
    """Return the forward and backward pass of a layer, ours and the plain one, with the same weights."""
    layer, generator = new_layer(name), torch.Generator().manual_seed(1)
    shape = (LETTERS,) if of == "letters" else (batch, length)
    u = torch.randn(*shape, WIDTH, generator=generator).requires_grad_()
    dy = torch.randn(batch, length, WIDTH, generator=generator)
    index = torch.randint(LETTERS, (batch, length), generator=generator) if of == "letters" else None
    plain = plain_layers.FORWARDS[name]

    def inputs() -> Tensor:
        return u if index is None else embedding(index, u)

    forwards: dict[str, Callable[[], Tensor]] = {
        "ours": lambda: layer.outputs(inputs(), layer.initial_state(batch)),
        "plain": lambda: plain(layer, inputs()),
    }
    weights = [u, *layer.parameters()]
    return {which: partial(step, forward, weights, dy) for which, forward in forwards.items()}


def scan_steps(name: str, batch: int, length: int) -> dict[str, Callable[[], None]]:
    """Return the forward and backward pass of a recurrence alone."""
    generator = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    dy = normal(batch, length, WIDTH)
    if name == "wkv":
        state = torch.zeros(batch, 3, WIDTH)
        state[:, 2] = NOTHING
        given = [-normal(WIDTH).exp(), normal(WIDTH), normal(batch, length, WIDTH), normal(batch, length, WIDTH)]
        w, u, k, v = given
        ours: Callable[[], Tensor] = lambda: wkv(w, u, k, v, state)[0]  # noqa: E731
        plain: Callable[[], Tensor] = partial(plain_layers.wkv, *given, state)
    else:
        rates = 0.99 * torch.polar(torch.ones(WIDTH // 2), normal(WIDTH // 2))
        given = [pairs(rates), normal(batch, length, WIDTH)]
        ours = partial(scan_diagonal, *given, torch.zeros(batch, WIDTH))
        plain = partial(plain_layers.diagonal, *given)
    for tensor in given:
        tensor.requires_grad_()
    return {which: partial(step, run, given, dy) for which, run in (("ours", ours), ("plain", plain))}


def step(forward: Callable[[], Tensor], weights: Sequence[Tensor], dy: Tensor) -> None:
    """Run one step and discard its gradients."""
    for weight in weights:
        weight.grad = None
    forward().backward(dy)


if __name__ == "__main__":
    script.run(main)
