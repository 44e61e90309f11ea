"""Tables in Markdown of what the benchmarks and training runs measured, each from its file in results/."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from experiments import results_io


def markdown(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table, with a line feed at its end.

    >>> print(markdown(["a", "b"], [["1", "2"]]), end="")
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    heads = list(heads)
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def facts(document: dict[str, Any], *more: str) -> str:
    """A line on where the numbers of a document are from."""
    versions = document["versions"]
    parts = [*more, document["processor"], f"torch {versions['torch']}", f"Python {versions['python']}"]
    return f"\n{'; '.join(parts)}.\n"


def machines() -> str:
    """What large machines and long words cost."""
    found = results_io.read("bench_machines")["results"]
    large, stream = found["compile_10000_by_256"], found["stream_100_million_letters"]
    million, chain = found["minimise_a_million_transitions"], found["minimise_a_long_chain"]
    congruences = found["congruences_of_256_states"]
    compiling = f"{large['seconds']:.1f} s, {large['peak_MiB_after_compiling']:,.0f} MiB at the peak, torch included"
    streaming = f"{stream['seconds']:.1f} s, {stream['peak_MiB']:,.0f} MiB at the peak"
    rows = [
        ("minimise 100,000 states × 10 letters", f"{million['seconds']:.1f} s"),
        ("minimise a chain of 1,000,000 states", f"{chain['seconds']:.1f} s"),
        ("compile 10,000 states × 256 letters", compiling),
        (f"prove it: {large['transitions_proved']:,} transitions", f"{large['prove_seconds']:.1f} s"),
        ("the congruences of a machine of 256 states", f"{congruences['seconds']:.1f} s, the slowest of four machines"),
        (f"`fsa2lrnn run task:mod_arith(5) -`, {stream['letters']:,} letters", streaming),
    ]
    return markdown(["job", "one run"], rows)


def scans() -> str:
    """Each scan at each shape, as multiples of the fused one."""
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
    """The fused scan along words of growing length."""
    document = results_io.read("bench_scan_lengths")
    rows = [[f"{row['length']:,}", f"{row['nanoseconds_a_letter']:.0f}"] for row in document["results"]]
    note = (
        f"One block of {document['results'][0]['block']}, forward and backward, {_threads(document['torch_threads'])}"
    )
    return markdown(["letters", "ns a letter"], rows) + facts(document, note)


def hard() -> str:
    """The scan of one-hot columns: milliseconds, others as multiples of it, and training steps a second."""
    document = results_io.read("bench_hard")
    rows = [
        [
            " × ".join(str(row[name]) for name in ("batch", "length", "heads", "block")),
            f"{row['milliseconds']['hard']:.2f}",
            *(_times(row["over_hard"][name]) for name in ("einsum", "fused tokens")),
            *(f"{row['steps_per_second'][name]:.1f}" for name in ("hard", "chunked")),
        ]
        for row in document["results"]
    ]
    heads = ["batch × length × heads × block", "hard, ms", "einsum", "fused", "steps/s, hard", "chunked"]
    return markdown(heads, rows) + facts(document, f"Forward and backward, {_threads(document['torch_threads'])}")


def learn_and_prove() -> str:
    """Learned, then proved: runs that were done of those asked for, how many were proved, and what that took."""
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
        f"{n} of {runs} runs ended in a proof for all lengths within their time, 60 s of a processor, 180 s for "
        f"ModArith(5); {asked - runs} of {asked} were not done. Medians are of the runs that ended so"
    )
    heads = ["task", "runs", "proved", "starts", "steps", "seconds", "most"]
    return markdown(heads, rows) + facts(document, note)


def steps() -> str:
    """Whole training steps, as multiples of ours."""
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
    heads = ["task", "layers", "threads", "ours, ms", *names, "ours over the deep layers' matrix products"]
    return markdown(heads, rows) + facts(document, f"Batches of {document['results'][0]['batch']} words, float32")


def layers() -> str:
    """Steps of the layers of others, as multiples of ours."""
    found = results_io.read("bench_layers")
    rows = [
        [
            *(row["layer"], f"{row['words']:,}", f"{row['letters']:,}", f"{row['milliseconds']['ours']:.2f}"),
            _times(row["plain_over_ours"]),
        ]
        for row in found["results"]["rows"]
    ]
    note = (
        f"Forward and backward, float32, 64 wide, 64 states, {_threads(found['results']['threads'])}; medians of turns"
    )
    return markdown(["layer", "words", "letters", "ours, ms", "plain torch"], rows) + facts(found, note)


def paper_speed() -> str:
    """The paper's speed comparison, on the CPU and on a GPU where one was measured."""
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
    heads = ["what", "letters", "blocks", *names, "Sequential over PScan", "in the paper", "their better over ours"]
    note = f"{document['device']}, {_threads(document['threads'])}; batches of {document['rows'][0]['batch']} words"
    return markdown(heads, rows) + facts(found, note)


