"""Trimming, minimising, comparing, combining, completing: against brute force and against automata-lib."""

from itertools import product as words_of_length

import numpy as np
import pytest
from automata.fa.dfa import DFA
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import complete, equivalent, minimise, product, trim
from fsa2lrnn.automata.language import widen
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas, machines, words

compiling = settings(deadline=None)


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
def test_trim_keeps_the_reachable_part(m):
    t = trim(m)
    assert (t.start, t.alphabet) == (0, m.alphabet)
    assert t.n_states == len(reachable(m))
    assert equivalent(t, m) is None
    assert trim(t) == t


def reachable(m: MooreMachine) -> set[int]:
    found, new = set(), {m.start}
    while new:
        found |= new
        new = {int(r) for q in new for r in m.delta[:, q]} - found
    return found


@compiling
@given(st.data())
def test_minimise_keeps_the_transduction(data):
    m = data.draw(machines())
    small = minimise(m)
    assert small.n_states <= m.n_states
    assert small.outputs[small.start] == m.outputs[m.start]
    for _ in range(5):
        word = data.draw(words(m))
        assert small.transduce(word) == m.transduce(word)


@compiling
@given(machines(max_states=6, max_letters=2))
def test_minimal_states_are_all_reachable_and_told_apart(m):
    small = minimise(m)
    assert trim(small) == small
    behaviours = {
        tuple(output(MooreMachine(small.delta, small.outputs, q, small.alphabet), w) for w in up_to(5, small.alphabet))
        for q in range(small.n_states)
    }
    assert len(behaviours) == small.n_states


@compiling
@given(machines())
def test_minimise_twice_is_once(m):
    assert minimise(minimise(m)) == minimise(m)
    assert m.minimise() == minimise(m)


@compiling
@given(st.data())
def test_names_of_states_do_not_matter(data):
    m = data.draw(machines())
    order = data.draw(st.permutations(range(m.n_states)))
    assert minimise(permuted(m, order)) == minimise(m)


@settings(compiling, max_examples=60)
@given(dfas(max_states=10))
def test_minimise_agrees_with_automata_lib(m):
    theirs = to_automata_lib(m).to_complete().minify()
    ours = minimise(m)
    assert ours.n_states == len(theirs.to_complete().states)
    assert to_automata_lib(ours) == theirs


def test_a_merged_state_keeps_the_label_of_its_first_member():
    m = MooreMachine([[1, 2, 0, 3]], [True, False, True, False], labels="pqrs")
    assert minimise(m).labels == ("p", "q", "r")
    doubled = MooreMachine([[1, 2, 3, 0]], [True, False, True, False], labels="pqrs")
    assert minimise(doubled).labels == ("p", "q")


@settings(compiling, max_examples=200)
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


def test_a_distinguishing_word_is_in_letters_of_the_first():
    a = MooreMachine([[0, 0], [1, 1]], [False, True], alphabet="ab")
    b = MooreMachine([[0, 0], [0, 1]], [False, True], alphabet="ba")
    assert equivalent(a, b) == ("b",)
    assert equivalent(b, a) == ("b",)
    assert equivalent(a, MooreMachine(a.delta, [True, True], 0, "ab")) == ()


def test_a_mutated_transition_is_found():
    """Flip each transition of a minimal machine in turn: the language changes every time."""
    m = minimise(MooreMachine([[1, 2, 3, 4, 0], [0, 0, 1, 1, 2]], [0, 1, 0, 0, 1]))
    for a in range(2):
        for q in range(m.n_states):
            table = m.delta.copy()
            table[a, q] = (table[a, q] + 1) % m.n_states
            word = equivalent(m, MooreMachine(table, m.outputs, m.start, m.alphabet))
            assert word is not None


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


def test_labels_of_a_product_are_spliced():
    two, three = (MooreMachine([[*range(1, n), 0]], range(n), labels=[f"{n}:{q}" for q in range(n)]) for n in (2, 3))
    nested = product(product(two, three), two)
    assert nested.labels[:2] == (("2:0", "3:0", "2:0"), ("2:1", "3:1", "2:1"))
    assert nested.n_states == 6


def test_product_combines_outputs():
    even = MooreMachine([[1, 0], [0, 1]], [True, False], alphabet="ab")
    third = MooreMachine([[0, 1, 2], [1, 2, 0]], [True, False, False], alphabet="ab")
    both = product(even, third, lambda x, y: x and y)
    assert all(both.accepts(w) == (w.count("a") % 2 == 0 and w.count("b") % 3 == 0) for w in up_to(6, ("a", "b")))


PARTIAL = [[1, None], [None, 0]]


