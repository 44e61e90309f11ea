# pyright: basic, reportAssignmentType=false, reportGeneralTypeIssues=false, reportArgumentType=false
"""Triton kernels of the scan x_k = A_k x_{k-1} + v_k and of its gradient, for one GPU.

The gradient is computed by the reversed recurrence: with g_k = ∂L/∂x_k + A_{k+1}ᵀ g_{k+1} it is dA_k = g_k x_{k-1}ᵀ,
dv_k = g_k and dx_0 = A_1ᵀ g_1. A program computes one chunk of one word and head and keeps the state in registers, in
STATE precision.

- Position of A_k: row n·T + t of A for word n and step t; with tokens, row tokens[n, t].
- Blocks: P is b rounded up to a power of two; rows and columns from b on are masked.
- Orientation: a product A x takes x along one axis of the tile of A and leaves A x along the other. If every second
  step loads its tile transposed, each step has its factor on the axis where the previous step left it, and no data
  moves between registers. So loops do two steps per iteration. The second step of the last iteration may lie outside;
  it is masked, not branched around, so that all data independent of the state can be loaded STAGES iterations ahead.

All tensors are contiguous. Offsets are 64 bits wide: A may have more than 2³¹ entries.
"""

from __future__ import annotations

try:
    import triton
    import triton.language as tl

    jit = triton.jit
except ImportError:  # then the kernels cannot run: `scans` raises an error before it uses them

    def jit(kernel):
        return kernel


@jit
def _row(tokens, place, is_inside):
    return tl.load(tokens + place, mask=is_inside, other=0) if tokens is not None else place


@jit
def _entries(i, b, is_inside):
    return i < tl.where(is_inside, b, 0)


@jit
def _tile(i, b, is_inside):
    return _entries(i, b, is_inside)[:, None] & _entries(i, b, is_inside)[None, :]


