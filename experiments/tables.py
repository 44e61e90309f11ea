"""Tables in Markdown of what the benchmarks and training runs measured, each from its file in results/."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from experiments import results_io


def markdown(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown that ends with a line feed.

    >>> print(markdown(["a", "b"], [["1", "2"]]), end="")
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    heads = list(heads)
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def facts(document: dict[str, Any], *more: str) -> str:
    """Return a line on the origin of the numbers of a document."""
    versions = document["versions"]
    parts = [*more, document["processor"], f"torch {versions['torch']}", f"Python {versions['python']}"]
    return f"\n{'; '.join(parts)}.\n"


def scans() -> str:
    """Return the time of each scan at each shape, as a multiple of the fused one's."""
    document = results_io.read("bench_scans")
    names = [name for name in document["results"][0]["milliseconds"] if name != "fused"]
    heads = ["words", "letters", "blocks", "fused, ms", *names]
    rows = [
        [
            *(f"{row['batch']:,}", f"{row['length']:,}", f"{row['heads']} of {row['block']}"),
            f"{row['milliseconds']['fused']:.2f}",
            *(_times(row["over_fused"].get(name)) for name in names),
        ]
        for row in document["results"]
    ]
    note = f"Forward and backward, float32, {_threads(document['torch_threads'])}; medians of turns in one process"
    return markdown(heads, rows) + facts(document, note)


def scan_lengths() -> str:
    """Return the time of the fused scan for growing lengths."""
    document = results_io.read("bench_scan_lengths")
    rows = [[f"{row['length']:,}", f"{row['nanoseconds_a_letter']:.0f}"] for row in document["results"]]
    note = (
        f"One block of {document['results'][0]['block']}, forward and backward, {_threads(document['torch_threads'])}"
    )
    return markdown(["letters", "ns per letter"], rows) + facts(document, note)


def weighted() -> str:
    """Return the results on weighted automata: pairs, Hankel ranks and two models."""
    document = results_io.read("weighted")
    found = document["results"]
    pairs, ranks, models = found["pairs"], found["atlas"], found["sum5"]
    rows = []
    for family in ranks["machines"][0]["any"]:
        answers = [(row["any"][family], row["linear"][family]) for row in ranks["machines"]]
        rows.append([family, *(f"{sum(pair[i] == 'no' for pair in answers)}" for i in (0, 1))])
    wrong = sum(sum(models[f"wrong_of_{5**k}"]) for k in range(1, 8))
    lines = [
        f"{pairs['pairs']} random pairs, {pairs['equal']} of them equal: {pairs['wrong']} verdicts wrong and "
        f"{pairs['not_shortest']} words not shortest by enumeration; {pairs['ranks']} least dimensions as by sympy",
        f'of {ranks["no"]} answers "no" on {len(ranks["machines"])} machines {ranks["no_unconditional"]} hold with a '
        f"linear read-out for any number of vectors per state; {ranks['exact_dimension']} dimensions are exact",
        f"two trained models of Sum(5): {models['verdict']}; {wrong} wrong answers on all words of 1 to 7 letters",
    ]
    return markdown(["family", "no", "no, any number of vectors"], rows) + facts(document, *lines)


def _gaps(rows: Sequence[dict[str, Any]], name: str) -> str:
    gaps = [row["learned"][name] - row["perplexity_of_target"] for row in rows]
    mean = f"{statistics.geometric_mean(gaps):.3f} in the geometric mean"
    return f"{mean}, {statistics.median(gaps):.3f} in the median, {max(gaps):.2f} at most"


