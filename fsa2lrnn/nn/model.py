"""The LRNN: embedding, layers, read-out. Compiled and trained models are both this class."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Self, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from fsa2lrnn.errors import CheckpointError, InvalidWord, NotExact, UnsupportedFormat, check_type
from fsa2lrnn.nn import repeats
from fsa2lrnn.nn.affine import EPS, Readout, SwitchedAffine
from fsa2lrnn.nn.compiled import is_exporting
from fsa2lrnn.nn.config import LRNNConfig, adds, connect
from fsa2lrnn.nn.gate import Gate, Values, look_up
from fsa2lrnn.nn.layers import LAYERS, BlockLayerConfig, Layer, name_of
from fsa2lrnn.nn.layers.base import Hint
from fsa2lrnn.nn.layers.index import IndexReadout
from fsa2lrnn.nn.network import LayerState, State
from fsa2lrnn.symbols import Word, encode

_CHUNK_ENTRIES = 1 << 22  # entries of A(u) that one piece of a long word may materialise
_CHUNK = 1 << 12  # letters that one piece may have
_INDEX_CHUNK = 1 << 20  # the same for an index layer


class LRNN(nn.Module):
    """A stack of linear recurrences x_k = A(u_k) x_{k-1} + v(u_k) between an embedding and a read-out MLP (Eqs. 1, 5).

    A new model has random weights, ready to train; `fsa2lrnn.compile_machine` returns one with exact weights.

    >>> from fsa2lrnn.nn import BlockLayerConfig
    >>> config = LRNNConfig(alphabet=("a", "b"), outputs=(False, True), layers=(BlockLayerConfig((8,) * 8, 512, 64),))
    >>> model = LRNN(config)
    >>> model(torch.zeros(3, 7, dtype=torch.int64)).shape, model.layers[0].n_heads
    (torch.Size([3, 7, 2]), 8)
    """

    def __init__(self, config: LRNNConfig) -> None:
        check_type(config, LRNNConfig, "config", "an LRNNConfig; load(…) and compile_machine(…) make networks of it")
        super().__init__()
        self.config = config
        n_letters, n_outputs = len(config.alphabet), len(config.outputs)
        # widths[i] is the width of the stream before layer i, and the last one that before the read-out.
        kinds, widths = [LAYERS[name_of(layer)] for layer in config.layers], config.stream_widths
        shift = 2 if config.token_shift else 1
        self.embedding = kinds[0].embedding(config.layers[0], n_letters, config.embedding_dim)
        self.layers = nn.ModuleList(
            kind.build(shift * width, layer, config.columns)
            for kind, layer, width in zip(kinds, config.layers, widths[:-1], strict=True)
        )
        # LayerNorms stand before every layer and the read-out, before the read-out alone, or nowhere.
        normed = {True: widths, "readout": widths[-1:], False: []}[config.layer_norm]
        self.norms = nn.ModuleList(nn.LayerNorm(width, EPS) for width in normed)  # the last is the read-out's
        self.readout = kinds[-1].readout(config.layers[-1], widths[-1], config.readout_hidden, n_outputs)

    @classmethod
    def from_tables(
        cls,
        A: Tensor,
        v: Tensor,
        x0: Tensor,
        readout: Readout,
        alphabet: Sequence[Hashable] | None = None,
        outputs: Sequence[Hashable] | None = None,
        normalisation: str = "none",
        p: float = 1.2,
    ) -> Self:
        """Return the model whose layer has exactly these tables, by `SwitchedAffine.of` and `from_affine`."""
        return cls.from_affine(SwitchedAffine.of(A, v, x0, readout, alphabet, outputs), normalisation, p)

    @classmethod
    def from_affine(cls, tables: SwitchedAffine, normalisation: str = "none", p: float = 1.2) -> Self:
        """Return the model whose layer has exactly these tables: its embedding is one-hot, so its gates are lookups.

        The rule "clip" leaves the tables unchanged only if no column's p-norm exceeds 1. Raises `CheckpointError` if
        the column rule changes a table, or if a number is not finite.

        >>> from fsa2lrnn.nn.switched import switched
        >>> readout = Readout.linear(torch.eye(8), torch.zeros(8))
        >>> tables = SwitchedAffine.of(torch.randn(3, 2, 4, 4), torch.randn(3, 2, 4), torch.randn(2, 4), readout)
        >>> switched(LRNN.from_affine(tables)).sha256 == tables.sha256
        True
        """
        n, heads, b = tables.v.shape
        readout = tables.readout
        if not (tables.A.isfinite().all() and tables.v.isfinite().all()):
            raise CheckpointError(
                "the tables hold numbers that are not finite, and a look-up would spread them: repair them"
            )
        config = LRNNConfig(
            alphabet=tables.alphabet,
            outputs=tables.outputs,
            layers=(BlockLayerConfig((b,) * heads, transition_hidden=n, value_hidden=n),),
            embedding_dim=n,
            readout_hidden=len(readout.b1),
            normalisation=normalisation,
            p=p,
            layer_norm="readout" if readout.norm_weight is not None else False,
        )
        model = cls(config).to(tables.dtype)
        # One hidden unit per letter is 1 for this letter and 0 for others, so that no sum has two terms.
        model.write(
            torch.eye(n),
            [(tables.x0, {"transition": look_up(tables.A), "value": look_up(tables.v)})],
            {name: getattr(readout, name) for name in ("W1", "b1", "W2", "b2")},
        )
        if readout.norm_weight is not None and readout.norm_bias is not None:
            model.norms[0].load_state_dict({"weight": readout.norm_weight, "bias": readout.norm_bias})
        with torch.no_grad():
            A = model.recurrences[0].tables(model.first_inputs())[0]
        if not torch.equal(A, tables.A):
            raise CheckpointError(
                f"the column rule {normalisation!r} changes the tables, by up to "
                f'{float((A - tables.A).abs().max()):.2g}: columns of a p-norm above 1 need the rule "none"'
            )
        return model

    @property
    def alphabet(self) -> tuple[Hashable, ...]:
        """The letters Σ: token i stands for alphabet[i]."""
        return self.config.alphabet

    @property
    def outputs(self) -> tuple[Hashable, ...]:
        """The output symbols Γ: logit j belongs to outputs[j]."""
        return self.config.outputs

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the scans that all layers support on any machine, besides "auto" and "letters"."""
        first, *others = (layer.methods for layer in self.recurrences)
        return tuple(name for name in first if all(name in methods for methods in others))

    @property
    def entries_per_token(self) -> int:
        """The numbers per token that the widest step stores."""
        return self.config.entries_per_token

    @property
    def is_switched(self) -> bool:
        """Whether the model has tables (`switched`): one layer over letters, and a read-out of its state only."""
        is_one = len(self.layers) == 1 and self.recurrences[0].has_tables and not self.config.token_shift
        return is_one and not adds(self.config.connection, is_last=True) and self.has_plain_ends

    @property
    def has_plain_ends(self) -> bool:
        """Whether the embedding is a table and the read-out a gate, rather than modules that layers define."""
        return isinstance(self.embedding, nn.Embedding) and isinstance(self.readout, Gate)

    @property
    def recurrences(self) -> tuple[Layer, ...]:
        """The layers, from input to output."""
        return tuple(cast("Iterable[Layer]", self.layers))

    @property
    def is_causal(self) -> bool:
        """Whether no output depends on later letters, so that words can be read in pieces."""
        return self.not_causal is None

    @property
    def not_causal(self) -> str | None:
        """A message that names the layer that is not causal, or None if all are causal."""
        for i, layer in enumerate(self.recurrences):
            if not layer.is_causal:
                return (
                    f"layers.{i} is of kind {name_of(self.config.layers[i])} and not causal: its outputs depend on "
                    "letters that come later, so that it computes no automaton; train and compare read whole words"
                )
        return None

    def parameter_hints(self) -> dict[str, Hint]:
        """Return the layers' hints to the optimiser, by parameter name."""
        return {
            f"layers.{i}.{name}": hint
            for i, layer in enumerate(self.recurrences)
            for name, hint in layer.parameter_hints().items()
        }

    @property
    def dtype(self) -> torch.dtype:
        """The floating-point type that the model computes in."""
        return next(t.dtype for t in chain(self.parameters(), self.buffers()) if t.is_floating_point())

    @property
    def device(self) -> torch.device:
        """The device that the model is on."""
        return next(chain(self.parameters(), self.buffers())).device

    def write(self, embedding: Tensor, layers: Sequence[tuple[Tensor, Mapping[str, Values]]], readout: Values) -> None:
        """Write all weights except LayerNorms: the embedding (|Σ|, d), x₀ and gates of each layer, and the read-out.

        Gates and weights that are omitted become zero. Raises `ValueError` for an embedding of another shape, another
        number of layers, an unknown gate, or weights of another shape.
        """
        weight = self.embedding.get_parameter("weight")
        if embedding.shape != weight.shape:
            raise ValueError(f"the embedding is {tuple(embedding.shape)}, but this model's {tuple(weight.shape)}")
        with torch.no_grad():
            weight.copy_(embedding)
        for layer, (x0, gates) in zip(self.recurrences, layers, strict=True):
            layer.write(x0, **gates)
        cast("Gate", self.readout).set(readout)

    def forward(self, tokens: Tensor, method: str = "auto", empty_word: bool = False) -> Tensor:
        """Return the logits after every prefix: tokens int64 (B, T) -> (B, T, |Γ|), or (B, T+1, |Γ|) with `empty_word`.

        With `empty_word` the logits on the empty word come first. `method` names the scan (`fsa2lrnn.nn.scan`).
        "letters", which is fast without compiled scans for small alphabets, is the method of that name in a first layer
        with tables (`fsa2lrnn.nn.scan_tokens`) and "sequential" in all other layers.

        `torch.export` traces it for one shape of tokens, by the sequential scan if `method` is "auto".

        Raises `InvalidWord` for tokens of another dtype or shape and, on the CPU, for tokens that are not letters.
        """
        check_type(tokens, Tensor, "tokens", "an int64 tensor of shape (B, T), or a word to transduce")
        if is_exporting() and torch.onnx.is_in_onnx_export():
            self._warn_of_onnx()
        stream, _ = self._run(tokens, self.initial_state(len(tokens)), method, goes_on=False)
        if empty_word:
            stream = torch.cat([self._initial(len(tokens))[1].unsqueeze(1), stream], dim=1)
        return self._read(stream)

    def advance(self, tokens: Tensor, state: State, method: str = "auto") -> tuple[Tensor, State]:
        """Return the logits along `tokens` from a given state, (B, T) -> (B, T, |Γ|), and the state after them.

        Splitting a word and carrying the state computes the same recurrence as reading it whole.
        """
        stream, after = self._run(tokens, state, method)
        return self._read(stream), after

    def trace(self, tokens: Tensor, state: State) -> list[tuple[Tensor, Tensor]]:
        """Return the input and the output of each layer and, last, of the read-out: (B, T, d), (B, T, width) each."""
        stream, traced = self.embedding(tokens), []
        for i, layer in enumerate(self.recurrences):
            u, before = self._norm(i, stream), state[i]
            if before.u is not None:
                # Token shift: each position reads its own input and the one before it; the first reads the one
                # carried in the state.
                u = torch.cat([u, torch.cat([before.u.unsqueeze(1), u[:, :-1]], dim=1)], dim=-1)
            x = layer.outputs(u, before.x)
            traced.append((u, x))
            stream = self._connect(i, stream, x)
        read = self._norm(len(self.layers), stream)
        return [*traced, (read, self.readout(read))]

    def _run(self, tokens: Tensor, state: State, method: str, goes_on: bool = True) -> tuple[Tensor, State]:
        """Return the stream before the read-out, (B, T) -> (B, T, d), and the state of each layer after the words.

        A first layer with few distinct inputs reads them letter by letter of the alphabet instead of token by token.
        """
        self._check_tokens(tokens)
        method = "sequential" if method == "auto" and is_exporting() else method
        stream, after = self.embedding(tokens), []
        for i in range(len(self.layers)):
            if i == 0 and self._has_few_inputs(tokens):
                x, last = self._first_layer_by_letter(tokens, state[0], method, goes_on)
            else:
                x, last = self._layer(i, stream, state[i], method, goes_on)
            after.append(last)
            stream = self._connect(i, stream, x)
        return stream, tuple(after)

    def _layer(
        self, i: int, stream: Tensor, state: LayerState, method: str, goes_on: bool
    ) -> tuple[Tensor, LayerState]:
        """Return the outputs of layer i and its last state: (B, T, d) -> (B, T, H·b).

        If the rows of the stream repeat, as in a compiled model, A and v are computed once per distinct row; where sums
        do not round, with the same bits. "letters" is for few rows, which are not numbered.
        """
        u, last_u = self._norm(i, stream), None
        is_numbered = self.recurrences[i].takes_index and method != "letters"
        numbered = repeats.number(u) if is_numbered else None
        if numbered is not None and state.u is not None:
            last_u, numbered = u[:, -1], repeats.shifted(numbered, state.u)
        if numbered is not None:
            x, last_x = self._through(i, numbered.rows, state.x, method, numbered.index, goes_on)
            return x, LayerState(last_x, last_u)
        if state.u is not None:
            shifted = torch.cat([state.u.unsqueeze(1), u], dim=1)  # (B, T+1, d)
            last_u = shifted[:, -1]
            u = torch.cat([u, shifted[:, :-1]], dim=-1)
        x, last_x = self._through(i, u, state.x, method, None, goes_on)
        return x, LayerState(last_x, last_u)

    def _through(
        self, i: int, u: Tensor, x: Tensor, method: str, index: Tensor | None, goes_on: bool
    ) -> tuple[Tensor, Tensor]:
        # If no letters follow, the layer need not compute its last state.
        if not goes_on:
            return self.recurrences[i].outputs(u, x, method, index), x
        return self.layers[i](u, x, method) if index is None else self.layers[i](u, x, method, index)

    def _has_few_inputs(self, tokens: Tensor) -> bool:
        if not self.recurrences[0].takes_index:
            return False
        n = len(self.alphabet)
        # Computing A and v per distinct input pays where there are at least twice as many tokens as inputs.
        return tokens.numel() >= 2 * (n * n + len(tokens) if self.config.token_shift else n)

    def first_inputs(self) -> Tensor:
        """Return the inputs of the first layer for each letter, before the token shift: (|Σ|, d)."""
        return self._norm(0, cast("Tensor", self.embedding.weight))

    def _first_layer_by_letter(
        self, tokens: Tensor, state: LayerState, method: str, goes_on: bool
    ) -> tuple[Tensor, LayerState]:
        """Return the first layer's outputs and last state, each input computed once: (B, T) -> (B, T, H·b).

        With a token shift the inputs are the |Σ|² pairs of letters, in row now·|Σ| + before, and then one row per word
        for its first position, whose predecessor is in the state.
        """
        u, index, last_u = self.first_inputs(), tokens, None  # (|Σ|, d)
        if state.u is not None:
            n, last_u = len(u), u[tokens[:, -1]]
            first = torch.cat([u[tokens[:, 0]], state.u], dim=-1)  # (B, 2d): at k = 1, no pair of letters
            pairs = torch.cat([u.repeat_interleave(n, 0), u.repeat(n, 1)], dim=-1)  # (|Σ|², 2d): (now, before)
            u = torch.cat([pairs, first])
            of_first = n * n + torch.arange(len(tokens), device=tokens.device)
            # Position 1 of word i reads row |Σ|² + i, all later ones the row of their pair of letters.
            index = torch.cat([of_first[:, None], n * tokens[:, 1:] + tokens[:, :-1]], dim=1)
        x, last_x = self._through(0, u, state.x, method, index, goes_on)
        return x, LayerState(last_x, last_u)

    def _read(self, stream: Tensor) -> Tensor:
        """Return the logits of the read-out's inputs (B, T, d), or state indices (B, T): -> (B, T, |Γ|)."""
        read = self._norm(len(self.layers), stream)
        numbered = None if self.config.reads_letters else repeats.number(read)
        return self.readout(read) if numbered is None else embedding(numbered.index, self.readout(numbered.rows))

    def initial_state(self, batch: int = 1) -> State:
        """Return the state before the first letter for a batch of words: one `LayerState` per layer, tensors (B, …)."""
        if self.config.token_shift:
            return self._initial(batch)[0]
        return tuple(LayerState(layer.initial_state(batch), None) for layer in self.recurrences)

    def initial_logits(self) -> Tensor:
        """Return the logits on the empty word, (|Γ|,): the read-out of x₀, with zero for the token's embedding."""
        with torch.no_grad():
            return self.readout(self._norm(len(self.layers), self._initial(1)[1]))[0]

    def _initial(self, batch: int) -> tuple[State, Tensor]:
        states = []
        stream = torch.zeros(batch, self.config.embedding_dim, dtype=self.dtype, device=self.device)
        for i, layer in enumerate(self.recurrences):
            x = layer.initial_state(batch)
            states.append(LayerState(x, self._norm(i, stream) if self.config.token_shift else None))
            stream = self._connect(i, stream, layer.emit(x))
        return tuple(states), stream

    def _norm(self, i: int, stream: Tensor) -> Tensor:
        at = i - len(self.layers) - 1 + len(self.norms)  # counted from the read-out, which is always among them
        return self.norms[at](stream) if at >= 0 else stream

    def _connect(self, i: int, stream: Tensor, x: Tensor) -> Tensor:
        is_last = i + 1 == len(self.layers)
        return connect(self.config.connection, stream, x, self.config.embedding_dim, is_last)

    def _warn_of_onnx(self) -> None:
        """Warn of a layer without ONNX; an error would only make the exporter try again in another way."""
        if lacking := [name for name in map(name_of, self.config.layers) if not LAYERS[name].has_onnx]:
            able = ", ".join(name for name, kind in LAYERS.items() if kind.has_onnx)
            warnings.warn(
                f"layer {lacking[0]} computes with complex numbers, for which ONNX lacks functions, so its export "
                f"fails: deploy the network by torch.export, or train one of {able}",
                stacklevel=2,
            )

    def _check_tokens(self, tokens: Tensor) -> None:
        """Raise `InvalidWord` unless tokens are int64 of shape (B, T) and, on the CPU, indices of letters."""
        if tokens.dtype != torch.int64 or tokens.ndim != 2:
            raise InvalidWord(
                f"tokens of type {tokens.dtype} and shape {tuple(tokens.shape)}: give int64, shape (B, T)"
            )
        # On a GPU, reading the data would stall the queue; there the embedding raises the error.
        if tokens.device.type == "cpu" and tokens.numel() and not is_exporting():
            low, high = int(tokens.min()), int(tokens.max())
            if low < 0 or high >= len(self.alphabet):
                wrong = low if low < 0 else high
                raise InvalidWord(f"token {wrong} is not in the alphabet: tokens run 0..{len(self.alphabet) - 1}")

    def transduce(self, word: Word, method: str = "auto") -> list[Hashable]:
        """Return the output symbol after every prefix of `word`; raise `InvalidWord` for an unknown letter."""
        tokens = encode(word, self.alphabet)
        return [self.outputs[j] for numbers in self.stream([tokens], method) for j in numbers]

    def stream(self, pieces: Iterable[np.ndarray], method: str = "auto") -> Iterator[np.ndarray]:
        """Yield output numbers, int64 (T,), along a word that arrives in pieces of tokens (T,), in bounded memory.

        Raises `NotExact` where logits are NaN, since no output can then be named, and `UnsupportedFormat` for a model
        that is not causal.
        """
        if (reason := self.not_causal) is not None:
            raise UnsupportedFormat(reason)
        state, read = self.initial_state(), 0
        size = self._chunk_length()
        with torch.no_grad():
            for piece in pieces:
                for start in range(0, len(piece), size):
                    # A piece is cut again, so that A(u) of all its letters fits into memory at once.
                    tokens = torch.from_numpy(piece[start : start + size]).to(self.device)
                    stream, state = self._run(tokens[None], state, method)
                    yield self._numbers(stream[0], read).cpu().numpy()
                    read += len(tokens)

    def _numbers(self, stream: Tensor, position: int) -> Tensor:
        """Return the output numbers of the read-out's inputs: (T, d), or state indices (T,), -> (T,)."""
        if self.config.reads_letters:
            return cast("IndexReadout", self.readout).numbers(stream)  # without writing the logits out
        return decode(self._read(stream[None])[0], position)

    def _chunk_length(self) -> int:
        if self.config.reads_letters:
            return _INDEX_CHUNK
        # At least one letter, even if a single step has more entries than a piece should.
        return max(1, min(_CHUNK, _CHUNK_ENTRIES // self.config.entries_per_token))

    def extra_repr(self) -> str:
        """Return the text that `print(model)` shows in addition to the modules."""
        return f"letters={len(self.alphabet)}, outputs={len(self.outputs)}, normalisation={self.config.normalisation!r}"


def decode(logits: Tensor, position: int = 0) -> Tensor:
    """Return the index of the largest logit, the first of equals: (T, |Γ|) -> int64 (T,); raise `NotExact` for NaN."""
    if (wrong := logits.isnan().any(-1)).any():
        k = position + int(wrong.nonzero()[0]) + 1
        raise NotExact(f"the logits at position {k} are NaN, so no output can be read: the state has overflowed")
    return logits.argmax(-1)
