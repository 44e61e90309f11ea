"""The joint breadth-first walk over pairs (model state, machine state), level by level, while words can still fail.

The prover, `falsify`, and the enumeration by which `certify` and `check` handle several layers (`explore`) use it. Only
`fsa2lrnn.checker` has a walk of its own.

`RoundingWatch` decides on the way whether rounding could change a model's outputs. If not, every scan gives the
sequential scan's outputs. Each layer decides this for every input that it reads in a run (`Layer.is_exact`). Its gates
must sum integers within the range that the dtype represents, so that order and batch do not matter, or round too little
to change the choice of a column. Its tables must be maps among finitely many states (`nn.layers.base`), of which a
parallel scan forms only compositions. Then all states, and the inputs of the read-out, are the same in every run; at
every such input the largest logit must stay the largest under rounding (T53 of docs/theory.md).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import OutOfTime
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.layers import Layer
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers, integers
from fsa2lrnn.verification.extraction import ModelSystem
from fsa2lrnn.verification.extraction.breadth_first import FrontierSuccessors, R, S, TransitionSystem, WordFrontier
from fsa2lrnn.verification.specification import Specification


class RoundingWatch:
    """A monitor of a model's runs: `is_exact` is True while rounding can change no observed state and no output.

    Once `is_exact` is False it stays False, and the model is no longer inspected. Index tables involve no rounding.
    """

    def __init__(self, model: LRNN) -> None:
        self._model = model
        self._limit = integers(FloatFormat.of(model.dtype))
        self._watched: list[nn.Module] = []  # a model without a stream does not round
        if not model.config.reads_letters:
            self._watched = [*model.recurrences, model.readout]
        self.is_exact = not model.config.layer_norm and all(layer.starts_exact() for layer in model.recurrences)

    @contextmanager
    def looking(self) -> Generator[None]:
        """Inspect the inputs of all layers and of the read-out within this context."""
        watched = self._watched if self.is_exact else []
        handles = [module.register_forward_pre_hook(self._inspect) for module in watched]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _inspect(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if self.is_exact and inputs[0].numel():
            rows = inputs[0].detach().flatten(0, -2)
            u = cast("Tensor", rows.unique(dim=0))  # pyright: ignore[reportUnknownMemberType] - (N, d)
            with torch.no_grad():
                if module is self._model.readout and isinstance(module, Gate):
                    self.is_exact = has_one_largest(module.rounded(RoundedNumbers.exact(u)))
                else:
                    self.is_exact = cast("Layer", module).is_exact(u, self._limit)


def has_one_largest(logits: RoundedNumbers) -> bool:
    """Decide whether every evaluation of logits (…, n), all finite, has the same first largest entry.

    >>> close = torch.tensor([1.0, 1.0 + 2**-20])
    >>> has_one_largest(RoundedNumbers.exact(close)), has_one_largest(RoundedNumbers.exact(close).scaled(1 / 3))
    (True, True)
    >>> has_one_largest(RoundedNumbers.exact(torch.tensor([1.0, 1.0 + 2**-23])).scaled(1 / 3))
    False
    """
    column = RoundedNumbers(logits.mid.unsqueeze(-1), logits.off.unsqueeze(-1), logits.kind)
    is_one = column.largest(torch.ones(column.mid.shape[-2], 1, dtype=torch.bool)).is_exact
    return is_one and bool(column.size.isfinite().all())  # a single logit has no rival but NaN


def may_close(model: LRNN) -> bool:
    """Decide whether `prove_equivalent` may succeed, from the kinds of layers and from the start alone.

    It may if all layers have finitely many states for any weights, or if the model starts as compiled models do, in a
    state from which maps among finitely many states stay finite.

    >>> from fsa2lrnn.nn import BlockLayerConfig, LRNNConfig
    >>> layer = BlockLayerConfig((3,), 4, 4)
    >>> [may_close(LRNN(LRNNConfig("ab", (0, 1), (layer,), normalisation=rule))) for rule in ("onehot", "clip")]
    [True, False]
    """
    is_finite = all(layer.is_finite(model.config.normalisation) for layer in model.recurrences)
    return is_finite or all(layer.starts_exact() for layer in model.recurrences)


ROUNDS = ("sequential",)
"""The scans of an enumeration in which something rounds: words read letter by letter, one at a time."""
MOST_ALONE = 1 << 13
"""The maximal number of letters read one at a time, for a model that rounds: some seconds."""
_LETTERS_PER_CALL = 1 << 8  # a call of the model takes about as long as this many letters of a batch
MOST_BYTES = 1 << 27
"""The maximal size of the visited pairs."""
_PAIR = 250  # bytes that Python takes for a pair, besides the state


class JointWalk(WordFrontier[S, R]):
    """A breadth-first frontier of a model with its specification; the tags are the machine's states."""

    def __init__(self, system: TransitionSystem[S, R], goal: Specification) -> None:
        super().__init__(system, goal.start)
        self._goal = goal

    @property
    def live(self) -> np.ndarray:
        """The letters, for each word of the frontier, after which some output still counts: bool (N, |Σ|)."""
        return self._goal.live[:, self.tags].T

    def look(self) -> tuple[FrontierSuccessors[S, R], np.ndarray]:
        """Return the words of the frontier extended by one live letter, and their machine states, int64 (M,)."""
        live = self.live
        return self.fan(live), self._goal.delta[:, self.tags].T[live]


