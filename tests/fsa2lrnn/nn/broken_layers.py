"""User-defined layers that each break one rule for layers, for `test_layer_checks.py`."""

from dataclasses import dataclass, replace

import torch
from torch import nn

from fsa2lrnn.nn import Gate, Layer, LayerConfig, scan


@dataclass(frozen=True)
class ToyConfig(LayerConfig):
    width: int


class Toy(Layer):
    """x_k = a(u_k) ⊙ x_{k-1} + h(u_k), as docs/guides/add-a-layer.md has it."""

    Config = ToyConfig
    methods = ("sequential", "pscan", "chunked", "fused")
    has_tables = True

    def __init__(self, width_in, config):
        super().__init__()
        self.a, self.h = nn.Linear(width_in, config.width), nn.Linear(width_in, config.width)
        self.x0 = nn.Parameter(torch.randn(config.width, 1))

    def tables(self, u, method="auto"):  # noqa: ARG002
        return self.a(u).sigmoid()[..., None, None], self.h(u)[..., None]

    def initial_state(self, batch):
        return self.x0.expand(batch, -1, -1)

    def emit(self, state):
        return state.flatten(-2)

    def forward(self, u, state, method="auto"):
        return self.scanned(*self.tables(u), state, method)

    def scanned(self, A, v, state, method):
        x = scan(A, v, state, method)
        return x.flatten(-2), x[:, -1] if x.shape[1] else state


def broken(name, **members):
    """A layer with other members."""
    return type(name, (Toy,), {"__module__": __name__, **members})


def variant(name, before=lambda _, u, x: (u, x), after=lambda _u, y, x, _method: (y, x), **declared):
    """A layer whose `forward` reads what `before` makes of inputs and state, and returns what `after` makes of both."""

    def forward(self, u, state, method="auto"):
        return after(u, *Toy.forward(self, *before(self, u, state), method), method)

    return broken(name, forward=forward, **declared)


def scaled(name, factor, shift):
    """A layer that scans other tables than it declares."""

    def forward(self, u, state, method="auto"):
        A, v = self.tables(u)
        return self.scanned(factor * A, v + shift, state, method)

    return broken(name, forward=forward)


def counted(u):
    return torch.arange(u.shape[1])[:, None]


ShiftedV, SlightlyScaledA = scaled("ShiftedV", 1, 0.5), scaled("SlightlyScaledA", 1.001, 0)
# Subtracts the mean of the word, later inputs included.
NotANumber = variant("NotANumber", after=lambda _u, y, x, _method: (y * torch.nan, x * torch.nan))
Centred = variant("Centred", lambda _, u, x: (u - u.mean(1, keepdim=True) if u.shape[1] else u, x))
BatchNormed = variant("BatchNormed", lambda _, u, x: (u - u.mean(0, keepdim=True), x))
Random = variant("Random", lambda _, u, x: (u + torch.randn_like(u), x))
Dropping = variant("Dropping", lambda layer, u, x: (nn.functional.dropout(u, 0.5, layer.training), x))
Overwriting = variant("Overwriting", lambda _, u, x: (u, x.add_(1)))
OverwritingInputs = variant("OverwritingInputs", lambda _, u, x: (u.mul_(2), x))
OtherMethod = variant("OtherMethod", after=lambda _, y, x, method: (y + 0.5 * (method == "pscan"), x))
# Knows how many inputs were read in this call.
Positional = variant("Positional", after=lambda u, y, x, _: (y + counted(u), x), has_tables=False)
NarrowOutputs = variant("NarrowOutputs", after=lambda _u, y, x, _method: (y[..., 1:], x))
FlatState = variant("FlatState", after=lambda _u, y, x, _method: (y, x.flatten(1)), has_tables=False)
NoStateBack = variant("NoStateBack", after=lambda _u, y, _x, _method: y)
InAList = variant("InAList", after=lambda _u, y, x, _method: [y, x])
DoubleOutputs = variant("DoubleOutputs", after=lambda _u, y, x, _method: (y.double(), x))
# Wrong at the input (1, 1, 1, 1), which no random number is and one letter of many may be.
OneLetterWrong = variant("OneLetterWrong", after=lambda u, y, x, _: (y + 0.5 * (u == 1).all(-1, keepdim=True), x))
# Begins each word, and each piece of one, at x₀.
OwnStart = variant("OwnStart", lambda layer, u, x: (u, layer.initial_state(len(u)) if u.shape[1] else x))
StartByBatch = broken("StartByBatch", initial_state=lambda layer, batch: Toy.initial_state(layer, batch) * batch)
StartByWord = broken(
    "StartByWord", initial_state=lambda layer, n: Toy.initial_state(layer, n) + torch.arange(n)[:, None, None]
)
OtherEmit = broken("OtherEmit", emit=lambda layer, state: Toy.emit(layer, state) + 1)
WideEmit = broken("WideEmit", emit=lambda _, state: torch.cat([state.flatten(-2)] * 2, 1), has_tables=False)


