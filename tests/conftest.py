"""Profiles of hypothesis, and one thread a worker: the workers of pytest-xdist already use every core."""

import os

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("fast", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
