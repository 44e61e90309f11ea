"""Gates: written, read, and asked whether they round."""

import pytest
import torch

from fsa2lrnn.lrnn.gate import Gate, look_up


def integers(*shape):
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(sum(shape))).float()


def test_it_is_what_its_weights_say():
    gate = Gate(3, 4, 2)
    W1, b1, W2, b2 = gate.weights
    z = torch.randn(5, 3)
    torch.testing.assert_close(gate(z), (z @ W1.T + b1).relu() @ W2.T + b2)
    assert torch.equal(gate.hidden(z), torch.relu(gate[0](z)))
    assert list(gate.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert gate.n_hidden == 4


def test_what_is_not_given_is_zero():
    gate = Gate(2, 3, 4)
    gate.set({"b2": torch.arange(4.0)})
    assert gate(torch.randn(2, 2)).tolist() == [[0.0, 1.0, 2.0, 3.0]] * 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_table_is_looked_up_bit_for_bit(dtype):
    table = torch.randn(5, 2, 3).to(dtype)
    gate = Gate(5, 5, 6).to(dtype)
    gate.set(look_up(table))
    assert torch.equal(gate(torch.eye(5, dtype=dtype)), table.flatten(1))


def test_a_misfit_is_named():
    with pytest.raises(ValueError, match=r"W1 has shape \(5, 5\), but this gate's is \(3, 2\)"):
        Gate(2, 3, 4).set({"W1": torch.eye(5)})
    with pytest.raises(ValueError, match="W3: a gate has W1, b1, W2, b2"):
        Gate(2, 3, 4).set({"W3": torch.eye(5)})


def test_a_look_up_has_no_sum_of_two_terms():
    def gate(**changes):
        found = Gate(3, 3, 4)
        found.set({**look_up(torch.randn(3, 4)), **changes})
        return found

    assert gate().is_lookup(torch.eye(3))
    assert gate().is_lookup(torch.zeros(1, 3))
    assert not gate().is_lookup(torch.ones(1, 3))  # two inputs
    assert not gate(W1=torch.ones(3, 3)).is_lookup(torch.eye(3))  # two units
    for bias in ("b1", "b2"):
        assert not gate(**{bias: torch.ones(len(getattr(gate().weights, bias)))}).is_lookup(torch.eye(3))


def test_integers_within_the_limit_are_exact_and_nothing_else_is():
    gate = Gate(4, 3, 2)
    parts = {"W1": integers(3, 4), "b1": integers(3), "W2": integers(2, 3), "b2": integers(2)}
    z = integers(6, 4)
    gate.set(parts)
    assert gate.is_exact(z, 2**24)
    assert not gate.is_exact(z, 2)  # the sums go further
    assert not gate.is_exact(z + 0.5, 2**24)
    for name, part in parts.items():
        gate.set({**parts, name: part + 0.25})
        assert not gate.is_exact(z, 2**24), name


def test_terms_that_cancel_count_with_their_sizes():
    """2²⁴ + 1 − 2²⁴ is 1 or 0 in float32, as the order goes: the sum is small, its terms are not."""
    gate = Gate(3, 1, 1)
    gate.set({"W1": torch.tensor([[2.0**24, 1.0, -(2.0**24)]]), "W2": torch.ones(1, 1)})
    assert gate(torch.ones(3)).item() in (0.0, 1.0)
    assert not gate.is_exact(torch.ones(1, 3), 2.0**24)
    assert gate.is_exact(torch.eye(3), 2.0**24)