def pautomac() -> str:
    """Return the results on the problems of PAutomaC."""
    document = results_io.read("pautomac")
    found = document["results"]
    heads = [
        "problem",
        "states",
        "minimal",
        "relative error",
        "certified",
        "half the states",
        "target",
        "spectral",
        "learned",
    ]
    rows = [
        [
            f"{row['problem']}",
            f"{row['states']}",
            f"{row.get('minimal', 'undecided')}",
            *(f"{row[name]:.1e}" for name in ("largest_relative_error", "certified_error")),
            f"{row['half']['error']:.1e}" if "half" in row else "",
            f"{row['perplexity_of_target']:.2f}",
            *(
                f"{row['learned'][name]:.2f} ({row['learned'][states]})" if "learned" in row else ""
                for name, states in (("spectral", "spectral_states"), ("perplexity", "states"))
            ),
        ]
        for row in found
    ]
    learned = [row for row in found if "learned" in row]
    equal = ("equal_to_rounded_model", "model_equal_to_minimal", "network_equal_to_minimal")
    lines = [
        f"{len(found)} problems; {sum(all(row.get(name) for name in equal) for row in found)} of them are equal in all "
        "three comparisons: network and model of rounded decimals, model and minimal form, network and minimal form",
        f"largest relative error {max(row['largest_relative_error'] for row in found):.1e}",
        f"perplexity above that of the target, {_gaps(learned, 'spectral')} (spectral), "
        f"{_gaps(learned, 'perplexity')} (learned)",
        f"at most {max(row['seconds'] for row in found):.0f} s of processor time per problem",
    ]
    return markdown(heads, rows) + facts(document, *lines)


def distribution_learners() -> str:
    """Return the perplexities of methods that learn distributions from words."""
    document = results_io.read("distribution_learners")
    problems = document["results"]["problems"]
    rows = [
        [
            *(f"{row['problem']}", f"{row['target']:.2f}"),
            *(f"{one['perplexity']:.2f} ({one['states']})" for one in row["learned"].values()),
        ]
        for row in problems
    ]
    kind = "Drawn problems in the format of PAutomaC" if document["results"]["are_drawn"] else "Problems of PAutomaC"
    note = f"{kind}: perplexity on the test words (states)"
    return markdown(["problem", "target", *problems[0]["learned"]], rows) + facts(document, note)


def learn_and_prove() -> str:
    """Return the numbers of runs that were planned, done and proved, and their cost."""
    document = results_io.read("learn_and_prove")
    found = document["results"]["table"]
    rows = [
        [
            row["task"],
            f"{row['runs']} of {row['asked']}",
            f"{row['proved']}" if row["runs"] else "not done",
            *("" if row["worst"] is None else f"{row[f'median_{name}']:,.0f}" for name in ("starts", "steps")),
            *("" if row[name] is None else f"{row[name]:.1f}" for name in ("median_processor_seconds", "worst")),
        ]
        for row in found
    ]
    n, runs, asked = (sum(row[name] for row in found) for name in ("proved", "runs", "asked"))
    note = (
        f"{n} of {runs} runs ended in a proof for all lengths within their processor time: 60 s, 180 s for "
        f"ModArith(5), 600 s for 64 states; {asked - runs} of {asked} were not done. Starts, steps and seconds are "
        "medians of these runs"
    )
    heads = ["task", "runs", "proved", "starts", "steps", "seconds", "most seconds"]
    return markdown(heads, rows) + facts(document, note)


def steps() -> str:
    """Return the times of training steps as multiples of ours."""
    document = results_io.read("bench_steps")
    names = list(document["results"][0]["over_ours"])
    rows = [
        [
            *(row["task"], str(row["layers"]), str(row["threads"]), f"{row['milliseconds']['ours']:.1f}"),
            *(_times(row["over_ours"][name]) for name in names),
            _times(row.get("ours_over_floor")),
        ]
        for row in document["results"]
    ]
    heads = ["task", "layers", "threads", "ours, ms", *names, "ours ÷ the deep layers' matrix products"]
    return markdown(heads, rows) + facts(document, f"Batches of {document['results'][0]['batch']} words, float32")


def paper_speed() -> str:
    """Return the paper's speed comparison, on the CPU and, if measured, on a GPU."""
    text = _speed("paper_speed")
    has_gpu = (results_io.RESULTS / "paper_speed_gpu.json").exists()
    return text + (f"\n{_speed('paper_speed_gpu')}" if has_gpu else "")


def _speed(name: str) -> str:
    found = results_io.read(name)
    document = found["results"]
    rows = [
        [
            *(row["what"], f"{row['length']:,}", f"{row['heads']} of {row['block']}"),
            *(f"{ms:.2f}" for ms in row["milliseconds"].values()),
            _times(row["sequential_over_pscan"]),
            _times(row["paper_sequential_over_pscan"]),
            _times(row["best_over_ours"]),
        ]
        for row in document["rows"]
    ]
    names = (f"{name}, ms" for name in document["rows"][0]["milliseconds"])
    heads = ["what", "letters", "blocks", *names, "Sequential ÷ PScan", "the same in the paper", "their faster ÷ ours"]
    note = f"{document['device']}, {_threads(document['threads'])}; batches of {document['rows'][0]['batch']} words"
    return markdown(heads, rows) + facts(found, note)


