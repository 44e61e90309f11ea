"""Eight small kernels into which faults can be injected by name.

They compute in float32 and return outputs in the dtype of `v`. The chunked ones follow the WY representation; they are
written apart from the library's reference forms, for they are what is tested. `mutants.KERNELS` lists the faults per
kernel; `TABLE` those that change one factor of the chunked delta rule alone, each under a correct backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

CHUNK = 64
_stale = dict[tuple[int, ...], Tensor]()  # buffers that a faulty kernel does not clear


def tf32(x: Tensor) -> Tensor:
    """Round to the 11 significant bits of TF32."""
    return (x.float().contiguous().view(torch.int32) + (1 << 12) & -(1 << 13)).view(torch.float32)


def shifted(g: Tensor, by: int) -> Tensor:
    """Return gates moved by one token, with zeros for those that are missing."""
    zero = torch.zeros_like(g[:, :1])
    return torch.cat([zero, g[:, :-1]], 1) if by > 0 else torch.cat([g[:, 1:], zero], 1)


def chunk(t: Tensor, size: int, last: bool = False) -> Tensor:
    """Return (B, T, H, K) as (B, H, N, C, K), padded with zeros, or with copies of the last token."""
    missing = -t.shape[1] % size
    fill = t[:, -1:].expand(-1, missing, -1, -1) if last else t.new_zeros(t.shape[0], missing, *t.shape[2:])
    t = torch.cat([t, fill], 1)
    return t.reshape(t.shape[0], -1, size, *t.shape[2:]).movedim(3, 1)


# One factor of the chunked delta rule is wrong: "FACTOR: CHANGE". Tensors are (B, H, N, C, ·), chunked.
DECAYS = ("decay in Q Kᵀ", "decay in K D Kᵀ", "decay of w", "decay of queries", "decay of keys", "decay of the state")
GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "base 2": lambda g: g * 0.6931471805599453,
    "halved": lambda g: g / 2,
    "doubled": lambda g: g * 2,
    "one percent too strong": lambda g: g * 1.01,
    "missing": torch.zeros_like,
    "negated": torch.neg,
    "one token late": lambda g: torch.cat([torch.zeros_like(g[..., :1, :]), g[..., :-1, :]], -2),
    "one token early": lambda g: torch.cat([g[..., 1:, :], torch.zeros_like(g[..., :1, :])], -2),
    "missing at the first token of a chunk": lambda g: torch.cat([torch.zeros_like(g[..., :1, :]), g[..., 1:, :]], -2),
    "missing in the second chunk": lambda g: torch.cat([g[:, :, :1], 0 * g[:, :, 1:2], g[:, :, 2:]], 2),
    "of the next head": lambda g: g.roll(-1, 1),
    "of the next row of the batch": lambda g: g.roll(-1, 0),
}
FACTORS = ("Q D Kᵀ", "K D Kᵀ", "the inverse", "u", "w", "new values", "carried state", "final state")
CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "negated": torch.neg,
    "halved": lambda x: x / 2,
    "in float16": lambda x: x.half().float(),
    "in bfloat16": lambda x: x.bfloat16().float(),
    "without its last row": lambda x: torch.cat([x[..., :-1, :], torch.zeros_like(x[..., :1, :])], -2),
    "reversed": lambda x: x.mT.flip(-1, -2) if x.shape[-1] == x.shape[-2] else x.flip(-2),
    "of the next head": lambda x: x.roll(-1, 1),
    "of the next row of the batch": lambda x: x.roll(-1, 0),
}
# The gate of the first token of a chunk does not occur in a decay from one token of the chunk to a later one.
TABLE = [
    f"{a}: {b}" for a in DECAYS for b in GATES
    if not b.startswith("missing at") or a in ("decay of w", "decay of queries", "decay of the state")
]  # fmt: skip
TABLE += [f"{a}: {b}" for a in FACTORS for b in CHANGES]
TABLE += [f"beta {a}" for a in ("missing in K D Kᵀ", "of the earlier token in K D Kᵀ", "missing in u", "missing in w")]


def changed(x: Tensor, factor: str, fault: str) -> Tensor:
    """Return a tensor, changed if the fault is in this factor."""
    where, _, how = fault.partition(": ")
    return (CHANGES if factor in FACTORS else GATES)[how](x) if where == factor else x


class _Value(torch.autograd.Function):
    """Return one tensor and pass gradients to another, as a kernel does whose backward pass is its own code."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, other: Tensor) -> Tensor:  # noqa: ARG004
        assert value.shape == other.shape
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:  # noqa: ARG004
        return None, gradients[0]


