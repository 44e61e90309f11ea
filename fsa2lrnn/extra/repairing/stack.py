"""Repair of several layers, from the lowest up: finitely many exact states in each, near those that it has learned.

Above exact layers, a layer reads finitely many inputs. Each of its blocks separates some states of the machine
(`partition`). It becomes a dead-beat block that stores these classes exactly; its state, for each input and each class
before it, is near the mean state of the trained model in this case. Its gates look up the tables of each input
(`lookups`). The state of the stack is then a function of the last input and the classes, and the read-out changes as
little as necessary to give the machine's output (docs/theory.md, §8).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
import torch

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import NotExact, NotExpressible
from fsa2lrnn.extra.repairing.columns import column_norm
from fsa2lrnn.extra.repairing.lookups import LookUp
from fsa2lrnn.extra.repairing.observed import RepairStates
from fsa2lrnn.extra.repairing.partition import held_partitions
from fsa2lrnn.extra.repairing.probe import Block
from fsa2lrnn.extra.repairing.result import Change, Repaired
from fsa2lrnn.extra.repairing.stack_blocks import DETAILS, UNIT, BlockBounds, deadbeat_block, forgetting_block
from fsa2lrnn.extra.repairing.stack_observed import (
    AT_ONCE,
    LayerInputs,
    StackObservations,
    in_float64,
    input_means,
    like,
    means_of,
    observe_stack,
)
from fsa2lrnn.extraction import ModelSystem
from fsa2lrnn.extraction.walk import FrontierSuccessors, Interner
from fsa2lrnn.lrnn.gate import Gate
from fsa2lrnn.lrnn.layers import BlockLayerConfig
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.verdicts import Proved
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.specification import Specification
from fsa2lrnn.verification.walk import JointWalk

_ATTEMPTS = ((3.0, 0.8), (2.0, 2.0))  # deviations between classes, and how far the states of a block may move
_MOST = 100_000  # states of a repaired stack, with the machine's
_LEAD = 0.05  # of the expected logit over the others, relative to their mean range
_READOUT_STEPS, _READOUT_DAMPING = 2_000, 1e-3


@dataclass(frozen=True, eq=False)
class ExactLayer:
    """A repaired layer with finitely many inputs.

    Args:
        inputs: the look-up of its inputs; A (|S|, H, b, b) and v (|S|, H, b): the tables per input; x0: (H, b).
        classes: for each block the class of every state of the machine.
        learned: A, v and x0 of the trained model, at the mean of what it reads at the positions of each input.
    """

    inputs: LookUp
    A: np.ndarray
    v: np.ndarray
    x0: np.ndarray
    classes: tuple[np.ndarray, ...]
    learned: tuple[np.ndarray, np.ndarray, np.ndarray]


def repair_stack(
    model: LRNN, machine: MooreMachine, goal: Specification, states: RepairStates, deadline: Deadline
) -> Repaired:
    """Return a repaired model of several layers, proved on all words but the empty one.

    Raises:
        UnsupportedFormat: for layers without tables, or an embedding or a read-out that are not a table and a gate.
        NotExpressible: naming two words that the layers lead to one state although the machine's outputs differ.
        NotExact: if the proof fails.
    """
    observed, faults = observe_stack(model, states), list[NotExact | NotExpressible]()
    for separation, tolerance in _ATTEMPTS:
        work = StackRepair(model, states, separation, tolerance, deadline)
        try:
            repaired = work.run(observed)
        except (NotExact, NotExpressible) as error:
            faults.append(error)
            continue
        verdict = prove_equivalent(repaired, machine, _MOST, False, goal.ignored, deadline)
        if isinstance(verdict, Proved):
            return work.report(repaired, goal)
        faults.append(NotExact(f"the verdict on the repaired layers is {verdict}"))
    raise type(faults[0])("; and at another attempt: ".join(dict.fromkeys(map(str, faults))))


class BlockChoice(NamedTuple):
    """Classes of states that a block can store, the block that stores them, and its distance (`MovedBlock.moved`)."""

    head: int
    labels: np.ndarray
    block: Block
    moved: float


class StackRepair:
    """A repair of several layers in progress; `layers` holds the lower layers, which are repaired already."""

    def __init__(
        self, model: LRNN, states: RepairStates, separation: float, tolerance: float, deadline: Deadline = NEVER
    ) -> None:
        self._dtype, digits = model.dtype, -int(np.log2(torch.finfo(model.dtype).eps)) + 1
        self._model, self._states, self._deadline = in_float64(model), states, deadline
        self._separation, self._bounds = separation, BlockBounds(digits, tolerance)
        self.layers: list[ExactLayer] = []

    def run(self, observed: StackObservations) -> LRNN:
        """Return the repaired model, whose read-out may still be wrong somewhere."""
        inputs = self._inputs(0, observed)
        for i in range(len(self._model.layers) - 1):
            for detail in DETAILS:  # the fewer states, the less likely one lies among the others
                exact = self._layer(i, inputs, observed, detail)
                try:
                    inputs = self._inputs(i + 1, observed, exact)
                    break
                except NotExpressible:
                    if detail == DETAILS[-1]:
                        raise
        last = self._layer(-1, inputs, observed, DETAILS[0])
        self.layers.append(last)
        model = self._build()
        self._read_out(model)
        return model

    def report(self, repaired: LRNN, goal: Specification) -> Repaired:
        """Return the result, with the change of all tables together."""
        exact = [(layer.A, layer.v, layer.x0) for layer in self.layers]
        learned = [layer.learned for layer in self.layers]
        after, before = (
            [np.concatenate([part.ravel() for part in parts]) for parts in zip(*side, strict=True)]
            for side in (exact, learned)
        )
        p = self._model.config.p
        return Repaired(
            repaired,
            "dyadic",
            "keep",
            (),
            self._states.numbers,
            goal.scope,
            Change(
                *(float(np.linalg.norm(a - b) / (np.linalg.norm(b) or 1.0)) for a, b in zip(after, before, strict=True))
            ),
            p,
            max(column_norm(A, p) for A, _, _ in learned),
            max(column_norm(A, p) for A, _, _ in exact),
            None,
            tuple(layer.classes for layer in self.layers),
        )

    def _build(self) -> LRNN:
        """Return the model with the layers repaired so far; those above are zero."""
        config, dtype = self._model.config, self._dtype
        sizes = [layer.block_sizes for layer in self._model.recurrences]
        counts = [len(layer.A) for layer in self.layers] + [1] * (len(sizes) - len(self.layers))
        kinds = tuple(BlockLayerConfig(size, count, count) for size, count in zip(sizes, counts, strict=True))
        norm = "readout" if config.layer_norm else False
        model = like(self._model, replace(config, layers=kinds, normalisation="none", layer_norm=norm), dtype)
        parts = [
            (
                torch.from_numpy(layer.x0),
                {"transition": layer.inputs.gate(layer.A, dtype), "value": layer.inputs.gate(layer.v, dtype)},
            )
            for layer in self.layers
        ]
        parts += [(torch.zeros(len(size), max(size)), {}) for size in sizes[len(parts) :]]
        embedding = self._model.embedding.get_parameter("weight").detach()
        model.write((embedding / UNIT).round() * UNIT, parts, cast("Gate", self._model.readout).weights._asdict())
        if model.norms:
            model.norms[-1].load_state_dict(self._model.norms[-1].state_dict())
        return model

    def _inputs(self, i: int, observed: StackObservations, below: ExactLayer | None = None) -> LayerInputs:
        self.layers[i - 1 :] = [] if below is None else [below]
        model, interner, rows, moves = self._build(), Interner(), [], []
        for _, _, before, after, u in self._reached(model, i):
            numbers, new = interner.new(_bytes(u))
            rows.append(u[new])
            moves.append(np.column_stack([numbers, before, after]))
        number, source, target = np.concatenate(moves).T
        delta = np.full((len(interner), self._states.delta.shape[1]), -1)
        delta[number, source] = target
        at = []
        with torch.no_grad():
            for words in torch.from_numpy(observed.tokens).split(AT_ONCE):
                u = model.trace(words, model.initial_state(len(words)))[i][0].double().numpy()
                at.append(u[observed.right[len(at) * AT_ONCE :][: len(words)]])
        numbers = interner.number(_bytes(np.concatenate(at)))
        if len(interner) > len(delta):
            raise NotExact(f"layer {i} reads other numbers in batches than letter by letter: the layers below round")
        return LayerInputs(LookUp.of(np.concatenate(rows)), delta, numbers)

    def _layer(self, i: int, inputs: LayerInputs, observed: StackObservations, detail: str) -> ExactLayer:
        self.layers = self.layers[: i if i >= 0 else len(self._model.layers) - 1]
        layer, right, n = self._model.recurrences[i], observed.right, len(inputs.delta)
        x0 = layer.initial_state(1)[0].detach().numpy()
        b = x0.shape[1]
        u = means_of(observed.u[i][right], inputs.numbers, np.zeros_like(inputs.numbers), (n, 1))[:, 0]
        with torch.no_grad():
            A, v = (table.numpy() for table in layer.tables(torch.from_numpy(u)))
        before, after = observed.states[:, :-1][right], observed.states[:, 1:][right]
        alike = np.flatnonzero(self._states.numbers[:-1] == self._states.numbers[-1])
        twin = int(alike[0]) if len(alike) else self._states.initial
        states = np.append(after, twin)
        exact = ExactLayer(inputs.look_up, np.zeros_like(A), np.zeros_like(v), np.zeros_like(x0), (), (A, v, x0))
        parts = [observed.x[i][:, :, h * b : h * b + size][right] for h, size in enumerate(layer.block_sizes)]
        choices: list[BlockChoice] = []
        for h, x in enumerate(parts):
            start = x0[h, : x.shape[1]]
            sizes = sorted({max(x.shape[1], 2), x.shape[1] // 2 + 1}, reverse=True)
            # What depends on the input alone can be shifted: without it, classes after unlike inputs are comparable.
            for shift in (0 * x, input_means(x, inputs, after)):
                along = np.vstack([x - shift, start - shift.mean(0)])
                for labels in held_partitions(along, states, inputs.delta, sizes, self._separation, self._deadline):
                    labels[self._states.initial] = labels[twin]
                    at = before if detail == DETAILS[0] else after
                    initial = int(labels[self._states.initial])
                    made = deadbeat_block(x, at, labels, initial, inputs, start, detail, self._bounds)
                    if made is not None:
                        choices.append(BlockChoice(h, labels, *made))
        nothing = np.zeros(self._states.delta.shape[1], np.int64)
        chosen, classes = {choice.head: choice for choice in self._needed(choices, nothing)}, []
        for h, x in enumerate(parts):
            size = x.shape[1]
            block = chosen[h].block if h in chosen else forgetting_block(x, inputs, x0[h, :size], detail)
            classes.append(chosen[h].labels if h in chosen else nothing)
            exact.A[:, h, :size, :size], exact.v[:, h, :size], exact.x0[h, :size] = block.A, block.v, block.x0
        return replace(exact, classes=tuple(classes))

    def _needed(self, choices: list[BlockChoice], nothing: np.ndarray) -> list[BlockChoice]:
        """Return choices, at most one per head, that separate more states than the lower layers do.

        Greedy: the next choice has the most new classes of states per distance that its block moves; the search ends
        when no choice for another head adds a class. `nothing` is the partition with one class, zeros (n,).
        """
        carried = _meet([nothing, *(labels for layer in self.layers for labels in layer.classes)])
        chosen: list[BlockChoice] = []
        while choices:
            gains = [int(_meet([carried, choice.labels]).max() - carried.max()) for choice in choices]
            best = max(range(len(choices)), key=lambda i: gains[i] / (0.1 + choices[i].moved))
            if gains[best] == 0:
                break
            chosen.append(choices[best])
            carried = _meet([carried, choices[best].labels])
            choices = [choice for choice in choices if choice.head != chosen[-1].head]
        return chosen

    def _read_out(self, model: LRNN) -> None:
        """Change the read-out's second map by little, so that the expected logit leads in every reachable state."""
        gate, first = cast("Gate", model.readout), {}
        for walk, ahead, _, after, u in self._reached(model, len(model.layers)):
            for place in np.flatnonzero(self._states.counts[after]).tolist():
                q, (other, word, _) = (
                    int(after[place]),
                    first.setdefault(u[place].tobytes(), (int(after[place]), walk.word(ahead, place), u[place])),
                )
                if self._states.wanted[q] != self._states.wanted[other]:
                    raise NotExpressible(self._lacking(word, walk.word(ahead, place), other, q))
        rows = torch.from_numpy(np.stack([u for _, _, u in first.values()])).to(model.dtype)
        wanted = self._states.wanted[[q for q, _, _ in first.values()]]
        with torch.no_grad():
            hidden = gate.hidden(rows).double().numpy()
        weights = gate.weights
        W, b = lead(hidden, wanted, weights.W2.detach().double().numpy(), weights.b2.detach().double().numpy())
        gate.set({**weights._asdict(), "W2": torch.from_numpy(W), "b2": torch.from_numpy(b)})

    def _lacking(self, first: np.ndarray, second: np.ndarray, q: int, other: int) -> str:
        """Return a message with two words that lead all layers to one state, but the machine to two."""
        words = [tuple(self._model.alphabet[a] for a in word.tolist()) for word in (first, second)]
        states = [int(self._states.numbers[state]) for state in (q, other)]
        outputs = [self._states.outputs[self._states.wanted[state]] for state in (q, other)]
        return (
            f"the layers carry too little: {words[0]} and {words[1]} lead all of them to one state, but the minimal "
            f"machine to states {states[0]} and {states[1]} with the outputs {outputs[0]!r} and {outputs[1]!r}, so "
            f"that no read-out is right: their blocks separate too few states by {self._separation} deviations"
        )

    def _reached(
        self, model: LRNN, at: int
    ) -> Iterator[tuple[JointWalk[np.ndarray, np.ndarray], FrontierSuccessors, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield for each length the walk, its successors, the machine states before and after, and layer inputs."""
        system = ModelSystem(model, deadline=self._deadline)
        walk = JointWalk(system, self._states)
        while len(walk):
            ahead, after = walk.look()
            if len(after):
                state = system.state_of(walk.states[ahead.parents])
                with torch.no_grad():
                    u = model.trace(torch.from_numpy(ahead.letters)[:, None], state)[at][0][:, 0].double().numpy()
                yield walk, ahead, walk.tags[ahead.parents], after, u
            walk.keep_new(ahead, after)
            if walk.seen > _MOST:
                raise NotExpressible(f"the repaired layers reach more than {_MOST:,} states: their steps round")


def lead(hidden: np.ndarray, wanted: np.ndarray, W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return W and b near the given ones with which the expected logit leads at every point, or the last ones tried.

    Each step adds a damped least-squares change that gives the expected logits the lead that they lack.
    """
    wide, joint, at = np.hstack([hidden, np.ones((len(hidden), 1))]), np.hstack([W, b[:, None]]), np.arange(len(wanted))
    gram = wide.T @ wide
    back = np.linalg.solve(gram + _READOUT_DAMPING * np.trace(gram) / len(gram) * np.eye(len(gram)), wide.T)
    needed = _LEAD * float(np.ptp(wide @ joint.T, axis=1).mean())
    for _ in range(_READOUT_STEPS):
        logits = wide @ joint.T
        lacking = np.maximum(needed - (logits[at, wanted][:, None] - logits), 0)
        lacking[at, wanted] = 0
        if not lacking.any():
            break
        step = -lacking / 2
        step[at, wanted] = lacking.max(1) / 2
        joint = joint + 1.5 * (back @ step).T
    return joint[:, :-1], joint[:, -1]


def _bytes(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows + 0.0).view(np.uint8).reshape(len(rows), -1)  # −0 and 0 are one number


def _meet(partitions: list[np.ndarray]) -> np.ndarray:
    """Return the coarsest partition that is finer than all of these."""
    return np.unique(np.stack(partitions, axis=1), axis=0, return_inverse=True)[1].ravel()
