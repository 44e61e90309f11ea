"""The package `rwkv`: missing, imported without its switch, and files that are none of its."""

import sys
from types import SimpleNamespace

import pytest
import torch

from fsa2lrnn.errors import CheckpointError, MissingPackage, UnsupportedFormat
from fsa2lrnn.extra.huggingface.rwkv_package import RwkvPackage
from fsa2lrnn.optional import is_installed


def test_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rwkv", None)
    monkeypatch.delitem(sys.modules, "rwkv.model", raising=False)
    with pytest.raises(MissingPackage, match=r"rwkv-7 needs rwkv, which is not installed: pip install rwkv==0\.8\.32"):
        RwkvPackage().versions()


def test_without_its_switch(monkeypatch):
    monkeypatch.setitem(sys.modules, "rwkv", SimpleNamespace(model=SimpleNamespace()))
    monkeypatch.setitem(sys.modules, "rwkv.model", SimpleNamespace())
    with pytest.raises(UnsupportedFormat, match="set RWKV_V7_ON=1 before it is imported"):
        RwkvPackage().versions()


@pytest.mark.skipif(not is_installed("rwkv"), reason="rwkv is not installed")
@pytest.mark.parametrize("content", [None, b"no such file", {"weight": torch.zeros(2)}])
def test_other_files(tmp_path, content):
    path = tmp_path / "model.pth"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(CheckpointError, match=r"(holds|is) no model of (rwkv|RWKV)-7"):
        RwkvPackage().load(tmp_path)


def test_a_file_of_few_bytes_that_spread_to_many_is_refused(tmp_path):
    """Before the package is asked for, which would copy what stands there once."""
    torch.save({"emb.weight": torch.zeros(1).expand(10**6, 10**6)}, tmp_path / "model.pth")
    with pytest.raises(CheckpointError, match=r"has [\d,]+ bytes, and its tensors are 4,000,000,000,000"):
        RwkvPackage().load(tmp_path)