def words() -> str:
    """Letters a second along long words."""
    document = results_io.read("bench_words")
    others = ("automata-lib", "google-re2")
    rows = [
        [f"{row['machine']}: {name}", f"{rate:,.1f}", *(_times(row["over"].get(name, {}).get(o)) for o in others)]
        for row in document["results"]
        for name, rate in row["million_letters_a_second"].items()
    ]
    heads = ["machine and way", "million letters a second", *(f"times {other}" for other in others)]
    return markdown(heads, rows) + facts(document, "One thread; medians of turns in one process")


def gpu() -> str:
    """Triton scans against the card's own copy, and training steps."""
    document = results_io.read("bench_gpu")
    found = document["results"]
    rows = [
        [
            *(row["kind"], row["dtype"], f"{row['batch']:,}", f"{row['length']:,}"),
            *(f"{row[way]['milliseconds']:.3f} ({row[way]['share_of_copy']:.0%})" for way in ("forward", "backward")),
        ]
        for row in found["scans"]
    ]
    heads = ["scan", "dtype", "words", "letters", "forward, ms (of the copy)", "backward, ms (of the copy)"]
    taken = [
        [
            row["precision"],
            "yes" if row["compile"] else "no",
            f"{row['milliseconds']:.2f}" if "milliseconds" in row else row["error"],
        ]
        for row in found["steps"]
    ]
    seeds = found["seeds"]
    in_turn, stacked = seeds["in_turn_milliseconds"], seeds["stacked_milliseconds"]
    note = f"A step of {seeds['seeds']} seeds: {in_turn:.2f} ms one after another, {stacked:.2f} ms stacked"
    copy = f"{found['device']}, whose copy moves {found['copy_bytes_per_second'] / 1e9:,.0f} GB/s"
    table = markdown(["precision", "torch.compile", "ms a training step"], taken)
    return markdown(heads, rows) + "\n" + table + facts(document, note, copy)


def runs() -> str:
    """Each trained model by itself: how its training ended, and its last checkpoint by length."""
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
    table = markdown(["task", "seed", "steps", "best on the way", *lengths], rows)
    return f"{table}\nLast output right / whole word right, by letters. Made by\n\n```sh\n{commands}\n```\n"


def sweep() -> str:
    """The cells of a sweep over families: last outputs right by length, means over seeds with the least and largest."""
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
    """A ratio in two figures or more; nothing for what was not measured.

    >>> _times(326.4), _times(9.41), _times(None)
    ('326', '9.4', '')
    """
    return "" if ratio is None else f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2g}" if ratio < 1 else f"{ratio:.1f}"


def _threads(n: int) -> str:
    return f"{n} thread{'s' if n > 1 else ''}"


