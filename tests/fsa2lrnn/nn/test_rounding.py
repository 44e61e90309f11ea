"""Bounds on what evaluations may differ by, against other shapes, orders and methods; gates and whether they round."""

import itertools
import math
import subprocess
import sys

import flint
import pytest
import torch

from fsa2lrnn import certify, check, compile_machine, extract, prove_equivalent, zoo
from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.gate import Gate, look_up
from fsa2lrnn.nn.normalise import normalise
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers, moments_fit
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.nn.zonotopes import Zonotopes
from fsa2lrnn.verification.modelled import reductions

CPU = torch.device("cpu")
PARITY = zoo.parity()


@pytest.fixture
def _restored():
    yield
    torch.backends.mkldnn.matmul.fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")


@pytest.mark.long_cases("high", "medium")
@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize("precision", ["high", "medium"])
def test_a_lower_precision_of_products_is_refused_by_every_judge(precision):
    model = compile_machine(PARITY)
    certificate = certify(model, PARITY)
    torch.set_float32_matmul_precision(precision)
    tables = switched(model)
    judges = (
        prove_equivalent, certify, lambda model, _: check(certificate, model), lambda model, _: extract(model),
        lambda _, machine: certify(tables, machine), lambda *_: check(certificate, tables),
    )  # fmt: skip
    for judge in judges:
        with pytest.raises(UnsupportedFormat, match=rf'set_float32_matmul_precision\(\'{precision}\'\) .*"highest"'):
            judge(model, PARITY)


@pytest.mark.usefixtures("_restored")
def test_the_setting_of_one_backend_and_of_a_gpu_are_seen():
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    assert any("mkldnn.matmul.fp32_precision = 'bf16'" in fault for fault in reductions(CPU))


def test_autocast_is_refused():
    model = compile_machine(PARITY)
    with torch.autocast("cpu"), pytest.raises(UnsupportedFormat, match="autocast is on for cpu"):
        prove_equivalent(model, PARITY)


@pytest.fixture
def flushing():
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor keeps small numbers whatever it is told")
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(False)


