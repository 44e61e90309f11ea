"""Prove an external model on its own code, by enumerating all states that it reaches one token at a time.

The first letter is read by a call without a cache, every other letter by a call of one token from a state. States are
compared bit for bit. When no new state appears, every computation that is possible in this way has been done, whatever
the length of the word. The layer's `Code` checks first that a state determines all later outputs.
"""

from __future__ import annotations

import numpy as np
import torch

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat, shortened
from fsa2lrnn.export.declared import State
from fsa2lrnn.export.folder import ExportedModel
from fsa2lrnn.verdicts import LETTERS, Coverage, Proved, Refuted, Undecided
from fsa2lrnn.verification.coverage import environment
from fsa2lrnn.verification.equivalence import explore_pairs
from fsa2lrnn.verification.extraction import NOT_A_NUMBER
from fsa2lrnn.verification.pairs import PairsTable
from fsa2lrnn.verification.specification import specification_of

BUDGET = 20_000  # joint states of the model and the machine


@torch.no_grad()
def prove(
    exported: ExportedModel,
    machine: MooreMachine | None = None,
    budget: int = BUDGET,
    seconds: float | Deadline | None = None,
) -> Proved | Refuted | Undecided:
    """Prove that a model has the machine's output after every non-empty word, with letters read one at a time.

    Args:
        exported: the model.
        machine: the target; None for the machine from which the model was written.
        budget: the most joint states of the model and the machine; beyond it the result is `Undecided`.
        seconds: the time limit after which the result is `Undecided`; None for no limit.

    Raises:
        InvalidMachine: if the machine has other letters.
        UnsupportedFormat: for a model whose states do not determine all later outputs, or are not finite.
        CheckpointError: if no counterexample exists, but weights differ from those that `export` writes. The result of
            reading several letters in one call is then neither proved nor tested.
    """
    code, model, system = exported.code, exported.model, _TokenSystem(exported, Deadline.of(seconds))
    code.check(model)
    goal = specification_of(system, exported.machine if machine is None else machine)
    result = explore_pairs(system, goal, budget, system.deadline)
    if not isinstance(result, PairsTable):
        return result
    if exported.changed:
        raise CheckpointError(
            "every word is answered rightly that is read one token a call, but calls of several tokens may answer "
            f"otherwise, as weights differ from those that `export` writes ({shortened(', '.join(exported.changed))}): "
            "export it again"
        )
    covers = Coverage(exported.dtype, (code.describe(model),), LETTERS, torch.get_num_threads(), environment())
    return Proved(len(result.states), result.letters, covers, goal.scope, exported.digest)


class _TokenSystem:
    """An exported model as a transition system whose states are numbered, int64 (N,) as rows of eight bytes each.

    State 0 is that before the first letter, without a cache. Tokens that stand for no output are `NOT_A_NUMBER`.
    """

    def __init__(self, exported: ExportedModel, deadline: Deadline) -> None:
        self.alphabet, self.outputs, self.deadline = exported.machine.alphabet, exported.outputs, deadline
        self._code, self._model = exported.code, exported.model
        self._states: list[State | None] = [None]
        self._number: dict[bytes, int] = {}

    def initial_output(self) -> int:
        return NOT_A_NUMBER  # no token is put out before the first letter

    def start(self) -> np.ndarray:
        return np.zeros((1, 8), np.uint8)

    def fan(self, states: np.ndarray, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        before = np.ascontiguousarray(states).view(np.int64)[:, 0]
        pairs = [self._step(int(before[i]), a) for i, a in np.argwhere(live).tolist()]
        outputs, after = np.array(pairs, np.int64).reshape(-1, 2).T
        return outputs, after[:, None].copy().view(np.uint8)

    def _step(self, number: int, letter: int) -> tuple[int, int]:
        """Return the numbers of the output and of the state after a letter."""
        self.deadline.check("stepping the exported model")
        state = self._states[number]
        cache = None if state is None else self._code.cache(self._model, state)
        put_out, cache = self._code.read(self._model, torch.tensor([letter]), cache)
        after, output = self._code.state(self._model, cache), int(put_out[-1]) - len(self.alphabet)
        if not all(torch.isfinite(part).all() for part in after):
            raise UnsupportedFormat(f"the model keeps numbers that are not finite after token {letter}")
        key = b"".join(part.reshape(-1).view(torch.uint8).numpy().tobytes() for part in after)
        if key not in self._number:
            self._number[key] = len(self._states)
            self._states.append(after)
        return output if 0 <= output < len(self.outputs) else NOT_A_NUMBER, self._number[key]

    def pick(self, states: np.ndarray, places: np.ndarray) -> np.ndarray:
        return states[places]

    def rows(self, states: np.ndarray) -> np.ndarray:
        return states
