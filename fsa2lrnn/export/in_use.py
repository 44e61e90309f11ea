"""Decide which layers in use today can represent a machine, as one layer or as a stack of layers.

One layer: its recurrence over letters, with one vector per state, exact real arithmetic and any read-out. A stack:
layers with finitely many reachable states and any function of the letter and of lower layers between them, as in whole
models, which the extra "huggingface" constructs or refuses. Ranges are closed: exp(−x), x ≥ 0, includes 0 and 1, as in
floating point. The decisions use these theorems:

- T3, T54: the letters of a finite machine act on differences of states by matrices of finite order. Symmetric positive
  semidefinite matrices of norm at most 1 (Mamba's diagonals, α(I − βkkᵀ) with β ≤ 1) of finite order are commuting
  projections, so that one layer of each represents the same machines: those of "diagonal[0,1]". The same holds for KDA,
  GDN-2 with rates up to 1 and Mamba-3 (T57). The letters of RWKV-7 are projections too, but need not commute (T57).
- T55, T56: which words stacks of S4, S5 and LRU, and one layer of attention, confuse.
- A gate α in [0, 1] on a factor I − βkkᵀ with β ≤ 2 leaves the matrix symmetric, its eigenvalues in [−1, 1]. If every
  letter permutes the states, α is 1, and bounds on the number of factors hold with the gate too.
- A matrix of norm at most 1 is a product of factors I − βkkᵀ with β ≤ 2 (its polar decomposition), so that DeltaProduct
  with enough steps contains KDA and the gated layers. It contains S4, because one matrix with bounded powers has norm 1
  in suitable coordinates.
- Heads of one dimension of RWKV-7 reach every entry in [−0.45, 1], hence all entries of diagonal layers in [0, 1].
- Stacks of diagonal layers run exactly the machines whose groups are 2-groups, with entries in [−1, 1], or solvable,
  with complex entries (T37): on finitely many states an entry is 0 or a root of unity.
- SLiCE adds nothing to its state after the first letter. Its dense and sparse matrices are any, its diagonal ones never
  leave zero, and Walsh–Hadamard ones are I + H D_a with one H (T59).
- Cascades of registers run exactly the aperiodic machines (Krohn and Rhodes). Registers, exchanges and transpositions
  run all machines (docs/constructions.md), sometimes in stacks too large to be written.
- Masked hard attention without positions recognises exactly the star-free languages (Yang, Chiang and Angluin 2024).

A layer represents whatever the layers `within` it represent: answers are carried over, and contradictions raise errors.

`say` decides one layer of any name by the family that contains it. Each layer is a special case of a family, so it
cannot represent a machine that the family cannot represent. The reverse does not hold if the layer is narrower: S4's
eigenvalues lie within the unit circle, and a cycle of states needs eigenvalues on it. So a layer gets the answer "yes"
only if it is the whole family. The verdicts concern one layer over letters, with one vector per state (docs/theory.md
§4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid.classification import Classification
from fsa2lrnn.deadline import Deadline, limited
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import BudgetExceeded, NotExact, OutOfTime
from fsa2lrnn.export.confused_words import confused
from fsa2lrnn.export.slice_and_dual import (
    MAX_COORDINATES,
    after_a_letter,
    dual,
    has_register,
    is_diagonal,
    is_walsh_hadamard,
)
from fsa2lrnn.families import CertifiedAnswer, HouseholderProducts, Impossibility, Verdict, family_of, represent
from fsa2lrnn.families.closure import obstruction
from fsa2lrnn.families.householder import HouseholderWitness
from fsa2lrnn.families.identities import FORCED, Family, cycle_lengths
from fsa2lrnn.layers import LAYERS, of_name

Answer = Literal["yes", "no", "unknown"]


IN_USE = {name: row for name, row in LAYERS.items() if row.decided_as == name}
"""The layers with a row of their own, by name, in the order of the table."""


def title_of(name: str) -> str:
    """Return the title of a row: those of all layers that have its answer.

    >>> title_of("s5"), title_of("kda")
    ('S4D, S5, LRU', 'KDA, bounded KDA')
    """
    return ", ".join(row.title for row in LAYERS.values() if row.decided_as == name)


@dataclass(frozen=True)
class Decision:
    """The answers on whether one layer, or a stack of layers, represents a machine.

    Args:
        one: the answer for one layer.
        stack: the answer for a stack of layers.
        smallest: a description of the smallest realisation that is known; "" for none.
        why: the reason for a "no" or "unknown"; "" if there is none to state.
        is_planned: whether `fsa2lrnn.export` has planned the weights of a stack.
        is_out_of_time: whether the time limit passed before an answer; "unknown" then has no other reason.
        theorem: the theorems of docs/theory.md, or the paper, that a "no" uses.
    """

    one: Answer = "unknown"
    stack: Answer = "unknown"
    smallest: str = ""
    why: str = ""
    is_planned: bool = False
    is_out_of_time: bool = False
    theorem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the answers as a JSON object."""
        return dict(vars(self))