@pytest.mark.long
@pytest.mark.usefixtures("flushing")
def test_a_thread_that_still_takes_small_numbers_for_zero_is_seen():
    """Threads keep the setting that they began with, whatever the main thread is set to later."""
    code = (
        "import torch; from fsa2lrnn.verification.modelled import reductions; torch.set_num_threads(2); "
        "torch.set_flush_denormal(True); torch.ones(1 << 18) / 2; torch.set_flush_denormal(False); "
        "small = torch.full((1 << 18,), torch.finfo(torch.float32).tiny) / 2; "
        "print(bool(small[0] > 0), bool((small > 0).all()), len(reductions(torch.device('cpu'))))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    main_keeps, all_keep, faults = answer
    assert main_keeps == "True"
    assert (all_keep == "True") == (faults == "0")  # torch built with other threads may set them all


@pytest.mark.usefixtures("flushing")
def test_small_numbers_that_are_taken_for_zero_are_refused():
    """What is proved bit for bit of a state of 10⁻⁴⁵ is false where that is zero: two words get other outputs."""
    model = compile_machine(PARITY)
    with torch.no_grad():
        model.layers[0].x0[0, 0] = 1e-45
    assert prove_equivalent(model, PARITY).kind == "proved"
    assert model.transduce([PARITY.alphabet[1]]) == [True]
    torch.set_flush_denormal(True)
    assert model.transduce([PARITY.alphabet[1]]) == [False]
    for judge in (prove_equivalent, certify, lambda model, _: extract(model)):
        with pytest.raises(UnsupportedFormat, match=r"taken for zero.*torch\.set_flush_denormal\(False\)"):
            judge(model, PARITY)


@pytest.mark.parametrize("name", ["ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE", "MKL_BLAS_COMPUTE_MODE"])
def test_what_the_environment_asks_of_libraries_is_seen(monkeypatch, name):
    monkeypatch.setenv(name, "FLOAT_TO_BF16")
    assert [fault for fault in reductions(CPU) if name in fault]
    monkeypatch.setenv(name, "standard" if name.startswith("MKL") else "strict")
    assert not reductions(CPU)


def test_on_a_gpu_its_own_settings_count(monkeypatch):
    monkeypatch.setattr(torch.backends.cuda.matmul.__class__, "__getattr__", lambda *_: True)
    assert len(reductions(torch.device("cuda"))) == 3


DTYPES = [torch.float32, torch.float64]


def drawn(seed):
    return torch.Generator().manual_seed(seed)


def assert_within(found, bound, least_use=0.0):
    """Every entry lies within its bound; some use up at least a share of it, so that the bound is no fantasy."""
    off = (found.double() - bound.mid).abs()
    assert (off <= bound.off).all()
    if least_use:
        assert (off / bound.off.clamp(min=1e-300)).max() >= least_use


def by_order(z, W, b, order):
    """W z + b, one product after the other, in a given order: no matrix library."""
    total = torch.zeros(*z.shape[:-1], len(b), dtype=z.dtype)
    for i in order:
        total = total + b if i == len(W.T) else total + z[..., i, None] * W[:, i]
    return total


@pytest.mark.parametrize("weight", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gates_in_any_order_of_summation_stay_within(dtype, weight):
    gate = Gate(7, 40, 9).to(dtype)
    with torch.no_grad():
        for part in gate.weights:
            size = weight ** torch.rand(part.shape, generator=drawn(0))
            part.copy_(size * torch.randn(part.shape, generator=drawn(1)))
        gate.weights.W2[:, 20:] = -gate.weights.W2[:, :20]  # what the first half adds, the second takes away
        gate.weights.W1[20:], gate.weights.b1[20:] = gate.weights.W1[:20], gate.weights.b1[:20]
        gate.weights.b2.fill_(1)
    z = torch.randn(5, 7, generator=drawn(2), dtype=dtype)
    W1, b1, W2, b2 = gate.weights
    bound = gate.rounded(RoundedNumbers.exact(z))
    with torch.no_grad():
        for seed in range(20):
            inner, outer = torch.randperm(8, generator=drawn(seed)), torch.randperm(41, generator=drawn(seed))
            assert_within(by_order(by_order(z, W1, b1, inner).relu(), W2, b2, outer), bound)
        at_once = gate(z)
        assert_within(at_once, bound)
        # not 16 units in the last place of the largest output
        apart = (by_order(by_order(z, W1, b1, range(8)).relu(), W2, b2, range(40, -1, -1)) - at_once).abs()
        assert (apart.max() > 16 * torch.finfo(dtype).eps * at_once.abs().max()) or weight == 1
        assert apart.max() >= 1e-3 * bound.off.max()


def test_look_ups_have_no_sum_of_two_terms_and_are_exact():
    table = torch.randn(3, 4, generator=drawn(0))
    gate = Gate(3, 3, 4)
    gate.set(look_up(table))
    assert gate.rounded(RoundedNumbers.exact(torch.eye(3))).is_exact
    assert torch.equal(gate.rounded(RoundedNumbers.exact(torch.eye(3))).mid, table.double())
    with torch.no_grad():
        gate.weights.b2[0] = 0.5
    assert not gate.rounded(RoundedNumbers.exact(torch.eye(3))).is_exact
    integers = Gate(2, 3, 2)
    integers.set({name: torch.full_like(part, 3) for name, part in integers.weights._asdict().items()})
    assert integers.rounded(RoundedNumbers.exact(torch.ones(1, 2))).is_exact
    assert not integers.rounded(RoundedNumbers.exact(torch.full((1, 2), 0.1))).is_exact

    def gate(**changes):
        found = Gate(3, 3, 4)
        found.set({**look_up(torch.randn(3, 4)), **changes})
        return found

    assert gate().is_lookup(torch.eye(3))
    assert gate().is_lookup(torch.zeros(1, 3))
    assert not gate().is_lookup(torch.ones(1, 3))  # two inputs
    assert not gate(W1=torch.ones(3, 3)).is_lookup(torch.eye(3))  # two units
    for bias in ("b1", "b2"):
        assert not gate(**{bias: torch.ones(len(getattr(gate().weights, bias)))}).is_lookup(torch.eye(3))


def test_a_one_is_off_by_one_wherever_rounding_may_move_it():
    kind, everywhere = FloatFormat.of(torch.float32), torch.ones(3, 1, dtype=torch.bool)
    logits = torch.tensor([[5.0, 1.0, 2.0], [4.0, 1.0, 2.5], [0.0, 0.0, 2.5]], dtype=torch.float64)
    sure = RoundedNumbers(logits, torch.zeros(3, 3), kind).largest(everywhere)
    assert sure.mid.tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert sure.is_exact  # ties too, where every evaluation has the same numbers
    unsure = RoundedNumbers(logits, torch.full((3, 3), 0.25), kind).largest(everywhere)
    assert torch.equal(unsure.mid, sure.mid)
    assert unsure.off.tolist() == [[0, 1, 1], [0, 1, 1], [0, 0, 1]]  # 2.5 and 2 may be equal, 1 and 0 not
    padded = RoundedNumbers(logits, torch.full((3, 3), 0.25), kind).largest(torch.tensor([True, False, False])[:, None])
    assert padded.is_exact
    assert padded.mid.tolist() == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]
    unknown = RoundedNumbers(torch.zeros(3, 3), torch.full((3, 3), torch.inf), kind).largest(everywhere)
    assert unknown.off.eq(1).all()


def exact_columns(A, rule, p):
    """A column rule of one block in 300 bits: (b, b) -> (b, b)."""
    flint.ctx.prec = 300
    columns = [[flint.arb(x) for x in column] for column in A.double().T.tolist()]
    if rule == "paper":
        columns = [[x - sum(column, flint.arb(0)) / len(column) for x in column] for column in columns]
    powers = [sum((abs(x) ** flint.arb(p) for x in column if x != 0), flint.arb(0)) for column in columns]
    norms = [power ** (1 / flint.arb(p)) if power != 0 else flint.arb(0) for power in powers]
    if rule == "paper":
        norms = [max(norms, key=lambda x: float(x))] * len(norms)
    else:
        norms = [max(norm, flint.arb(1), key=lambda x: float(x)) for norm in norms]
    return torch.tensor([[float(x / n) for x in c] for c, n in zip(columns, norms, strict=True)], dtype=torch.float64).T


def blocks(b, dtype, n=300):
    """Blocks of all sizes, columns near norm 1 among them."""
    A = torch.randn(n, b, b, generator=drawn(b), dtype=torch.float64)
    A *= torch.logspace(-6, 6, n, dtype=torch.float64)[torch.randperm(n, generator=drawn(0)), None, None]
    A[::4] /= torch.linalg.vector_norm(A[::4], ord=1.2, dim=-2, keepdim=True)
    A[1::9] += 1000.0
    return A.to(dtype)


@pytest.mark.long_cases("dtype1-paper-1.0")
@pytest.mark.parametrize("p", [1.0, 1 + 2.0**-52, 1.2, 2.0, 7.5])
@pytest.mark.parametrize("rule", ["clip", "paper"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_either_method_of_the_column_rules_stays_within_and_so_does_the_truth(dtype, rule, p):
    for b in (2, 8):
        A = blocks(b, dtype)
        bound = RoundedNumbers.exact(A).columns(rule, p)
        assert bound.off.isfinite().double().mean() > 0.6
        for method in ("reference", "fused"):
            assert_within(normalise(A, rule, p, method).nan_to_num(0), bound)
        for block, mid, off in list(zip(A, bound.mid, bound.off, strict=True))[:12]:
            assert ((exact_columns(block, rule, p) - mid).abs() <= off).all()


@pytest.mark.parametrize("p", [65.0, 1e39])
def test_of_steep_norms_nothing_is_said_but_of_columns_that_stay(p):
    assert RoundedNumbers.exact(torch.full((2, 2), 0.5)).columns("clip", p).off.isinf().all()


@pytest.mark.parametrize(("dtype", "values"), [(torch.float32, (1e36, 1e-36)), (torch.float64, (1e200, 1e-160))])
def test_powers_that_may_overflow_or_vanish_leave_nothing_known(dtype, values):
    for value in values:
        A = value * torch.randn(3, 3, generator=drawn(0), dtype=dtype)
        assert RoundedNumbers.exact(A).columns("paper", 2.0).off.isinf().all()
        assert not torch.allclose(normalise(A, "paper", 2.0, "reference").double(), exact_columns(A, "paper", 2))


@pytest.mark.parametrize("default", [torch.float16, torch.bfloat16, torch.float64])
def test_bounds_do_not_depend_on_the_default_dtype(default):
    A, z = blocks(8, torch.float64, 8), torch.randn(3, 300, generator=drawn(1))
    gate = Gate(300, 300, 3)

    def bounds():
        columns = [RoundedNumbers.exact(A).columns(rule, 1.2) for rule in ("clip", "paper")]
        return [*columns, gate.rounded(RoundedNumbers.exact(z)), RoundedNumbers.exact(z) @ RoundedNumbers.exact(z.T)]

    usual = bounds()
    torch.set_default_dtype(default)
    try:
        assert all(torch.equal(a.off, b.off) for a, b in zip(usual, bounds(), strict=True))
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e38])
def test_numbers_that_are_none_or_overflow_have_no_bound(value):
    bound = RoundedNumbers.exact(torch.ones(1, 2)).linear(torch.tensor([[value, value], [1.0, 1.0]]), torch.zeros(2))
    assert bound.off.isinf().tolist() == [[True, False]]
    assert bound.relu().linear(torch.ones(1, 2), torch.zeros(1)).off.isinf().all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_keys_of_norm_one_and_sigmoids_stay_within(dtype):
    keys = torch.randn(200, 6, generator=drawn(0), dtype=torch.float64) * torch.logspace(-20, 15, 200).double()[:, None]
    keys = keys.to(dtype)
    bound = RoundedNumbers.exact(keys).normalised()
    for found in (torch.nn.functional.normalize(keys, dim=-1), torch.nn.functional.normalize(keys[17:18], dim=-1)):
        rows = slice(17, 18) if len(found) == 1 else slice(None)
        assert_within(found, RoundedNumbers(bound.mid[rows], bound.off[rows], bound.kind))
    assert (bound.off <= 2.2).all()
    assert bound.off[100].max() < 200 * torch.finfo(dtype).eps
    rates = torch.linspace(-80, 80, 1001, dtype=dtype)
    assert_within(rates.sigmoid(), RoundedNumbers.exact(rates).sigmoid())


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_and_differences_stay_within(dtype):
    x, y = (torch.randn(4, 5, 5, generator=drawn(seed), dtype=dtype) * 1e3**seed for seed in range(2))
    a, b = RoundedNumbers.exact(x), RoundedNumbers.exact(y)
    assert_within(x * y, a * b)
    assert_within(x - y, a - b)
    assert_within(x @ y, a @ b)
    assert_within((x @ y) * x - y, (a @ b) * a - b, 1e-3 if dtype == torch.float32 else 0)
    assert_within(2 * x, a.scaled(2))


def test_layer_norm_is_bounded_up_to_the_edge_of_its_range():
    edge = FloatFormat.of("float32").largest / 16  # of n M²
    for n, over in itertools.product((1, 3, 64), (1 - 1e-6, 1 + 1e-6)):
        assert bool(moments_fit(torch.tensor(math.sqrt(edge * over / n)).double(), n, FloatFormat.of("float32"))) == (
            over < 1
        )


def vanishing(x):
    """Take small numbers for zero, as processors may."""
    return torch.where(x.abs() < torch.finfo(x.dtype).tiny, 0, x)


def in_order(terms):
    total = terms[..., 0]
    for i in range(1, terms.shape[-1]):
        total = vanishing(total + terms[..., i])
    return total


def unit_columns(x, least=1e-12):
    norms = vanishing(in_order(vanishing(x * x).mT))[..., None, :].sqrt()
    return vanishing(x / norms.clamp(min=least))


WEIGHTS = torch.randn(3, 3, generator=drawn(5)), torch.randn(3, generator=drawn(6))
OPERATIONS = {
    "product": (lambda a, b: a * b, lambda x, y: vanishing(x * y)),
    "difference": (lambda a, b: a - b, lambda x, y: vanishing(x - y)),
    "third": (lambda a, _: a.scaled(1 / 3), lambda x, _: vanishing(x * (1 / 3))),
    "positive part": (lambda a, _: a.relu(), lambda x, _: x.relu()),
    "matrices": (lambda a, b: a @ b, lambda x, y: in_order(vanishing(x[..., None, :] * y.mT[..., None, :, :]))),
    "gate": (
        lambda a, _: a.linear(*(part.to(a_dtype(a)) for part in WEIGHTS)),
        lambda x, _: vanishing(in_order(vanishing(x[..., None, :] * WEIGHTS[0].to(x))) + WEIGHTS[1].to(x)),
    ),
    "sigmoid": (lambda a, _: a.sigmoid(), lambda x, _: vanishing(x.sigmoid())),
    "centred": (lambda a, _: a.centred(), lambda x, _: vanishing(x - vanishing(in_order(x.mT) / 3)[..., None, :])),
    "clip": (lambda a, _: a.columns("clip", 2.0), lambda x, _: unit_columns(x, 1.0)),
}


def a_dtype(a):
    return torch.float16 if a.kind.u == 2.0**-11 else torch.float32


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("kind", [RoundedNumbers, Zonotopes])
def test_numbers_at_the_ends_of_their_intervals_stay_within(kind, dtype, name):
    """Operands as far from the midpoints as they may be; ordinary ones, and some so small that products vanish."""
    bounds, computed = OPERATIONS[name]
    info, shape = torch.finfo(dtype), (200, 2, 3, 3)
    for largest, share in itertools.product((4.0, 8 * math.sqrt(info.tiny)), (0.0, 1e-3, 0.5)):
        x = largest * torch.randn(shape, generator=drawn(1), dtype=torch.float64)
        x = vanishing((x * 2.0 ** torch.randint(-3, 1, shape, generator=drawn(3))).to(dtype))
        radius = share * x.double().abs()
        mid = x.double() + radius * torch.randint(0, 2, shape, generator=drawn(2)).mul(2).sub(1)
        radius = (mid - x.double()).abs()  # without rounding
        if kind is Zonotopes:
            numbers = Zonotopes.boxes(mid.flatten(1), radius.flatten(1), FloatFormat.of(dtype)).unflatten(shape[1:])
        else:
            numbers = RoundedNumbers(mid, radius, FloatFormat.of(dtype))
        assert_within(computed(x[:, 0], x[:, 1]), bounds(numbers[:, 0], numbers[:, 1]))


def test_layer_norm_treats_each_row_by_itself():
    """What is trusted of torch: the same bits whatever the batch, the place in it, and the number of threads."""
    for width in (1, 3, 16, 64, 100):
        for dtype in DTYPES:
            norm = torch.nn.LayerNorm(width).to(dtype)
            rows = torch.randn(300, width, generator=drawn(width)).to(dtype)
            with torch.no_grad():
                alone = torch.cat([norm(row[None]) for row in rows])
                before = torch.get_num_threads()
                for threads in (1, 2):
                    torch.set_num_threads(threads)
                    assert torch.equal(norm(rows), alone)
                    assert torch.equal(norm(rows.repeat(40, 1).reshape(40, 300, width))[7], alone)
                torch.set_num_threads(before)


def whole_numbers(*shape):
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(sum(shape))).float()


