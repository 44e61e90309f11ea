"""Layers that run on other packages than transformers, where these are installed."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from fsa2lrnn import zoo
from fsa2lrnn.errors import CheckpointError, MissingPackage, NotExpressible, UnsupportedFormat
from fsa2lrnn.export import packages, target
from fsa2lrnn.export.constructions import construct
from fsa2lrnn.export.folder import load
from fsa2lrnn.export.refuse import refuse
from fsa2lrnn.export.rwkv7 import RwkvPackage
from fsa2lrnn.optional import is_installed


def test_the_line_that_installs_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingPackage, match=r'pip install "fsa2lrnn\[hf\]"'), packages.transformers():
        pass


def test_bars_are_hidden_and_versions_are_named(monkeypatch):
    package = pytest.importorskip("transformers")
    logging = package.utils.logging
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with packages.transformers() as same, packages.transformers():
        assert same is package
        assert logging.get_verbosity() == before[0]
        assert not logging.is_progress_bar_enabled()
    kernels, said = logging.get_logger("transformers.integrations.hub_kernels"), []
    monkeypatch.setattr(kernels, "handle", lambda record: said.append(record.msg) if kernels.filter(record) else None)
    note = "`f` is falling back to its reference PyTorch implementation because `g` is not installed"
    with packages.transformers():
        with packages.transformers():
            kernels.warning(note)
        kernels.warning(note)
        kernels.warning("a kernel is broken")
    kernels.warning(note)
    assert said == ["a kernel is broken", note]
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert packages.versions()["transformers"] == package.__version__
    with pytest.raises(UnsupportedFormat, match=r"transformers \d.* has no other_layer: install transformers==5"):
        packages.modeling("other_layer")


def test_fla_is_out_of_sight_only_while_their_file_is_imported(monkeypatch, tmp_path):
    pytest.importorskip("transformers")
    (tmp_path / "fla").mkdir()
    (tmp_path / "fla" / "__init__.py").write_text("raise RuntimeError('no GPU here')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "transformers.models.olmo_hybrid.modeling_olmo_hybrid", raising=False)
    assert packages.hides_fla()
    assert packages.modeling("olmo_hybrid").__name__.endswith("modeling_olmo_hybrid")
    assert "fla" not in sys.modules


has_rwkv = pytest.mark.skipif(not is_installed("rwkv"), reason="rwkv is not installed")


@pytest.mark.parametrize(("layer", "file", "message"), [
    pytest.param("rwkv-7", "model.pth", r"(no|not a) model of (rwkv|RWKV)-7", marks=has_rwkv),
])  # fmt: skip
def test_other_files_are_refused(tmp_path, layer, file, message):
    for content in (None, b"no such file", {"weight": torch.zeros(2)}):
        if isinstance(content, bytes):
            (tmp_path / file).write_bytes(content)
        elif content is not None:
            (torch.save if layer == "rwkv-7" else save_file)(content, tmp_path / file)
        with pytest.raises(CheckpointError, match=message):
            target(layer).code.load(tmp_path)


@pytest.mark.parametrize(("lacking", "layer", "message"), [
    ("rwkv", "rwkv-7", r"rwkv-7 needs rwkv, which is not installed: pip install rwkv==0\.8\.32"),
])  # fmt: skip
def test_the_package_that_is_missing_is_named(monkeypatch, lacking, layer, message):
    monkeypatch.setitem(sys.modules, "einops", sys)  # which is not looked into here
    monkeypatch.setitem(sys.modules, lacking, None)
    monkeypatch.delitem(sys.modules, "rwkv.model", raising=False)
    into = target(layer)
    with pytest.raises(MissingPackage, match=message):
        into.code.versions() if layer == "rwkv-7" else into.build(into.plan(zoo.parity()), torch.float32)


def test_rwkv_bounds_two_letters_and_spread_bytes(tmp_path):
    assert len(refuse(zoo.mod_arith(2), "qwen3-next").repeated) == 2
    assert refuse(zoo.mod_arith(2), "rwkv-7") is None
    plan = construct(zoo.shift_register(3), has_reflections=False)
    with pytest.raises(NotExpressible, match="rwkv-7 looks one letter back"):
        target("rwkv-7").build(plan, torch.float32)
    torch.save({"emb.weight": torch.zeros(1).expand(10**6, 10**6)}, tmp_path / "model.pth")
    with pytest.raises(CheckpointError, match=r"has [\d,]+ bytes, and its tensors are 4,000,000,000,000"):
        RwkvPackage().load(tmp_path)


@has_rwkv
def test_the_nearest_to_a_reflection_fades(exported):
    """w at its least and a = 1 turn the sign and leave 0.4548 of a number; twice the removal would leave all of it."""
    model = load(exported(zoo.flip_flop(), "rwkv-7")[0])
    _, cache = model.code.read(model.model, torch.tensor([0]), None)
    z = model.model.z
    z["blocks.0.att.w0"].fill_(512)  # w = exp(−0.606531)
    z["blocks.0.att.a0"].fill_(1e4)  # a = 1
    z["blocks.0.att.value.weight"].zero_()
    held = int(cache[1][0, :, 0].argmax())
    sizes = [cache[1][0, held, 0].item()]
    for _ in range(200):
        _, cache = model.code.read(model.model, torch.tensor([2]), cache)
        sizes.append(cache[1][0, held, 0].item())
    ratios = np.array(sizes[1:20]) / np.array(sizes[:19])
    assert np.allclose(ratios, math.exp(-0.606531) - 1, rtol=1e-6)
    assert next(n for n, size in enumerate(sizes) if not size) == 144


def test_the_package_needs_its_switch(monkeypatch):
    monkeypatch.setitem(sys.modules, "rwkv", SimpleNamespace(model=SimpleNamespace()))
    monkeypatch.setitem(sys.modules, "rwkv.model", SimpleNamespace())
    with pytest.raises(UnsupportedFormat, match="set RWKV_V7_ON=1 before it is imported"):
        RwkvPackage().versions()