def packed(run: Callable[..., Any], fault: str, cu_seqlens: Tensor | None, tensors: list[Tensor], state: Any) -> Any:
    """Run each packed sequence by itself."""
    if cu_seqlens is None or fault == "cu_seqlens is not passed on":
        o, S = run(*tensors, state=state if cu_seqlens is None or state is None else state[:1])
        return o, S if cu_seqlens is None else S.expand(len(cu_seqlens) - 1, *S.shape[1:])
    outputs, states, S = list[Tensor](), list[Tensor](), None
    ends = cu_seqlens.tolist()
    T = tensors[0].shape[1]
    for i, (a, b) in enumerate(pairwise(ends)):
        start = None if state is None else state[i : i + 1]
        if fault == "the state leaks into the next packed sequence" and i and start is None:
            start = S
        if fault == "packed sequences use the first initial state":
            start = None if state is None else state[:1]
        parts = [t[:, a * (t.shape[1] // T) : b * (t.shape[1] // T)] for t in tensors]
        o, S = run(*parts, state=start)
        if fault == "states of packed sequences are one chunk late" and b - a > CHUNK:
            S = run(*(p[:, : (b - a) // CHUNK * CHUNK * (p.shape[1] // (b - a))] for p in parts), state=start)[1]
        outputs.append(o)
        states.append(S)
    return torch.cat(outputs, 1), torch.cat(states)


def delta_chunks(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor, state: Tensor | None, fault: str
) -> tuple[Tensor, Tensor]:
    """Return outputs and final state of the gated delta rule; gates (B, T, H, 1 or K)."""
    f, T, C = fault, q.shape[1], CHUNK
    if f == "tokens of chunk 0 skip the gate":
        g = torch.cat([torch.zeros_like(g[:, :C]), g[:, C:]], 1)
    if f == "gates are clamped at −5":
        g = g.clamp(min=-5)
    if f == "beta is clamped at 1":
        beta = beta.clamp(max=1)
    S = q.new_zeros(q.shape[0], q.shape[2], k.shape[-1], v.shape[-1]) if state is None else state.float()
    if f == "the initial state is dropped in a batch of one" and q.shape[0] == 1:
        S = torch.zeros_like(S)
    if f == "the initial state is transposed":
        S = S.mT
    last = f == "padding repeats the last token"
    q, k, v, beta, g = (chunk(t, C, last) for t in (q, k, v, beta[..., None], g))
    lower = torch.ones(C, C, dtype=torch.bool).tril(-1)
    in_scores, in_A, in_w, into, G, total = (changed(g, factor, f).cumsum(-2) for factor in DECAYS)

    def pairs(x: Tensor, G: Tensor, y: Tensor) -> Tensor:
        E = G - g if f == "decay between tokens is exclusive" else G
        D = (E[..., :, None, :] - G[..., None, :, :]).masked_fill(~lower[..., None], 0)
        D = D.clamp(max=0) if E is not G else D
        return (x[..., :, None, :] * D.exp() * y[..., None, :, :]).sum(-1)

    b = beta.mT if f == "beta of the earlier token in K D Kᵀ" else 1 if f == "beta missing in K D Kᵀ" else beta
    A = changed(b * pairs(k, in_A, k) * lower, "K D Kᵀ", f)
    if f == "the inverse has the sign of A wrong":
        A = -A
    if f == "A is not masked below its diagonal blocks":
        A = beta * pairs(k, in_A, k) * torch.ones(C, C).tril(-1).triu(-16)
    inverse = torch.eye(C).expand(A.shape).clone()
    rows = C - 1 if f == "the inverse misses its last row" else C
    for i in range(1, rows):
        inverse[..., i, :i] = -(A[..., i : i + 1, :i].clone() @ inverse[..., :i, :i].clone())[..., 0, :]
    inverse = changed(inverse, "the inverse", f)
    u = changed(inverse @ (v if f == "beta missing in u" else beta * v), "u", f)
    w = changed(inverse @ ((k if f == "beta missing in w" else beta * k) * in_w.exp()), "w", f)
    if f == "u is rounded to bfloat16":
        u = u.bfloat16().float()
    if f == "product in TF32":
        u = inverse @ (beta * tf32(v))
    scores = changed(pairs(q, in_scores, k), "Q D Kᵀ", f) * torch.ones(C, C).tril(
        -1 if f == "scores exclude the token itself" else 0
    )
    if f == "scores include the next token":
        scores = scores + torch.ones(C, C).triu(1).tril(1) * (q @ k.mT)
    outputs, starts = list[Tensor](), [S]
    out_of = (G[..., -1:, :] - G).exp()
    short = T % C
    for n in range(q.shape[2]):
        final = n == q.shape[2] - 1
        carried = torch.zeros_like(S) if f == "no carry between chunks" and n else S
        carried = torch.zeros_like(S) if f == "no carry after the first border" and n > 1 else carried
        new = u[:, :, n] - w[:, :, n] @ (tf32(carried) if f == "state product in TF32" else carried)
        new, carried = changed(new, "new values", f), changed(carried, "carried state", f)
        if f == "the state is rounded to bfloat16 between chunks":
            carried = carried.bfloat16().float()
        across = (q[:, :, n] * into[:, :, n].exp()) @ carried
        within = scores[:, :, n] @ new
        outputs.append(across + within * (2 if f == "full chunks count twice" and not (final and short) else 1))
        decay = total[:, :, n, -1]
        if f == "the last decay is that of an empty slot" and final and short:
            decay = torch.zeros_like(decay)
        if f == "the state decays by the last but one":
            decay = total[:, :, n, -2]
        update = (k[:, :, n] * out_of[:, :, n]).mT @ new
        if f == "an update is lost in a race" and torch.rand(()) < 0.25:
            update = torch.zeros_like(update)
        S = carried * decay.exp()[..., None] + update
        starts.append(S)
    S = starts[-2] if f == "the final state is that before the last chunk" else S
    S = S.roll(1, 1) if f == "final states of heads are rotated" else S
    S = changed(S, "final state", f)
    o = torch.cat(outputs, 2)[:, :, :T].transpose(1, 2)
    if f == "the first token of each chunk is not written":
        o = o * (torch.arange(T) % C != 0)[:, None, None] if T > C else o
    return o, S


def delta_steps(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor, state: Tensor | None, fault: str
) -> tuple[Tensor, Tensor]:
    """Return outputs and final state of the gated delta rule token by token."""
    f, outputs = fault, list[Tensor]()
    shape = (q.shape[0], q.shape[2], k.shape[-1], v.shape[-1])
    S = q.new_zeros(shape) if state is None else state.float()
    if f == "one token is a decode step with a stale state" and q.shape[1] == 1 and state is None:
        S = _stale.get(shape, S)
    for t in range(q.shape[1]):
        kt, b, decay = k[:, t], beta[:, t, :, None], g[:, t].exp()[..., None]
        if f == "the gate acts after the write":
            S = S + kt[..., None] * (b * (v[:, t] - (kt[..., None] * S).sum(-2)))[..., None, :]
            S = S * decay
        else:
            old = S
            S = S * decay
            read = (kt[..., None] * (old if f == "the erased value is not decayed" else S)).sum(-2)
            S = S + kt[..., None] * (b * (v[:, t] - read))[..., None, :]
        if f == "the state is kept in bfloat16":
            S = S.bfloat16().float()
        outputs.append((q[:, t, ..., None] * (old if f == "the output reads the old state" else S)).sum(-2))  # type: ignore
    _stale[shape] = S.detach()
    return torch.stack(outputs, 1), S


def _early(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor, fault: str) -> list[Tensor]:
    """Apply the faults that change arguments alone."""
    tensors = [t.float() for t in (q, k, v, beta, g)]
    q, k, v, beta, g = tensors
    if fault == "beta has the wrong sign":
        beta = -beta
    if fault in ("gates act one token late", "gates act one token early"):
        g = shifted(g, 1 if fault.endswith("late") else -1)
    if fault == "gates have the wrong sign":
        g = -g
    if fault == "exp2 in place of exp":
        g = g * 0.6931471805599453
    if fault == "heads read the gate of head 0":
        g = g[:, :, :1].expand_as(g)
    if fault == "gradient of beta is missing":
        beta = beta.detach() + 0 * beta
    if fault == "gradient of the key in the erased value is missing":
        k = k.detach() + 0.5 * (k - k.detach())
    return [q, k, v, beta, g]


def gated_delta(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, scale: float, initial_state: Tensor | None = None,
    output_final_state: bool = False, cu_seqlens: Tensor | None = None, *, core: Any = delta_chunks, fault: str = "",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute the gated delta rule (gates per head) or KDA (gates per channel) by a core."""
    assert output_final_state
    tensors = _early(q, k, v, beta, g if g.dim() == 4 else g[..., None], fault)
    o, S = packed(partial(core, fault=fault), fault, cu_seqlens, tensors, initial_state)
    scale = scale**2 if fault == "the scale is applied twice" else scale
    return (o * scale).to(v.dtype), S


def own_backward(
    *tensors: Tensor, scale: float, initial_state: Tensor | None = None, output_final_state: bool = False,
    cu_seqlens: Tensor | None = None, fault: str = "",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute the chunked gated delta rule or KDA with a fault in the forward pass and a correct backward pass."""
    run = partial(
        gated_delta, *tensors, scale=scale, initial_state=initial_state, output_final_state=output_final_state,
        cu_seqlens=cu_seqlens,
    )  # fmt: skip
    with torch.no_grad():
        values = run(fault=fault)
    if not any(t.requires_grad for t in tensors):
        return values
    o, S = (_Value.apply(*pair) for pair in zip(values, run(), strict=True))
    return o, S  # pyright: ignore[reportReturnType]


def delta_product(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, num_householder: int, scale: float,
    initial_state: Tensor | None = None, output_final_state: bool = False, cu_seqlens: Tensor | None = None,
    *, fault: str = "",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute DeltaProduct as a delta rule of n steps per token."""
    n, wide = num_householder, torch.zeros_like(k, dtype=torch.float32)
    queries, gates = wide.clone(), torch.zeros_like(beta, dtype=torch.float32)
    queries[:, (0 if fault == "the query reads after the first factor" else n - 1) :: n] = q.float()
    gates[:, (n - 1 if fault == "the gate acts before the last factor" else 0) :: n] = g.float()
    if fault == "the gate acts in every factor but the first":
        gates = g.float().repeat_interleave(n, 1)
        gates[:, ::n] = 0
    if fault == "factors are applied in reverse":
        k, v, beta = (t.reshape(t.shape[0], -1, n, *t.shape[2:]).flip(2).reshape(t.shape) for t in (k, v, beta))
    if cu_seqlens is not None and fault != "cu_seqlens is not multiplied by n":
        cu_seqlens = cu_seqlens * n
    o, S = gated_delta(queries, k, v, gates, beta, scale, initial_state, output_final_state, cu_seqlens, fault=fault)
    return o[:, n - 1 :: n] if fault != "the query reads after the first factor" else o[:, ::n], S


def ssd(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float, initial_state: Tensor | None = None,
    output_final_state: bool = False, cu_seqlens: Tensor | None = None, *, fault: str = "",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute simple gated linear attention in chunks: local states, state passing, outputs."""
    assert output_final_state

    def run(q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        f, T, C = fault, q.shape[1], CHUNK
        q, k, v, g = (chunk(t, C) for t in (q, k, v, g))
        G = g.cumsum(-2)
        ends = G[..., -1:, :]
        G_in = G - g if f == "decay to the end of a chunk is inclusive" else G
        local = (k * (ends - G_in).clamp(max=0).exp()).mT @ v
        S = local.new_zeros(local[:, :, 0].shape) if state is None else state.float()
        if f == "the initial state enters without its decay":
            S = S * 1.0
        starts = list[Tensor]()
        for n in range(local.shape[2]):
            starts.append(S)
            decay = ends[:, :, n].exp()
            if f == "the initial state enters without its decay" and n == 0:
                decay = torch.ones_like(decay)
            S = (S * decay if f != "states are passed on without decay" else S) + local[:, :, n]
        start = torch.stack(starts, 2)
        if f == "outputs read the state after their chunk":
            start = torch.cat([start[:, :, 1:], S[:, :, None]], 2)
        lower = torch.ones(C, C, dtype=torch.bool).tril()
        D = (G - G.mT).masked_fill(~lower, 0).exp() * lower
        if f == "segment sums include the earlier token":
            D = ((G - (G - g).mT).masked_fill(~lower, 0)).exp() * lower
        scores = (tf32(q) @ tf32(k).mT if f == "scores in TF32" else q @ k.mT) * D
        across = (q * (1 if f == "queries lack the decay" else G.exp())) @ start
        o = (scores @ v + across).flatten(2, 3)[:, :, :T].transpose(1, 2)
        return o, S

    tensors = [q.float(), k.float(), v.float(), g.float()[..., None]]
    if fault == "gates act one token late":
        tensors[3] = shifted(tensors[3], 1)
    if fault == "exp2 in place of exp":
        tensors[3] = tensors[3] * 0.6931471805599453
    o, S = packed(run, fault, cu_seqlens, tensors, None if fault == "the initial state is dropped" else initial_state)
    return (o * scale).to(v.dtype), S


def rwkv7(
    r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, scale: float, initial_state: Tensor | None = None,
    output_final_state: bool = False, cu_seqlens: Tensor | None = None, *, fault: str = "",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute RWKV-7 token by token."""
    assert output_final_state

    def run(r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, state: Tensor | None) -> Any:
        f, outputs = fault, list[Tensor]()
        S = r.new_zeros(r.shape[0], r.shape[2], r.shape[-1], v.shape[-1]) if state is None else state.float()
        if f == "the initial state is transposed":
            S = S.mT
        for t in range(r.shape[1]):
            decayed = S * w[:, t].exp()[..., None]
            if f == "the decay acts on value columns":
                decayed = S * w[:, t].exp()[..., None, :]
            read = (a[:, t, ..., None] * (decayed if f == "a reads the decayed state" else S)).sum(-2)
            left = a if f == "a and b are swapped" else b
            if f == "a and b are swapped":
                read = (b[:, t, ..., None] * S).sum(-2)
            S = decayed + left[:, t, ..., None] * read[..., None, :] + k[:, t, ..., None] * v[:, t, ..., None, :]
            if f == "the state is kept in float16":
                S = S.half().float()
            outputs.append((r[:, t, ..., None] * S).sum(-2))
        return torch.stack(outputs, 1), S

    tensors = [t.float() for t in (r, w, k, v, a, b)]
    if fault == "gates act one token early":
        tensors[1] = shifted(tensors[1], -1)
    o, S = packed(run, fault, cu_seqlens, tensors, initial_state)
    return (o * scale).to(v.dtype), S


def diagonal(
    a: Tensor, v: Tensor, initial_state: Tensor | None = None, output_final_state: bool = False,
    cu_seqlens: Tensor | None = None, *, fault: str = "",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute x ← a x + v by doubling in blocks of 64, with a carry between blocks."""
    assert output_final_state

    def run(a: Tensor, v: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        f, T = fault, a.shape[1]
        A, z = chunk(a, CHUNK), chunk(v, CHUNK)
        if f == "padding decays the state":
            pass
        else:
            A = torch.cat([A.flatten(2, 3)[:, :, :T], A.new_ones(*A.shape[:2], A.shape[2] * CHUNK - T, A.shape[4])], 2)
            A = A.reshape(z.shape)
        span = 1
        while span < (CHUNK // 2 if f == "doubling stops one level early" else CHUNK):
            moved = A[..., span:, :] * z[..., :-span, :]
            z = torch.cat([z[..., :span, :], z[..., span:, :] + moved], -2)
            A = torch.cat([A[..., :span, :], A[..., span:, :] * A[..., :-span, :]], -2)
            span *= 2
        x = z.new_zeros(z.shape[0], z.shape[1], z.shape[4]) if state is None else state.float()
        out = list[Tensor]()
        for n in range(z.shape[2]):
            decay = A[:, :, n].abs() if f == "the carry loses the sign of a" else A[:, :, n]
            states = z[:, :, n] + (0 if f == "no carry between blocks" and n else 1) * decay * x[..., None, :]
            out.append(states)
            x = states[..., -2 if f == "the carry is that before the last token" else -1, :]
        states = torch.cat(out, 2)[:, :, :T].transpose(1, 2)
        return states, states[:, -1] if f != "padding decays the state" else x

    o, S = packed(run, fault, cu_seqlens, [a.float(), v.float()], initial_state)
    return o.to(v.dtype), S


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor, activation: None = None, initial_state: Tensor | None = None,
    output_final_state: bool = False, cu_seqlens: Tensor | None = None, *, fault: str = "",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute a causal convolution of width 4 with a state of the last 4 inputs."""
    assert output_final_state
    assert activation is None

    def run(x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        f, W, T = fault, weight.shape[1], x.shape[1]
        S = x.new_zeros(x.shape[0], x.shape[2], W) if state is None else state.float()
        if f == "the state of a padding slot overwrites a sequence":
            S = S.roll(1, 0)
        if f == "short inputs drop the initial state" and T < W - 1:
            S = torch.zeros_like(S)
        if f == "the gradient of short inputs is shifted" and T < W - 1:
            S = S.detach() + (S - S.detach()).roll(1, -1)
        u = torch.cat([S, x.transpose(1, 2)], -1)
        taps = weight.float().flip(1) if f == "taps are reversed" else weight.float()
        windows = u.unfold(-1, W, 1)[..., : -1 if f == "the window ends before the token" else None, :]
        o = (windows * taps[:, None]).sum(-1)[..., -T:] + (0 if f == "bias is dropped" else bias.float()[:, None])
        final = u[..., -W - 1 : -1] if f == "the final state is one token late" else u[..., -W:]
        return o.transpose(1, 2), final

    o, S = packed(run, fault, cu_seqlens, [x.float()], initial_state)
    return o.to(x.dtype), S
