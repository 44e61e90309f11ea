"""Training steps of two checkouts compared: `python -m experiments.benchmarks.checkouts OTHER`.

Each checkout runs in a process of its own, and the two take turns, so that a busy machine slows both alike. A row is
the median over rounds of the ratio (this checkout / OTHER) of their times for the same step: processor time with one
thread, wall-clock time with more. OTHER is a folder with a checkout and its virtual environment `.venv`.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor
from torch.nn.functional import embedding

from experiments import script
from experiments.benchmarks import scans, steps

ROOT = Path(__file__).parents[2]
WIDTH, LETTERS = 64, 5
OPTIONS: dict[str, dict[str, Any]] = {
    "s4": {},
    "s4d": {},
    "liquid_s4": {},
    "s5": {},
    "lru": {},
    "rwkv4": {},
    "vanilla": {},
}
SCANS = ("block", "block, long words", "block by token", "one-hot by token", "columns")
SHAPES = ((128, 40), (16, 500), (8, 4096))  # words, letters
_TURN_SECONDS = 0.15

Step = Callable[[], Any]


def layer_step(name: str, of: str, batch: int, length: int) -> Step:
    """Return the forward and backward pass of one layer with its gates, on letters or on one input per position."""
    from fsa2lrnn.nn.layers import LAYERS

    torch.manual_seed(0)
    kind = LAYERS[name]
    layer = kind.build(WIDTH, kind.Config(width=WIDTH, **OPTIONS[name]), None)  # type: ignore[arg-type, call-arg]
    u = torch.randn(*((LETTERS,) if of == "letters" else (batch, length)), WIDTH).requires_grad_()
    index = torch.randint(LETTERS, (batch, length)) if of == "letters" else None
    dy = torch.randn(batch, length, WIDTH)

    def run() -> None:
        for weight in (u, *layer.parameters()):
            weight.grad = None
        if layer.takes_index:
            y = layer.outputs(u, layer.initial_state(batch), "auto", index)
        else:
            y = layer.outputs(u if index is None else embedding(index, u), layer.initial_state(batch))
        y.backward(dy)

    return run


def model_step(task: str, layer: str) -> Step:
    """Return a training step with the published settings of a task: forward pass, loss, backward pass and Adam."""
    settings = steps.preset("paper", f"task:{task}", layer=layer)
    model, batch = steps.prepare(settings)
    return steps.step(model, steps.OURS, batch, settings)


def scan_step(name: str) -> Step:
    """Return the forward and backward pass of one of the core's compiled scans."""
    from fsa2lrnn.nn.normalise import normalise
    from fsa2lrnn.nn.scans import scan, scan_tokens
    from fsa2lrnn.nn.scans.one_hot import hard_scan

    A, v, x0 = scans.inputs(*((8, 4096) if name == "block, long words" else (128, 40)), 8, 8)
    dx, tokens = torch.randn(v.shape), torch.randint(LETTERS, (128, 40))
    tables = [x.detach()[0, :1].expand(LETTERS, *x.shape[2:]).clone().requires_grad_() for x in (A, v)]
    hot = torch.nn.functional.one_hot(torch.zeros(128, 8, dtype=torch.int64), 8).float()
    cases: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...], Tensor]] = {
        "block": (partial(scan, method="fused"), (A, v, x0), dx),
        "block, long words": (partial(scan, method="fused"), (A, v, x0), dx),
        "block by token": (partial(scan_tokens, tokens, method="fused"), (*tables, x0), dx),
        "one-hot by token": (lambda logits: hard_scan(tokens, logits, hot), (tables[0],), dx),
        "columns": (lambda blocks: normalise(blocks, "paper", 1.2, "fused"), (A,), torch.randn_like(A)),
    }
    return partial(scans.forward_and_backward, *cases[name])


CASES: dict[str, Callable[[], Step]] = {
    **{f"scan {name}": partial(scan_step, name) for name in SCANS},
    **{
        f"step {task} {layer}": partial(model_step, task, layer)
        for layer in ("block", *OPTIONS)
        for task in ("sum_mod(5)", "mod_arith(5)")
    },
    **{
        f"{name} {of} {batch}x{length}": partial(layer_step, name, of, batch, length)
        for name in OPTIONS
        for of in ("letters", "inputs")
        for batch, length in SHAPES
    },
}


def serve() -> None:
    """Read lines of case and threads from standard input, write the median seconds of one turn of the case."""
    made: dict[str, Step] = {}
    for line in sys.stdin:
        name, threads = json.loads(line)
        torch.set_num_threads(threads)
        if name not in made:
            made.clear()
            made[name] = CASES[name]()
            made[name]()  # compiles
        clock = time.process_time if threads == 1 else time.perf_counter
        turn: list[float] = []
        while sum(turn) < _TURN_SECONDS:
            start = clock()
            made[name]()
            turn.append(clock() - start)
        print(json.dumps(statistics.median(turn)), flush=True)


def main(
    other: Annotated[Path, typer.Argument(help="folder of the other checkout")],
    only: Annotated[list[str] | None, typer.Option(help="cases that contain this text; repeatable")] = None,
    threads: Annotated[list[int] | None, typer.Option(help="threads of torch; repeatable")] = None,
    rounds: int = 9,
) -> None:
    """Measure and print a row for each case."""
    servers = [_server(ROOT), _server(other)]
    for name in (name for name in CASES if not only or any(text in name for text in only)):
        for n_threads in threads or [1, 2]:
            pairs = []
            for k in range(rounds + 1):
                order = servers if k % 2 else servers[::-1]
                found = {id(each): _ask(each, name, n_threads) for each in order}
                pairs.append([found[id(each)] for each in servers])
            ours, theirs = zip(*pairs[1:], strict=True)
            ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
            print(
                f"{name:30} {n_threads} threads  this {1e3 * statistics.median(ours):8.2f} ms  "
                f"other {1e3 * statistics.median(theirs):8.2f} ms  ratio {statistics.median(ratios):.2f} "
                f"({ratios[len(ratios) // 4]:.2f} to {ratios[-1 - len(ratios) // 4]:.2f})",
                flush=True,
            )
    for each in servers:
        each.terminate()


def _server(folder: Path) -> subprocess.Popen[str]:
    """Return a process with the library and the benchmarks of a checkout, which may lack this file.

    Compiled code is stored outside of the checkout. The process's threads sleep while they wait, because spinning
    threads slow other processes down.
    """
    load = (
        "import importlib.util, sys; "
        f"spec = importlib.util.spec_from_file_location('checkouts', {str(Path(__file__).resolve())!r}); "
        "module = importlib.util.module_from_spec(spec); sys.modules['checkouts'] = module; "
        "spec.loader.exec_module(module); module.serve()"
    )
    kept = Path(tempfile.gettempdir()) / "fsa2lrnn-checkouts" / hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    return subprocess.Popen(
        [str(folder / ".venv/bin/python"), "-c", load],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_WAIT_POLICY": "PASSIVE", "NUMBA_CACHE_DIR": str(kept)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _ask(server: subprocess.Popen[str], name: str, threads: int) -> float:
    assert server.stdin is not None
    assert server.stdout is not None
    print(json.dumps([name, threads]), file=server.stdin, flush=True)
    return float(json.loads(server.stdout.readline()))


if __name__ == "__main__":
    script.run(main)
