"""Certificates by joint sets: models of several layers against all short words, counterexamples and forgeries."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, certify, check, compile_machine, falsify, zoo
from fsa2lrnn.deadline import WorkBudget
from fsa2lrnn.errors import OutOfTime, UnsupportedFormat
from fsa2lrnn.nn import BlockLayerConfig, HouseholderLayerConfig, LRNNConfig
from fsa2lrnn.nn.layers.block import BlockLayer
from fsa2lrnn.nn.layers.hard import HardChannelsConfig
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.verdicts import Refuted
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.certify import _partition, best_partition
from fsa2lrnn.verification.check import SCANS, CertificateRefused
from fsa2lrnn.verification.extraction import ModelSystem
from fsa2lrnn.verification.joint_sets import JointSets, refined
from fsa2lrnn.verification.specification import specification_of


def disturbed(machine, noise, dtype=torch.float32, seed=0):
    """A compiled cascade whose layers have noise on their weights."""
    model, drawn = compile_machine(machine, form="cascade", max_block=3), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.startswith("layers"):
                weight += noise * torch.randn(weight.shape, generator=drawn)
    return model.to(dtype)


D4 = zoo.from_task("group(D4)")


@pytest.fixture(scope="module")
def proved():
    model = disturbed(D4, 0.003)
    certificate = certify(model, D4, work=3e8, method="joint sets")
    assert certificate.method == "joint sets"
    return model, certificate


def test_a_certificate_covers_every_scan_and_shape_below_the_shortest_counterexample(proved, tmp_path):
    model, certificate = proved
    assert len(model.layers) > 1
    certificate.save(tmp_path / "certificate.json")
    accepted = check(Certificate.load(tmp_path / "certificate.json"), model)
    assert (accepted.horizon, accepted.covers.scans) == (certificate.horizon, SCANS)
    verdict = falsify(model, D4)
    assert isinstance(verdict, Refuted)
    assert len(verdict.word) // 3 < certificate.horizon < len(verdict.word)


@pytest.mark.long_cases("1-dtype0")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(3))
def test_margins_are_below_those_of_every_word(dtype, seed):
    machine = zoo.from_task(("group(D4)", "subtraction(3)", "mod_arith(2)")[seed])
    model = disturbed(machine, 0.004, dtype, seed)
    goal = specification_of(model, machine, "lacked")
    found = best_partition(model, goal, WorkBudget(2e8))
    assert found.margins
    words = torch.cartesian_prod(*[torch.arange(len(model.alphabet))] * min(5, len(found.margins)))
    states, dead = goal.path(words.numpy()), ~goal.live.any(0)
    with torch.no_grad():
        logits = model(words).double()
    wanted = torch.from_numpy(np.minimum(goal.wanted[states], goal.known - 1))[..., None]
    lead = (logits.gather(-1, wanted) - logits.scatter(-1, wanted, -torch.inf)).amin(-1)
    # a word is read up to where no continuation counts
    ends = torch.from_numpy(np.cumsum(dead[states], 1) - dead[states] > 0)
    lead = lead.where(torch.from_numpy(goal.counts[states]) & ~ends, torch.inf)
    for length, margin in enumerate(found.margins[: lead.shape[1]]):
        actual = float(lead[:, length].min())
        assert 0 < margin <= actual
        assert length > 1 or margin > 0.5 * actual or actual == np.inf


@pytest.mark.parametrize("connection", ["chain", "residual", "full-residual", "concat"])
@pytest.mark.parametrize("layer_norm", [False, "readout", True])
@pytest.mark.parametrize("token_shift", [False, True])
def test_every_connection_norm_and_shift_is_enclosed(connection, layer_norm, token_shift):
    layers = (BlockLayerConfig((2, 2), 6, 5), BlockLayerConfig((2, 2), 6, 5))
    config = LRNNConfig(
        ("a", "b"), (0, 1), layers, 4, 8, "clip", 1.2,
        layer_norm=layer_norm, token_shift=token_shift, connection=connection,
    )  # fmt: skip
    assert_margins_of_short_words(config)


@pytest.mark.parametrize(
    "layers",
    [
        (HardChannelsConfig(4, hidden=6), BlockLayerConfig((3, 1), 6, 5)),
        (HouseholderLayerConfig(2, 2, 6, 5, 2, True), HouseholderLayerConfig(2, 2, 6, 5, 2)),
    ],
)
@pytest.mark.parametrize("rule", ["paper", "none", "onehot"])
def test_every_layer_is_enclosed(layers, rule):
    sizes = {len(set(layer.block_sizes)) for layer in layers if isinstance(layer, BlockLayerConfig)}
    if rule != "paper" or sizes <= {1}:
        assert_margins_of_short_words(LRNNConfig(("a", "b"), (0, 1), layers, 4, 8, rule, 1.2))


def assert_margins_of_short_words(config):
    """Compare a random model's margins in float64 with those of a partition with a node for each word."""
    torch.manual_seed(1)
    model = LRNN(config).double()
    words = torch.cartesian_prod(*[torch.arange(2)] * 3)
    with torch.no_grad():
        logits = model(words)
    outputs = logits.argmax(-1)
    machine = tree_of(outputs, words)
    goal = specification_of(model, machine)
    sets = JointSets(model, goal, _partition(model, goal, 1e9, 3, WorkBudget(1e9)))
    lead = (logits.amax(-1) - logits.amin(-1)).amin(0)
    for margin, actual in zip(islice(sets.margins(), 3), lead.tolist(), strict=True):
        assert 0 < margin <= actual
        assert margin > 0.99 * actual  # single words, in float64


