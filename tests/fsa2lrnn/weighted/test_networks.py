"""Weighted automata as networks and back: exact values, equality over the reals, bounds on rounding."""

import re
from fractions import Fraction
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fsa2lrnn
from fsa2lrnn import LRNN, Readout, WeightedAutomaton, zoo
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.nn import LRNNConfig, layer_named
from fsa2lrnn.nn.layers.base import Shape
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.weighted import EqualFunctions, SeparatingWord
from fsa2lrnn.weighted.networks import compile_machine, linear_readout, prove_equivalent, rounding_bound
from tests.fsa2lrnn.weighted.test_automaton import automata


def affine(seed, letters=2, heads=2, size=2, outputs=2, scale=0.4, dtype=torch.float32):
    """A model with shifts and a bias."""
    torch.manual_seed(seed)
    A, v = scale * torch.randn(letters, heads, size, size), torch.randn(letters, heads, size)
    readout = Readout.linear(torch.randn(outputs, heads * size), torch.randn(outputs))
    tables = [A, v, torch.randn(heads, size)]
    readout = Readout(*(part.to(dtype) for part in list(vars(readout).values())[:4]))
    return LRNN.from_tables(*(part.to(dtype) for part in tables), readout)


def logits(model, word):
    if not word:
        return model.initial_logits().double().tolist()
    return model(torch.tensor([word]), "sequential")[0, -1].double().tolist()


@given(automata(3, outputs=("x", "y")))
def test_a_compiled_automaton_is_read_back(w):
    whole = 6 * w  # entries of halves and thirds are not all floats
    model = compile_machine(whole)
    assert model.outputs == ("x", "y")
    for word in product(range(2), repeat=2):
        assert logits(model, word) == pytest.approx([float(x) for x in whole(["ab"[a] for a in word])], abs=1e-12)
    back = WeightedAutomaton.from_model(model)
    is_exact = all(x.denominator in (1, 2) for A in whole.transitions for row in A for x in row)
    assert isinstance(prove_equivalent(back, model), EqualFunctions)
    if is_exact:
        assert prove_equivalent(model, whole).check().startswith("equal")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shifts_and_biases_are_a_state_that_is_always_1(dtype):
    model = affine(0, dtype=dtype)
    w = WeightedAutomaton.from_model(model)
    assert w.n_states == 5
    again = compile_machine(w, dtype)
    assert (again.layers[0].block_sizes, again.dtype) == ((2, 2), dtype)
    assert prove_equivalent(again, model).check().startswith("equal")
    for word in product(range(2), repeat=3):
        assert [float(x) for x in w(word)] == pytest.approx(logits(model, word), rel=1e-4)
    other = affine(0, dtype=dtype)
    with torch.no_grad():  # the value of one letter changes in its last bit
        weights = other.layers[0].value.weights.W2
        weights[1, 1] = torch.nextafter(weights[1, 1], torch.tensor(9.0, dtype=dtype))
    verdict = prove_equivalent(model, other)
    assert isinstance(verdict, SeparatingWord)
    assert verdict.word == (1,)
    assert verdict.check().startswith("separated")


def test_a_machine_is_the_indicators_of_its_outputs():
    machine = zoo.sum_mod(5)
    model = compile_machine(WeightedAutomaton.from_machine(machine))
    assert isinstance(prove_equivalent(model, machine), EqualFunctions)
    assert model.transduce("143") == machine.transduce("143")


def test_unequal_blocks_are_padded():
    block, two = [[0.5]], [[0, 1], [1, 0]]
    w = WeightedAutomaton("a", [1], [block], [1]) + WeightedAutomaton("a", [2], [block], [1])
    w += WeightedAutomaton("a", [1, 0], [two], [1, 3]) + WeightedAutomaton("a", [1, 0], [two], [1, 3])
    model = compile_machine(w)
    assert model.layers[0].block_sizes == (2, 2, 2, 2)
    assert prove_equivalent(model, w).check().startswith("equal")


def test_functions_without_states_compile():
    for w in (WeightedAutomaton("a", [], [[]], []), WeightedAutomaton("a", [1], [[[1]]], [3])):
        model = compile_machine(w)
        assert logits(model, [0]) == logits(model, []) == [float(w(""))]
        assert isinstance(prove_equivalent(model, w), EqualFunctions)
        assert rounding_bound(w).bound < 1e-14


@given(st.integers(0, 10**6), st.sampled_from([torch.float32, torch.float64]))
def test_the_bound_on_rounding_holds(seed, dtype):
    model = affine(seed, scale=0.25 if seed % 2 else 0.6, dtype=dtype)
    w = WeightedAutomaton.from_model(model)
    found = rounding_bound(model, length=6)
    words = torch.randint(2, (20, 6), generator=torch.Generator().manual_seed(seed))
    values = model(words, "sequential")[:, -1].double()
    for word, value in zip(words.tolist(), values.tolist(), strict=True):
        assert max(abs(Fraction(x) - y) for x, y in zip(value, w(word), strict=True)) <= found.bound
    if seed % 2 == 0 or found.rate >= 0.9:
        return
    every = rounding_bound(model)
    assert (every.length, every.bound >= found.bound * 0.999) == (None, True)