@jit
def forward(
    tokens, A, v, x0, ends, x, T, H, size, n_chunks,
    b: tl.constexpr, P: tl.constexpr, STATE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the states x (B,T,H,b) of the scan.

    Program (n·H + h, c) computes chunk c of word n and head h, from x0[n, h], or if c > 0 from ends[n, c − 1, h].
    """
    n, h, chunk = (tl.program_id(0) // H).to(tl.int64), tl.program_id(0) % H, tl.program_id(1)
    first = chunk * size
    last = tl.minimum(first + size, T)
    i = tl.arange(0, P)
    inside = i < b
    tile = inside[:, None] & inside[None, :]
    # Offsets of the entries of a block: row by row, and with the axes of the tile exchanged.
    straight, turned = i[:, None] * b + i[None, :], i[None, :] * b + i[:, None]
    # `ends` has n_chunks − 1 places per word: place c − 1 holds the start of chunk c.
    before = (n * (n_chunks - 1) + chunk - 1) * H + h
    # Exactly one of the two loads is unmasked, and the other gives zeros.
    state = tl.load(x0 + (n * H + h) * b + i, mask=_entries(i, b, chunk == 0), other=0.0).to(STATE)
    state += tl.load(ends + before * b + i, mask=_entries(i, b, chunk > 0), other=0.0).to(STATE)
    for step in tl.range(0, last - first, 2, num_stages=STAGES):
        # The first of two steps reads A_k straight, the second transposed: no data moves between registers.
        t = first + step
        row = _row(tokens, n * T + t, t < last) * H + h
        A_k = tl.load(A + row * b * b + straight, mask=tile, other=0.0).to(STATE)
        v_k = tl.load(v + row * b + i, mask=inside, other=0.0).to(STATE)
        # x lies along axis 1 of the tile; the sum leaves the new state along axis 0.
        half_way = tl.sum(A_k * state[None, :], 1) + v_k
        tl.store(x + ((n * T + t) * H + h) * b + i, half_way, mask=inside)
        t = first + step + 1
        row = _row(tokens, n * T + t, t < last) * H + h
        A_k = tl.load(A + row * b * b + turned, mask=_tile(i, b, t < last), other=0.0).to(STATE)
        v_k = tl.load(v + row * b + i, mask=_entries(i, b, t < last), other=0.0).to(STATE)
        # The transposed tile takes the state along axis 0 and returns it along axis 1, where the next iteration
        # expects it.
        state = tl.sum(A_k * half_way[:, None], 0) + v_k
        tl.store(x + ((n * T + t) * H + h) * b + i, state, mask=_entries(i, b, t < last))


@jit
def backward(
    tokens, A, x0, x, dx, ends, dA, g, dx0, T, H, size, n_chunks,
    b: tl.constexpr, P: tl.constexpr, STATE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the gradients g = dv (B,T,H,b), dx0 (B,H,b) and, unless it is None, dA (B,T,H,b,b) of the scan.

    Program (n·H + h, c) computes chunk c of word n and head h; chunks count from the word's end, and chunk c > 0 starts
    from ends[n, c − 1, h].
    """
    n, h, chunk = (tl.program_id(0) // H).to(tl.int64), tl.program_id(0) % H, tl.program_id(1)
    first = (n_chunks - 1 - chunk) * size
    last = tl.minimum(first + size, T)
    i = tl.arange(0, P)
    inside = i < b
    tile = inside[:, None] & inside[None, :]
    straight, turned = i[:, None] * b + i[None, :], i[None, :] * b + i[:, None]
    start = tl.load(x0 + (n * H + h) * b + i, mask=inside, other=0.0).to(STATE)
    after = (n * (n_chunks - 1) + chunk - 1) * H + h
    carried = tl.load(ends + after * b + i, mask=_entries(i, b, chunk > 0), other=0.0).to(STATE)
    # Defined before the loop because a kernel's variables must exist on every path to the last line.
    half_way = carried
    for step in tl.range(0, last - first, 2, num_stages=STAGES):
        # As in `forward`, the first of two steps reads A_k straight and the second transposed.
        t = last - 1 - step
        place = (n * T + t) * H + h
        row = _row(tokens, n * T + t, t >= first) * H + h
        g_k = carried + tl.load(dx + place * b + i, mask=inside, other=0.0).to(STATE)
        tl.store(g + place * b + i, g_k, mask=inside)
        if dA is not None:
            x_k = tl.load(x + (place - H) * b + i, mask=_entries(i, b, t > 0), other=0.0).to(STATE)
            x_k = tl.where(t > 0, x_k, start)
            tl.store(dA + place * b * b + straight, g_k[:, None] * x_k[None, :], mask=tile)
        A_k = tl.load(A + row * b * b + straight, mask=tile, other=0.0).to(STATE)
        half_way = tl.sum(A_k * g_k[:, None], 0)
        t = last - 2 - step
        place = (n * T + t) * H + h
        row = _row(tokens, n * T + t, t >= first) * H + h
        g_k = half_way + tl.load(dx + place * b + i, mask=_entries(i, b, t >= first), other=0.0).to(STATE)
        tl.store(g + place * b + i, g_k, mask=_entries(i, b, t >= first))
        if dA is not None:
            x_k = tl.load(x + (place - H) * b + i, mask=_entries(i, b, (t > 0) & (t >= first)), other=0.0).to(STATE)
            x_k = tl.where(t > 0, x_k, start)
            tl.store(dA + place * b * b + turned, x_k[:, None] * g_k[None, :], mask=_tile(i, b, t >= first))
        A_k = tl.load(A + row * b * b + turned, mask=_tile(i, b, t >= first), other=0.0).to(STATE)
        carried = tl.sum(A_k * g_k[None, :], 1)
    # After an odd number of steps the gradient of x_0 is the result of a first step; the masked second one gave
    # zeros.
    is_odd = (last - first) % 2 == 1
    tl.store(dx0 + (n * H + h) * b + i, tl.where(is_odd, half_way, carried), mask=_entries(i, b, first == 0))


@jit
def compose(
    tokens, A, u, products, offsets, T, H, size, n_chunks,
    b: tl.constexpr, P: tl.constexpr, STATE: tl.constexpr, REVERSED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the map z ↦ M z + q of each chunk but the last: products (B,n_chunks−1,H,b,b), offsets (B,n_chunks−1,H,b).

    A step is z ↦ A_k z + v_k with u = v. If REVERSED, it is z ↦ A_kᵀ (z + ∂L/∂x_k) with u = ∂L/∂x, and chunks and
    steps count from the word's end. Program (n·H + h, c) computes chunk c of word n and head h.
    """
    n, h, chunk = (tl.program_id(0) // H).to(tl.int64), tl.program_id(0) % H, tl.program_id(1)
    first = (n_chunks - 1 - chunk) * size if REVERSED else chunk * size
    last = tl.minimum(first + size, T)
    i = tl.arange(0, P)
    inside = i < b
    tile = inside[:, None] & inside[None, :]
    M = tl.where(tile & (i[:, None] == i[None, :]), 1.0, 0.0).to(STATE)
    q = tl.zeros([P], STATE)
    for step in tl.range(0, last - first, num_stages=STAGES):
        if REVERSED:
            t = last - 1 - step
            entry = i[None, :] * b + i[:, None]
        else:
            t = first + step
            entry = i[:, None] * b + i[None, :]
        row = _row(tokens, n * T + t, t < last) * H + h
        A_k = tl.load(A + row * b * b + entry, mask=tile, other=0.0).to(STATE)
        if REVERSED:
            # The gradient of x_k is added before the transposed transition is applied; in the forward direction v_k
            # comes after it.
            q += tl.load(u + ((n * T + t) * H + h) * b + i, mask=inside, other=0.0).to(STATE)
            q = tl.sum(A_k * q[None, :], 1)
        else:
            q = tl.sum(A_k * q[None, :], 1) + tl.load(u + row * b + i, mask=inside, other=0.0).to(STATE)
        M = tl.sum(M[None, :, :] * A_k[:, :, None], 1)  # the other way round Triton makes it a product of tf32
    place = (n * (n_chunks - 1) + chunk) * H + h
    tl.store(products + place * b * b + i[:, None] * b + i[None, :], M, mask=tile)
    tl.store(offsets + place * b + i, q, mask=inside)


@jit
def collect(
    order, bounds, g, x0, x, dA, dv, T, H, N, n_shares,
    b: tl.constexpr, P: tl.constexpr, STATE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the sums of g_k x_{k-1}ᵀ and g_k over the steps that read a row of the tables, in shares of these steps.

    `order` has the steps n·T + t sorted by the row they read; those of row r start at bounds[r]. The results are dA
    (n_shares,N,H,b,b) and dv (n_shares,N,H,b). Program (r·H + h, s) computes share s of row r and head h.
    """
    r, h, share = (tl.program_id(0) // H).to(tl.int64), tl.program_id(0) % H, tl.program_id(1)
    i = tl.arange(0, P)
    inside = i < b
    tile = inside[:, None] & inside[None, :]
    # Share s sums every n_shares-th step of the row, beginning with step s.
    first, last = tl.load(bounds + r) + share, tl.load(bounds + r + 1)
    sum_A, sum_v = tl.zeros([P, P], STATE), tl.zeros([P], STATE)
    for step in tl.range(0, tl.maximum(last - first, 0), n_shares, num_stages=STAGES):
        place = tl.load(order + first + step)
        is_start = place % T == 0
        g_k = tl.load(g + (place * H + h) * b + i, mask=inside, other=0.0)
        x_k = tl.load(x + ((place - 1) * H + h) * b + i, mask=_entries(i, b, ~is_start), other=0.0).to(STATE)
        x_k += tl.load(x0 + (place // T * H + h) * b + i, mask=_entries(i, b, is_start), other=0.0).to(STATE)
        sum_A += g_k[:, None] * x_k[None, :]
        sum_v += g_k
    cell = (share * N + r) * H + h
    tl.store(dA + cell * b * b + i[:, None] * b + i[None, :], sum_A, mask=tile)
    tl.store(dv + cell * b + i, sum_v, mask=inside)
