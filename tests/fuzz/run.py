"""Hostile files for all readers: `python -m tests.fuzz.run [INPUTS [SEED]]`.

The counts of all readers are written to counts.json. With the names of readers, these alone read; nothing is written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fsa2lrnn.files import write_atomically
from fsa2lrnn.verification.coverage import versions
from tests.fuzz.readers import READERS

COUNTS = Path(__file__).parent / "counts.json"
# A fork has one thread. What valid files are warned of is known.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "PYTHONWARNINGS": "ignore"}
Tally = dict[str, Any]


def fuzz(name: str, inputs: int, seed: int, module: str = "tests.fuzz.readers", seconds: float = 5.0) -> Tally:
    """Give a reader so many inputs, each of which may take so many seconds: how they ended, faults, the slowest."""
    job = {"reader": name, "inputs": inputs, "seed": seed, "module": module, "seconds": seconds}
    begun = time.monotonic()
    command = [sys.executable, "-m", "tests.fuzz.worker", json.dumps(job)]
    out = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ | _ENVIRONMENT, text=True, check=True).stdout
    *faults, counts = map(json.loads, out.splitlines())
    return {"ends": counts["ends"], "faults": faults, "slowest": counts["slowest"], "seconds": time.monotonic() - begun}


def fuzz_all(inputs: int, seed: int, names: Sequence[str] = ()) -> dict[str, Tally]:
    """Share the inputs among the readers, all or those named; print a line as each is done."""
    names = names or list(READERS)

    def one(name: str) -> Tally:
        tally = fuzz(name, -(-inputs // len(names)), seed)
        ends = ", ".join(f"{n:,} {end}" for end, n in tally["ends"].items())
        print(f"{name}: {ends}; {tally['seconds']:,.0f} s, slowest {tally['slowest']:.1f} s", flush=True)
        return tally

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(names, pool.map(one, names), strict=True))


def main() -> None:
    """Print faults with the numbers of their inputs, and write the counts of all readers."""
    parser = ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("inputs", type=int, nargs="?", default=100_000, help="files for all readers together")
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"these alone, of: {', '.join(READERS)}")
    given = parser.parse_args()
    tallies = fuzz_all(given.inputs, given.seed, given.readers)
    for name, tally in tallies.items():
        for fault in tally["faults"]:
            print(f"\n{name}, seed {given.seed}, input {fault['input']}:\n{fault['fault']}")
    if not given.readers:
        text = {"inputs": given.inputs, "seed": given.seed, "versions": versions(), "readers": tallies}
        write_atomically(COUNTS, (json.dumps(text, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