def tree_of(outputs, words):
    """The machine of all words of up to 3 letters, whose later outputs are those of the last prefix in the tree."""
    numbers, table = {(): 0}, [0]
    for word, out in zip(words.tolist(), outputs.tolist(), strict=True):
        for k in range(1, 4):
            if tuple(word[:k]) not in numbers:
                numbers[tuple(word[:k])] = len(table)
                table.append(out[k - 1])
    delta = [[numbers.get((*word, a), numbers[word]) for word in numbers] for a in (0, 1)]
    return MooreMachine(delta, table, 0, ["a", "b"])


@pytest.mark.parametrize(("change", "reason"), [
    ({"horizon": 1 << 10}, "margins for a certified length of"),
    ({"horizon": None}, "bounds no margins of these"),
    (lambda c: {"horizon": c.horizon + 1, "margins": np.append(c.margins, 1e-9)}, "a margin of 1e-09 is claimed"),
    (lambda c: {"margins": c.margins * 2}, "at length 1 a margin"),
    (lambda c: {"margins": np.full_like(c.margins, np.nan)}, "a margin of nan is claimed"),
    (lambda c: {"margins": c.margins * 0}, "a margin of 0 is claimed"),
    ({"scans": ("blelloch",)}, "blelloch: joint sets are for"),
    (lambda c: {"partition": c.partition[:-1]}, "one row is needed for each letter"),
    (lambda c: {"partition": c.partition.astype(np.float64)}, "one row is needed for each letter"),
    (lambda c: {"partition": np.zeros_like(c.partition)}, "stands for several states"),
    (lambda c: {"partition": np.full_like(c.partition, 1 << 40)}, "leads from node 0 to"),
    (lambda c: {"partition": np.full_like(c.partition, -1)}, "leads from node 0 to -1"),
    (lambda c: {"partition": np.zeros((len(c.partition), 1 << 15), np.int64)}, "nodes: 1 to"),
    ({"dtype": "float64"}, "the certificate is for float64"),
    ({"sha256": "0" * 64}, "is of a model with SHA-256"),
    ({"machine": MooreMachine(D4.delta, D4.outputs[::-1], D4.start, D4.alphabet)}, "at length"),
])  # fmt: skip
def test_forgeries_are_refused(proved, change, reason):
    model, certificate = proved
    with pytest.raises((CertificateRefused, UnsupportedFormat), match=reason):
        check(replace(certificate, **(change(certificate) if callable(change) else change)), model)


def test_a_check_is_bounded_before_it_begins(proved):
    model, certificate = proved
    with pytest.raises(CertificateRefused, match="operations, its bound is 1,000: give a larger `work`"):
        check(certificate, model, work=1e3)


def test_other_methods_and_fields_are_refused(proved):
    _, certificate = proved
    for change in ({"method": "enumeration"}, {"method": "sets"}, {"partition": None}):
        with pytest.raises(UnsupportedFormat, match="if, and only if"):
            replace(certificate, **change)
    with pytest.raises(UnsupportedFormat, match=r"slack = 1e-06: a tolerance for tables"):
        replace(certificate, slack=1e-6)
    value = certificate.to_json()
    assert not {"tube", "slack"} & set(value)
    with pytest.raises(UnsupportedFormat, match="slack: the method 'joint sets' has none"):
        Certificate.from_json({**value, "slack": 0})


def test_a_token_shift_needs_nodes_of_one_last_letter():
    model = disturbed(D4, 0.001)
    goal = specification_of(model, D4)
    assert model.config.token_shift
    assert goal.start == 0
    assert (refined(goal.delta, goal, False)[0] >= 0).all()
    with pytest.raises(CertificateRefused, match="or last letters"):
        JointSets(model, goal, goal.delta)


@pytest.mark.long
def test_the_longer_of_both_methods_is_chosen(monkeypatch):
    monkeypatch.setattr("fsa2lrnn.verification.certify._STEPS", 300)
    model = disturbed(D4, 0.003)
    sets = certify(model, D4, work=3e8, method="joint sets").horizon
    assert certify(model, D4, work=3e8).horizon == sets
    model = disturbed(D4, 0.03)
    assert certify(model, D4, work=1e8, method="joint sets").horizon < certify(model, D4, work=1e8).horizon
    assert certify(disturbed(D4, 3.0), D4, method="joint sets").horizon in (0, 1)
    with pytest.raises(UnsupportedFormat, match="method 'sets' is not known"):
        certify(model, D4, method="sets")
    with pytest.raises(UnsupportedFormat, match="tables are of one layer"):
        certify(switched(compile_machine(D4, form="onehot")), D4, method="joint sets")


