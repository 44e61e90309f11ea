"""Families of one's own: every answer against layers on a grid, built without any of the code that decides."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.witness_networks import lower_witness
from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families import (
    Family,
    HouseholderProducts,
    HouseholderWitness,
    Impossibility,
    Unknown,
    Witness,
    recheck,
    represent,
)
from fsa2lrnn.families.identities import EIGENVALUES, LETTERS
from fsa2lrnn.testing.strategies import machines
from tests.fsa2lrnn.families.conftest import accepted, changed, rejected
from verify.brute_force import all_tables, is_confirmed

PRODUCTS = [HouseholderProducts(n, (0, h)) for n in (1, 2, 3, None) for h in (1, Fraction(3, 2), 2)]
FORMS = [
    Family(letters, eigenvalues)
    for letters, eigenvalues in itertools.product(LETTERS, EIGENVALUES)
    if (letters, eigenvalues) != ("any", None) and (not letters.endswith("contracting") or eigenvalues is None)
]
V = np.array(list(itertools.product((-1, 0, 1), repeat=2)), float)


def sampled(pairs, most=1_000):
    """The pairs, or a sample of them that is the same on every run."""
    pairs = list(pairs)
    return pairs if len(pairs) <= most else random.Random(0).sample(pairs, most)


def represented(pairs, starts=((0, 0), (1, 0))):
    """The tables δ of at most 3 states that layers of two letters run from a start: all v of a grid, each table once. A
    layer in two dimensions with one vector per state represents its table, states numbered breadth first."""
    pairs, starts = np.array(pairs), np.array(starts, float)
    i, j, k, m = (part.ravel() for part in np.indices((len(pairs), len(V), len(V), len(starts))))
    A, v, x0 = pairs[i], np.stack([V[j], V[k]], 1), starts[m]
    x, count = np.full((len(x0), 3, 2), np.nan), np.ones(len(x0), int)
    x[:, 0], delta, rows = x0, np.full((len(x0), 2, 3), -1), np.arange(len(x0))
    for q, a in itertools.product(range(3), range(2)):
        is_state = q < count
        y = (A[:, a] @ x[:, q, :, None])[..., 0] + v[:, a]
        same = (x == y[:, None]).all(-1)
        is_new = is_state & ~same.any(1)
        count[is_new] += 1
        target = np.where(is_new, count - 1, same.argmax(1))
        fits = is_new & (count <= 3)
        x[rows[fits], target[fits]] = y[fits]
        delta[is_state, a, q] = target[is_state]
    tables = np.unique(delta[count <= 3], axis=0)
    return [table[:, : int((table[0] >= 0).sum())] for table in tables]


def contradicted(family, pairs):
    """How many tables layers with these matrices represent, and those for which the family is called unable."""
    tables = represented(pairs)
    answers = [represent(MooreMachine(delta, range(delta.shape[1])), family, False).answer for delta in tables]
    return len(tables), [delta.tolist() for delta, answer in zip(tables, answers, strict=True) if answer == "no"]


def factor_products(family, betas=(Fraction(1), Fraction(3, 2), Fraction(2))):
    """Products of at most the family's factors, of three at most, with dyadic entries: every one as a matrix."""
    directions = [np.array(k, float) for k in ((1, 0), (0, 1), (1, 1), (1, -1))]
    betas = [float(beta) for beta in betas if beta <= family.beta[1]]
    factors = [np.eye(2)] + [np.eye(2) - beta * np.outer(k, k) / (k @ k) for k in directions for beta in betas]
    found = {A.tobytes(): A for A in factors}
    for _ in range((family.factors or 3) - 1):
        found |= {(A @ B).tobytes(): A @ B for A in factors for B in list(found.values())}
    return list({(A + 0.0).tobytes(): A + 0.0 for A in found.values()}.values())


def pairs_of_products(family):
    return sampled(itertools.product(factor_products(family), repeat=2))


@pytest.mark.parametrize("family", PRODUCTS, ids=lambda family: family.name)
def test_no_product_of_factors_does_what_is_called_impossible(family):
    n_represented, wrong = contradicted(family, pairs_of_products(family))
    assert not wrong
    assert n_represented >= 7


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        (HouseholderProducts(1, (0, 2)), HouseholderProducts(1, (0, 1))),
        (HouseholderProducts(2, (0, 2)), HouseholderProducts(2, (0, 1))),
        (HouseholderProducts(3, (0, 1)), HouseholderProducts(1, (0, 1))),
        (HouseholderProducts(2, (0, 2)), HouseholderProducts(1, (0, 2))),
    ],
    ids=lambda family: family.name,
)
def test_the_grid_shows_hypotheses_that_are_too_strong(larger, smaller):
    assert contradicted(smaller, pairs_of_products(larger))[1]


