"""The base classes of layers, and the declarations on which other code relies instead of on types.

A layer is one file: a frozen configuration (`LayerConfig`) and a module (`Layer`). It reads inputs u_1 … u_T, passes
one tensor from step to step and outputs one row of `width` numbers per step. All other members have defaults that claim
nothing: a layer without declared tables is not certified, and one that does not declare exactness is not assumed exact.
Declarations are compared with the computations of `forward` (`fsa2lrnn.nn.layer_checks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.gate import Gate, Values
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers


class Hint(NamedTuple):
    """A learning rate and a weight decay of one parameter; None means the run's, and `factor` multiplies the rate."""

    rate: float | None = None
    decay: float | None = None
    factor: float = 1.0

    def rate_for(self, rate: float) -> float:
        """Return the parameter's learning rate in a run with learning rate `rate`.

        >>> Hint(factor=0.5).rate_for(1e-3), Hint(1e-3).rate_for(4e-3)
        (0.0005, 0.001)
        """
        return self.factor * (rate if self.rate is None else self.rate)


MAX_WIDTH = 1 << 16  # numbers in the state of a layer of blocks, to bound what a small file can allocate


class Columns(NamedTuple):
    """The column rule of a model and its exponent p (`normalise`), for blocks whose entries a gate outputs."""

    rule: str
    p: float


@dataclass(frozen=True)
class Shape:
    """The state that a training run requests of any layer: `heads` blocks of `block` numbers each.

    Raises `UnsupportedFormat` for more than `MAX_WIDTH` numbers.
    """

    heads: int
    block: int

    NAMES: ClassVar[tuple[str, ...]] = ("heads", "block", "width")

    def __post_init__(self) -> None:
        check_width(self.width)

    @property
    def width(self) -> int:
        """H·b, the width of a state."""
        return self.heads * self.block


def check_width(width: int) -> None:
    """Raise `UnsupportedFormat` for a state of more than `MAX_WIDTH` numbers."""
    if width > MAX_WIDTH:
        raise UnsupportedFormat(
            f"heads and blocks make a state of {width:,} numbers: at most {MAX_WIDTH:,} make a layer"
        )


def check_positive(config: object, *names: str) -> None:
    """Raise `UnsupportedFormat` unless the named fields of a configuration are positive whole numbers."""
    for name in names:
        value = getattr(config, name)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise UnsupportedFormat(f"{name} = {value!r}: {type(config).__name__} needs a positive whole number")


def check_one_of(config: object, **choices: Iterable[str]) -> None:
    """Raise `UnsupportedFormat` unless each named field of a configuration is one of its choices."""
    for name, allowed in choices.items():
        if (value := getattr(config, name)) not in allowed:
            raise UnsupportedFormat(f"{name} = {value!r}: one of {', '.join(allowed)}")


@dataclass(frozen=True)
class LayerConfig:
    """The configuration of a layer, as frozen data that JSON can hold.

    A subclass is a frozen dataclass with a field or property `width`.
    """

    reads_letters: ClassVar[bool] = False  # True: letters in, states out, no stream; it is a model's only layer

    if TYPE_CHECKING:  # a property here would be the default of a field of that name

        @property
        def width(self) -> int:
            """The number of outputs of the layer per step."""
            ...

    @property
    def entries(self) -> int:
        """How many numbers the widest part of a step stores per token, without its input; used to plan memory."""
        return self.width

    def at(self, place: int, depth: int) -> Self:
        """Return the configuration for the layer at index `place` of `depth` such layers; by default, this one."""
        return self

    def check_columns(self, columns: Columns) -> None:
        """Raise `UnsupportedFormat` for a column rule that the layer does not support."""

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """Return the names of the options of a training run: by default the fields that are not among `Shape.NAMES`."""
        return tuple(field.name for field in fields(cls) if field.name not in Shape.NAMES)

    @classmethod
    def of_shape(cls, shape: Shape, options: Mapping[str, Any]) -> Self:
        """Return the configuration for a training run: fields of `shape`, and the rest from `options`.

        Raises `UnsupportedFormat` for an unknown or a missing option.
        """
        cls.refuse_unknown(options)
        of_shape = {name: getattr(shape, name) for name in Shape.NAMES}
        values = {field.name: of_shape[field.name] for field in fields(cls) if field.name in of_shape} | dict(options)
        needed = [field for field in fields(cls) if field.default is MISSING and field.default_factory is MISSING]
        if missing := [field.name for field in needed if field.name not in values]:
            raise UnsupportedFormat(f"{cls.__name__} needs {', '.join(missing)}: set it among the layer's options")
        return cls(**values)

    @classmethod
    def refuse_unknown(cls, options: Mapping[str, Any]) -> None:
        """Raise `UnsupportedFormat` with the names in `options` that are not options of this layer."""
        if unknown := sorted(set(options) - set(cls.options())):
            hint = f"it takes {', '.join(cls.options())}" if cls.options() else "it takes none"
            raise UnsupportedFormat(f"{', '.join(unknown)}: no such option of {cls.__name__}, {hint}")


