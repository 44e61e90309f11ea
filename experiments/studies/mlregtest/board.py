"""The leaderboard of layers on MLRegTest as tables and a figure, from its document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from pathlib import Path
from statistics import mean, median
from typing import Any

from experiments import results_io
from experiments.tables import markdown
from fsa2lrnn.automata.zoo.mlregtest import CLASSES
from fsa2lrnn.draw.comparison import matplotlib
from fsa2lrnn.files import write_atomically

NAME = "mlregtest_leaderboard"
ANSWERS = ("yes", "no", "not excluded", "unknown")  # of theory
_SIZES = (4, 16, 64)
_NEVER = 1_000  # letters, where no counterexample was found: beyond the axis

Document = Mapping[str, Any]
Runs = list[dict[str, Any]]


def document() -> Document:
    """Return the results of languages that all layers have run, so that rows compare the same languages.

    Each run has the class and the sizes of its language, and what theory says of its layer; `finished` counts all runs.
    """
    written = results_io.read(NAME)
    results = written["results"] | {"torch": written["versions"]["torch"]}
    counts = Counter((run["name"], run["seed"]) for run in results["runs"])
    results["finished"] = len(results["runs"])
    results["runs"] = [
        run for run in results["runs"] if counts[run["name"], run["seed"]] == len(results["asked"]["arms"])
    ]
    results["complete"] = Counter(run["seed"] for run in results["runs"] if run["arm"] == "onehot")
    languages = {row["name"]: row for row in results["languages"]}
    for run in results["runs"]:
        row = languages[run["name"]]
        run |= {key: row[key] for key in ("class", "letters")} | {"theory": row["theory"][run["arm"]]["answer"]}
    return results


def _of_arms(results: Document) -> Iterable[tuple[str, Runs]]:
    for arm, title in results["asked"]["arms"].items():
        yield title, [run for run in results["runs"] if run["arm"] == arm]


def _percent(runs: Runs, key: str, words: int) -> str:
    """Return a mean share of words in percent; a run without a model counts as 0."""
    return f"{100 * mean(run.get(key, 0) for run in runs) / words:.1f}" if runs else "–"


def is_learned(run: Mapping[str, Any], words: int) -> bool:
    """Return whether all test words of 40 letters were right at every letter."""
    return run.get("whole_40") == words


def layers() -> str:
    """Return a row per layer: accuracy, certified length, counterexample, proofs and time; and how much was run."""
    results = document()
    words, rows = results["protocol"]["words"], list[list[str]]()
    for title, runs in _of_arms(results):
        certified = [run["certified"] for run in runs if run.get("certified") is not None]
        failing = [run["fails_at"] for run in runs if run.get("fails_at") is not None]
        none_found = sum("fails_at" in run and run["fails_at"] is None for run in runs)
        rows.append(
            [
                title,
                *(_percent(runs, key, words) for key in ("last_40", "whole_40", "last_500", "whole_500")),
                f"{sum(is_learned(run, words) for run in runs)}/{len(runs)}",
                f"{sum(run['proved'] for run in runs)}",
                f"{median(certified):g} ({max(certified)})" if certified else "–",
                f"{median(failing):g} ({max(failing)})" if failing else "–",
                str(none_found),
                f"{median(run['processor_seconds'] for run in runs):.1f}" if runs else "–",
            ]
        )
    heads = [
        "layer", "right at 40, %", "whole words", "right at 500, %", "whole words", "learned", "proved",
        "certified letters: median (most)", "counterexample: median (most)", "none found", "median s",
    ]  # fmt: skip
    return markdown(heads, rows) + _amount(results)


def _amount(results: Document) -> str:
    runs, asked, languages = results["runs"], results["asked"], results["languages"]
    planned = asked["languages"] * asked["seeds"] * len(asked["arms"])
    shown = {run["name"] for run in runs}
    seeds = ", ".join(f"{n} with seed {seed}" for seed, n in results["complete"].items())
    languages = [row for row in languages if row["name"] in shown]
    constant = [100 * mean(row[f"constant_{length}"] for row in languages) for length in (40, 500)]
    spent = sum(run["processor_seconds"] for run in runs) / 60
    protocol, by_labels = results["protocol"], [run for run in runs if run["arm"] != "onehot"]
    failing = [run["fails_at"] for run in by_labels if run.get("fails_at") is not None]
    elsewhere = Counter(run["torch"] for run in runs if run.get("torch", results["torch"]) != results["torch"])
    finished = f"{asked['languages']} languages, {len(asked['arms'])} layers, {asked['seeds']} seeds"
    if results["finished"] < planned:
        finished = (
            f"**{results['finished']:,} of the {planned:,} planned runs have finished** ({finished}). Shown: the "
            f"languages that all layers have run, {seeds}"
        )
    return (
        f"\n{finished}. {''.join(f'{n} runs used torch {version}. ' for version, n in elsewhere.items())}"
        f"{spent:.0f} minutes of processor time. Training: "
        f"{protocol['steps']} steps of {protocol['batch']} words of {protocol['length']} letters with a label at every "
        f"letter. Test: {protocol['words']} fresh words per length; a constant answer is right at the last letter of "
        f"{constant[0]:.1f} % (40 letters) and {constant[1]:.1f} % (500). Learned: all test words of 40 letters "
        f"right at every letter. A search found counterexamples to {len(failing)} of the {len(by_labels)} networks "
        f"trained from labels alone, none longer than {max(failing, default=0)} letters "
        f"(`experiments/results/{NAME}.json`).\n"
    )


def classes() -> str:
    """Return the mean share of whole words right at 40 letters, by layer and class."""
    return _by("class", CLASSES, str)


def alphabets() -> str:
    """Return the mean share of whole words right, by layer and size of the alphabet."""
    return _by("letters", _SIZES, lambda size: f"{size} letters", ("whole_40", "whole_500"))


def _by(key: str, values: Iterable[Any], head: Callable[[Any], str], of: tuple[str, ...] = ("whole_40",)) -> str:
    results, groups = document(), list(values)
    words, rows = results["protocol"]["words"], list[list[str]]()
    for title, runs in _of_arms(results):
        each = [[run for run in runs if run[key] == value] for value in groups]
        rows.append([title, *("/".join(_percent(some, name, words) for name in of) for some in each)])
    number = [len({run["name"] for run in results["runs"] if run[key] == value}) for value in groups]
    rows.append(["languages", *map(str, number)])
    return markdown(["layer", *map(head, groups)], rows)


def theory() -> str:
    """Return, by layer, how many runs learned where theory says that the layer can represent the language or not."""
    results = document()
    words, rows = results["protocol"]["words"], list[list[str]]()
    for title, runs in _of_arms(results):
        row = [title]
        for answer in ANSWERS:
            of = [run for run in runs if run["theory"] == answer]
            row.append(f"{sum(is_learned(run, words) for run in of)}/{len(of)}" if of else "–")
        beyond = [run for run in runs if run["theory"] == "no" and is_learned(run, words)]
        fails = [str(run["fails_at"]) if run["fails_at"] else "none found" for run in beyond]
        rows.append([*row, ", ".join(fails) or "–"])
    heads = ["layer", *(f"theory: {answer}" for answer in ANSWERS), "counterexamples to learned “no”"]
    return markdown(heads, rows)


def figure(path: Path) -> None:
    """Draw whole words right by layer and class, and how long runs are certified and remain right, as an SVG file.

    Raises `MissingPackage` without matplotlib.
    """
    mpl = matplotlib()
    from matplotlib.figure import Figure

    results = document()
    words, arms = results["protocol"]["words"], list(_of_arms(results))
    with mpl.rc_context({"svg.hashsalt": NAME}):  # the same numbers make the same file
        drawn = Figure(figsize=(15, 9.5), layout="constrained")
        maps, lasting = drawn.subplots(2, 2)
        for axis, length in zip(maps, (40, 500), strict=True):
            shares = [[_share(runs, kind, f"whole_{length}", words) for kind in CLASSES] for _, runs in arms]
            axis.imshow(shares, vmin=0, vmax=1, cmap="viridis", aspect="auto")
            axis.set(title=f"words of {length} letters right at every letter", xticks=range(len(CLASSES)))
            axis.set_xticklabels(CLASSES, fontsize="small")
            axis.set_yticks(range(len(arms)), [title for title, _ in arms], fontsize="small")
        drawn.colorbar(maps[0].images[0], ax=maps, label="mean share of words")
        styles = ("-", "--", ":")
        for i, (title, runs) in enumerate(arms):
            style = {"color": f"C{i % 10}", "linestyle": styles[i // 10], "where": "post"}
            lengths = {
                "fails_at": [run["fails_at"] or _NEVER for run in runs if "fails_at" in run],
                "certified": [
                    _NEVER if run["proved"] else run["certified"] + 1
                    for run in runs
                    if run["proved"] or run.get("certified") is not None
                ],
            }
            for axis, values in zip(lasting, lengths.values(), strict=True):
                if not values:
                    continue
                shares = [1 - j / len(values) for j in range(len(values) + 1)]
                axis.step([1, *sorted(values)], shares, label=title if axis is lasting[0] else None, **style)
        for axis, title in zip(lasting, ("without a counterexample", "certified or proved"), strict=True):
            axis.set(title=f"runs {title}, by length", xscale="log", xlim=(1, _NEVER / 1.5), ylim=(0, 1.02))
            axis.set(xlabel="letters", ylabel="share of runs")
        drawn.legend(loc="outside lower center", ncols=6, fontsize="small")
        buffer = BytesIO()
        drawn.savefig(buffer, format="svg", metadata={"Date": None})
    write_atomically(path, buffer.getvalue())


def _share(runs: Runs, kind: str, key: str, words: int) -> float:
    of = [run.get(key, 0) / words for run in runs if run["class"] == kind]
    return mean(of) if of else float("nan")
