"""Small random models for the oracle: blocks of at most three states, at most three letters, one to three layers.

Their weights are those of a machine with noise, or random; their numbers range from 2⁻¹³⁰ to 2¹²⁵.
"""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.nn import LRNN, BlockLayerConfig, HouseholderLayerConfig, LRNNConfig
from verify.soundness import extremes, models, near_ties

Case = tuple[LRNN, MooreMachine]
_DTYPES = (*[torch.float32] * 4, torch.float64, torch.float64, torch.float16, torch.bfloat16)
_STACKED = ("tomita(3)", "tomita(4)")
_KNOWN = ("block", "householder")  # the layers of `near_ties` that the oracle evaluates
_SIZES = (2.0**-126, 2.0**-60, 2.0**-20, 1.0, 1.0, 1.0, 2.0**20, 2.0**60, 2.0**62, 2.0**65, 2.0**100, 2.0**120)


def drawn(seed: int) -> Case:
    """Return the model of a seed and the machine that it computes at least on short words.

    Raises `NotExact` for a model whose logits are NaN.
    """
    rng = np.random.default_rng([seed, 7])
    kind = _KINDS[seed % len(_KINDS)]
    return kind(seed, rng)


def _of_machine(seed: int, rng: np.random.Generator) -> Case:
    """Return the weights of a machine, some scaled by a power of two that the next weights take away again."""
    machine = (zoo.parity(), zoo.sum_mod(3), zoo.tomita(1))[int(rng.integers(3))]
    rule = models.RULES[seed // len(_KINDS) % len(models.RULES)]
    if rule in ("paper", "householder", "unit keys") and machine.n_states == 3:
        machine = zoo.sum_mod(3)
    choice = models.Drawn(
        rule,
        weight=float(10 ** rng.uniform(0, 2)),
        cancelling=bool(rng.random() < 0.4),
        noise=float(rng.choice([0.0, 1e-4, 1e-2, 3e-2])),
        layer_norm=bool(rng.random() < 0.4),
        double=True,
        seed=seed,
    )
    model = models.model(choice, machine)
    if rng.random() < 0.4:
        scale = float(rng.choice(_SIZES))
        with torch.no_grad():
            layer = model.recurrences[0]
            gates = dict(layer.gates)
            layer.x0 *= scale  # type: ignore[operator]
            gates["value"].weights.W2.mul_(scale)
            gates["value"].weights.b2.mul_(scale)
            if rng.random() < 0.7:
                model.readout.weights.W1.div_(scale)  # type: ignore[union-attr]
    return model.to(_dtype(rng)), machine


def _stack(seed: int, rng: np.random.Generator) -> Case:
    machine = zoo.from_task(_STACKED[int(rng.integers(len(_STACKED)))])
    noise = float(rng.choice([0.0, 1e-6, 1e-4, 1e-3]))
    choice = models.Drawn("none", 1.0, False, noise, False, True, seed)
    return models.stack(choice, machine).to(_dtype(rng)), machine


def _near_ties(_: int, rng: np.random.Generator) -> Case:
    return _read_off(near_ties.drawn(_seed_of_known(rng)))


def _extreme(_: int, rng: np.random.Generator) -> Case:
    return _read_off(extremes.drawn(_seed_of_known(rng)))


def _random(seed: int, rng: np.random.Generator) -> Case:
    """Return a model with random weights of one to three layers, every column rule, connection and norm."""
    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
    letters, outputs, b = (int(rng.integers(1, 4)) for _ in range(3))
    rule = ("clip", "paper", "none", "onehot")[int(rng.integers(4))]
    b = max(b, 2) if rule == "paper" else b
    heads, count = int(rng.integers(1, 3)), int(rng.choice([1, 1, 2, 3]))
    layer = BlockLayerConfig((b,) * heads, 4, 3)
    if rng.random() < 0.25:
        layer = HouseholderLayerConfig(b, 2, 4, 3, heads, bool(rng.random() < 0.7))
        rule = "none"
    config = LRNNConfig(
        tuple("abc"[:letters]), tuple(range(outputs)), (layer,) * count, heads * b, 5, rule,
        p=float(rng.choice([1, 1.2, 2, 3])), layer_norm=(False, "readout", True)[int(rng.integers(3))],
        connection=str(rng.choice(["chain", "residual", "full-residual", "concat"])),
        token_shift=bool(rng.random() < 0.2),
    )  # fmt: skip
    model = LRNN(config).double()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "transition.2" in name and rule == "none":
                weight.mul_(0.5)
            if rng.random() < 0.1:
                weight.copy_(weight.round())
            if rng.random() < 0.1:
                weight.mul_(float(rng.choice(_SIZES)))
    return _read_off(model.to(_dtype(rng)))


_KINDS: tuple[Callable[[int, np.random.Generator], Case], ...] = (
    _of_machine, _random, _of_machine, _near_ties, _of_machine, _extreme, _of_machine, _stack, _random, _extreme,
)  # fmt: skip


def _seed_of_known(rng: np.random.Generator) -> int:
    while near_ties.KINDS[(seed := int(rng.integers(1 << 30))) % len(near_ties.KINDS)][0] not in _KNOWN:
        pass
    return seed


def _dtype(rng: np.random.Generator) -> torch.dtype:
    return _DTYPES[int(rng.integers(len(_DTYPES)))]


def _read_off(model: LRNN) -> Case:
    return model, near_ties.machine_of(model)