def has(A, eigenvalues):
    """Whether a 2 × 2 matrix of integers is diagonalisable with eigenvalues in the range."""
    trace, discriminant = np.trace(A), np.trace(A) ** 2 - 4 * round(np.linalg.det(A))
    if eigenvalues is None:
        return True
    is_diagonalisable = discriminant != 0 or A[0, 1] == A[1, 0] == 0
    if not is_diagonalisable or eigenvalues == "complex":
        return is_diagonalisable
    low = {"[0,1]": 0, "[-1,1]": -1}[eigenvalues]
    root = np.sqrt(discriminant) if discriminant >= 0 else np.nan
    return low <= (trace - root) / 2 and (trace + root) / 2 <= 1


def shrinks(A):
    """Whether a matrix makes every vector shorter that it does not fix: I − AᵀA ≥ 0 with the kernel of A − I."""
    loss = np.eye(len(A)) - A.T @ A
    values = np.linalg.eigvalsh(loss)
    rank = np.linalg.matrix_rank
    return values.min() > -1e-9 and rank(loss) == rank(A - np.eye(len(A)))


RELATED = {
    "input-independent": lambda A, B: np.array_equal(A, B),
    "commuting": lambda A, B: np.array_equal(A @ B, B @ A),
    "commuting-differences": lambda _, __: True,  # two letters have one difference
    "contracting": lambda A, B: max(np.linalg.norm(A, 2), np.linalg.norm(B, 2)) < 1 + 1e-9,
    "paracontracting": lambda A, B: shrinks(A) and shrinks(B),
    "any": lambda _, __: True,
}


def pairs_of_form(family):
    """Pairs of matrices with entries −1, 0, 1 that have the properties, by their definitions."""
    every = [np.reshape(entries, (2, 2)).astype(float) for entries in itertools.product((-1, 0, 1), repeat=4)]
    every = [A for A in every if has(A, family.eigenvalues)]
    return sampled(pair for pair in itertools.product(every, repeat=2) if RELATED[family.letters](*pair))


@pytest.mark.parametrize("family", FORMS, ids=lambda family: family.name)
def test_no_layer_with_the_properties_does_what_is_called_impossible(family):
    n_represented, wrong = contradicted(family, pairs_of_form(family))
    assert not wrong
    assert n_represented >= 5


@pytest.mark.long_cases("matrices(contracting, any)", "matrices(paracontracting, any)")
@pytest.mark.parametrize(
    "family", [form for form in FORMS if form.letters != "commuting-differences"], ids=lambda f: f.name
)
def test_without_a_property_the_grid_contradicts(family):
    """Two letters have one difference, so that differences commute is left to another test."""
    weaker = Family("any", family.eigenvalues) if family.eigenvalues and family.letters != "any" else None
    every = [np.reshape(entries, (2, 2)).astype(float) for entries in itertools.product((-1, 0, 1), repeat=4)]
    pairs = pairs_of_form(weaker) if weaker else sampled(itertools.product(every, repeat=2))
    assert contradicted(family, pairs)[1]


def check_by_hand(witness, family):
    """That a witness is a layer of the family for its machine: by its numbers, without `recheck`."""
    delta = witness.machine.delta
    if isinstance(witness, Witness):
        assert is_confirmed(witness)
        largest = {"[0,1]": 1, "[-1,1]": 2}.get(getattr(family, "eigenvalues", None))
        if isinstance(family, HouseholderProducts) or family.letters == "paracontracting":
            largest = 2 if getattr(family, "beta", (0, 1))[1] == 2 else 1
        assert largest is None or all(channel.order <= largest for channel in witness.form)
        return
    assert isinstance(witness, HouseholderWitness)
    assert family.factors is None or witness.n_factors <= family.factors
    assert len(set(witness.vectors)) == witness.machine.n_states
    for a, keys in enumerate(witness.keys):
        A = np.eye(witness.dimension, dtype=int).astype(object)
        for key, rate in zip(keys, witness.rates[a] if witness.rates else [1] * len(keys), strict=True):
            k = np.array(key, dtype=object)
            assert 0 <= rate * (k @ k) <= family.beta[1]
            A = A - rate * np.outer(k, k @ A)
        for q, target in enumerate(delta[a]):
            assert (A @ np.array(witness.vectors[q], object) + witness.shifts[a]).tolist() == [*witness.vectors[target]]


