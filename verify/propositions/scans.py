"""The parallel scan: equality with the sequential one at every length, its schedule, and its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from fsa2lrnn.nn.layers import index
from fsa2lrnn.nn.scans import METHODS, pscan, sequential
from fsa2lrnn.nn.scans.cpu import schedule, spt
from verify.free import Word, depths_of, words_of
from verify.propositions.registry import Answer, Effort, Proposition, Proved, Refuted, Tested, Undecided, refuted

LONGEST = 130
_SIZES = ((1, 1), (1, 3), (2, 2), (8, 8))  # (H, b)
_SECTION = "the paper, Efficient Implementation via Parallel Scan"
_APPENDIX = "the paper, appendix, Code for PScan"
_EXAMPLE = [  # the printed schedule of the paper's appendix
    [["A1"], ["A3"], ["A5"], ["A7"]],
    [["A2", "A3A2"], ["A6", "A7A6"]],
    [["A4", "A5A4", "A6A5A4", "A7A6A5A4"]],
]

Scan = Callable[..., Any]  # of tensors, or of ring tensors


def equal_over_every_ring(effort: Effort, scan: Scan = pscan, reference: Scan = sequential) -> Answer:
    """Compare the scan's own code with the sequential one on distinct non-commuting letters, at every length."""
    wanted = reference(*words_of(LONGEST)).entries.flatten().tolist()
    for length in effort.track(range(LONGEST + 1)):
        given = scan(*words_of(length)).entries.flatten().tolist()
        if len(given) != length:
            return refuted(f"{len(given)} states at T = {length}", T=length)
        for k, (x, y) in enumerate(zip(given, wanted[:length], strict=True), start=1):
            if x != y:
                return refuted(f"at T = {length}, x_{k} = {_short(x)} instead of {_short(y)}", T=length, k=k)
    how = (
        f"both scans run over the free ring on distinct letters A_k, v_k, x_0 at every T = 0 … {LONGEST}; by "
        "substitution the same holds for all matrices over any ring"
    )
    return Proved(how, LONGEST + 1)


def equal_in_floats(effort: Effort, methods: Mapping[str, Scan] = METHODS) -> Answer:
    """Compare every method with the sequential one in float64, on integers that cannot round, at every length."""
    generator = torch.Generator().manual_seed(effort.seed)
    lengths = range((LONGEST if effort.examples < 1_000 else 4 * LONGEST) + 1)
    others = {name: method for name, method in methods.items() if name != "sequential"}
    for length in effort.track(lengths):
        A, v, x0 = signed_permutations(2, length, 2, 4, generator)
        wanted = sequential(A, v, x0)
        for name, method in others.items():
            if not torch.equal(method(A, v, x0), wanted):
                return refuted(f"{name} differs from sequential at T = {length}", T=length, method=name)
    how = (
        f"{', '.join(others)} bit for bit as sequential, at every T = {lengths[0]} … {lengths[-1]}, on random signed "
        "permutations and integers"
    )
    return Tested(how, len(lengths) * len(others), effort.seed)


def equal_on_index_tables(effort: Effort, methods: Mapping[str, Scan] = index.METHODS) -> Answer:
    """Compare the scans that compose maps instead of one-hot matrices."""
    generator = torch.Generator().manual_seed(effort.seed)
    others = {name: method for name, method in methods.items() if name != "sequential"}
    for length in effort.track(range(LONGEST + 1)):
        table = torch.randint(7, (4, 7), generator=generator)  # (C, n)
        cells, start = torch.randint(4, (3, length), generator=generator), torch.randint(7, (3,), generator=generator)
        wanted = index.sequential(table, cells, start)
        for name, method in others.items():
            if not torch.equal(method(table, cells, start), wanted):
                return refuted(f"{name} differs from sequential at T = {length}", T=length, method=name)
    how = f"{', '.join(others)} as sequential on random maps, at every T = 0 … {LONGEST}"
    return Tested(how, (LONGEST + 1) * len(others), effort.seed)