def test_complete_with_an_error_names_what_is_missing():
    with pytest.raises(InvalidMachine) as error:
        complete(PARTIAL, [True, False], alphabet="ab")
    assert str(error.value) == (
        "no transition for state 1 on 'a', state 0 on 'b': add them, or choose completion='sink' "
        "(to a new state that absorbs) or 'ignore' (the state stays)"
    )
    with pytest.raises(InvalidMachine, match=r"state 'odd' on 'a', state 'even' on 'b'"):
        complete(PARTIAL, [True, False], alphabet="ab", labels=["even", "odd"])
    with pytest.raises(InvalidMachine, match=r"state 4 on 0 and 5 more: add them"):
        complete(np.full((1, 10), -1), range(10))


def test_complete_with_a_sink():
    m = complete(PARTIAL, "xy", alphabet="ab", labels=["p", "q"], completion="sink", sink_output="z")
    assert m == MooreMachine([[1, 2, 2], [2, 0, 2]], "xyz", 0, "ab")
    assert m.labels == ("p", "q", "sink")
    assert complete(PARTIAL, [True, True], completion="sink").outputs == (True, True, False)


def test_complete_by_ignoring():
    assert complete(PARTIAL, "xy", alphabet="ab", completion="ignore") == MooreMachine([[1, 1], [0, 0]], "xy", 0, "ab")


@compiling
@given(machines(), st.sampled_from(["error", "sink", "ignore"]))
def test_a_complete_table_is_left_alone(m, completion):
    assert complete(m.delta, m.outputs, m.start, m.alphabet, completion=completion) == m


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


def test_new_letters_need_a_meaning_but_in_acceptors():
    assert widen(MooreMachine([[0]], [True], alphabet="a"), "ab").outputs == (True, False)
    with pytest.raises(InvalidMachine, match="no transition for state 0 on 'b': add them, or choose completion='sink'"):
        widen(MooreMachine([[0]], ["x"], alphabet="a"), "ab")
    with pytest.raises(InvalidMachine, match=r"the alphabet \('b', 0\) lacks '0' \(str\), a letter of the machine"):
        widen(MooreMachine([[0]], [True], alphabet="0"), ["b", 0])
    with pytest.raises(InvalidMachine, match="letter 'b' stands twice in the alphabet"):
        widen(MooreMachine([[0]], [True], alphabet="a"), "abb")


def test_minus_one_marks_as_none_does():
    marked = np.array([[1, -1], [-1, 0]])
    assert complete(marked, "xy", completion="sink") == complete(PARTIAL, "xy", completion="sink")


def test_unknown_completions_are_refused():
    with pytest.raises(UnsupportedFormat) as error:
        complete(PARTIAL, "xy", completion="guess")
    assert str(error.value) == "completion 'guess' is not known: choose one of error, sink, ignore"


@pytest.mark.parametrize(
    ("delta", "message"),
    [
        ([[0, None], [0]], r"the rows of delta have the lengths \[2, 1\]"),
        ([0, 1], "delta has 1 dimensions"),
        ([], "the alphabet is empty"),
        (None, "delta has 0 dimensions"),
        ([[0, "1"]], "is not one state"),
        ([[0, -2]], r"delta\[0, 1\] = -2, but states run 0..1"),
    ],
)
@pytest.mark.parametrize("completion", ["error", "sink", "ignore"])
def test_complete_refuses_what_the_machine_refuses(delta, message, completion):
    with pytest.raises(InvalidMachine, match=message.replace("0..1", r"0\.\.[12]")):
        complete(delta, "xy", completion=completion)


def test_missing_transitions_are_named_even_without_their_letters():
    with pytest.raises(InvalidMachine, match=r"no transition for state 1 on 'a', state 1 on 1"):
        complete([[0, None], [0, None]], "xy", alphabet="a")


def test_a_million_transitions():
    """A counter modulo 1,000 spread over 500,000 states by a shuffled covering."""
    n, period = 500_000, 1_000
    q = np.arange(n)
    covering = MooreMachine([(q + 1) % n, (q + period) % n], (q % period).tolist(), alphabet="ab")
    order = np.random.default_rng(0).permutation(n)
    small = minimise(permuted(covering, order))
    r = np.arange(period)
    expected = MooreMachine([(r + 1) % period, r], r.tolist(), alphabet="ab")
    assert small == expected
    assert equivalent(covering, expected) is None


def test_a_million_transitions_that_stay():
    n = 500_000
    rng = np.random.default_rng(1)
    m = MooreMachine(rng.integers(n, size=(2, n)), rng.integers(2, size=n).astype(bool).tolist())
    small = minimise(m)
    assert small.n_states > n // 2
    assert minimise(small) == small
    assert equivalent(m, small) is None
