"""The Triton scans against the reference: on a GPU where there is one, else in Triton's interpreter, which is slow."""

import json
import os
import subprocess
import sys

import pytest
import torch

from fsa2lrnn.errors import MissingPackage, UnsupportedFormat
from fsa2lrnn.nn.scans import gpu, method_on, scan, scan_tokens, token_method_on
from fsa2lrnn.nn.scans.gpu import _launch, _Shape

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5}
# (batch, length, heads, block)
SHAPES = [
    (0, 3, 3, 2), (1, 0, 1, 5), (5, 0, 8, 1), (1, 1, 8, 16), (5, 1, 1, 3), (1, 2, 3, 8), (5, 2, 1, 2), (1, 3, 8, 1),
    (5, 3, 1, 5), (1, 7, 3, 3), (1, 7, 1, 16),
]  # fmt: skip
N_ROWS = 3


@pytest.fixture(autouse=True)
def needs_triton():
    pytest.importorskip("triton")


@pytest.fixture
def in_chunks(monkeypatch):
    """Makes every scan split its time into so many chunks."""
    return lambda n: monkeypatch.setattr(gpu, "_n_chunks", lambda _batch, length, _heads: min(n, length))


def dense(batch, length, heads, b, dtype=torch.float32):
    """Norm-preserving blocks, inputs, and an initial state for each word."""
    generator = torch.Generator().manual_seed(0)
    A = torch.linalg.qr(torch.randn(batch, length, heads, b, b, generator=generator, dtype=torch.float64)).Q
    v = torch.randn(batch, length, heads, b, generator=generator, dtype=torch.float64)
    x0 = torch.randn(batch, heads, b, generator=generator, dtype=torch.float64)
    return [t.to(DEVICE, dtype) for t in (A, v, x0)]


def table(batch, length, heads, b, dtype=torch.float32):
    """Tokens that leave the last row out, the rows, and an initial state for each word."""
    A, v, _ = dense(1, N_ROWS, heads, b, dtype)
    tokens = torch.randint(N_ROWS - 1, (batch, length), generator=torch.Generator().manual_seed(1)).to(DEVICE)
    return tokens, [A[0], v[0], dense(batch, 1, heads, b, dtype)[2]]


def results(run, inputs):
    """The states, and the gradients of a sum in which each counts otherwise."""
    copies = [t.detach().clone().requires_grad_() for t in inputs]
    x = run(*copies)
    weight = torch.linspace(-1, 1, x.numel(), device=x.device).reshape(x.shape)
    if x.requires_grad:
        (x * weight).sum().backward()
    return [x, *(torch.zeros_like(t) if t.grad is None else t.grad for t in copies)]


def assert_same(found, wanted, tolerance):
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def assert_dense_agrees(inputs):
    found, wanted = (results(lambda *ts, m=m: scan(*ts, method=m), inputs) for m in ("triton", "sequential"))
    assert_same(found, wanted, 10 * TOLERANCE[inputs[0].dtype])


def assert_tokens_agree(tokens, inputs):
    found, wanted = (
        results(lambda *ts, m=m: scan_tokens(tokens, *ts, method=m), inputs) for m in ("triton", "sequential")
    )
    assert_same(found, wanted, 10 * TOLERANCE[inputs[0].dtype])


