"""Yes, no, unknown: never yes and no at once."""

import pytest

from fsa2lrnn import zoo
from fsa2lrnn.errors import NotExpressible, UnsupportedFormat
from fsa2lrnn.extra.huggingface import LAYERS, layer_file
from fsa2lrnn.extra.huggingface.recheck import recheck
from fsa2lrnn.extra.huggingface.refuse import answer, refuse


@pytest.mark.parametrize(
    ("task", "layer", "kind"),
    [
        ("parity", "olmo-hybrid", "yes"),
        ("parity", "qwen3-next", "no"),
        ("sum_mod(5)", "qwen3-next", "no"),
        ("flip_flop", "qwen3-next", "yes"),
        ("tomita(3)", "olmo-hybrid", "yes"),
        ("sum_mod(3)", "olmo-hybrid", "yes"),
        ("group(S4)", "olmo-hybrid", "yes"),
        ("group(S4)", "qwen3-next", "no"),
        ("length_mod(29)", "olmo-hybrid", "unknown"),
        ("mod_arith(2)", "rwkv-7", "unknown"),
        ("group(S3)", "pd-ssm", "yes"),
    ],
)
def test_kinds(task, layer, kind):
    found = answer(zoo.from_task(task), layer)
    assert found.kind == kind
    assert (found.refusal is not None and found.refusal.is_of_stacks) == (kind == "no")
    assert ("certificate" in found.to_json()) == (found.refusal is not None)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("seed", range(20))
def test_no_construction_where_there_is_a_refusal(layer, seed):
    machine = zoo.random_dfa(3, 2, seed, minimal=True)
    refusal = refuse(machine, layer)
    if refusal is not None and refusal.is_of_stacks:
        with pytest.raises(NotExpressible):
            layer_file(layer).plan(machine)
    elif refusal is not None:
        found = answer(machine, layer)
        assert found.plan is None or found.plan.n_layers > 1


def test_what_one_layer_cannot_a_stack_may():
    found = answer(zoo.sum_mod(4), "olmo-hybrid")
    assert (found.kind, found.plan.n_layers) == ("yes", 3)
    assert "one layer alone can't hold it" in found.why
    assert found.to_json()["certificate"]["repeated"] == [1]


def test_a_refusal_of_one_layer_makes_no_claim_about_stacks():
    found = answer(zoo.length_mod(29), "olmo-hybrid")
    assert (found.kind, found.plan) == ("unknown", None)
    assert found.why.startswith("no stack of the known constructions was found")
    assert "one layer alone can't hold it: After" in found.why
    assert recheck(found.to_json()["certificate"]).startswith("impossible: one layer of olmo-hybrid")


def test_another_layer():
    with pytest.raises(UnsupportedFormat, match="layer 'gpt' is not known"):
        answer(zoo.parity(), "gpt")