class Layer(nn.Module):
    """The base class of recurrent layers.

    Subclasses set `Config`, define `__init__(width_in, config)`, `forward`, `initial_state` and `emit`, and declare
    further capabilities by overriding the other members.

    `forward(u, state, method="auto")` reads u (B, T, d) from a state (B, …), a single tensor, and returns the outputs
    (B, T, width) and the state after them, which is `state` itself for T = 0. Reading a word in pieces, with the state
    passed on, computes the same as reading it whole. `forward` changes nothing in place and is deterministic.
    """

    Config: ClassVar[type[LayerConfig]]
    holds_maps: ClassVar[bool] = False  # one-hot maps by letter can be written into it: `set_map`
    takes_index: ClassVar[bool] = False  # forward(…, index): the rows of u (N, d) are all inputs, index (B, T) which
    methods: ClassVar[tuple[str, ...]] = ("sequential",)  # of the scan, on any machine, next to "auto"
    has_onnx: ClassVar[bool] = True  # whether `torch.onnx.export` takes it: ONNX has few functions of complex numbers
    unproved: ClassVar[str | None] = None  # why verifiers refuse it; None: they use its declarations after testing them

    @classmethod
    def build(cls, width_in: int, config: Any, columns: Columns) -> Self:
        """Return a new layer with random weights that reads rows of `width_in` numbers."""
        return cls(width_in, config)

    @classmethod
    def embedding(cls, config: Any, n_letters: int, dim: int) -> nn.Module:
        """Return the embedding of a model whose first layer is of this kind: tokens (B, T) -> (B, T, dim)."""
        return nn.Embedding(n_letters, dim)

    @classmethod
    def readout(cls, config: Any, width: int, hidden: int, n_outputs: int) -> nn.Module:
        """Return the read-out of a model whose last layer is of this kind: (…, width) -> (…, n_outputs)."""
        return Gate(width, hidden, n_outputs)

    @classmethod
    def is_finite(cls, rule: str) -> bool:
        """Return whether the layer has finitely many states under this column rule, for all weights and inputs."""
        return False

    @property
    def is_causal(self) -> bool:
        """Whether no output depends on later letters; otherwise words are read whole, from their start."""
        return True

    def initial_state(self, batch: int) -> Tensor:
        """Return the state before the first letter, for each word of a batch: (B, …)."""
        raise NotImplementedError

    def emit(self, state: Tensor) -> Tensor:
        """Return the output that `forward` gives for a step that ends in this state: (B, …) -> (B, width)."""
        raise NotImplementedError

    def outputs(self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None) -> Tensor:
        """Return only the outputs of `forward`, for callers that do not need the last state."""
        return (self(u, state, method) if index is None else self(u, state, method, index))[0]

    def step(self, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output and the state of one step: (B, d), (B, …) -> (B, width), (B, …)."""
        y, after = self(u.unsqueeze(1), state, "sequential")
        return y[:, 0], after

    def parameter_hints(self) -> dict[str, Hint]:
        """Return the optimiser settings of parameters, by name."""
        return {}

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The sizes of the blocks; empty if the layer has none."""
        return ()

    @property
    def n_heads(self) -> int:
        """H, the number of blocks."""
        return len(self.block_sizes)

    @property
    def gates(self) -> Iterator[tuple[str, Gate]]:
        """The gates by name."""
        return ((name, module) for name, module in self.named_children() if isinstance(module, Gate))

    def write(self, x0: Tensor, **gates: Values) -> None:
        """Write x₀ (H, b) and the gates by name, zero if omitted. Raises `ValueError` for an unknown gate."""
        own = dict(self.gates)
        if unknown := gates.keys() - own.keys():
            raise ValueError(f"{', '.join(sorted(unknown))}: {type(self).__name__} has the gates {', '.join(own)}")
        for name, gate in own.items():
            gate.set(gates.get(name, {}))
        with torch.no_grad():
            self.get_parameter("x0").copy_(x0)

    @property
    def family(self) -> str | None:
        """The family in `fsa2lrnn.families` that describes what the layer can represent, or None."""
        return None

    @property
    def has_tables(self) -> bool:
        """Whether x_k = A(u_k) x_{k−1} + v(u_k) with the numbers of `tables`, and `emit` flattens the state."""
        return False

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return A(u) and v(u), (…, H, b, b) and (…, H, b), of inputs (…, d), by a `method` of the column rule."""
        raise UnsupportedFormat(f"{type(self).__name__} has no tables A(u), v(u) of numbers")

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """Return bounds of `tables` for all input shapes, orders of sums, thread counts and column rule methods."""
        raise UnsupportedFormat(
            f"{type(self).__name__} declares no bound on how its tables may round (`rounded_tables`): declare one, or "
            "let LRNN.from_affine(switched(model)) look its tables up"
        )

    @property
    def written_by(self) -> Columns | None:
        """The column rule that turns the output of the gate `transition` into A(u), block by block, or None.

        A rule also declares that v(u) is the output of the gate `value`, so another program can compute both.
        """
        return None

    @property
    def has_maps(self) -> bool:
        """Whether every state is one-hot in each block and every transition maps indices to indices, in each dtype."""
        return False

    def maps(self, u: Tensor) -> Tensor:
        """Return the next index for each input, block and index: (N, d) -> int64 (N, H, b)."""
        raise self._lacks("one-hot columns by rule")

    def is_lookup(self, u: Tensor) -> bool:
        """Return whether `tables` reads the tables of these inputs (N, d), without sums whose order could matter."""
        return False

    def starts_exact(self) -> bool:
        """Return whether x₀ is in the set of states for which `is_exact` holds."""
        return False

    def is_exact(self, u: Tensor, limit: float) -> bool:
        """Return whether scans of inputs u (N, d) round nothing, in any order of sums, on the states of `starts_exact`.

        `limit` is a number up to which the dtype represents all integers.
        """
        return False

    def set_map(self, cell: int, head: int, rows: Tensor) -> None:
        """Write the one-hot map of a compiled layer in block `head`, for the input e_cell: rows int64 (b,)."""
        raise self._lacks("one-hot maps by letter")

    def _lacks(self, what: str) -> UnsupportedFormat:
        return UnsupportedFormat(f"{type(self).__name__} has no {what}: use a dense model")


def starts_closed(x0: Tensor, mask: Tensor) -> bool:
    """Return whether x₀ (H, b) is one-hot in each block, or 0 or 1 in one of size 1; `mask` (H, b) excludes padding."""
    is_zero = (x0 == 0).all(-1)
    return bool((is_one_hot(x0) | (is_zero & is_scalar_channel(mask))).all())


def maps_closed(A: Tensor, v: Tensor, mask: Tensor) -> bool:
    """Return whether each of N transitions maps finitely many states to themselves in every block (T1, T8).

    A (N, H, b, b), v (N, H, b), mask (H, b). The maps in a block: a one-hot map (v = 0) or a reset (A = 0, v one-hot);
    in a block of size 1: x, 1 − x, 0 or 1. Each of the two kinds is closed under composition, so a parallel scan
    multiplies and adds nothing but −1, 0 and 1.
    """
    is_zero = (A == 0).all(-1).all(-1)
    is_map = (is_one_hot(A.mT) | ~mask).all(-1) & (v == 0).all(-1)
    is_reset = is_zero & is_one_hot(v)
    # In a block of size 1, x and the writing of 1 are already a map and a reset; left are 1 − x and the writing of 0.
    a, c = A[..., 0, 0], v[..., 0]
    is_channel_map = is_scalar_channel(mask) & (((a == -1) & (c == 1)) | ((a == 0) & (c == 0)))
    return bool((is_map | is_reset | is_channel_map).all())


def exchanges_closed(A: Tensor, v: Tensor) -> bool:
    """Return whether each of N transitions is a signed partial permutation that writes signs only to zero rows (T51).

    A (N, H, b, b), v (N, H, b), with all entries −1, 0 or 1. Such transitions are closed under composition among
    themselves, not together with those of `maps_closed`: 1 − x after −x leaves the set.

    >>> import torch
    >>> swap, erase = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    >>> both, write = torch.stack([swap, erase])[:, None], torch.tensor([0.0, -1.0])
    >>> exchanges_closed(both, torch.zeros(2, 1, 2)), exchanges_closed(both[1:], write[None, None])
    (True, True)
    >>> exchanges_closed(both, write.expand(2, 1, 2))
    False
    """
    taken = A != 0
    is_unit = ((A == 0) | (A == 1) | (A == -1)).all() and is_signed(v)
    is_exchange = (taken.sum(-1) <= 1).all() and (taken.sum(-2) <= 1).all()
    return bool(is_unit and is_exchange and not (taken.any(-1) & (v != 0)).any())


def is_signed(x: Tensor) -> bool:
    """Return whether all entries are −1, 0 or 1."""
    return bool(((x == 0) | (x == 1) | (x == -1)).all())


def is_scalar_channel(mask: Tensor) -> Tensor:
    """Return which blocks have size 1: (H, b) -> (H,)."""
    return mask.sum(-1) == 1


def is_one_hot(vectors: Tensor) -> Tensor:
    """Return whether each vector along the last axis is one-hot: (…, b) -> (…)."""
    return ((vectors == 1).sum(-1) == 1) & ((vectors != 0).sum(-1) == 1)


def check_temperature(temperature: float) -> None:
    """Raise `UnsupportedFormat` unless the temperature is a finite number above 0."""
    if type(temperature) not in (int, float) or not 0 < temperature < float("inf"):
        raise UnsupportedFormat(f"temperature = {temperature!r}: a softmax needs a finite one above 0")
