"""Random languages as a table and a figure, from their document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from io import BytesIO
from itertools import chain
from pathlib import Path
from statistics import mean, median
from typing import Any

from experiments.studies.random_languages.machines import KINDS
from experiments.tables import markdown
from fsa2lrnn.draw.comparison import matplotlib
from fsa2lrnn.files import write_atomically

ANSWERS = ("yes", "no", "not excluded")  # of theory

Document = Mapping[str, Any]
Run = Mapping[str, Any]


def table(document: Document) -> str:
    """Return the results of the study: the tables, the number of runs, and every exception by name."""
    return tables(document) + notes(document)


def tables(document: Document) -> str:
    """Return the tables of learned and representable machines, by class, with the number of runs."""
    second = (
        "The second table gives, after the number learned, the mean share of words of 40 and of 500 letters whose "
        "last output is right, over runs that neither diverged nor ran out of time."
    )
    return f"{answers(document)}\n{classes(document)}{protocol(document)}\n{second}\n"


def answers(document: Document) -> str:
    """Return one line per layer: learned and run where theory says yes, no or neither, and the lengths reached."""
    said, words, rows = _theory(document), document["protocol"]["words"], list[list[str]]()
    for arm in document["asked"]["arms"]:
        runs = [run for run in document["runs"] if run["arm"] == arm]
        row = [document["titles"][arm], str(len(runs))]
        for answer in ANSWERS:
            of = [run for run in runs if said[run["machine"], arm] == answer]
            row.append(f"{sum(is_learned(run, words) for run in of)} of {len(of)}" if of else "–")
        learned = [run for run in runs if is_learned(run, words)]
        rows.append(
            [
                *row,
                f"{sum(run['whole_500'] == words for run in learned)}",
                f"{sum(run['fails_at'] is None for run in learned)}",
                f"{sum(run['proved'] for run in runs)}",
                f"{median(run['seconds'] for run in runs):.1f}" if runs else "",
            ]
        )
    heads = ["layer and rule", "runs", *(f"learned where theory says {answer}" for answer in ANSWERS)]
    return markdown([*heads, "… right at 500", "… no counterexample", "proved", "s"], rows)


def classes(document: Document) -> str:
    """Return one line per layer: learned machines per class, and the mean share of words right at the last letter."""
    kinds, words = {row["number"]: row["kind"] for row in document["machines"]}, document["protocol"]["words"]

    def means(runs: list[Run], names: Iterable[str], whole: int) -> str:
        return " / ".join(f"{mean(run[name] for run in runs) / whole:.3f}" for name in names) if runs else "–"

    rows, last = list[list[str]](), ["a constant answer"]
    for arm in document["asked"]["arms"]:
        runs_of = [run for run in document["runs"] if run["arm"] == arm]
        of_arm = [[run for run in runs_of if kinds[run["machine"]] == kind] for kind in KINDS]
        learned = [f"{sum(is_learned(run, words) for run in runs)} of {len(runs)}" for runs in of_arm]
        shares = [means([run for run in runs if "last_40" in run], ("last_40", "last_500"), words) for runs in of_arm]
        rows.append([document["titles"][arm], *chain(*zip(learned, shares, strict=True))])
    tried = {run["machine"] for run in document["runs"]}
    machines = [row for row in document["machines"] if row["number"] in tried]
    for kind in KINDS:
        constant = means([row for row in machines if row["kind"] == kind], ("constant_40", "constant_500"), 1)
        last += ["", constant]
    rows.append(last)
    heads = chain(*((f"{kind}: learned", "right at 40 / 500") for kind in KINDS))
    return markdown(["layer and rule", *heads], rows)


def protocol(document: Document) -> str:
    """Return how many of the planned cells have been run, and the definition of learned."""
    asked, words = document["asked"], document["protocol"]["words"]
    n_cells = asked["machines"] * asked["seeds"] * len(asked["arms"])
    ended = {run["machine"] for run in document["runs"]}
    kinds = [row["kind"] for row in document["machines"] if row["number"] in ended]
    beyond = _beyond(document)
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in KINDS)
    return (
        f"\n{len(document['runs']):,} of {n_cells:,} cells have been run, on {len(ended)} of {asked['machines']} "
        f'machines ({counts}); the others are unfinished. "Learned": {words:,} fresh words of 40 letters right at '
        f'every letter. "Right at 500": as many words of 500 letters. "No counterexample": a search found none in '
        f"{document['protocol']['search_seconds']:g} s. Seconds are medians of processor time. "
        f"{len(beyond)} runs learned what theory says their layer cannot represent; a counterexample was found "
        f"for {sum(run['fails_at'] is not None for run in beyond)} of them.\n"
    )


def notes(document: Document) -> str:
    """Return every exception by name: learned against theory's no, and not learned despite its yes."""
    text = "\nNo run has learned what theory says its layer cannot represent.\n"
    if learned := exceptions(document):
        text = "\nLearned, though theory says that the layer cannot represent the machine:\n\n"
        text += "\n".join([*learned, ""])
        text += (
            "\nTheory concerns one vector per state. Where the last letters decide the state, a contracting layer can "
            "be right on all words with infinitely many vectors (T22 of docs/theory.md).\n"
        )
    if not_learned := missed(document):
        text += "\nNot learned, though theory says that the layer can (class and number, states in brackets):\n\n"
        text += "\n".join([*not_learned, ""])
    return text


