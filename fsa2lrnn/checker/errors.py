"""What the checker raises: a certificate that does not hold, and input that it can't judge."""


class InvalidCertificate(ValueError):
    """The certificate does not prove what it claims; the message names what fails."""


class UnsupportedInput(ValueError):
    """A file is malformed, or the bounds on rounding do not cover the model; the message names value and remedy."""
