"""`python -m verify.soundness [--near-ties | --extremes] [COUNT] [FIRST]`: verify and run random models.

The exit code is 1 if one was wrong. The counts are stored in counts.json, near_ties.json or extremes.json, written
every few models: a second call continues where the first ended, up to COUNT models in total. After a change to a
verifier, remove the file.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fsa2lrnn.files import write_atomically
from fsa2lrnn.verification.coverage import versions
from verify.soundness import extremes, near_ties
from verify.soundness.run import examine, run, wrong

COUNT, EVERY = 600, 10
COUNTS = Path(__file__).parent / "counts.json"
OTHERS = {"near_ties": near_ties.examine, "extremes": extremes.examine}


def main(
    count: int, first: int = 0, path: Path = COUNTS, of_seed: Callable[[int], Counter[str]] = examine
) -> Counter[str]:
    """Return the counts of so many models from seed `first` on, including those in the file."""
    counts = Counter[str]()
    if path.exists():
        known = json.loads(path.read_bytes())
        if known["first"] != first:
            raise SystemExit(f"{path.name} begins with seed {known['first']}: give that as FIRST, or remove the file")
        counts = Counter[str](known["counts"])
    while (done := counts["models"]) < count:
        counts += run(min(EVERY, count - done), first + done, of_seed)
        text = {"first": first, "versions": versions(), "counts": dict(sorted(counts.items()))}
        write_atomically(path, (json.dumps(text, indent=1) + "\n").encode())
    return counts


if __name__ == "__main__":
    chosen = [name for name in OTHERS if f"--{name.replace('_', '-')}" in sys.argv]
    given = [int(argument) for argument in sys.argv[1:] if not argument.startswith("--")]
    count, first = (*given, *(COUNT, 0)[len(given) :])
    path = COUNTS.with_name(f"{chosen[0]}.json") if chosen else COUNTS
    found = main(count, first, path, OTHERS[chosen[0]] if chosen else examine)
    print(json.dumps(dict(sorted(found.items())), indent=1))
    raise SystemExit(1 if wrong(found) else 0)