@dataclass(frozen=True)
class EnumerationResult:
    """The result of an enumeration.

    Args:
        length: model and machine agree wherever outputs count on all words of at most this length.
        steps: the number of letters read, without those after which no output counts.
        pairs: the number of distinct pairs (model state, machine state) that these letters reach, the start included.
        is_closed: whether the reachable pairs are finitely many and were enumerated: they agree for every length.
        is_wrong: whether the model is wrong on some word of length + 1.
        scans: all scans of the model, in every shape of call, if rounding cannot change a visited state or output; else
            `ROUNDS`.
    """

    length: int
    pairs: int
    steps: int
    is_closed: bool
    is_wrong: bool
    scans: tuple[str, ...]


def explore(
    model: LRNN,
    goal: Specification,
    allows: Callable[[int], bool],
    longest: int | None = None,
    deadline: Deadline = NEVER,
) -> EnumerationResult:
    """Explore pairs breadth first until a word is wrong, no pair is new, or budget, time or length run out.

    A length is explored completely or not at all: `allows` decides whether that many steps may be made in all, where
    each call of the model counts as `_LETTERS_PER_CALL`, so that long words of few letters are no cheaper. A model
    that rounds is stepped letter by letter, one word at a time, since it may round differently in a batch, at most
    `MOST_ALONE` times. Pairs are at most as many as fit in `MOST_BYTES`.
    """
    watch = RoundingWatch(model)
    result = _walked(ModelSystem(model, deadline=deadline), watch, goal, allows, longest)
    if watch.is_exact:
        return replace(result, scans=model.methods)
    alone = ModelSystem(model, at_once=1, deadline=deadline)
    return _walked(alone, watch, goal, lambda steps: steps <= MOST_ALONE and allows(steps), longest)


def _walked(
    system: ModelSystem, watch: RoundingWatch, goal: Specification, allows: Callable[[int], bool], longest: int | None
) -> EnumerationResult:
    """Explore with steps of one kind. If batches round, end after one length, since `explore` then starts anew."""
    walk, is_wrong = JointWalk(system, goal), False
    while len(walk) and (longest is None or walk.length < longest):
        # A length is explored only if the budget covers all of it.
        more = int(walk.live.sum())
        steps = walk.letters + more + (_LETTERS_PER_CALL * walk.length if system.steps_in_batches else 0)
        if not allows(steps) or (walk.seen + more) * (walk.states.shape[1] + _PAIR) > MOST_BYTES:
            break
        try:
            with watch.looking():
                ahead, to = walk.look()
        except OutOfTime:
            break
        if goal.is_wrong(ahead.read, to).any():
            is_wrong = True
            break
        walk.keep_new(ahead, to)
        if not watch.is_exact and system.steps_in_batches:
            break
    return EnumerationResult(walk.length, walk.seen, walk.letters, not len(walk), is_wrong, ROUNDS)
