"""Read KISS2 (`.kiss2`), the format of benchmarks of sequential circuits: Mealy machines over bits.

    .i 2        input bits          .r st0      the reset state; by default the first one named
    .o 1        output bits         .e          the end; no row may follow
    0- st0 st1 1                    a row: input, state, next state, output

Letters are strings of `.i` bits, in the order of the numbers that they denote. A row whose input has `-` stands for all
letters that match it, a row of state `*` or `ANY` for every state. The transition is missing if the next state is one
of these or `-`.
Outputs are strings of 0 and 1; `-` (any value) is refused, because a machine has one output. `.p` and `.s` must agree
with the rows, so that a truncated file is not read as a small machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from fsa2lrnn.automata.formats.graph import Edge, LabelledGraph, Problems, State, to_machine
from fsa2lrnn.automata.language import Completion
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, shortened

MAX_INPUT_BITS = 16  # 65,536 letters
MAX_TRANSITIONS = 250_000  # after don't-cares are written out: a second, and 100 MB
_COUNTS = (".i", ".o", ".p", ".s")
_IGNORED = {".ilb", ".ob", ".code", ".latch_order", ".latch", ".type", ".start_kiss", ".end_kiss"}
_ANY = ("*", "-", "ANY")  # ANY in files of SIS


def from_kiss2(text: str, completion: Completion | None = None, origin: str = "the KISS2 text") -> MooreMachine:
    """Return the Moore machine of a KISS2 text.

    Args:
        completion: the treatment of missing transitions (`graph.to_machine`); by default an error.
        origin: the name of the file, for messages.

    Raises:
        InvalidMachine: with every problem of the text and its line.
        BudgetExceeded: for more than 16 input bits or 250,000 transitions, with don't-cares written out.

    >>> toggle = from_kiss2(".i 1\\n.o 1\\n0 off off 0\\n1 off on 1\\n0 on on 1\\n1 on off 0\\n.e\\n")
    >>> toggle.transduce(["1", "0", "1"])
    ['1', '1', '0']
    """
    problems = Problems(origin)
    counts: dict[str, int] = {}
    reset: tuple[str, int] | None = None
    rows: list[tuple[list[str], int]] = []
    end: int | None = None
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.partition("#")[0].split()
        if not fields or fields[0] in _IGNORED:
            continue
        if fields[0] in (".e", ".end"):
            end = end or number
        elif end is not None:
            problems.add(f"stands after the end of the rows in line {end}: move or remove one of the two", number)
        elif fields[0] in counts or (fields[0] == ".r" and reset is not None):
            problems.add(f"a second {fields[0]}: keep one", number)
        elif fields[0] in _COUNTS:
            if len(fields) == 2 and re.fullmatch(r"[0-9]{1,9}", fields[1]):
                counts[fields[0]] = int(fields[1])
            else:
                problems.add(f"{fields[0]} takes one whole number: '{fields[0]} 3'", number)
        elif fields[0] == ".r" and len(fields) == 2:
            reset = fields[1], number
        elif fields[0].startswith("."):
            problems.add(f"{shortened(line.strip(), 40)!r} is not known: remove the line", number)
        elif len(fields) == 4:
            rows.append((fields, number))
        else:
            problems.add(f"{len(fields)} fields, a row has input, state, next state, output", number)
    # Check the declared sizes before any letter is generated from them.
    inputs, outputs = counts.get(".i", 0), counts.get(".o", 0)
    if not inputs or not outputs:
        problems.add("the file does not say how many input and output bits there are: add '.i N' and '.o N'")
    if not rows:
        problems.add("there are no rows: write each as input, state, next state, output")
    problems.check()
    if inputs > MAX_INPUT_BITS:
        raise BudgetExceeded(
            f"{origin}: {inputs:,} input bits make 2^{inputs} letters, the limit is 2^{MAX_INPUT_BITS}: build the "
            "MooreMachine yourself, with one letter for each class of inputs that act alike"
        )
    names = _state_names(rows)
    for name, stated, present, what in ((".p", counts.get(".p"), len(rows), "rows"),
                                        (".s", counts.get(".s"), len(names), "states")):  # fmt: skip
        if stated is not None and stated != present:
            problems.add(f"{name} says {stated:,} {what}, the file has {present:,}: was it cut off?")
    edges: list[Edge] = []
    for (bits, source, target, output), number in rows:
        if len(bits) != inputs or set(bits) - set("01-"):
            problems.add(f"input {shortened(bits, 40)!r} is not {inputs} of the characters 0, 1 and -", number)
        elif len(output) != outputs or set(output) - set("01-"):
            problems.add(f"output {shortened(output, 40)!r} is not {outputs} of the characters 0, 1 and -", number)
        elif target not in _ANY:
            if "-" in output:
                problems.add(f"output {shortened(output, 40)!r} has '-', any value: write 0 or 1 there", number)
            sources = names if source in ("*", "ANY") else [source]  # a row stands for all matching letters too
            if len(edges) + len(sources) * 2 ** bits.count("-") > MAX_TRANSITIONS:
                raise BudgetExceeded(
                    f"{origin}: more than {MAX_TRANSITIONS:,} transitions, each '-' being two: build the MooreMachine "
                    "yourself, with one letter for each class of inputs that act alike"
                )
            edges += [Edge(q, letter, target, output, number) for q in sources for letter in _matching(bits)]
    graph = LabelledGraph(
        "mealy",
        tuple(State(name, name) for name in names),
        (reset,) if reset else tuple((name, None) for name in names[:1]),
        tuple(edges),
        tuple(_matching("-" * inputs)),
        origin,
        start_remedy="name it in a line '.r STATE'",
        problems=problems.all,
    )
    return to_machine(graph, completion)


def _state_names(rows: list[tuple[list[str], int]]) -> list[str]:
    ordered = dict.fromkeys(row[1] for row, _ in rows) | dict.fromkeys(row[2] for row, _ in rows)
    return [name for name in ordered if name not in _ANY]


def _matching(bits: str) -> Iterable[str]:
    """Return the letters that match an input, in the order of the numbers that they denote."""
    return map("".join, product(*("01" if bit == "-" else bit for bit in bits)))
