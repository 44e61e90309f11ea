"""Every term of the bounds on rounding, made visible by coarse constants and compared with recorded values.

As `tests/fsa2lrnn/checker/test_recorded_bounds.py`, for the models' own bounds: a change of these numbers is a change
of a proof. Review it, then record them anew: `python -m tests.fsa2lrnn.nn.test_recorded_roundings`.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.nn import rounded_numbers as rounding
from fsa2lrnn.nn import zonotopes
from fsa2lrnn.nn.layers import selective_rounding as selective
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers
from fsa2lrnn.nn.zonotopes import Zonotopes

from ..checker.test_recorded_bounds import FORMATS, prints

RECORD = Path(__file__).with_name("recorded_roundings.json")
FORMATS = {
    **FORMATS,
    "no underflow": FloatFormat(2.0**-8, 2.0**-900, 2.0**60),
    "short range": FloatFormat(2.0**-10, 2.0**-12, 40.0),  # sums of more than 10 overflow
}


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    set_coarse(monkeypatch.setattr)


def set_coarse(put):
    for module, names in (
        (rounding, {"_U64": 2.0**-14, "_OUTWARD": 1 + 2.0**-9, "_FLOORS": (0.05, 0.1, 0.2)}),
        (zonotopes, {"_SLIP": 2.0**-12, "_OUTWARD": 1 + 2.0**-9, "_LEAST_NORM": 0.1, "EPS": 2.0**-4}),
    ):
        for name, value in names.items():
            put(module, name, value)


def parts(*found):
    """The arrays of numbers with bounds."""
    for x in found:
        yield from (x.mid, x.off)
        if isinstance(x, Zonotopes):
            yield from (x.shared, x.own)


def drawn(rng, *shape, spread=0.05, kind=None):
    """Numbers with bounds, some of them exact, one zero and one without a bound."""
    mid = torch.tensor(rng.normal(size=shape))
    off = torch.tensor(np.abs(rng.normal(size=shape)) * spread * (rng.random(shape) < 0.8))
    mid[0, 0], off[0, 0] = 0, 0
    off[-1, -1] = torch.inf if rng.random() < 0.3 else off[-1, -1]
    return RoundedNumbers(mid, off, kind)


def of_numbers(rng, kind):
    x, y = drawn(rng, 3, 4, kind=kind), drawn(rng, 3, 4, kind=kind)
    W, b = torch.tensor(rng.normal(size=(2, 4)) * (rng.random((2, 4)) < 0.7)), torch.tensor([0.5, 0.0])
    small = RoundedNumbers(x.mid * 1e-3, x.off * 1e-3, kind)
    square = RoundedNumbers(x.mid.T.contiguous(), x.off.T.contiguous(), kind)
    yield (
        "entrywise",
        [*parts(x.scaled(0.75), x.scaled(0.7), x * y, x - y, x.relu(), x.sigmoid(), x.of(x.mid * 30, y.off))],
    )
    exact = RoundedNumbers.exact(torch.tensor([1.0, torch.nan, torch.inf, -3.0]).double(), kind)
    yield "products", [*parts(x.linear(W, b), exact.linear(torch.ones(1, 4), torch.zeros(1)), x @ square, exact)]
    yield "sizes", [x.size, exact.size, *(float(z.is_exact) for z in (x, exact[:1])), *parts(x.where(y.mid > 0))]
    yield "norms", [*parts(x.normalised(), small.normalised())]
    for p in (1.0, 1.2, 2.0, 63.0, 65.0):
        yield f"norm bounds {p}", [*rounding.norm_bounds(x, p), *rounding.norm_bounds(small, p)]
    for rule in ("none", "clip", "paper"):
        yield rule, [*parts(x.columns(rule, 1.2), small.columns(rule, 2.0))]
    mask = torch.tensor(rng.random((3, 4)) < 0.8)
    mask[0] = True
    near = RoundedNumbers(x.mid / 50, x.off, kind)
    yield "one-hot", [*parts(x.largest(mask), near.largest(mask)), x.is_ordered().float(), near.is_ordered().float()]
    yield "constants", [rounding.both(kind), rounding.integers(kind), x._gamma(torch.tensor([1.0, 3.0, 1e9]).double())]


def of_zonotopes(rng, kind):
    wide, narrow = (
        Zonotopes.boxes(torch.tensor(rng.normal(size=(2, 6))), torch.tensor(np.abs(rng.normal(size=(2, 6))) * r), kind)
        for r in (0.4, 0.01)
    )
    W, b = torch.tensor(rng.normal(size=(6, 6))), torch.tensor(rng.normal(size=6))
    for x in (wide, narrow):
        y, plain = x.linear(W, b), drawn(rng, 2, 6, kind=kind)
        yield "sums", [*parts(y, x.scaled(0.7), y.relu(), x + y, x - y, plain - x, x + plain)]
        yield "products", [*parts(x * y, plain * x, x[:, :3] * y[:, 3:], x.where(y.mid > 0))]
        left, right = x.unflatten((2, 3)), y.unflatten((3, 2))
        rounded = drawn(rng, 2, 3, 2, kind=kind)
        yield "matrices", [*parts(left @ right, left @ rounded, rounded @ left, left.flatten(), left[0])]
        blocks = Zonotopes.joined([left, y.unflatten((2, 3))], -2)
        for rule, p in (("none", 2.0), ("clip", 1.2), ("clip", 2.0), ("paper", 1.2), ("paper", 2.0)):
            yield f"{rule} {p}", [*parts(blocks.columns(rule, p), blocks.scaled(0.1).columns(rule, p))]
        yield "normed", [*parts(x.normalised(), x.scaled(0.01).normalised(), blocks.centred())]
        norm = torch.nn.LayerNorm(6).double()
        with torch.no_grad():
            norm.weight.copy_(torch.tensor(rng.normal(size=6)))
            norm.bias.copy_(torch.tensor(rng.normal(size=6)))
        yield "layer norm", [*parts(x.layer_norm(norm), x.scaled(9.0).layer_norm(norm))]


def of_selective(rng, kind):
    x = drawn(rng, 3, 4, kind=kind)
    for name in ("with_silu", "softmax", "softplus_of", "with_unit_norm"):
        yield name, [*parts(getattr(selective, name)(x))]
    yield "tame", [*parts(selective.tame(torch.tanh, x), selective.with_rms_norm(x, 1e-3))]
    yield "decays", [*parts(*(selective.decays(x, torch.tensor(scale)) for scale in (0.5, 9.0, 11.0)))]
    yield "projected", [*parts(selective.projected(x, torch.tensor(rng.normal(size=(2, 4)))))]
    decay, k, e, v = (drawn(rng, 2, 2, 1, n, kind=kind) for n in (3, 3, 3, 2))
    for erased in (e, None):
        yield "transition", [*parts(*selective.transition(selective.RoundedSteps(decay, erased, k, v)))]


def bounds(source):
    """The values of a source, each an array's prints."""
    seed = list(SOURCES).index(source)
    of, kind = SOURCES[source]
    return [[name, *map(prints, found)] for name, found in of(np.random.default_rng(seed), kind)]


SOURCES = {
    f"{source} {name}": (of, kind)
    for source, of in (("numbers", of_numbers), ("zonotopes", of_zonotopes), ("selective", of_selective))
    for name, kind in FORMATS.items()
}


@pytest.mark.parametrize(("source", "values"), json.loads(RECORD.read_text()).items() if RECORD.exists() else ())
def test_bounds_are_those_that_were_reviewed(source, values):
    found = bounds(source)
    assert [entry[0] for entry in found] == [entry[0] for entry in values]
    for mine, theirs in zip(found, values, strict=True):
        assert mine[1:] == [pytest.approx(x, rel=1e-9, abs=1e-12) for x in theirs[1:]], (source, mine[0])


if __name__ == "__main__":
    set_coarse(setattr)
    RECORD.write_text(json.dumps({source: bounds(source) for source in SOURCES}, separators=(",", ":")) + "\n")
