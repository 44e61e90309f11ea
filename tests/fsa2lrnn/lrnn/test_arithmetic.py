"""Settings that take bits from products are refused by name, by every judge; and one of them does take bits."""

import ctypes
import ctypes.util
import platform
import subprocess
import sys

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fsa2lrnn import certify, check, compile_machine, extract, prove_equivalent, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.arithmetic import reductions
from fsa2lrnn.lrnn.switched import switched

CPU = torch.device("cpu")
PARITY = zoo.parity()


@pytest.fixture
def _restored():
    yield
    torch.backends.mkldnn.matmul.fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")


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


@pytest.mark.usefixtures("flushing")
def test_a_thread_that_still_takes_small_numbers_for_zero_is_seen():
    """Threads keep the setting that they began with, whatever the main thread is set to later."""
    code = (
        "import torch; from fsa2lrnn.lrnn.arithmetic import reductions; torch.set_num_threads(2); "
        "torch.set_flush_denormal(True); torch.ones(1 << 18) / 2; torch.set_flush_denormal(False); "
        "small = torch.full((1 << 18,), torch.finfo(torch.float32).tiny) / 2; "
        "print(bool(small[0] > 0), bool((small > 0).all()), len(reductions(torch.device('cpu'))))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    main_keeps, all_keep, faults = answer
    assert main_keeps == "True"
    assert (all_keep == "True") == (faults == "0")  # torch built with other threads may set them all


def test_another_direction_of_rounding_is_refused():
    """Towards plus infinity, 1 + 2⁻²⁵ is another number, and a bound on rounding that assumes the nearest is false."""
    libm = ctypes.util.find_library("m")
    if libm is None or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("no name for the direction on this machine")
    rounding, nearest = ctypes.CDLL(libm), 0
    for upward_downward_or_to_zero in (0x800, 0x400, 0xC00):
        try:
            rounding.fesetround(upward_downward_or_to_zero)
            faults = reductions(CPU)
        finally:
            rounding.fesetround(nearest)
        assert any("sums are not rounded to the nearest number" in fault for fault in faults)
    assert not reductions(CPU)


class Negating(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        return -found if func is torch.nn.functional.linear else found


class Dispatching(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Negating, Dispatching, lambda: torch.device("meta")])
def test_modes_that_may_compute_anything_are_refused(mode):
    model = compile_machine(PARITY)
    with mode(), pytest.raises(UnsupportedFormat, match=r"the mode \w+ of torch is active"):
        prove_equivalent(model, PARITY)


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