def test_a_gate_is_its_weights_and_zero_where_none_are_given():
    gate = Gate(3, 4, 2)
    W1, b1, W2, b2 = gate.weights
    z = torch.randn(5, 3)
    torch.testing.assert_close(gate(z), (z @ W1.T + b1).relu() @ W2.T + b2)
    assert torch.equal(gate.hidden(z), torch.relu(gate[0](z)))
    assert list(gate.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert gate.n_hidden == 4
    gate = Gate(2, 3, 4)
    gate.set({"b2": torch.arange(4.0)})
    assert gate(torch.randn(2, 2)).tolist() == [[0.0, 1.0, 2.0, 3.0]] * 2
    with pytest.raises(ValueError, match=r"W1 has shape \(5, 5\), but this gate's is \(3, 2\)"):
        Gate(2, 3, 4).set({"W1": torch.eye(5)})
    with pytest.raises(ValueError, match="W3: a gate has W1, b1, W2, b2"):
        Gate(2, 3, 4).set({"W3": torch.eye(5)})


def test_integers_within_the_limit_are_exact_whatever_cancels():
    gate = Gate(4, 3, 2)
    parts = {"W1": whole_numbers(3, 4), "b1": whole_numbers(3), "W2": whole_numbers(2, 3), "b2": whole_numbers(2)}
    z = whole_numbers(6, 4)
    gate.set(parts)
    assert gate.is_exact(z, 2**24)
    assert not gate.is_exact(z, 2)  # the sums go further
    assert not gate.is_exact(z + 0.5, 2**24)
    for name, part in parts.items():
        gate.set({**parts, name: part + 0.25})
        assert not gate.is_exact(z, 2**24), name
    gate = Gate(3, 1, 1)
    gate.set({"W1": torch.tensor([[2.0**24, 1.0, -(2.0**24)]]), "W2": torch.ones(1, 1)})
    assert gate(torch.ones(3)).item() in (0.0, 1.0)
    assert not gate.is_exact(torch.ones(1, 3), 2.0**24)
    assert gate.is_exact(torch.eye(3), 2.0**24)


def test_an_order_is_kept_where_no_two_intervals_meet_unless_both_are_exact():
    generator = torch.Generator().manual_seed(0)
    mid = torch.randint(-6, 7, (2000, 4), generator=generator).double()
    off = torch.randint(-4, 3, (2000, 4), generator=generator).clamp(min=0).double()
    meet = (mid[:, :, None] - mid[:, None]).abs() <= off[:, :, None] + off[:, None]
    wrong = meet & (off[:, :, None] + off[:, None] > 0) & ~torch.eye(4, dtype=torch.bool)
    found = RoundedNumbers(mid, off, FloatFormat.of("float32")).is_ordered()
    assert torch.equal(found, ~wrong.any(-1).any(-1))
    assert 200 < found.sum() < 1800
    for bad in (math.nan, math.inf, -math.inf):
        assert not RoundedNumbers.exact(torch.tensor([0.0, bad])).is_ordered()
