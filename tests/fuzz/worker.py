"""Reads hostile files, each in a fork of this process and under limits: `python -m tests.fuzz.worker JOB`.

A fork, since what is to be found may end it, and so that no input leaves anything behind for the next. The operating
system limits its memory (RLIMIT_DATA: all that is mapped to be written, whoever asks for it) to what the process has
after the valid files, what the reader may take, and twenty times the file. Time is the processor's.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.fuzz.mutate import Reader


class Hang(BaseException):
    """An input took longer than it may."""


def attempt(reader: Reader, folder: Path, content: bytes, seconds: float) -> tuple[str, float, float]:
    """Read one file in a fork: how that ended, its processor seconds and its peak memory in MB, above that before.

    The end is "read", the kind of refusal, or "!" and what should not have been.
    """
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        with suppress(BaseException):
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            path = folder / f"file{reader.ending}"
            path.write_bytes(content)
            Path("/proc/self/clear_refs").write_text("5")  # the peak starts at what there is
            before = _megabytes("VmRSS")
            end = _end(reader, path, reader.spare + 20 * len(content), seconds)
            used = resource.getrusage(resource.RUSAGE_SELF)
            value = end, used.ru_utime + used.ru_stime, _megabytes("VmHWM") - before
            os.write(writing, json.dumps(value).encode())
        os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for left in folder.iterdir():
        left.unlink()
    return tuple(json.loads(text)) if text else (f"!the process ended with {status}", math.inf, math.inf)


def _end(reader: Reader, path: Path, memory: int, seconds: float) -> str:
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds) + 10,) * 2)  # where no signal is handled
    resource.setrlimit(resource.RLIMIT_DATA, (int(_megabytes("VmData") * 2**20) + memory, hard))
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


def _megabytes(name: str) -> float:
    return int(re.findall(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[0]) / 1024


def warm(reader: Reader, folder: Path) -> None:
    """Read the valid files in this process: modules are imported and kernels compiled then."""
    for content in reader.valid():
        path = folder / f"file{reader.ending}"
        path.write_bytes(content)
        with suppress(*reader.refuses):
            reader.read(path)
        for left in folder.iterdir():
            left.unlink()


def main(job: dict[str, Any]) -> None:
    """Read the inputs of one reader; print a line of JSON for what is wrong, and one for the counts."""
    name, seed = job["reader"], job["seed"]
    reader: Reader = import_module(job["module"]).READERS[name]
    found, slowest = Counter[str](), 0.0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        folder = Path(place)
        warm(reader, folder)
        reader.hostile(random.Random(0))
        for content in reader.valid():
            if (end := attempt(reader, folder, content, 60.0)[0]) != "read":
                raise AssertionError(f"{name}: a valid file is refused: {end}\n{content[:200]!r}")
        for i in range(job["inputs"]):
            content = reader.hostile(random.Random(f"{seed} {name} {i}"))  # the same in every process
            end, seconds, _ = attempt(reader, folder, content, job["seconds"])
            if end.startswith("!"):
                print(json.dumps({"input": i, "bytes": len(content), "fault": end[1:]}), flush=True)
                end, seconds = "!", 0.0
            slowest = max(slowest, seconds)
            found[end] += 1
    print(json.dumps({"ends": found, "slowest": slowest}), flush=True)


def _raise(*_: object) -> None:
    raise Hang


signal.signal(signal.SIGPROF, _raise)
if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
