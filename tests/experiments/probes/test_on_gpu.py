"""Configurations of autotuned kernels, and results of several processes: what can be tested without a GPU."""

from types import SimpleNamespace

import pytest

from experiments import results_io
from experiments.probes import on_gpu, tables

pytest.importorskip("triton")

from triton.runtime.autotuner import Autotuner, Config
from triton.runtime.errors import OutOfResources


@pytest.fixture
def configurations(monkeypatch):
    monkeypatch.setattr(Autotuner, "run", Autotuner.run)  # to be restored
    return on_gpu.Configurations()


def tuner(sizes, largest):
    """An autotuner of a kernel that returns its size, for which the card is too small beyond `largest`."""

    def run(*args, size, **_):
        if size > largest:
            raise OutOfResources(size, largest, "shared memory")
        return size, args

    configs = [Config({"size": size}) for size in sizes]
    return SimpleNamespace(
        arg_names=["x"], configs=configs, prune_configs=lambda _: configs, fn=SimpleNamespace(run=run)
    )


def test_the_kth_configuration_runs_or_the_next_that_fits(configurations):
    three = tuner([1, 2, 3], largest=2)
    sizes = []
    for configurations.k in range(4):
        size, args = Autotuner.run(three, "x")
        assert args == ("x",)
        sizes.append(size)
    assert sizes == [1, 2, 1, 1]
    assert configurations.most == 3
    with pytest.raises(RuntimeError, match="none of 1 configurations fits"):
        Autotuner.run(tuner([3], largest=2), "x")


def test_parts_are_united_and_the_largest_error_is_shown():
    where = {"kernel": "k", "dtype": "bfloat16", "device": "card"}
    first = where | {"cells": {"gates": "exact"}, "wrong": {}, "swept": [0, 2], "configurations": 4, "seconds": 5}
    wrong = {
        "1": {"gradients": "op: dq is wrong; accumulation dtype: errors up to 9.0e-04 of the largest value, as if"}
    }
    other = first | {"cells": {}, "wrong": wrong, "swept": [0, 1, 3], "seconds": 6}
    assert on_gpu.merged([first], where | {"device": "other card"} | {"cells": {}}) == [
        first, {**where, "device": "other card", "cells": {}}
    ]  # fmt: skip
    (both,) = on_gpu.merged([first], other)
    assert (both["swept"], both["seconds"], both["cells"], both["wrong"]) == ([0, 1, 2, 3], 11, first["cells"], wrong)
    assert tables._verdict(first) == "exact"
    assert tables._verdict(both) == "accumulation dtype: errors up to 9.0e-04 of the largest value"
    both["cells"] = {
        "whole": "o is wrong; accumulation dtype: errors up to 1.0e-03 of the largest",
        "gates": "refused: X",
    }
    assert tables._verdict(both) == "accumulation dtype: errors up to 1.0e-03 of the largest; gates refused"


def test_what_the_documentation_says_of_the_kernels():
    rows = results_io.read("probe_gpu")["results"]["kernels"]
    wrong = {(row["kernel"], row["dtype"]) for row in rows if tables._verdict(row).startswith("accumulation")}
    chunked = ("chunk_gated_delta_rule", "chunk_kda", "chunk_rwkv7", "chunk_simple_gla", "mamba_chunk_scan_combined")
    assert wrong == {(kernel, "float32") for kernel in chunked}
    assert len({row["kernel"] for row in rows}) == 17
