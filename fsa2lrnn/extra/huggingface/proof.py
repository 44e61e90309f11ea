"""Prove an external model on its own code, by enumerating all states that it reaches one token at a time.

The first letter is read by a call without a cache, every other letter by a call of one token from a state. States are
compared bit for bit. When no new state appears, every computation that is possible in this way has been done, whatever
the length of the word. The layer's `Code` checks first that a state determines all later outputs.
"""

from __future__ import annotations

import torch

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat, shortened
from fsa2lrnn.extra.huggingface.declared import State
from fsa2lrnn.extra.huggingface.folder import ExportedModel
from fsa2lrnn.extra.huggingface.tokens import PAD
from fsa2lrnn.scope import LETTERS, Coverage, Scope
from fsa2lrnn.symbols import align
from fsa2lrnn.verdicts import Counterexample, Proved, Refuted, Undecided
from fsa2lrnn.versions import environment

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
    target = minimise(exported.machine if machine is None else machine)
    order = align(exported.machine.alphabet, target.alphabet)
    code, model, deadline = exported.code, exported.model, Deadline.of(seconds)
    code.check(model)
    n = len(exported.machine.alphabet)
    tokens = {output: n + j for j, output in enumerate(exported.outputs)}
    scope = Scope(target.n_states)
    numbers: dict[tuple[bytes, int], int] = {(b"", target.start): 0}
    nodes: list[tuple[State | None, int, tuple[int, ...]]] = [(None, target.start, ())]
    transitions = 0
    for state, q, word in nodes:  # grows, breadth first
        if deadline.left() <= 0:
            return Undecided(len(word), scope, seconds=deadline.seconds)
        for a in range(n):
            put_out, cache = code.read(model, torch.tensor([a]), None if state is None else code.cache(model, state))
            after, token = code.state(model, cache), int(put_out[-1])
            if not all(torch.isfinite(part).all() for part in after):
                raise UnsupportedFormat(f"the model keeps numbers that are not finite after token {a}")
            reached = int(target.delta[order[a], q])
            transitions += 1
            if token != tokens.get(target.outputs[reached]):
                return _refuted(exported, target, (*word, a), token, scope)
            key = b"".join(part.reshape(-1).view(torch.uint8).numpy().tobytes() for part in after), reached
            if key not in numbers:
                numbers[key] = len(nodes)
                nodes.append((after, reached, (*word, a)))
                if len(nodes) > budget:
                    return Undecided(len(word), scope, budget)
    if exported.changed:
        raise CheckpointError(
            "every word is answered rightly that is read one token a call, but calls of several tokens may answer "
            f"otherwise, as weights differ from those that `export` writes ({shortened(', '.join(exported.changed))}): "
            "export it again"
        )
    covers = Coverage(exported.dtype, (code.describe(model),), LETTERS, torch.get_num_threads(), environment())
    return Proved(len(nodes), transitions, covers, scope, exported.digest)


def _refuted(
    exported: ExportedModel, machine: MooreMachine, word: tuple[int, ...], token: int, scope: Scope
) -> Refuted:
    letters = tuple(exported.machine.alphabet[a] for a in word)
    target = tuple(machine.transduce(list(letters)))
    n = len(exported.machine.alphabet)
    outputs = (*exported.outputs, PAD)
    last = outputs[token - n] if token >= n else f"the letter {exported.machine.alphabet[token]!r}"
    return Refuted(Counterexample(letters, target, (*target[:-1], last)), len(word) - 1, scope)
