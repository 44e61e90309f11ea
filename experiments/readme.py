"""The tables of results in docs/ and experiments/README.md, from the JSON: `python -m experiments.readme`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from experiments import learning_tables, model_tables, results_io, script, tables
from experiments.probes import tables as probe_tables
from experiments.studies import atlas, unseen_machines, warm_start
from experiments.studies.mlregtest import board
from experiments.studies.mlregtest import show as show_mlregtest
from experiments.studies.random_languages import show as show_random
from experiments.studies.table2 import show
from fsa2lrnn.export.configuration import of_config
from fsa2lrnn.export.model_folders import FOLDERS
from fsa2lrnn.files import write_atomically
from fsa2lrnn.layers import LAYERS

EXAMPLES = 12  # of the table of families: those of docs/theory.md §4, which come first
_ROOT = Path(__file__).parent.parent
FILES = tuple(
    _ROOT / name
    for name in (
        "docs/results.md",
        "experiments/README.md",
        "docs/block-sizes.md",
        "docs/reference/layer-answers.md",
        "docs/released-models.md",
        "docs/kernel-probes.md",
        "docs/mlregtest.md",
    )
)
SECTION = re.compile(r"(<!-- results: (\w+), experiments\.readme -->\n).*?(<!-- end of results -->)", re.DOTALL)


class Section(NamedTuple):
    """A text made from results, by the names of their files without the ending."""

    text: Callable[[], str]
    results: tuple[str, ...]


def measurements() -> str:
    """Return a sentence on the scans."""
    document = results_io.read("bench_scans")
    squares = [row for row in document["results"] if row["block"] == 8]
    slower = {name: [row["over_fused"][name] for row in squares] for name in ("sequential", "pscan")}
    between = {name: f"{min(ratios):.0f} to {max(ratios):.0f}" for name, ratios in slower.items()}
    return "\n".join(
        [
            f"On the CPU ({document['torch_threads']} thread), forward and backward, with eight blocks of 8, the "
            f"sequential scan in torch takes {between['sequential']} times and the parallel one {between['pscan']} "
            'times as long as the fused kernel, which `method="auto"` takes (`experiments/results/bench_scans.json`).',
            "",
        ]
    )


def families() -> str:
    """Return which family represents the examples of docs/theory.md §4: dimensions of the witness, or a dash."""
    rows = results_io.read("families_table")["results"]["machines"][:EXAMPLES]
    names = list(rows[0]["families"])
    lines = [f"| machine | states | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|"]
    for row in rows:
        answers = [row["families"][name] for name in names]
        cells = [f"yes, {a['dimension']}d" if a["verdict"] == "yes" else "no" for a in answers]
        lines.append(f"| {row['machine']} | {row['states']} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def released() -> str:
    """Return which external layers represent which machine, proved or refused."""
    rows = results_io.read("released_table")["results"]
    layers = list(rows[0]["layers"])
    answers = [[row["layers"][layer] for layer in layers] for row in rows]
    table = tables.markdown(
        ["machine", "states", *layers],
        ([row["machine"], str(row["states"]), *map(_answer, cells)] for row, cells in zip(rows, answers, strict=True)),
    )
    kinds = [
        next((k for k in ("run", "recurrence") if k in answer), answer["answer"])
        for cells in answers
        for answer in cells
    ]
    names = {
        "yes": "yes and proved",
        "run": "yes and run",
        "recurrence": "yes by the recurrence alone",
        "no": "no",
        "unknown": "unknown",
    }
    counts = ", ".join(f"{name} {kinds.count(kind)}" for kind, name in names.items())
    return f"{table}\nOf {len(kinds)} answers: {counts} (`experiments/results/released_table.json`).\n"


def _answer(answer: dict[str, Any]) -> str:
    """Return `layers:states` for a construction, `no` with the repeated word, or `?`."""
    if "recurrence" in answer:
        return f"{answer['steps']}:{answer['recurrence']:,}"
    if answer["answer"] == "yes":
        return f"{answer['layers']}:" + (f"{answer['nodes']:,}" if "nodes" in answer else "run")
    if answer["answer"] == "no":
        return f"no {_word(answer)}"
    return f"?, not in one layer: {_word(answer['one_layer'])}" if "one_layer" in answer else "?"


def _word(refused: dict[str, Any]) -> str:
    separator = "" if all(len(letter) == 1 for letter in refused["repeated"]) else " "
    return f"`{separator.join(refused['repeated'])}`"


def released_models() -> str:
    """Return what the default configuration of each model folder of transformers decides."""
    rows, runs = list[list[str]](), results_io.read(atlas.NAME)["results"]["runs"]
    for name, folder in FOLDERS.items():
        said = Counter(run["folders"][name] for run in runs)
        card = of_config({"model_type": name})
        kinds = Counter(card.types)
        low = min(ranges.decay[0] for ranges in card.ranges), min(ranges.eigenvalue[0] for ranges in card.ranges)
        high = max(ranges.decay[1] for ranges in card.ranges)
        layers = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        ends = (f"[{end:.4g}, {high:.8g}]" for end in low)
        exported = f"`{folder.export}`" if folder.export else "–"
        rows.append([f"`{name}`", LAYERS[folder.layer].title, layers, *ends, card.holds.title, exported])
        rows[-1].append(" / ".join(f"{said[answer]}" for answer in ("yes", "no", "unknown")))
    heads = ["folder", "recurrence", "layers by default", "decay", "eigenvalues", "stacks hold", "export"]
    heads.append("yes / no / unknown")
    return tables.markdown(heads, rows)


def cascades() -> str:
    """Return the references of docs/theory.md §6 with the decompositions that were computed."""
    document = results_io.read("cascade_table")["results"]
    lines = [
        "| machine | states | blocks, layer by layer | token shift | known: largest block; layers | cost; one layer |",
        "|---|---|---|---|---|---|",
    ]
    for row in document["references"]:
        reference = row["reference"]
        known = f"{reference['largest']}; {reference['layers'] or 'any'}: {reference['result']}"
        shift = "yes" if row["token_shift"] else "no" if row["token_shift_allowed"] else "refused"
        layers = " → ".join(", ".join(map(str, layer)) for layer in row["block_sizes"])
        costs = f"{row['cost']['total']:,}; {row['one_layer']:,}"
        lines.append(f"| {row['machine']} | {row['states']} | {layers} | {shift} | {known} | {costs} |")
    forms = document["mod_arith"]
    lines += [
        "",
        f"Each is proved equal to its machine for all lengths, in float32 and bfloat16. The {len(forms)} cascades of "
        f"ModArith(5) give the right value at every digit of all {forms[0]['expressions']:,} expressions of at most "
        f"{forms[0]['operands']} operands, of random ones of 499 letters and of one of 99,999 "
        "(`experiments/results/cascade_table.json`, with the rest of the zoo).",
        "",
    ]
    return "\n".join(lines)


def training() -> str:
    """Return the results of trained models: the paper's protocol, and the last checkpoint on fresh words."""
    tasks = results_io.read("training")["results"]
    lengths = [line["length"] for line in tasks[0]["seeds"][0]["last_checkpoint"]]
    lines = [
        f"| task | seeds | best evaluation, at 500 | {' | '.join(f'{length:,} letters' for length in lengths)} |",
        "|---" * (3 + len(lengths)) + "|",
    ]
    for task in tasks:
        seeds = task["seeds"]
        cells = [
            " / ".join(
                f"{sum(seed['last_checkpoint'][i][name]['accuracy'] for seed in seeds) / len(seeds):.3f}"
                for name in ("last_position", "whole_word")
            )
            for i in range(len(lengths))
        ]
        lines.append(f"| {task['task']} | {len(seeds)} | {task['paper_protocol_mean']:.3f} | {' | '.join(cells)} |")
    lines += [
        "",
        "Last output right / whole word right; ModArith's words are one letter shorter, so that they end in a digit "
        f"(`experiments/results/training.json`, with the command).{_unfinished(tasks)}",
        "",
    ]
    return "\n".join(lines)


