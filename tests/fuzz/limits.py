"""Time and memory of 200 hostile inputs of at most 100 kB: `python -m tests.fuzz.limits [SEED [KIND …]]`.

Each input is read in a fork of a process in which the same question has been answered for a harmless input, so that
modules are imported and kernels compiled. Measured are the processor time of the fork, and the peak of its resident
memory above that at its start (VmHWM of /proc/self/status, Linux). Both have limits: `explain` and `classify` are asked
for at most `ASKED` seconds and may take one more, a reader and a check may take `READ`; the memory is `MEGABYTES`.
"""

from __future__ import annotations

import json
import math
import os
import random
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


def machine_text(maps: list[Any], outputs: list[Any]) -> str:
    """Return a machine in this library's JSON."""
    letters = [f"x{a}" for a in range(len(maps))]
    delta = [np.asarray(row).tolist() for row in maps]
    value = {"format": "fsa2lrnn-machine", "version": 1, "alphabet": letters, "outputs": outputs, "start": 0}
    return json.dumps(value | {"delta": delta}, separators=(",", ":"))


def machines(rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Yield names and texts of machines with large monoids, groups, cycles, alphabets and sets of outputs."""

    def flags(n: int) -> list[int]:
        return rng.integers(0, 2, n).tolist()

    for n, k in [(60, 2), (100, 100), (300, 2), (1000, 3), (2000, 2), (2000, 4), (3000, 1), (9, 2000)]:
        yield f"{k} random maps of {n}", machine_text(list(rng.integers(0, n, (k, n))), flags(n))
    for n, k in [(8, 2), (12, 6), (30, 2), (60, 6), (200, 2), (500, 3), (2000, 2), (4000, 1)]:
        yield f"{k} permutations of {n}", machine_text([rng.permutation(n) for _ in range(k)], flags(n))
    for n in (6, 8, 12, 40, 150, 800):
        cycle, swap, merge = (np.arange(n) for _ in range(3))
        swap[:2], merge[0] = (1, 0), 1
        maps = [np.roll(cycle, -1), swap, merge]
        yield f"all maps of {n}", machine_text(maps, [q == 0 for q in range(n)])
        yield f"symmetric group on {n}", machine_text(maps[:2], [q == 0 for q in range(n)])
        many = [[q % max(2, n // 3), str(q)] for q in range(n)]
        yield f"all maps of {n}, many outputs", machine_text(maps, [{"tuple": each} for each in many])
    for n in (50, 500, 5000):
        up, down = np.minimum(np.arange(n) + 1, n - 1), np.maximum(np.arange(n) - 1, 0)
        yield f"chain of {n}", machine_text([up], [q == n - 1 for q in range(n)])
        yield f"elevator of {n}", machine_text([up, down], [q == n - 1 for q in range(n)])
        yield f"chain of {n}, {n} outputs", machine_text([up], list(range(n)))
        yield f"cycle of {n}", machine_text([np.roll(np.arange(n), -1)], [q == 0 for q in range(n)])
    for bits in (5, 8, 11):
        n = 1 << bits
        shift = [(2 * np.arange(n) + b) % n for b in (0, 1)]
        yield f"last {bits} letters", machine_text(shift, [q >= n // 2 for q in range(n)])
        yield f"parity of the last {bits} letters", machine_text(shift, [q.bit_count() % 2 for q in range(n)])
    primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71]
    for count in (5, 10, 20):
        ends = np.cumsum(primes[:count])
        cycles = np.concatenate([np.roll(np.arange(end - p, end), -1) for p, end in zip(primes, ends, strict=False)])
        jump = np.roll(np.arange(ends[-1]), -2)
        yield f"cycles of {count} primes", machine_text([cycles, jump], flags(int(ends[-1])))
    for n in (4, 5, 6):  # products of resets and permutations of pairs
        pairs = np.arange(n**3).reshape(n, n, n)
        maps = [np.roll(pairs, 1, 0), pairs.transpose(1, 0, 2), np.roll(pairs, 1, 2), np.zeros_like(pairs)]
        maps.append(np.where(np.arange(n)[:, None, None] == 0, np.roll(pairs, 1, 1), pairs))
        yield f"wreath of {n}", machine_text([m.ravel() for m in maps], flags(n**3))
    letters = [np.where(np.arange(10) == a % 10, a // 10 % 10, np.arange(10)) for a in range(100)]
    yield "100 assignments of 10", machine_text(letters, list(range(10)))
    partial = [np.where(rng.random(400) < 0.5, 399, rng.integers(0, 400, 400)) for _ in range(8)]
    yield "8 partial maps of 400", machine_text(partial, [*flags(399), 0])


def readers(rng: random.Random) -> Iterator[tuple[str, str, bytes]]:
    """Yield the reader, the name and the content of files that claim much in few bytes, or nest, or repeat."""
    n = 4_000
    for text in (
        "(a|b)*a" + "(a|b)" * 25, "(" * n + "a" + ")" * n, "(a?)" * n, "((a*)*)*" * 300, "[a-z]" * n,
        "(a|b|c|d)*" * 500, "a{1000}" * 3, "(a{30}){30}", "(((a|b){9}){9}){9}", ".*" * n, "a|" * n + "b",
    ):  # fmt: skip
        yield "regex", text[:20], text.encode()
    head = "digraph {\n"
    for name, text in {
        "deep": head + "subgraph {" * 9_000 + "}" * 9_001, "unclosed": head + '"' + "x" * 90_000,
        "nondeterministic": head + "".join(f'{q}->{q + 1}[label="a,b"];{q}->0[label=a];' for q in range(2_000)) + "}",
        "many letters": head + "".join(f'0->1[label="l{i}"];' for i in range(4_000)) + "}",
        "complete": head + "->".join("{" + " ".join(map(str, range(300))) + "}" for _ in range(2)) + "[label=a]}",
        "attributes": head + "a[" + "x=y," * 20_000 + "]}", "html": head + "a[label=<" + "<b>" * 20_000 + ">]}",
    }.items():  # fmt: skip
        yield "DOT", name, text.encode()
    for name, text in {
        "deep": "<structure>" + "<a>" * 30_000, "entities": '<!DOCTYPE x [<!ENTITY a "' + "b" * 99 + '">]><x>&a;</x>',
        "states": "<structure><type>fa</type><automaton>" + '<state id="1"/>' * 5_000 + "</automaton></structure>",
        "loops": "<structure><type>fa</type><automaton>"
        + "".join(f'<state id="{q}"><initial/></state>' for q in range(900))
        + "".join(f"<transition><from>{q}</from><to>{q * 7 % 900}</to><read>a</read></transition>" for q in range(900))
        + "</automaton></structure>",
    }.items():  # fmt: skip
        yield "JFLAP", name, text.encode()
    for name, text in {
        "states": "0 999999999 a\n999999999\n", "many": "".join(f"{q} {q + 1} l{q}\n" for q in range(6_000)) + "9\n",
        "subsets": "".join(f"0 {q} a\n{q} {(q * q) % 97} a\n{q} {(q + 1) % 97} b\n" for q in range(1_500)) + "5\n",
        "epsilons": "".join(f"{q} {q + 1} <eps>\n" for q in range(6_000)) + "6000\n",
    }.items():  # fmt: skip
        yield "OpenFst", name, text.encode()
    for bits, rows in ((16, 1), (16, 4), (14, 15), (12, 60), (15, 500), (1, 9_000), (10, 240)):
        many = "".join(f"{'-' * bits} s{q} s{(q + 1) % rows} {q % 2}\n" for q in range(rows))[: LARGEST - 99]
        yield "KISS2", f"{bits} don't-cares, {rows} rows", f".i {bits}\n.o 1\n{many}".encode()
    yield (
        "KISS2",
        "any state",
        (".i 9\n.o 1\n" + "- * s1 1\n" + "".join(f"{'-' * 9} s{q} s0 1\n" for q in range(900))).encode(),
    )
    for name, text in {
        "deep": "[" * 50_000,
        "deep symbol": '{"format": "fsa2lrnn-machine", "version": 1, "alphabet":[' + '{"tuple":[' * 9_000,
        "number": "9" * 90_000, "float": "1e999999", "keys": "{" + '"a":1,' * 14_000 + '"b":1}',
        "letters": machine_text([[0]] * 9_000, [True]), "states": machine_text([[0] * 30_000], [1] * 30_000),
        "not numbers": machine_text([[0, 1]], [True, 1]), "ragged": machine_text([[0], [0, 1]], [1, 2]),
    }.items():  # fmt: skip
        yield "JSON machine", name, text.encode()[:LARGEST]
    for i in range(36):
        kind = (
            "word lines", "word table", "settings", "model", "certificate", "family certificate", "proof certificate",
            "refusal certificate", "sweep TOML",
        )[i % 9]  # fmt: skip
        content = READERS[kind].hostile(random.Random(f"{rng.random()}"))
        if len(content) <= LARGEST:
            yield kind, f"mutant {i}", content
    yield "word lines", "long words", (json.dumps({"word": "ab" * 20_000, "label": True}) + "\n").encode() * 2
    yield "word lines", "many words", b"".join(b'{"word": "%x", "label": true}\n' % i for i in range(2_500))
    yield "word table", "wide", b"," * 90_000
    yield "word table", "quoted", b'word,label\n"' + b'""' * 40_000


def checks(folder: Path) -> Iterator[tuple[str, Question]]:
    """Yield checks of certificates that claim every length, or more letters than can be read, for models that round."""
    import torch

    from fsa2lrnn import compile_machine, zoo
    from fsa2lrnn.nn.config import LayerConfig, LRNNConfig
    from fsa2lrnn.nn.model import LRNN
    from fsa2lrnn.nn.tensor_file import digest
    from fsa2lrnn.verification.certificate import Certificate
    from fsa2lrnn.verification.check import check

    for seed in range(12):
        torch.manual_seed(seed)
        machine = zoo.sum_mod(2 + seed % 3)
        layers = (LayerConfig.of((2 + seed % 3,)),) if hasattr(LayerConfig, "of") else None
        config = compile_machine(machine).config
        model = LRNN(config if layers is None else LRNNConfig(machine.alphabet, machine.outputs, layers))
        goal = machine if seed % 2 else compiled_function(model)
        for horizon in (None, 10**6):
            certificate = Certificate(
                horizon=horizon, margins=np.zeros(0), method="enumeration", dtype="float32", scans=("sequential",),
                slack=0.0, sha256=digest(model.state_dict()), machine=goal,
            )  # fmt: skip
            path = folder / f"certificate-{seed}-{horizon}.json"
            certificate.save(path)
            size = path.stat().st_size
            yield f"enumeration, {size:,} bytes", lambda _, path=path, model=model: check(Certificate.load(path), model)


def compiled_function(model: Any) -> Any:
    """Return a machine of one state that never disagrees: its outputs do not count but one."""
    from fsa2lrnn.automata.machine import MooreMachine

    tokens = [model.outputs[0]]
    return MooreMachine(np.zeros((len(model.alphabet), 1), int), tokens, 0, model.alphabet)


def measured(question: Question, path: Path) -> tuple[str, float, float]:
    """Return the end, the processor seconds and the peak in MB of a question in a fork of this process."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        with suppress(BaseException):
            Path("/proc/self/clear_refs").write_text("5")  # the peak starts at what there is
            before, sink = _megabytes("VmRSS"), os.open(os.devnull, os.O_WRONLY)
            os.dup2(sink, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
            end = "answered"
            try:
                with redirect_stdout(StringIO()):
                    question(path)
            except SystemExit as fault:
                end = f"exit {fault.code}"
            except Exception as fault:
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


def rows(seed: int, folder: Path) -> Iterator[tuple[str, str, Question, bytes, float]]:
    """Yield all inputs: the kind, the name, the question, the content of the file, and the seconds allowed."""

    def explain(path: Path) -> None:
        app(["explain", str(path), "--max-seconds", str(ASKED)], standalone_mode=False)

    def ask(path: Path) -> None:
        classify(read_source(path), max_seconds=ASKED)

    for name, text in machines(np.random.default_rng(seed)):
        for kind, question in (("explain", explain), ("classify", ask)):
            if len(text) <= LARGEST:
                yield kind, name, question, text.encode(), ASKED + 1
    for kind, name, content in readers(random.Random(seed)):
        yield kind, name, READERS[kind].read, content[:LARGEST], READ
    for name, question in checks(folder):
        yield "check", name, question, b"", READ


def main(seed: int, kinds: list[str]) -> int:
    """Print a row per input and the largest per kind; return the number of rows beyond a limit."""
    worst: dict[str, tuple[int, float, float]] = {}
    beyond = count = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        warmed = set[str]()
        for i, (kind, name, question, content, limit) in enumerate(rows(seed, folder)):
            if kinds and kind not in kinds:
                continue
            ending = ".json" if kind in ("explain", "classify") else READERS[kind].ending if kind in READERS else ""
            path = folder / f"input-{i}{ending}"
            if kind not in warmed:
                warmed.add(kind)
                harmless = (
                    READERS[kind].valid()
                    if kind in READERS
                    else [machine_text([[1, 0], [0, 0]], [True, False]).encode()]
                )
                for each in harmless:
                    path.write_bytes(each)
                    with suppress(Fsa2LrnnError, OSError), redirect_stdout(StringIO()):
                        question(path)
            path.write_bytes(content)
            end, seconds, peak = measured(question, path)
            is_beyond = seconds > limit or peak > MEGABYTES
            beyond, count = beyond + is_beyond, count + 1
            most = worst.get(kind, (0, 0.0, 0.0))
            worst[kind] = most[0] + 1, max(most[1], seconds), max(most[2], peak)
            print(
                f"{'BEYOND' if is_beyond else '':6} {kind:20} {seconds:6.2f} s {peak:6.0f} MB  {end:18} {name!r}",
                flush=True,
            )
    print(f"\n{'kind':20} inputs  most seconds  most MB")
    for kind, (inputs, seconds, peak) in worst.items():
        print(f"{kind:20} {inputs:6} {seconds:13.2f} {peak:8.0f}")
    print(f"{count} inputs of seed {seed}, {beyond} beyond a limit")
    return beyond


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 0, sys.argv[2:]) else 0)