Stacks = Callable[[MooreMachine, str], tuple[Answer, str]]
"""A function of a machine and an external layer that returns the answer on stacks and its construction or reason."""


def decide(
    machine: MooreMachine,
    classification: Classification,
    stacks: Stacks | None = None,
    block: tuple[int, int] | None = None,
    report: Callable[[str], None] = lambda _: None,
    max_seconds: float | Deadline | None = None,
    stored: Mapping[str, Decision] = MappingProxyType({}),
) -> dict[str, Decision]:
    """Return the decision on each layer of `IN_USE` for a machine.

    Args:
        machine: any machine; it is minimised first.
        classification: the classification of the machine, such as whether it is aperiodic.
        stacks: decides stacks of external layers (`refuse.decide_stack`); None leaves most of them unknown.
        block: bounds on the least size of real blocks; None for the bounds 1 and n − 1.
        report: called with the title of each layer before it is decided.
        max_seconds: limit of processor time for all layers, of which each layer may use half of what remains; None for
            no limit.
        stored: earlier decisions by layer, which are not repeated.

    Raises:
        NotExact: if two answers contradict each other, which is an error of this library.
    """
    minimal, deadline = minimise(machine), Deadline.of(max_seconds)
    rows: dict[str, Decision] = {}
    if minimal.n_states == 1:
        return dict.fromkeys(IN_USE, Decision("yes", "yes", "a read-out alone: the output is constant"))
    for name, layer in IN_USE.items():
        if name in stored:
            rows[name] = stored[name]
            continue
        if deadline.left() <= 0:
            rows[name] = Decision(is_out_of_time=True)
            continue
        report(title_of(name))
        share = deadline.share(0.5)
        row = Decision()
        with suppress(OutOfTime), limited(share):
            row = _one_layer(minimal, name, classification, block)
        # A search of stacks is spared if one layer, or stacks of a contained layer, already represent the machine.
        is_implied = row.one == "yes" or any(
            rows[inner].stack == "yes" for inner, outer in _pairs() if outer == name and inner in rows
        )
        if stacks is not None and layer.exported_to and not (layer.is_searched_last and is_implied):
            answer, why = "unknown", ""
            with suppress(OutOfTime), limited(share):
                answer, why = stacks(minimal, layer.exported_to[0])
            is_planned = answer == "yes"
            row = Decision(
                row.one,
                answer,
                row.smallest or (why if is_planned else ""),
                "" if is_planned else why,
                is_planned,
                theorem="section 11" if answer == "no" else row.theorem,
            )
        row = _joined(row)
        if row.stack == "unknown":
            with suppress(OutOfTime), limited(share):
                row = _stack(row, minimal, name, classification)
        rows[name] = replace(_joined(row), is_out_of_time=share.left() <= 0)
    if faults := contradictions(rows):
        raise NotExact(f"{'; '.join(faults)}: this is an error of the library, tell the authors")
    rows = carried(rows)
    for name, row in rows.items():
        if "unknown" not in (row.one, row.stack):
            rows[name] = replace(row, is_out_of_time=False)
        elif row.is_out_of_time:
            rows[name] = replace(row, why="the time limit passed first")
    return rows


def contradictions(rows: dict[str, Decision]) -> list[str]:
    """Return a sentence for each layer that represents the machine although a layer that contains it does not."""
    return [
        f"{title_of(inner)} represents the machine as {what}, and {title_of(outer)} does not"
        for inner, outer in _pairs()
        for what, mine, theirs in (("one layer", rows[inner].one, rows[outer].one),
                                   ("a stack", rows[inner].stack, rows[outer].stack))
        if (mine, theirs) == ("yes", "no")
    ]  # fmt: skip