class Counting(Toy):
    """Remembers outside of its state how often it was called."""

    calls = 0

    def forward(self, u, state, method="auto"):
        self.calls += 1
        y, after = super().forward(u, state, method)
        return y + self.calls, after


class OtherStep(Toy):
    def step(self, u, state):
        y, after = super().step(u, state)
        return y + 0.5, after


class OtherStateOfStep(Toy):
    has_tables = False

    def step(self, u, state):
        y, after = super().step(u, state)
        return y, 2 * after


class OtherOutputs(Toy):
    def outputs(self, u, state, method="auto", index=None):
        return super().outputs(u, state, method, index) + 0.5


class Learning(Toy):
    """Changes a buffer as it reads."""

    def __init__(self, width_in, config):
        super().__init__(width_in, config)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, u, state, method="auto"):
        self.seen += 1
        return super().forward(u, state, method)


class FlatTables(Toy):
    def tables(self, u, method="auto"):  # noqa: ARG002
        return self.a(u).sigmoid(), self.h(u)

    def forward(self, u, state, method="auto"):
        return self.scanned(*Toy.tables(self, u), state, method)


class NoTables(FlatTables):
    tables = Layer.tables


class EmptyFails(Toy):
    def forward(self, u, state, method="auto"):
        x = scan(*self.tables(u), state, method)
        return x.flatten(-2), x[:, -1]


class BadIndex(Toy):
    takes_index = True

    def forward(self, u, state, method="auto", index=None):
        return super().forward(u if index is None else u[index].flip(1), state, method)


class RoundsLess(Toy):
    def rounded_tables(self, u):
        return tuple(replace(u, mid=part.double() + 1e-3, off=0 * part.double()) for part in self.tables(u.mid.float()))


class LooksUp(Toy):
    """Claims to look its tables up, while they are made by batch."""

    def tables(self, u, method="auto"):
        A, v = super().tables(u, method)
        return A, v + 1e-6 * (len(u) > 1)

    def is_lookup(self, u):  # noqa: ARG002
        return True


class PositionalEmbedding(nn.Embedding):
    def forward(self, tokens):
        return super().forward(tokens) + counted(tokens)


class PositionalLinear(nn.Linear):
    def forward(self, x):
        return super().forward(x) + torch.arange(x.shape[-2])[:, None]


class Negated(Gate):
    def forward(self, x):
        return -super().forward(x)


OwnEmbedding = broken("OwnEmbedding", embedding=staticmethod(lambda _, *sizes: PositionalEmbedding(*sizes)))
OwnReadout = broken("OwnReadout", readout=staticmethod(lambda _, *sizes: Negated(*sizes)))
OtherReadout = broken("OtherReadout", readout=staticmethod(lambda _, width, _hidden, n: PositionalLinear(width, n)))
Unnamed = broken("Unnamed", readout=staticmethod(lambda _, width, _hidden, n: nn.Linear(width, n)))
# Claims that nothing rounds, so that the last bits of all methods have to agree.
Inexact = broken("Inexact", starts_exact=lambda _: True, is_exact=lambda _layer, _u, _limit: True)
