"""Trimming, minimising, comparing, combining, completing, against brute force and automata-lib; which outputs count."""

import itertools
from itertools import product as words_of_length

import numpy as np
import pytest
from automata.fa.dfa import DFA
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import complete, equivalent, minimise, product, trim, zoo
from fsa2lrnn.automata.counting import positions_of, smallest_after_first
from fsa2lrnn.automata.language import widen
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas, machines, words

compiling = settings(deadline=None)
PARTIAL = [[1, None], [None, 0]]


def up_to(longest: int, alphabet: tuple) -> list[tuple]:
    return [w for n in range(longest + 1) for w in words_of_length(alphabet, repeat=n)]


def output(m: MooreMachine, word: tuple) -> object:
    return m.outputs[m.run(word)]


def permuted(m: MooreMachine, order: list[int]) -> MooreMachine:
    """The same machine with state q called order[q]."""
    place = np.argsort(order)
    return MooreMachine(np.array(order)[m.delta[:, place]], [m.outputs[q] for q in place], order[m.start], m.alphabet)


def to_automata_lib(m: MooreMachine) -> DFA:
    return DFA(
        states=set(range(m.n_states)),
        input_symbols=set(m.alphabet),
        transitions={q: {a: m.step(q, a) for a in m.alphabet} for q in range(m.n_states)},
        initial_state=m.start,
        final_states={q for q in range(m.n_states) if m.outputs[q]},
    )


@compiling
@given(machines())
def test_trim_keeps_the_reachable_part_and_both_are_projections(m):
    t = trim(m)
    assert (t.start, t.alphabet) == (0, m.alphabet)
    assert t.n_states == len(reachable(m))
    assert equivalent(t, m) is None
    assert trim(t) == t
    assert minimise(minimise(m)) == m.minimise() == minimise(m)


def reachable(m: MooreMachine) -> set[int]:
    found, new = set(), {m.start}
    while new:
        found |= new
        new = {int(r) for q in new for r in m.delta[:, q]} - found
    return found


@compiling
@given(st.data())
def test_minimise_keeps_the_transduction_whatever_the_states_are_called(data):
    m = data.draw(machines())
    small = minimise(m)
    assert small.n_states <= m.n_states
    assert small.outputs[small.start] == m.outputs[m.start]
    for _ in range(5):
        word = data.draw(words(m))
        assert small.transduce(word) == m.transduce(word)
    assert minimise(permuted(m, data.draw(st.permutations(range(m.n_states))))) == small


@settings(compiling, max_examples=30)
@given(dfas(max_states=10))
def test_minimise_agrees_with_automata_lib(m):
    theirs = to_automata_lib(m).to_complete().minify()
    ours = minimise(m)
    assert ours.n_states == len(theirs.to_complete().states)
    assert to_automata_lib(ours) == theirs


@settings(compiling, max_examples=100)
@given(st.data())
def test_equivalent_agrees_with_all_short_words(data):
    a = data.draw(machines(max_states=4, outputs=(0, 1), alphabet="ab"))
    b = data.draw(st.one_of(machines(max_states=4, outputs=(0, 1), alphabet="ab"), st.just(minimise(a))))
    differing = [w for w in up_to(a.n_states + b.n_states - 1, a.alphabet) if output(a, w) != output(b, w)]
    word = equivalent(a, b)
    if word is None:
        assert differing == []
        assert minimise(a) == minimise(b)
    else:
        assert output(a, word) != output(b, word)
        assert len(word) == len(differing[0])
        assert minimise(a) != minimise(b)


@compiling
@given(st.data())
def test_the_order_of_letters_does_not_matter(data):
    m = data.draw(machines(max_letters=3))
    order = data.draw(st.permutations(range(len(m.alphabet))))
    shuffled = MooreMachine(m.delta[order], m.outputs, m.start, [m.alphabet[i] for i in order])
    assert equivalent(m, shuffled) is None
    assert equivalent(shuffled, m) is None
    assert product(m, shuffled, lambda x, y: x == y).outputs == (True,) * product(m, shuffled).n_states


