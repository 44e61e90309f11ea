"""Readers with the faults that are looked for, each of which has to be found."""

import os
import random
import time

import numpy as np

from fsa2lrnn.errors import Fsa2LrnnError
from tests.fuzz.base import Reader


def one(act):
    """A reader that takes the file "fine", and does `act` with any other."""

    def read(path):
        if (content := path.read_bytes()) != b"fine":
            act(content)

    return Reader(lambda: [b"fine"], lambda rng: rng.choice((b"fine", b"odd" * 100)), read)


def fail(_):
    raise KeyError("foreign")


def refuse(_):
    raise Fsa2LrnnError("ours")


def spin(_):
    begun = time.process_time()
    while time.process_time() - begun < 60:
        random.random()


READERS = {
    "sound": one(refuse),
    "raises": one(fail),
    "hangs": one(spin),
    "allocates": one(lambda content: np.ones((60 << 20) + 20 * len(content), np.uint8)),
    "allocates in Python": one(lambda _: [bytes(1_000) for _ in range(100_000)]),
    "allocates what it may": one(lambda content: np.ones((40 << 20) + 10 * len(content), np.uint8)),
    "dies": one(lambda _: os._exit(3)),
}
