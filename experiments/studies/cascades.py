"""Machines as cascades of small blocks: `python -m experiments.studies.cascades` (docs/theory.md §6).

Every cascade is compiled and proved equal to its machine on all words, in float32 and bfloat16, for both scans; where a
limit is reached the table names it. The references are results to meet or beat: the script stops at one that is missed,
at a proof that fails, and at an expression of ModArith(5) that a network gets wrong.
"""

from __future__ import annotations

import re
import time
from itertools import accumulate, product
from operator import mul
from typing import NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from experiments import results_io, script
from fsa2lrnn.automata import MooreMachine, minimise, zoo
from fsa2lrnn.automata.monoid.elements import enumerate_monoid
from fsa2lrnn.automata.monoid.facts import Action
from fsa2lrnn.cascade.decomposition import Decomposition
from fsa2lrnn.compile.choice import best_cascade, choose
from fsa2lrnn.compile.gated_cascade import stack_recurrence
from fsa2lrnn.compile.lower import compile_machine, lower
from fsa2lrnn.errors import NotExact, NotExpressible
from fsa2lrnn.nn import LRNN
from fsa2lrnn.nn.scans import METHODS
from fsa2lrnn.symbols import encode
from fsa2lrnn.verification import Proved, prove_equivalent


class Reference(NamedTuple):
    """A result to meet or beat: the largest block, the layers and the blocks per layer, None if unspecified."""

    source: str
    largest: int
    layers: int | None = None
    heads: int | None = None
    max_block: int | None = None
    token_shift: bool = True


MODULUS = 5
REGISTER, EAGER = "mod_arith(5, completion=register)", "mod_arith(5, completion=eager)"
REFERENCES = (
    Reference("sum_mod(5)", 5, 1),
    Reference("even_pair(5)", 1, 3),
    Reference(REGISTER, 5, 2),
    Reference(REGISTER, 8, 3, heads=8, max_block=8, token_shift=False),
    Reference(EAGER, 5, 3, heads=8, max_block=8, token_shift=False),
    Reference("parity", 1, 1),
    *(Reference(f"dyck(2, {depth})", 1, depth + 1) for depth in (3, 4, 5)),
    Reference("group(Z60)", 5, 1),
    Reference("group(S5)", 5, 1),
    Reference("group(A5)", 5, 1),
    *(Reference(f"tomita({i})", 3, max_block=3) for i in range(1, 8)),
)
MACHINES = tuple(source for source in zoo.ZOO if source not in {reference.source for reference in REFERENCES})
RANDOM = (
    *(f"random_dfa({n}, 2, seed={seed}, minimal=true)" for n in (6, 8, 10, 12) for seed in range(3)),
    "random_dfa(35, 4, seed=0)",
)
DTYPES = (torch.float32, torch.bfloat16)
MAX_MONOID = 100_000
OPERANDS = 4  # all expressions of at most so many digits are evaluated
LENGTHS = {499: 64, 99_999: 1}  # random expressions of so many letters, and how many of them
NOTES = {
    "cost": "Σ b³ over the true blocks, b = 1 for a channel, + gate units + 256 a layer: decomposition/cascade.py",
    "scan_padded": "Σ b³ as the module computes it: it pads the blocks of a layer to the largest among them",
    "bound": "the largest prime found to divide the order of a group in the machine: some component moves so many "
    "states round a cycle in every cascade",
    "seconds": "to decompose, to make the gates and to compile into float32: one run, on a machine that did other work",
}


def main() -> None:
    """Decompose, compile, prove and compare machines; write results/cascade_table.json, print the table."""
    references = [reference_row(r) for r in track(REFERENCES, description="references", transient=True)]
    machines = [row(source) for source in track(MACHINES, description="machines", transient=True)]
    drawn = [row(source) for source in track(RANDOM, description="random machines", transient=True)]
    expressions = [mod_arith(r) for r in REFERENCES if r.source in (REGISTER, EAGER)]
    results = {
        "notes": NOTES,
        "references": references,
        "machines": machines,
        "random": drawn,
        "mod_arith": expressions,
    }
    path = results_io.write("cascade_table", results, "python -m experiments.studies.cascades")
    table = Table(
        Column("machine", min_width=30), "states", "layers of blocks", "shift", "bound", "cost", "one layer", "ref"
    )
    for rows in (references, machines, drawn):
        for line in rows:
            table.add_row(*_cells(line))
        table.add_section()
    note = f"{len(expressions)} networks right on all {expressions[0]['expressions']:,} short expressions and long ones"
    Console(width=150).print(table, f"{note}; written to {path.name}")


