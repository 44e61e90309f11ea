"""`python -m verify.oracle [COUNT] [--seed FIRST]`: compare verdicts on small models with the exact network.

The exit code is 1 if a claim is wrong.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter

from verify.oracle.examine import examine


def main() -> int:
    """Examine models, print counts, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = Counter[str]()
    for seed in range(options.seed, options.seed + options.count):
        _report(f"seed {seed}", examine(seed), counts)
    counts["wrong"] = sum(count for name, count in counts.items() if name.startswith("wrong: "))
    print(json.dumps(dict(sorted(counts.items())), indent=1))
    return 1 if counts["wrong"] else 0


def _report(name: str, found: Counter[str], counts: Counter[str]) -> None:
    counts.update(found)
    if wrong := {what: count for what, count in found.items() if what.startswith("wrong: ") and count}:
        counts["wrong models"] += 1
        print(f"{name}: {wrong}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
