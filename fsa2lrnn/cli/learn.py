"""`fsa2lrnn learn`: learn a machine from its words or from data, and prove it equal to the target if there is one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fsa2lrnn.cli import console, sources
from fsa2lrnn.cli.options import NO, JsonOption, assignments
from fsa2lrnn.cli.weighted import learn_weighted
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.files import check_folder

if TYPE_CHECKING:
    from fsa2lrnn.learning import Learned
    from fsa2lrnn.learning.learning_run import Record

LearnMethod = Literal["train"]
_NOISE = 'the share of outputs of DATA that are wrong (0.1), or "unknown"; by default it is estimated'
_HELD_OUT = 0.1
_EVERY = 25  # evaluations between two progress lines


def learn(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE|DATA",
            help="regex:…, task:…, a file of an automaton; or words with outputs (.jsonl .csv .dat .words .txt)",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="the folder of the run; a second call resumes it")],
    method: Annotated[
        LearnMethod | None,
        typer.Option(
            help="by default train for SOURCE, and several methods in turn for DATA: the simplest machine wins"
        ),
    ] = None,
    label_noise: Annotated[str | None, typer.Option(help=_NOISE)] = None,
    held_out: Annotated[float, typer.Option("--held-out", help="the share of DATA that is held out")] = _HELD_OUT,
    steps: Annotated[int | None, typer.Option(min=1, help="the largest number of updates")] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--max-seconds", min=0.1, help="time limit in seconds of processor time; by default 120 for DATA"),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="a setting of the recipe, such as heads=6, sampler=balanced or seed=1; repeatable",
        ),
    ] = None,
    alphabet: Annotated[
        str | None, typer.Option(metavar="LETTERS", help="the alphabet; DATA with other letters is refused")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="WORD,LABEL", help="the columns of a .csv, or keys of a .jsonl, that are read")
    ] = None,
    separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="what separates the events in a cell of DATA, such as ';'")
    ] = None,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="learn the distribution of DATA, words of PAutomaC, without training")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a layer with one-hot columns (an automaton) until it is proved equal to SOURCE; or learn from words, DATA.

    The folder contains the model, the trained network, the machine as DOT and JSON, and the evidence. The exit code is
    1 if the budget ended before a proof.
    """
    options = {"noise": _noise(label_noise), "steps": steps, "seconds": seconds}
    changed = assignments(changes or []) | {name: x for name, x in options.items() if x is not None}
    if label_noise is not None:
        changed["noise"] = options["noise"]
    check_folder(output)
    if weighted:
        others = (alphabet, method, columns, separator, None if held_out == _HELD_OUT else held_out)
        changed.pop("seconds", None)
        if changed or any(option is not None for option in others):
            raise UnsupportedFormat("--weighted takes no other option but --output, --max-seconds and --json")
        learn_weighted(Path(source), output, as_json, seconds)
        return

    letters = None if alphabet is None else sources.typed_letters(alphabet)
    given = {"method": method, "held_out": held_out, "alphabet": letters, "separator": separator}
    if columns is not None:
        given["columns"] = _columns(columns)
    if not learn_in(output, source, as_json, **given, **changed):
        raise typer.Exit(NO)


def _noise(text: str | None) -> float | None:
    """Return the share that a text states, None for "unknown" and for None; raise `UnsupportedFormat` for other texts.

    >>> _noise("0.1"), _noise("unknown")
    (0.1, None)
    """
    if text is None or text == "unknown":
        return None
    try:
        return float(text)
    except ValueError:
        raise UnsupportedFormat(f"--label-noise {text!r}: give a share as 0.1, or unknown") from None


def _columns(text: str) -> tuple[str, str]:
    """Return two names separated by a comma; raise `UnsupportedFormat` for other texts."""
    word, _, label = text.partition(",")
    if not (word.strip() and label.strip()) or "," in label:
        raise UnsupportedFormat(f"--columns {text!r}: give the names of two columns, as --columns trace,verdict")
    return word.strip(), label.strip()


