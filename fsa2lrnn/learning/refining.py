"""Refined labels and classes of letters for learning: outputs after suffixes, and one letter per class of letters.

Both correspond to queries of L*. The label of a word w distinguishes the outputs after w·s from those of other words,
for all suffixes s up to a length (membership queries). Letters that act alike in the minimal machine share one gate.
The refined machine is learned; `original` maps it back to the letters and outputs.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata.language import minimise, output_classes, share_cells
from fsa2lrnn.automata.machine import MooreMachine


class RefinedMachine(NamedTuple):
    """The machine to be learned, with the class of each letter and the output of each label."""

    machine: MooreMachine
    alphabet: tuple[Hashable, ...]
    cell: np.ndarray
    output: dict[Hashable, Hashable]

    def original(self, machine: MooreMachine) -> MooreMachine:
        """Return a machine over the labels and letter classes as one over the outputs and letters, minimised."""
        outputs = [self.output.get(label, label) for label in machine.outputs]
        order = [machine.alphabet.index(letter) for letter in self.machine.alphabet]
        return minimise(MooreMachine(machine.delta[order][self.cell], outputs, machine.start, self.alphabet))


def refine(machine: MooreMachine, length: int) -> RefinedMachine:
    """Return a minimal machine with labels refined by suffixes of up to `length` letters, and one letter per class.

    An output that is not split is its own label; the parts of any other are pairs (output, number).

    >>> refined = refine(MooreMachine.from_source("regex:(a|b)*c(a|b)"), 2)
    >>> refined.machine.outputs, refined.machine.alphabet
    (((False, 0), (False, 1), True, (False, 2)), ('a', 'c'))
    >>> refined.original(refined.machine).transduce("abca") == [False, False, False, True]
    True
    """
    cell, representatives = share_cells(machine.delta)
    delta = machine.delta[representatives]
    classes = output_classes(machine.outputs)
    for _ in range(length):
        # Two states stay together if they have one class now and after each letter.
        rows = np.vstack([classes, classes[delta]])
        finer = output_classes(list(map(tuple, rows.T.tolist())))
        if finer.max() == classes.max():
            break
        classes = finer
    parts: dict[Hashable, dict[int, int]] = {}
    for output, number in zip(machine.outputs, classes.tolist(), strict=True):
        of_output = parts.setdefault(output, {})
        of_output.setdefault(number, len(of_output))
    labels: list[Hashable] = [
        (output, parts[output][number]) if len(parts[output]) > 1 else output
        for output, number in zip(machine.outputs, classes.tolist(), strict=True)
    ]
    letters = tuple(machine.alphabet[a] for a in representatives)
    refined = MooreMachine(delta, labels, machine.start, letters)
    return RefinedMachine(refined, machine.alphabet, cell, dict(zip(labels, machine.outputs, strict=True)))
