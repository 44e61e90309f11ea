"""Declare the operators that have probes: their tensors, as in flash-linear-attention, their forms and their words.

`reference` makes kernels of the sequential and the chunked forms, with the operators' signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from . import forms, random_words
from .random_words import KEYS, VALUES

Inputs = Mapping[str, Tensor]
Form = Callable[[Inputs, Tensor, int], tuple[Tensor, Tensor]]  # inputs, state, chunk size -> outputs, final state
FACTORS = 2  # Householder factors per token of the DeltaProduct probes
BLOCK = 4  # size of the blocks of the block-diagonal probes


@dataclass(frozen=True)
class Operator:
    """The declaration of an operator for its probes.

    Args:
        name: the name that `assert_exact(op=…)` takes.
        tensors: the per-token tensors in the order of a call, each with the shape of one head's entry.
        state: the shape of one head's state.
        step: the computation of one token, which defines the correct result.
        forms: other computations of the operator by name, which the audit checks.
        letters: the generator of the letters of random words.
        wide: the log gates, which are float32 for every dtype, because kernels sum them in float32.
        idle: the entries of a padding token by tensor, if they are not zeros.
        factors: the number of entries per token by tensor, if there are several.
        heads: whether the tensors have a head axis.
        scaled: whether a kernel takes `scale`.
        static: the shapes of tensors without a time axis, by name.
        options: further keyword arguments of every call.
    """

    name: str
    tensors: Mapping[str, tuple[int, ...]]
    state: tuple[int, ...]
    step: Callable[[Tensor, Inputs], tuple[Tensor, Tensor]]
    forms: Mapping[str, Form]
    letters: Callable[[random_words.Source], Iterator[random_words.Letter]]
    wide: frozenset[str] = frozenset()
    idle: Mapping[str, Tensor] = field(default_factory=dict)
    factors: Mapping[str, int] = field(default_factory=dict)
    heads: bool = True
    scaled: bool = True
    static: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def queries(self) -> str:
        """The name of the tensor that only reads the state: `q` or `r`; "" for scans, which return their states."""
        return next((name for name in ("q", "r") if name in self.tensors), "")

    @property
    def pads(self) -> bool:
        """Whether a padding token leaves the state unchanged."""
        return not self.static

    def length(self, inputs: Inputs) -> int:
        """Return the number of tokens of the inputs."""
        name = next(iter(self.tensors))
        return inputs[name].shape[1] // self.factors.get(name, 1)

    def cut(self, inputs: Inputs, start: int, stop: int) -> dict[str, Tensor]:
        """Return the inputs restricted to the tokens from `start` up to `stop`, exclusive."""
        n = {name: self.factors.get(name, 1) for name in self.tensors}
        return {m: t if m in self.static else t[:, start * n[m] : stop * n[m]] for m, t in inputs.items()}


def sequential(op: Operator, inputs: Inputs, S: Tensor) -> tuple[Tensor, Tensor]:
    """Return the outputs (B, T, …) and the final state (B, …) by one step per token, without the scale."""
    outputs = list[Tensor]()
    split = {
        name: t.reshape(t.shape[0], -1, op.factors[name], *t.shape[2:]) if name in op.factors else t
        for name, t in inputs.items()
    }
    for i in range(op.length(inputs)):
        S, o = op.step(S, {name: t if name in op.static else t[:, i] for name, t in split.items()})
        outputs.append(o)
    return torch.stack(outputs, 1), S


def _delta(x: Inputs, S: Tensor, chunk: int, invert: forms.Inverse) -> tuple[Tensor, Tensor]:
    g = x.get("g", torch.zeros_like(x["beta"]))
    return forms.chunked_delta(x["q"], x["k"], x["v"], x["beta"], g if g.dim() == 4 else g[..., None], S, chunk, invert)


def _delta_product(x: Inputs, S: Tensor, chunk: int, invert: forms.Inverse) -> tuple[Tensor, Tensor]:
    """Run DeltaProduct as the delta rule on `FACTORS` steps per token: the gate in the first, the query in the last."""
    g, q = torch.zeros_like(x["beta"]), torch.zeros_like(x["k"])
    g[:, ::FACTORS], q[:, FACTORS - 1 :: FACTORS] = x["g"], x["q"]
    o, S = _delta({**x, "g": g, "q": q}, S, chunk, invert)
    return o[:, FACTORS - 1 :: FACTORS], S


def _simple_gla(x: Inputs, S: Tensor, chunk: int, invert: forms.Inverse) -> tuple[Tensor, Tensor]:
    # Without the rank-one part (a = b = 0) the DPLR form is gated linear attention.
    none = torch.zeros_like(x["k"])
    return forms.chunked_dplr(x["q"], x["g"][..., None], x["k"], x["v"], none, none, S, chunk, invert)


def _rwkv7(x: Inputs, S: Tensor, chunk: int, invert: forms.Inverse) -> tuple[Tensor, Tensor]:
    return forms.chunked_dplr(x["r"], x["w"], x["k"], x["v"], x["a"], x["b"], S, chunk, invert)


def _prefix(x: Inputs, S: Tensor, _: int, *, dense: Callable[[Inputs], Tensor]) -> tuple[Tensor, Tensor]:
    return forms.prefix(dense(x), x["v"], S)


def _permuted(x: Inputs) -> Tensor:
    # Column j of P has its one in row p_j, and P diag(d) scales it by d_j.
    rows = torch.arange(KEYS)[:, None] == x["p"][..., None, :]
    return rows.to(x["d"].dtype) * x["d"][..., None, :]


def _chunked(run: Callable[..., tuple[Tensor, Tensor]]) -> dict[str, Form]:
    return {
        "chunked, inverse by rows": partial(run, invert=forms.invert_by_rows),
        "chunked, inverse by blocks": partial(run, invert=forms.invert_by_blocks),
    }


_K, _V, _G = (KEYS,), (VALUES,), frozenset("g")
_QKV: dict[str, tuple[int, ...]] = {"q": _K, "k": _K, "v": _V}

OPERATORS: dict[str, Operator] = {
    op.name: op
    for op in (
        Operator(
            "gated_delta_rule", {**_QKV, "g": (), "beta": ()}, _K + _V, forms.gated_delta_step,
            _chunked(_delta), random_words.gated_delta_letters, _G,
        ),
        Operator(
            "delta_rule", {**_QKV, "beta": ()}, _K + _V, forms.delta_step, _chunked(_delta), random_words.delta_letters,
        ),
        Operator(
            "delta_product", {**_QKV, "g": (), "beta": ()}, _K + _V, forms.delta_product_step,
            _chunked(_delta_product), partial(random_words.delta_product_letters, factors=FACTORS), _G,
            factors={"k": FACTORS, "v": FACTORS, "beta": FACTORS}, options={"num_householder": FACTORS},
        ),
        Operator(
            "kda", {**_QKV, "g": _K, "beta": ()}, _K + _V, forms.kda_step, _chunked(_delta),
            random_words.kda_letters, _G,
        ),
        Operator(
            "simple_gla", {**_QKV, "g": ()}, _K + _V, forms.simple_gla_step, _chunked(_simple_gla),
            random_words.simple_gla_letters, _G,
        ),
        Operator(
            "rwkv7", {"r": _K, "w": _K, "k": _K, "v": _V, "a": _K, "b": _K}, _K + _V, forms.rwkv7_step,
            _chunked(_rwkv7), random_words.rwkv7_letters, frozenset("w"),
        ),
        Operator(
            "diagonal", {"a": _K, "v": _K}, _K, forms.diagonal_step,
            {"prefix": partial(_prefix, dense=lambda x: torch.diag_embed(x["a"]))}, random_words.diagonal_letters,
            idle={"a": torch.ones(KEYS)}, scaled=False,
        ),
        Operator(
            "block_diagonal", {"A": (BLOCK, BLOCK), "v": (BLOCK,)}, (BLOCK,), forms.block_diagonal_step,
            {"prefix": partial(_prefix, dense=lambda x: x["A"])}, random_words.block_diagonal_letters,
            idle={"A": torch.eye(BLOCK)}, scaled=False,
        ),
        Operator(
            "pd_ssm", {"p": _K, "d": _K, "v": _K}, _K, forms.pd_ssm_step,
            {"prefix": partial(_prefix, dense=_permuted)}, random_words.pd_ssm_letters,
            idle={"p": torch.arange(KEYS), "d": torch.ones(KEYS)}, scaled=False,
        ),
        Operator(
            "causal_conv1d", {"x": _K}, (KEYS, 4), forms.conv_step, {}, random_words.conv_letters,
            heads=False, scaled=False, static={"weight": (KEYS, 4), "bias": _K}, options={"activation": None},
        ),
        Operator(
            "state_passing", {"states": _V, "g": ()}, _V, forms.state_passing_step, {},
            random_words.state_passing_letters, _G, scaled=False,
        ),
    )
}  # fmt: skip
"""The operators that have probes, by name."""
ALIASES = {
    "gated_delta_product": "delta_product", "dplr_delta_rule": "rwkv7", "ssd": "simple_gla", "deltanet": "delta_rule",
}  # fmt: skip


def operator(name: str) -> Operator:
    """Return the operator of a name or an alias. Raises `ValueError` for another name."""
    try:
        return OPERATORS[ALIASES.get(name, name)]
    except KeyError:
        raise ValueError(f"op={name!r} is not an operator with probes: choose from {', '.join(OPERATORS)}") from None


def reference(op: str, form: str = "sequential", chunk: int = 64) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """Return a kernel that computes an operator in float32 and returns outputs in the dtype of its inputs.

    Args:
        op: the operator, a key of `OPERATORS`. Another name raises `ValueError`.
        form: "sequential", or a key of the operator's `forms`.
        chunk: the chunk size of a chunked form.
    """
    operation = operator(op)

    def kernel(
        *tensors: Tensor, scale: float = 1.0, initial_state: Tensor | None = None, output_final_state: bool = False,
        cu_seqlens: Tensor | None = None, **named: object,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        names = (*operation.tensors, *operation.static)
        arguments = {**dict(zip(names, tensors, strict=False)), **{n: t for n, t in named.items() if n in names}}
        dtype = (
            arguments[names[-1]].dtype if operation.static else arguments["v" if "v" in arguments else names[0]].dtype
        )
        inputs = {n: t if n == "p" else t.float() for n, t in arguments.items()}
        T, B = operation.length(inputs), inputs[names[0]].shape[0]
        ends = [0, T] if cu_seqlens is None else cu_seqlens.tolist()
        if initial_state is None:
            heads = (inputs[names[0]].shape[2],) if operation.heads else ()
            batch = B if cu_seqlens is None else len(ends) - 1
            state = (inputs["k"].shape[-1], inputs["v"].shape[-1]) if "k" in inputs else operation.state
            initial_state = torch.zeros(batch, *heads, *state, device=inputs[names[0]].device)
        outputs, states = list[Tensor](), list[Tensor]()
        # Packed sequences run one after the other, each from its own state.
        for i, (start, stop) in enumerate(pairwise(ends)):
            S = initial_state.float() if cu_seqlens is None else initial_state[i : i + 1].float()
            part = operation.cut(inputs, start, stop)
            o, S = sequential(operation, part, S) if form == "sequential" else operation.forms[form](part, S, chunk)
            outputs.append(o * scale)
            states.append(S)
        return torch.cat(outputs, 1).to(dtype), torch.cat(states) if output_final_state else None

    return kernel
