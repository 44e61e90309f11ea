"""Where training may begin: at the exact solution, written into the network that is to be trained, plus noise.

What gradient descent makes of a start near the solution tells what it finds from what the network can hold.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.lrnn.config import LRNNConfig
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import EPS
from fsa2lrnn.recurrence import DenseReadout, DenseTables, Recurrence
from fsa2lrnn.training.data import Words
from fsa2lrnn.training.settings import Settings

_CONFIDENCE = 8.0  # the logit of the right output, those of the others being 0


def compiled_start(settings: Settings, words: Words, noise: float = 0.0) -> LRNN:
    """The compiled machine in the network of `settings`, every weight with Gaussian noise of deviation `noise`.

    The last layer holds the one-hot blocks in its first heads; what is over, other heads, layers and hidden units, is
    zero. Embeddings are one-hot, and each LayerNorm gets the scale and shift that undo it. So without noise the model
    gives the machine's outputs, its states being exact up to the rounding of LayerNorm.

    Args:
        words: of the settings' task; its outputs are those that the model gets.
        noise: drawn from the settings' seed.

    Raises:
        NotExpressible: if the rule is "released", or the network is too small or connected otherwise; says where.

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
    _check_room(exact, config, settings)
    model = LRNN(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        _write_embedding(model)
        _write_layer(model, exact)
        _write_readout(model, exact)
        generator = torch.Generator().manual_seed(settings.seed)
        for parameter in model.parameters():
            parameter += noise * torch.randn(parameter.shape, generator=generator)
    return model.to(device=settings.device, dtype=getattr(torch, settings.dtype))


def _one_hot_recurrence(machine: MooreMachine, settings: Settings) -> Recurrence:
    if settings.normalisation == "released":
        raise NotExpressible(
            'the rule "released" takes one-hot columns apart (it centres and rescales each block): start from compiled '
            'weights with normalisation="clip" or "none"'
        )
    if settings.factors:
        raise NotExpressible(f"factors = {settings.factors}: one-hot maps are written into blocks, take factors = 0")
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


def _check_room(exact: Recurrence, config: LRNNConfig, settings: Settings) -> None:
    tables, readout = _parts(exact)
    needs = {
        "heads": (len(tables.block_sizes), settings.heads),
        "embedding_dim": (len(exact.alphabet), settings.embedding_dim),
        "hidden units of the value gate (heads·block)": (len(exact.alphabet), settings.heads * settings.block),
        "hidden units of the read-out (heads·block)": (len(readout.W1), config.readout_hidden),
    }
    if faults := [f"{name}: {has}, {wants} needed" for name, (wants, has) in needs.items() if wants > has]:
        raise NotExpressible(f"the network is too small for {settings.task}: {'; '.join(faults)}")


def _write_embedding(model: LRNN) -> None:
    weight = model.embedding.get_parameter("weight")
    weight += torch.eye(*weight.shape)
    for norm in list(model.norms)[:-1]:
        _undo(norm, 1)


def _write_layer(model: LRNN, exact: Recurrence) -> None:
    """The gates of the last layer as look-ups: unit a is relu(2 y_a − 1), 1 for the letter a and 0 for others."""
    tables, _ = _parts(exact)
    layer = model.layers[-1]
    n_heads, b = len(tables.block_sizes), max(tables.block_sizes)
    cell = torch.tensor(tables.cell)[[exact.alphabet.index(letter) for letter in model.alphabet]]
    wanted = {"transition": torch.tensor(tables.A)[cell], "value": torch.tensor(tables.v)[cell]}
    heads, block = layer.get_parameter("x0").shape
    for gate, table in wanted.items():
        n = len(table)
        first, second = (layer.get_submodule(f"{gate}.{i}") for i in (0, 2))
        first.get_parameter("weight")[:n, :n] = 2 * torch.eye(n)
        first.get_parameter("bias")[:n] = -1
        room = (heads, block, block) if gate == "transition" else (heads, block)
        corner = second.get_parameter("weight").unflatten(0, room)[:n_heads, :b]
        (corner[:, :, :b] if gate == "transition" else corner)[..., :n] = table.movedim(0, -1).float()
    layer.get_parameter("x0")[:n_heads, :b] = torch.tensor(tables.x0).float()


def _write_readout(model: LRNN, exact: Recurrence) -> None:
    """The integer gate of the compiled read-out, on the blocks of the last layer."""
    tables, readout = _parts(exact)
    heads, block = model.layers[-1].get_parameter("x0").shape
    n_heads, b = len(tables.block_sizes), max(tables.block_sizes)
    first, second = (model.readout.get_submodule(str(i)) for i in (0, 2))
    W1, b1, W2, b2 = (torch.tensor(part).float() for part in (readout.W1, readout.b1, readout.W2, readout.b2))
    units = len(W1)
    states = first.get_parameter("weight")[:units, -heads * block :].unflatten(1, (heads, block))
    states[:, :n_heads, :b] = W1.unflatten(1, (n_heads, b))
    first.get_parameter("bias")[:units] = b1
    number = {output: j for j, output in enumerate(exact.outputs)}
    for j, output in enumerate(model.outputs):
        second.get_parameter("weight")[j, :units] = _CONFIDENCE * W2[number[output]]
        second.get_parameter("bias")[j] = _CONFIDENCE * b2[number[output]]
    if len(model.norms):
        _undo(model.norms[-1], n_heads)


def _undo(norm: nn.Module, ones: int) -> None:
    """Let LayerNorm give back what it gets, where that has `ones` ones and zeros."""
    weight: Tensor = norm.get_parameter("weight")
    mean = ones / len(weight)
    weight += math.sqrt(mean - mean**2 + EPS)
    bias: Tensor = norm.get_parameter("bias")
    bias += mean