def gpu() -> str:
    """Return Triton scans compared with a plain copy on the card, and training steps."""
    document = results_io.read("bench_gpu")
    found = document["results"]
    rows = [
        [
            *(row["kind"], row["dtype"], f"{row['batch']:,}", f"{row['length']:,}"),
            *(f"{row[way]['milliseconds']:.3f} ({row[way]['share_of_copy']:.0%})" for way in ("forward", "backward")),
        ]
        for row in found["scans"]
    ]
    heads = [
        "scan",
        "dtype",
        "words",
        "letters",
        "forward, ms (of the copy's rate)",
        "backward, ms (of the copy's rate)",
    ]
    taken = [
        [
            row["precision"],
            *("yes" if row[name] else "no" for name in ("compile", "cuda_graph")),
            f"{row['milliseconds']:.2f}" if "milliseconds" in row else row["error"],
        ]
        for row in found["steps"]
    ]
    seeds = found["seeds"]
    in_turn, stacked = seeds["in_turn_milliseconds"], seeds["stacked_milliseconds"]
    note = f"A step of {seeds['seeds']} seeds: {in_turn:.2f} ms one after another, {stacked:.2f} ms stacked"
    rate = found["copy_bytes_per_second"] / 1e9
    copy = f"{found['device']}, on which a plain copy moves {rate:,.0f} GB/s; times include launches"
    tables = [
        markdown(heads, rows),
        markdown(["precision", "torch.compile", "CUDA graph", "ms per training step"], taken),
    ]
    if found["layers"]:
        by_layer = [[row["layer"], f"{row['milliseconds']:.2f}", f"{row['replayed']:.2f}"] for row in found["layers"]]
        tables.append(markdown(["layer of Table 2, on Sum(5)", "launched, ms per step", "by a CUDA graph"], by_layer))
    return "\n".join(tables) + facts(document, note, copy)


def runs() -> str:
    """Return the end of each training run, and the accuracy of its last checkpoint by length."""
    tasks = results_io.read("training")["results"]
    lengths = [f"{line['length']:,}" for line in tasks[0]["seeds"][0]["last_checkpoint"]]
    rows = [
        [
            *(task["task"], str(seed["seed"]), f"{seed['step']:,}", f"{seed['paper_protocol']['accuracy']:.3f}"),
            *(
                " / ".join(f"{line[name]['accuracy']:.4f}" for name in ("last_position", "whole_word"))
                for line in seed["last_checkpoint"]
            ),
        ]
        for task in tasks
        for seed in task["seeds"]
    ]
    commands = "\n".join(task["command"] for task in tasks)
    table = markdown(["task", "seed", "steps", "best evaluation", *lengths], rows)
    return f"{table}\nLast output right / whole word right, by letters. Made by\n\n```sh\n{commands}\n```\n"


def sweep() -> str:
    """Return the cells of a sweep over families: right last outputs by length, means over seeds with extremes."""
    document = results_io.read("sweep_families")
    cells = document["results"]["cells"]
    lengths = [f"{line['length']:,} letters" for line in next(cell for cell in cells if cell["lengths"])["lengths"]]
    rows = [
        [cell["task"], cell["network"], ", ".join(f"{n} {end}" for end, n in cell["ends"].items())]
        + ([_spread(line["last_position"]) for line in cell["lengths"]] or ["–"] * len(lengths))
        for cell in cells
    ]
    note = "Last outputs right, mean over seeds (least–largest)"
    return markdown(["task", "network", "ends", *lengths], rows) + facts(document, note)


def _spread(accuracies: dict[str, float]) -> str:
    mean, least, largest = (f"{accuracies[name]:.2f}" for name in ("mean", "min", "max"))
    return mean if least == largest else f"{mean} ({least}–{largest})"


def _times(ratio: float | None) -> str:
    """Return a ratio with at least two figures, or an empty text if it was not measured.

    >>> _times(326.4), _times(9.41), _times(None)
    ('326', '9.4', '')
    """
    return "" if ratio is None else f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2g}" if ratio < 1 else f"{ratio:.1f}"


def _threads(n: int) -> str:
    return f"{n} thread{'s' if n > 1 else ''}"
