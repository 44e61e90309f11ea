"""Networks of other packages: any module by its outputs (`wrap`), and layers of flash-linear-attention (`wrap_fla`).

`wrap` is for programs that need only the outputs: `falsify`, `extract_learned`, `compare`. Layers of
flash-linear-attention are converted, in both directions, with the same weight names. That package is not imported, nor
are its kernels run: a module is read by its class name, its settings and its `state_dict`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from fsa2lrnn.errors import InvalidWord, UnsupportedFormat, check_type
from fsa2lrnn.nn.layers import Columns, layer_named
from fsa2lrnn.nn.layers.base import Layer
from fsa2lrnn.nn.network import LayerState, State

LONGEST = 1_024  # letters that a word may have where there is no step mode: a state then is the word itself


def wrap(
    module: nn.Module,
    alphabet: Sequence[Hashable],
    outputs: Sequence[Hashable],
    empty: Hashable | None = None,
    longest: int = LONGEST,
) -> Wrapped:
    """Return a network that wraps a module from tokens, int64 (B, T), to logits, (B, T, |Γ|), after each prefix.

    If the module has `step(token (B,), state) -> (logits (B, |Γ|), state)` and `initial_state(batch)`, with one tensor
    or a tuple of tensors (B, …) for a state, words of any length are read letter by letter. Otherwise a word is read
    again from its beginning whenever letters are added. The module is put into evaluation mode.

    Args:
        alphabet, outputs: the symbols of tokens and of logits.
        empty: the output on the empty word; by default the first, because a module does not define it.
        longest: the maximal number of letters of a word for a module without `step`.

    Raises:
        UnsupportedFormat: for symbols that are not distinct, an `empty` that is not an output, an object that is not a
            module, and a module that does not give one logit per output for a letter, or gives a word other logits the
            second time or beside other words.

    >>> class LastLetter(nn.Module):
    ...     def forward(self, tokens):
    ...         return nn.functional.one_hot(tokens, 2).float()
    >>> model = wrap(LastLetter(), "ab", (False, True))
    >>> model(torch.tensor([[0, 1]])).argmax(-1).tolist()
    [[0, 1]]
    """
    for name, symbols in (("alphabet", alphabet), ("outputs", outputs)):
        check_type(symbols, Iterable, name, "a list of symbols")
    return Wrapped(module, tuple(alphabet), tuple(outputs), empty, longest)


class Wrapped(nn.Module):
    """A `Network` made by `wrap` from a module, with letters and outputs."""

    methods = ("forward",)
    is_switched = False
    not_causal = None  # as far as its interface says

    def __init__(
        self,
        module: nn.Module,
        alphabet: tuple[Hashable, ...],
        outputs: tuple[Hashable, ...],
        empty: Hashable | None,
        longest: int,
    ) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise UnsupportedFormat(f"{type(module).__name__} is not a torch.nn.Module: put the logits' code into one")
        self.module = module.eval()
        self.alphabet, self.outputs, self._longest = alphabet, outputs, longest
        for name, symbols in (("alphabet", alphabet), ("outputs", outputs)):
            if not symbols or len(set(symbols)) != len(symbols):
                raise UnsupportedFormat(f"{name} = {symbols}: give at least one, all distinct")
        if empty is not None and empty not in outputs:
            raise UnsupportedFormat(f"empty = {empty!r} is none of the outputs {outputs}")
        self._empty = 0 if empty is None else outputs.index(empty)
        self._has_steps = hasattr(module, "step") and hasattr(module, "initial_state")
        self._is_tuple = self._has_steps and isinstance(module.initial_state(1), tuple)  # type: ignore[operator]
        with torch.no_grad():
            self._like = self._checked(module(torch.zeros(1, 1, dtype=torch.int64, device=self.device)), (1, 1))
            self._check_function()

    def _check_function(self) -> None:
        """Raise `UnsupportedFormat` unless a word has the same logits alone, twice, and beside other words."""
        generator = torch.Generator().manual_seed(0)
        tokens = torch.randint(len(self.alphabet), (3, min(6, self._longest)), generator=generator).to(self.device)
        alone = self._checked(self.module(tokens[2:]), (1, tokens.shape[1]))
        again, beside = self.module(tokens[2:]), self.module(tokens)[2:]
        scale = alone.abs().nan_to_num(0, 0, 0).max().item() + 1
        eps = 64 * max(torch.finfo(alone.dtype).eps, 1e-5) if alone.is_floating_point() else 0
        for logits, what, cause in (
            (again, "given twice", "something is drawn at random, such as a dropout that eval() does not switch off"),
            (
                beside,
                "beside other words",
                "a recurrent layer without batch_first=True reads the batch as time, or a norm has statistics of the "
                "batch",
            ),
        ):
            if not torch.allclose(logits, alone, rtol=0, atol=eps * scale, equal_nan=True):
                raise UnsupportedFormat(
                    f"the module gives one word different logits {what} (by up to "
                    f"{(logits - alone).abs().max().item():.2g}), so it is not a function of the word alone: {cause}"
                )

    def _checked(self, logits: object, shape: tuple[int, ...]) -> Tensor:
        expected = (*shape, len(self.outputs))
        if not isinstance(logits, Tensor) or logits.shape != expected:
            got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise UnsupportedFormat(
                f"the module gives {got} for tokens of shape {shape}, where logits of shape {expected} are asked for: "
                "one for each output, after every prefix"
            )
        return logits

    @property
    def device(self) -> torch.device:
        """The device of the module's first weight, or the CPU."""
        return next((weight.device for weight in self.module.parameters()), torch.device("cpu"))

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the module's logits."""
        return self._like.dtype

    @property
    def is_causal(self) -> bool:
        """Whether the module is causal: assumed for every module, since verifiers use its outputs after each prefix."""
        return True

    @property
    def entries_per_token(self) -> int:
        """An estimate of the numbers per token, for planning memory: its logits, or its weights' largest dimension."""
        return max(len(self.outputs), *(max(weight.shape, default=1) for weight in self.module.parameters()), 1)

    def forward(self, tokens: Tensor, method: str = "auto") -> Tensor:
        """Return the logits after every prefix: (B, T) -> (B, T, |Γ|). `method` is checked, but has no effect."""
        self._check_method(method)
        if not tokens.shape[1]:
            return self._like.new_zeros(*tokens.shape, len(self.outputs))
        return self._checked(self.module(tokens), tuple(tokens.shape))

    def initial_state(self, batch: int = 1) -> State:
        """Return the module's initial state or, without steps, an empty word: tokens (B, longest), lengths (B, 1)."""
        if self._has_steps:
            state = cast("Callable[[int], Any]", self.module.initial_state)(batch)
            return tuple(LayerState(part, None) for part in (state if self._is_tuple else (state,)))
        kind = torch.uint8 if len(self.alphabet) <= 1 << 8 else torch.int32
        tokens = torch.zeros(batch, self._longest, dtype=kind, device=self.device)
        return (LayerState(tokens, torch.zeros(batch, 1, dtype=torch.int64, device=self.device)),)

    def initial_logits(self) -> Tensor:
        """Return logits on the empty word: 1 for its output, 0 for the others, (|Γ|,)."""
        logits = self._like.new_zeros(len(self.outputs))
        logits[self._empty] = 1
        return logits

    def advance(self, tokens: Tensor, state: State, method: str = "auto") -> tuple[Tensor, State]:
        """Return the logits along `tokens` from a state, (B, T) -> (B, T, |Γ|), and the state after them.

        Raises `InvalidWord` for a word that is longer than `longest`, if the module has no steps.
        """
        self._check_method(method)
        return self._stepped(tokens, state) if self._has_steps else self._reread(tokens, state)

    def _check_method(self, method: str) -> None:
        if method not in ("auto", "sequential", *self.methods):
            raise UnsupportedFormat(f"scan method {method!r}: a wrapped module computes in its own way alone")

    def _stepped(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        parts: Any = tuple(part.x for part in state)
        parts = parts if self._is_tuple else parts[0]
        rows = [self._like.new_zeros(len(tokens), 0, len(self.outputs))]
        for letters in tokens.unbind(1):
            logits, parts = cast("Callable[..., Any]", self.module.step)(letters, parts)
            rows.append(self._checked(logits, (len(tokens),))[:, None])
        return torch.cat(rows, 1), tuple(LayerState(part, None) for part in (parts if self._is_tuple else (parts,)))

    def _reread(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits along tokens, (B, T) -> (B, T, |Γ|), by reading each word again from its start.

        Words of one length are read together, since the module has no mask.
        """
        ((word, read),) = state
        read = cast("Tensor", read)
        T, most = tokens.shape[1], int(read.max()) if len(read) else 0
        if most + T > self._longest:
            raise InvalidWord(
                f"a word of {most + T:,} letters: without a step mode a word may have longest = {self._longest:,}; "
                "raise it, or give the module step and initial_state"
            )
        # The given state stays as it is, since a search may continue from it again.
        word, logits = word.clone(), self._like.new_zeros(*tokens.shape, len(self.outputs))
        for n in read.unique().tolist():  # words of like length are read together
            rows = (read[:, 0] == n).nonzero()[:, 0]
            word[rows, n : n + T] = tokens[rows].to(word.dtype)
            logits[rows] = self(word[rows, : n + T].to(torch.int64))[:, n:]
        return logits, (LayerState(word, read + T),)


class _Counterpart(NamedTuple):
    """The name of our layer, our options by the names of fla's settings, and the settings with a fixed value."""

    layer: str
    options: Mapping[str, str]
    fixed: Mapping[str, Any]


_SHARED = {"conv_bias": False}
_DELTA = {"allow_neg_eigval": "neg_eigval"}
_COUNTERPARTS = {
    "GatedDeltaNet": _Counterpart("gated_deltanet", _DELTA | {"use_gate": "gate"}, _SHARED),
    "GatedDeltaProduct": _Counterpart(
        "gated_deltaproduct", _DELTA | {"use_output_gate": "gate", "num_householder": "factors"}, _SHARED
    ),
    "KimiDeltaAttention": _Counterpart("kda", _DELTA, _SHARED | {"safe_gate": False, "lower_bound": None}),
    "GatedDeltaNet2": _Counterpart("gdn2", _DELTA, _SHARED),
    "RWKV7Attention": _Counterpart(
        "rwkv7", {"decay_low_rank_dim": "rank", "gate_low_rank_dim": "gate_rank"}, {"layer_idx": 0}
    ),
}


def wrap_fla(module: nn.Module) -> Layer:
    """Return our layer with the settings and weights of one of flash-linear-attention.

    The classes are GatedDeltaNet, GatedDeltaProduct, KimiDeltaAttention, GatedDeltaNet2 and RWKV7Attention, the last
    as a first layer (`layer_idx` 0). `to_fla` writes the weights back.

    Raises:
        UnsupportedFormat: for another class, for settings that our layer does not have, such as more heads of values
            than of keys, and for weights that do not fit.
    """
    from fsa2lrnn.nn.layers.matrix_layer import NORM_EPS  # not loaded by verifiers of other layers

    name = type(module).__name__
    counterpart = _COUNTERPARTS.get(name)
    if counterpart is None:
        raise UnsupportedFormat(f"{name} is not one of {', '.join(_COUNTERPARTS)}, which wrap_fla reads")
    kind = counterpart.layer
    if kind == "gated_deltaproduct" and not getattr(module, "use_forget_gate", True):
        kind = "deltaproduct"
    heads = _setting(module, "num_heads")
    fixed = dict(counterpart.fixed)
    if hasattr(module, "num_v_heads"):
        fixed["num_v_heads"] = heads
    hidden, head_dim = _setting(module, "hidden_size"), _setting(module, "head_dim")
    options = {ours: _setting(module, theirs) for theirs, ours in counterpart.options.items()}
    options |= {"heads": heads, "block": head_dim, "outputs": hidden}
    if kind == "rwkv7":
        fixed |= {"head_v_dim": head_dim, "a_low_rank_dim": options["rank"]}
    else:
        options["expand_v"] = _setting(module, "head_v_dim") / head_dim
        options["conv"] = _setting(module, "conv_size") if _setting(module, "use_short_conv") else 0
    for setting, value in fixed.items():
        if (actual := getattr(module, setting, value)) != value:
            raise UnsupportedFormat(f"{name} with {setting} = {actual!r}: our layer {kind} has {value!r}")
    if (eps := getattr(getattr(module, "o_norm", None), "eps", NORM_EPS)) != NORM_EPS:
        raise UnsupportedFormat(f"{name} with norm_eps = {eps}: our layer {kind} has {NORM_EPS}")
    layer_class = layer_named(kind)
    layer = layer_class.build(hidden, layer_class.Config(**options), Columns("none", 2.0))
    weights = module.state_dict()
    _check_names(layer.state_dict(), weights, name)
    layer.load_state_dict(weights)
    return layer.to(next(iter(weights.values())).dtype)


def to_fla(layer: Layer, module: nn.Module) -> None:
    """Write the weights of our layer into one of flash-linear-attention.

    Raises `UnsupportedFormat` unless they have the same parameters.
    """
    weights = layer.state_dict()
    _check_names(module.state_dict(), weights, type(layer).__name__)
    module.load_state_dict(weights)


def _setting(module: nn.Module, name: str) -> Any:
    if not hasattr(module, name):
        raise UnsupportedFormat(f"{type(module).__name__} has no {name}: this version of the package is not supported")
    return getattr(module, name)


@torch.no_grad()
def _check_names(into: Mapping[str, Tensor], weights: Mapping[str, Tensor], name: str) -> None:
    """Raise `UnsupportedFormat` with up to four weights that are missing, left over or of another shape."""
    faults = [f"{key} is missing" for key in into if key not in weights]
    faults += [f"{key} is left over" for key in weights if key not in into]
    faults += [
        f"{key} has shape {tuple(weights[key].shape)}, not {tuple(into[key].shape)}"
        for key in into
        if key in weights and weights[key].shape != into[key].shape
    ]
    if faults:
        raise UnsupportedFormat(f"the weights of {name} do not fit: {'; '.join(faults[:4])}")
