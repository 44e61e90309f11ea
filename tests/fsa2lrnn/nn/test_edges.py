"""Single conditions of what proofs rest on, at their edges."""

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, Proved, compile_machine, prove_equivalent
from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.compile.integer_tables import ReluGate
from fsa2lrnn.compile.recurrence import compile_recurrence
from fsa2lrnn.compile.stack import GatedLayer, GatedStack
from fsa2lrnn.errors import InvalidMachine, NotExact, UnsupportedFormat
from fsa2lrnn.families.recheck.polynomials import _cyclotomic
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig, check_layers
from fsa2lrnn.nn.layers import Shape, layer_named
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers, floor_of
from fsa2lrnn.verdicts import EVERY
from fsa2lrnn.verification.walk import RoundingWatch

from .broken_layers import Toy, broken
from .test_layer_checks import model_of

F32 = FloatFormat.of("float32")
PARITY = MooreMachine([[1, 0], [0, 1]], [0, 1], 0, "ab")


def test_a_rule_without_an_argument_makes_no_layer_exact():
    model = compile_machine(PARITY)
    layer = model.recurrences[0]
    u = model.embedding(torch.tensor([0, 1]))
    assert layer.is_exact(u, 2.0**24)
    layer.rule = "paper"
    assert not layer.is_exact(u, 2.0**24)


def test_every_layer_has_to_start_exactly():
    layer = BlockLayerConfig((2,), 2, 2)
    model = LRNN(LRNNConfig("ab", (0, 1), (layer, layer), normalisation="none"))
    with torch.no_grad():
        for one in model.recurrences:
            one.x0.copy_(torch.tensor([[1.0, 0.0]]))
        assert RoundingWatch(model).is_exact
        model.recurrences[1].x0.copy_(torch.tensor([[0.3, 0.0]]))
        assert not RoundingWatch(model).is_exact


def test_index_tables_are_proved_for_every_call():
    verdict = prove_equivalent(compile_machine(PARITY, layout="index"), PARITY)
    assert isinstance(verdict, Proved)
    assert verdict.covers.shapes == EVERY


def test_bounds_of_steps_are_not_those_of_another_reading():
    """A layer whose output is read, not its state, declares no tables."""
    config = layer_named("gated_deltanet").Config.of_shape(Shape(1, 2), {"reads": "gated"})
    model = LRNN(LRNNConfig("ab", (0, 1), (config,), normalisation="none"))
    with pytest.raises(UnsupportedFormat):
        model.recurrences[0].rounded_tables(RoundedNumbers.exact(model.embedding(torch.tensor([0, 1])).detach()))


def test_the_least_divisor_is_twice_the_smallest_normal_number():
    assert floor_of(2 * F32.tiny, F32) == 2 * F32.tiny
    assert floor_of(1.9 * F32.tiny, F32) == 0


def test_positive_parts_of_what_is_around_zero_keep_their_bound():
    x = RoundedNumbers(torch.tensor([0.0, -1.0]).double(), torch.tensor([1.0, 0.5]).double(), F32)
    assert x.relu().off.tolist() == [1.0, 0.0]


def test_a_read_out_of_index_tables_gives_no_more_outputs_than_there_are():
    recurrence = compile_recurrence(PARITY, layout="index")
    with pytest.raises(InvalidMachine, match="gives 2, but states have 2 entries and there are 1 outputs"):
        type(recurrence)(recurrence.alphabet, (0,), recurrence.tables, recurrence.readout)


def test_large_negative_states_are_not_exact_for_gates_above():
    below = GatedLayer(
        ReluGate(np.zeros((1, 1), np.int64), np.zeros(1, np.int64), np.array([[0]]), np.array([1])),
        ReluGate(np.zeros((1, 1), np.int64), np.zeros(1, np.int64), np.array([[0]]), np.array([0])),
        np.array([[-(2**52)]]), (1,),
    )  # fmt: skip
    wide = ReluGate(np.array([[0, 4]]), np.zeros(1, np.int64), np.array([[1]]), np.array([0]))
    above = GatedLayer(wide, wide, np.array([[0]]), (1,))
    stack = GatedStack(np.array([0]), (below, above), False)
    with pytest.raises(NotExact):
        stack.step(stack.initial()[None])


@pytest.mark.parametrize(
    ("m", "coefficients"), [(6, [1, -1, 1]), (12, [1, 0, -1, 0, 1]), (30, [1, 1, 0, -1, -1, -1, 0, 1, 1])]
)
def test_cyclotomic_polynomials(m, coefficients):
    assert _cyclotomic(m) == coefficients


@pytest.mark.parametrize(("dtype", "is_known"), [("float16", False), ("float32", True)])
def test_a_zero_key_has_no_bound_where_the_format_lacks_the_least_norm(dtype, is_known):
    for size in (0.0, 2.0**-17):  # the square of the latter is 0 in float16
        key = RoundedNumbers(torch.full((1, 2), size).double(), torch.zeros(1, 2).double(), FloatFormat.of(dtype))
        assert bool(key.normalised().off.isfinite().all()) == is_known


@pytest.mark.parametrize("form", ["hadamard", "sparse"])
def test_products_that_are_not_tables_are_bounded_beside_the_rounding_of_the_tables(form):
    kind = FloatFormat(2.0**-8, 2.0**-900, 2.0**60)
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    config = layer_named("slice").Config.of_shape(Shape(1, 4), {"form": form})
    layer = LRNN(LRNNConfig("abc", (0, 1), (config,), normalisation="none")).double().recurrences[0]
    inputs = layer.vf_A.shape[0] - 1
    u = torch.randn(5, inputs).double()
    bounds = [layer.rounded_tables(RoundedNumbers(u, off, kind))[0].off for off in (torch.zeros_like(u), u.abs() / 4)]
    narrow, wide = (off[..., :4, :4] for off in bounds)  # off the last column, which is the start
    eye = torch.eye(4, dtype=torch.bool)
    # The rounding of the tables counts, which grows with the bounds of the inputs, and that of the sum.
    assert (wide - narrow)[..., ~eye].max() > 0.1 * layer.vf_A.abs().max()
    assert narrow[..., ~eye].max() > 4 * kind.u * layer.vf_A.abs().max()


def test_an_error_on_short_words_is_the_layers_fault():
    """A layer may refuse long words by an error of this library, but reads up to three letters."""

    def forward(self, u, state, method="auto"):
        if u.shape[1] > 1:
            raise UnsupportedFormat("one letter at a time")
        return Toy.forward(self, u, state, method)

    with pytest.raises(UnsupportedFormat, match="one letter at a time"):
        check_layers(model_of(broken("OneLetter", forward=forward)))


@pytest.mark.parametrize("name", ["kda", "gdn2", "rwkv7", "gated_deltanet"])
def test_a_decay_that_is_no_number_gives_outputs_that_are_none(name):
    """A diverged model is told from an error of the program."""
    config = layer_named(name).Config.of_shape(Shape(1, 4), {"reads": "gated"})
    model = LRNN(LRNNConfig("ab", (0, 1), (config,), normalisation="none"))
    with torch.no_grad():
        model.embedding.get_parameter("weight").fill_(torch.nan)
        assert model(torch.zeros(1, 20, dtype=torch.int64)).isnan().all()
