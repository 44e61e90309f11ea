from fsa2lrnn.decomposition.cascade import LAYER_PRICE, Cost


def test_the_total_is_the_sum_of_its_parts():
    cost = Cost.of(((5, 1), (3,)), units=7)
    assert (cost.scan, cost.step, cost.units, cost.layers) == (125 + 1 + 27, 25 + 1 + 9, 7, 2)
    assert cost.total == cost.scan + cost.units + 2 * LAYER_PRICE


def test_costs_are_compared_by_their_totals():
    large, deep = Cost.of(((12,),), units=14), Cost.of(((1,),) * 12, units=40)
    assert large < deep
    assert large.explain() == f"{large.total:,} = Σb³ 1,728 + 14 gate units + {LAYER_PRICE} × 1 layer"
    assert deep.explain().endswith(f"{LAYER_PRICE} × 12 layers")