def signed_permutations(
    batch: int, length: int, heads: int, b: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Return A (B,T,H,b,b) with one ±1 per column, v (B,T,H,b) and x₀ (B,H,b) of integers in −4 … 4; float64.

    The matrices do not commute, and their products have one ±1 per column again, so that every sum is a small integer.
    """
    shape = (batch, length, heads)
    places = torch.rand(*shape, b, b, generator=generator).argsort(-1)
    signs = 2 * torch.randint(2, (*shape, 1, b), generator=generator) - 1
    A = (torch.eye(b, dtype=torch.int64)[places[..., 0, :]].transpose(-1, -2) * signs).double()
    v = torch.randint(-4, 5, (*shape, b), generator=generator).double()
    return A, v, torch.randint(-4, 5, (batch, heads, b), generator=generator).double()


def schedule_is_as_printed(
    effort: Effort,
    names: Callable[[int], list[list[list[str]]]] = schedule,
    round_of: Callable[[Any], tuple[Any, Any]] = spt,
) -> Answer:
    """Compare the names from `schedule` and the products of each round with the closed form, for lengths 2^k − 1."""
    if names(7) != _EXAMPLE:
        return refuted(f"the schedule for length 7 is {names(7)}, the paper prints {_EXAMPLE}", T=7)
    cases, largest = 0, 9 if effort.examples < 1_000 else 11
    for k in effort.track(range(1, largest + 1)):
        length = 2**k - 1
        printed, products = names(length), words_of(length)[0].unsqueeze(2)
        for r in range(k):
            wanted = [[_product(s + j, s) for j in range(2**r)] for s in range(2**r, length + 1, 2 ** (r + 1))]
            used, products = round_of(products)
            given = used.entries[0, :, :, 0, 0, 0].tolist()
            if r >= len(printed) or [[repr(x) for x in group] for group in wanted] != printed[r] or given != wanted:
                return refuted(f"round {r + 1} of T = {length} differs from A_{{s+j}} ⋯ A_s, s = 2^r(2g + 1)", T=length)
            cases += length // 2 + 1
    how = f"all products of all rounds for T = 2^k − 1, k = 1 … {largest}, by name and as computed over the free ring"
    return Proved(how, cases)


def depth_is_logarithmic(effort: Effort, scan: Scan = pscan, reference: Scan = sequential) -> Answer:
    """Count the longest chain of multiplications by running the scan on depths."""
    if (deepest := int(reference(*depths_of(LONGEST)).entries.max())) != LONGEST:
        return refuted(f"at T = {LONGEST} the sequential scan has depth {deepest}, not T", T=LONGEST)
    for length in effort.track(range(1, LONGEST + 1)):
        deepest, wanted = int(scan(*depths_of(length)).entries.max()), length.bit_length()
        if deepest != wanted:
            return refuted(f"at T = {length} a state waits for {deepest} multiplications, not {wanted}", T=length)
    how = f"counted at every T = 1 … {LONGEST} by running the scan on depths; the sequential scan has depth T"
    return Proved(how, LONGEST)


def work_is_counted(effort: Effort, scan: Scan = pscan) -> Answer:
    """Compare the number of scalar multiplications in torch with the closed form."""
    few = [(length, n_heads, b) for length in (1, 2, 3, 7, 8, 31, 64) for n_heads, b in _SIZES]
    cases = [(length, 2, 3) for length in range(1, LONGEST + 1)] + few
    for length, n_heads, b in effort.track(cases):
        if (given := multiplications(scan, length, n_heads, b)) != (wanted := pscan_work(length, n_heads, b)):
            witness = f"T = {length}, H = {n_heads}, b = {b}: {given:,} multiplications, not {wanted:,}"
            return refuted(witness, T=length, H=n_heads, b=b, counted=given, formula=wanted)
    for length, n_heads, b in few:
        if (given := multiplications(sequential, length, n_heads, b)) != length * n_heads * b**2:
            return refuted(f"the sequential scan takes {given:,} multiplications at T = {length}, not T·H·b²")
    how = (
        f"counted by torch at every T = 1 … {LONGEST} for (H, b) = (2, 3), and at seven lengths for (H, b) in {_SIZES}"
    )
    return Proved(how, len(cases) + len(few))


def work_is_cubic_times_logarithm(effort: Effort, scan: Scan = pscan) -> Answer:
    """Compare the work with the paper's O(b³ h log T) at lengths that double."""
    n_heads = b = 8
    ratios = {
        length: multiplications(scan, length, n_heads, b) / (b**3 * n_heads * length.bit_length())
        for length in effort.track([2**k - 1 for k in range(3, 11)])
    }
    first, last = min(ratios), max(ratios)
    if ratios[last] <= 4 * ratios[first]:
        return Undecided(f"lengths up to {last}, where the ratio to b³ h log₂T stays below {max(ratios.values()):.1f}")
    witness = (
        f"counted multiplications are {ratios[first]:.1f}·b³h·log₂(T+1) at T = {first} and "
        f"{ratios[last]:.1f}·b³h·log₂(T+1) at T = {last} (b = h = 8): no constant bounds the factor"
    )
    return refuted(witness, ratios=ratios, b=b, h=n_heads)


def work_is_quadratic_in_b(effort: Effort, scan: Scan = pscan) -> Answer:
    """Check that with b·h fixed, work = αb² + βb: α and β from b = 1, 2, compared at 4, 8, 16."""
    cases = 0
    for length in effort.track([2**k - 1 for k in range(2, 9)]):
        one, two = (multiplications(scan, length, 16 // b, b) for b in (1, 2))
        alpha, beta = (two - 2 * one) / 2, (4 * one - two) / 2
        for b in (4, 8, 16):
            given, cases = multiplications(scan, length, 16 // b, b), cases + 1
            if given != alpha * b**2 + beta * b:
                return refuted(f"at T = {length} and b = {b}: {given} is not {alpha}·b² + {beta}·b", T=length, b=b)
    return Proved("counted with b·h = 16 at b = 1, 2, 4, 8, 16 and T = 3 … 255: αb² + βb, with β of its own", cases)


def multiplications(scan: Scan, length: int, n_heads: int, b: int) -> int:
    """Return the scalar multiplications in the matrix products of one call, as torch counts them.

    Torch counts each as two operations.
    """
    A, v, x0 = torch.zeros(1, length, n_heads, b, b), torch.zeros(1, length, n_heads, b), torch.zeros(1, n_heads, b)
    with FlopCounterMode(display=False) as counter:
        scan(A, v, x0)
    return counter.get_total_flops() // 2


def pscan_work(length: int, n_heads: int, b: int) -> int:
    """Return H·((kL/2 − L + 1)·b³ + (kL/2)·b²) with L = 2^k ≥ T + 1: matrix products, then products with a state.

    The leading term is (T/2)·log₂T·H·b³.

    >>> pscan_work(7, 1, 3) == 5 * 27 + 12 * 9
    True
    """
    k = length.bit_length()
    half = k * 2 ** (k - 1)
    return n_heads * ((half - 2**k + 1) * b**3 + half * b**2)


def _product(last: int, first: int) -> Word:
    product = Word.letter("A", last)
    for k in range(last - 1, first - 1, -1):
        product = product * Word.letter("A", k)
    return product


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


PROPOSITIONS = (
    Proposition(
        "pscan-any-ring",
        f"PScan computes what Sequential computes, for every length T = 0 … {LONGEST} and all matrices.",
        "exact arithmetic",
        f"{_APPENDIX}; docs/theory.md, T10",
        equal_over_every_ring,
        Proved,
    ),
    Proposition(
        "pscan-floats",
        f"Every scan offered gives the bits that Sequential gives, for every length T = 0 … {LONGEST}.",
        "float64, and inputs on which no sum rounds",
        f"{_APPENDIX}; docs/theory.md, T10",
        equal_in_floats,
        Tested,
    ),
    Proposition(
        "pscan-index",
        "Composing maps in parallel gives the states that following them one by one gives.",
        f"index tables (one-hot columns), T = 0 … {LONGEST}",
        "docs/theory.md, T1 and T10",
        equal_on_index_tables,
        Tested,
    ),
    Proposition(
        "spt-schedule",
        "For T = 2^k − 1 round r of `spt` hands out A_{s+j} ⋯ A_s, j < 2^r, for every s = 2^r(2g + 1); for T = 7 that "
        "is what the paper prints.",
        "k as large as stated",
        _APPENDIX,
        schedule_is_as_printed,
        Proved,
    ),
    Proposition(
        "pscan-depth",
        "PScan takes ⌈log₂(T + 1)⌉ steps, a step being one multiplication of blocks at every place.",
        "x₀ takes a place of its own: the paper's L is T + 1",
        _SECTION,
        depth_is_logarithmic,
        Proved,
    ),
    Proposition(
        "pscan-work",
        "PScan performs H·((kL/2 − L + 1)·b³ + (kL/2)·b²) multiplications, L = 2^k = the least power of two above T, "
        "and Sequential T·H·b².",
        "multiplications by padding are counted, as they are carried out",
        "docs/theory.md, §7",
        work_is_counted,
        Proved,
    ),
    Proposition(
        "pscan-complexity",
        "The computational complexity of PScan is O(b³ h log T).",
        "complexity is the number of operations",
        _SECTION,
        work_is_cubic_times_logarithm,
        Refuted,
        instead="b³ h log₂T is the number of steps (pscan-depth) times the cost of one place; the operations number "
        "about (T/2)·log₂T·h·b³ (exactly: pscan-work)",
    ),
    Proposition(
        "pscan-quadratic",
        "With b·h fixed, the work of PScan is quadratic in b.",
        "T fixed",
        _SECTION,
        work_is_quadratic_in_b,
        Proved,
    ),
)
