"""Tables in Markdown of verified trained models, and of the least block sizes, from results/."""

from __future__ import annotations

from typing import Any

from experiments import results_io
from experiments.tables import facts, markdown


def learned() -> str:
    """Return the verification results of trained models, one line per task: ranges over seeds."""
    models = results_io.read("learned")["results"]["models"].values()
    rows = []
    for task in dict.fromkeys(row["task"] for row in models):
        found = [row for row in models if row["task"] == task]
        failing = [row["failure"]["length"] for row in found if row["failure"]]
        same = sum(row["extraction"]["isomorphic"] for row in found)
        least, dyadic = zip(*(row["repairs"] for row in found), strict=True) if found[0]["repairs"] else ((), ())
        done = [repaired for repaired in least if repaired["refused"] is None]
        changes, by_dyadic = (
            [100 * repaired["change"]["A"] for repaired in several if repaired["refused"] is None]
            for several in (least, dyadic)
        )
        proved = sum("proved" in repaired for repaired in dyadic)
        rows.append(
            [
                f"{task.removeprefix('task:')}",
                str(len(found)),
                _range([row["certified"] for row in found]),
                _range(failing) + ("" if len(failing) == len(found) else f" ({len(failing)} of {len(found)})"),
                f"{same} of {len(found)}",
                _percent(changes),
                f"{sum(repaired['accuracy'] == 1 for repaired in done)} of {len(found)}" if least else "–",
                _percent(by_dyadic),
                f"{proved} of {len(found)}" if least else "–",
            ]
        )
    heads = ["task", "models", "proved right on all words of ≤ N letters", "fails on a word of", "extracted"]
    heads += ["least repair", "right on 500,000 letters", "dyadic repair", "proved, all lengths"]
    return markdown(heads, rows) + _LEARNED_NOTE


_LEARNED_NOTE = """
Outputs that a model lacks, such as those of ModArith where no value is asked for, do not count. "Extracted" counts the
models whose machine was extracted without knowing it. The repairs give the relative change of A (Frobenius norm)
(`experiments/results/learned.json`).
"""


def _percent(shares: list[float]) -> str:
    return f"{min(shares):.0f} to {max(shares):.0f} %" if shares else "–"


def learned_models() -> str:
    """Return the verification results of trained models, one line per model."""
    rows = []
    for name, row in results_io.read("learned")["results"]["models"].items():
        at_500 = [x["last_position"]["accuracy"] for x in row["last_checkpoint"] if x["length"] in (499, 500)]
        failing = f"{row['failure']['length']:,}" if row["failure"] else "none found"
        same = "yes" if row["extraction"]["isomorphic"] else "no"
        repairs = [_repair(repaired) for repaired in row["repairs"]] or ["–"] * 2
        accuracy = f"{at_500[0]:.3f}" if at_500 else "–"
        rows.append([name, accuracy, _number(row["certified"]), failing, same, *repairs])
    heads = ["model", "right at 500", "proved ≤", "fails at", "extracted", "repair", "dyadic repair"]
    return markdown(heads, rows) + (
        "\nRepairs: relative change of A; the length up to which the repaired model is proved. Each was run on 500,000 "
        "random letters; its share of right outputs is shown if it made a mistake.\n"
    )


def _repair(found: dict[str, Any]) -> str:
    if found["refused"] is not None:
        return "refused"
    what = (
        f"all lengths, {found['proved']['arithmetic']}" if "proved" in found else _number(found.get("certified", "–"))
    )
    wrong = "" if found["accuracy"] == 1 else f", {found['accuracy']:.4f} right"
    return f"{100 * found['change']['A']:.1f} %; {'' if 'proved' in found else '≤ '}{what}{wrong}"


def _number(value: int | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _range(values: list[Any]) -> str:
    numbers = sorted(value for value in values if isinstance(value, int))
    if not numbers:
        return ", ".join(dict.fromkeys(map(str, values))) or "–"
    ends = f"{numbers[0]:,}" if numbers[0] == numbers[-1] else f"{numbers[0]:,} to {numbers[-1]:,}"
    return ends if len(numbers) == len(values) else f"{ends} or all"


def block_sizes() -> str:
    """Return the least block size of each machine: a number where both bounds are proved, otherwise the interval."""
    document = results_io.read("block_sizes")
    rows = [
        [
            *(row["machine"], str(row["states"])),
            *(_interval(row[field]) for field in ("complex", "real", "rational")),
            "–" if row["columns"] is None else _interval(row["columns"]),
            _interval(row["any_depth"]),
            _factors(row["householder"]),
            f"{row['seconds']:.1f}",
        ]
        for row in document["results"]["machines"]
    ]
    exact = [
        sum(row[field]["lower"] == row[field]["upper"] for row in document["results"]["machines"])
        for field in ("complex", "real", "rational")
    ]
    note = (
        f"{len(rows)} machines; both bounds are proved and equal for {exact[0]} of them over ℂ, {exact[1]} over ℝ and "
        f"{exact[2]} over ℚ. s: seconds for all numbers of a row and the checks of their certificates, on one thread"
    )
    heads = ["machine", "states", "ℂ", "ℝ", "ℚ", "columns ≤ 1", "any depth", "factors", "s"]
    return markdown(heads, rows) + facts(document, note)


def block_sizes_held_out() -> str:
    """Return a sentence on the block sizes of random machines."""
    found = results_io.read("block_sizes")["results"]["held_out"]
    met = ", ".join(f"{count} over the {name} numbers" for name, count in found["met"].items())
    below = found["real_size_below_all_functions"]
    parts = ", ".join(f"n − {1 + int(less)} for {count}" for less, count in below.items())
    drawn = f"{found['machines']} random minimal DFAs of 4 to 12 states"
    return f"{drawn}: both bounds meet for {met}. Over the real numbers the least size for n states is {parts}.\n"


def _interval(bounds: dict[str, Any]) -> str:
    lower, upper = bounds["lower"], bounds["upper"]
    return str(lower) if lower == upper else f"{lower} to {upper}"


def _factors(bounds: dict[str, Any]) -> str:
    if bounds["lower"] is None:
        return "none"
    return f"≥ {bounds['lower']}" if bounds["upper"] is None else _interval(bounds)
