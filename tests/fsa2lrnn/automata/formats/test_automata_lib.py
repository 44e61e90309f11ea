"""automata-lib: DFAs, partial DFAs, NFAs and GNFAs, there and back."""

import pytest
from automata.fa.dfa import DFA
from automata.fa.gnfa import GNFA
from automata.fa.nfa import NFA
from automata.pda.dpda import DPDA
from hypothesis import assume, given

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import equivalent, trim
from fsa2lrnn.automata.formats.automata_lib import from_automata, to_automata
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas


@given(dfas())
def test_round_trip(machine):
    assume(any(trim(machine).outputs) or not any(machine.outputs))
    assert from_automata(to_automata(machine)) == machine


@given(dfas(max_states=4))
def test_generalised_automata_come_back_equivalent(machine):
    dfa = to_automata(machine)
    if not dfa.isempty():
        assert equivalent(from_automata(GNFA.from_dfa(dfa)), machine) is None


def test_partial_automata_reject_what_they_lack():
    dfa = DFA(
        states={"p", "q"},
        input_symbols={"a", "b"},
        transitions={"p": {"a": "q"}, "q": {}},
        initial_state="p",
        final_states={"q"},
        allow_partial=True,
    )
    machine = from_automata(dfa)
    assert (machine.labels, machine.accepts("a"), machine.accepts("ab")) == (("p", "q", "sink"), True, False)
    assert from_automata(dfa, alphabet="ba").alphabet == ("b", "a")
    assert from_automata(dfa, completion="ignore").accepts("abba")


def test_nondeterministic_automata_are_determinised():
    nfa = NFA(
        states={0, 1, 2},
        input_symbols={"a", "b"},
        transitions={0: {"a": {0, 1}, "b": {0}}, 1: {"": {2}}},
        initial_state=0,
        final_states={2},
    )
    machine = from_automata(nfa)
    assert (machine.transduce("aab"), machine.labels) == ([True, True, False], ("{0}", "{0, 1, 2}"))


def test_what_is_no_finite_automaton_is_refused():
    dpda = DPDA(
        states={"q"},
        input_symbols={"a"},
        stack_symbols={"#"},
        transitions={},
        initial_state="q",
        initial_stack_symbol="#",
        final_states={"q"},
    )
    with pytest.raises(
        UnsupportedFormat, match="DPDA is not a finite automaton of automata-lib: give a DFA, an NFA or"
    ):
        from_automata(dpda)  # type: ignore[arg-type]


def test_faults_of_automata_are_named():
    dfa = to_automata(MooreMachine([[0, 1]], [False, True], alphabet="a"))
    with pytest.raises(InvalidMachine, match=r"the DFA: accepting states \{1\} cannot be reached from start 0"):
        from_automata(dfa)
    with pytest.raises(InvalidMachine, match=r"alphabet \('b',\) is not a permutation of the input symbols \('a',\)"):
        from_automata(dfa, alphabet="b")
    empty = DFA(states={0}, input_symbols=set(), transitions={0: {}}, initial_state=0, final_states={0})
    with pytest.raises(InvalidMachine, match="the DFA: the alphabet is empty"):
        from_automata(empty)


def test_machines_that_are_no_acceptors_or_need_more_than_text_are_refused():
    with pytest.raises(UnsupportedFormat, match=r"accepts or rejects, this machine has other outputs \('x'\)"):
        to_automata(MooreMachine([[0]], ["x"]))
    with pytest.raises(UnsupportedFormat, match="letters 0 and '0' are both written '0', and automata-lib holds text"):
        to_automata(MooreMachine([[0], [0]], [True], alphabet=(0, "0")))
    with pytest.raises(UnsupportedFormat, match="letter '' is written as nothing, which automata-lib reads as epsilon"):
        to_automata(MooreMachine([[0]], [True], alphabet=("",)))
