"""The display of a learning run: progress lines with length and errors, and the result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

from fsa2lrnn.cli import activity, console, evidence, sizes
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.learning import Agreement, Learned, learn, summary, then_prove
from fsa2lrnn.learning.learning_run import Record
from fsa2lrnn.learning.saving import MACHINE, MODEL, write_learned
from fsa2lrnn.nn.checkpoint import load
from fsa2lrnn.nn.layers import layer_named
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.verdicts import Proved

_EVERY = 25  # evaluations between two progress lines


def main(source: str, out: Path, resume: bool, as_json: bool, **options: Any) -> bool:
    """Learn and print the result; return False if there is a target and the result is not proved equal to it."""
    evaluations = 0

    def show(record: Record) -> None:
        nonlocal evaluations
        evaluations += 1
        if evaluations % _EVERY == 0 and not activity.is_quiet():
            console.err.print(console.markup(_line(record)))

    learned = learn(source, folder=out, resume=resume, report=show, **options)
    for doubt in doubts(learned, options.get("noise", 0.0)):
        console.error("warning", doubt)
    if as_json:
        console.emit_json(summary(learned) | {"folder": str(out)})
    else:
        say(learned, out)
        console.then(f"fsa2lrnn draw {quote(str(out / MACHINE))} {quote(str(out / MODEL))} -o page.html")
    return isinstance(learned.verdict, Proved | Agreement) or learned.verdict is None


def doubts(learned: Learned, noise: float | None) -> Iterator[str]:
    """Yield a warning if a machine learned from words has more errors than `noise` explains, and one for few words.

    Few are words whose labels hold fewer bits than a description of the machine: other machines then fit as well.
    """
    if not (learned.verdict is None or isinstance(learned.verdict, Agreement)):
        return
    machine, labels = learned.machine, learned.labels
    if noise is not None and learned.faults > (wrong := noise * labels) + 4 * math.sqrt(wrong + 1):
        yield (
            f"{learned.faults:,} of {labels:,} outputs are not the machine's, and label noise {noise:g} explains "
            f"{wrong:,.0f}: give more --steps, or the noise that the labels have by --label-noise"
        )
    n, of_output = machine.n_states, math.log2(len(set(machine.outputs)) or 1)
    if (bits := n * (len(machine.alphabet) * math.log2(n) + of_output)) > labels * of_output:
        yield (
            f"{labels:,} outputs do not determine a machine of {n:,} states, which takes {bits:,.0f} bits: other "
            "machines fit them as well, so learn from more words"
        )


def check_provable(settings: Settings) -> None:
    """Raise `UnsupportedFormat` unless these settings train a layer that is an automaton for all weights."""
    if not layer_named(settings.layer).is_finite(settings.normalisation):
        raise UnsupportedFormat(
            f"--then-prove with layer = {settings.layer!r}, normalisation = {settings.normalisation!r}: only layers "
            "that are automata are proved, --set normalisation=onehot with blocks, or --layer hard_channels or "
            "hard_reflections; `fsa2lrnn certify` looks at the others"
        )


def prove_trained(task: str, sampler: str, results: list[dict[str, Any]]) -> bool:
    """Prove the machine of each trained network; return whether all are proved.

    The evidence is added to the results and the machines to their folders.
    """
    proved = True
    for result in results:
        if "model" not in result:
            continue
        learned = then_prove(load(result["model"]), task, sampler)
        folder = Path(result["folder"]) / "proved"
        folder.mkdir(exist_ok=True)
        write_learned(folder, learned)
        result["learned"] = summary(learned)
        proved = proved and learned.is_proved
    return proved


def say(learned: Learned, saved: Path | str) -> None:
    """Print a learning result as text."""
    verdict = learned.verdict
    if verdict is None or isinstance(verdict, Agreement):
        console.out.print(console.markup(f"learned: {learned.explain()}"))
    else:
        console.out.print(evidence.verdict_text(verdict, learned.machine.alphabet))
        console.out.print(console.markup(f"  for {learned.scope}"))
    heads = ", ".join(map(str, learned.heads))
    trained = [("heads kept", heads), ("starts", str(learned.starts)), ("steps", f"{learned.steps:,}")]
    rows = [*sizes.machine_rows(learned.machine), *(trained if learned.network is not None else [])]
    wrong = f"{learned.faults:,} of {learned.labels:,} outputs that it was shown are not the machine's"
    if learned.trail and learned.trail[-1].get("event") == "end of the budget":
        rows.append(("ended", "by its budget: this is the best machine so far, which more steps or seconds may better"))
    console.facts("machine", [*rows, ("time", f"{learned.seconds:.1f} s"), ("errors", wrong), ("saved", f"{saved}")])


def _line(record: Record) -> str:
    return (
        f"step {record['step']:,}, start {record['start']}, blocks of {record['block']}: words of {record['length']} "
        f"letters, error {record['error']:.3f}, missed {record['faults']:.3f}"
    )
