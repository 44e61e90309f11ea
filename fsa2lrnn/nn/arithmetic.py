"""Checks before a verification: refuse settings that compute below a dtype's precision, and layers without proofs.

Bounds on rounding, and exact float32 sums of integers below 2²⁴ (T1, T26), require products with all 24 bits of the
factors. TF32 keeps 11 bits of a factor, bfloat16 eight; autocast computes in another dtype than the weights'. A
processor that replaces subnormal numbers by zero computes other bits than IEEE 754 defines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import name_of
from fsa2lrnn.nn.model import LRNN

_FULL = ("none", "ieee")  # of torch.backends' fp32_precision
_ENVIRONMENT = {
    "ONEDNN_DEFAULT_FPMATH_MODE": ("", "STRICT"),
    "DNNL_DEFAULT_FPMATH_MODE": ("", "STRICT"),
    "MKL_BLAS_COMPUTE_MODE": ("", "STANDARD"),
}
_PER_THREAD = 1 << 15  # entries from which torch splits an addition among its threads


def check_arithmetic(device: torch.device) -> None:
    """Raise `UnsupportedFormat`, listing settings that make a device compute less exactly than the dtype, if any."""
    if faults := reductions(device):
        raise UnsupportedFormat(f"cannot verify a model that runs so: {'; '.join(faults)}")


def reductions(device: torch.device) -> list[str]:
    """Return one message, with a remedy, per setting that makes the device compute less exactly than the dtype.

    >>> reductions(torch.device("cpu"))
    []
    """
    return [*_everywhere(), *(_on_cuda() if device.type == "cuda" else _on_cpu())]


def _everywhere() -> Iterator[str]:
    """Yield the settings of torch that lower precision on any device: autocast, precision of float32 products."""
    for kind in ("cpu", "cuda"):
        if torch.is_autocast_enabled(kind):
            yield f"autocast is on for {kind} and computes in another dtype: leave torch.autocast before verifying"
    try:
        precision = torch.get_float32_matmul_precision()
    except RuntimeError:  # torch raises it if the precision of a single backend was set
        return
    if precision != "highest":
        yield f'torch.set_float32_matmul_precision({precision!r}) keeps fewer bits of products: set it to "highest"'


def _on_cpu() -> Iterator[str]:
    """Yield the settings of the CPU that lower precision: of oneDNN, of the environment, and of subnormal numbers.

    The last is tested by a sum over one tensor that torch splits among all threads, as each has a setting of its own.
    """
    products = getattr(torch.backends.mkldnn, "matmul", None)
    settings = {
        "torch.backends.fp32_precision": getattr(torch.backends, "fp32_precision", "none"),
        "torch.backends.mkldnn.fp32_precision": getattr(torch.backends.mkldnn, "fp32_precision", "none"),
        "torch.backends.mkldnn.matmul.fp32_precision": getattr(products, "fp32_precision", "none"),
    }
    yield from (f'{name} = {value!r}: set it to "ieee"' for name, value in settings.items() if value not in _FULL)
    for name, allowed in _ENVIRONMENT.items():
        if (value := os.environ.get(name, "")).upper() not in allowed:
            yield f"the environment sets {name} = {value!r}, which makes float32 products less exact: unset it"
    # A tensor that torch splits among all of its threads, since each thread has its own setting.
    tiny = torch.full((_PER_THREAD * torch.get_num_threads(),), torch.finfo(torch.float32).tiny, device="cpu")
    if not bool((tiny / 2).all()):
        yield (
            "in some thread numbers below the smallest normal one are taken for zero (torch.set_flush_denormal, or a "
            "library that sets it): call torch.set_flush_denormal(False), in a new process if threads have run"
        )


def _on_cuda() -> Iterator[str]:
    products = torch.backends.cuda.matmul
    for name in ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        if getattr(products, name):
            yield f"torch.backends.cuda.matmul.{name} is on: set it to False"


def check_causal(model: object) -> None:
    """Raise `UnsupportedFormat`, naming the layer, if outputs of an `LRNN` depend on later letters."""
    if isinstance(model, LRNN) and (reason := model.not_causal) is not None:
        raise UnsupportedFormat(reason)


def check_provable(model: LRNN) -> None:
    """Raise `UnsupportedFormat` unless the model is a causal `LRNN` without layers that verifiers refuse.

    The message names commands that support the model.
    """
    if not isinstance(model, LRNN):
        raise UnsupportedFormat(
            f"cannot verify a {type(model).__name__}, which is not an LRNN: only its outputs are visible. Test it with "
            "falsify and extract_learned; a layer over letters that is all in its tables comes in by LRNN.from_tables"
        )
    check_causal(model)
    for i, layer in enumerate(model.recurrences):
        if layer.unproved is not None:
            raise UnsupportedFormat(
                f"layers.{i} is of kind {name_of(model.config.layers[i])}, {layer.unproved}: compare and falsify run "
                "it on words, extract --method suffixes says what it seems to compute"
            )