def learn_in(out: Path, source: str, as_json: bool, **options: Any) -> bool:
    """Learn and print the result; return False if there is a target and the result is not proved equal to it."""
    from fsa2lrnn.learning import Agreement, summary
    from fsa2lrnn.learning import learn as learn_machine
    from fsa2lrnn.learning.saving import MACHINE, MODEL
    from fsa2lrnn.verdicts import Proved

    evaluations = 0

    def show(record: Record) -> None:
        """Print every so many evaluations, one line, and what is seen of words."""
        nonlocal evaluations
        if "stage" in record:
            console.say(str(record["stage"]))
            console.note("")  # what is seen of the words is said once; progress lines have the step alone
            return
        evaluations += 1
        if evaluations % _EVERY == 0 and not console.is_quiet():
            console.err.print(console.markup(_line(record)))

    learned = learn_machine(source, folder=out, report=show, **options)
    for doubt in _doubts(learned, options.get("noise", None if learned.noise else 0.0)):
        console.error("warning", doubt)
    if as_json:
        console.emit_json(summary(learned) | {"folder": str(out)})
    else:
        _print(learned, out)
        console.then(f"fsa2lrnn draw {quote(str(out / MACHINE))} {quote(str(out / MODEL))} -o page.html")
    return isinstance(learned.verdict, Proved | Agreement) or learned.verdict is None


def _doubts(learned: Learned, noise: float | None) -> Iterator[str]:
    """Yield a warning if a machine learned from words has more errors than `noise` explains, and one for few words.

    Few are words whose labels hold fewer bits than a description of the machine: other machines then fit as well.
    """
    from fsa2lrnn.learning import Agreement

    if not (learned.verdict is None or isinstance(learned.verdict, Agreement)):
        return
    machine, labels = learned.machine, learned.labels
    if noise is not None and learned.faults > (wrong := noise * labels) + 4 * math.sqrt(wrong + 1):
        yield (
            f"{learned.faults:,} of {labels:,} outputs are not the machine's, and label noise {noise:g} explains "
            f"{wrong:,.0f}: give more time, or the noise that the labels have by --label-noise"
        )
    n, of_output = machine.n_states, math.log2(len(set(machine.outputs)) or 1)
    if (bits := n * (len(machine.alphabet) * math.log2(n) + of_output)) > labels * of_output:
        yield (
            f"{labels:,} outputs do not determine a machine of {n:,} states, which takes {bits:,.0f} bits: other "
            "machines fit them as well, so learn from more words"
        )


def _print(learned: Learned, folder: Path) -> None:
    """Print a learning result as text."""
    from fsa2lrnn.cli import evidence
    from fsa2lrnn.learning import Agreement

    verdict = learned.verdict
    if verdict is None or isinstance(verdict, Agreement):
        console.out.print(console.markup(f"learned: {learned.explain()}"))
    else:
        console.out.print(evidence.verdict_text(verdict, learned.machine.alphabet))
        console.out.print(console.markup(f"  for {learned.scope}"))
    heads = ", ".join(map(str, learned.heads))
    trained = [("heads kept", heads), ("starts", str(learned.starts)), ("steps", f"{learned.steps:,}")]
    rows = [*evidence.machine_rows(learned.machine), *(trained if learned.network is not None else [])]
    wrong = f"{learned.faults:,} of {learned.labels:,} outputs that it was shown are not the machine's"
    if learned.trail and learned.trail[-1].get("event") == "end of the budget":
        rows.append(("ended", "by its budget: this is the best machine so far, which more steps or seconds may better"))
    if learned.noise is not None:
        rows.append(("noise", f"wrong outputs: {learned.noise}"))
    console.facts(
        "machine", [*rows, ("processor time", f"{learned.seconds:.1f} s"), ("errors", wrong), ("saved", str(folder))]
    )


def _line(record: Record) -> str:
    return (
        f"step {record['step']:,}, start {record['start']}, blocks of {record['block']}: words of {record['length']} "
        f"letters, error {record['error']:.3f}, missed {record['faults']:.3f}"
    )
