"""The kernels one by one where the scans could hide a fault: what they leave alone, and what a chunk's map is."""

import json
import os
import subprocess
import sys

import pytest
import torch

pytest.importorskip("triton")

from fsa2lrnn.nn.scans import gpu
from fsa2lrnn.nn.scans.gpu import _launch, _Shape

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def shape(length, size, b):
    return _Shape(1, length, 1, b, size, -(-length // size), torch.float32)


def compose(length, size, b, is_reversed):
    generator = torch.Generator().manual_seed(0)
    A, u = (torch.randn(1, length, 1, *each, generator=generator).to(DEVICE) for each in ((b, b), (b,)))
    made = shape(length, size, b)
    products, offsets = (A.new_empty(1, made.n_chunks - 1, 1, *each) for each in ((b, b), (b,)))
    _launch("compose", made, made.n_chunks - 1, None, A, u, products, offsets, *made.sizes, REVERSED=is_reversed)
    return A[0, :, 0], u[0, :, 0], products[0, :, 0], offsets[0, :, 0]


def test_chunks_are_their_steps_in_order_and_backwards_transposed():
    A, v, products, offsets = compose(length=5, size=2, b=3, is_reversed=False)
    z = torch.tensor([1.0, 2.0, 3.0], device=DEVICE)
    for c in range(2):
        k = 2 * c
        wanted = A[k + 1] @ (A[k] @ z + v[k]) + v[k + 1]
        torch.testing.assert_close(products[c] @ z + offsets[c], wanted)
    A, dx, products, offsets = compose(length=5, size=2, b=3, is_reversed=True)
    torch.testing.assert_close(products[0] @ z + offsets[0], A[4].T @ (z + dx[4]))  # the last chunk is the short one
    torch.testing.assert_close(products[1] @ z + offsets[1], A[2].T @ (A[3].T @ (z + dx[3]) + dx[2]))
    g, x0, x = torch.ones(2, 1, 1), torch.ones(1, 1, 1), torch.ones(1, 2, 1, 1)
    tokens = torch.tensor([[2, 2]], device=DEVICE)
    dA, dv = gpu._collected(tokens, *(t.to(DEVICE) for t in (g, x0, x)), n_rows=4)
    assert dv.flatten().tolist() == dA.flatten().tolist() == [0, 0, 2, 0]


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
