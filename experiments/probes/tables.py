"""Tables of docs/kernel-probes.md: the survey of real kernels, the Triton kernels, the study of faults."""

from __future__ import annotations

import re
from typing import Any

from experiments import results_io
from experiments.tables import markdown

SUITES = ("whole sequences", "carried state", "variable lengths", "gradients", "gates")


def _cell(cells: dict[str, str], suite: str) -> str:
    """Return "exact" where every dtype is, "—" where the suite does not apply, or the first deviation."""
    mine = [text for name, text in cells.items() if name.rpartition(", ")[0] == suite]
    if not mine:
        return "—"
    wrong = [text for text in mine if not text.startswith("exact")]
    if not wrong:
        return "exact" if mine[0] == "exact" else "exact (padding)"
    what, _, fault = wrong[0].partition("; ")
    first = what.split(": ", 1)[-1]
    return f"{len(wrong)} of {len(mine)} dtypes wrong: {first}; {fault}"


def survey() -> str:
    """Return a table of each kernel against the five suites, in float32, bfloat16 and float16."""
    rows = results_io.read("probe_survey")["results"]
    # Kernels of one operator with equal results share a row.
    groups: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for row in rows:
        results = (row["op"], *(_cell(row["cells"], suite) for suite in SUITES))
        groups.setdefault(results, {}).setdefault(f"`{row['kernel']}`", []).append(row["project"])
    table = []
    for results, projects in groups.items():
        kernels: dict[str, list[str]] = {}
        for kernel, names in projects.items():
            kernels.setdefault(_joined(names), []).append(kernel)
        table.append(["; ".join(f"{names}: {', '.join(of)}" for names, of in kernels.items()), *results])
    return markdown(["kernels", "operator", *SUITES], table)


def _joined(names: list[str]) -> str:
    """Return the names in one phrase, the first word that they share written once.

    >>> _joined(["transformers mamba", "transformers bamba"])
    'transformers mamba, bamba'
    """
    first = names[0].split()[0]
    return ", ".join([names[0], *(name.removeprefix(f"{first} ") for name in names[1:])])


def on_gpu() -> str:
    """Return a table of Triton kernels on a GPU: what is wrong in each dtype, and how many configurations ran."""
    found: list[dict[str, Any]] = results_io.read("probe_gpu")["results"]["kernels"]
    rows = list[list[str]]()
    for row in (row for row in found if row["dtype"] == "float32"):
        mine = {each["dtype"]: each for each in found if each["kernel"] == row["kernel"]}
        swept = [f"{len(r['swept'])} of {r['configurations']}" for d, r in mine.items() if not d.startswith("float32")]
        verdicts = [_verdict(mine[d]) if d in mine else "—" for d in ("bfloat16", "float16", "float32", "float32 ieee")]
        rows.append([f"{row['project']}: `{row['kernel']}`", row["op"], *verdicts, "; ".join(dict.fromkeys(swept))])
    return markdown(
        ["kernel", "operator", "bfloat16", "float16", "float32", "float32 without TF32", "configurations"], rows
    )


def _verdict(row: dict[str, Any]) -> str:
    """Return "exact", which suites are refused, and the largest error of the kernel, with the likely fault."""
    cells = row["cells"]
    texts = [*cells.values(), *(text for each in row["wrong"].values() for text in each.values())]
    faults = {text.rpartition("; ")[2].partition(",")[0] for text in texts if not text.startswith(("exact", "refused"))}
    refused = [suite for suite, text in cells.items() if text.startswith("refused")]
    if len(refused) == len(cells):
        return "refused"
    worst = max(faults, key=lambda fault: float(re.findall(r"[\d.]+e-\d+|$", fault)[0] or 1), default="exact")
    lifted = [f"{suite}: {text}" for suite, text in cells.items() if "lifted" in suite]
    return "; ".join([worst, *(f"{suite} refused" for suite in refused), *lifted])


def mutants() -> str:
    """Return a table of the faults that each test detects."""
    counts: dict[str, Any] = results_io.read("probe_mutants")["results"]["counts"]
    tests = ("probes", "error ratio", "allclose")
    heads = [
        "faults",
        "number",
        "exact probes",
        "random, error ratio 0.005",
        "random, `allclose`",
        "seconds: probes, random",
    ]
    rows = [
        [kind, str(c["faults"]), *(str(c[test]) for test in tests), " and ".join(f"{s:.0f}" for s in c["seconds"])]
        for kind, c in counts.items()
    ]
    return markdown(heads, rows)


def missed() -> str:
    """Return a table of the faults that one of the tests does not detect."""
    rows = results_io.read("probe_mutants")["results"]["rows"]
    kinds = ("forward", "backward", "historical")
    some = [r for kind in kinds for r in rows[kind] if r["probes"] is None or not (r["error ratio"] and r["allclose"])]
    return markdown(
        ["kernel", "fault", "probes name", "error ratio", "`allclose`"],
        [
            [
                r["kernel"],
                r["fault"],
                r["probes"] or "not caught",
                *("caught" if r[t] else "missed" for t in ("error ratio", "allclose")),
            ]
            for r in some
        ],
    )


def seconds() -> str:
    """Return a table of the processor seconds of the default suites."""
    rows = results_io.read("probe_seconds")["results"]
    return markdown(
        ["kernel", "operator", "cases", "seconds"],
        [[f"`{r['kernel']}`", r["op"], str(r["cases"]), f"{r['seconds']:.0f}"] for r in rows],
    )
