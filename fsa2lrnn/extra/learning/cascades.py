"""Distillation of a machine's cascade into layers of blocks, component by component, then joint training and a proof.

`decompose` computes the states of a component along a word. Each layer is trained separately while the layers below are
set to the states of their components (teacher forcing), so that errors do not accumulate. A column is correct if the
largest of its logits is the component's next state. Heads without a component learn the identity.
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
from fsa2lrnn.extra.learning.ending import learned_of, trained
from fsa2lrnn.extra.learning.examples import FreshWords
from fsa2lrnn.extra.learning.judging import LearningTarget
from fsa2lrnn.extra.learning.recipe import Recipe, recipe_for
from fsa2lrnn.extra.learning.result import Learned
from fsa2lrnn.extra.learning.run import LearnedCandidate, LearningRun, Record
from fsa2lrnn.extra.learning.whole import WholeRun
from fsa2lrnn.lower.harden import Heads
from fsa2lrnn.lrnn.gate import Gate
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.symbols import align, word_text
from fsa2lrnn.training.data import Batch
from fsa2lrnn.training.train import use_threads

_RATE = 0.01  # learning rate of the distillation of a layer
_STEPS = 4_000  # after which the distillation of a layer has failed
_SURE = 40  # faultless batches in a row, after which it has succeeded
_WORDS = 32
_FINE = 0.003  # learning rate of the joint training


@dataclass(frozen=True, eq=False)
class CascadePlan:
    """A cascade and the network into which it is distilled.

    Args:
        places: the component of each head of each layer; None for a head without one.
        recipe: the recipe of the whole network, with its layers, heads and block.
    """

    cascade: Cascade
    places: list[list[int | None]]
    recipe: Recipe

    def in_words(self) -> str:
        """Return the numbers of states of each layer's components as text, lowest layer first.

        >>> from fsa2lrnn.automata import zoo
        >>> plan_cascade(zoo.mod_arith(5)).in_words()
        '3 × 5 | 5'
        """
        sizes = [[str(self.cascade.components[i].n_states) for i in heads if i is not None] for heads in self.places]
        return " | ".join(" × ".join(layer) or "none" for layer in sizes)


def plan_cascade(teacher: MooreMachine, recipe: Recipe | None = None, **changes: Any) -> CascadePlan:
    """Return the cheapest cascade of a machine within blocks of `block` states (8 by default), placed in layers.

    By default there are as few layers as the components need, at least two, with as few heads as then suffice, and
    blocks no larger than the largest component.

    Raises:
        NotExpressible: if no cascade fits, or the cheapest is one component and the number of layers was left open.
        UnsupportedFormat: for changes that give no valid recipe, layers other than blocks, one layer, or wrong labels.
    """
    base = recipe or recipe_for(None, **{"rate": _FINE, "steps": 2_000, **changes})
    if base.layer != "block":
        raise UnsupportedFormat(f"layer = {base.layer!r}: a cascade is taught to layers of blocks")
    if not base.is_clean:
        raise UnsupportedFormat(f"noise = {base.noise}: a cascade is taught the machine's outputs, none of them wrong")
    search = CascadeSearch(teacher, base.block, token_shift=True, deadline=Deadline.of(base.seconds))
    cascade = search.cheapest(counted=False).cascade
    sizes = [component.n_states for component in cascade.components]
    is_open = recipe is None and "layers" not in changes
    if is_open and len(sizes) == 1:
        raise NotExpressible(
            f"the cheapest cascade is one component of {sizes[0]} states, so there is nothing to spread over layers: "
            'learn it by one layer (method "train"), or ask for smaller blocks'
        )
    layers = max(2, *_depths(cascade)) if is_open else base.layers
    _check_layers(layers)
    if recipe is None and "heads" not in changes:
        heads = next((h for h in range(1, len(sizes)) if _fits(cascade, layers, (max(sizes),) * h)), len(sizes))
    else:
        heads = base.heads
    places = placed(cascade, layers, (max(sizes),) * heads)
    return CascadePlan(cascade, places, replace(base, layers=layers, heads=heads, block=max(sizes)))


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
    """Raise `NotExpressible` with a shortest counterexample if the cascade's machine differs from the target."""
    if (word := target.failing_word(plan.cascade.machine)) is not None:
        text = word_text(word, target.specification.alphabet) or "ε"
        raise NotExpressible(f"the machine whose cascade is to be taught is wrong after {text}: give another teacher")


