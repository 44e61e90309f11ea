"""Large machines: `python -m experiments.benchmarks.machines`.

Minimising a million transitions, compiling 10,000 states × 256 letters, proving and extracting it, and the congruences
of 256 states. Each job runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments import results_io, script
from fsa2lrnn.automata import MooreMachine, minimise

T = TypeVar("T")

SEED = 0


def random_machine(n_states: int, n_letters: int) -> MooreMachine:
    """Return a uniformly random complete acceptor; almost surely nearly minimal."""
    rng = np.random.default_rng(SEED)
    accepting = rng.integers(0, 2, n_states).astype(bool).tolist()
    return MooreMachine(rng.integers(0, n_states, (n_letters, n_states)), accepting)


def minimise_a_million_transitions() -> dict:
    """Minimise a machine of 100,000 states and 10 letters with Hopcroft's algorithm."""
    minimise(random_machine(10, 2))  # loads the compiled kernels
    machine = random_machine(100_000, 10)
    seconds, minimal = clock(lambda: minimise(machine))
    return {"seconds": seconds, "minimal_states": minimal.n_states}


def minimise_a_long_chain() -> dict:
    """Minimise a chain of a million states over one letter, which takes as many rounds in round-based algorithms."""
    n = 1_000_000
    machine = MooreMachine(np.minimum(np.arange(n) + 1, n - 1)[None], (np.arange(n) == n - 1).tolist())
    seconds, minimal = clock(lambda: minimise(machine))
    return {"seconds": seconds, "minimal_states": minimal.n_states}


def compile_10000_by_256() -> dict:
    """Compile, prove and extract a machine of 10,000 states and 256 letters."""
    from fsa2lrnn.compile.lower import compile_machine
    from fsa2lrnn.verification import Proved, prove_equivalent
    from fsa2lrnn.verification.extraction import extract

    machine = random_machine(10_000, 256)
    compile_seconds, model = clock(lambda: compile_machine(machine))
    memory = peak_mebibytes()
    prove_seconds, verdict = clock(lambda: prove_equivalent(model, machine))
    extract_seconds, back = clock(lambda: extract(model))
    if not isinstance(verdict, Proved) or back != machine.minimise():
        raise SystemExit("the compiled machine is wrong")
    return {
        "seconds": compile_seconds,
        "peak_MiB_after_compiling": memory,
        "prove_seconds": prove_seconds,
        "transitions_proved": verdict.transitions,
        "extract_seconds": extract_seconds,
    }


def congruences_of_256_states() -> dict:
    """Compute the lattice of congruences of four machines of 256 states; "seconds" is the slowest."""
    from fsa2lrnn.cascade.congruence import lattice

    states = np.arange(256)
    machines = {
        "random, 4 letters": random_machine(256, 4).delta,
        "Z2^8, 8 letters": np.stack([states ^ (1 << bit) for bit in range(8)]),
        "shift register of 8 bits": np.stack([states << 1 & 255, (states << 1 & 255) | 1]),
        "all resets and the identity": np.concatenate([states[None], np.repeat(states[:, None], 256, axis=1)]),
    }
    lattice(np.array([[1, 2, 0], [0, 0, 2]]))  # loads the compiled kernels
    found = {name: clock(lambda maps=maps: lattice(maps)) for name, maps in machines.items()}
    return {
        "seconds": max(seconds for seconds, _ in found.values()),
        **{name: f"{seconds:.2f} s, {congruences.method}" for name, (seconds, congruences) in found.items()},
    }


JOBS: dict[str, Callable[[], dict]] = {
    job.__name__: job
    for job in (
        minimise_a_million_transitions,
        minimise_a_long_chain,
        compile_10000_by_256,
        congruences_of_256_states,
    )
}


def clock(action: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds that an action takes, and its result."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def peak_mebibytes() -> float:
    """Return the peak resident memory of this process, including the interpreter and torch."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Run every job in a process of its own; write results/bench_machines.json and print the table."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        results = {name: pool.submit(job).result() for name, job in JOBS.items()}
    path = results_io.write("bench_machines", results, "python -m experiments.benchmarks.machines")
    table = Table("job", "seconds", "besides")
    for name, result in results.items():
        rest = ", ".join(
            f"{key.replace('_', ' ')} {value:,.1f}" if isinstance(value, float) else f"{key.replace('_', ' ')} {value}"
            for key, value in result.items()
            if key != "seconds"
        )
        table.add_row(name.replace("_", " "), f"{result['seconds']:.2f}", rest)
    Console().print(table, f"written to {path.name}")


if __name__ == "__main__":
    script.run(main)
