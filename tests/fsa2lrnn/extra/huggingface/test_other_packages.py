"""Layers that run on other packages than transformers, where these are installed."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fsa2lrnn import MooreMachine, Proved, zoo
from fsa2lrnn.errors import BudgetExceeded, CheckpointError, MissingPackage, NotExpressible, UnsupportedFormat
from fsa2lrnn.extra.huggingface import layer_file, packages, slstm
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.extra.huggingface.refuse import refuse
from fsa2lrnn.extra.huggingface.rwkv_package import RwkvPackage
from fsa2lrnn.optional import is_installed


def test_the_line_that_installs_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingPackage, match=r'pip install "fsa2lrnn\[hf\]"'), packages.transformers():
        pass


def test_bars_are_hidden_and_versions_are_named():
    package = pytest.importorskip("transformers")
    logging = package.utils.logging
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with packages.transformers() as same, packages.transformers():
        assert same is package
        assert logging.get_verbosity() == before[0]
        assert not logging.is_progress_bar_enabled()
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


has_xlstm = pytest.mark.skipif(not is_installed("xlstm"), reason="xlstm is not installed")
has_rwkv = pytest.mark.skipif(not is_installed("rwkv"), reason="rwkv is not installed")
has_pd_ssm = pytest.mark.skipif(
    not (is_installed("pdssm") and is_installed("einops")), reason="pdssm.py is not on the path"
)


@pytest.mark.parametrize(
    ("layer", "file", "message"),
    [
        pytest.param("slstm", "model.safetensors", "no safetensors file|holds no model of slstm", marks=has_xlstm),
        pytest.param("pd-ssm", "model.safetensors", "holds no model of pd-ssm", marks=has_pd_ssm),
        pytest.param("rwkv-7", "model.pth", r"(holds|is) no model of (rwkv|RWKV)-7", marks=has_rwkv),
    ],
)
def test_other_files_are_refused(tmp_path, layer, file, message):
    for content in (None, b"no such file", {"weight": torch.zeros(2)}):
        if isinstance(content, bytes):
            (tmp_path / file).write_bytes(content)
        elif content is not None:
            (torch.save if layer == "rwkv-7" else save_file)(content, tmp_path / file)
        with pytest.raises(CheckpointError, match=message):
            layer_file(layer).CODE.load(tmp_path)


@pytest.mark.parametrize(
    ("lacking", "layer", "message"),
    [
        ("xlstm", "slstm", r"slstm needs xlstm, .* pip install --no-deps xlstm==2\.0\.6"),
        ("pdssm", "pd-ssm", r"git clone https://github.com/IBM/expressive-sparse-state-space-model"),
        ("einops", "pd-ssm", "pd-ssm needs einops, which is not installed: pip install einops"),
        ("rwkv", "rwkv-7", r"rwkv-7 needs rwkv, which is not installed: pip install rwkv==0\.8\.32"),
    ],
)
def test_the_package_that_is_missing_is_named(monkeypatch, lacking, layer, message):
    monkeypatch.setitem(sys.modules, "einops", sys)  # which is not looked into here
    monkeypatch.setitem(sys.modules, lacking, None)
    monkeypatch.delitem(sys.modules, "rwkv.model", raising=False)
    file = layer_file(layer)
    with pytest.raises(MissingPackage, match=message):
        file.CODE.versions() if layer == "rwkv-7" else file.build(file.plan(zoo.parity()), torch.float32)


@pytest.mark.parametrize(
    ("layer", "message"),
    [("pd-ssm", "pd-ssm computes in complex64"), ("slstm", "slstm adds up thousands of thresholds in float32")],
)
def test_other_precisions_are_refused(layer, message):
    file = layer_file(layer)
    with pytest.raises(UnsupportedFormat, match=message):
        file.build(file.plan(zoo.parity()), torch.bfloat16)


MACHINES = ("parity", "flip_flop", "ab_star", "sum_mod(5)", "group(S3)", "mod_arith(2)")


@pytest.mark.parametrize("task", MACHINES)
def test_one_unit_fires_and_says_which_state_it_is(task):
    plan = slstm.plan(zoo.from_task(task))
    machine, q = plan.machine, plan.machine.start
    for a in np.random.default_rng(0).integers(len(machine.alphabet), size=50):
        comes = machine.delta[plan.letters, q] == plan.targets
        (fired,) = np.flatnonzero(comes & (plan.letters == a))
        q = int(machine.delta[a, q])
        assert plan.targets[fired] == q


def test_units_are_bounded():
    many = MooreMachine([[*range(1, 700), 0]] * 3, range(700))
    with pytest.raises(BudgetExceeded, match=r"2,100 units, .* and 3 letters need an embedding of 8,192, and 2,048 is"):
        slstm.plan(many)


@has_xlstm
def test_what_it_puts_out_is_one_and_minus_one_exactly(exported):
    model = load(exported("sum_mod(5)", "slstm")[0])
    _, cache = model.code.read(model.model, torch.tensor([1, 4, 0, 2, 2, 3]), None)
    (state,) = model.code.state(model.model, cache)
    y, c, n, m = state[:, 0]
    assert set(y.tolist()) == {-1.0, 0.0, 1.0}
    assert torch.equal(y, c)
    assert set(n.tolist()) == {1.0}
    assert not m.any()


@has_xlstm
def test_a_call_changes_no_cache_that_it_was_given(exported):
    model = load(exported("parity", "slstm")[0])
    _, cache = model.code.read(model.model, torch.tensor([1]), None)
    before = model.code.state(model.model, cache)[0].clone()
    model.code.read(model.model, torch.tensor([1, 0]), cache)
    assert torch.equal(model.code.state(model.model, cache)[0], before)


@has_xlstm
def test_a_width_that_the_other_weights_do_not_have_makes_nothing(exported, tmp_path):
    weights = load_file(exported("parity", "slstm")[0] / "model.safetensors")
    wide = {**weights, "token_embedding.weight": torch.zeros(4, 10**5)}  # R would be 160 GB
    save_file(wide, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="are not as a xLSTMLMModel of these sizes has them"):
        slstm.CODE.load(tmp_path)


@has_pd_ssm
@pytest.mark.parametrize("part", ["A_dict", "B_re", "readout.weight"])
def test_a_changed_weight_of_pd_ssm_is_noticed(exported, part):
    model = load(exported("sum_mod(5)", "pd-ssm")[0])
    with torch.no_grad():
        weight = model.model.blocks[0].get_parameter(part)
        weight[3] = weight[4].clone()
    try:
        assert not isinstance(prove(model), Proved)
    except UnsupportedFormat as fault:
        assert "does not come back" in str(fault)  # noqa: PT017 - one of two answers


@has_pd_ssm
def test_letters_past_that_are_read_are_refused(exported):
    model = load(exported("sum_mod(5)", "pd-ssm")[0])
    with torch.no_grad():
        model.model.blocks[0].readout.weight[0, -2] = 1
    with pytest.raises(UnsupportedFormat, match="more is read of letters past"):
        prove(model)


@has_pd_ssm
def test_letters_past_that_only_a_mixture_of_the_dictionary_reads_are_refused(exported):
    """No matrix of the dictionary has its largest entry there, but the mean of two of them has."""
    model = load(exported("sum_mod(5)", "pd-ssm")[0])
    (block,) = model.model.blocks
    last = block.hidden_size - 2
    with torch.no_grad():
        block.A_dict[3] = 0
        block.A_dict[3, 1, 0] = block.A_dict[3, 2, 1:] = 200.0
        block.A_dict[3, last] = 150.0
        assert block.A_dict[3].argmax(dim=0).max() < last
        assert block.A_dict[3, :, :2].mean(dim=1).argmax() == last
    with pytest.raises(UnsupportedFormat, match="more is read of letters past"):
        prove(model)


@has_pd_ssm
def test_sizes_that_the_weights_do_not_have_make_nothing(exported, tmp_path):
    folder = exported("parity", "pd-ssm")[0]
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "blocks.0.A_dict": torch.zeros(10**6, 0, 3)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="PD has them alike"):
        layer_file("pd-ssm").CODE.load(tmp_path)


def test_rwkv_bounds_two_letters_and_spread_bytes(tmp_path):
    assert len(refuse(zoo.mod_arith(2), "qwen3-next").repeated) == 2
    assert refuse(zoo.mod_arith(2), "rwkv-7") is None
    plan = construct(zoo.shift_register(3), has_reflections=False)
    with pytest.raises(NotExpressible, match="rwkv-7 looks one letter back"):
        layer_file("rwkv-7").build(plan, torch.float32)
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
