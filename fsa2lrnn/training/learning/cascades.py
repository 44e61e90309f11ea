"""A machine's cascade taught to layers of blocks, component by component, then trained on as a whole and proved.

`decompose` says which states a component is in along a word. Each layer is taught by itself, the layers below standing
where their components stand (teacher forcing), so that no error is carried along: a column is right if the largest of
its logits is the component's next state. Heads without a component are taught to stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot, pad

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.decomposition.cascade import Cascade
from fsa2lrnn.decomposition.search import CascadeSearch
from fsa2lrnn.errors import BudgetExceeded, NotExpressible, UnsupportedFormat
from fsa2lrnn.lower.harden import Heads
from fsa2lrnn.lrnn.gate import Gate
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.symbols import align, word_text
from fsa2lrnn.training.data import Batch
from fsa2lrnn.training.learning.ending import learned_of, trained
from fsa2lrnn.training.learning.examples import FreshWords
from fsa2lrnn.training.learning.judging import LearningTarget
from fsa2lrnn.training.learning.recipe import Recipe, recipe_for
from fsa2lrnn.training.learning.result import Learned
from fsa2lrnn.training.learning.run import LearnedCandidate, LearningRun, Record
from fsa2lrnn.training.learning.whole import WholeRun
from fsa2lrnn.training.train import use_threads

_RATE = 0.01  # of a layer that is taught
_STEPS = 4_000  # after which a layer counts as not to be taught
_SURE = 40  # faultless batches, after which it is taught
_WORDS = 32
_FINE = 0.003  # the rate of training as a whole


@dataclass(frozen=True, eq=False)
class CascadePlan:
    """A cascade and the network that it is taught to.

    Args:
        places: of each layer, the component of each head; None for none.
        recipe: of the whole network, its layers, heads and block.
    """

    cascade: Cascade
    places: list[list[int | None]]
    recipe: Recipe

    def in_words(self) -> str:
        """The states of each layer's components, layers from below.

        >>> from fsa2lrnn.automata import zoo
        >>> plan_cascade(zoo.mod_arith(5)).in_words()
        '3 × 5 | 5'
        """
        sizes = [[str(self.cascade.components[i].n_states) for i in heads if i is not None] for heads in self.places]
        return " | ".join(" × ".join(layer) or "none" for layer in sizes)


def plan_cascade(teacher: MooreMachine, recipe: Recipe | None = None, **changes: Any) -> CascadePlan:
    """The cheapest cascade of a machine within blocks of `block` states (8 by default), and the layers that take it.

    By default these are as few layers as its components need, at least two, of as few heads as then do, and blocks no
    larger than its largest component.

    Raises:
        NotExpressible: where no cascade fits, or the cheapest is one component and the number of layers was left open.
        UnsupportedFormat: for changes that make no recipe, another layer than blocks, a single layer, or wrong labels.
    """
    asked = recipe or recipe_for(None, **{"rate": _FINE, "steps": 2_000, **changes})
    if asked.layer != "block":
        raise UnsupportedFormat(f"layer = {asked.layer!r}: a cascade is taught to layers of blocks")
    if not asked.is_clean:
        raise UnsupportedFormat(f"noise = {asked.noise}: a cascade is taught the machine's outputs, none of them wrong")
    search = CascadeSearch(teacher, asked.block, token_shift=True, deadline=Deadline.of(asked.seconds))
    cascade = search.cheapest(counted=False).cascade
    sizes = [component.n_states for component in cascade.components]
    is_open = recipe is None and "layers" not in changes
    if is_open and len(sizes) == 1:
        raise NotExpressible(
            f"the cheapest cascade is one component of {sizes[0]} states, so there is nothing to spread over layers: "
            'learn it by one layer (method "train"), or ask for smaller blocks'
        )
    layers = max(2, *_depths(cascade)) if is_open else asked.layers
    _check_layers(layers)
    if recipe is None and "heads" not in changes:
        heads = next((h for h in range(1, len(sizes)) if _fits(cascade, layers, (max(sizes),) * h)), len(sizes))
    else:
        heads = asked.heads
    places = placed(cascade, layers, (max(sizes),) * heads)
    return CascadePlan(cascade, places, replace(asked, layers=layers, heads=heads, block=max(sizes)))


def _fits(cascade: Cascade, layers: int, blocks: tuple[int, ...]) -> bool:
    try:
        placed(cascade, layers, blocks)
    except NotExpressible:
        return False
    return True


def _check_layers(layers: int) -> None:
    if layers < 2:
        raise UnsupportedFormat(f"layers = {layers}: a cascade is taught to two or more; `learn` is for one")


def check_teacher(plan: CascadePlan, target: LearningTarget) -> None:
    """Raises `NotExpressible` if the machine that is taught errs where it counts, naming a shortest word."""
    if (word := target.failing_word(plan.cascade.machine)) is not None:
        told = word_text(word, target.wanted.alphabet) or "ε"
        raise NotExpressible(f"the machine whose cascade is to be taught is wrong after {told}: give another teacher")


class DistilledRun(WholeRun):
    """A run that begins with teaching; it can be gone on with after each layer."""

    def __init__(self, plan: CascadePlan, examples: FreshWords, target: LearningTarget, n_states: int) -> None:
        super().__init__(plan.recipe, examples, target, n_states)
        self._plan, self.cascade = plan, plan.cascade
        self.note("cascade", layers=plan.in_words())

    def go(
        self, report: Callable[[Record], None] | None = None, after_step: Callable[[LearningRun], None] | None = None
    ) -> LearnedCandidate | None:
        """Teach what was not taught yet, and train on as a whole where that is not proved."""
        begun, before = time.monotonic(), self.seconds
        deadline = self._deadline()
        teaching = LayerDistillation(
            self.attempt.model, self._plan, self.examples, self.generator, report, self.recipe.look, deadline
        )
        taught = [record["layer"] for record in self.trail if record.get("event") == "taught"]
        found = None
        for number in range(len(taught), self.recipe.layers):
            self.note("taught", layer=number, batches=teaching.layer(number))
            self.seconds = before + time.monotonic() - begun
            if after_step is not None:
                after_step(self)
        if not any(record.get("event") == "read-out taught" for record in self.trail):
            self.note("read-out taught", batches=teaching.readout())
            self.attempt.at.length = self.attempt.full_length
            found = self.judged()
        self.seconds = before + time.monotonic() - begun
        return found or super().go(report, after_step)


def distil_cascade(
    source: str | MooreMachine,
    layers: int = 3,
    blocks: tuple[int, ...] = (8, 8),
    *,
    teacher: MooreMachine | None = None,
    sampler: str = "task",
    recipe: Recipe | None = None,
) -> Learned:
    """Teach the cascade of a machine to so many layers of these blocks, train them on as a whole, and prove them.

    `learn(source, method="cascade")` finds out how many layers and which blocks do, and saves the run.

    Args:
        source: a machine, or text that names one: it draws the words, and judges.
        layers: two or more.
        blocks: the states of each head of a layer, all alike.
        teacher: the machine whose cascade is taught, such as one that was learned; by default the source's.
        recipe: of the training as a whole; `hidden`, `gate_hidden` and `seed` are for the teaching too.

    Raises:
        UnsupportedFormat: for a single layer, or blocks that are none or of several sizes.
        InvalidMachine: for a teacher over other letters.
        NotExpressible: where no cascade of the teacher fits into these layers, or the teacher errs.
        BudgetExceeded: where a layer can't be taught, or the network was not proved and its states are too many.

    >>> found = distil_cascade("task:sum_mod(4)", layers=2, blocks=(2, 2))
    >>> found.is_proved, [layer.block_sizes for layer in found.model.layers]
    (True, [(2, 2), (2, 2)])
    """
    _check_layers(layers)
    if len(set(blocks)) != 1:
        raise UnsupportedFormat(f"blocks = {blocks}: a layer's heads are one or more, all of one size, (8, 8)")
    recipe = replace(recipe or Recipe(rate=_FINE, steps=2_000), layers=layers, heads=len(blocks), block=max(blocks))
    machine = MooreMachine.from_source(source) if isinstance(source, str) else source
    examples = FreshWords(machine, sampler, source if isinstance(source, str) else "")
    target = LearningTarget(examples.machine, examples.sampler, examples.outputs)
    cascade = CascadeSearch(teacher or examples.machine, max(blocks), token_shift=True).cheapest(counted=False).cascade
    plan = CascadePlan(cascade, placed(cascade, layers, blocks), recipe)
    check_teacher(plan, target)
    run = DistilledRun(plan, examples, target, examples.machine.n_states)
    with use_threads(recipe.threads):
        candidate = trained(run, None, None)
    assert run.verdict is not None
    return learned_of(run, candidate, candidate.machine, run.attempt.model, run.verdict, target.scope)


def placed(cascade: Cascade, layers: int, blocks: Sequence[int]) -> list[list[int | None]]:
    """The component of each head of each layer, None for none: each above those that it reads, no two layers sooner
    filled than need be, the rarest room first.

    Raises `NotExpressible` where they don't fit.
    """
    heads: list[list[int | None]] = [[None] * len(blocks) for _ in range(layers)]
    layer_of: dict[int, int] = {}
    depth = _depths(cascade)
    for i, component in enumerate(cascade.components):
        first = 1 + max((layer_of[j] for j in component.reads), default=-1)
        last = layers - depth[i]
        rooms = [
            (sum(at is not None for at in heads[number]), number, h)
            for number in range(first, last + 1)
            for h, size in enumerate(blocks)
            if heads[number][h] is None and component.n_states <= size
        ]
        if not rooms:
            sizes = [component.n_states for component in cascade.components]
            raise NotExpressible(
                f"components of {sizes} states, each above those it reads, do not fit into {layers} layers of blocks "
                f"{tuple(blocks)}: give more layers, more heads or larger blocks"
            )
        _, number, h = min(rooms)
        heads[number][h], layer_of[i] = i, number
    return heads


def _depths(cascade: Cascade) -> list[int]:
    """How many layers each component needs, itself and those that read it in turn."""
    depth = [1] * len(cascade.components)
    for i in reversed(range(len(depth))):
        for j in cascade.components[i].reads:
            depth[j] = max(depth[j], depth[i] + 1)
    return depth


class LayerDistillation:
    """Teaches the layers of a network, each by itself, what a cascade's components do along words.

    What is taught is reported every so many batches, and where it is: a record as of a look, with "taught".
    """

    def __init__(
        self, model: LRNN, plan: CascadePlan, examples: FreshWords, generator: torch.Generator,
        report: Callable[[Record], None] | None = None, every: int = 20, deadline: Deadline = NEVER,
    ) -> None:  # fmt: skip
        self.model, self.examples, self.generator, self.places = model, examples, generator, plan.places
        self._report, self._every, self._deadline = report, every, deadline
        cascade, order = plan.cascade, align(examples.alphabet, plan.cascade.machine.alphabet)
        self._walk = Heads(cascade.delta[order][:, None, :], np.zeros(1, np.int64))
        self._states = torch.from_numpy(np.pad(cascade.states, ((0, 0), (0, 1))))  # at last, of no component: 0
        self._length = examples.fit(40)

    def layer(self, number: int) -> int:
        """Teach one; how many batches that took. Raises `BudgetExceeded` where it can't be had, and `OutOfTime`."""
        layer = self.model.recurrences[number]
        gate, x0 = dict(layer.gates)["transition"], layer.get_parameter("x0")
        optimiser = torch.optim.Adam([*gate.parameters(), x0], _RATE)
        n_heads, b, tau = layer.n_heads, max(layer.block_sizes), self.model.config.layers[number].temperature  # type: ignore[attr-defined]

        def step() -> tuple[Tensor, Tensor]:
            states, u, _ = self._batch(number)
            own = states[number]  # (B, T+1, H)
            logits = gate(u).unflatten(-1, (n_heads, b, b))  # (B, T, H, b, b)
            columns = logits.gather(-1, own[:, :-1, :, None, None].expand(*logits.shape[:-1], 1)).squeeze(-1)
            loss = cross_entropy((columns / tau).flatten(0, -2), own[:, 1:].flatten()) + cross_entropy(x0, own[0, 0])
            wrong = [columns.argmax(-1) != own[:, 1:], x0.argmax(-1) != own[0, 0]]
            return loss, torch.cat([part.flatten() for part in wrong])

        return self._until_sure(optimiser, step, f"layer {number + 1} of {len(self.places)}")

    def readout(self) -> int:
        """Teach the read-out the task's outputs."""
        readout = self.model.readout
        assert isinstance(readout, Gate)
        optimiser = torch.optim.Adam(readout.parameters(), _RATE)

        def step() -> tuple[Tensor, Tensor]:
            states, _, batch = self._batch(0)
            logits = readout(self._shown(states, len(self.places)))
            counts = batch.labels != UNCOUNTED
            loss = cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=UNCOUNTED)
            return loss, (logits.argmax(-1) != batch.labels)[counts]

        return self._until_sure(optimiser, step, "the read-out")

    def _until_sure(
        self, optimiser: torch.optim.Optimizer, step: Callable[[], tuple[Tensor, Tensor]], what: str
    ) -> int:
        """Train until so many batches in a row are faultless; how many it took. A step gives a loss, and what is wrong
        of all that was to be learned."""
        sure = 0
        for taken in range(1, _STEPS + 1):
            self._deadline.check(f"teaching {what}, {taken - 1:,} batches so far")
            loss, wrong = step()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            sure = 0 if wrong.any() else sure + 1
            if self._report is not None and (sure == _SURE or taken % self._every == 0):
                error = float(wrong.float().mean())
                self._report(
                    {
                        "step": taken, "start": 0, "block": max(self.model.recurrences[0].block_sizes),
                        "length": self._length, "loss": loss.item(), "error": error, "faults": error, "teaching": what,
                        "taught": int(sure == _SURE),
                    }
                )  # fmt: skip
            if sure == _SURE:
                return taken
        raise BudgetExceeded(f"{what} could not be taught in {_STEPS:,} batches: give gates more units (gate_hidden)")

    def _batch(self, number: int) -> tuple[list[Tensor], Tensor, Batch]:
        """States of the heads of each layer (B, T+1, H), what layer `number` reads (B, T, d), and the words."""
        batch = self.examples.batch(_WORDS, self._length, self.generator)
        joint = self._states[torch.from_numpy(self._walk.states(batch.tokens.numpy())[..., 0])]  # (B, T+1, C+1)
        states = [joint[..., [-1 if i is None else i for i in heads]] for heads in self.places]
        letters = pad(one_hot(batch.tokens, len(self.examples.alphabet)).float(), (0, 0, 1, 0))  # none at first
        stream = torch.cat([letters, self._shown(states, number)], dim=-1)
        return states, torch.cat([stream[:, 1:], stream[:, :-1]], dim=-1), batch

    def _shown(self, states: list[Tensor], below: int) -> Tensor:
        """The first layers' states as the network shows them: (B, T+1, H·b side by side)."""
        shown = [
            one_hot(own, max(layer.block_sizes)).flatten(-2).float()
            for own, layer in zip(states[:below], self.model.recurrences, strict=False)
        ]
        return torch.cat(shown, -1) if shown else states[0].new_zeros(*states[0].shape[:2], 0).float()
