"""Run canaries on released versions of transformers: `python -m experiments.studies.canary_releases SITES FOLDERS`.

SITES holds one folder of packages per version (`pip install --no-deps --target SITES/5.3.0 transformers==5.3.0`, with
the versions of tokenizers and huggingface_hub that it wants in SITES/5.3.0 or its folder `dependencies`), FOLDERS the
canaries (`fsa2lrnn canary make`). Results are stored after each pair, and not computed again.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments import results_io, script
from fsa2lrnn.canary.report import check_elsewhere, read_record
from fsa2lrnn.errors import CheckpointError

NAME = "canary_releases"


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def table(found: dict[str, Any]) -> str:
    """Return a table of the patterns in which some version is wrong: the answer of each range of versions."""
    answers = dict[tuple[str, str], dict[str, str]]()
    for name, report in found.items():
        version, model, _, _ = name.split(", ")
        for pattern, one in report.get("patterns", {}).items():  # a folder that does not load has none
            told = answers.setdefault((pattern, model), {})
            if told.get(version) != "wrong":  # of a canary that tracks and one that generates
                told[version] = one["answer"]
    lines = ["|pattern|model|versions of transformers|", "|---|---|---|"]
    for (pattern, model), told in sorted(answers.items()):
        if "wrong" not in told.values():
            continue
        ordered = sorted(told, key=_version)
        ranges = list[str]()
        for answer, group in groupby(ordered, key=told.__getitem__):
            first, *rest = list(group)
            word = f"**{answer}**" if answer == "wrong" else answer
            ranges.append(f"{word} {first}{f' to {rest[-1]}' if rest else ''}")
        lines.append(f"|`{pattern}`|{model}|{', '.join(ranges)}|")
    return "\n".join(lines) + "\n"


def shortened(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report with the number of wrong runs in place of each: the remark describes the first."""
    patterns = {}
    for pattern, one in report["patterns"].items():
        patterns[pattern] = {key: value for key, value in one.items() if key not in ("wrong", "script") and value != ""}
        if one["wrong"]:
            patterns[pattern]["n_wrong_runs"] = len(one["wrong"])
    return report | {"patterns": patterns}


def main(
    sites: Annotated[Path | None, typer.Argument(help="a folder of packages per version")] = None,
    folders: Annotated[Path | None, typer.Argument(help="the canaries")] = None,
) -> None:
    """Run every canary on every version and store what it did; without arguments print the table of the guide."""
    path = results_io.RESULTS / f"{NAME}.json"
    found = results_io.read(NAME)["results"] if path.exists() else {}
    if sites is None or folders is None:
        print(table(found), end="")
        return
    places = [path.parent for path in sorted(folders.glob("*/canary.json"))]
    releases = [path for path in sites.iterdir() if (path / "transformers").is_dir()]
    for site in sorted(releases, key=lambda path: _version(path.name), reverse=True):
        for folder in places:
            known = read_record(folder)
            name = f"{site.name}, {known['model']}, {'generate' if known['generates'] else 'track'}, {known['dtype']}"
            if found.get(name, {}).get("layers") == len(known["layers"]):  # of a canary of this shape
                continue
            try:
                found[name] = {"layers": len(known["layers"]), **shortened(check_elsewhere(folder, site).to_json())}
                wrong = [pattern for pattern, one in found[name]["patterns"].items() if one["answer"] == "wrong"]
                print(f"{name}: {', '.join(wrong) or 'nothing wrong'}", flush=True)
            except CheckpointError as fault:
                text = str(fault).replace(str(site), site.name).replace(str(folder), folder.name)
                found[name] = {"layers": len(known["layers"]), "refused": text}
                print(f"{name}: {found[name]['refused']}", flush=True)
            results_io.write("canary_releases", found, "python -m experiments.studies.canary_releases SITES FOLDERS")


if __name__ == "__main__":
    script.run(main)
