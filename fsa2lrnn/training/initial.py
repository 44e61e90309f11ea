"""Initial weights near the exact solution: the compiled machine, written into the network to train, plus noise.

Training from such weights separates what gradient descent finds from what the network can represent.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.compile.recurrence import DenseReadout, Recurrence
from fsa2lrnn.compile.tables import DenseTables
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.nn.affine import EPS
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.gate import Gate, Values
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.training.data import TaskWords
from fsa2lrnn.training.settings import Settings

_CONFIDENCE = 8.0  # the logit of the correct output; all others are 0


def compiled_start(settings: Settings, words: TaskWords, noise: float = 0.0) -> LRNN:
    """Return the network of `settings` with the compiled machine as weights, plus Gaussian noise of deviation `noise`.

    The last layer holds the one-hot blocks in its first heads; all other heads, layers and hidden units are zero.
    Embeddings are one-hot, and each LayerNorm gets the scale and shift that invert it. So without noise the model has
    the machine's outputs, with states exact up to the rounding of LayerNorm.

    Args:
        words: the words of the settings' task; their outputs become the model's.
        noise: the standard deviation, drawn from the settings' seed.

    Raises:
        NotExpressible: if the column rule is "paper", the layers hold no one-hot maps, the network is too small, or a
            chain has several layers.

    >>> from fsa2lrnn.training.data import make_sampler, words
    >>> settings = Settings("task:parity", normalisation="clip", block=2, heads=2, embedding_dim=4)
    >>> machine = settings.machine()
    >>> model = compiled_start(settings, words(machine, make_sampler("uniform", machine)))
    >>> model.transduce("1101") == machine.transduce("1101")
    True
    """
    machine = settings.machine()
    exact = _one_hot_recurrence(machine, settings)
    config = settings.network(words.alphabet, words.outputs)
    _check_sizes(exact, config, settings)
    model = LRNN(config)
    # Layers below the last are zero: their outputs change nothing in the stream.
    silent = [(torch.zeros(len(layer.block_sizes), max(layer.block_sizes)), {}) for layer in model.recurrences[:-1]]
    model.write(torch.eye(*model.embedding.get_parameter("weight").shape), [*silent, _last_layer(model, exact)], {})
    cast("Gate", model.readout).set(_readout(model, exact))
    with torch.no_grad():
        _undo_norms(model, len(_parts(exact)[0].block_sizes))
        generator = torch.Generator().manual_seed(settings.seed)
        for parameter in model.parameters():
            parameter += noise * torch.randn(parameter.shape, generator=generator)
    return model.to(device=settings.device, dtype=getattr(torch, settings.dtype))


def _one_hot_recurrence(machine: MooreMachine, settings: Settings) -> Recurrence:
    if settings.normalisation == "paper":
        raise NotExpressible(
            'the rule "paper" takes one-hot columns apart (it centres and rescales each block): start from compiled '
            'weights with normalisation="clip" or "none"'
        )
    if not settings.kind.holds_maps:
        raise NotExpressible(f'layer = {settings.layer!r}: one-hot maps are written into blocks, take layer = "block"')
    if settings.layers > 1 and settings.connection == "chain":
        raise NotExpressible(
            f"in a chain of {settings.layers} layers the last sees no letters: take one layer, or the connection "
            '"residual" or "concat"'
        )
    return compile_recurrence(machine, "onehot", settings.block, layout="dense")


def _parts(exact: Recurrence) -> tuple[DenseTables, DenseReadout]:
    tables, readout = exact.tables, exact.readout
    if not (isinstance(tables, DenseTables) and isinstance(readout, DenseReadout)):
        raise NotExpressible(f"{type(tables).__name__} with {type(readout).__name__} are no dense one-hot blocks")
    return tables, readout


def _check_sizes(exact: Recurrence, config: LRNNConfig, settings: Settings) -> None:
    tables, readout = _parts(exact)
    needs = {
        "heads": (len(tables.block_sizes), settings.heads),
        "embedding_dim": (len(exact.alphabet), settings.embedding_dim),
        "hidden units of the value gate (heads·block)": (len(exact.alphabet), settings.heads * settings.block),
        "hidden units of the read-out (heads·block)": (len(readout.W1), config.readout_hidden),
    }
    if faults := [f"{name}: {has}, {wants} needed" for name, (wants, has) in needs.items() if wants > has]:
        raise NotExpressible(f"the network is too small for {settings.task}: {'; '.join(faults)}")


def _last_layer(model: LRNN, exact: Recurrence) -> tuple[Tensor, dict[str, Values]]:
    """Return x₀ and the gates of the last layer as lookups: unit a is relu(2 y_a − 1), 1 for the letter a, else 0."""
    tables, _ = _parts(exact)
    layer = model.recurrences[-1]
    cell = torch.tensor(tables.cell)[[exact.alphabet.index(letter) for letter in model.alphabet]]
    heads, block = len(layer.block_sizes), max(layer.block_sizes)
    n_heads, b, n = len(tables.block_sizes), max(tables.block_sizes), len(cell)
    tables_of = {"transition": torch.tensor(tables.A)[cell], "value": torch.tensor(tables.v)[cell]}
    gates: dict[str, Values] = {}
    for name, gate in layer.gates:
        table = tables_of[name].float()
        padded = torch.zeros(heads, block, *[block] * (table.ndim - 3), gate.n_hidden)
        corner = (slice(n_heads), *[slice(b)] * (table.ndim - 2), slice(n))
        padded[corner] = table.movedim(0, -1)
        width_in = gate.weights.W1.shape[1]
        letters = torch.zeros(gate.n_hidden)
        letters[:n] = 1
        first = 2 * torch.eye(gate.n_hidden, width_in) * letters[:, None]
        gates[name] = {"W1": first, "b1": -letters, "W2": padded.flatten(0, -2)}
    x0 = torch.zeros(heads, block)
    x0[:n_heads, :b] = torch.tensor(tables.x0).float()
    return x0, gates


def _readout(model: LRNN, exact: Recurrence) -> Values:
    """Return the weights of the compiled read-out, integers times `_CONFIDENCE`, on the blocks of the last layer."""
    tables, readout = _parts(exact)
    sizes, weights = model.recurrences[-1].block_sizes, cast("Gate", model.readout).weights
    n_heads, b, units = len(tables.block_sizes), max(tables.block_sizes), len(readout.W1)
    W1, b1, W2, b2 = (torch.zeros(part.shape) for part in weights)
    states = W1[:units, -len(sizes) * max(sizes) :].unflatten(1, (len(sizes), max(sizes)))
    states[:, :n_heads, :b] = torch.tensor(readout.W1).float().unflatten(1, (n_heads, b))
    b1[:units] = torch.tensor(readout.b1).float()
    number = {output: j for j, output in enumerate(exact.outputs)}
    rows = [number[output] for output in model.outputs]
    W2[:, :units] = _CONFIDENCE * torch.tensor(readout.W2[rows]).float()
    b2[:] = _CONFIDENCE * torch.tensor(readout.b2[rows]).float()
    return {"W1": W1, "b1": b1, "W2": W2, "b2": b2}


def _undo_norms(model: LRNN, n_heads: int) -> None:
    """Make each LayerNorm the identity on its input: one-hot embeddings, or one-hot blocks before the read-out."""
    for i, norm in enumerate(model.norms):
        ones = n_heads if i + 1 == len(model.norms) else 1
        weight: Tensor = norm.get_parameter("weight")
        mean = ones / len(weight)
        weight.fill_(math.sqrt(mean - mean**2 + EPS))
        norm.get_parameter("bias").fill_(mean)
