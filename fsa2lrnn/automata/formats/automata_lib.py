"""Convert machines from and to the automata of the package automata-lib."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from automata.fa.dfa import DFA
from automata.fa.gnfa import GNFA
from automata.fa.nfa import NFA

from fsa2lrnn.automata.formats.assemble import to_machine
from fsa2lrnn.automata.formats.graph import EPSILON, Edge, LabelledGraph, State, in_natural_order
from fsa2lrnn.automata.formats.regex import from_regex
from fsa2lrnn.automata.language import Completion
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat


def from_automata(
    automaton: DFA | NFA | GNFA, alphabet: Iterable[Hashable] | None = None, completion: Completion | None = None
) -> MooreMachine:
    """Return a machine from an automata-lib DFA (complete or partial), NFA or GNFA.

    Args:
        alphabet: the order of the letters, a permutation of `automaton.input_symbols`; natural order by default.
        completion: the treatment of missing transitions (`assemble.to_machine`); a rejecting sink by default.

    States are numbered in natural order. An NFA is determinised, and a GNFA is read through its regular expression.

    Raises:
        UnsupportedFormat: for another type, such as a pushdown automaton or a Turing machine.
        InvalidMachine: if `alphabet` is not a permutation, the alphabet is empty, or there are accepting states but
            none is reachable.

    >>> dfa = DFA(states={"p"}, input_symbols={"a", "b"}, transitions={"p": {"a": "p"}}, initial_state="p",
    ...           final_states={"p"}, allow_partial=True)
    >>> from_automata(dfa).transduce("aab")
    [True, True, False]
    """
    if not isinstance(automaton, DFA | NFA | GNFA):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UnsupportedFormat(
            f"{type(automaton).__name__} is not a finite automaton of automata-lib: give a DFA, an NFA or a GNFA"
        )
    letters = in_natural_order(automaton.input_symbols)
    if alphabet is not None:
        chosen = tuple(alphabet)
        if len(chosen) != len(letters) or set(chosen) != set(letters):
            raise InvalidMachine(
                f"alphabet {chosen} is not a permutation of the input symbols {letters}: list each of them once"
            )
        letters = chosen
    if isinstance(automaton, GNFA):
        if signs := [letter for letter in letters if str(letter) in r"()[]{}\*+?|^$.&ε"]:
            raise InvalidMachine(
                f"letter {signs[0]!r} is a sign of regular expressions, which a GNFA does not mark: rename it, or give "
                "the DFA or NFA that the GNFA was made from"
            )
        return from_regex(automaton.to_regex(), alphabet=letters)
    # An NFA has a set of targets for each letter, and the letter "" for epsilon.
    states = in_natural_order(automaton.states)
    transitions: Mapping[Any, Mapping[str, Any]] = automaton.transitions
    edges = tuple(
        Edge(source, EPSILON if letter == "" else letter, target)
        for source in states
        for letter, targets in transitions.get(source, {}).items()
        for target in ([targets] if isinstance(automaton, DFA) else in_natural_order(targets))
    )
    graph = LabelledGraph(
        "acceptor",
        tuple(State(q, q, q in automaton.final_states) for q in states),
        ((automaton.initial_state, None),),
        edges,
        letters,
        origin=f"the {type(automaton).__name__}",
    )
    return to_machine(graph, completion)


def to_automata(machine: MooreMachine) -> DFA:
    """Return the automata-lib DFA of an acceptor, with the same numbers of states and the texts of the letters.

    Raises `UnsupportedFormat` if the machine is not an acceptor, two letters have the same text, or one is empty.

    >>> sorted(to_automata(MooreMachine([[1, 0]], [True, False], alphabet="a")).final_states)
    [0]
    """
    letters = text_letters(machine, "automata-lib")
    if not machine.is_acceptor:
        raise UnsupportedFormat(
            "a DFA of automata-lib accepts or rejects, this machine has other outputs "
            f"({', '.join(repr(o) for o in dict.fromkeys(machine.outputs))}): write it as JSON, DOT or networkx"
        )
    transitions = {
        q: {letter: int(machine.delta[a, q]) for a, letter in enumerate(letters)} for q in range(machine.n_states)
    }
    return DFA(
        states=set(transitions),
        input_symbols=set(letters),
        transitions=transitions,
        initial_state=machine.start,
        final_states={q for q, accepts in enumerate(machine.outputs) if accepts},
    )


def text_letters(machine: MooreMachine, target: str) -> list[str]:
    """Return the texts of a machine's letters, for a format named `target` whose letters are texts.

    Raises `UnsupportedFormat` if two letters have the same text, or one is empty, which means epsilon there.
    """
    written: dict[str, Hashable] = {}
    for letter in machine.alphabet:
        text = str(letter)
        if text in written:
            raise UnsupportedFormat(
                f"letters {written[text]!r} and {letter!r} are both written {text!r}, and {target} holds text alone: "
                "rename one, or write JSON"
            )
        if not text:
            raise UnsupportedFormat(
                f"letter {letter!r} is written as nothing, which {target} reads as epsilon: rename it, or write JSON"
            )
        written[text] = letter
    return list(written)