def carried(rows: dict[str, Decision]) -> dict[str, Decision]:
    """Return the rows with each "yes" extended to the containing layers, and each "no" to the contained ones."""
    rows = dict(rows)
    for inner, outer in _pairs():
        mine, theirs = rows[inner], rows[outer]
        what = f"as {title_of(inner)}: {mine.smallest}" if mine.smallest else ""
        if mine.one == "yes" and theirs.one == "unknown":
            rows[outer] = theirs = replace(theirs, one="yes", stack="yes", smallest=theirs.smallest or what, why="")
        if mine.stack == "yes" and theirs.stack == "unknown":
            rows[outer] = theirs = replace(theirs, stack="yes", smallest=theirs.smallest or what, why="")
        no = f"{title_of(outer)} contains it"
        proof = mine.theorem or ", ".join(filter(None, (theirs.theorem, IN_USE[inner].theorem)))
        if theirs.one == "no" and mine.one == "unknown":
            rows[inner] = mine = replace(mine, one="no", why=mine.why or no, theorem=proof)
        if theirs.stack == "no" and mine.stack == "unknown":
            rows[inner] = replace(mine, one="no", stack="no", why=mine.why or no, theorem=proof)
    return rows


def _pairs() -> Iterator[tuple[str, str]]:
    """Yield each layer with each layer that contains it, directly or through others."""
    for inner in IN_USE:
        outers = list(IN_USE[inner].within)
        for outer in outers:  # grows
            outers += [name for name in IN_USE[outer].within if name not in outers]
            yield inner, outer


def _joined(row: Decision) -> Decision:
    """Return the row with what a decision on one layer implies for a stack, and the converse."""
    one = "no" if row.stack == "no" else row.one
    return replace(row, one=one, stack="yes" if row.one == "yes" and row.stack == "unknown" else row.stack)


def _one_layer(
    minimal: MooreMachine, name: str, classification: Classification, block: tuple[int, int] | None
) -> Decision:
    """Return the decision on one layer named `name`; its stacks remain to be decided."""
    try:
        match name:
            case "s4" | "s5":
                return _of(represent(minimal, name, short_words=False), "T3")
            case "mamba":  # and the layers that are equivalent to it
                return _of(represent(minimal, "diagonal[0,1]", short_words=False), "T3")
            case "mamba-negative" | "complex-diagonal":
                family = "diagonal[-1,1]" if name == "mamba-negative" else "diagonal-complex"
                return _of(represent(minimal, family, short_words=False), "T3")
            case "gdn-2":  # T57; as a stack it may represent more than Mamba does
                return _of(represent(minimal, "diagonal[0,1]", short_words=False), "T57")
            case "gdn-2-negative":  # T57: a letter has eigenvalues in [−1, 1]; a "yes" is carried over
                is_long = any(set(cycle_lengths(step)) - {1, 2} for step in minimal.delta)
                return Decision("no", theorem="T57") if is_long else Decision()
            case "slice-diagonal":
                holds = is_diagonal(after_a_letter(minimal))
                return Decision("yes") if holds else Decision("no", theorem="T59")
            case "slice-hadamard":
                holds = is_walsh_hadamard(after_a_letter(minimal))
                if holds is None:
                    return Decision(why="some letters neither permute the states nor clash on two of them")
                return Decision("yes") if holds else Decision("no", theorem="T59")
            case "rwkv-7":  # T57: its letters are projections; a "yes" is carried over from Mamba
                verdict = represent(minimal, Family("any", "[0,1]"), short_words=False)
                return Decision("no", theorem="T57") if verdict.answer == "no" else Decision()
            case "gated-deltanet-negative":
                verdict = represent(minimal, HouseholderProducts(1), short_words=False)
                # T36's bounds on the rank of letters do not hold if a gate may erase the whole state.
                holds = isinstance(verdict, Impossibility) or classification.group.value
                proof = "T3" if isinstance(verdict, Impossibility) else "T36"
                return _of(verdict, proof) if verdict.answer != "no" or holds else Decision()
            case "deltaproduct":
                verdict = represent(minimal, "householder")
                return _of(verdict, "T58" if isinstance(verdict, Impossibility) else "T36")
            case "block" | "slice":
                low, high = block or (1, minimal.n_states - 1)
                size = f"{high}" if low == high else f"{low} to {high}"
                constant = " and a constant" if name == "slice" else ""
                return Decision("yes", "yes", f"real blocks of size {size}{constant}")
            case "slice-sparse":  # T59
                return Decision("yes", "yes", f"{minimal.n_states} numbers, {2 * minimal.n_states} entries per letter")
            case "pd-ssm":  # the dual of every machine is finite
                try:
                    size = f"{dual(minimal).n_coordinates} coordinates"
                except BudgetExceeded:
                    size = f"more than {MAX_COORDINATES} coordinates"
                return Decision("yes", "yes", f"the dual: {size}")
            case "slstm":  # not linear: threshold units, one per letter and state
                return Decision("yes", "yes", f"{minimal.delta.size} threshold units")
            case "attention":
                words = confused(minimal, "hard-attention")
                if words is not None:
                    return Decision("no", theorem="T56")
                return Decision("yes", smallest="heads for sets of letters")
            case _:
                return Decision()
    except BudgetExceeded as fault:
        return Decision(why=str(fault))