class DistilledRun(WholeRun):
    """A run that begins with the distillation of a cascade; it can be resumed after each layer."""

    def __init__(self, plan: CascadePlan, examples: FreshWords, target: LearningTarget, n_states: int) -> None:
        super().__init__(plan.recipe, examples, target, n_states)
        self._plan, self.cascade = plan, plan.cascade
        self.note("cascade", layers=plan.in_words())

    def go(
        self, report: Callable[[Record], None] | None = None, after_step: Callable[[LearningRun], None] | None = None
    ) -> LearnedCandidate | None:
        """Distil the remaining layers, then train the network as a whole unless it is proved already."""
        begun, before = time.monotonic(), self.seconds
        deadline = self._deadline()
        distillation = LayerDistillation(
            self.attempt.model, self._plan, self.examples, self.generator, report, self.recipe.look, deadline
        )
        distilled = [record["layer"] for record in self.trail if record.get("event") == "taught"]
        candidate = None
        for number in range(len(distilled), self.recipe.layers):
            self.note("taught", layer=number, batches=distillation.layer(number))
            self.seconds = before + time.monotonic() - begun
            if after_step is not None:
                after_step(self)
        if not any(record.get("event") == "read-out taught" for record in self.trail):
            self.note("read-out taught", batches=distillation.readout())
            self.attempt.at.length = self.attempt.full_length
            candidate = self.verified()
        self.seconds = before + time.monotonic() - begun
        return candidate or super().go(report, after_step)


