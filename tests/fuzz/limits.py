"""Time and memory of hostile inputs of at most 100 kB: `python -m tests.fuzz.limits [SEED [KIND …]]`.

Each input is read in a fork of a process in which the same question has been answered for harmless ones, so that
modules are imported and kernels compiled. Measured are the processor time of the fork, and the peak of its resident
memory above that at its start (VmHWM of /proc/self/status, Linux). Both have limits: `explain` and `classify` are asked
for at most `ASKED` seconds and may take one more, a reader may take `READ`; the memory is `MEGABYTES`.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from fsa2lrnn.automata.formats import read_source
from fsa2lrnn.automata.monoid import classify
from fsa2lrnn.cli import app
from fsa2lrnn.errors import Fsa2LrnnError
from tests.fuzz.readers import READERS

ASKED, READ, MEGABYTES, LARGEST = 2.0, 5.0, 500, 100_000
Question = Callable[[Path], object]
QUESTIONS: dict[str, Question] = {
    "explain": lambda path: app(["explain", str(path), "--max-seconds", str(ASKED)], standalone_mode=False),
    "classify": lambda path: classify(read_source(path), max_seconds=ASKED),
}


def machine_text(maps: list[Any], outputs: Any) -> str:
    """Return a machine in this library's JSON."""
    letters, delta = [f"x{a}" for a in range(len(maps))], [np.asarray(row).tolist() for row in maps]
    value = {"format": "fsa2lrnn-machine", "version": 1, "alphabet": letters, "start": 0}
    return json.dumps(value | {"outputs": np.asarray(outputs).tolist(), "delta": delta}, separators=(",", ":"))