def missed(document: Document) -> list[str]:
    """Return one line per layer: the machines that it can represent and has not learned, with seeds."""
    said, words = _theory(document), document["protocol"]["words"]
    rows, lines = {row["number"]: row for row in document["machines"]}, list[str]()
    for arm in document["asked"]["arms"]:
        runs = [run for run in document["runs"] if run["arm"] == arm and said[run["machine"], arm] == "yes"]
        seeds = dict[int, list[int]]()
        for run in runs:
            if not is_learned(run, words):
                seeds.setdefault(run["machine"], []).append(run["seed"])
        n_seeds = Counter(run["machine"] for run in runs)
        names = [
            f"{row['kind']} {number} ({row['states']})"
            + ("" if len(failed) == n_seeds[number] else f" with seed {', '.join(map(str, failed))}")
            for number, failed in sorted(seeds.items())
            for row in (rows[number],)
        ]
        if names:
            lines.append(f"- {document['titles'][arm]}: {', '.join(names)}.")
    return lines


def exceptions(document: Document) -> list[str]:
    """Return the runs that learned, at 40 letters, a machine that the layer cannot represent by theory."""
    words = document["protocol"]["words"]
    rows, lines = {row["number"]: row for row in document["machines"]}, list[str]()
    for run in _beyond(document):
        row = rows[run["machine"]]
        fails = (
            f"a counterexample has {run['fails_at']:,} letters" if run["fails_at"] else "no counterexample was found"
        )
        if row["definite_order"] is not None:
            fails += f", and the last {row['definite_order']} letters decide the state"
        lines.append(
            f"- {document['titles'][run['arm']]} on {row['kind']} {row['number']} ({row['states']} states, "
            f"{row['letters']} letters), seed {run['seed']}: {run['whole_500']:,} of {words:,} words of 500 letters "
            f"are right; {fails}."
        )
    return lines


def _beyond(document: Document) -> list[Run]:
    """Return the runs that learned against theory's no, machine by machine."""
    said, words = _theory(document), document["protocol"]["words"]
    runs = [run for run in document["runs"] if said[run["machine"], run["arm"]] == "no" and is_learned(run, words)]
    return sorted(runs, key=lambda run: run["machine"])


def is_learned(run: Run, words: int) -> bool:
    """Return whether all words of 40 letters were right at every letter; False for diverged and unfinished runs."""
    return run.get("whole_40") == words


def _theory(document: Document) -> dict[tuple[int, str], str]:
    rows = document["machines"]
    return {(row["number"], arm): said["answer"] for row in rows for arm, said in row["theory"].items()}


def figure(document: Document, path: Path) -> None:
    """Write an SVG figure: steps until learned by size and class, and the length up to which each run is right.

    Raises `MissingPackage` without matplotlib.
    """
    mpl = matplotlib()
    from matplotlib.figure import Figure

    rows, words = {row["number"]: row for row in document["machines"]}, document["protocol"]["words"]
    arms = document["asked"]["arms"]
    with mpl.rc_context({"svg.hashsalt": "random_languages"}):  # the same numbers make the same file
        drawn = Figure(figsize=(4 * (len(KINDS) + 1), 3.8), layout="constrained")
        *sizes, lasting = drawn.subplots(1, len(KINDS) + 1)
        handles: dict[str, Any] = {}
        for i, arm in enumerate(arms):
            runs = [run for run in document["runs"] if run["arm"] == arm]
            for axis, kind in zip(sizes, KINDS, strict=True):
                of = [run for run in runs if rows[run["machine"]]["kind"] == kind and is_learned(run, words)]
                beside = (i - len(arms) / 2) * _APART  # so that no arm hides another
                points = [(rows[run["machine"]]["states"] + beside, run["steps"]) for run in of]
                x, y = zip(*points, strict=True) if points else ((), ())
                handles[document["titles"][arm]] = axis.scatter(x, y, s=12, color=f"C{i}")
            lengths = sorted(run["fails_at"] or _NEVER for run in runs if "fails_at" in run)
            shares = [1 - j / len(lengths) for j in range(len(lengths))]
            lasting.step([1, *lengths], [1, *shares], where="pre", color=f"C{i}")
        for axis, kind in zip(sizes, KINDS, strict=True):
            axis.set(title=kind, xlabel="states", yscale="log", ylim=(10, 2_000), xlim=(3, 17), xticks=range(4, 17, 4))
        sizes[0].set_ylabel("steps of the runs that learned")
        lasting.set(title="runs without a failing word", xscale="log", xlabel="letters", ylim=(0, 1.02))
        drawn.legend(handles.values(), handles.keys(), loc="outside right center", fontsize="small")
        buffer = BytesIO()
        drawn.savefig(buffer, format="svg", metadata={"Date": None})
    write_atomically(path, buffer.getvalue())


_APART = 0.07
_NEVER = 5_000  # letters, where no counterexample was found: beyond the axis of those that were
