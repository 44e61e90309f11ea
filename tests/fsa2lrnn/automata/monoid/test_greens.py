"""L-triviality: how it is decided where another fact decides it, and where none does."""

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid import classify


def test_decided_by_other_facts():
    assert classify(zoo.tomita(7)).l_trivial.method == "polynomial: since the monoid is J-trivial"
    assert classify(zoo.parity()).l_trivial.method == "since the monoid is not aperiodic"


def test_decided_by_classes():
    c = classify(zoo.flip_flop())
    assert (c.l_trivial.value, c.l_trivial.method) == (True, "by enumeration of the monoid, 3 elements")
    c = classify(zoo.ab_star())
    assert c.l_trivial.value is False
    u, v, x, y = c.l_trivial.witness.words
    assert c.l_trivial.witness.says.startswith(f"{''.join(u)!r} and {''.join(v)!r} act unlike on state ")
    assert (len(x) > 0, len(y) > 0) == (True, True)


def test_words_put_before_are_read_in_order(check_witness):
    c = classify(MooreMachine.from_source("regex:(abc)*", alphabet="abc"))
    check_witness(c, "l_trivial")
    assert max(map(len, c.l_trivial.witness.words[2:])) == 2


def test_a_single_pair(check_witness):
    """uv = u and vu = v, sr = r and rs = s, all four idempotent, other products zero: only u and v are L-equivalent."""
    one, u, v, s, r, zero = range(6)
    rows = [
        [u, u, v, zero, zero, zero],
        [v, u, v, zero, zero, zero],
        [s, zero, zero, s, s, zero],
        [r, zero, zero, r, r, zero],
    ]
    c = classify(MooreMachine(rows, range(6), start=one, alphabet="uvsr"))
    assert (c.monoid_size.value, c.r_trivial.value, c.l_trivial.value) == (6, False, False)
    assert {*c.l_trivial.witness.words[:2]} == {("u",), ("v",)}
    check_witness(c, "l_trivial")


def test_undecided_when_capped():
    fact = classify(zoo.elevator(7), max_monoid=5).l_trivial
    assert (fact.value, fact.method) == (None, "capped at 5 elements of the monoid")