def machines(rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Yield names and texts of machines with large monoids, groups, cycles, alphabets and sets of outputs."""
    for n, k in [(60, 2), (100, 100), (300, 2), (1000, 3), (2000, 2), (2000, 4), (3000, 1), (9, 2000)]:
        yield f"{k} random maps of {n}", machine_text(list(rng.integers(0, n, (k, n))), rng.integers(0, 2, n))
    for n, k in [(8, 2), (12, 6), (30, 2), (60, 6), (200, 2), (500, 3), (2000, 2), (4000, 1)]:
        yield f"{k} permutations of {n}", machine_text([rng.permutation(n) for _ in range(k)], rng.integers(0, 2, n))
    for n in (6, 8, 12, 40, 150, 800):
        cycle, swap, merge = (np.arange(n) for _ in range(3))
        swap[:2], merge[0] = (1, 0), 1
        maps = [np.roll(cycle, -1), swap, merge]
        yield f"all maps of {n}", machine_text(maps, cycle == 0)
        yield f"symmetric group on {n}", machine_text(maps[:2], cycle == 0)
        yield f"all maps of {n}, many outputs", machine_text(maps, cycle % max(2, n // 3))
    for n in (50, 500, 5000):
        up, down = np.minimum(np.arange(n) + 1, n - 1), np.maximum(np.arange(n) - 1, 0)
        yield f"elevator of {n}", machine_text([up, down], np.arange(n) == n - 1)
        yield f"chain of {n}, {n} outputs", machine_text([up], np.arange(n))
        yield f"cycle of {n}", machine_text([np.roll(np.arange(n), -1)], np.arange(n) == 0)
    for n in (32, 256, 2048):
        shift = [(2 * np.arange(n) + b) % n for b in (0, 1)]
        yield f"parity of the last letters, {n}", machine_text(shift, [q.bit_count() % 2 for q in range(n)])
    for primes in ([2, 3, 5, 7, 11], [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71]):
        ends = np.cumsum(primes)
        cycles = np.concatenate([np.roll(np.arange(end - p, end), -1) for p, end in zip(primes, ends, strict=True)])
        jump = np.roll(np.arange(ends[-1]), -2)
        yield f"cycles of {len(primes)} primes", machine_text([cycles, jump], rng.integers(0, 2, ends[-1]))
    letters = [np.where(np.arange(10) == a % 10, a // 10 % 10, np.arange(10)) for a in range(100)]
    yield "100 assignments of 10", machine_text(letters, np.arange(10))


TEXTS = [  # of little that claims much, or nests, or repeats
    *(("regex", text) for text in (
        "(a|b)*a" + "(a|b)" * 25, "(" * 4_000 + "a" + ")" * 4_000, "((a*)*)*" * 300, "a{1000}" * 3, "(a{30}){30}",
        "(((a|b){9}){9}){9}", ".*" * 4_000, "a|" * 4_000 + "b",
    )),
    ("DOT", "digraph {" + "subgraph {" * 9_000 + "}" * 9_001), ("DOT", 'digraph {"' + "x" * 90_000),
    ("DOT", "digraph {" + "".join(f'{q}->{q + 1}[label="a,b"];{q}->0[label=a];' for q in range(2_000)) + "}"),
    ("DOT", "digraph {" + "->".join("{" + " ".join(map(str, range(300))) + "}" for _ in "ab") + "[label=a]}"),
    ("JFLAP", "<structure>" + "<a>" * 30_000), ("JFLAP", "<!DOCTYPE x [<!ENTITY a '" + "b" * 99 + "'>]><x>&a;</x>"),
    ("OpenFst", "0 999999999 a\n999999999\n"), ("OpenFst", "".join(f"{q} {q + 1} <eps>\n" for q in range(6_000))),
    ("OpenFst", "".join(f"0 {q} a\n{q} {q * q % 97} a\n{q} {(q + 1) % 97} b\n" for q in range(1_500)) + "5\n"),
    *(("KISS2", f".i {bits}\n.o 1\n" + "".join(f"{'-' * bits} s{q} s{(q + 1) % n} {q % 2}\n" for q in range(n)))
      for bits, n in ((16, 1), (16, 4), (14, 15), (12, 60), (15, 500), (1, 9_000), (10, 240))),
    ("JSON machine", "[" * 50_000), ("JSON machine", "9" * 90_000), ("JSON machine", machine_text([[0]] * 9_000, [1])),
    ("word lines", (json.dumps({"word": "ab" * 20_000, "label": True}) + "\n") * 2), ("word table", "," * 90_000),
]  # fmt: skip


def measured(question: Question, path: Path) -> tuple[str, float, float]:
    """Return the end, the processor seconds and the peak in MB of a question in a fork of this process."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        with suppress(BaseException):
            Path("/proc/self/clear_refs").write_text("5")  # the peak starts at what there is
            before = _megabytes("VmRSS")
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
            end = "answered"
            try:
                with redirect_stdout(StringIO()):
                    question(path)
            except (Exception, SystemExit) as fault:
                end = type(fault).__name__
            used = resource.getrusage(resource.RUSAGE_SELF)
            value = end, used.ru_utime + used.ru_stime, _megabytes("VmHWM") - before
            os.write(writing, json.dumps(value).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return tuple(json.loads(text)) if text else ("killed", math.inf, math.inf)


def _megabytes(name: str) -> float:
    return int(re.findall(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[0]) / 1024


def main(seed: int, kinds: list[str]) -> int:
    """Print a row per input; return the number of rows beyond a limit."""
    rows = [(kind, name, text) for name, text in machines(np.random.default_rng(seed)) for kind in QUESTIONS]
    rows += [(kind, text[:20], text) for kind, text in TEXTS]
    rows = [(kind, name, text.encode()[:LARGEST]) for kind, name, text in rows if not kinds or kind in kinds]
    beyond, warmed = 0, set[str]()
    with tempfile.TemporaryDirectory() as place:
        for kind, name, content in rows:
            reader = READERS.get(kind, READERS["JSON machine"])
            question, limit = QUESTIONS.get(kind, reader.read), ASKED + 1 if kind in QUESTIONS else READ
            path = Path(place) / f"input{reader.ending}"
            for harmless in reader.valid() if kind not in warmed else []:
                path.write_bytes(harmless)
                with suppress(Fsa2LrnnError, OSError), redirect_stdout(StringIO()):
                    question(path)
            warmed.add(kind)
            path.write_bytes(content)
            end, seconds, peak = measured(question, path)
            is_beyond = seconds > limit or peak > MEGABYTES
            beyond += is_beyond
            print(f"{'BEYOND' * is_beyond:6} {kind:12} {seconds:6.2f} s {peak:6.0f} MB  {end:18} {name!r}", flush=True)
    print(f"{len(rows)} inputs of seed {seed}, {beyond} beyond a limit")
    return beyond


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 0, sys.argv[2:]) else 0)