@pytest.mark.parametrize("combine", [equivalent, product])
def test_unlike_alphabets_are_refused(combine):
    a = MooreMachine([[0], [0]], [True], alphabet="ab")
    with pytest.raises(InvalidMachine) as error:
        combine(a, MooreMachine([[0], [0]], [True], alphabet="bc"))
    assert "(only the first has ['a'], only the second ['c'])" in str(error.value)
    with pytest.raises(InvalidMachine, match="only the second"):
        combine(a, MooreMachine([[0], [0], [0]], [True], alphabet="abc"))


@compiling
@given(st.data())
def test_product_runs_both(data):
    a = data.draw(machines(max_states=5, alphabet="ab"))
    b = data.draw(machines(max_states=5, outputs="xyz", alphabet="ab"))
    both = product(a, b)
    word = data.draw(words(a))
    assert both.transduce(word) == list(zip(a.transduce(word), b.transduce(word), strict=True))
    assert both.outputs[both.start] == (a.outputs[a.start], b.outputs[b.start])
    assert trim(both) == both
    assert both.labels[both.run(word)] == (a.run(word), b.run(word))


@pytest.mark.parametrize(("delta", "options", "message"), [
    (PARTIAL, {"alphabet": "ab"}, r"no transition for state 1 on 'a', state 0 on 'b': add them, or choose"),
    (PARTIAL, {"alphabet": "ab", "labels": ["even", "odd"]}, "state 'odd' on 'a', state 'even' on 'b'"),
    ([[0, None], [0, None]], {"alphabet": "a"}, "no transition for state 1 on 'a', state 1 on 1"),
    (np.full((1, 10), -1), {"outputs": range(10)}, r"state 4 on 0 and 5 more: add them"),
    ([[0, None], [0]], {}, r"the rows of delta have the lengths \[2, 1\]"), ([[0, "1"]], {}, "is not one state"),
    ([[0, -2]], {"completion": "sink"}, r"delta\[0, 1\] = -2, but states run"), ([], {}, "the alphabet is empty"),
])  # fmt: skip
def test_complete_names_what_is_missing_or_no_state(delta, options, message):
    with pytest.raises(InvalidMachine, match=message):
        complete(delta, **{"outputs": "xy", **options})


def test_completing_with_a_sink_by_ignoring_and_over_new_letters():
    m = complete(PARTIAL, "xy", alphabet="ab", labels=["p", "q"], completion="sink", sink_output="z")
    assert m == MooreMachine([[1, 2, 2], [2, 0, 2]], "xyz", 0, "ab")
    assert m.labels == ("p", "q", "sink")
    assert complete(PARTIAL, [True, True], completion="sink").outputs == (True, True, False)
    marked = np.array([[1, -1], [-1, 0]])  # −1 marks as None does
    assert complete(marked, "xy", completion="sink") == complete(PARTIAL, "xy", completion="sink")
    assert complete(PARTIAL, "xy", alphabet="ab", completion="ignore") == MooreMachine([[1, 1], [0, 0]], "xy", 0, "ab")
    with pytest.raises(UnsupportedFormat, match="completion 'guess' is not known: choose one of error, sink, ignore"):
        complete(PARTIAL, "xy", completion="guess")
    assert widen(MooreMachine([[0]], [True], alphabet="a"), "ab").outputs == (True, False)
    with pytest.raises(InvalidMachine, match="no transition for state 0 on 'b': add them, or choose completion='sink'"):
        widen(MooreMachine([[0]], ["x"], alphabet="a"), "ab")
    with pytest.raises(InvalidMachine, match=r"the alphabet \('b', 0\) lacks '0' \(str\), a letter of the machine"):
        widen(MooreMachine([[0]], [True], alphabet="0"), ["b", 0])
    with pytest.raises(InvalidMachine, match="letter 'b' stands twice in the alphabet"):
        widen(MooreMachine([[0]], [True], alphabet="a"), "abb")