def table2() -> str:
    """Return the rows of Table 2 that the paper prints, with chance levels and remarks."""
    document, training = (results_io.read(name)["results"] for name in ("table2", "training"))
    return f"{show.table(document, paper_only=True)}\n{' '.join(show.remarks(document, training))}\n"


def table2_whole() -> str:
    """Return all rows of Table 2, and how each column was run."""
    document, training = (results_io.read(name)["results"] for name in ("table2", "training"))
    return f"{show.table(document)}\n{show.notes(document, training)}"


def _unfinished(tasks: list[dict[str, Any]]) -> str:
    """Return a sentence on each run that was interrupted."""
    return "".join(
        f" Seed {seed['seed']} of {task['task'].removeprefix('task:')} was cut short at step {seed['step']:,} and is "
        "evaluated as it was then."
        for task in tasks
        for seed in task["seeds"]
        if seed["end"] == "interrupted"
    )


def random_language_table() -> str:
    """Return the table of learned and representable machines, with every exception by name."""
    return show_random.table(results_io.read("random_languages")["results"])


def random_languages_in_short() -> str:
    """Return the table of learned and representable machines."""
    document = results_io.read("random_languages")["results"]
    return show_random.answers(document) + show_random.protocol(document)


SECTIONS = {
    "measurements": Section(measurements, ("bench_scans",)),
    "families": Section(families, ("families_table",)),
    "cascades": Section(cascades, ("cascade_table",)),
    "released": Section(released, ("released_table",)),
    "released_models": Section(released_models, (atlas.NAME,)),
    "unseen_machines": Section(unseen_machines.table, (unseen_machines.NAME,)),
    "training": Section(training, ("training",)),
    "runs": Section(tables.runs, ("training",)),
    "table2": Section(table2, ("table2", "training")),
    "table2_whole": Section(table2_whole, ("table2", "training")),
    "paper_speed": Section(tables.paper_speed, ("paper_speed",)),
    "sweep": Section(tables.sweep, ("sweep_families",)),
    "learned": Section(model_tables.learned, ("learned",)),
    "learned_models": Section(model_tables.learned_models, ("learned",)),
    "scans": Section(tables.scans, ("bench_scans",)),
    "scan_lengths": Section(tables.scan_lengths, ("bench_scan_lengths",)),
    "atlas": Section(atlas.table, (atlas.NAME,)),
    "warm_start": Section(warm_start.table, (warm_start.NAME,)),
    "weighted": Section(tables.weighted, ("weighted",)),
    "pautomac": Section(tables.pautomac, ("pautomac",)),
    "distribution_learners": Section(tables.distribution_learners, ("distribution_learners",)),
    "learn_and_prove": Section(tables.learn_and_prove, ("learn_and_prove",)),
    "random_languages": Section(random_language_table, ("random_languages",)),
    "random_languages_in_short": Section(random_languages_in_short, ("random_languages",)),
    "learned_in_short": Section(learning_tables.in_short, ("learn_and_prove",)),
    "steps": Section(tables.steps, ("bench_steps",)),
    "gpu": Section(tables.gpu, ("bench_gpu",)),
    "block_sizes": Section(model_tables.block_sizes, ("block_sizes",)),
    "mlregtest_learned": Section(show_mlregtest.learned, ("mlregtest_learned",)),
    "mlregtest_classes": Section(show_mlregtest.classes, ("mlregtest_classes",)),
    "mlregtest_from_data": Section(show_mlregtest.from_data, ("learn_data",)),
    "mlregtest_leaderboard": Section(board.layers, (board.NAME,)),
    "mlregtest_leaderboard_classes": Section(board.classes, (board.NAME,)),
    "mlregtest_leaderboard_alphabets": Section(board.alphabets, (board.NAME,)),
    "mlregtest_leaderboard_theory": Section(board.theory, (board.NAME,)),
    "block_sizes_held_out": Section(model_tables.block_sizes_held_out, ("block_sizes",)),
    "probe_survey": Section(probe_tables.survey, ("probe_survey",)),
    "probe_seconds": Section(probe_tables.seconds, ("probe_seconds",)),
    "probe_gpu": Section(probe_tables.on_gpu, ("probe_gpu",)),
    "probe_mutants": Section(probe_tables.mutants, ("probe_mutants",)),
    "probe_missed": Section(probe_tables.missed, ("probe_mutants",)),
}
# The script that writes each file of results, with its arguments.
WRITERS = {
    "atlas": "studies.atlas --folder MLREGTEST",
    "bench_gpu": "benchmarks.gpu",
    "bench_scan_lengths": "benchmarks.scans",
    "bench_scans": "benchmarks.scans",
    "bench_steps": "benchmarks.steps",
    "block_sizes": "studies.block_sizes",
    "cascade_table": "studies.cascades",
    "distribution_learners": "studies.distribution_learners FOLDER",
    "families_table": "studies.families",
    "learn_and_prove": "studies.learn_and_prove",
    "learn_data": "studies.learn_data --stamina FOLDER --mlregtest FOLDER",
    "learned": "studies.learned",
    "mlregtest_classes": "studies.mlregtest.classes FOLDER",
    "mlregtest_leaderboard": "studies.mlregtest.leaderboard FOLDER",
    "mlregtest_learned": "studies.mlregtest.learned FOLDER",
    "paper_speed": "benchmarks.paper_speed",
    "pautomac": "studies.pautomac FOLDER",
    "probe_gpu": "probes.on_gpu --mamba FOLDER",
    "probe_mutants": "probes.mutants",
    "probe_seconds": "probes.seconds --fla FOLDER",
    "probe_survey": "probes.survey --fla FOLDER --mamba FOLDER",
    "random_languages": "studies.random_languages",
    "released_table": "studies.released",
    "sweep_families": "studies.sweeps families FOLDER",
    "table2": "studies.table2 FOLDER",
    "training": "studies.training FOLDER…",
    "unseen_machines": "studies.unseen_machines",
    "warm_start": "studies.warm_start",
    "weighted": "studies.weighted",
}


