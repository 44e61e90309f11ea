"""Hostile files for all readers, in processes that may die of them: `python -m tests.fuzz.run [INPUTS [SEED]]`.

The counts of all readers are written to counts.json. With the names of readers, these alone read; nothing is written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fsa2lrnn.files import write_atomically
from fsa2lrnn.verification.coverage import versions
from tests.fuzz.readers import READERS

COUNTS = Path(__file__).parent / "counts.json"
BATCH = 500  # inputs a process: what earlier ones leave fragmented must not count against later ones for long
DEAD = 300.0  # seconds, and PATIENCE for each input, after which a batch hangs beyond the reach of signals
PATIENCE = 20.0  # by the clock: a machine may have much else to do
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "65536",  # what is freed goes back to the system
}  # fmt: skip


@dataclass
class Tally:
    """What became of one reader's inputs."""

    ends: Counter[str] = field(default_factory=Counter)
    faults: list[dict[str, object]] = field(default_factory=list)
    slowest: float = 0.0
    seconds: float = 0.0

    @property
    def inputs(self) -> int:
        return sum(self.ends.values())


def fuzz(name: str, inputs: int, seed: int, module: str = "tests.fuzz.readers", seconds: float = 5.0) -> Tally:
    """Give a reader so many inputs, in as many processes as it takes; each may take so many seconds."""
    tally, start, begun = Tally(), 0, time.monotonic()
    while start < inputs:
        job = {"reader": name, "seed": seed, "module": module, "seconds": seconds}
        start = _batch(job | {"start": start, "stop": min(start + BATCH, inputs)}, tally)
    tally.seconds = time.monotonic() - begun
    return tally


def _batch(job: dict[str, Any], tally: Tally) -> int:
    """Run one process; the input to go on from."""
    start, stop = job["start"], job["stop"]
    with tempfile.TemporaryFile() as progress:
        os.pwrite(progress.fileno(), start.to_bytes(8, "little"), 0)
        command = [sys.executable, "-m", "tests.fuzz.worker", json.dumps(job | {"progress": progress.fileno()})]
        ended = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[progress.fileno()],
            env=os.environ | _ENVIRONMENT, text=True,
        )  # fmt: skip
        try:
            out, err = ended.communicate(timeout=DEAD + PATIENCE * (stop - start))
        except subprocess.TimeoutExpired:
            ended.kill()
            out, err = ended.communicate()
        lines = [json.loads(line) for line in out.splitlines()]
        last = int.from_bytes(os.pread(progress.fileno(), 8, 0), "little")
    summary = lines.pop() if lines and "ends" in lines[-1] else None
    tally.faults += lines
    if summary is None:  # it died of input `last`
        tally.faults.append({"input": last, "fault": f"the process ended with {ended.returncode}: {err[-2_000:]}"})
        tally.ends += Counter({"!": 1 + len(lines), "?": last - start - len(lines)})
        return last + 1
    tally.ends += Counter(summary["ends"])
    tally.slowest = max(tally.slowest, summary["slowest"])
    return stop


def fuzz_all(inputs: int, seed: int, processes: int, names: Sequence[str] = ()) -> dict[str, Tally]:
    """Share the inputs among the readers, all or those named; a line is printed as each is done."""
    names = names or list(READERS)

    def one(name: str) -> Tally:
        tally = fuzz(name, -(-inputs // len(names)), seed)
        ends = ", ".join(f"{n:,} {end}" for end, n in tally.ends.most_common())
        print(
            f"{name}: {tally.inputs:,} inputs in {tally.seconds:,.0f} s, {ends}; slowest {tally.slowest:.1f} s",
            flush=True,
        )
        return tally

    with ThreadPoolExecutor(processes) as pool:
        return dict(zip(names, pool.map(one, names), strict=True))


def main() -> None:
    """Print faults with the numbers of their inputs, and write the counts of all readers."""
    parser = ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("inputs", type=int, nargs="?", default=100_000, help="files for all readers together")
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"these alone, of: {', '.join(READERS)}")
    given = parser.parse_args()
    tallies = fuzz_all(given.inputs, given.seed, os.cpu_count() or 1, given.readers)
    faults = [(name, fault) for name, tally in tallies.items() for fault in tally.faults]
    for name, fault in faults:
        print(f"\n{name}, seed {given.seed}, input {fault['input']}:\n{fault['fault']}")
    print(f"{sum(tally.inputs for tally in tallies.values()):,} inputs, {len(faults)} faults")
    if not given.readers:
        readers = {name: vars(tally) for name, tally in tallies.items()}
        text = {"inputs": given.inputs, "seed": given.seed, "versions": versions(), "readers": readers}
        write_atomically(COUNTS, (json.dumps(text, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
