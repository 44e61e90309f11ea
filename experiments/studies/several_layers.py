"""Certified length and counterexample of models of several layers.

`python -m experiments.studies.several_layers`: the kept model of ModArith(5), and compiled cascades whose layers are
disturbed by normal noise of a share of the largest weight, drawn twice; joint sets were developed on the first draw.
The certified length is that of `certify`, accepted by `check` (for the kept model that of
`studies.learned`), beside that of an enumeration of at most `STEPS` steps; the counterexample is the shortest that
`falsify` finds.
"""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import torch

from experiments import results_io, script
from experiments.studies.keep_models import MODELS
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.lower import compile_machine
from fsa2lrnn.nn.checkpoint import load
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.verdicts import Refuted
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import check
from fsa2lrnn.verification.falsify import falsify
from fsa2lrnn.verification.specification import specification_of
from fsa2lrnn.verification.walk import explore

COMMAND = "python -m experiments.studies.several_layers"
STEPS, WORK = 3_000, 2e10
KEPT = "arith5/seed-0"
CASCADES = ("subtraction(3)", "subtraction(5)", "group(Q8)", "cycle_navigation(8)")
NOISE = (0.001, 0.01, 0.03)
DISTURBED = {
    f"{task}, noise {noise:g}, draw {draw}": (f"task:{task}", noise, draw)
    for draw, task, noise in product((0, 1), CASCADES, NOISE)
}


def main() -> None:
    """Measure all models and write results/several_layers.json after each."""
    rows: list[dict[str, Any]] = []
    learned = results_io.read("learned")["results"]["models"][KEPT]
    for name in (KEPT, *DISTURBED):
        rows.append({"model": name, **measured(*subject(name))})
        if name == KEPT:
            rows[-1] |= {"certified": learned["certified"], "counterexample": learned["failure"]["length"]}
        results_io.write("several_layers", {"models": rows, "steps": STEPS}, COMMAND)


def subject(name: str) -> tuple[LRNN, MooreMachine]:
    """Return a model and its machine by the model's name in the results."""
    if name == KEPT:
        return load(MODELS / f"{KEPT}.safetensors"), MooreMachine.from_source("task:mod_arith(5)")
    source, noise, draw = DISTURBED[name]
    machine = MooreMachine.from_source(source)
    return disturbed(machine, noise, draw), machine


def disturbed(machine: MooreMachine, noise: float, draw: int) -> LRNN:
    """Return the compiled cascade of a machine with noise on the weights of its layers."""
    model, drawn = compile_machine(machine, form="cascade"), torch.Generator().manual_seed(draw)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.startswith("layers"):
                weight += noise * weight.abs().max() * torch.randn(weight.shape, generator=drawn)
    return model


def measured(model: LRNN, machine: MooreMachine) -> dict[str, Any]:
    """Return the row of one model."""
    goal, begun = specification_of(model, machine, "lacked"), time.process_time()
    enumerated = explore(model, goal, lambda steps: steps <= STEPS)
    verdict = falsify(model, machine, ignore="lacked")
    middle = time.process_time()
    certificate = certify(model, machine, ignore="lacked", work=WORK)
    done = time.process_time()
    accepted = check(certificate, model, ignore="lacked")
    return {
        "layers": [list(layer.block_sizes) for layer in model.recurrences],
        "enumerated": enumerated.length,
        "certified": accepted.horizon,
        "method": certificate.method,
        "counterexample": len(verdict.word) if isinstance(verdict, Refuted) else None,
        "seconds_before": round(middle - begun, 1),
        "certify_seconds": round(done - middle, 1),
        "check_seconds": round(time.process_time() - done, 1),
    }


if __name__ == "__main__":
    script.run(main)