@settings(max_examples=settings.default.max_examples // 2)
@given(machines(5, 3), st.sampled_from(PRODUCTS))
def test_every_answer_proves_itself(machine, family):
    verdict = represent(machine, family, short_words=False)
    if isinstance(verdict, Unknown):
        return
    assert verdict.check().startswith("impossible: no" if verdict.answer == "no" else "representable: one")
    if isinstance(verdict, Witness | HouseholderWitness):
        check_by_hand(verdict, family)


@given(machines(5, 3), st.sampled_from(FORMS))
def test_every_answer_about_properties_proves_itself(machine, family):
    verdict = represent(machine, family, short_words=False)
    assert isinstance(verdict, Unknown) or family.name in verdict.check()
    if isinstance(verdict, Witness) and family.name != "lti":
        check_by_hand(verdict, family)


@pytest.mark.long_cases("3")
@pytest.mark.parametrize("n_states", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_any_number_of_factors_without_reflections_is_decided(n_states):
    """T54 leaves no table open, and fewer than 4·dim factors always do."""
    family = HouseholderProducts(None, (0, 1))
    answers = [represent(MooreMachine(delta, range(n_states)), family, False) for delta in all_tables(n_states, 2)]
    assert not any(isinstance(answer, Unknown) for answer in answers)
    built = [answer for answer in answers if isinstance(answer, HouseholderWitness)]
    for witness in built:
        check_by_hand(witness, family)
    assert len(built) == (0, 0, 22, 207)[n_states - 1]


@settings(max_examples=settings.default.max_examples // 4)
@given(machines(4, 2))
def test_more_factors_and_more_of_beta_never_turn_a_yes_into_a_no(machine):
    answers = {
        (n or 4, h): represent(machine, HouseholderProducts(n, (0, h)), False).answer
        for n, h in itertools.product((1, 2, None), (1, 2))
    }
    for (n, h), (more, higher) in itertools.product(answers, repeat=2):
        if n <= more and h <= higher:
            assert (answers[n, h], answers[more, higher]) != ("yes", "no")


@pytest.mark.long_cases("group(S4)-nnn nyy")
@pytest.mark.parametrize(
    ("task", "answers"),  # with 1, 2 and any number of factors: β up to 1, then up to 2
    [
        ("parity", "nnn yyy"), ("sum_mod(3)", "nnn nyy"), ("group(S3)", "nnn nyy"), ("group(S4)", "nnn nyy"),
        ("flip_flop", "yyy yyy"), ("shift_register(1)", "yyy yyy"), ("shift_register(2)", "n?y n?y"),
        ("ab_star", "nnn nyy"), ("cerny(4)", "nnn nnn"),
    ],
)  # fmt: skip
def test_delta_product_with_and_without_negative_eigenvalues(task, answers):
    machine = zoo.from_task(task)
    found = [
        "".join(
            {"no": "n", "yes": "y", "unknown": "?"}[represent(machine, HouseholderProducts(n, (0, h)), False).answer]
            for n in (1, 2, None)
        )
        for h in (1, 2)
    ]
    assert " ".join(found) == answers


def test_a_family_that_need_not_commute_says_no_to_no_group_for_its_order():
    """S₃ has a representation by matrices that do not commute; the flag `same_length=False` called it impossible."""
    assert represent(zoo.group("S3"), Family("commuting", "complex")).answer == "no"
    assert represent(zoo.subtraction(3), Family("commuting-differences")).check().startswith("impossible")
    assert represent(zoo.group("S3"), Family("commuting-differences")).answer != "no"
    assert isinstance(represent(zoo.elevator(3), HouseholderProducts(None, (0, 1))), Impossibility)
    for letters in ("any", "commuting-differences"):
        assert represent(zoo.group("S3"), Family(letters, "complex")).answer != "no"


@pytest.mark.parametrize(("make", "fault"), [
    (lambda: Family("commuting", "idempotent"), r"eigenvalues='idempotent': choose one of '\[0,1\]', '\[-1,1\]'"),
    (lambda: Family("non-commuting"), "letters='non-commuting': choose one of 'input-independent', 'commuting'"),
    (lambda: Family(False), "letters=False: choose one of"),
    (lambda: Family("any"), "state a property"),
    (lambda: Family("paracontracting", "[0,1]"), r"Family\('commuting', '\[0,1\]'\)"),
    (lambda: HouseholderProducts(0), "factors=0: pass a positive integer"),
    (lambda: HouseholderProducts(True), "factors=True: pass a positive integer"),
    (lambda: HouseholderProducts(2.0), "factors=2.0"),
    (lambda: HouseholderProducts(2, (-1, 2)), r"beta=\(-1, 2\): pass \(0, h\)"),
    (lambda: HouseholderProducts(2, (0, 2.5)), r"beta=\(0, 2.5\): pass \(0, h\)"),
    (lambda: HouseholderProducts(2, (0, 0.5)), "neither erase nor reflect"),
    (lambda: HouseholderProducts(2, (1, 2)), r"beta=\(1, 2\)"),
    (lambda: HouseholderProducts(2, (0, float("nan"))), "beta="),
    (lambda: HouseholderProducts(2, 2), "beta=2: pass"),
    (lambda: HouseholderProducts(2, (0, 1, 2)), "beta="),
])  # fmt: skip
def test_what_cannot_be_expressed_is_refused(make, fault):
    with pytest.raises(UnsupportedFormat, match=fault):
        make()


def test_projections_run_and_words_that_repeat_enough_agree():
    machine = zoo.shift_register(3)
    witness = represent(machine, HouseholderProducts(None, (0, 1)))
    assert isinstance(witness, HouseholderWitness)
    model = lower_witness(witness)
    rng = random.Random(0)
    for _ in range(20):
        word = rng.choices(machine.alphabet, k=rng.randint(0, 60))
        assert model.transduce(word) == machine.transduce(word)
    certificate = represent(zoo.ab_star(), HouseholderProducts(2, (0, 1))).to_json()
    assert recheck(certificate)
    short = [[[0, 1], [1, 1]], [[1, 1], [0, 1]]]
    rejected(changed(certificate, ("terms", 0, "words"), lambda _: short), "may differ in the family")


NILPOTENT = represent(zoo.shift_register(2), HouseholderProducts(None, (0, 1))).to_json()
REFUTED = represent(zoo.parity(), HouseholderProducts(2, (0, 1))).to_json()


@pytest.mark.parametrize(("path", "change", "fault"), [
    (("rates", 0, 0), lambda _: "1/3", "do not lead from state"),
    (("rates", 0, 0), lambda _: "-1/2", r"a beta outside \[0, 1\]"),
    (("rates", 0, 0), lambda _: "3", r"a beta outside \[0, 1\]"),
    (("rates", 0), lambda rates: rates[1:], "a row has not"),
    (("rates",), lambda rates: rates[1:], "of other letters"),
    (("keys", 0, 0), lambda key: [*key, 0], "other entries"),
    (("vectors", 0), lambda vector: [x + 1 for x in vector], "do not lead from state|same vector"),
    (("family",), lambda _: "householder(2,[0,1])", "factors, more than 2"),
    (("family",), lambda _: "householder(2,[0,9])", "beta up to 9 is not covered"),
    (("family",), lambda _: "matrices(commuting, any)", "keys are no witness"),
    (("family",), lambda _: "matrices(paracontracting, [0,1])", "is not known"),
])  # fmt: skip
def test_a_changed_witness_is_refused(path, change, fault):
    assert accepted(NILPOTENT)
    rejected(changed(NILPOTENT, path, change), fault)


@pytest.mark.long
def test_reflections_are_refused_where_beta_ends_below_two():
    for task, n in (("group(S3)", 2), ("ab_star", 2), ("group(S4)", 2)):
        certificate = represent(zoo.from_task(task), HouseholderProducts(n)).to_json()
        assert accepted(certificate)
        assert not accepted({**certificate, "family": f"householder({n},[0,1])"})


@pytest.mark.parametrize("words", [[[[1, 1]], []], [[[0, 1], [1, 1]], [[0, 2]]], [[[1, 1]], [[0, 1]]]])
def test_only_words_with_the_same_letters_agree(words):
    assert accepted(REFUTED)
    rejected(changed(REFUTED, ("terms", 0, "words"), lambda _: words), "may differ in the family householder")


@pytest.mark.parametrize("family", ["householder", HouseholderProducts(3)], ids=str)
def test_idempotent_words_commute_in_contractions(family):
    """T58: letters of EvenPair(2) are idempotent and do not commute."""
    verdict = represent(zoo.even_pair(2), family)
    assert isinstance(verdict, Impossibility)
    certificate = verdict.to_json()
    assert accepted(certificate)
    (u, other), *_ = (term["words"] for term in certificate["terms"])
    assert sorted(map(tuple, u)) == sorted(map(tuple, other))
    for words in ([u, u[:1]], [u + other, other + u + u], [[], []]):
        rejected(changed(certificate, ("terms", 0, "words"), lambda _, words=words: words), "may differ in the family")
    moving = zoo.sum_mod(3)  # letters 1 and 2 are not idempotent
    terms = [{"coefficient": "1", "from": 0, "to": 1, "words": [[[1, 1], [2, 1]], [[2, 1], [1, 1]]], "then": []}]
    forged = {**represent(moving, "diagonal[0,1]").to_json(), "family": certificate["family"], "terms": terms}
    rejected(forged, "may differ in the family")
