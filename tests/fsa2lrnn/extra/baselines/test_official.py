"""Our layers against numbers made by the code that was released with them: parameters, inputs, outputs, gradients.

A set of such numbers is a folder of NAME.npz and a fixtures.json that says which layer with which options each is of.
A small one lies in data/; a larger one is read from the folder shared/baselines beside the checkout, or from the one
that FSA2LRNN_FIXTURES names, where it is there. We compute in double precision, and must agree to 1e-6 of the largest
number of an array.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from .official_checks.channels import check_liquid_exact, check_liquid_released, check_s4_block
from .official_checks.models import check_backbone, check_hippo, check_vanilla
from .official_checks.numbers import Numbers, doubled
from .official_checks.rwkv4 import check_rwkv4
from .official_checks.spectral import check_lru, check_s5

COMMITTED = Path(__file__).parent / "data"
BESIDE = Path(os.environ.get("FSA2LRNN_FIXTURES", Path(__file__).parents[5] / "shared" / "baselines"))


CHECKS = {
    "S4Block": check_s4_block,
    "Liquid-S4, exact recurrence": check_liquid_exact,
    "Liquid-S4": check_liquid_released,
    "S5 SequenceLayer": check_s5,
    "LRU SequenceLayer": check_lru,
    "RWKV-4": check_rwkv4,
    "vanilla LRNN": check_vanilla,
    "state-spaces SequenceModel": check_backbone,
    "HiPPO-LegS": check_hippo,
}


def listed(folder):
    path = folder / "fixtures.json"
    fixtures = json.loads(path.read_text("utf-8"))["fixtures"] if path.is_file() else []
    return [pytest.param(folder, each, id=f"{folder.name}-{each['name']}") for each in fixtures]


def full_set():
    missing = pytest.mark.skip(reason=f"no {BESIDE / 'fixtures.json'}: the larger set of numbers is not here")
    return listed(BESIDE) or [pytest.param(BESIDE, None, id="beside", marks=missing)]


@pytest.mark.parametrize(("folder", "fixture"), listed(COMMITTED) + full_set())
def test_agrees_with_the_released_code(folder, fixture):
    arrays = np.load(folder / f"{fixture['name']}.npz")
    numbers = Numbers({name: doubled(torch.from_numpy(arrays[name])) for name in arrays.files})
    CHECKS[next(prefix for prefix in CHECKS if fixture["layer"].startswith(prefix))](numbers, fixture["options"])
