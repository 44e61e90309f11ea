"""Which family of layers represents which machine: `python -m experiments.studies.families` (docs/theory.md §4).

Every answer is re-checked by the checker that shares no code with the search. Every yes is lowered to a network that
runs: one with integer weights is proved equal to the machine on all words, one with rotations is compared on random
words within the length for which it is known to be right.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from experiments import results_io, script
from experiments.machines import of_zoo
from experiments.witness_networks import lower_witness, safe_length
from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.families import Impossibility, Witness, represent
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.verification import Proved, prove_equivalent

TRIED = (
    "parity", "sum_mod(3)", "sum_mod(5)", "flip_flop", "length_mod(3)", "shift_register(3)", "even_pair(5)",
    "mod_arith(5)", "group(S3)", "group(A5)", "ab_star", "subtraction(5)",
)  # fmt: skip
SERIES = (
    *(f"tomita({i})" for i in range(1, 8)),
    *(f"dyck({k}, {depth})" for k in (1, 2) for depth in range(1, 5)),
    *(f"shift_register({n})" for n in (1, 2, 4)),
    *(f"sum_mod({n})" for n in (2, 4, 6, 7, 8)),  # Z_n with all its elements as letters
    *(f"length_mod({n})" for n in (2, 4, 5, 6, 7, 8)),  # Z_n with one generator for every letter
    *(f"group(D{n})" for n in range(3, 7)),
    "group(Q8)",
    "group(S4)",
    *(f"subtraction({M})" for M in (2, 3, 4, 6, 7)),
)
RANDOM = tuple(f"random_dfa({2 + i % 11}, {2 + i % 2}, seed={i}, minimal=true)" for i in range(100))
WORDS, LONGEST = 50, 500  # random words on which a layer with rotations is compared


def main() -> None:
    """Decide which family represents which machine, check, write results/families_table.json, print the table."""
    sources = (*TRIED, *SERIES)
    rows = [row(source) for source in track(sources, description="machines", transient=True)]
    drawn = summary(list(track(RANDOM, description="random machines", transient=True)))
    path = results_io.write(
        "families_table", {"machines": rows, "random": drawn}, "python -m experiments.studies.families"
    )
    table = Table(Column("machine", min_width=19), "states", *FORCED)
    for line in rows:
        table.add_row(line["machine"], str(line["states"]), *(_cell(line["families"][family]) for family in FORCED))
    table.add_section()
    counts = [(len(drawn[family]["yes"]), drawn[family]["no"], drawn[family]["four_words"]) for family in FORCED]
    table.add_row(f"{len(RANDOM)} random", "", *(f"yes {yes}, no {no} ({words})" for yes, no, words in counts))
    note = "yes: real dimensions; no: four words, or how many equations; in brackets: how many by four words"
    Console(width=130).print(table, f"{note}; written to {path.name}")


def row(source: str) -> dict:
    """Return the answer of each family on one machine of the zoo."""
    machine, facts = of_zoo(source)
    return {**facts, "families": {family: answer(machine, family) for family in FORCED}}


def answer(machine: MooreMachine, family: str) -> dict:
    """Return the checked verdict on a machine; "obstruction" is the dimension of W and of its ambient space."""
    verdict = represent(machine, family)
    if not isinstance(verdict, Witness | Impossibility):
        raise SystemExit(f"{family} is not decided for {machine}: {verdict.explain()}")
    verdict.check()
    found = {"obstruction": list(verdict.obstruction)}
    if isinstance(verdict, Witness):
        return {"verdict": "yes", **found, "dimension": verdict.dimension, "network": running(verdict)}
    words = None if verdict.four_words is None else [text(word) for word in verdict.four_words]
    shown = words and f'"{words[1]}" and "{words[2]}", at first and after "{words[0]}"'
    return {"verdict": "no", **found, "terms": len(verdict.terms), "four_words": shown}


def running(witness: Witness) -> str:
    """Return the check of the network made from a witness. Raises `SystemExit` if the network is wrong."""
    model, machine = lower_witness(witness), witness.machine
    if witness.is_exact:
        proof = prove_equivalent(model, machine)
        if not isinstance(proof, Proved):
            raise SystemExit(f"the network for {machine} in {witness.family} is wrong: {proof}")
        return f"equal on all words ({proof.arithmetic})"
    generator = np.random.default_rng(0)
    longest = min(LONGEST, safe_length(witness) or 0)
    for _ in range(WORDS):
        tokens = generator.integers(len(machine.alphabet), size=generator.integers(1, longest + 1))
        word = [machine.alphabet[a] for a in tokens]
        if model.transduce(word) != machine.transduce(word):
            raise SystemExit(f"the network for {machine} in {witness.family} is wrong on {text(word)}")
    return f"equal on {WORDS} random words of at most {longest} letters (float64)"


def summary(sources: Sequence[str]) -> dict:
    """Return, per family, the machines that it represents, the number of others, and how many four words refute."""
    counts: dict[str, dict] = {family: {"yes": [], "no": 0, "four_words": 0} for family in FORCED}
    for source in sources:
        for family, found in row(source)["families"].items():
            if found["verdict"] == "yes":
                counts[family]["yes"].append(source)
            else:
                counts[family]["no"] += 1
                counts[family]["four_words"] += found["four_words"] is not None
    return counts


def text(word: Sequence[Hashable]) -> str:
    """Return a word as text, with spaces if letters are longer than a character."""
    letters = [str(letter) for letter in word]
    return ("" if all(len(letter) == 1 for letter in letters) else " ").join(letters)


def _cell(found: dict) -> str:
    if found["verdict"] == "yes":
        return f"yes, {found['dimension']}"
    return "no, words" if found["four_words"] else f"no, {found['terms']}"


if __name__ == "__main__":
    script.run(main)
