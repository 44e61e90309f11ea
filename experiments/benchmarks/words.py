"""Long words on compiled machines: `python -m experiments.benchmarks.words`.

Letters a second of the compiled walks on a model's transition table, beside automata-lib's own simulation and, where it
is installed, google-re2 on an equivalent regular expression. In turns in one process, one thread; medians. Each gets
its words in the form that it reads fastest, made beforehand: ours as numbers of letters, one byte each (and as int64,
the tokens that a model takes), automata-lib as a str, google-re2 as bytes.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from experiments import results_io, script
from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.multi_step import MultiStepTable, walk, walk_words

LETTERS = 100_000_000
SLOW_LETTERS = 1_000_000  # for those that would take minutes
TURNS = 5
BATCH = 2_000
# Machines of one output bit with an equivalent expression for re2: words in which the letters a occur 0 mod n times.
COUNTING = {2: "(?:b*ab*a)*b*", 5: "(?:b*ab*ab*ab*ab*a)*b*"}


def counter(n: int) -> MooreMachine:
    """Return an acceptor of the words over {a, b} with a number of a's that n divides."""
    states = np.arange(n)
    return MooreMachine(np.stack([(states + 1) % n, states]), (states == 0).tolist(), alphabet="ab")


def main() -> None:
    """Measure long words on compiled machines, write results/bench_words.json, print the table."""
    machines: dict[str, tuple[MooreMachine, str | None]] = {
        f"a's counted modulo {n}": (counter(n), COUNTING[n]) for n in COUNTING
    }
    machines["mod_arith(5)"] = (zoo.mod_arith(5).minimise(), None)
    rows = [
        {"machine": name, **measure(machine, pattern)}
        for name, (machine, pattern) in track(machines.items(), description="machines", transient=True)
    ]
    path = results_io.write("bench_words", rows, "python -m experiments.benchmarks.words")
    table = Table("machine", "million letters a second", "times automata-lib", "times google-re2")
    for row in rows:
        for name, rate in row["million_letters_a_second"].items():
            over = row["over"].get(name, {})
            cells = (f"{over[other]:,.1f}" if other in over else "" for other in ("automata-lib", "google-re2"))
            table.add_row(f"{row['machine']}: {name}", f"{rate:,.1f}", *cells)
    Console().print(table, f"one thread; written to {path.name}")


def measure(machine: MooreMachine, pattern: str | None) -> dict:
    """Return median rates on one machine, and ratios of ours to the others."""
    tokens = np.random.default_rng(0).integers(len(machine.alphabet), size=LETTERS).astype(np.uint8)
    leaps, short = MultiStepTable.of(machine.delta), tokens[:SLOW_LETTERS]
    word = "".join(str(machine.alphabet[a]) for a in short)
    batch = tokens[: LETTERS // BATCH * BATCH].reshape(BATCH, -1)
    some = tokens[: SLOW_LETTERS // BATCH * BATCH].reshape(BATCH, -1)
    starts, states = np.full(BATCH, machine.start), np.empty(some.shape, np.int64)
    wide, words = batch[:, : batch.shape[1] // 8 + 1].astype(np.int64), f"{BATCH:,} words"
    ours: dict[str, tuple[int, Callable[[], object]]] = {
        f"one word, {leaps.m} letters at a time": (LETTERS, lambda: leaps.final(machine.start, tokens)),
        f"{words}, {leaps.m} letters at a time": (batch.size, lambda: leaps.finals(starts, batch)),
        f"{words}, int64, {leaps.m} letters at a time": (wide.size, lambda: leaps.finals(starts, wide)),
        "one word, every state kept": (SLOW_LETTERS, lambda: walk(machine.delta, machine.start, short)),
        f"{words}, every state kept": (some.size, lambda: walk_words(machine.delta, starts, some, states)),
    }
    others: dict[str, tuple[int, Callable[[], object]]] = {}
    if machine.is_acceptor:
        automaton = machine.to_automata()
        others["automata-lib"] = (SLOW_LETTERS, lambda: automaton.accepts_input(word))
    if pattern is not None and importlib.util.find_spec("re2") is not None:
        import re2  # pyright: ignore[reportMissingImports] - a baseline, where it is installed

        expression, text = re2.compile(pattern), "".join(map(str, machine.alphabet)).encode()
        letters = np.frombuffer(text, np.uint8)[tokens].tobytes()
        others["google-re2"] = (LETTERS, lambda: expression.fullmatch(letters))
    _check(machine, leaps, tokens, batch)
    rates = _rates({**ours, **others})
    over = {name: {other: rates[name] / rates[other] for other in others} for name in ours}
    return {"states": machine.n_states, "letters": LETTERS, "million_letters_a_second": rates, "over": over}


def _check(machine: MooreMachine, leaps: MultiStepTable, tokens: np.ndarray, batch: np.ndarray) -> None:
    ends = [walk(machine.delta, machine.start, word)[-1] for word in batch]
    if leaps.final(machine.start, tokens) != walk(machine.delta, machine.start, tokens)[-1]:
        raise SystemExit("leaps lead elsewhere than single steps")
    if leaps.finals(np.full(len(batch), machine.start), batch).tolist() != ends:
        raise SystemExit("leaps over a batch lead elsewhere than single steps")


def _rates(actions: dict[str, tuple[int, Callable[[], object]]]) -> dict[str, float]:
    """Return millions of letters per second of each action; actions take turns, and a first turn warms up."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(TURNS + 1):
        for name, (_, action) in actions.items():
            start = time.perf_counter()
            action()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: actions[name][0] / statistics.median(seconds) / 1e6 for name, seconds in times.items()}


if __name__ == "__main__":
    script.run(main)
