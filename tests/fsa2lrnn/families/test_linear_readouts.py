"""Layers with a linear read-out, compared with the minimal weighted automaton; certificates and forgeries."""

import copy

import numpy as np
import pytest
from hypothesis import given

from fsa2lrnn import WeightedAutomaton, represent, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families import FAMILIES, HouseholderProducts, Impossibility, RejectedCertificate, recheck
from fsa2lrnn.families.identities import EIGENVALUES, FORCED, Family, exponent
from fsa2lrnn.testing.strategies import machines
from tests.fsa2lrnn.families.conftest import leaves, parent


def holds(machine, form):
    """Whether the minimal weighted automaton of the outputs obeys a family's equations on differences of vectors."""
    w = WeightedAutomaton.from_machine(machine).minimise()
    A = [np.array(rows, dtype=object).reshape(w.n_states, w.n_states) for rows in w.transitions]
    words = [((), np.array(w.initial, dtype=object))]
    for word, x in words:  # grows
        words += [((*word, a), B @ x) for a, B in enumerate(A)] if len(word) < machine.n_states + 1 else []
    differences = np.array([x - words[0][1] for _, x in words]).T

    def equal(left, right):
        return not ((left - right) @ differences).any()

    powers = True
    if form.eigenvalues in EIGENVALUES and form.eigenvalues is not None:
        powers = all(
            equal(np.linalg.matrix_power(B, exponent(form.eigenvalues, step)), B)
            for B, step in zip(A, machine.delta, strict=True)
        )
    if form.letters == "input-independent":
        return powers and all(equal(B, A[0]) for B in A)
    return powers and all(equal(B @ C, C @ B) for B in A for C in A)


@given(machines(4, 2))
def test_the_decision_is_that_of_the_minimal_weighted_automaton(machine):
    minimal = machine.minimise()
    rank = WeightedAutomaton.from_machine(minimal).minimise().n_states
    for family, form in FORCED.items():
        found = represent(machine, family, readout="linear")
        assert found.answer == ("yes" if holds(minimal, form) else "no"), family
        assert found.least <= found.enough == rank - 1
        if minimal.start in minimal.delta:
            assert found.least == rank - 1
        assert found.check().startswith("impossible" if found.answer == "no" else "bounded")
        # A layer with a linear read-out has one with any read-out and one vector per state.
        assert not (isinstance(represent(machine, family, short_words=False), Impossibility) and found.answer == "yes")


@pytest.mark.parametrize("family", [*FAMILIES, "householder(2)", "mamba-2"])
@pytest.mark.parametrize("source", ["parity", "subtraction(3)", "sum_mod(5)"])
def test_every_family_has_a_bound(family, source):
    found = represent(zoo.from_task(source), family, readout="linear")
    rank = {"parity": 1, "subtraction(3)": 6, "sum_mod(5)": 4}[source]
    assert (found.least, found.check() != "") == (rank, True)
    assert f"{rank} dimension" in found.explain()
    if found.answer == "no":
        assert "No such layer of any size" in str(found)


def test_a_read_out_can_be_what_is_missing():
    """Two dimensions give each residue a vector of its own, but a linear read-out needs four."""
    machine = zoo.sum_mod(5)
    assert represent(machine, "diagonal-complex").dimension == 2
    found = represent(machine, "diagonal-complex", readout="linear")
    assert (found.answer, found.least, found.enough) == ("yes", 4, 4)
    assert found.explain().startswith("Exactly 4 dimensions")
    with pytest.raises(UnsupportedFormat, match="any or linear"):
        represent(machine, "lti", readout="affine")


@pytest.mark.parametrize(
    "family",
    [
        Family("any", "[-1,1]"),
        HouseholderProducts(beta=(0, 1)),
        HouseholderProducts(factors=1),
        HouseholderProducts(factors=2),
    ],
)
def test_families_of_your_own(family):
    found = represent(zoo.subtraction(3), family, readout="linear")
    assert found.check().startswith("impossible" if found.answer == "no" else "bounded")
    assert found.least == 6


@pytest.mark.parametrize("family", ["lti", "diagonal-complex", "householder"])
def test_no_changed_value_of_a_certificate_is_accepted_unless_it_proves_the_same(family):
    right = represent(zoo.from_task("even_pair(2)"), family, readout="linear").to_json()
    claim, refused = recheck(right), 0
    for path in leaves(right):
        if path[0] in ("format", "version", "machine"):
            continue
        broken = copy.deepcopy(right)
        at, old = parent(broken, path), parent(broken, (*path, None))
        change = {int: lambda x: x + 1, str: lambda x: f"{x}0", list: lambda x: x[:-1], bool: lambda x: not x}
        at[path[-1]] = change.get(type(old), lambda _: None)(old)
        try:
            found = recheck(broken)
        except RejectedCertificate:
            refused += 1
        else:  # another word is as good, and fewer words or no equation prove less
            assert found == claim or path == ("equation",), path
    assert refused > 10


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda c: c["prefixes"].__setitem__(0, []), "a prefix is empty"),
        (lambda c: c["prefixes"].pop(), "not as many suffixes as prefixes"),
        (lambda c: c["suffixes"].__setitem__(0, c["suffixes"][1]), "may be singular"),
        (lambda c: c["equation"].update(separator=[[7, 1]]), "none of the machine's"),
        (lambda c: c["equation"].update({"to": c["equation"]["from"]}), "keep the equation"),
        (lambda c: c["equation"].update(words=[[[0, 1], [1, 1]], [[1, 1]]]), "may differ in the family"),
        (lambda c: c.update(family="other"), "is not known"),
    ],
)
def test_forgeries(change, fault):
    forged = represent(zoo.from_task("even_pair(2)"), "diagonal-complex", readout="linear").to_json()
    change(forged)
    with pytest.raises(RejectedCertificate, match=fault):
        recheck(forged)
