"""The search among cascades: what it meets, what it costs, what cannot be had, and how a cascade is drawn."""

import numpy as np
import pytest
from hypothesis import given

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.cascade import decomposition
from fsa2lrnn.cascade.cascade import LAYER_PRICE, Cost
from fsa2lrnn.cascade.decomposition import CascadeSearch, NoCascade, decompose
from fsa2lrnn.errors import NotExact, NotExpressible
from fsa2lrnn.testing.strategies import machines


def sizes(name, **options):
    return decompose(zoo.from_task(name), **options).cascade.block_sizes


def relabelled(machine, rng):
    """The machine with its states renumbered at random."""
    new = rng.permutation(machine.n_states)
    old = np.argsort(new)
    return MooreMachine(
        new[machine.delta[:, old]], [machine.outputs[q] for q in old], int(new[machine.start]), machine.alphabet
    )


@pytest.mark.parametrize(
    ("name", "layers"), [("parity", 1), ("even_pair(5)", 3), *((f"dyck(2, {d})", d + 1) for d in (3, 4, 5))]
)
def test_channels_do_in_as_few_layers_as_the_references_have(name, layers):
    found = sizes(name)
    assert {block for layer in found for block in layer} == {1}
    assert len(found) <= layers


@pytest.mark.long
def test_groups_and_mod_arith_are_split_as_the_paper_does():
    assert [sorted(layer) for layer in sizes("group(S5)")] == [[1, 5, 5, 5]]
    assert all(decompose(zoo.tomita(i), max_block=3).cascade.max_block <= 3 for i in range(1, 8))
    assert sizes("group(A5)") == ((5, 5, 5),)
    assert sizes("group(Z60)") == ((5, 4, 3),)
    found = decompose(zoo.mod_arith(5, "eager"), max_block=8, token_shift=False)
    assert found.cascade.n_layers == 3
    assert found.cascade.max_block <= 5
    cascade = decompose(zoo.mod_arith(5, "register"), max_block=8, token_shift=False).cascade
    assert cascade.block_sizes == ((3, 4), (5,))  # zero or not and before; the unit; the value, which is the output
    assert cascade.output_reads == (2,)


@pytest.mark.long_cases("None-True")
@pytest.mark.parametrize("token_shift", [True, False])
@pytest.mark.parametrize("max_block", [4, None])
@given(machine=machines(max_states=6))
def test_cascades_run_their_machine(machine, max_block, token_shift):
    try:
        found = decompose(machine, max_block, token_shift)
    except NotExpressible:
        assert not token_shift or max_block == 4
        return
    assert max_block is None or found.cascade.max_block <= max_block
    assert found.cascade.machine == machine.minimise()
    assert found.largest_permuted >= found.bound.prime
    rng = np.random.default_rng(0)
    word = [machine.alphabet[a] for a in rng.integers(len(machine.alphabet), size=30)]
    assert found.cascade.transduce(word) == machine.transduce(word)


@pytest.mark.parametrize("name", ["mod_arith(5, completion=register)", "even_pair(5)", "dyck(2, 3)", "group(S4)"])
def test_sizes_do_not_depend_on_the_numbers_of_states(name):
    machine = zoo.from_task(name)
    plain = MooreMachine(machine.delta, machine.outputs, machine.start, machine.alphabet)
    wanted = decompose(plain)
    for seed in range(3):
        found = decompose(relabelled(plain, np.random.default_rng(seed)))
        assert [sorted(layer) for layer in found.cascade.block_sizes] == [
            sorted(layer) for layer in wanted.cascade.block_sizes
        ]


def test_candidates_and_refusals_are_explained(monkeypatch):
    with pytest.raises(NotExpressible, match=r"no cascade with blocks of at most 4 states .* order 5 on 5 states"):
        decompose(zoo.sum_mod(5), max_block=4)
    with pytest.raises(NotExpressible, match=r", without token shift, was found .* the fibre code needs"):
        decompose(zoo.dyck(2, 3), max_block=8, token_shift=False)
    with pytest.raises(NotExpressible, match=r"more than 10,000 sets"):
        decompose(zoo.random_dfa(35, 4, 0))
    found = decompose(zoo.mod_arith(5, "register"), token_shift=False)
    assert found.candidates[0].cost == found.cost
    costs = [candidate.cost for candidate in found.candidates if candidate.cost is not None]
    assert costs == sorted(costs)
    assert all(candidate.explain().startswith(candidate.how) for candidate in found.candidates)
    monkeypatch.setattr(decomposition, "MAX_CHAINS", 1)
    assert any("more than 1 chains" in candidate.why_not for candidate in decompose(zoo.even_pair(5)).candidates)

    def refused(_):
        raise NotExact("sums beyond 256")

    kept = CascadeSearch(zoo.even_pair(5), units=refused)
    for _ in range(2):
        with pytest.raises(NoCascade, match="sums beyond 256"):
            kept.cheapest()


def test_the_total_is_the_sum_of_its_parts():
    large, deep = Cost.of(((12,),), units=14), Cost.of(((1,),) * 12, units=40)
    assert large < deep
    assert large.explain() == f"{large.total:,} = Σb³ 1,728 + 14 gate units + {LAYER_PRICE} × 1 layer"
    cost = Cost.of(((5, 1), (3,)), units=7)
    assert (cost.scan, cost.step, cost.units, cost.layers) == (125 + 1 + 27, 25 + 1 + 9, 7, 2)
    assert cost.total == cost.scan + cost.units + 2 * LAYER_PRICE
