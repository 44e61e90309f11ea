"""Read the machine of a certificate, minimal with all states reachable, and run it on words (docs/theory.md §4)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from .certificate_fields import as_list, fields, require, spend

Word = list[list[int]]


class CheckedMachine(NamedTuple):
    """A minimal machine: letter a leads state q to `delta[a][q]`, and `outputs[q]` is the output of q."""

    delta: list[list[int]]
    outputs: list[Hashable]

    @property
    def n(self) -> int:
        return len(self.outputs)


def read_machine(value: object) -> CheckedMachine:
    """Return a machine; raise `RejectedCertificate` unless it is complete, minimal, and has all states reachable."""
    alphabet, delta, outputs, start = fields(value, "alphabet", "delta", "outputs", "start")
    require(all(type(part) is list for part in (alphabet, delta, outputs)), "alphabet, delta, outputs are lists")
    n = len(outputs)
    require(n > 0 and len(delta) == len(alphabet) > 0, "the machine has no states or no letters")
    require(len({read_symbol(letter) for letter in alphabet}) == len(alphabet), "a letter stands twice in the alphabet")
    require(all(len(as_list(row)) == n for row in delta), "delta is not a complete table")
    require(all(type(q) is int and 0 <= q < n for row in delta for q in row), "delta is not a complete table")
    require(type(start) is int and 0 <= start < n, "the start is not a state")
    require(_all_reachable(delta, start), "some state cannot be reached, so it need not have a vector")
    machine = CheckedMachine(delta, [read_symbol(output) for output in outputs])
    alike = next((block for block in _blocks(machine) if len(block) > 1), None)
    require(alike is None, f"the machine is not minimal: states {sorted(alike or ())[:8]} are equivalent")
    return machine


def read_symbol(value: object) -> Any:
    """Return a letter or output of a certificate, with tagged lists as tuples and frozensets."""
    if type(value) is dict and len(value) == 1:
        ((tag, items),) = value.items()
        if tag in ("tuple", "frozenset") and type(items) is list:
            return (tuple if tag == "tuple" else frozenset)(read_symbol(item) for item in items)
    require(value is None or type(value) in (str, int, float, bool), "a letter or output is not a symbol")
    require(value == value, "an output is not equal to itself")
    # Hashes of longer integers are known in advance, so that sets of them could be made to take quadratic time.
    is_short = type(value) is not int or value.bit_length() < 64
    require(is_short, "an integer that is a letter or an output has 64 bits or more: write it as a text")
    return value


def _all_reachable(delta: list[list[int]], start: int) -> bool:
    reached, stack = {start}, [start]
    while stack:
        q = stack.pop()
        new = {row[q] for row in delta} - reached
        reached |= new
        stack += new
    return len(reached) == len(delta[0])


def _blocks(machine: CheckedMachine) -> list[set[int]]:
    """Return the classes of equivalent states, by Hopcroft's algorithm."""
    before: list[list[list[int]]] = [[[] for _ in machine.outputs] for _ in machine.delta]
    for row, sources in zip(machine.delta, before, strict=True):
        for q, target in enumerate(row):
            sources[target].append(q)
    by_output: dict[Hashable, set[int]] = {}
    for q, output in enumerate(machine.outputs):
        by_output.setdefault(output, set()).add(q)
    blocks = list(by_output.values())
    block_of = {q: i for i, block in enumerate(blocks) for q in block}
    waiting = set(range(len(blocks)))
    while waiting:
        splitter = list(blocks[waiting.pop()])
        for sources in before:
            touched: dict[int, set[int]] = {}
            for p in (p for q in splitter for p in sources[q]):
                touched.setdefault(block_of[p], set()).add(p)
            for i, part in touched.items():
                if len(part) == len(blocks[i]):
                    continue
                blocks[i] -= part
                blocks.append(part)
                block_of.update(dict.fromkeys(part, len(blocks) - 1))
                # Hopcroft: a block that waits is replaced by both its parts, otherwise the smaller part is enough.
                waiting.add(len(blocks) - 1 if i in waiting or len(part) <= len(blocks[i]) else i)
    return blocks


def read_states(value: object, machine: CheckedMachine) -> tuple[int, int]:
    p, q = as_list(value)
    require(all(type(s) is int and 0 <= s < machine.n for s in (p, q)), "a state is none of the machine's")
    return p, q


def read_word(value: Any, machine: CheckedMachine) -> Word:
    for run in as_list(value):
        a, repetitions = as_list(run)
        require(type(a) is int and 0 <= a < len(machine.delta), "a word has a letter that is none of the machine's")
        is_number = type(repetitions) is int and repetitions >= 0
        require(is_number, "a word repeats a letter a negative number of times, or one that is not an integer")
    return value


def power(step: list[int], exponent: int) -> list[int]:
    """Return the power of a map of states by an exponent, by repeated squaring."""
    spend(2 * len(step) * (exponent.bit_length() + 1))
    total = list(range(len(step)))
    while exponent:
        if exponent & 1:
            total = [step[q] for q in total]
        step, exponent = [step[q] for q in step], exponent >> 1
    return total


def after(q: int, word: Word, machine: CheckedMachine) -> int:
    """Return the state to which a word leads q, in time independent of the number of repetitions of a letter."""
    for a, repetitions in word:
        row, path, place = machine.delta[a], list[int](), dict[int, int]()
        while len(path) < repetitions and q not in place:
            place[q] = len(path)
            path.append(q)
            q = row[q]
        spend(2 * len(path) + 1)
        if (left := repetitions - len(path)) > 0:
            # The walk has closed a cycle, so the remaining repetitions count modulo its length.
            cycle = path[place[q] :]
            q = cycle[left % len(cycle)]
    return q
