"""A run so small that tests can afford it, and what is compared of two."""

import torch

from fsa2lrnn.nn import load
from fsa2lrnn.training.run_folder import MODEL
from fsa2lrnn.training.settings import Settings

TINY = Settings(
    "task:mod_arith(2)", embedding_dim=4, block=2, heads=2, layers=2, batch=4, length=6, test_length=9, test_words=5,
    steps=20, evaluate_every=5, stop_at=None, learning_rate=1e-2,
)  # fmt: skip


def weights(folder):
    return load(folder / MODEL).state_dict()


def equal(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def without_speed(records):
    return [{name: value for name, value in record.items() if name != "steps_per_second"} for record in records]
