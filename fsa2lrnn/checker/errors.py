"""Exceptions of the checker, and functions that raise them."""


class InvalidCertificate(ValueError):
    """Refusal of a certificate that does not prove its claim; the message names the failing step."""


class UnsupportedInput(ValueError):
    """Refusal of a malformed file, or of a model that the bounds on rounding do not cover, with value and remedy."""


def require(condition: bool, fault: str) -> None:
    """Raise `UnsupportedInput` unless the condition holds."""
    if not condition:
        raise UnsupportedInput(fault)


def demand(condition: bool, fault: str) -> None:
    """Raise `InvalidCertificate` unless the condition holds."""
    if not condition:
        raise InvalidCertificate(fault)
