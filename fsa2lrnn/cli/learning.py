"""Learning as it is shown: the length that is reached and the errors on the way, and what is known in the end."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.cli import console, evidence, sizes
from fsa2lrnn.display.cards import blocks_text
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.checkpoint import load, save
from fsa2lrnn.lrnn.layers import layer_named
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.training.learning import Agreement, Learned, distil, learn, summary, then_prove
from fsa2lrnn.training.learning.run import Record
from fsa2lrnn.training.learning.saving import write_learned
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.verdicts import Proved

_EVERY = 25  # looks between two lines


def main(source: str, out: Path, resume: bool, as_json: bool, **options: Any) -> bool:
    """Learn, and say what was learned; False if there is a target and the result is not proved equal to it."""
    looks = 0

    def show(record: Record) -> None:
        nonlocal looks
        looks += 1
        if looks % _EVERY == 0 or record.get("taught"):
            console.err.print(console.markup(_line(record)))

    found = learn(source, folder=out, resume=resume, report=show, **options)
    if as_json:
        console.emit_json(summary(found) | {"folder": str(out)})
    else:
        say(found, out)
        console.then(f"fsa2lrnn report {quote(str(out))} -o page.html")
    return isinstance(found.verdict, Proved | Agreement) or found.verdict is None


def check_provable(settings: Settings) -> None:
    """Raises `UnsupportedFormat` unless what is trained so is an automaton."""
    if not layer_named(settings.layer).is_finite(settings.normalisation):
        raise UnsupportedFormat(
            f"--then-prove with layer = {settings.layer!r}, normalisation = {settings.normalisation!r}: only layers "
            "that are automata are proved, --set normalisation=onehot with blocks, or --layer hard_lanes or "
            "hard_reflections; `fsa2lrnn certify` looks at the others"
        )


def prove_trained(task: str, sampler: str, results: list[dict[str, Any]]) -> bool:
    """Prove what each trained network has learned; the results get the evidence, their folders the machines.

    False if one is not proved.
    """
    proved = True
    for result in results:
        if "model" not in result:
            continue
        found = then_prove(load(result["model"]), task, sampler)
        folder = Path(result["folder"]) / "proved"
        folder.mkdir(exist_ok=True)
        write_learned(folder, found)
        result["learned"] = summary(found)
        proved = proved and found.is_proved
    return proved


def distilled(
    model: LRNN, machine: MooreMachine, source: str, output: Path | None, as_json: bool, seconds: float | None
) -> bool:
    """Learn a model's answers on short words, and write the new model if it is proved; False if it is not."""
    found = distil(model, machine, source, seconds=seconds)
    if output is not None and found.is_proved:
        save(found.model, output)
    saved = str(output) if output and found.is_proved else None
    if as_json:
        console.emit_json({"mode": "distil", **summary(found), "saved": saved})
    else:
        say(found, saved or "no (-o FILE saves it)")
    return found.is_proved


def say(found: Learned, saved: Path | str) -> None:
    """What was learned, for people."""
    verdict = found.verdict
    if verdict is None or isinstance(verdict, Agreement):
        console.out.print(console.markup(f"learned: {found.explain()}"))
    else:
        console.out.print(evidence.verdict_text(verdict, found.machine.alphabet))
        console.out.print(console.markup(f"  for {found.scope}"))
    of_start = found.film.frames[-1].heads if found.film is not None else range(max(found.heads, default=0) + 1)
    heads = ", ".join(str(of_start[h] + 1) for h in found.heads)
    trained = [("heads kept", heads), ("starts", str(found.starts)), ("steps", f"{found.steps:,}")]
    rows = [*sizes.machine_rows(found.machine), *(trained if found.network is not None else [])]
    wrong = f"{found.faults:,} of {found.labels:,} outputs that it was shown are not the machine's"
    if found.trail and found.trail[-1].get("event") == "end of the budget":
        rows.append(("ended", "by its budget: this is the best machine so far, which more steps or seconds may better"))
    if found.network is not None and len(found.network.layers) > 1:
        rows += [("layers", " | ".join(blocks_text(layer.block_sizes) for layer in found.network.recurrences))]
    console.facts("machine", [*rows, ("time", f"{found.seconds:.1f} s"), ("errors", wrong), ("saved", f"{saved}")])


def _line(record: Record) -> str:
    if "teaching" in record:
        end = ", taught" if record["taught"] else ""
        return (
            f"teaching {record['teaching']}, batch {record['step']:,}: words of {record['length']} letters, error "
            f"{record['error']:.3f}{end}"
        )
    return (
        f"step {record['step']:,}, start {record['start']}, blocks of {record['block']}: words of {record['length']} "
        f"letters, error {record['error']:.3f}, missed {record['faults']:.3f}"
    )
