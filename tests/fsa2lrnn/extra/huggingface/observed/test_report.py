"""What a report says, and heads of a layer as one."""

import numpy as np
import pytest

from fsa2lrnn.extra.huggingface.observed.report import EIGENVALUE, GateObservations, ObservedHead, merged
from fsa2lrnn.extra.huggingface.observed.values import HeadValues, Measure

MEASURE = Measure(EIGENVALUE, low=-1, marks=(-1.0,))


def head(layer, number, values):
    gathered = HeadValues(MEASURE, 1)
    gathered.add(np.array(values)[:, None])
    return ObservedHead(layer, number, gathered.below_zero(0), {EIGENVALUE: gathered.spread(0)})


def observed(*heads, reach=(-1.0, 1.0)):
    return GateObservations("olmo-hybrid", {}, "a text", 4, reach, (MEASURE,), heads)


@pytest.mark.parametrize(
    ("heads", "reach", "said"),
    [
        (([-1.0, 0.5, 0.5, 0.5], [0.1, 0.2, 0.3, 0.4]), (-1.0, 1.0),
         "1 of 2 heads use negative eigenvalues, 0 of them at every second token or more; that is 12.50% of tokens and "
         "heads, and the least is -1 of -1"),
        (([-0.5, -0.25, 0.5, 0.5],), (-1.0, 1.0), "1 of 1 heads use negative eigenvalues, 1 of them at every second"),
        (([0.25, 0.5, 0.5, 0.5],), (-1.0, 1.0), "no eigenvalue is negative, though the layer reaches [-1, 1]: the "
         "least is 0.25"),
        (([0.0, 0.5, 0.5, 0.5],), (0.0, 1.0), "no eigenvalue can be negative: this layer reaches [0, 1]"),
    ],
)  # fmt: skip
def test_the_answer(heads, reach, said):
    found = observed(*(head(0, j, values) for j, values in enumerate(heads)), reach=reach)
    assert found.explain().startswith(said)


def test_heads_as_one():
    parts = [head(3, 0, [-1.0, 0.0]), head(3, 1, [0.5, 0.75])]
    one, whole = merged(parts, (MEASURE,)), head(3, -1, [-1.0, 0.0, 0.5, 0.75])
    assert one.to_json() == whole.to_json()
    assert (one.spreads[EIGENVALUE].counts == whole.spreads[EIGENVALUE].counts).all()


def test_json():
    found = observed(head(0, 0, [-1.0, 0.5]), head(2, 0, [0.5, 0.5]))
    value = found.to_json()
    assert (value["negative"], value["least"], list(found.by_layer())) == (0.25, -1.0, [0, 2])
    assert value["heads"][0]["eigenvalue"]["exactly"] == {"-1": 1}
