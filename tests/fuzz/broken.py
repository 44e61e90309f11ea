"""Readers with the faults that are looked for, each of which has to be found."""

import os
import time

import numpy as np

from fsa2lrnn.errors import Fsa2LrnnError
from tests.fuzz.mutate import Reader, given


def one(act):
    """A reader that takes the file "fine", and does `act` with any other."""
    fine = given("fine")
    return Reader(
        fine, lambda rng: rng.choice((b"fine", b"odd" * 100)),
        lambda path: act(content) if (content := path.read_bytes()) != b"fine" else None,
    )  # fmt: skip


def fail(content):
    raise KeyError("foreign") if content else Fsa2LrnnError("ours")


def spin(_):
    begun = time.process_time()
    while time.process_time() - begun < 60:
        pass


READERS = {
    "sound": one(lambda _: fail(b"")),
    "raises": one(fail),
    "hangs": one(spin),
    "allocates": one(lambda content: np.ones((60 << 20) + 20 * len(content), np.uint8)),
    "allocates in Python": one(lambda _: [bytes(1_000) for _ in range(100_000)]),
    "allocates what it may": one(lambda content: np.ones((40 << 20) + 10 * len(content), np.uint8)),
    "dies": one(lambda _: os._exit(3)),
}
