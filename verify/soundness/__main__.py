"""`python -m verify.soundness [COUNT] [FIRST]`: verify and run random models; exit 1 if an output was wrong.

The counts are stored in counts.json, written every few models: a second call continues where the first ended, up to
COUNT models in total. After a change to a verifier, remove the file.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from fsa2lrnn.files import write_atomically
from fsa2lrnn.versions import versions
from verify.soundness.run import run, wrong

COUNT, EVERY = 600, 10
COUNTS = Path(__file__).parent / "counts.json"


def main(count: int, first: int = 0, path: Path = COUNTS) -> Counter[str]:
    """Return the counts of so many models from seed `first` on, including those in the file."""
    counts = Counter[str]()
    if path.exists():
        known = json.loads(path.read_bytes())
        if known["first"] != first:
            raise SystemExit(f"{path.name} begins with seed {known['first']}: give that as FIRST, or remove the file")
        counts = Counter[str](known["counts"])
    while (done := counts["models"]) < count:
        counts += run(min(EVERY, count - done), first + done)
        text = {"first": first, "versions": versions(), "counts": dict(sorted(counts.items()))}
        write_atomically(path, (json.dumps(text, indent=1) + "\n").encode())
    return counts


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:3]]
    found = main(*given[:1] or [COUNT], first=given[1] if len(given) > 1 else 0)
    print(json.dumps(dict(sorted(found.items())), indent=1))
    raise SystemExit(1 if wrong(found) else 0)
