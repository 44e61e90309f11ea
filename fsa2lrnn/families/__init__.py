"""Decide which families of linear recurrent layers can represent an automaton, with a witness or a certificate.

Input-independent and diagonal families are decided exactly. For the others there are sufficient conditions on both
sides, and the answer is `Unknown` if none holds.

T3 of docs/theory.md: a family forces identities between the linear parts of words, which generate a space W of
differences of states that every layer of the family maps to zero. The family represents the machine if and only if no
e_p − e_q lies in W; the quotient by W is then a representation.

>>> from fsa2lrnn.automata import zoo
>>> represent(zoo.flip_flop(), "diagonal[0,1]").check()
'representable: one diagonal[0,1] layer of 1 dimension represents this machine'
>>> represent(zoo.ab_star(), "diagonal-complex").four_words
(('b',), ('a', 'b'), ('b', 'a'))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.compile.recurrence import Recurrence, compile_recurrence
from fsa2lrnn.errors import NotExpressible, UnsupportedFormat, check_type, meant
from fsa2lrnn.families.channels import Affine, integer_affine, separating_channels
from fsa2lrnn.families.closure import Obstruction
from fsa2lrnn.families.family_answers import CertifiedAnswer, FamilyAnswer, Impossibility, Term, Unknown, Witness
from fsa2lrnn.families.householder import HouseholderWitness, householder
from fsa2lrnn.families.identities import FORCED, Family
from fsa2lrnn.families.linear_readouts import CLOSED, LinearReadout, linear_readout
from fsa2lrnn.families.liquid import LiquidWitness, dense_liquid, tie_channels
from fsa2lrnn.families.products import HouseholderProducts, projections
from fsa2lrnn.families.recheck import RejectedCertificate, recheck
from fsa2lrnn.families.refutation import refute, refuted
from fsa2lrnn.layers import BLOCK, DESCRIPTIONS, FACTORS, LAYERS, is_family, is_layer, of_name


@dataclass(frozen=True)
class BlockWitness(FamilyAnswer):
    """A witness for `block(n)`: the compiled recurrence of one layer of one-hot blocks of at most n states."""

    answer: ClassVar[str] = "yes"
    recurrence: Recurrence

    @property
    def dimension(self) -> int:
        return sum(self.recurrence.tables.block_sizes)

    def check(self) -> str:
        """Check that the tables follow δ, and return the claim; raise `RejectedCertificate` if they do not."""
        layer, machine = self.recurrence.tables, self.machine
        vectors = {machine.start: layer.initial()}
        pending = [machine.start]
        for q in pending:
            for a, x in enumerate(layer.step(vectors[q][None])[0]):
                target = int(machine.delta[a, q])
                if target not in vectors:
                    vectors[target] = x
                    pending.append(target)
                if (vectors[target] != x).any():
                    raise RejectedCertificate(
                        f"state {q} under letter {a} does not lead to the vector of state {target}"
                    )
        if len({tuple(x.tolist()) for x in vectors.values()}) != machine.n_states:
            raise RejectedCertificate("two states have the same vector")
        return f"representable: one layer of blocks {self.recurrence.tables.block_sizes} represents this machine"

    def explain(self) -> str:
        return f"One layer of one-hot blocks of sizes {', '.join(map(str, self.recurrence.tables.block_sizes))}."


Verdict = CertifiedAnswer | BlockWitness | Unknown
"""The result of `represent`: a witness (weights), a certificate of impossibility or of a bound, or `Unknown`."""


FAMILIES: dict[str, str] = DESCRIPTIONS
"""The families that `represent` accepts, with the form of A in each; the sizes in brackets are examples."""


def represent(
    machine: MachineSource,
    family: str | Family | HouseholderProducts,
    short_words: bool = True,
    readout: Literal["any", "linear"] = "any",
) -> Verdict:
    """Decide whether a layer of a family can represent a machine, with one vector per state.

    Args:
        machine: any machine, or its source; its minimal machine is represented.
        family: a name in `FAMILIES`, or of a layer (`fsa2lrnn.layers`), which gets the answer of the family that
            contains it; or a user-defined family. T3 decides the input-independent and diagonal families exactly. For
            the others, sufficient conditions and bounds are tested. S4, S4D, S5 and LRU are narrower than their
            families, so that a witness for the family need not be such a layer.
        short_words: whether to search for a four-word certificate in addition to an impossibility.
        readout: "any", or "linear" for layers whose logits W x + b are the indicators of the outputs: the answer
            is then a `LinearReadout` with a bound on H·b, and "no" holds for any number of vectors per state (T66).

    Returns:
        A witness (the weights of such a layer), an `Impossibility` or another certificate that no such layer exists,
        or `Unknown`, for families that T3 does not decide.

    Raises:
        UnsupportedFormat: for an unknown family.
        BudgetExceeded: for a witness with roots of unity of an order beyond 5,000 (`channels.MAX_ORDER`).
    """
    # Families with parameters first, then those by name.
    family = family if isinstance(family, Family | HouseholderProducts) else family_of(family)
    if readout not in ("any", "linear"):
        raise UnsupportedFormat(f"readout={readout!r} is not known: any or linear")
    minimal = minimise(as_machine(machine))
    if readout == "linear":
        return linear_readout(minimal, *_properties(family))
    if isinstance(family, Family):
        return _decide(minimal, family, short_words)
    if isinstance(family, HouseholderProducts):
        return _products(minimal, family, short_words)
    if block := BLOCK.fullmatch(family):
        return blocks_of_size(minimal, int(block[1]))
    if factors := FACTORS.fullmatch(family):
        return householder(minimal, int(factors[1]))
    if family == "householder":
        answer = householder(minimal)
        if isinstance(answer, CertifiedAnswer):
            return answer
        return _projections(minimal, family) or answer
    if family == "liquid-s4":
        liquid = dense_liquid(minimal)
        return (
            liquid
            if isinstance(liquid, CertifiedAnswer)
            else refuted(minimal, "commuting-differences", family) or liquid
        )
    if family == "liquid-s4-diagonal":
        diagonal = _decide(minimal, FORCED["diagonal-complex"], short_words)
        if isinstance(diagonal, Witness) and not isinstance(diagonal.form, Affine):
            return tie_channels(diagonal.form, minimal)
        return replace(diagonal, family=family)
    return _decide(minimal, FORCED[family], short_words)


def _properties(family: str | Family | HouseholderProducts) -> tuple[str, Family | None]:
    """Return the name of a family, and the properties of its matrices that pass to subspaces and quotients."""
    if isinstance(family, str):
        return family, CLOSED.get("householder" if FACTORS.fullmatch(family) else family)
    if isinstance(family, Family):
        return family.name, family
    weak = Family("contracting" if family.has_reflections else "paracontracting")
    return family.name, family.form or weak


def _decide(minimal: MooreMachine, form: Family, short_words: bool) -> Verdict:
    """Return an impossibility if W merges two states (T3), else a witness, or `Unknown` for an undecided family."""
    space = refute(minimal, form, short_words)
    if isinstance(space, Impossibility):
        return space
    sizes = (len(space.basis), minimal.n_states - 1)
    if form.name == "lti":
        return Witness(minimal, form.name, integer_affine(space.functions, minimal.delta, minimal.start), sizes)
    if form.letters in ("input-independent", "commuting") and form.eigenvalues:
        return Witness(
            minimal, form.name, separating_channels(space.functions, minimal.delta, minimal.start, form), sizes
        )
    if form.letters == "paracontracting":
        return replace(_products(minimal, HouseholderProducts(beta=(0, 1)), short_words), family=form.name)
    diagonal = _decide(minimal, Family("commuting", form.eigenvalues or "complex"), short_words=False)
    if isinstance(diagonal, Witness):
        return replace(diagonal, family=form.name)
    return Unknown(minimal, form.name, "no equation refutes it, and only diagonal layers were tried")


def _products(minimal: MooreMachine, family: HouseholderProducts, short_words: bool) -> Verdict:
    """Return the answer for products of factors, by one-dimensional heads, equations, factors with β ≤ 1, or T36."""
    diagonal = _decide(minimal, FORCED["diagonal[-1,1]" if family.has_reflections else "diagonal[0,1]"], short_words)
    if isinstance(diagonal, Witness):
        return replace(diagonal, family=family.name)
    outcome = refute(minimal, family.form or Family("paracontracting"), short_words)
    if isinstance(outcome, Impossibility) and family.form:
        return replace(outcome, family=family.name)
    keys = projections(minimal, outcome.functions, family.name) if isinstance(outcome, Obstruction) else None
    is_enough = keys is not None and keys.n_factors <= (family.factors or keys.n_factors)
    if family.has_reflections or not is_enough:
        bounds = householder(minimal, family.factors)
        if bounds.answer == "no" or (family.has_reflections and isinstance(bounds, CertifiedAnswer)):
            return replace(bounds, family=family.name)
    if keys is not None and is_enough:
        return keys
    reason = f"the construction takes {keys.n_factors} factors" if keys else "no construction was found"
    return Unknown(minimal, family.name, f"{reason}, and no proof excludes {family.factors or 'any number'}")


def _projections(minimal: MooreMachine, family: str) -> HouseholderWitness | None:
    outcome = refute(minimal, Family("paracontracting"), short_words=False)
    return projections(minimal, outcome.functions, family) if isinstance(outcome, Obstruction) else None


def family_of(name: str) -> str:
    """Return a family's name, and for a layer's, in any spelling, that of the family that contains it.

    Raises `UnsupportedFormat` for an unknown name, and for a layer that no family describes.
    """
    check_type(name, str, "family", f"one of {', '.join(FAMILIES)}")
    if is_family(name):
        return name
    if not is_layer(name):
        near = meant(name, [*FAMILIES, *LAYERS])
        raise UnsupportedFormat(f"family {name!r} is not known: {near}choose one of {', '.join(FAMILIES)}")
    row = of_name(name)
    if not row.family:
        raise UnsupportedFormat(f"{name} is described by no family: {row.abilities}")
    return row.family


def blocks_of_size(machine: MooreMachine, size: int) -> BlockWitness | CertifiedAnswer | Unknown:
    """Decide whether a layer of real blocks of at most `size` states represents a minimal machine.

    One-hot blocks are tried first.
    """
    from fsa2lrnn.families.block_sizes.answers import real_blocks

    family = f"block({size})"
    try:
        return BlockWitness(machine, family, compile_recurrence(machine, max_block=size))
    except NotExpressible:
        pass
    return real_blocks(machine, family, size)


__all__ = [
    "BlockWitness",
    "FAMILIES",
    "Family",
    "HouseholderProducts",
    "HouseholderWitness",
    "Impossibility",
    "LinearReadout",
    "LiquidWitness",
    "RejectedCertificate",
    "Term",
    "Unknown",
    "Verdict",
    "Witness",
    "family_of",
    "recheck",
    "represent",
]