def _stack(row: Decision, minimal: MooreMachine, name: str, classification: Classification) -> Decision:
    """Return a row with the answer for stacks of the layer `name`, if a theorem gives one."""
    try:
        match name, classification.aperiodic.value:
            case (("s4" | "s5"), _):
                words = confused(minimal, "lti-stack" if name == "s4" else "lti-diagonalisable-stack")
                if words is not None:
                    return replace(row, stack="no", why=words.explain(), theorem="T55")
                what = "first and last letters" if name == "s4" else "the last letter"
                return replace(row, stack="yes", smallest=f"{what}, and the length modulo a number")
            case (("attention" | "mamba"), True):
                return replace(row, stack="yes", smallest=row.smallest or "a cascade of resets")
            case (("attention" | "mamba"), False):
                proof = "Yang, Chiang & Angluin, 2024" if name == "attention" else "section 11"
                return replace(row, stack="no", why="not star-free", theorem=proof)
            case (("mamba-negative" | "slice-diagonal" | "complex-diagonal"), _):
                fact = classification.solvable if name == "complex-diagonal" else classification.two_groups
                kind = "solvable groups" if name == "complex-diagonal" else "2-groups"
                if name == "slice-diagonal" and fact.value is not False:
                    return _stack_of_signs(row, minimal, classification)
                if fact.value:
                    return replace(row, stack="yes", smallest=row.smallest or f"a cascade of resets and {kind}")
                no = replace(row, stack="no", why=f"not all its groups are {kind}", theorem="T37")
                return row if fact.value is None else no
            case (("gdn-2" | "precond-kda"), False):
                # T57, T63: one matrix has eigenvalues in (−1, 1], products of several need not.
                if any(cycle_lengths(step) != [1] for step in minimal.delta):
                    proof = LAYERS[name].theorem or "T57"
                    return replace(row, stack="no", why="a letter moves states round a cycle", theorem=proof)
                return row
            case (("gated-deltanet-negative" | "gdn-2-negative" | "deltaproduct" | "slice-hadamard"), _):
                return replace(
                    row, stack="yes", smallest="resets, exchanges and transpositions, too many to be written"
                )
            case _:
                return row
    except BudgetExceeded as fault:
        return replace(row, why=str(fault))


def _stack_of_signs(row: Decision, minimal: MooreMachine, classification: Classification) -> Decision:
    """Return the row of diagonal SLiCE with what T59 says of its stacks, for a machine without other groups."""
    if classification.r_trivial.value or (classification.group.value and classification.two_groups.value):
        return replace(row, stack="yes", smallest="coordinates that become 0 or change their sign")
    if has_register(after_a_letter(minimal)):
        return replace(row, stack="no", why="words act as a register", theorem="T59")
    return row