def shown(name: str) -> str:
    """Return the text of a section, or the command that makes its missing results."""
    section = SECTIONS[name]
    missing = [results for results in section.results if not (results_io.RESULTS / f"{results}.json").exists()]
    if not missing:
        return without_padding(section.text())
    commands = dict.fromkeys(f"`python -m experiments.{WRITERS[results]}`" for results in missing)
    return f"Not measured yet: {', '.join(commands)} would write the numbers.\n"


def without_padding(text: str) -> str:
    """Return a text whose tables have no spaces next to the bars, which are half of a large table of numbers.

    >>> without_padding("| a | b \\\\| c |")
    '|a|b \\\\| c|'
    """
    lines = (
        "|".join(cell.strip() for cell in re.split(r"(?<!\\)\|", line)) if line.startswith("|") else line
        for line in text.split("\n")
    )
    return "\n".join(lines)


def regenerated(text: str) -> str:
    """Return a file's text with every section made anew."""
    return SECTION.sub(lambda match: match[1] + shown(match[2]) + match[3], text)


def main() -> None:
    """Write the tables of results in docs/ and experiments/README.md anew, in place."""
    for path in FILES:
        write_atomically(path, regenerated(path.read_text(encoding="utf-8")).encode())


if __name__ == "__main__":
    script.run(main)
