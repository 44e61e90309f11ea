"""Every claim of the paper, with its result and the command that reproduces it: `python -m verify.audit`.

A claim rests on propositions of the registry, which `python -m verify --paper` checks, or on measurements
(`verify.measured`), which are stored in experiments/results. This module writes docs/paper.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fsa2lrnn.files import write_atomically
from verify.measured import Found, Kind, behind, others, ours, same_length, speed

FILE = Path(__file__).parent.parent / "docs" / "paper.md"
TABLE_2 = "make table2"
SPEED = "python -m experiments.benchmarks.paper_speed"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper.

    Attributes:
        place: its place in the paper.
        text: the claim in our words.
        kind, why: the result, for a claim that propositions decide.
        by: the ids of these propositions in the registry.
        measured: for a claim that measurements decide: the function that reads them.
        command: the command that repeats the measurements.
    """

    place: str
    text: str
    kind: Kind = "nothing to check"
    why: str = ""
    by: tuple[str, ...] = ()
    measured: Callable[[], Found] | None = None
    command: str = ""

    def found(self) -> Found:
        """Return the current result of the claim."""
        return Found(self.kind, self.why) if self.measured is None else self.measured()

    def shown_by(self) -> str:
        """Return the command that checks the claim, or an empty string."""
        return self.command or (f"python -m verify {' '.join(f'--only {name}' for name in self.by)}" if self.by else "")


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "Abstract",
        "Some existing LRNNs are limited in modelling regular languages.",
        "sharpened",
        "T3 decides this for every automaton and family, with a witness or a certificate (`fsa2lrnn explain SOURCE`)",
        ("prop-1-T3", "prop-2-T3"),
    ),
    Claim(
        "Abstract",
        "The proposed model is the only LRNN capable of length extrapolation on Sum, EvenPair and ModArith.",
        "sharpened",
        "true of the layers that the paper compares, as far as tested here; false of all LRNNs, since other families "
        "represent Sum(5) exactly",
        ("only-blocks",),
    ),
    Claim(
        "Eq. 2",
        "S4, S4D, S5 and LRU are input-independent recurrences.",
        "reproduced",
        "as their official code computes them",
        ("fixed-layers",),
    ),
    Claim(
        "Proposition 1",
        "An input-independent LRNN is inconsistent in representing subtraction.",
        "sharpened",
        "the paper's words prove it over the integers and modulo 3 or more, other words modulo 2; with certificates",
        ("prop-1-words", "prop-1-2-integers", "prop-1-T3", "prop-1-modulo-2"),
    ),
    Claim(
        "After Proposition 1",
        "The limitation also applies to diagonal layers: S4D, S5, LRU.",
        "reproduced",
        "for dense and for diagonalisable A",
        ("prop-1-T3",),
    ),
    Claim(
        "Proposed Method",
        "The transition of an automaton is input-dependent, and its matrix has columns of unit 1-norm.",
        "sharpened",
        "the columns always; the transition unless all letters act alike",
        ("unit-columns", "input-dependent"),
    ),
    Claim(
        "Proposition 2",
        "A diagonal input-dependent LRNN is inconsistent in representing subtraction.",
        "sharpened",
        "it holds if 0−1 ≠ 1−0; modulo 2, where they are equal, two channels represent it on legal strings",
        ("prop-2-words", "prop-1-2-integers", "prop-2-T3", "prop-2-modulo-2"),
    ),
    Claim(
        "Liquid-S4, Eq. 4",
        "Liquid-S4 does not suffer from the limitation of Proposition 2.",
        "sharpened",
        "the proposition's words lead to a contradiction with a diagonal A, but not with a dense A; no A represents "
        "subtraction",
        ("liquid-s4-dense", "liquid-s4-diagonal", "liquid-s4-subtraction"),
    ),
    Claim(
        "Liquid-S4, Eq. 4",
        "Liquid-S4, as compared in Table 2, is the recurrence of Eq. 4.",
        "refuted",
        "its published code computes another, non-causal function; the paper does not state which variant was run",
        ("liquid-s4-released",),
    ),
    Claim(
        "Eq. 5",
        "A block-diagonal input-dependent layer escapes both propositions.",
        "reproduced",
        "it represents every automaton exactly (T1)",
        ("block-diagonal",),
    ),
    Claim(
        "Eq. 6",
        "v / max(1, ‖v‖_p) satisfies the constraint; a smaller p is a stronger one.",
        "reproduced",
        "and compiled weights meet it bit for bit",
        ("eq-6", "norm-order", "T2-inside"),
    ),
    Claim(
        "Eq. 7",
        "Columns of 1-norm at most 1 keep products from growing.",
        "reproduced",
        "for every length",
        ("eq-7",),
    ),
    Claim(
        "After Eq. 7; Limitations (c)",
        "A sufficiently small p > 1 stabilises the recurrence; p = 1.2 is small enough.",
        "refuted",
        "for every p > 1 some products grow without bound; the rule of the paper's code does not stabilise either, and "
        "cannot represent one-hot permutations",
        ("p-1.2-stable", "p-1.2-released", "T2-released"),
    ),
    Claim(
        "Parallel scan; appendix A.2",
        "PScan computes what Sequential computes, by the matrices that `spt` hands out.",
        "reproduced",
        "for every length up to 130 over any ring; in floats on inputs on which no sum rounds",
        ("pscan-any-ring", "pscan-floats", "spt-schedule"),
    ),
    Claim(
        "Parallel scan",
        "A word of length L takes ⌈log₂ L⌉ steps.",
        "sharpened",
        "⌈log₂(T + 1)⌉ steps, because the initial state is one more element",
        ("pscan-depth",),
    ),
    Claim(
        "Parallel scan",
        "The complexity is O(b³ h log T).",
        "refuted",
        "that is depth times work per position; the total work is about (T/2) log₂T h b³",
        ("pscan-complexity",),
    ),
    Claim(
        "Parallel scan",
        "With b·h fixed, the complexity is quadratic in b.",
        "reproduced",
        "counted",
        ("pscan-quadratic",),
    ),
    Claim(
        "Regular Language Tasks",
        "The three tasks, by their examples.",
        "reproduced",
        "as printed",
        ("worked-examples",),
    ),
    Claim(
        "Length Extrapolation",
        "All models achieve near-perfect accuracy at the length trained on.",
        measured=same_length,
        command=TABLE_2,
    ),
    Claim(
        "Table 2, Ours",
        "1.00, 0.99 and 1.00 on Sum(5), EvenPair(5) and ModArith(5).",
        measured=ours,
        command=TABLE_2,
    ),
    Claim(
        "Table 2, S4, S4D, Liquid-S4",
        "0.27 on Sum(5) and ModArith(5).",
        "at chance level",
        "guessing scores .279 in the mean by the same protocol, as much as the layers",
        ("table-2-chance",),
    ),
    Claim(
        "Table 2, S4, S4D, Liquid-S4",
        "0.81, 0.82 and 0.72 on EvenPair(5).",
        "at chance level",
        "below .873, the score of always answering 0",
        ("table-2-even-pair",),
    ),
    Claim("Table 2, S4, S4D, Liquid-S4", "The same three, trained here.", measured=others, command=TABLE_2),
    Claim("Baseline Models", "RWKV and a vanilla LRNN lag behind S4.", measured=behind, command=TABLE_2),
    Claim(
        "Speed Comparison",
        "Training at T = 40, (b, h) = (8, 8): PScan is the faster, .021 s to .033 s.",
        measured=speed("training step", 8),
        command=SPEED,
    ),
    Claim(
        "Speed Comparison",
        "Inference at T = 500, b = 8: both take .03 s.",
        measured=speed("inference", 8),
        command=SPEED,
    ),
    Claim(
        "Speed Comparison",
        "Inference at T = 500, b = 1: PScan is the faster, .0008 s to .002 s.",
        measured=speed("inference", 1),
        command=SPEED,
    ),
    Claim(
        "Limitations (c)",
        "The block size grows with complexity, or stays the same with more layers.",
        "sharpened",
        "cascades state the blocks and layers that suffice for a machine, with a lower bound (docs/theory.md, §6)",
        ("cascade-exact", "cascade-prime"),
    ),
    Claim(
        "Limitations (a), (b)",
        "Three tasks, no natural language.",
        why="a statement of scope; `fsa2lrnn tasks` lists this library's machines",
    ),
)


