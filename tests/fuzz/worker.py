"""Reads hostile files one after the other, each under limits on memory and time: `python -m tests.fuzz.worker JOB`.

A process of its own, since what is to be found may end it. Memory is limited by the operating system (RLIMIT_DATA: all
that is mapped to be written, whoever asks for it) to what the process has after it has read the valid files, what the
reader may take, and twenty times the file. Time is the processor's.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.fuzz.base import Reader


class Hang(BaseException):
    """An input took longer than it may."""


def attempt(reader: Reader, folder: Path, content: bytes, base: int, seconds: float) -> str:
    """Read one file; how it ended: "read", the kind of refusal, or "!" and what should not have been."""
    path = folder / f"file{reader.ending}"
    path.write_bytes(content)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (base + reader.spare + 20 * len(content), hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        reader.read(path)
        return "read"
    except reader.refuses as refusal:
        return type(refusal).__name__
    except (Exception, Hang):
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        return "!" + traceback.format_exc(limit=-6)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        for left in folder.iterdir():
            left.unlink()


def main(job: dict[str, Any]) -> None:
    """Read inputs `start` … `stop` − 1 of one reader; a line of JSON for what is wrong, and one for the counts."""
    name, seed = job["reader"], job["seed"]
    reader: Reader = import_module(job["module"]).READERS[name]
    found, slowest = Counter[str](), 0.0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        folder = Path(place)
        for content in 2 * reader.valid():  # caches and compiled kernels are there then
            if (end := attempt(reader, folder, content, 1 << 40, 60.0)) != "read":
                raise AssertionError(f"{name}: a valid file is refused: {end}\n{content[:200]!r}")
        reader.hostile(random.Random(0))
        gc.collect()
        base = 1024 * int(re.findall(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[0])
        for i in range(job["start"], job["stop"]):
            os.pwrite(job["progress"], i.to_bytes(8, "little"), 0)
            content = reader.hostile(random.Random(f"{seed} {name} {i}"))  # the same in every process
            begun = time.process_time()
            end = attempt(reader, folder, content, base, job["seconds"])
            slowest = max(slowest, time.process_time() - begun)
            if end.startswith("!"):
                print(json.dumps({"input": i, "bytes": len(content), "fault": end[1:]}), flush=True)
                end = "!"
            found[end] += 1
    print(json.dumps({"ends": found, "slowest": slowest}), flush=True)


def _end(*_: object) -> None:
    raise Hang


if __name__ == "__main__":
    signal.signal(signal.SIGPROF, _end)
    main(json.loads(sys.argv[1]))
