"""What an explorer says of a model: how long it is right, and a word that it gets wrong."""

from __future__ import annotations

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import counted
from fsa2lrnn.extra.report.explorer.scene import SceneModel
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.verdicts import Proved, Refuted
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.falsify import Budget, falsify

_PAIRS = 20_000  # joint states that a proof may take


def constructed(model: LRNN, machine: MooreMachine) -> SceneModel:
    """A model that was compiled from the machine, proved where its joint states close within a budget.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> constructed(compile_machine(zoo.parity()), zoo.parity()).said.partition("; ")[2]
    'every shape of call, batch and number of threads.'
    """
    verdict = prove_equivalent(model, machine, _PAIRS)
    said = "Compiled from the automaton."
    if isinstance(verdict, Proved):
        closed = counted(verdict.pairs, "joint state")
        said = f"Proved right on all words: {closed} closed, bit for bit, {verdict.covers}."
    return SceneModel(model, "constructed", said)


def searched(model: LRNN, machine: MooreMachine, seconds: float, ignore: Ignore = ()) -> SceneModel:
    """A model that is searched for a failing word. Raises as `falsify` does."""
    verdict = falsify(model, machine, Budget(seconds=seconds), ignore)
    if isinstance(verdict, Refuted):
        least = "the shortest" if verdict.is_shortest else "the shortest found"
        n = len(verdict.word)
        return SceneModel(
            model, "learned", f"Fails on a word of {n:,} letter{'s' * (n != 1)}, {least}.", (verdict.word,)
        )
    if verdict.checked_length is None:
        said = "No word fails that is read letter by letter: its states close, and all were looked at."
        return SceneModel(model, "constructed", said)
    return SceneModel(model, "learned", f"No failing word found in {seconds:g} seconds, which proves nothing.")