def learned() -> str:
    """Trained models before the judges, a line a task: ranges over seeds."""
    models = results_io.read("learned")["results"]["models"].values()
    rows = []
    for task in dict.fromkeys(row["task"] for row in models):
        found = [row for row in models if row["task"] == task]
        failing = [row["failure"]["length"] for row in found if row["failure"]]
        same = sum(row["extraction"]["isomorphic"] for row in found)
        least, _, dyadic = zip(*(row["mended"] for row in found), strict=True) if found[0]["mended"] else ((), (), ())
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
Outputs that a model does not have, as those of ModArith where no value is asked for, do not count in any column.
"Extracted": the machine found without knowing it is the true one. "Least repair": the least change of A, relative
(Frobenius), after which the tables carry the machine in real numbers; how long floats stay right is proved model by
model. "Dyadic repair": the change of A to numbers of so few digits that no step rounds; the states that are reached
then close bit for bit (`experiments/results/learned.json`, by `python -m experiments.studies.learned`; model
by model in `experiments/README.md`).
"""


def _percent(shares: list[float]) -> str:
    return f"{min(shares):.0f} to {max(shares):.0f} %" if shares else "–"


def learned_models() -> str:
    """The same, a line a model."""
    rows = []
    for name, row in results_io.read("learned")["results"]["models"].items():
        at_500 = [x["last_position"]["accuracy"] for x in row["last_checkpoint"] if x["length"] in (499, 500)]
        failing = f"{row['failure']['length']:,}" if row["failure"] else "none found"
        same = "yes" if row["extraction"]["isomorphic"] else "no"
        aligned = row.get("alignment")
        heads = f"{aligned['carrying']}: {_counted(aligned['kinds'])}" if aligned else "–"
        mended = [_mended(repaired) for repaired in row["mended"]] or ["–"] * 3
        accuracy = f"{at_500[0]:.3f}" if at_500 else "–"
        rows.append([name, accuracy, _number(row["certified"]), failing, same, heads, *mended])
    heads = ["model", "right at 500", "proved ≤", "fails at", "extracted", "heads that carry the state", "repair"]
    return markdown([*heads, "repair, columns ≤ 1", "dyadic repair"], rows) + (
        "\nRepairs: relative change of A; what is proved of the repaired model. All repaired models shown were run on "
        "500,000 random letters; those with a mistake say so.\n"
    )


def _mended(found: dict[str, Any]) -> str:
    if found["refused"] is not None:
        return "refused"
    what = (
        f"all lengths, {found['proved']['arithmetic']}" if "proved" in found else _number(found.get("certified", "–"))
    )
    wrong = "" if found["accuracy"] == 1 else f", {found['accuracy']:.4f} right"
    return f"{100 * found['change']['A']:.1f} %; {'' if 'proved' in found else '≤ '}{what}{wrong}"


def _counted(kinds: list[str]) -> str:
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))


def _number(value: int | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _range(values: list[Any]) -> str:
    numbers = sorted(value for value in values if isinstance(value, int))
    if not numbers:
        return ", ".join(dict.fromkeys(map(str, values))) or "–"
    ends = f"{numbers[0]:,}" if numbers[0] == numbers[-1] else f"{numbers[0]:,} to {numbers[-1]:,}"
    return ends if len(numbers) == len(values) else f"{ends} or all"


def block_sizes() -> str:
    """The least block size of each machine: a number where both bounds are proved, else the interval."""
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
        f"{exact[2]} over ℚ. Seconds are for all questions of a row, certificates checked, on one thread"
    )
    heads = ["machine", "states", "ℂ", "ℝ", "ℚ", "columns ≤ 1", "any depth", "factors", "s"]
    return markdown(heads, rows) + facts(document, note)


def block_sizes_held_out() -> str:
    """What was found of machines at random."""
    found = results_io.read("block_sizes")["results"]["held_out"]
    met = ", ".join(f"{count} over the {name} numbers" for name, count in found["met"].items())
    below = found["real_size_below_all_functions"]
    parts = ", ".join(f"{count} need n − {1 + int(less)}" for less, count in below.items())
    drawn = f"{found['machines']} random minimal DFAs of 4 to 12 states"
    return f"{drawn}: both bounds meet for {met}. Of real blocks, {parts}.\n"


def _interval(bounds: dict[str, Any]) -> str:
    lower, upper = bounds["lower"], bounds["upper"]
    return str(lower) if lower == upper else f"{lower} to {upper}"


def _factors(bounds: dict[str, Any]) -> str:
    if bounds["lower"] is None:
        return "none"
    return f"≥ {bounds['lower']}" if bounds["upper"] is None else _interval(bounds)
