"""Run canaries on released versions of transformers: `python -m experiments.studies.canary_releases SITES FOLDERS`.

SITES holds one folder of packages per version (`pip install --no-deps --target SITES/5.3.0 transformers==5.3.0`, with
the versions of tokenizers and huggingface_hub that it wants in SITES/5.3.0 or its folder `dependencies`), FOLDERS the
canaries (`fsa2lrnn canary make`). Results are stored in canary_releases.json after each pair, and not computed again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from fsa2lrnn.canary.report import check_elsewhere, read_record
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.files import write_atomically

RESULTS = Path(__file__).parents[1] / "results" / "canary_releases.json"


def main() -> None:
    """Run every canary on every version, and print what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m experiments.studies.canary_releases", description=__doc__)
    parser.add_argument("sites", type=Path)
    parser.add_argument("folders", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = json.loads(options.out.read_text()) if options.out.exists() else {}
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
