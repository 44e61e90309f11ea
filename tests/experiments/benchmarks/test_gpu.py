"""The benchmark's bookkeeping, in Triton's interpreter where there is no GPU, at tiny sizes; no figure is judged."""

import io
import json

import pytest
import torch
from rich.console import Console

from experiments.benchmarks import gpu as bench_gpu
from experiments.benchmarks.gpu import bytes_moved
from fsa2lrnn.training.settings import Settings

TINY = Settings(
    "task:sum_mod(2)", embedding_dim=4, block=2, heads=2, batch=4, length=6, test_length=9, test_words=5, steps=4,
)  # fmt: skip


def test_a_machine_without_a_gpu_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match=r"measures a GPU, and torch sees no CUDA device here: run it where one is"):
        bench_gpu.main()


@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels are compiled for the GPU here")
def test_the_document_has_every_case_and_can_be_read(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setattr(bench_gpu, "_WARM_UP", 0)
    monkeypatch.setattr(bench_gpu, "variants", lambda settings: [settings])
    shapes = [(1, 2, 1, 2), (2, 1, 1, 1)]
    document = bench_gpu.measure("cpu", shapes, TINY, copied=1 << 10, turns=1)
    assert json.loads(json.dumps(document)) == document
    cases = [
        (row["kind"], row["batch"], row["length"], row["heads"], row["block"], row["dtype"])
        for row in document["scans"]
    ]
    assert cases == [(k, *shape, t) for k in ("dense", "tokens") for shape in shapes for t in ("float32", "bfloat16")]
    for row in document["scans"]:
        shape = tuple(row[name] for name in ("batch", "length", "heads", "block"))
        size = bench_gpu.DTYPES[row["dtype"]].itemsize
        for way, moved in zip(("forward", "backward"), bytes_moved(row["kind"], shape, size), strict=True):
            found = row[way]
            assert found["bytes"] == moved
            assert found["bytes_per_second"] == pytest.approx(1e3 * moved / found["milliseconds"])
            assert found["share_of_copy"] == found["bytes_per_second"] / document["copy_bytes_per_second"]
    console = Console(file=io.StringIO(), width=200)
    for table in bench_gpu.tables(document):
        console.print(table)
    assert "bfloat16" in console.file.getvalue()
