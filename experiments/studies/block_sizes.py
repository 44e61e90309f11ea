"""Least block sizes of the machines of the zoo: `python -m experiments.studies.block_sizes` (docs/theory.md §9).

Both bounds of every size are certificates that the checker, which shares no code with the search, has accepted. The
study includes random machines that were not used during development.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from rich.progress import track

from experiments import results_io, script
from experiments.machines import of_zoo
from experiments.signed_blocks import signed_blocks
from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.families.block_sizes import FIELDS, analysed, minimal_block
from fsa2lrnn.families.block_sizes.chain import chain
from fsa2lrnn.families.block_sizes.constituents import ModuleKind
from fsa2lrnn.families.block_sizes.needs import BlockNeeds, needs
from fsa2lrnn.families.function_modules import classes

NAMED = (
    "parity", *(f"sum_mod({n})" for n in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)),
    *(f"even_pair({n})" for n in (2, 3, 4, 5)), *(f"cycle_navigation({n})" for n in (5, 8)),
    *(f"tomita({i})" for i in range(1, 8)), *(f"dyck(1, {k})" for k in (2, 3, 4, 6)), "dyck(2, 2)", "dyck(2, 3)",
    "dyck(3, 2)", "ab_star", "flip_flop", *(f"shift_register({k})" for k in range(1, 6)),
    *(f"resettable_counter({n})" for n in (3, 4, 5)), *(f"elevator({n})" for n in (3, 4, 5, 6)), "contains(abaab)",
    *(f"remainder({n})" for n in (3, 5, 6, 7, 8)), *(f"length_mod({n})" for n in (3, 5, 8)),
    *(f"group({g})" for g in ("S3", "S4", "S5", "A4", "A5", "Q8", *(f"D{n}" for n in (3, 4, 5, 6, 7, 8)))),
    *(f"group({g})" for g in ("Z60", "Z2xZ3xS3", "Z4xZ2", "Z5xZ4xZ3")),
    *(f"subtraction({M})" for M in (2, 3, 4, 5, 6, 7)),
    *(f"mod_arith({M})" for M in (2, 3, 4, 5)),
    *(f"mod_arith({M}, completion={how})" for M in (2, 3, 4, 5) for how in ("ignore", "running", "operator", "eager")),
    *(f"mod_arith({M}, completion=register)" for M in (2, 3, 4, 5)), *(f"cerny({n})" for n in (3, 4, 5, 6, 8, 9)),
    "all_maps(3)", "all_maps(4)",
)  # fmt: skip
HELD_OUT = tuple(f"random_dfa({4 + i % 9}, {2 + i % 2}, seed={1_000 + i}, minimal=true)" for i in range(60))
DRAWN_CHAINS = ("even_pair(3)", "subtraction(3)")  # whose chains are drawn
BUDGET = 120.0  # seconds a question


def main() -> None:
    """Bound every size, check both certificates, and write results/block_sizes.json."""
    rows = [row(source) for source in track(NAMED, description="machines", transient=True)]
    held_out = [row(source) for source in track(HELD_OUT, description="machines held out", transient=True)]
    chains = {source: levels(source) for source in DRAWN_CHAINS}
    command = "python -m experiments.studies.block_sizes"
    path = results_io.write("block_sizes", {"machines": rows, "held_out": summary(held_out), "chains": chains}, command)
    met = sum(line[field]["lower"] == line[field]["upper"] for line in rows for field in FIELDS.values())
    print(f"{met} of {3 * len(rows)} sizes exact, both bounds proved; written to {path.name}")


def row(source: str) -> dict[str, Any]:
    """Return the block sizes of one machine, with the seconds of the search."""
    machine, facts = of_zoo(source)
    begun = time.process_time()
    found = needs(machine, BUDGET)
    seconds = time.process_time() - begun
    check(found)
    signed = signed_blocks(machine)
    columns = signed and {"lower": signed.lower, "upper": signed.upper, "note": signed.note}
    return {**facts, **found.to_json(), "columns": columns, "seconds": round(seconds, 2)}


def check(found: BlockNeeds) -> None:
    """Check both bounds with the independent checker."""
    for answer in found.blocks.values():
        answer.check()


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many bounds meet for random machines, those that do not, and how far the sizes are below n − 1."""
    met = {name: sum(line[name]["lower"] == line[name]["upper"] for line in rows) for name in FIELDS.values()}
    gaps = [line for line in rows if any(line[name]["lower"] < line[name]["upper"] for name in FIELDS.values())]
    below = Counter(line["states"] - 1 - line["real"]["upper"] for line in rows)
    return {
        "machines": len(rows),
        "met": met,
        "open": gaps,
        "real_size_below_all_functions": {str(k): below[k] for k in sorted(below)},
    }


def levels(source: str) -> dict[str, Any]:
    """Return the chain of a machine over the reals: the constituents that enter at each level, and separated states."""
    machine, _ = of_zoo(source)
    module, kinds = analysed(machine, lambda: None)
    if kinds is None:
        raise SystemExit(f"{source}: its constituents were not found")
    found = chain(module, kinds, "R", lambda: None)
    last = minimal_block(machine, "R").upper
    return {
        "states": [name(machine, q) for q in range(machine.n_states)],
        "levels": [
            {
                "size": c,
                "enters": [entry(kinds[copy.kind], copy.kind) for copy in found.copies if copy.level == c],
                "classes": classes(found.rows(c)) if found.sizes[c] else [0] * machine.n_states,
            }
            for c in range(last + 1)
        ],
    }


def entry(kind: ModuleKind, number: int) -> dict[str, int]:
    """Return the JSON of a copy of a kind: its number, dimension over the rationals and weight over the reals."""
    return {"kind": number, "dimension": kind.dimension, "weight": kind.weight("R")}


def name(machine: MooreMachine, q: int) -> str:
    """Return a state as text: the shortest word that leads to it."""
    words: dict[int, tuple[object, ...]] = {machine.start: ()}
    queue = [machine.start]
    for p in queue:
        for a, letter in enumerate(machine.alphabet):
            target = int(machine.delta[a, p])
            if target not in words:
                words[target] = (*words[p], letter)
                queue.append(target)
    return "".join(map(str, words[q])) or "ε"


if __name__ == "__main__":
    script.run(main)
