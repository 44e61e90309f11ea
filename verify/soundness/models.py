"""Models whose gates sum large numbers that nearly cancel, so that their tables depend on the order of the sums.

A gate reads one-hot letters. One hidden unit per letter holds the result minus the contribution of the others: units of
random weights up to `weight`, whose sum the first unit cancels. In real numbers the weight makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.lower import compile_machine
from fsa2lrnn.nn import LRNN, BlockLayerConfig, HouseholderLayerConfig, LRNNConfig
from fsa2lrnn.nn.gate import Values
from fsa2lrnn.nn.layers import LayerConfig

RULES = ("none", "clip", "paper", "householder", "unit keys")
_NOISE = 24  # hidden units that cancel


@dataclass(frozen=True)
class Drawn:
    """The parameters of a random model.

    Args:
        rule: one of `RULES`.
        weight: the approximate largest weight of its gates.
        cancelling: False for look-ups: the same tables without the sums.
        noise: the difference between its tables and those that compute the machine.
        layer_norm: whether the read-out has one.
        double: whether it is in float64 instead of float32.
        seed: of all random numbers.
    """

    rule: str
    weight: float
    cancelling: bool
    noise: float
    layer_norm: bool
    double: bool
    seed: int


def model(drawn: Drawn, machine: MooreMachine) -> LRNN:
    """Return a model of one layer of one block that computes the machine on short words, or on all."""
    rng, machine = np.random.default_rng(drawn.seed), minimise(machine)
    n, letters = machine.n_states, len(machine.alphabet)
    outputs = tuple(dict.fromkeys(machine.outputs))
    written, v, x0, read = _PARTS[drawn.rule](machine, rng)
    hidden = letters + (_NOISE if drawn.cancelling else 0)
    b = len(x0)
    layer: LayerConfig = BlockLayerConfig((b,), hidden, hidden)
    if drawn.rule in ("householder", "unit keys"):
        layer = HouseholderLayerConfig(b, written["rate"].shape[1], hidden, hidden, 1, drawn.rule == "unit keys")
    column_rule = drawn.rule if drawn.rule in ("none", "clip", "paper") else "none"
    config = LRNNConfig(
        machine.alphabet, outputs, (layer,), letters, 2 * len(outputs), column_rule, 1.2,
        layer_norm="readout" if drawn.layer_norm else False,
    )  # fmt: skip
    made = LRNN(config).double()
    written |= {"value": v}
    gates = {
        name: _gate(table + drawn.noise * rng.normal(size=table.shape), drawn, rng) for name, table in written.items()
    }
    votes = np.zeros((len(outputs), n))
    votes[[outputs.index(output) for output in machine.outputs], np.arange(n)] = 1
    W = votes @ read
    eye = np.eye(len(outputs))
    readout = {"W1": np.concatenate([W, -W]), "W2": np.concatenate([eye, -eye], 1)}
    made.write(
        torch.eye(letters).double(),
        [(_tensor(x0)[None], gates)],
        {name: _tensor(x) for name, x in readout.items()},
    )
    return made if drawn.double else made.float()


def stack(drawn: Drawn, machine: MooreMachine) -> LRNN:
    """Return a cascade of layers that computes the machine, each of its weights changed by noise."""
    made = compile_machine(machine, form="cascade", max_block=2, dtype=torch.float64)
    generator = torch.Generator().manual_seed(drawn.seed)
    with torch.no_grad():
        for weight in made.parameters():
            weight += drawn.noise * torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
    return made if drawn.double else made.float()


def _tensor(x: np.ndarray) -> torch.Tensor:
    return torch.tensor(x, dtype=torch.float64)


def _gate(table: np.ndarray, drawn: Drawn, rng: np.random.Generator) -> Values:
    """Return the weights of a gate whose output for the one-hot letter a is row a of a table (|Σ|, n)."""
    letters = len(table)
    if not drawn.cancelling:
        return {"W1": torch.eye(letters).double(), "W2": _tensor(table.T)}
    W1, b1 = rng.normal(size=(_NOISE, letters)), rng.normal(size=_NOISE)
    size = np.exp(rng.uniform(0, 1, _NOISE) * np.log(drawn.weight))
    W2 = rng.normal(size=(table.shape[1], _NOISE)) * size
    b2 = rng.choice([0, drawn.weight]) * np.ones(table.shape[1])  # the paper rule takes a constant away again
    added = np.maximum(W1 + b1[:, None], 0).T @ W2.T + b2  # (|Σ|, n)
    values = {
        "W1": np.concatenate([np.eye(letters), W1]),
        "b1": np.concatenate([np.zeros(letters), b1]),
        "W2": np.concatenate([(table - added).T, W2], 1),
        "b2": b2,
    }
    return {name: _tensor(x) for name, x in values.items()}


# gates, v, x₀, and what reads states (n, b)
_Parts = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]


def _blocks(machine: MooreMachine, rng: np.random.Generator) -> _Parts:
    """Return A_a = S P_a S⁻¹ with the one-hot maps P_a in a random, nearly orthogonal basis S; or P_a itself."""
    if rng.random() < 0.5:
        return _one_hot(machine)
    n, letters = machine.n_states, len(machine.delta)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0] + 0.1 * rng.normal(size=(n, n))
    maps = np.zeros((letters, n, n))
    for a in range(letters):
        maps[a, machine.delta[a], np.arange(n)] = 1
    there = np.linalg.inv(basis)
    A = basis @ maps @ there
    return {"transition": A.reshape(letters, -1)}, np.zeros((letters, n)), basis[:, machine.start], there


def _clipped(machine: MooreMachine, rng: np.random.Generator) -> _Parts:
    """Return one-hot maps with some columns scaled up, which the column rule makes one-hot again."""
    parts, v, x0, read = _one_hot(machine)
    A = parts["transition"].reshape(len(v), len(x0), len(x0)) * np.exp(rng.uniform(0, 3, (len(v), 1, len(x0))))
    return {"transition": A.reshape(len(v), -1)}, v, x0, read


def _one_hot(machine: MooreMachine) -> _Parts:
    n, letters = machine.n_states, len(machine.delta)
    maps = np.zeros((letters, n, n))
    for a in range(letters):
        maps[a, machine.delta[a], np.arange(n)] = 1
    return {"transition": maps.reshape(letters, -1)}, np.zeros((letters, n)), np.eye(n)[machine.start], np.eye(n)


def _released(machine: MooreMachine, rng: np.random.Generator) -> _Parts:
    """Return one-hot maps on vectors of sum zero, which the rule scales; with resets instead where columns coincide."""
    parts, v, x0, read = _one_hot(machine)
    n = len(x0)
    maps = parts["transition"].reshape(-1, n, n)
    is_reset = (maps == maps[:, :, :1]).all((1, 2))
    maps = np.where(is_reset[:, None, None], np.eye(n) * rng.uniform(0.1, 1, (len(maps), 1, 1)), maps)
    v = np.where(is_reset[:, None], 3 * (np.eye(n)[machine.delta[:, 0]] - 1 / n), 0.0)
    return {"transition": maps.reshape(-1, n * n)}, v, x0 - 1 / n, read


def _householder(unit: bool) -> Callable[[MooreMachine, np.random.Generator], _Parts]:
    def parts(machine: MooreMachine, rng: np.random.Generator) -> _Parts:
        """Return exchanges of two states as successive reflections; a letter that is not a permutation does nothing."""
        n, letters = machine.n_states, len(machine.delta)
        keys, rates = rng.normal(size=(letters, n, n)), np.zeros((letters, n))
        for a, row in enumerate(machine.delta.tolist()):
            for j, (i, k) in enumerate(_exchanges(row)):
                keys[a, j] = (np.eye(n)[i] - np.eye(n)[k]) * (rng.uniform(0.5, 3) if unit else 1)
                rates[a, j] = 1
        if unit:
            rates = np.where(rates > 0, 30.0, -30.0)  # β = 2σ(rate)
        return {"transition": keys.reshape(letters, -1), "rate": rates}, *_one_hot(machine)[1:]

    return parts


def _exchanges(row: list[int]) -> list[tuple[int, int]]:
    """Return exchanges whose product, the first one first, is a permutation; none for other maps."""
    if len(set(row)) < len(row):
        return []
    now = list(range(len(row)))
    found: list[tuple[int, int]] = []
    for i, target in enumerate(row):  # now[q] is where state q is taken so far
        if (k := now[i]) != target:
            found.append((k, target))
            now = [target if q == k else k if q == target else q for q in now]
    return found


_PARTS: dict[str, Callable[[MooreMachine, np.random.Generator], _Parts]] = {
    "none": _blocks,
    "clip": _clipped,
    "paper": _released,
    "householder": _householder(False),
    "unit keys": _householder(True),
}