def test_weights_that_are_rounded_count():
    thirds = WeightedAutomaton("a", ["1/3"], [[["1/3"]]], [1])
    for dtype, least in ((torch.float64, 1e-17), (torch.float32, 1e-9)):
        model, found = compile_machine(thirds, dtype), rounding_bound(thirds, dtype)
        error = max(abs(Fraction(logits(model, [0] * k)[0]) - thirds("a" * k)) for k in range(5))
        assert least < error <= found.bound < 1e4 * least
    assert re.fullmatch(
        r"within .* every word of every length .*float64.* at most 0.3333 times\)", str(rounding_bound(thirds))
    )
    long = WeightedAutomaton("a", [Fraction(3**900, 5**400)], [[[Fraction(7**500, 11**500)]]], [Fraction(1, 3**900)])
    assert abs(Fraction(logits(compile_machine(long), [0] * 3)[0]) - long("aaa")) <= rounding_bound(long).bound < 1e-150
    growing = WeightedAutomaton("a", [1], [[[2]]], [1])
    with pytest.raises(NotExact, match="a letter changes differences up to 2 times: give a length"):
        rounding_bound(growing)
    assert "on words of up to 9 letters" in str(rounding_bound(growing, length=9))
    with pytest.raises(NotExact, match="give a length, or a shorter one"):
        rounding_bound(growing, length=2_000)


@pytest.mark.parametrize("name", ["block", "s4", "index"])
def test_layers_without_a_linear_read_out_are_refused(name):
    if name == "index":
        model = fsa2lrnn.compile_machine(zoo.parity(), layout="index")
    else:
        layer = layer_named(name).Config.of_shape(Shape(2, 2), {})
        model = LRNN(LRNNConfig(("a", "b"), (0, 1), (layer,), embedding_dim=4))
    with pytest.raises((NotExpressible, UnsupportedFormat), match=r"is a ReLU without|only one layer with tables"):
        WeightedAutomaton.from_model(model)


def test_what_is_not_linear_is_named():
    model = fsa2lrnn.compile_machine(zoo.parity())
    with pytest.raises(NotExpressible, match=r"hidden unit 0 is a ReLU without its negative"):
        WeightedAutomaton.from_model(model)
    eye, zero = torch.eye(2), torch.zeros(2)
    with pytest.raises(NotExpressible, match="LayerNorm"):
        linear_readout(Readout(eye, zero, eye, zero, zero, zero))
    constant = Readout(
        torch.tensor([[0.0, 0.0], [1.0, 2.0]]), torch.tensor([3.0, 0]), torch.tensor([[2.0, 0]]), zero[:1]
    )
    W, b = linear_readout(constant)
    assert (W.tolist(), b.tolist()) == ([[0, 0]], [6])
    with pytest.raises(UnsupportedFormat, match=r"float16 is not offered"):
        compile_machine(WeightedAutomaton("a", [1], [[[1]]], [1]), torch.float16)
    for weight, dtype in ((10**400, torch.float64), (1e300, torch.float32)):
        with pytest.raises(NotExact, match="beyond the largest number"):
            compile_machine(WeightedAutomaton("a", [weight], [[[1]]], [1]), dtype)


@settings(max_examples=20)
@given(machines(4, 2), st.sampled_from([torch.float64, torch.float32]))
def test_indicators_are_computed_without_rounding(machine, dtype):
    w = WeightedAutomaton.from_machine(machine)
    found = rounding_bound(w, dtype)
    assert (found.bound, found.length) == (0, None)
    word = [0, len(machine.alphabet) - 1] * 50
    assert logits(compile_machine(w, dtype), word) == [float(x) for x in w([machine.alphabet[a] for a in word])]


def test_what_permutes_and_what_contracts_are_bounded_together():
    """No norm contracts the sum; each part has a bound of its own."""
    swap = WeightedAutomaton("ab", [1, 0], [[[0, 1], [1, 0]], [[1, 0], [0, -1]]], [3, 0.5])
    third = WeightedAutomaton("ab", [1], [[["1/3"]], [["-1/5"]]], [7])
    found = rounding_bound(swap + third)
    assert found.length is None
    assert 0 < found.bound < 1e-13
    word = "abbab" * 60
    model = compile_machine(swap + third)
    assert abs(Fraction(logits(model, ["ab".index(a) for a in word])[0]) - (swap + third)(word)) <= found.bound
    assert rounding_bound(swap).bound == rounding_bound(2.0**-40 * swap).bound == 0
    # Integers that grow are exact until 2⁵³ units; a step further each may be rounded.
    double = WeightedAutomaton("a", [1], [[[3]]], [1])
    assert rounding_bound(double, length=31).bound == 0 < rounding_bound(double, length=40).bound
    assert Fraction(logits(compile_machine(double), [0] * 31)[0]) == 3**31
    with pytest.raises(NotExact, match="give a length"):  # 1/3 + 2/3 is 1 in exact arithmetic alone
        rounding_bound(WeightedAutomaton("a", [1, 1], [[["1/3", "2/3"], ["2/3", "1/3"]]], [1, 1]))