def _of(verdict: Verdict, theorem: str) -> Decision:
    """Return a family's verdict as a decision, with the size of its witness or the theorem of its "no"."""
    if verdict.answer == "no":
        return Decision("no", theorem=theorem)
    if not isinstance(verdict, CertifiedAnswer):
        return Decision()
    if isinstance(verdict, HouseholderWitness):
        steps = max(map(len, verdict.keys))
        return Decision("yes", smallest=f"{steps} step{'s' * (steps != 1)}, {verdict.dimension} dimensions")
    dimension = getattr(verdict, "dimension", None)
    return Decision("yes", smallest="" if dimension is None else f"{dimension} dimension{'s' * (dimension != 1)}")


NO, YES, NOT_EXCLUDED, NO_RECURRENCE = "no", "yes", "not excluded", "no recurrence"
_LETTERS_TRIED = 8


@dataclass(frozen=True, eq=False)
class LayerVerdict(Brief):
    """A verdict on whether a named layer represents a machine.

    Attributes:
        name: the canonical name of the layer (`fsa2lrnn.layers`).
        answer: `NO`, `YES`, `NOT_EXCLUDED` or `NO_RECURRENCE`.
        why: the reason, in one line.
        verdict: the verdict of the family with its certificate; None for a layer without a family.
    """

    name: str
    answer: str
    why: str
    verdict: Verdict | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a JSON object, without the certificate, which the verdict of the family holds."""
        row = LAYERS[self.name]
        return {"is": row.recurrence, "family": row.family or None, "answer": self.answer, "why": self.why}


def say(machine: MooreMachine, name: str, verdict: Verdict | None = None) -> LayerVerdict:
    """Return the verdict on whether a named layer represents a machine; `verdict` is that on its family, if known.

    Raises `UnsupportedFormat` for an unknown name, and for a layer that no family describes, and `BudgetExceeded` as
    `represent` does.

    >>> from fsa2lrnn.automata import zoo
    >>> say(zoo.sum_mod(2), "lru").answer, say(zoo.sum_mod(2), "rwkv4").why
    ('no', "the family lti-diagonalisable cannot, even where every other letter is '0'")
    """
    named = of_name(name)
    name = named.name
    if "not causal" in named.recurrence:
        return LayerVerdict(
            name, NO_RECURRENCE, "outputs depend on later letters: no theorem about recurrences applies"
        )
    family_of(name)
    if named.is_shifted:
        return _shifted(machine, name, named.family)
    verdict = represent(machine, named.family, short_words=False) if verdict is None else verdict
    if verdict.answer == "no":
        return LayerVerdict(name, NO, f"no layer of the family {named.family} can", verdict)
    if named.is_family and verdict.answer == "yes":
        return LayerVerdict(name, YES, f"it is all of the family {named.family}, which can", verdict)
    reason = "its family is not decided" if verdict.answer == "unknown" else f"the family {named.family} can"
    return LayerVerdict(
        name, NOT_EXCLUDED, f"{reason}; the layer is narrower" if not named.is_family else reason, verdict
    )


def _shifted(machine: MooreMachine, name: str, family: str) -> LayerVerdict:
    """Return the verdict on a layer of a family that reads each letter together with the previous one.

    If every second letter is c, two steps add a vector that depends only on the letter between, and their linear part
    is the square of one step's. So the family would represent the states that c reaches (T3 requires no start state).
    """
    minimal = minimise(machine)
    for c in range(min(len(minimal.alphabet), _LETTERS_TRIED)):
        delta = every_other(minimal.delta, c)
        if obstruction(FORCED[family], delta).merged()[1] < delta.shape[1]:
            why = f"the family {family} cannot, even where every other letter is {minimal.alphabet[c]!r}"
            return LayerVerdict(name, NO, why)
    return LayerVerdict(
        name, NOT_EXCLUDED, f"the family {family} can, where every other letter is the same; the layer is narrower"
    )


def every_other(delta: np.ndarray, c: int) -> np.ndarray:
    """Return the table of the words "letter, then c" on the m states that c reaches: (|Σ|, n) -> (|Σ|, m).

    >>> every_other(np.array([[0, 0, 0], [1, 2, 2]]), 1).tolist()
    [[0, 0], [1, 1]]
    """
    reached, numbers = np.unique(delta[c], return_inverse=True)
    return numbers[delta[:, reached]]
