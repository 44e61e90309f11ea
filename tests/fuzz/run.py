"""Hostile files for all readers, in processes that may die of them: `python -m tests.fuzz.run [INPUTS [SEED]]`.

The counts stand in counts.json, reader by reader; a second call with the same numbers goes on where the first ended.
After a change to a reader, remove the file. With the names of readers, these are read again, and nothing is written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from fsa2lrnn.files import write_atomically
from fsa2lrnn.verification.coverage import versions
from tests.fuzz.worker import SECONDS

COUNTS = Path(__file__).parent / "counts.json"
BATCH = 500  # inputs a process: what earlier ones leave fragmented must not count against later ones for long
DEAD = 300.0  # seconds, and PATIENCE for each input, after which a batch hangs beyond the reach of signals
PATIENCE = 20.0  # by the clock: a machine may have much else to do
# Of 100 inputs, those that each reader gets.
SHARES = {
    "regex": 4, "task": 3, "DOT": 7, "JFLAP": 5, "OpenFst": 6, "KISS2": 3, "OpenFst symbols": 2,
    "JSON machine": 8, "word": 2, "model": 9, "released weights": 3, "certificate": 8, "proof certificate": 2,
    "family certificate": 8, "refusal certificate": 2,
    "settings": 3, "sweep JSON": 3,
    "sweep TOML": 2, "run": 3, "result": 2, "ledger": 2, "metrics": 1,
    "word lines": 3, "word table": 3, "learning": 2, "what was asked": 1,
    "configuration of others": 1, "weights of others": 1, "exported folder": 1,
}  # fmt: skip
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "65536",  # what is freed goes back to the system
    "MALLOC_MMAP_THRESHOLD_": "65536",
}


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

    def line(self, name: str) -> str:
        """The counts, for people."""
        ends = ", ".join(f"{n:,} {end}" for end, n in sorted(self.ends.items(), key=lambda pair: -pair[1]))
        return f"{name}: {self.inputs:,} inputs, {ends}; slowest {self.slowest:.1f} s"


def fuzz(name: str, inputs: int, seed: int, module: str = "tests.fuzz.readers", seconds: float = SECONDS) -> Tally:
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


def _ignored(_name: str, _tally: Tally) -> None:
    pass


def fuzz_all(
    inputs: int,
    seed: int,
    processes: int,
    names: list[str] | None = None,
    done: Callable[[str, Tally], None] = _ignored,
) -> dict[str, Tally]:
    """Share the inputs among the readers; the lines are printed, and `done` is called, as readers are done."""
    shares = {name: share for name, share in SHARES.items() if names is None or name in names}
    total = sum(shares.values())

    def one(name: str) -> Tally:
        tally = fuzz(name, -(-inputs * shares[name] // total), seed)
        print(tally.line(name), f"({tally.seconds:,.0f} s)", flush=True)
        done(name, tally)
        return tally

    with ThreadPoolExecutor(processes) as pool:
        return dict(zip(shares, pool.map(one, shares), strict=True))


def main() -> None:
    """All readers that are not counted yet, or those named; faults are printed with the number of the input."""
    inputs, names = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, sys.argv[3:] or None
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    processes = os.cpu_count() or 1
    tallies = fuzz_all(inputs, seed, processes, names) if names else counted(inputs, seed, processes)
    for name, tally in tallies.items():
        for fault in tally.faults:
            print(f"\n{name}, seed {seed}, input {fault['input']}:\n{fault['fault']}")
    print(f"{sum(tally.inputs for tally in tallies.values()):,} inputs, "
          f"{sum(len(tally.faults) for tally in tallies.values())} faults")  # fmt: skip


def counted(inputs: int, seed: int, processes: int, path: Path = COUNTS) -> dict[str, Tally]:
    """The tallies of all readers, those that stand in the file among them; it is written reader by reader."""
    run = {"inputs": inputs, "seed": seed}
    known = json.loads(path.read_bytes()) if path.exists() else {}
    tallies: dict[str, Tally] = {}
    if {name: known.get(name) for name in run} == run:
        tallies = {name: Tally(Counter(row.pop("ends")), **row) for name, row in known["readers"].items()}

    lock = Lock()

    def done(name: str, tally: Tally) -> None:
        with lock:
            tallies[name] = tally
            readers = {name: vars(tallies[name]) for name in SHARES if name in tallies}
            text = {**run, "versions": versions(), "readers": readers}
            write_atomically(path, (json.dumps(text, indent=1) + "\n").encode())

    if rest := [name for name in SHARES if name not in tallies]:
        share = sum(SHARES[name] for name in rest)
        fuzz_all(-(-inputs * share // 100), seed, processes, rest, done)
    return {name: tallies[name] for name in SHARES}


if __name__ == "__main__":
    main()
