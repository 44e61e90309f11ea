"""Of what a number depends on: this package, Python and the libraries that compute."""

from __future__ import annotations

import platform
from importlib.metadata import version

from fsa2lrnn import __version__


def versions() -> dict[str, str]:
    """The versions by name, to be written beside results."""
    return {
        "fsa2lrnn": __version__,
        "python": platform.python_version(),
        "torch": version("torch"),
        "numpy": version("numpy"),
    }