@pytest.mark.parametrize("shape", [*SHAPES, (1, 40, 1, 5)])
def test_agrees_with_the_reference_forward_and_backward(shape):
    assert_dense_agrees(dense(*shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_tables_agree_with_the_reference_forward_and_backward(shape):
    assert_tokens_agree(*table(*shape))


@pytest.mark.parametrize(
    ("n_chunks", "shape"),
    [(2, (2, 2, 1, 2)), (3, (1, 7, 1, 3)), (4, (1, 7, 2, 1)), (3, (1, 5, 1, 8)), (3, (1, 8, 1, 16))],
)
def test_chunks_agree_with_the_reference_forward_and_backward(in_chunks, n_chunks, shape):
    in_chunks(n_chunks)
    assert_dense_agrees(dense(*shape))


@pytest.mark.long_cases("4-shape0")
@pytest.mark.parametrize(("n_chunks", "shape"), [(4, (1, 40, 1, 2)), (3, (2, 4, 1, 3))])
def test_tables_in_chunks_agree_with_the_reference_forward_and_backward(in_chunks, n_chunks, shape):
    in_chunks(n_chunks)
    assert_tokens_agree(*table(*shape))


def test_precision_of_doubles_and_under_autocast(in_chunks):
    in_chunks(2)
    assert_dense_agrees(dense(1, 5, 1, 3, torch.float64))
    assert_tokens_agree(*table(1, 5, 1, 3, torch.float64))
    A, v, x0 = dense(1, 3, 1, 2)
    tokens, rows = table(1, 3, 1, 2)
    for method in ("sequential", "triton", "auto"):
        with torch.autocast(DEVICE, torch.bfloat16):
            x, y = scan(A.bfloat16(), v, x0, method), scan_tokens(tokens, *rows, method)
        wanted = scan(A.bfloat16().float(), v, x0, "sequential"), scan_tokens(tokens, *rows, "sequential")
        assert_same((x, y), wanted, 1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_have_states_in_single_precision(dtype):
    """Only what is written out is rounded: the states' error does not grow along the word."""
    half = dense(1, 20, 1, 3, dtype)
    found = results(lambda *ts: scan(*ts, method="triton"), half)
    wanted = results(lambda *ts: scan(*ts, method="sequential"), [t.float() for t in half])
    assert all(t.dtype == dtype for t in found)
    rounding = 2 * torch.finfo(dtype).eps
    assert_same([t.float() for t in found], wanted, rounding)


def test_mixtures_strides_and_second_derivatives():
    tokens, (A, v, x0) = table(2, 6, 1, 3)
    A, v = A.bfloat16(), v.bfloat16()
    found = results(lambda *ts: scan_tokens(tokens, *ts, method="triton"), (A, v, x0))
    assert [t.dtype for t in found] == [torch.float32, torch.bfloat16, torch.bfloat16, torch.float32]
    wanted = results(lambda *ts: scan_tokens(tokens, *ts, method="sequential"), [t.float() for t in (A, v, x0)])
    assert_same([t.float() for t in found], wanted, 1e-2)
    assert_same(found[:1], wanted[:1], 1e-5)
    A, v, x0 = dense(2, 4, 2, 3)
    strided = [A.contiguous().mT, v[:1].expand(2, -1, -1, -1), x0.transpose(0, 1).contiguous().transpose(0, 1)]
    assert not any(t.is_contiguous() for t in strided)
    x = scan(*strided, method="triton")
    torch.testing.assert_close(x, scan(*strided, method="sequential"), rtol=1e-4, atol=1e-4)
    (slope,) = torch.autograd.grad(scan(A, v.requires_grad_(), x0, "triton").sum(), v)  # the gradient is expanded
    (wanted,) = torch.autograd.grad(scan(A, v, x0, "sequential").sum(), v)
    torch.testing.assert_close(slope, wanted, rtol=1e-4, atol=1e-4)
    A, v, x0 = (t.requires_grad_() for t in dense(1, 2, 1, 2))
    (slope,) = torch.autograd.grad(scan(A, v, x0, "triton").square().sum(), A, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


@pytest.mark.parametrize("needed", range(3))
def test_gradients_of_one_input_only(needed):
    inputs = dense(1, 3, 1, 2)
    tokens, rows = table(1, 3, 1, 2)
    for run, given in ((scan, inputs), (lambda *ts: scan_tokens(tokens, *ts), rows)):
        slopes = []
        for method in ("triton", "sequential"):
            some = [t.clone().requires_grad_(i == needed) for i, t in enumerate(given)]
            run(*some, method).square().sum().backward()
            assert [t.grad is None for t in some].count(True) == 2
            slopes.append(some[needed].grad)
        torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-4)


def test_shares_of_a_table_add_up(monkeypatch):
    """More than one program a row, and the same bits each time."""
    monkeypatch.setattr(gpu, "_SHARE", 2)
    tokens, inputs = table(3, 4, 1, 2)
    assert_tokens_agree(tokens, inputs)
    once, again = (results(lambda *ts: scan_tokens(tokens, *ts, method="triton"), inputs) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(once, again, strict=True))


def test_models_side_by_side_are_words_side_by_side():
    """vmap over a leading axis, forward and backward, one input the same for all."""
    tokens, (A, v, x0) = table(2, 3, 1, 2)
    tokens = torch.stack([tokens, 1 - tokens])
    A, v = (torch.stack([t, t.flip(0)]) for t in (A, v))
    alone = [results(lambda *ts, i=i: scan_tokens(tokens[i], *ts, x0, "triton"), (A[i], v[i])) for i in range(2)]
    together = torch.func.vmap(lambda *ts: scan_tokens(*ts, x0, "triton"))
    some = [t.clone().requires_grad_() for t in (A, v)]
    x = together(tokens, *some)
    (x * torch.stack([torch.linspace(-1, 1, x[0].numel(), device=x.device).reshape(x[0].shape)] * 2)).sum().backward()
    for i in range(2):
        assert_same([x[i], *(t.grad[i] for t in some)], alone[i], 1e-5)
    A, v, x0 = (torch.stack([t, 2 * t]) for t in dense(2, 3, 1, 2))
    x = torch.func.vmap(lambda *ts: scan(*ts, method="triton"), in_dims=(0, 0, None))(A, v, x0[0])
    assert_same([x[1]], [scan(A[1], v[1], x0[0], "triton")], 1e-5)


def test_a_machine_without_a_gpu_says_what_to_do(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    A, v, x0 = (t.cpu() for t in dense(1, 2, 1, 2))
    wording = (
        r"A float32 on cpu, v float32 on cpu, x0 float32 on cpu: the Triton scan runs on a GPU; move them to one, "
        r'choose the scan "auto", or .* set TRITON_INTERPRET=1'
    )
    with pytest.raises(UnsupportedFormat, match=wording):
        scan(A, v, x0, "triton")
    with pytest.raises(UnsupportedFormat, match=wording):
        scan_tokens(torch.zeros(1, 2, dtype=torch.int64), A[0], v[0], x0, "triton")


def test_what_the_kernels_do_not_take_is_named(monkeypatch):
    A, v, x0 = dense(1, 2, 1, 2)
    with pytest.raises(
        UnsupportedFormat, match=r"v int64 on .* takes float32, float64, bfloat16 or float16, all on one"
    ):
        scan(A, v.long(), x0, "triton")
    with pytest.raises(UnsupportedFormat, match="x0 float32 on meta: the Triton scan takes"):
        scan(A, v, x0.to("meta"), "triton")
    b = gpu.WIDEST + 1
    with pytest.raises(UnsupportedFormat, match=r'blocks of size 65: .* up to 64 .*choose the scan "chunked"'):
        scan(A.new_zeros(1, 1, 1, b, b), v.new_zeros(1, 1, 1, b), x0.new_zeros(1, 1, b), "triton")
    monkeypatch.setattr(gpu, "is_installed", lambda _: False)
    message = r'method="triton" needs triton, .*: pip install "fsa2lrnn\[gpu\]", or choose the scan "chunked"'
    with pytest.raises(MissingPackage, match=message):
        scan(A, v, x0, "triton")


@pytest.mark.skipif(DEVICE == "cuda", reason="a GPU objects by ending the process's work on it")
def test_tokens_that_no_door_has_looked_at_are_looked_at():
    tokens, inputs = table(1, 2, 1, 2)
    for wrong in (tokens + N_ROWS, tokens - N_ROWS):
        with pytest.raises(RuntimeError, match=r"a token is not a row of the tables: 0\.\.2"):
            gpu.by_tokens(wrong, *inputs)


@pytest.mark.long
def test_triton_is_loaded_by_the_first_scan_that_needs_it():
    code = (
        "import sys, torch; from fsa2lrnn.nn import scan\n"
        f"z = lambda *shape: torch.zeros(shape, device={DEVICE!r})\n"
        "before = 'triton' in sys.modules; scan(z(1, 2, 1, 1, 1), z(1, 2, 1, 1), z(1, 1), 'sequential')\n"
        "assert before or 'triton' not in sys.modules  # torch loads it on some GPUs\n"
        "scan(z(1, 2, 1, 1, 1), z(1, 2, 1, 1), z(1, 1), 'triton'); assert 'triton' in sys.modules"
    )
    interpreted = {} if DEVICE == "cuda" else {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **interpreted})


@pytest.mark.parametrize(("shape", "dtype", "has_triton", "method"), [
    ((128, 40, 8, 8), torch.float32, True, "triton"),
    ((128, 40, 8, 8), torch.bfloat16, True, "triton"),
    ((1, 65_536, 8, 8), torch.float64, True, "triton"),
    ((128, 40, 1, 64), torch.float32, True, "triton"),
    ((128, 40, 1, 65), torch.float32, True, "sequential"),
    ((128, 500, 1, 65), torch.float32, True, "chunked"),
    ((1, 4096, 1, 17), torch.float32, True, "chunked"),  # too wide for products, too few to fill a chip
    ((1, 40, 1, 17), torch.float32, True, "triton"),
    ((128, 40, 8, 8), torch.int64, True, "sequential"),
    ((128, 40, 8, 8), torch.float32, False, "sequential"),
    ((128, 64, 8, 8), torch.float32, False, "chunked"),
])  # fmt: skip
def test_what_auto_stands_for_on_a_gpu(shape, dtype, has_triton, method):
    assert method_on("cuda", dtype, shape, has_triton) == method
    wanted = "triton" if method == "triton" else "letters"
    assert token_method_on("cuda", dtype, shape, 5, has_triton) == wanted
    assert method_on("xpu", dtype, shape, True) != "triton"  # no kernel was tried there


pytest.importorskip("triton")


def shape(length, size, b):
    return _Shape(1, length, 1, b, size, -(-length // size), torch.float32)


@pytest.mark.parametrize("length", [3, 4])
def test_nothing_is_written_past_the_end(length):
    """Padded rows and the second step of the last turn are masked."""
    b, made = 3, shape(length, length, 3)
    A, v, x0 = (torch.ones(*each, device=DEVICE) for each in ((length, b, b), (length, b), (b,)))
    memory = torch.full((length * b + 8,), 7.0, device=DEVICE)
    _launch("forward", made, 1, None, A, v, x0, x0, memory, *made.sizes)
    assert (memory[length * b :] == 7).all()
    dA, g, dx0 = (torch.full((n + 40,), 7.0, device=DEVICE) for n in (length * b * b, length * b, b))
    x = memory[: length * b].contiguous()
    _launch("backward", made, 1, None, A, x0, x, torch.ones_like(x), 0 * x0, dA, g, dx0, *made.sizes)
    for written, n in ((dA, length * b * b), (g, length * b), (dx0, b)):
        assert (written[n:] == 7).all()
        assert (written[:n] != 7).all()


COMPILE = """
import json
import triton.language as tl
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from fsa2lrnn.nn.scans import triton_kernels as gpu_kernels

VECTORS = ("A", "v", "x0", "ends", "x", "dx", "dA", "g", "dx0", "u", "products", "offsets", "dv")
TYPES = {**dict.fromkeys(VECTORS, "*fp32"), **dict.fromkeys(("tokens", "order", "bounds"), "*i64")}
CONSTANTS = {"b": 5, "P": 8, "STATE": tl.float32, "STAGES": 8}
CASES = [
    ("forward", {}), ("forward", {"tokens": None}), ("backward", {"dA": None}), ("backward", {"tokens": None}),
    ("compose", {"REVERSED": True}), ("compose", {"REVERSED": False, "tokens": None}), ("collect", {}),
]
WIDE = {"b": 16, "P": 16}
found = []
for name, more in CASES + [(name, {**more, **WIDE}) for name, more in CASES]:
    kernel, constants = getattr(gpu_kernels, name), {**CONSTANTS, **more}
    names = kernel.arg_names
    signature = {each: "constexpr" if each in constants else TYPES.get(each, "i32") for each in names}
    places = {(i,): constants[each] for i, each in enumerate(names) if each in constants}
    source = ASTSource(fn=kernel, signature=signature, constexprs=places)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 1, "enable_fp_fusion": True})
    loop = made.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    moves, products = loop.count("convert_layout"), made.asm["ttir"].count("tt.dot")
    found.append([name, constants["P"], len(made.asm["cubin"]), moves, loop.count("tt.store"), products])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_every_kernel_compiles_for_a_gpu_that_is_not_there(tmp_path):
    """Forward no state changes its registers from step to step: only what is stored does. Nowhere is there a product of
    matrices, which Triton would compute in tf32."""
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert len(found) == 14
    for name, P, size, moves, stores, products in found:
        assert size > 0
        assert products == 0
        if name == "forward" and P == 8:
            assert moves == stores == 2