def reference_row(reference: Reference) -> dict:
    """Return a row with its reference. Raises `SystemExit` if the reference is missed."""
    found = row(reference.source, reference.max_block, reference.token_shift)
    wanted = {name: getattr(reference, name) for name in ("largest", "layers", "heads")}
    return {**found, "reference": {**wanted, "result": compare(found, reference)}}


def compare(found: dict, reference: Reference) -> str:
    """Return "met", or "beaten" if blocks or layers are fewer than in a reference that specifies both."""
    if "limit" in found:
        raise SystemExit(f"no cascade for {reference.source}: {found['limit']}")
    ours = found["largest"], found["layers"]
    wanted = reference.largest, reference.layers or ours[1]
    heads = max(map(len, found["block_sizes"]))
    if ours[0] > wanted[0] or ours[1] > wanted[1] or heads > (reference.heads or heads):
        raise SystemExit(
            f"the reference for {reference.source} is missed: blocks {found['block_sizes']}, where {reference.largest} "
            f"in {reference.layers} layers is known"
        )
    return "met" if reference.layers is None or ours == wanted else "beaten"


def row(source: str, max_block: int | None = None, token_shift: bool = True) -> dict:
    """Return the cost of a machine as a cascade and as one layer; "limit" if no cascade is found."""
    machine = minimise(zoo.from_task(source))
    monoid = enumerate_monoid(Action.of(machine), MAX_MONOID)
    facts = {
        "machine": source,
        "max_block": max_block,
        "token_shift_allowed": token_shift,
        "states": machine.n_states,
        "letters": len(machine.alphabet),
        "monoid": monoid.size if monoid.whole else f"more than {MAX_MONOID:,}",
        # With blocks of any size allowed the choice is one layer, and no cascade is looked for.
        "one_layer": choose(machine, machine.n_states).onehot.total,
    }
    start = time.perf_counter()
    try:
        found = best_cascade(machine, max_block, token_shift)
    except NotExpressible as error:
        return {**facts, "limit": str(error)}
    model = lower(stack_recurrence(found.cascade))
    seconds = time.perf_counter() - start
    return {**facts, **described(found), "proofs": proofs(found, model, machine), "seconds": round(seconds, 2)}


def described(found: Decomposition) -> dict:
    """Return a decomposition as JSON values."""
    cascade, cost = found.cascade, found.cost
    sizes = cascade.block_sizes
    return {
        "layers": cascade.n_layers,
        "largest": cascade.max_block,
        "block_sizes": [list(layer) for layer in sizes],
        "components": [
            {"layer": component.layer, "states": component.n_states, "kind": component.kind}
            for component in cascade.components
        ],
        "token_shift": cascade.has_reads and not cascade.reads_now,
        "joint_states": len(cascade.states),
        "bound": {
            "prime": found.bound.prime,
            "complete": found.bound.complete,
            "largest_permuted": found.largest_permuted,
            "met": found.meets_bound,
        },
        "cost": {
            "total": cost.total,
            "scan": cost.scan,
            "scan_padded": sum(len(layer) * max(layer) ** 3 for layer in sizes),
            "step": cost.step,
            "units": cost.units,
        },
    }


def proofs(found: Decomposition, model: LRNN, machine: MooreMachine) -> dict[str, str]:
    """Return the proof in each dtype, or the limit. Raises `SystemExit` for anything but a proof for every scan."""
    answers: dict[str, str] = {}
    for dtype in DTYPES:
        name = str(dtype).removeprefix("torch.")
        try:
            network = model if dtype == model.dtype else lower(stack_recurrence(found.cascade), dtype)
        except NotExact as error:
            answers[name] = f"refused: {error}"
            continue
        verdict = prove_equivalent(network, machine)
        if not isinstance(verdict, Proved) or set(verdict.scans) != set(METHODS):
            raise SystemExit(f"the network for {machine} in {name} is not proved: {verdict}")
        answers[name] = f"equal on all words: {verdict.pairs:,} joint states, {verdict.transitions:,} transitions"
    return answers


