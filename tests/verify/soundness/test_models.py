"""The drawn models compute their machine, look-ups do so without sums, and cancelling gates give unlike tables."""

from dataclasses import replace

import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.lrnn.switched import switched, table_error
from verify.soundness.models import RULES, Drawn, model

PLAIN = Drawn("none", 1e3, True, 0.0, False, True, 0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("layer_norm", [False, True])
def test_without_noise_a_model_computes_its_machine_for_a_while(rule, layer_norm):
    machine = zoo.sum_mod(3)
    word = "122011"
    for cancelling in (False, True):
        made = model(replace(PLAIN, rule=rule, layer_norm=layer_norm, cancelling=cancelling), machine)
        assert made.transduce(word) == machine.transduce(word)


@pytest.mark.parametrize("rule", RULES)
def test_the_weight_changes_tables_by_rounding_alone(rule):
    plain, single = (model(replace(PLAIN, rule=rule, double=double), zoo.parity()) for double in (True, False))
    large = model(replace(PLAIN, rule=rule, weight=1e6), zoo.parity())
    torch.testing.assert_close(switched(large).A, switched(plain).A, atol=1e-6, rtol=0)
    assert single.dtype == torch.float32
    assert table_error(large)[0].max() > 10 * table_error(plain)[0].max()


def test_look_ups_have_no_sums():
    made = model(replace(PLAIN, cancelling=False), zoo.parity())
    assert not table_error(made)[0].any()