@given(machines(), st.sampled_from(["sink", "ignore"]), st.data())
def test_a_widened_machine_does_the_same_on_the_letters_that_it_knew(m, completion, data):
    letters = data.draw(st.permutations([*m.alphabet, "new", ("another", 1)]))
    wide = widen(m, letters, completion)
    assert wide.alphabet == tuple(letters)
    word = data.draw(st.lists(st.sampled_from(letters), max_size=8))
    known = [letter for letter in word if letter in m.alphabet]
    given = wide.transduce(word)
    if completion == "ignore":
        assert wide.run(word) == m.run(known)
    else:
        first_new = next((k for k, letter in enumerate(word) if letter not in m.alphabet), len(word))
        assert given[:first_new] == m.transduce(word[:first_new])
        assert set(given[first_new:]) <= {False if m.is_acceptor else None}
    assert widen(m, m.alphabet) == m


@pytest.mark.long
def test_a_million_transitions():
    n, period = 500_000, 1_000
    q = np.arange(n)
    covering = MooreMachine([(q + 1) % n, (q + period) % n], (q % period).tolist(), alphabet="ab")
    order = np.random.default_rng(0).permutation(n)
    small = minimise(permuted(covering, order))
    r = np.arange(period)
    expected = MooreMachine([(r + 1) % period, r], r.tolist(), alphabet="ab")
    assert small == expected
    assert equivalent(covering, expected) is None


def all_words(machine, longest):
    return (w for n in range(1, longest + 1) for w in itertools.product(machine.alphabet, repeat=n))


@given(machines(max_states=6, max_letters=2))
def test_the_smallest_machine_after_the_first_letter_is_equivalent_and_no_larger(machine):
    smallest = smallest_after_first(machine)
    assert equivalent(smallest, machine, empty_word=False) is None
    assert smallest.n_states in (machine.minimise().n_states, machine.minimise().n_states - 1)
    for output in (0, 1, 2):  # whatever the empty word is given, no machine is smaller
        delta = np.concatenate([machine.delta, machine.delta[:, [machine.start]]], axis=1)
        other = MooreMachine(delta, [*machine.outputs, output], machine.n_states, machine.alphabet)
        assert smallest.n_states <= other.minimise().n_states


def blank_outputs(machine, kept):
    """The smallest machine with the same outputs where they are among `kept`, and None everywhere else."""
    outputs = [output if output in kept else None for output in machine.outputs]
    return MooreMachine(machine.delta, outputs, machine.start, machine.alphabet).minimise()


def test_a_mask_counts_what_its_acceptor_accepts_and_draws_live_words():
    machine = zoo.mod_arith(2)
    legal = blank_outputs(machine, (0, 1))
    acceptor = MooreMachine(legal.delta, [output is not None for output in legal.outputs], 0, legal.alphabet)
    letters = tuple(reversed(legal.alphabet))
    for empty_word in (False, True):
        mask = positions_of(letters, acceptor, empty_word)
        tokens = mask.random_words(np.random.default_rng(0), 50, 7)
        for word, row in zip(tokens, mask.counts[mask.path(tokens)], strict=True):
            assert [output is not None for output in legal.transduce([letters[a] for a in word])] == row.tolist()
            assert row.tolist() == [True, False] * 3 + [True]
    assert not positions_of("ab", None, False).counts[positions_of("ab", None, False).start]
    assert positions_of("ab", None, True).counts.all()
    with pytest.raises(InvalidMachine, match="the alphabets differ"):
        positions_of("ab", acceptor, False)


@given(machines(max_states=4, max_letters=2), machines(max_states=4, max_letters=2))
def test_equivalence_after_the_first_letter_against_all_words(a, b):
    if a.alphabet != b.alphabet:
        return
    runs = [(w, a.transduce(w)[-1], b.transduce(w)[-1]) for w in all_words(a, 7)]
    for ignored in (set(), {b.outputs[-1]}):
        difference = next((w for w, one, other in runs if one != other not in ignored), None)
        found = equivalent(a, b, ignored, empty_word=False)
        if difference is not None or found is None or not ignored:  # else the words may be too short
            assert (found is None) == (difference is None)
        if difference is not None:
            assert len(found) == len(difference)
        if found is not None:
            assert a.transduce(found)[-1] != b.transduce(found)[-1] not in ignored
        starts_apart = a.outputs[a.start] != b.outputs[b.start] not in ignored
        assert (equivalent(a, b, ignored) == ()) == starts_apart
