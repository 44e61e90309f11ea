"""What a layer is, and what it declares of itself, so that nobody has to ask for its type.

A layer is one file: a frozen configuration (`LayerConfig`) and a module (`Layer`). It reads inputs u_1 … u_T, carries
one tensor from step to step and gives out one row of `width` numbers a step. All else has a default that claims
nothing: a layer that declares no tables is not certified, one that does not say that it is exact is not said to be.
What is declared is compared with what `forward` computes (`fsa2lrnn.lrnn.layer_checks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.gate import Gate, Values
from fsa2lrnn.lrnn.hints import Hint
from fsa2lrnn.lrnn.rounding import RoundedNumbers

MAX_WIDTH = 1 << 16  # numbers in the state of a layer of blocks: a file of some bytes can ask for any


class Columns(NamedTuple):
    """The column rule of a model (`normalise.normalise`): for layers whose blocks a gate writes out."""

    rule: str
    p: float


@dataclass(frozen=True)
class Shape:
    """What the settings of a training run say of a layer, whatever its kind: `heads` blocks of `block` numbers each."""

    heads: int
    block: int

    NAMES: ClassVar[tuple[str, ...]] = ("heads", "block", "width")

    def __post_init__(self) -> None:
        check_width(self.width)

    @property
    def width(self) -> int:
        """H·b."""
        return self.heads * self.block


def check_width(width: int) -> None:
    """Raises `UnsupportedFormat` for a state that is too wide to be meant."""
    if width > MAX_WIDTH:
        raise UnsupportedFormat(
            f"heads and blocks make a state of {width:,} numbers: at most {MAX_WIDTH:,} make a layer"
        )


@dataclass(frozen=True)
class LayerConfig:
    """All that a layer is made of beside its weights, as frozen data that JSON can hold.

    A subclass is a frozen dataclass; one of its fields or properties is `width`.
    """

    reads_letters: ClassVar[bool] = False  # True: letters in, states out, no stream: it is then a model's only layer

    if TYPE_CHECKING:  # a property here would be the default of a field of that name

        @property
        def width(self) -> int:
            """Numbers that the layer gives out at a step."""
            ...

    @property
    def entries(self) -> int:
        """Numbers that the widest part of a step materialises, its input left out: what memory is planned by."""
        return self.width

    def at(self, place: int, depth: int) -> Self:
        """That of the layer numbered `place` from 0 of `depth` such layers, where it makes a difference."""
        return self

    def check_columns(self, columns: Columns) -> None:
        """Raises `UnsupportedFormat` for a column rule that the layer can't take."""

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """What a training run may set of it beside its `Shape`: by default the fields that are not the shape's."""
        return tuple(field.name for field in fields(cls) if field.name not in Shape.NAMES)

    @classmethod
    def of_shape(cls, shape: Shape, options: Mapping[str, Any]) -> Self:
        """The configuration for a training run: by default what `shape` has of its fields, the rest from `options`.

        Raises `UnsupportedFormat` for an option that the layer does not have, or lacks.
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
        """Raises `UnsupportedFormat` naming what is none of `options`."""
        if unknown := sorted(set(options) - set(cls.options())):
            known = f"it takes {', '.join(cls.options())}" if cls.options() else "it takes none"
            raise UnsupportedFormat(f"{', '.join(unknown)}: no such option of {cls.__name__}, {known}")


class Layer(nn.Module):
    """A recurrent layer. Subclasses set `Config`, and define `__init__(width_in, config)`, `forward`, `initial_state`
    and `emit`; whatever else they can do, they declare by overriding it.

    `forward(u, state, method="auto")` reads u (B, T, d) from a state (B, …), a single tensor, and returns the outputs
    (B, T, width) and the state after them, which is `state` itself for T = 0. Reading a word in pieces, the state
    carried on, computes the same as reading it whole. It changes nothing in place and is deterministic.
    """

    Config: ClassVar[type[LayerConfig]]
    holds_maps: ClassVar[bool] = False  # one-hot maps by letter can be written into it: `set_map`
    takes_index: ClassVar[bool] = False  # forward(…, index): the rows of u (N, d) are all inputs, index (B, T) which
    methods: ClassVar[tuple[str, ...]] = ("sequential",)  # of the scan, on any machine, beside "auto"
    unproved: ClassVar[str | None] = None  # why verifiers refuse it; None: they go by what it declares, once tested

    @classmethod
    def build(cls, width_in: int, config: Any, columns: Columns) -> Self:
        """A new layer that reads rows of `width_in` numbers, its weights random."""
        return cls(width_in, config)

    @classmethod
    def embedding(cls, config: Any, n_letters: int, dim: int) -> nn.Module:
        """The embedding of a model whose first layer this is: (B, T) -> (B, T, dim)."""
        return nn.Embedding(n_letters, dim)

    @classmethod
    def readout(cls, config: Any, width: int, hidden: int, n_outputs: int) -> nn.Module:
        """The read-out of a model whose last layer this is."""
        return Gate(width, hidden, n_outputs)

    @classmethod
    def is_finite(cls, rule: str) -> bool:
        """Whether under this column rule its states are finitely many, whatever its weights and whatever it reads: a
        model of such layers alone is an automaton."""
        return False

    @property
    def is_causal(self) -> bool:
        """Whether no output depends on later letters; else words are read whole, from their start."""
        return True

    def initial_state(self, batch: int) -> Tensor:
        """The state before the first letter, for each word of a batch: (B, …)."""
        raise NotImplementedError

    def emit(self, state: Tensor) -> Tensor:
        """What the layer gives out in a state, no input given: (B, …) -> (B, width)."""
        raise NotImplementedError

    def outputs(self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None) -> Tensor:
        """The outputs of `forward` alone, for who does not go on from the state after them."""
        return (self(u, state, method) if index is None else self(u, state, method, index))[0]

    def step(self, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One step: (B, d), (B, …) -> (B, width), (B, …)."""
        y, after = self(u.unsqueeze(1), state, "sequential")
        return y[:, 0], after

    def parameter_hints(self) -> dict[str, Hint]:
        """What it asks of the optimiser, for parameters by name."""
        return {}

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The sizes of its blocks, where it has blocks."""
        return ()

    @property
    def n_heads(self) -> int:
        """H, the number of blocks."""
        return len(self.block_sizes)

    @property
    def gates(self) -> Iterator[tuple[str, Gate]]:
        """Its gates by name."""
        return ((name, module) for name, module in self.named_children() if isinstance(module, Gate))

    def write(self, x0: Tensor, **gates: Values) -> None:
        """Write x₀ (H, b) and the gates by name, zero where nothing is given. Raises `ValueError` for a misfit."""
        own = dict(self.gates)
        if unknown := gates.keys() - own.keys():
            raise ValueError(f"{', '.join(sorted(unknown))}: {type(self).__name__} has the gates {', '.join(own)}")
        for name, gate in own.items():
            gate.set(gates.get(name, {}))
        with torch.no_grad():
            self.get_parameter("x0").copy_(x0)

    @property
    def family(self) -> str | None:
        """The family in `fsa2lrnn.families` that says what the layer can represent; None where none does."""
        return None

    @property
    def has_tables(self) -> bool:
        """Whether x_k = A(u_k) x_{k−1} + v(u_k) with the numbers that `tables` gives, and `emit` flattens the state."""
        return False

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """A(u) and v(u): (…, d) -> (…, H, b, b), (…, H, b). `method` is that of the column rule."""
        raise UnsupportedFormat(f"{type(self).__name__} has no tables A(u), v(u) of numbers")

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """`tables` as any evaluation may give them: whatever the shape of inputs, order of sums, number of threads, and
        method of the column rule."""
        raise UnsupportedFormat(
            f"{type(self).__name__} declares no bound on how its tables may round (`rounded_tables`): declare one, or "
            "let LRNN.from_affine(switched(model)) look its tables up"
        )

    @property
    def written_by(self) -> Columns | None:
        """The column rule, where A(u) is what the gate `transition` writes under it, block by block, and v(u) what
        `value` writes: all that another program needs to compute them. None where they come about otherwise."""
        return None

    @property
    def has_maps(self) -> bool:
        """Whether every state is one-hot in each block and every transition a map of their indices, in each dtype."""
        return False

    def maps(self, u: Tensor) -> Tensor:
        """The next index for each input, block and index: (N, d) -> int64 (N, H, b)."""
        raise self._lacks("one-hot columns by rule")

    def is_lookup(self, u: Tensor) -> bool:
        """Whether `tables` of these inputs (N, d) are looked up: no sum is formed whose order could matter."""
        return False

    def starts_exact(self) -> bool:
        """Whether x₀ is of the states among which `is_exact` stays."""
        return False

    def is_exact(self, u: Tensor, limit: float) -> bool:
        """Whether on inputs u (N, d) no scan rounds, whatever its order of sums, on the states of `starts_exact`.

        `limit`: up to it the dtype holds all integers.
        """
        return False

    # What a mutant changes: the one-hot map of a compiled layer in block `head`, for the input e_cell.

    def get_map(self, cell: int, head: int) -> Tensor:
        """The row of each column's 1: int64 (b,)."""
        raise self._lacks("one-hot maps by letter")

    def set_map(self, cell: int, head: int, rows: Tensor) -> None:
        """Write the columns anew."""
        raise self._lacks("one-hot maps by letter")

    def transpose_map(self, cell: int, head: int) -> None:
        """Let rows and columns change places."""
        raise self._lacks("blocks written out, that could be transposed")

    def swap_heads(self, first: int, second: int) -> None:
        """Let two blocks of one size change places, x₀ and all."""
        raise self._lacks("heads that could change places")

    def _lacks(self, what: str) -> UnsupportedFormat:
        return UnsupportedFormat(f"{type(self).__name__} has no {what}: use a dense model")
