"""Time and memory of hostile inputs of at most 100 kB: `python -m tests.fuzz.limits [SEED [KIND …]]`.

Each input is read in a fork of a process in which the same question has been answered for harmless ones. Measured are
the processor time of the fork and the peak of its resident memory above that at its start (Linux). Both have limits:
`explain` and `classify` are asked for at most `ASKED` seconds and may take one more; a reader and `check` may take
`READ`; the memory is `MEGABYTES`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fsa2lrnn import MooreMachine, check
from fsa2lrnn.automata.formats import read_source
from fsa2lrnn.automata.monoid import classify
from fsa2lrnn.cli import app
from fsa2lrnn.errors import Fsa2LrnnError
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.nn.checkpoint import digest
from fsa2lrnn.verification.certificate import Certificate
from tests.fuzz.mutate import Reader, given
from tests.fuzz.readers import READERS
from tests.fuzz.worker import attempt, warm

ASKED, READ, MEGABYTES, LARGEST = 2.0, 5.0, 500, 100_000


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


@cache
def rounding_models() -> dict[str, LRNN]:
    """Return models whose steps round and whose outputs are constant, by the digest of their weights."""
    models = list[LRNN]()
    for seed in range(6):
        torch.manual_seed(seed)
        layer = BlockLayerConfig((2 + seed % 3,), 3, 2)
        model = LRNN(LRNNConfig(("a", "b"), (0, 1), (layer,), 4, 3))
        with torch.no_grad():
            model.get_parameter("readout.2.bias").copy_(torch.tensor([1e3, 0]))
        models.append(model)
    return {digest(model.state_dict()): model for model in models}


def claims() -> Iterator[tuple[str, str]]:
    """Yield certificates, all true, of models that round for every length and for more letters than can be read."""
    machine = MooreMachine([[0], [0]], [0], alphabet="ab")
    for sha256 in rounding_models():
        for horizon in (None, 10**6):
            certificate = Certificate(
                horizon=horizon, margins=np.zeros(0), method="enumeration", dtype="float32", scans=("sequential",),
                slack=0.0, sha256=sha256, machine=machine,
            )  # fmt: skip
            yield f"{sha256[:8]} up to {horizon}", json.dumps(certificate.to_json())


def check_claim(path: Path) -> object:
    certificate = Certificate.load(path)
    return check(certificate, rounding_models()[certificate.sha256])


QUESTIONS: dict[str, Callable[[Path], object]] = {
    "explain": lambda path: app(["explain", str(path), "--max-seconds", str(ASKED)], standalone_mode=False),
    "classify": lambda path: classify(read_source(path), max_seconds=ASKED),
    "check": check_claim,
}


def main(seed: int, kinds: list[str]) -> int:
    """Print a row per input; return the number of rows beyond a limit."""
    rows = [(kind, *row) for row in machines(np.random.default_rng(seed)) for kind in ("explain", "classify")]
    rows += [("check", *row) for row in claims()] + [(kind, text[:20], text) for kind, text in TEXTS]
    rows = [(kind, name, text.encode()[:LARGEST]) for kind, name, text in rows if not kinds or kind in kinds]
    beyond, warmed = 0, dict[str, Reader]()
    with tempfile.TemporaryDirectory() as place:
        for kind, name, content in rows:
            limit = ASKED + 1 if kind in ("explain", "classify") else READ
            if kind not in warmed:
                reader = READERS.get(kind, READERS["JSON machine"])
                refuses = (Fsa2LrnnError, OSError, SystemExit, *reader.refuses)
                warmed[kind] = reader._replace(read=QUESTIONS.get(kind, reader.read), refuses=refuses, spare=1 << 40)
                valid = given(content) if kind == "check" else reader.valid
                warm(warmed[kind]._replace(valid=valid), Path(place))
            end, seconds, peak = attempt(warmed[kind], Path(place), content, 60.0)
            is_beyond = seconds > limit or peak > MEGABYTES or end.startswith("!")
            beyond += is_beyond
            print(f"{'BEYOND' * is_beyond:6} {kind:12} {seconds:6.2f} s {peak:6.0f} MB  {end:18} {name!r}", flush=True)
    print(f"{len(rows)} inputs of seed {seed}, {beyond} beyond a limit")
    return beyond


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 0, sys.argv[2:]) else 0)