def test_a_time_limit_ends_the_search_with_what_is_proved(monkeypatch):
    def late(*_):
        raise OutOfTime("late")

    model = disturbed(D4, 0.001)
    monkeypatch.setattr(ModelSystem, "fan", late)
    certificate = certify(model, D4, method="joint sets")
    assert certificate.horizon == 0
    assert check(certificate, model).horizon == 0


def test_models_that_are_not_bounded_are_left_to_enumeration():
    machine = zoo.parity()
    model = compile_machine(machine, layout="index")
    goal = specification_of(model, machine)
    assert certify(model, machine).method == "enumeration"
    with pytest.raises(UnsupportedFormat, match="a layer's own"):
        best_partition(model, goal, WorkBudget(1e8))
    with pytest.raises(UnsupportedFormat, match="a layer's own"):
        JointSets(model, goal, np.array(goal.delta))
    model = disturbed(D4, 0.001)
    model.layers[0].__class__ = type("Own", (BlockLayer,), {})
    goal = specification_of(model, D4)
    with pytest.raises(UnsupportedFormat, match="Own: bounds of user-defined layers are tested for exact inputs only"):
        JointSets(model, goal, goal.delta)


def test_words_of_which_no_continuation_counts_end_the_proof():
    machine = MooreMachine([[1, 2, 3, 3]], ["x", "y", "z", "dead"])
    model = disturbed(machine, 0.01)
    certificate = certify(model, machine, method="joint sets", ignore=("dead",))
    assert (certificate.horizon, len(certificate.margins)) == (None, 2)
    assert check(certificate, model, ignore=("dead",)).horizon is None
    with pytest.raises(CertificateRefused, match="claims less than was asked"):
        check(certificate, model)


def test_an_output_that_counts_and_the_model_lacks_has_no_margin():
    model = disturbed(MooreMachine([[1, 0]], ["x", "y"]), 0.0)
    lacking = MooreMachine([[1, 2, 0]], ["x", "y", "z"], 0, model.alphabet)
    goal = specification_of(model, lacking)
    first, second = islice(JointSets(model, goal, goal.delta).margins(), 2)
    assert (first > 0, second) == (True, -np.inf)


@pytest.mark.parametrize("scale", [1.0, 1e25])
def test_a_single_output_is_refused_where_its_logit_may_overflow(scale):
    single = MooreMachine([[0]], ["x"])
    model = disturbed(single, 0.0)
    with torch.no_grad():
        for weight in model.readout.parameters():
            weight.fill_(scale)
    goal = specification_of(model, single)
    margins = JointSets(model, goal, goal.delta).margins()
    if scale == 1:
        assert next(margins) > 0
    else:
        with pytest.raises(UnsupportedFormat, match=r"^the read-out: .* sums of the terms' sizes, up to 8\.51e\+37"):
            next(margins)


def test_nodes_of_several_states_are_refused_whatever_their_letters():
    goal = specification_of(disturbed(D4, 0.0), D4)
    with pytest.raises(CertificateRefused, match="stands for several states"):
        refined(np.zeros_like(goal.delta), goal, False)


@pytest.mark.parametrize("is_before_layer", [False, True], ids=["before the read-out", "before a layer of maps"])
def test_means_whose_squares_overflow_are_refused_by_name(is_before_layer):
    """Parity by LayerNorm of numbers near 2^65, of letters or of states: a run meets NaN after some words."""
    near, maps = 2.0**65 * torch.tensor([[1.0, 1.1], [1.1, 1.0]]), torch.stack([torch.eye(2), torch.eye(2).flip(0)])
    rule, norm = ("onehot", True) if is_before_layer else ("none", "readout")
    layer = BlockLayerConfig((2,), 2, 2)
    model = LRNN(LRNNConfig(zoo.parity().alphabet, (False, True), (layer,), 2, 2, rule, layer_norm=norm))
    gates = {"transition": {"W1": maps[int(is_before_layer)], "W2": maps.flatten(1).T}}
    embedding, x0 = (near, torch.eye(2)[:1]) if is_before_layer else (torch.eye(2), near[1:])
    with torch.no_grad():
        model.write(embedding, [(x0, gates)], {"W1": torch.eye(2), "W2": torch.eye(2)})
    at = "layers.0" if is_before_layer else "the read-out"
    with pytest.raises(
        UnsupportedFormat, match=f"^LayerNorm before {at}: .* up to 4.06e\\+19 in torch.float32; .*4 n M²"
    ):
        certify(model, zoo.parity(), work=2e7, method="joint sets")
