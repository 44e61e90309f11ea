"""The scan of one-hot columns against its definition: `python -m experiments.benchmarks.hard`.

Forward and backward from the logits of a table of letters, in turns in one process: the einsum that defines it, the
fused scan on the same one-hot tables, and the one on indices; then whole steps of training with read-out, loss and Adam
by the chunked scan and by that one; medians and ratios.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from rich.console import Console
from torch import Tensor
from torch.nn.functional import cross_entropy

from experiments import results_io, script
from experiments.benchmarks.scans import forward_and_backward, interleaved
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.nn.normalise import normalise
from fsa2lrnn.nn.scans import scan_tokens
from fsa2lrnn.nn.scans.one_hot import hard_scan

SHAPES = [(128, 40, 8, 8), (32, 40, 8, 8), (128, 40, 16, 16), (64, 40, 6, 102)]  # batch, length, heads, block
N_LETTERS = 5
TURNS, _FEW_TURNS, _LARGE = 7, 2, 1 << 23


def main() -> None:
    """Measure, write results/bench_hard.json and print the ratios."""
    torch.set_num_threads(1)
    rows = [measure(*shape) for shape in SHAPES]
    path = results_io.write("bench_hard", rows, "python -m experiments.benchmarks.hard")
    console = Console()
    for row in rows:
        shape = " × ".join(str(row[name]) for name in ("batch", "length", "heads", "block"))
        over = ", ".join(f"{name} {ratio:.1f} times" for name, ratio in row["over_hard"].items())
        console.print(f"{shape}: {row['milliseconds']['hard']:.2f} ms, {over}; steps {row['steps_per_second']}")
    console.print(f"float32, 1 thread; written to {path.name}")


def measure(batch: int, length: int, heads: int, block: int) -> dict[str, Any]:
    """Return median milliseconds per method at one shape, ratios to the hard scan, and training steps per second."""
    drawn = torch.Generator().manual_seed(0)
    logits = torch.randn(N_LETTERS, heads, block, block, generator=drawn).requires_grad_()
    index = torch.randint(N_LETTERS, (batch, length), generator=drawn)
    state = torch.zeros(batch, heads, block)
    state[..., 0] = 1
    dx = torch.randn(batch, length, heads, block, generator=drawn)
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "einsum": partial(by_einsum, index, state=state),
        "fused tokens": partial(by_tables, index, state=state),
        "hard": lambda logits: hard_scan(index, logits, state),
    }
    turns = TURNS if batch * length * heads * block**2 < _LARGE else _FEW_TURNS
    milliseconds = interleaved(
        {name: partial(forward_and_backward, way, (logits,), dx) for name, way in ways.items()}, turns
    )
    steps = {
        name: step_of(method, batch, length, heads, block)
        for name, method in (("chunked", "chunked"), ("hard", "auto"))
    }
    of_steps = interleaved(steps, turns)
    return {
        "batch": batch,
        "length": length,
        "heads": heads,
        "block": block,
        "milliseconds": milliseconds,
        "over_hard": {name: time / milliseconds["hard"] for name, time in milliseconds.items() if name != "hard"},
        "steps_per_second": {name: round(1e3 / time, 1) for name, time in of_steps.items()},
    }


def by_einsum(index: Tensor, logits: Tensor, state: Tensor) -> Tensor:
    """Compute the scan by its definition: (B,T), (N,H,b,b), (B,H,b) -> (B,T,H,b)."""
    A, x, states = normalise(logits, "onehot", 1.0)[index], state, []
    for k in range(index.shape[1]):
        x = torch.einsum("bhij,bhj->bhi", A[:, k], x)
        states.append(x)
    return torch.stack(states, dim=1)


def by_tables(index: Tensor, logits: Tensor, state: Tensor) -> Tensor:
    """Compute the scan by the fused scan, which accepts any tables: (B,T), (N,H,b,b), (B,H,b) -> (B,T,H,b)."""
    A = normalise(logits, "onehot", 1.0)
    return scan_tokens(index, A, A.new_zeros(A.shape[:-1]), state, "fused")


def step_of(method: str, batch: int, length: int, heads: int, block: int) -> Callable[[], None]:
    """Return a training step on random labels with one scan."""
    torch.manual_seed(0)
    layer = BlockLayerConfig((block,) * heads, 1, 1, gate="table")
    letters = tuple(range(N_LETTERS))
    model = LRNN(LRNNConfig(letters, letters, (layer,), N_LETTERS, 64, normalisation="onehot"))
    optimiser = torch.optim.Adam([weight for weight in model.parameters() if weight.requires_grad], 1e-3, fused=True)
    tokens, labels = (torch.randint(N_LETTERS, (batch, length)) for _ in range(2))

    def step() -> None:
        loss = cross_entropy(model(tokens, method).flatten(0, 1), labels.flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    return step


if __name__ == "__main__":
    script.run(main)