def page() -> str:
    """Return the text of docs/paper.md."""
    lines = ["|where|claim|result|because|shown by|", "|---|---|---|---|---|"]
    for claim, (*cells, command) in zip(CLAIMS, rows(), strict=True):
        shown = ", ".join(f"`{name}`" for name in claim.by) or f"`{command}`" * bool(command)
        lines.append(f"|{'|'.join([*cells, shown])}|")
    return _PAGE.format(table="\n".join(lines), counts=counts())


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the place, text, result, reason and command of each claim."""
    for claim in CLAIMS:
        found = claim.found()
        yield claim.place, claim.text, found.kind, found.why, claim.shown_by()


def text() -> str:
    """Return the claims for a terminal, one per line."""
    lines = [f"{place:28} {kind:17} {claim}" for place, claim, kind, _, _ in rows()]
    return "\n".join([*lines, "", f"{len(CLAIMS)} claims: {counts()} (docs/paper.md says why)"])


def to_json() -> list[dict[str, str]]:
    """Return the claims as JSON values."""
    return [dict(zip(("where", "claim", "kind", "why", "command"), row, strict=True)) for row in rows()]


def counts() -> str:
    """Return the number of claims by result, as text."""
    kinds = [claim.found().kind for claim in CLAIMS]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))


_PAGE = """# Audit of the paper's claims

Written by `python -m verify.audit`. Results: {counts}.

`python -m verify --only NAME` checks a proposition of the last column, `python -m verify --paper` checks all of them.
Measurements are in `experiments/results/`; speeds are ratios of times. "At chance level" means that guessing scores as
much by the same protocol, the best of 40 evaluations on 128 words (`experiments/studies/table2/chance.py`).

{table}
"""


if __name__ == "__main__":
    write_atomically(FILE, page().encode())
