"""Networks that compute exactly, and slack of their rounding."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import event, given
from hypothesis import strategies as st

from fsa2lrnn import Proved, certify, extract, prove_equivalent, zoo
from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.compile.integer_tables import ReluGate
from fsa2lrnn.compile.lower import DTYPES, compile_machine, lower
from fsa2lrnn.compile.recurrence import DenseReadout, Recurrence
from fsa2lrnn.compile.stack import GatedLayer, GatedStack
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import LRNN, BlockLayerConfig, HouseholderLayerConfig, LRNNConfig
from fsa2lrnn.nn.gate import Gate as GateModule
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers
from fsa2lrnn.nn.switched import as_tables, switched
from fsa2lrnn.verdicts import EVERY
from fsa2lrnn.verification.certificate import slack_of
from fsa2lrnn.verification.check import CertificateRefused, check
from fsa2lrnn.verification.walk import RoundingWatch, has_one_largest
from verify.soundness.models import Drawn, model

CHANNEL_MAPS = [(1, 0), (-1, 1), (0, 0), (0, 1)]  # x, 1 − x, 0, 1
OTHERS = [(1, 1), (-1, 0), (0, 2), (2, 0)]


def is_exact_along(model, tokens):
    watch = RoundingWatch(model)
    with watch.looking():
        model(tokens, "sequential")
    return watch.is_exact


def every_letter(model):
    return torch.arange(len(model.alphabet)).repeat(2, 3)


def test_the_watch_changes_nothing_and_rounding_stays():
    model = compile_machine(zoo.sum_mod(5))
    tokens = every_letter(model)
    watch = RoundingWatch(model)
    with watch.looking():
        watched = model(tokens)
    assert torch.equal(watched, model(tokens))
    assert not any(module._forward_pre_hooks for module in model.modules())
    with pytest.raises(ZeroDivisionError), watch.looking():
        raise ZeroDivisionError
    assert not any(module._forward_pre_hooks for module in model.modules())
    model = compile_machine(zoo.sum_mod(3), normalisation="none")
    with torch.no_grad():
        model.layers[0].value[2].weight[0, 2] = 1  # letter 2 only
    watch = RoundingWatch(model)
    for tokens, expected in [([[0, 1]], True), ([[2]], False), ([[0, 1]], False)]:
        with watch.looking():
            model(torch.tensor(tokens))
        assert watch.is_exact == expected


# Each takes one hypothesis away from a model of parity.
def fractions(weights):
    """Gates whose hidden units are 1/2, and whose tables are the same."""
    weights["layers.0.transition.0.weight"] *= 0.5
    weights["layers.0.transition.2.weight"] *= 2


def a_read_out_that_rounds_by_what_it_leads(weights):
    weights["readout.0.weight"] *= 0.5
    weights["readout.2.bias"] += 100


def long_sums(weights):
    """A hidden unit that adds 512 and takes it away again, in bfloat16."""
    weights["readout.0.weight"][0] = torch.tensor([512, 512])
    weights["readout.0.bias"][0] = -512


def long_sums_in_a_gate(weights):
    weights["layers.0.value.0.weight"][0] = torch.tensor([512, 512])
    weights["layers.0.value.0.bias"][0] = -512


def columns_that_the_rule_cuts(weights):
    weights["layers.0.transition.2.weight"] *= 2


def a_start_of_one_half(weights):
    weights["layers.0.x0"] *= 0.5


def a_start_of_two(weights):
    weights["layers.0.x0"] *= 2


def a_start_at_zero(weights):
    weights["layers.0.x0"].zero_()


def a_map_that_loses_a_state(weights):
    weights["layers.0.transition.2.weight"].view(2, 2, -1)[:, 1, 1] = 0


def a_map_that_adds(weights):
    weights["layers.0.value.2.weight"][0, 0] = 1


@pytest.mark.parametrize("fault", [
    fractions, a_read_out_that_rounds_by_what_it_leads, long_sums, long_sums_in_a_gate, columns_that_the_rule_cuts,
    a_start_of_one_half, a_start_of_two, a_start_at_zero, a_map_that_loses_a_state, a_map_that_adds,
])  # fmt: skip
def test_each_hypothesis_counts(fault):
    model = compile_machine(zoo.parity(), dtype=torch.bfloat16)
    assert is_exact_along(model, every_letter(model))
    with torch.no_grad():
        fault(model.state_dict())
    assert not is_exact_along(model, every_letter(model))


def test_layer_norm_and_divided_keys_round(stacks):
    model = lower(stacks["counter"][0])
    config = LRNNConfig(**{**vars(model.config), "layer_norm": True})
    normed = LRNN(config)
    normed.load_state_dict(model.state_dict(), strict=False)
    assert RoundingWatch(model).is_exact
    assert not RoundingWatch(normed).is_exact
    config = HouseholderLayerConfig(1, 1, 1, 1, unit_keys=True)
    model = LRNN(LRNNConfig((0,), (0, 1), (config,), 1, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert not is_exact_along(model, every_letter(model))


@pytest.mark.parametrize("key", [11, 12])
@pytest.mark.parametrize("heads", [1, 2])
def test_the_products_of_each_head_of_a_householder_layer_count(key, heads):
    """(1 − 1·1)(1 − key²) = 0, a reset: the table is exact, its making in bfloat16 as long as 2 (key² − 1) ≤ 256. A
    first head that is 0 hides nothing of the second."""
    config = HouseholderLayerConfig(1, 2, 1, 1, n_heads=heads)
    model = LRNN(LRNNConfig((0,), (0, 1), (config,), 1, 1)).to(torch.bfloat16)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.layers[0].transition[2].bias.copy_(torch.tensor([1, 1] * (heads - 1) + [key, 1]))
        model.layers[0].rate[2].bias.fill_(1)
    assert is_exact_along(model, every_letter(model)) == (key == 11)


def two_channels(maps, start):
    """A stack of two channels on letters 0, 1: `maps[0:2]` are those of the lower channel by letter, `maps[2:]` of
    the upper one by letter and lower state at k, where that is 0 or 1."""
    by_letter = np.eye(2, dtype=np.int64), np.zeros(2, np.int64)
    # One unit a letter and lower state: 1 for (c, 0) at e_c − x, and for (c, 1) at e_c + x − 1.
    W1 = np.array([[1, 0, -1], [1, 0, 1], [0, 1, -1], [0, 1, 1]])
    by_both = W1, np.array([0, -1, 0, -1])
    layers = []
    for (first, bias), part, x0 in [(by_letter, maps[:2], start[0]), (by_both, maps[2:], start[1])]:
        gates = [ReluGate(first, bias, np.array([[m[i] for m in part]]), np.array([0])) for i in (0, 1)]
        layers.append(GatedLayer(*gates, np.array([[x0]]), (1,)))
    read = DenseReadout(np.array([[1, 2]]), np.array([0]), np.array([[0], [1]]), np.array([1, 0]))
    return Recurrence((0, 1), (False, True), GatedStack(np.arange(2), tuple(layers), False), read)


@given(
    st.lists(st.sampled_from(CHANNEL_MAPS * 3 + OTHERS), min_size=6, max_size=6),
    st.tuples(st.integers(0, 1), st.integers(0, 1)),
    st.sampled_from(DTYPES),
)
def test_channels_are_exact_if_all_maps_that_are_met_keep_0_and_1(maps, start, dtype):
    recurrence, words = two_channels(maps, start), list(itertools.product((0, 1), repeat=5))
    model = lower(recurrence, dtype, "none")
    met = set()
    for word in words:
        low = start[0]
        for letter in word:
            a, v = maps[letter]
            low = a * low + v
            met |= {maps[letter], maps[2 + 2 * letter + low] if low in (0, 1) else OTHERS[0]}
    expected = met <= set(CHANNEL_MAPS)
    event(f"exact: {expected}")
    assert is_exact_along(model, torch.tensor(words)) == expected
    if expected:
        tokens = torch.randint(2, (2, 700), generator=torch.Generator().manual_seed(0))
        assert torch.equal(model(tokens, "pscan"), model(tokens, "sequential"))


@pytest.mark.parametrize("p", [1e38, 1e39, 1e308])
def test_what_is_proved_for_a_large_order_is_what_runs(p):
    """A short word has its columns bounded by one method, a long one by another: both keep them."""
    machine = zoo.tomita(3)
    model = compile_machine(machine, form="cascade", max_block=3, p=p)
    word = "".join(np.random.default_rng(0).choice(["0", "1"], 1000))
    assert is_exact_along(model, every_letter(model))
    for method in ("auto", *model.methods, "letters"):
        assert model.transduce(word, method) == machine.transduce(word)


@pytest.mark.long
def test_layers_on_one_another_and_read_outs_that_lead():
    model = compile_machine(zoo.parity(), dtype=torch.bfloat16)
    with torch.no_grad():
        model.readout[0].weight *= 1 / 3
        model.readout[2].bias += 1 / 3
    assert is_exact_along(model, every_letter(model))
    assert {assert_bears_out(deep(seed)) for seed in range(1, 8)} == {True, False}


def cancelling(gate, weight):
    """Pairs of units that are alike, with weights that take away what they add up to, but for what rounds."""
    W1, b1, W2, _ = gate.weights
    m = len(b1) // 2
    with torch.no_grad():
        W1[m:], b1[m:] = W1[:m], b1[:m]
        large = weight * torch.randn(len(W2), m).to(W2)
        W2[:, :m] += large
        W2[:, m:] -= large


def deep(seed):
    """One to three layers of one-hot columns and a read-out, as they are drawn, some with sums that cancel."""
    torch.manual_seed(seed)
    draw = lambda *those: those[int(torch.randint(len(those), ()))]  # noqa: E731
    layer = BlockLayerConfig(draw((2, 3), (3,), (2, 2)), 24, 1)
    config = LRNNConfig(
        ("a", "b"), (0, 1), (layer,) * draw(1, 2, 3), embedding_dim=3, readout_hidden=24, normalisation="onehot",
        connection=draw("concat", "chain"), token_shift=draw(True, False),
    )  # fmt: skip
    model = LRNN(config).to(draw(torch.float32, torch.float64, torch.bfloat16))
    for module in model.modules():
        if isinstance(module, GateModule) and torch.rand(()) < 0.6:
            cancelling(module, float(10 ** (6 * torch.rand(()))))
    return model


def assert_bears_out(model):
    """What is proved of a model for every shape of call is what every scan puts out, in batches and cut in two."""
    machine = extract(model, at_once=1)
    verdict = prove_equivalent(model, machine)
    assert isinstance(verdict, Proved)
    if verdict.covers.shapes != EVERY:
        return False
    words = torch.randint(2, (64, 70))
    start = machine.outputs[machine.start]
    wanted = torch.tensor([[start, *machine.transduce(["ab"[a] for a in word])] for word in words.tolist()])
    with torch.no_grad():
        for method, batch in itertools.product(("auto", "letters", *verdict.scans), (1, 3, 64)):
            some = words[:batch]
            assert torch.equal(model(some, method, empty_word=True).argmax(-1), wanted[:batch])
            first, state = model.advance(some[:, :33], model.initial_state(batch), method)
            then = model.advance(some[:, 33:], state, method)[0]
            assert torch.equal(torch.cat([first, then], 1).argmax(-1), wanted[:batch, 1:])
    return True


@pytest.mark.slow
def test_what_is_proved_of_many_layers_on_one_another_is_what_runs():
    assert 50 < sum(assert_bears_out(deep(seed)) for seed in range(8, 208)) < 150


@pytest.mark.parametrize("where", ["layers.0.transition", "layers.1.transition", "readout"])
@pytest.mark.parametrize("weight", [1e-3, 1e7])
def test_one_gate_whose_sums_cancel_is_enough(where, weight):
    """Of a cascade that is proved for every shape; by the choice of a column, or of an output, alone."""
    torch.manual_seed(3)
    layer = BlockLayerConfig((3,), 24, 1)
    sizes = {"embedding_dim": 3, "readout_hidden": 24}
    model = LRNN(LRNNConfig(("a", "b"), (0, 1), (layer,) * 2, **sizes, normalisation="onehot", connection="concat"))
    assert assert_bears_out(model)
    cancelling(model.get_submodule(where), weight)
    assert assert_bears_out(model) == (weight < 1)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("factor", [1.0, 1 / 3])
def test_no_largest_is_known_of_logits_that_are_not_finite(odd, factor):
    logits = torch.tensor([[3.0, 1.0], [odd, 1.0]])
    assert has_one_largest(RoundedNumbers.exact(logits[:1]).scaled(factor))
    assert not has_one_largest(RoundedNumbers.exact(logits).scaled(factor))
    (unbounded,) = RoundedNumbers.exact(logits[:1, :1]).linear(torch.tensor([[1e300]]), torch.zeros(1))
    assert not has_one_largest(unbounded)  # a single logit, which may be NaN


CANCELLING = Drawn("none", 3e4, True, 1e-3, False, False, 0)


def apart(made):
    """By how much A differs where a letter is read alone: the largest difference."""
    u, tables = made.first_inputs(), switched(made)
    with torch.no_grad():
        alone = torch.cat([made.recurrences[0].tables(row[None], "reference")[0] for row in u])
    return (alone - tables.A).abs().double().numpy(), 16 * 2.0**-23 * float(tables.A.abs().max())


@pytest.mark.parametrize("drawn", [CANCELLING, replace(CANCELLING, rule="paper", seed=2)])
def test_what_gates_that_cancel_can_do_is_covered(drawn):
    """16 units in the last place of the largest entry, the old guess, was exceeded many times."""
    off, guess = apart(model(drawn, zoo.sum_mod(3)))
    assert off.max() > 10 * guess
    assert (off <= slack_of(model(drawn, zoo.sum_mod(3))).A).all()


@pytest.mark.long
def test_slack_is_bounded_and_known_for_tables():
    made = model(CANCELLING, zoo.sum_mod(3))
    assert slack_of(switched(made)) == Slack(0.0, 0.0)
    assert slack_of(switched(made), 1e-3) == Slack(1e-3, 1e-3)
    assert not slack_of(as_tables(made)).A.any()
    assert np.allclose(slack_of(made, 1e-3).A - slack_of(made).A, 1e-3)
    made = model(replace(CANCELLING, weight=30.0), zoo.sum_mod(3))
    certificate = certify(made, zoo.sum_mod(3), 1)
    assert certificate.horizon > 3
    check(certificate, made)
    made = model(CANCELLING, zoo.sum_mod(3))
    of_tables = certify(switched(made), zoo.sum_mod(3), 1)
    assert of_tables.horizon > 15
    check(of_tables, switched(made))
    check(of_tables, as_tables(made))
    with pytest.raises(CertificateRefused, match=r"the output may be wrong|is claimed"):
        check(of_tables, made)
    assert certify(made, zoo.sum_mod(3), 1).horizon == 0
    made = model(replace(CANCELLING, rule="paper", weight=1e6), zoo.sum_mod(3))
    with pytest.raises(UnsupportedFormat, match=r"nothing bounds .* LRNN\.from_affine\(switched\(model\)\)"):
        slack_of(made)
    for more in (-1.0, np.nan, np.inf):
        with pytest.raises(UnsupportedFormat, match="slack = "):
            slack_of(switched(model(CANCELLING, zoo.sum_mod(3))), more)