def mod_arith(reference: Reference) -> dict:
    """Evaluate expressions with a compiled ModArith(5) in float32. Raises `SystemExit` for a wrong digit."""
    machine = zoo.from_task(reference.source)
    model = compile_machine(machine, "cascade", reference.max_block, reference.token_shift)
    texts = [text for n in range(1, OPERANDS + 1) for text in every_expression(n)]
    generator = np.random.default_rng(0)
    result: dict = {"machine": reference.source, "token_shift_allowed": reference.token_shift, "operands": OPERANDS}
    result |= {"expressions": len(texts), "digits_right": check_digits(model, texts)}
    for length, count in LENGTHS.items():
        words = [random_expression((length + 1) // 2, MODULUS, generator) for _ in range(count)]
        result[f"digits_right_of_{length}_letters"] = check_digits(model, words)
    return result


def random_expression(n_digits: int, modulus: int, rng: np.random.Generator) -> str:
    """Return `n_digits` random digits below `modulus` as a string, with operators drawn from + − * between them.

    >>> random_expression(4, 5, np.random.default_rng(0))
    '4+3+2+1'
    """
    digits = rng.integers(modulus, size=n_digits)
    operators = rng.choice(list("+-*"), size=n_digits - 1)
    return str(digits[0]) + "".join(f"{op}{digit}" for op, digit in zip(operators, digits[1:], strict=True))


def check_digits(model: LRNN, texts: list[str]) -> str:
    """Compare the output after every digit with the value so far by Python's integers; return the number of digits."""
    digits = 0
    by_length: dict[int, list[str]] = {}
    for text in texts:
        by_length.setdefault(len(text), []).append(text)
    for group in by_length.values():
        tokens = torch.from_numpy(np.stack([encode(text, model.alphabet) for text in group]))
        with torch.no_grad():
            given = model(tokens)[:, ::2].argmax(-1)
        values = torch.tensor([[model.outputs.index(v % MODULUS) for v in values_along(text)] for text in group])
        if not torch.equal(given, values):
            wrong = group[int((given != values).any(-1).nonzero()[0])]
            raise SystemExit(f"a digit of {wrong[:80]} is evaluated wrongly")
        digits += values.numel()
    return f"{digits:,} of {digits:,}"


def every_expression(n_digits: int) -> list[str]:
    """Return all expressions of so many digits below 5.

    >>> len(every_expression(2)), every_expression(2)[7]
    (75, '0-2')
    """
    digits = "".join(map(str, range(MODULUS)))
    return ["".join(text) for text in product(*[digits, "+-*"] * (n_digits - 1), digits)]


def values_along(text: str) -> list[int]:
    """Return the integer value after each digit of an expression, including its last, unfinished term.

    >>> values_along("1+2-3*4")
    [1, 3, 0, -9]
    """
    values, total = list[int](), 0
    for sign, term in re.findall(r"([+-]?)([^+-]+)", text):
        products = list(accumulate([-1 if sign == "-" else 1, *map(int, term.split("*"))], mul))[1:]
        values += [total + value for value in products]
        total = values[-1]
    return values


def _cells(line: dict) -> list[str]:
    shown = line["machine"] + (f", blocks ≤ {line['max_block']}" if line["max_block"] else "")
    if "limit" in line:
        return [shown, f"{line['states']}", line["limit"], "", "", "", f"{line['one_layer']:,}", ""]
    shift = "yes" if line["token_shift"] else "no" if line["token_shift_allowed"] else "no (refused)"
    bound = f"{line['bound']['prime']}{', met' if line['bound']['met'] else ''}"
    layers = " · ".join(" ".join(map(str, layer)) for layer in line["block_sizes"])
    costs = [f"{line['cost']['total']:,}", f"{line['one_layer']:,}"]
    return [shown, f"{line['states']}", layers, shift, bound, *costs, line.get("reference", {}).get("result", "")]


if __name__ == "__main__":
    script.run(main)
