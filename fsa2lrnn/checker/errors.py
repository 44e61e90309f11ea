"""Exceptions of the checker, and functions that raise them."""


class InvalidCertificate(ValueError):
    """The error for a certificate that does not prove its claim; the message names the failing step."""


class UnsupportedInput(ValueError):
    """The error for a malformed file or a model whose rounding is not bounded; the message names value and remedy."""


def require(condition: bool, fault: str) -> None:
    """Raise `UnsupportedInput` unless the condition holds."""
    if not condition:
        raise UnsupportedInput(fault)


def demand(condition: bool, fault: str) -> None:
    """Raise `InvalidCertificate` unless the condition holds."""
    if not condition:
        raise InvalidCertificate(fault)
