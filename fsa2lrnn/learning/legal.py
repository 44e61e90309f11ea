"""Restriction of a machine to the legal words of a task and the counted positions, as the specification of a proof."""

from __future__ import annotations

from collections.abc import Hashable

from fsa2lrnn.automata.language import explore, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.symbols import align
from fsa2lrnn.training.data import Sampler


def is_restricted(sampler: Sampler) -> bool:
    """Return whether some word is illegal, or some position does not count."""
    return not (sampler.choices.all() and all(sampler.scored))


def free_output(outputs: tuple[Hashable, ...]) -> Hashable:
    """Return a symbol for "does not count" that is not an output: None, or a tuple if None is an output.

    >>> free_output((False, True)), free_output((None, 0))
    (None, ('free', None))
    """
    free: Hashable = None
    while free in outputs:
        free = ("free", free)
    return free


def legal_part(machine: MooreMachine, target: MooreMachine, sampler: Sampler, free: Hashable) -> MooreMachine:
    """Return `machine` on legal words, minimised, with output `free` where none counts or after an illegal letter.

    `sampler` determines the letters that `target` allows in each state; the empty word does not count.
    """
    if not is_restricted(sampler):
        return minimise(machine)
    period = len(sampler.scored)
    order = align(target.alphabet, machine.alphabet)
    position = {letter: a for a, letter in enumerate(target.alphabet)}

    def step(state: tuple[int, int, int, bool] | None, letter: Hashable) -> tuple[int, int, int, bool] | None:
        a = position[letter]
        if state is None or not sampler.choices[state[0], state[2], a]:
            return None
        phase, q, p, _ = state
        after = int(machine.delta[order[a], q]), int(target.delta[a, p])
        return ((phase + 1) % period, *after, sampler.scored[phase])

    def output(state: tuple[int, int, int, bool] | None) -> Hashable:
        return machine.outputs[state[1]] if state is not None and state[3] else free

    start = (0, machine.start, target.start, False)
    part = explore(target.alphabet, start, step, output)
    return minimise(MooreMachine(part.delta, part.outputs, part.start, part.alphabet))
