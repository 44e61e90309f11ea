"""Profiles of hypothesis, and one thread a worker: the workers of pytest-xdist already use every core."""

import os

import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
# How long an example takes says something of the machine that runs the tests, and nothing of the code.
UNHURRIED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fast", max_examples=50, derandomize=True, **UNHURRIED)
settings.register_profile("deep", max_examples=2_000, print_blob=True, **UNHURRIED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
