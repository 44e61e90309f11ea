"""Import optional packages, with an error that names the command that installs them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from fsa2lrnn.errors import MissingPackage


def require(module: str, extra: str | None, purpose: str, instead: str = "") -> ModuleType:
    """Return a module of an optional package; raise `MissingPackage` if the package is not installed.

    The message says that `purpose`, its subject, needs the package, which the `extra` of fsa2lrnn installs if not None,
    and names the alternative `instead`. Other errors of the import pass through.

    >>> require("json", "test", "this example").loads("[1]")
    [1]
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != (package := module.partition(".")[0]):
            raise
        raise missing(package, extra, purpose, instead) from error


def missing(package: str, extra: str | None, purpose: str, instead: str = "") -> MissingPackage:
    """Return the `MissingPackage` error for a package that is not installed; other arguments as for `require`."""
    line = f'pip install "fsa2lrnn[{extra}]"' if extra else f"pip install {package}"
    return MissingPackage(
        f"{purpose} needs {package}, which is not installed: {line}{f', or {instead}' if instead else ''}"
    )


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it.

    >>> is_installed("torch"), is_installed("abacus_1")
    (True, False)
    """
    try:
        return find_spec(package) is not None
    except ValueError:  # sys.modules holds None in its place
        return False
