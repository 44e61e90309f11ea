"""Settings under which numbers are not what a dtype's arithmetic makes them: no judge speaks of a model that runs so.

That sums of integers below 2²⁴ are exact in float32 (T1, T26), and every bound on rounding, needs products of 24 bits.
TF32 keeps 11 bits of a factor, bfloat16 eight; autocast computes in another dtype than the weights'. A processor that
takes numbers below the smallest normal one for zero computes other bits than one that keeps them: a walk of states bit
for bit would be of one of both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch

from fsa2lrnn.errors import UnsupportedFormat

_FULL = ("none", "ieee")  # of torch.backends' fp32_precision
_ENVIRONMENT = {
    "ONEDNN_DEFAULT_FPMATH_MODE": ("", "STRICT"),
    "DNNL_DEFAULT_FPMATH_MODE": ("", "STRICT"),
    "MKL_BLAS_COMPUTE_MODE": ("", "STANDARD"),
}


def check_arithmetic(device: torch.device) -> None:
    """Raises `UnsupportedFormat` naming each setting by which a device computes other numbers than the dtype has."""
    if faults := reductions(device):
        raise UnsupportedFormat(f"nothing is said of a model that runs so: {'; '.join(faults)}")


def reductions(device: torch.device) -> list[str]:
    """What makes numbers on a device less exact than the dtype is, each with its remedy.

    >>> reductions(torch.device("cpu"))
    []
    """
    return [*_everywhere(), *(_on_cuda() if device.type == "cuda" else _on_cpu())]


def _everywhere() -> Iterator[str]:
    for kind in ("cpu", "cuda"):
        if torch.is_autocast_enabled(kind):
            yield f"autocast is on for {kind} and computes in another dtype: leave torch.autocast before judging"
    if (precision := _precision()) != "highest":
        yield (
            f"torch.set_float32_matmul_precision({precision!r}) lets float32 products keep fewer bits: set it to "
            '"highest"'
        )


def _precision() -> str:
    """The setting for all products; what single backends are set to, if they are, shows where they are asked."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # torch does not say, once a backend has been set on its own
        return "highest"


def _on_cpu() -> Iterator[str]:
    settings = {
        "torch.backends.fp32_precision": getattr(torch.backends, "fp32_precision", "none"),
        "torch.backends.mkldnn.fp32_precision": getattr(torch.backends.mkldnn, "fp32_precision", "none"),
        "torch.backends.mkldnn.matmul.fp32_precision": _of_products(torch.backends.mkldnn),
    }
    yield from (f'{name} = {value!r}: set it to "ieee"' for name, value in settings.items() if value not in _FULL)
    for name, allowed in _ENVIRONMENT.items():
        if (value := os.environ.get(name, "")).upper() not in allowed:
            yield f"the environment sets {name} = {value!r}, which makes float32 products less exact: unset it"

    if not _keeps_small_numbers():
        yield (
            "numbers below the smallest normal one are taken for zero (torch.set_flush_denormal, or a library that "
            "sets it): torch.set_flush_denormal(False)"
        )


def _keeps_small_numbers() -> bool:
    tiny = torch.finfo(torch.float32).tiny
    return bool((torch.full((1,), tiny, dtype=torch.float32) / 2).double() > 0)


def _on_cuda() -> Iterator[str]:
    products = torch.backends.cuda.matmul
    if products.allow_tf32:
        yield "torch.backends.cuda.matmul.allow_tf32 is on: set it to False"
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        if getattr(products, name):
            yield f"torch.backends.cuda.matmul.{name} is on: set it to False"


def _of_products(backend: object) -> str:
    return getattr(getattr(backend, "matmul", None), "fp32_precision", "none")