def distil_cascade(
    source: str | MooreMachine,
    layers: int = 3,
    blocks: tuple[int, ...] = (8, 8),
    *,
    teacher: MooreMachine | None = None,
    sampler: str = "task",
    recipe: Recipe | None = None,
) -> Learned:
    """Distil the cascade of a machine into layers of blocks, train them as a whole, and return the proved result.

    `learn(source, method="cascade")` chooses the number of layers and the blocks, and saves the run.

    Args:
        source: the target machine, or text that names one; words are drawn from it.
        layers: the number of layers, two or more.
        blocks: the number of states of each head of a layer, all equal.
        teacher: the machine whose cascade is distilled, such as a learned one; by default the source.
        recipe: the recipe of the joint training; `hidden`, `gate_hidden` and `seed` apply to the distillation too.

    Raises:
        UnsupportedFormat: for a single layer, or blocks that are empty or of several sizes.
        InvalidMachine: for a teacher over another alphabet.
        NotExpressible: if no cascade of the teacher fits into these layers, or the teacher differs from the source.
        BudgetExceeded: if a layer cannot be distilled, or the network is not proved and has too many states.

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
    """Return the component of each head of each layer, None for a head without one.

    Each component is above those that it reads, in the layer with the fewest used heads. Raises `NotExpressible` if
    they do not fit.
    """
    heads: list[list[int | None]] = [[None] * len(blocks) for _ in range(layers)]
    layer_of: dict[int, int] = {}
    depth = _depths(cascade)
    for i, component in enumerate(cascade.components):
        first = 1 + max((layer_of[j] for j in component.reads), default=-1)
        last = layers - depth[i]
        free = [
            (sum(at is not None for at in heads[number]), number, h)
            for number in range(first, last + 1)
            for h, size in enumerate(blocks)
            if heads[number][h] is None and component.n_states <= size
        ]
        if not free:
            sizes = [component.n_states for component in cascade.components]
            raise NotExpressible(
                f"components of {sizes} states, each above those it reads, do not fit into {layers} layers of blocks "
                f"{tuple(blocks)}: give more layers, more heads or larger blocks"
            )
        _, number, h = min(free)
        heads[number][h], layer_of[i] = i, number
    return heads


def _depths(cascade: Cascade) -> list[int]:
    """Return the number of layers that each component needs: its own, and those of the components that read it."""
    depth = [1] * len(cascade.components)
    for i in reversed(range(len(depth))):
        for j in cascade.components[i].reads:
            depth[j] = max(depth[j], depth[i] + 1)
    return depth


class LayerDistillation:
    """Distillation of a cascade's components into the layers of a network, each layer separately.

    Progress is reported every `every` batches as a record like that of an evaluation, with the key "taught".
    """

    def __init__(
        self, model: LRNN, plan: CascadePlan, examples: FreshWords, generator: torch.Generator,
        report: Callable[[Record], None] | None = None, every: int = 20, deadline: Deadline = NEVER,
    ) -> None:  # fmt: skip
        self.model, self.examples, self.generator, self.places = model, examples, generator, plan.places
        self._report, self._every, self._deadline = report, every, deadline
        cascade, order = plan.cascade, align(examples.alphabet, plan.cascade.machine.alphabet)
        self._walk = Heads(cascade.delta[order][:, None, :], np.zeros(1, np.int64))
        self._states = torch.from_numpy(
            np.pad(cascade.states, ((0, 0), (0, 1)))
        )  # the last column, for heads without a component, is 0
        self._length = examples.fit(40)

    def layer(self, number: int) -> int:
        """Distil one layer and return the number of batches. Raises `BudgetExceeded` if it fails, and `OutOfTime`."""
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
        """Train the read-out on the task's outputs and return the number of batches; raises as `layer`."""
        readout = self.model.readout
        assert isinstance(readout, Gate)
        optimiser = torch.optim.Adam(readout.parameters(), _RATE)

        def step() -> tuple[Tensor, Tensor]:
            states, _, batch = self._batch(0)
            logits = readout(self._one_hot_states(states, len(self.places)))
            counts = batch.labels != UNCOUNTED
            loss = cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=UNCOUNTED)
            return loss, (logits.argmax(-1) != batch.labels)[counts]

        return self._until_sure(optimiser, step, "the read-out")

    def _until_sure(
        self, optimiser: torch.optim.Optimizer, step: Callable[[], tuple[Tensor, Tensor]], what: str
    ) -> int:
        """Train until `_SURE` batches in a row are faultless; `step` returns a loss and a mask of wrong predictions."""
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
        """Return head states of each layer (B, T+1, H), the input of layer `number` (B, T, d), and the words."""
        batch = self.examples.batch(_WORDS, self._length, self.generator)
        joint = self._states[torch.from_numpy(self._walk.states(batch.tokens.numpy())[..., 0])]  # (B, T+1, C+1)
        states = [joint[..., [-1 if i is None else i for i in heads]] for heads in self.places]
        letters = pad(one_hot(batch.tokens, len(self.examples.alphabet)).float(), (0, 0, 1, 0))  # none at first
        stream = torch.cat([letters, self._one_hot_states(states, number)], dim=-1)
        return states, torch.cat([stream[:, 1:], stream[:, :-1]], dim=-1), batch

    def _one_hot_states(self, states: list[Tensor], below: int) -> Tensor:
        """Return the states of the first `below` layers as one-hot vectors, concatenated: (B, T+1, H·b per layer)."""
        vectors = [
            one_hot(own, max(layer.block_sizes)).flatten(-2).float()
            for own, layer in zip(states[:below], self.model.recurrences, strict=False)
        ]
        return torch.cat(vectors, -1) if vectors else states[0].new_zeros(*states[0].shape[:2], 0).float()
