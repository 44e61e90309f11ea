"""Run canaries on released versions of transformers: `python -m experiments.studies.canary_releases SITES FOLDERS`.

SITES holds one folder of packages per version (`pip install --no-deps --target SITES/5.3.0 transformers==5.3.0`, with
the versions of tokenizers and huggingface_hub that it wants in SITES/5.3.0 or its folder `dependencies`), FOLDERS the
canaries (`fsa2lrnn canary make`). Results are stored in canary_releases.json after each pair, and not computed again.
Without arguments the table of the guide is printed.
"""

from __future__ import annotations

import argparse
import json
from itertools import groupby
from pathlib import Path
from typing import Any

from fsa2lrnn.canary.report import check_elsewhere, read_record
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.files import write_atomically

RESULTS = Path(__file__).parents[1] / "results" / "canary_releases.json"


def table(found: dict[str, Any]) -> str:
    """Return a table of the patterns in which some version is wrong: the answer of each range of versions."""
    answers = dict[tuple[str, str], dict[str, str]]()
    for name, report in found.items():
        version, model, _, _ = name.split(", ")
        for pattern, one in report.get("patterns", {}).items():
            told = answers.setdefault((pattern, model), {})
            if told.get(version) != "wrong":  # of a canary that tracks and one that generates
                told[version] = one["answer"]
    lines = ["|pattern|model|versions of transformers|", "|---|---|---|"]
    for (pattern, model), told in sorted(answers.items()):
        if "wrong" not in told.values():
            continue
        ordered = sorted(told, key=lambda version: tuple(map(int, version.split("."))))
        ranges = list[str]()
        for answer, group in groupby(ordered, key=told.__getitem__):
            first, *rest = list(group)
            word = f"**{answer}**" if answer == "wrong" else answer
            ranges.append(f"{word} {first}{f' to {rest[-1]}' if rest else ''}")
        lines.append(f"|`{pattern}`|{model}|{', '.join(ranges)}|")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run every canary on every version, and print what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m experiments.studies.canary_releases", description=__doc__)
    parser.add_argument("sites", type=Path, nargs="?")
    parser.add_argument("folders", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = json.loads(options.out.read_text()) if options.out.exists() else {}
    if options.folders is None:
        print(table(found), end="")
        return
    folders = [path.parent for path in sorted(options.folders.glob("*/canary.json"))]
    for site in sorted(path for path in options.sites.iterdir() if (path / "transformers").is_dir()):
        for folder in folders:
            known = read_record(folder)
            name = f"{site.name}, {known['model']}, {'generate' if known['generates'] else 'track'}, {known['dtype']}"
            if name in found:
                continue
            try:
                found[name] = check_elsewhere(folder, site).to_json()
                wrong = [pattern for pattern, one in found[name]["patterns"].items() if one["answer"] == "wrong"]
                print(f"{name}: {', '.join(wrong) or 'nothing wrong'}", flush=True)
            except CheckpointError as fault:
                found[name] = {"refused": str(fault).replace(str(site), site.name).replace(str(folder), folder.name)}
                print(f"{name}: {found[name]['refused']}", flush=True)
            write_atomically(options.out, (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode())


if __name__ == "__main__":
    main()
