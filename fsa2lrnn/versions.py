"""The versions of this package, Python and the numerical libraries, to be stored with results."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version

from fsa2lrnn import __version__

_BLAS = re.compile(r"(Math Kernel Library|BLAS_INFO=)(?: Version )?([^\s,]+)")
_SETTINGS = ("MKL_", "OPENBLAS_", "ONEDNN_", "DNNL_")  # begin the environment variables that these libraries read


def versions() -> dict[str, str]:
    """Return the versions of fsa2lrnn, Python, torch and numpy by name."""
    libraries = {name: version(name) for name in ("torch", "numpy")}
    return {"fsa2lrnn": __version__, "python": platform.python_version(), **libraries}


def environment() -> tuple[str, ...]:
    """Return the versions and settings that fix the order of float sums, one text each: torch, CPU, BLAS, variables."""
    import torch

    blas = dict(_BLAS.findall(torch.__config__.show()))
    mkl = blas.get("Math Kernel Library")
    return (
        f"torch {torch.__version__}",
        f"CPU capability {torch.backends.cpu.get_cpu_capability()}",
        f"MKL {mkl}" if mkl else f"BLAS {blas.get('BLAS_INFO=', 'unknown')}",
        *([] if torch.backends.mkldnn.enabled else ["oneDNN off"]),
        *sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(_SETTINGS)),
    )
