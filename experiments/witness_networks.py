"""Lower the witnesses of `families`, affine tables with one vector x_q per state q, to an `LRNN`.

The layer's gates look up A(a) and v(a) by letter; an input-independent A is the gate's bias. The read-out MLP projects
the state to a line, t = c·x, on which all t_q = c·x_q are distinct, and has a hat function for each: for the smallest
gap g and s = (t − t_q)/g, relu(s + 1) − 2 relu(s) + relu(s − 1) is 1 at t_q and 0 at all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import numpy as np
import torch

from fsa2lrnn.automata.language import output_classes
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.lower import lower
from fsa2lrnn.errors import NotExact, UnsupportedFormat
from fsa2lrnn.families import BlockWitness
from fsa2lrnn.families.channels import Affine, ScalarChannel
from fsa2lrnn.families.family_answers import AffineTables, AffineWitness, HeadsWitness, Witness
from fsa2lrnn.families.householder import HouseholderWitness
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.gate import Values, look_up
from fsa2lrnn.nn.layers import BlockLayerConfig, HouseholderLayerConfig
from fsa2lrnn.nn.model import LRNN

_EXACT = 2.0**53  # float64 holds all integers up to here
_UNIT = 2.0**-53  # largest relative error of one float64 operation
_PROJECTIONS = 200  # directions that are tried for a projection with a large gap between states


@singledispatch
def lower_witness(witness: object) -> LRNN:
    """Return the network that a witness of `families.represent` describes: float64, or float32 for a `BlockWitness`.

    Raises:
        NotExact: if integers are too large for float64.
        UnsupportedFormat: for an object other than a witness, such as an `Impossibility`.

    >>> from fsa2lrnn import represent, zoo
    >>> lower_witness(represent(zoo.flip_flop(), "diagonal[0,1]")).layers[0].block_sizes
    (1,)
    """
    raise UnsupportedFormat(f"a {type(witness).__name__} is not a witness, from which alone a network is made")


@lower_witness.register
def _(witness: Witness) -> LRNN:
    form, machine = witness.form, witness.machine
    tables = _affine_tables(form, machine) if isinstance(form, Affine) else _channel_tables(form, machine)
    if witness.is_exact:
        _check_exact(tables, machine.n_states)
    return lower_affine(tables, machine, witness.is_exact)


@lower_witness.register
def _(witness: BlockWitness) -> LRNN:
    return lower(witness.recurrence)


@lower_witness.register
def _(witness: AffineWitness) -> LRNN:
    tables = witness.tables()
    is_integer = not (tables.x % 1).any()
    if is_integer and not (tables.A % 1).any():
        _check_exact(tables, witness.machine.n_states)
    return lower_affine(tables, witness.machine, is_integer)


@lower_witness.register
def _(witness: HouseholderWitness) -> LRNN:
    """Return a layer of factors I − β k kᵀ that look up keys and rates by letter.

    Keys are scaled to a largest entry of 1 and rates by its square, which leaves each factor unchanged.
    """
    machine, n_letters, n = witness.machine, len(witness.machine.alphabet), witness.dimension
    n_factors = max(1, witness.n_factors)  # identities need no factor, but a layer has at least one
    keys, rates = np.zeros((n_letters, n_factors, n)), np.zeros((n_letters, n_factors))
    for a, factors in enumerate(witness.keys):
        for i, key in enumerate(factors):
            rate, longest = witness.rates[a][i] if witness.rates else 1, max(map(abs, key))
            keys[a, i], rates[a, i] = [x / longest for x in key], rate * longest**2
    layer = HouseholderLayerConfig(n, n_factors, transition_hidden=n_letters, value_hidden=n_letters)
    gates = {"transition": look_up(torch.tensor(keys)), "rate": look_up(torch.tensor(rates))}
    return _model(
        layer,
        gates,
        np.array(witness.shifts, dtype=float),
        np.array(witness.vectors, dtype=float),
        machine,
        is_integer=not witness.rates,
    )


@lower_witness.register
def _(witness: HeadsWitness) -> LRNN:
    tables = witness.tables()
    n_letters, n_heads, n_factors, size = tables.keys.shape
    layer = HouseholderLayerConfig(size, n_factors, n_letters, n_letters, n_heads)
    rates = np.ones((n_letters, n_heads * n_factors))
    gates = {"transition": look_up(torch.tensor(tables.keys).flatten(1)), "rate": look_up(torch.tensor(rates))}
    shifts = tables.shifts.reshape(n_letters, -1)
    return _model(layer, gates, shifts, tables.vectors, witness.machine, is_integer=False)


def safe_length(witness: Witness | AffineWitness) -> int | None:
    """Return a length up to which the network of `lower_witness` is correct on every word, or None for all lengths.

    Integer weights are exact. For rotations let u = 2⁻⁵³, R and V bounds on the states and on |v| (sums of the absolute
    values of their coefficients), and m the largest number of coefficients. A weight is such a sum, with error at most
    (m + 2) u (R + V); a rotation by a rounded angle displaces a state by at most √2 u R, and the arithmetic of a step
    adds at most 8 u (R + V): together less than e = (m + 12) u (R + V) per step. Errors propagate with a factor of at
    most 1 + 4u, so after N ≤ 1/(4u) steps they are below 3 N e. The read-out selects the correct state as long as
    |c|·3 N e plus the rounding errors of the projection and the hat functions is below half a gap.

    For real blocks of b dimensions with entries within 2u of the true ones, a step adds at most e = (b + 6) u (|A| R +
    |v|) to the error of the largest entry, as long as the error is below R/1000. The products of the true matrices map
    b differences of states to b differences of states: A_w = D' D⁻¹, of norm at most G = b · max|D'| · |D⁻¹|, for every
    w. So after N steps errors are below G (N e + 2uR).
    """
    if isinstance(witness, AffineWitness):
        return None if witness.is_exact else _block_length(witness.tables())
    if witness.is_exact or isinstance(witness.form, Affine):
        return None
    channels = witness.form
    points = _channel_tables(channels, witness.machine).x.reshape(witness.machine.n_states, -1)
    c, gap = _projection(points, is_integer=False)
    reach = max(_largest_sum(channel.values) + _largest_sum(channel.shifts) for channel in channels)
    coefficients = max(len(channel.shifts[0]) for channel in channels)
    weight, width = float(np.abs(c).sum()), float(np.ptp(points @ c)) + gap
    reading = 8 * _UNIT * (points.shape[1] + 2) * weight * reach + 16 * _UNIT * len(points) * width
    step = 3 * (coefficients + 12) * _UNIT * reach * weight
    return int(min(max(0.0, gap / 2 - reading) / step, 1 / (4 * _UNIT)))


def _block_length(tables: AffineTables) -> int:
    """Return a length up to which a block layer's rounding errors leave the read-out unambiguous.

    Products of letters map b independent differences of states to differences of states, so an error grows by at most
    `growth` however many letters follow; each step adds at most `step` (the bound of `safe_length`). The length is the
    margin of the read-out over their product, and 0 if the differences do not span a block.
    """
    points = tables.x.reshape(len(tables.x), -1)
    c, gap = _projection(points, is_integer=False)
    weight, width = float(np.abs(c).sum()), float(np.ptp(points @ c)) + gap
    reach, growth, step = float(np.abs(points).max()), 0.0, 0.0
    for h, b in enumerate(tables.block_sizes):
        x, A, v = tables.x[:, h, :b], tables.A[:, h, :b, :b], tables.v[:, h, :b]
        differences = (x[1:] - x[0]).T
        chosen = _independent(differences)
        if len(chosen) < b:
            return 0  # the products are not bounded outside the span of the differences of states
        largest = 2 * float(np.ptp(x, axis=0).max())  # doubled for the rounding errors of D and its inverse
        growth = max(growth, b * largest * float(np.abs(np.linalg.inv(differences[:, chosen])).sum(1).max()))
        scale = float(np.abs(A).sum(2).max()) * reach + float(np.abs(v).max())
        step = max(step, (b + 6) * _UNIT * scale)
    reading = 8 * _UNIT * (points.shape[1] + 2) * weight * reach + 16 * _UNIT * len(points) * width
    margin = min((gap / 2 - reading) / weight, reach / 1_000)
    return int(max(0.0, margin / growth - 2 * _UNIT * reach) / step)


def _independent(columns: np.ndarray) -> list[int]:
    """Return the numbers of well-conditioned independent columns of (d, N): pivoted Gram-Schmidt, the longest first."""
    rest, chosen = columns.astype(float), list[int]()
    for _ in range(len(columns)):
        lengths = np.linalg.norm(rest, axis=0)
        if lengths.max() < 1e-6 * np.abs(columns).max():
            break
        chosen.append(int(lengths.argmax()))
        unit = rest[:, chosen[-1]] / lengths.max()
        rest = rest - np.outer(unit, unit @ rest)
    return chosen


def _largest_sum(numbers: Sequence[Sequence[int]]) -> float:
    return float(max(sum(map(abs, coefficients)) for coefficients in numbers))


def lower_affine(tables: AffineTables, machine: MooreMachine, is_integer: bool) -> LRNN:
    """Return a float64 LRNN whose layer has these tables, and whose read-out maps the vector of a state to its output.

    `is_integer` requires integer vectors and makes the read-out integer. Raises `NotExact` if no projection separates
    the vectors.
    """
    n_letters = len(machine.alphabet)
    flat = torch.tensor(tables.A.reshape(n_letters, -1))
    is_constant = not (flat - flat[0]).any()
    hidden = 1 if is_constant else n_letters
    layer = BlockLayerConfig(tables.block_sizes, transition_hidden=hidden, value_hidden=n_letters)
    gates = {"transition": {"b2": flat[0]} if is_constant else look_up(flat)}
    return _model(layer, gates, tables.v.reshape(n_letters, -1), tables.x, machine, is_integer)


def _model(
    layer: BlockLayerConfig | HouseholderLayerConfig,
    gates: dict[str, Values],
    v: np.ndarray,
    x: np.ndarray,
    machine: MooreMachine,
    is_integer: bool,
) -> LRNN:
    """Return the network of one layer with these gates, v (|Σ|, ·) by letter, and x (n, …) the vector per state."""
    n_letters = len(machine.alphabet)
    outputs = tuple(dict.fromkeys(machine.outputs))
    number = output_classes(machine.outputs)
    points = x.reshape(machine.n_states, -1)
    c, gap = _projection(points, is_integer)
    centres = np.concatenate([points @ c / gap + shift for shift in (-1, 0, 1)])
    is_output = (number == np.arange(len(outputs))[:, None]).astype(float)  # (|Γ|, n)
    config = LRNNConfig(
        machine.alphabet,
        outputs,
        (layer,),
        embedding_dim=n_letters,
        readout_hidden=3 * machine.n_states,
        normalisation="none",
    )
    model = LRNN(config).double()
    x0 = torch.tensor(x[machine.start]).reshape(len(layer.block_sizes), -1)
    readout = {
        "W1": torch.tensor(np.tile(c / gap, (len(centres), 1))),
        "b1": torch.tensor(-centres),
        "W2": torch.tensor(np.concatenate([is_output, -2 * is_output, is_output], axis=1)),
    }
    model.write(torch.eye(n_letters), [(x0, {**gates, "value": look_up(torch.tensor(v))})], readout)
    return model


def _affine_tables(form: Affine, machine: MooreMachine) -> AffineTables:
    d, n_letters = max(1, form.dimension), len(machine.alphabet)
    A = np.array(form.A, dtype=float).reshape(form.dimension, form.dimension)
    A = np.pad(A, (0, d - form.dimension))
    v = np.array(form.shifts, dtype=float).reshape(n_letters, 1, -1)
    x = np.array(form.vectors, dtype=float).reshape(machine.n_states, 1, -1)
    fill = ((0, 0), (0, 0), (0, d - form.dimension))
    return AffineTables(np.tile(A, (n_letters, 1, 1, 1)), np.pad(v, fill), np.pad(x, fill), (d,))


def _channel_tables(channels: Sequence[ScalarChannel], machine: MooreMachine) -> AffineTables:
    """Return scalar channels as tables of blocks: complex ones of size 2, with multipliers as rotations."""
    sizes = tuple(channel.dimension for channel in channels) or (1,)
    n_letters, b = len(machine.alphabet), max(sizes)
    A = np.zeros((n_letters, len(sizes), b, b))
    v, x = np.zeros((n_letters, len(sizes), b)), np.zeros((machine.n_states, len(sizes), b))
    for h, channel in enumerate(channels):
        for a in range(n_letters):
            turn, shift = channel.multiplier(a), channel.number(channel.shifts[a])
            rotation = np.array([[turn.real, -turn.imag], [turn.imag, turn.real]])
            A[a, h, : sizes[h], : sizes[h]] = rotation[: sizes[h], : sizes[h]]
            v[a, h, : sizes[h]] = [shift.real, shift.imag][: sizes[h]]
        for q, value in enumerate(channel.values):
            point = channel.number(value)
            x[q, h, : sizes[h]] = [point.real, point.imag][: sizes[h]]
    return AffineTables(A, v, x, sizes)


def _projection(points: np.ndarray, is_integer: bool) -> tuple[np.ndarray, float]:
    """Return a direction c (d,) whose projection separates the points (n, d), and the smallest gap between projections.

    For integer points, c has integers and the gap is given as 1, so that the read-out computes in integers.
    """
    rng, best = np.random.default_rng(0), (np.ones(points.shape[1]), 0.0)
    for k in range(_PROJECTIONS):
        reach = 1 + k * len(points) // 8
        c = rng.integers(-reach, reach + 1, points.shape[1]).astype(float) if is_integer else rng.normal(
            size=points.shape[1]
        )  # fmt: skip
        line = np.sort(points @ c)
        gap = float(np.diff(line).min()) if len(line) > 1 else 1.0
        relative = gap / (1 + float(np.abs(line).max()))
        if relative > best[1]:
            best = (c, relative)
        if is_integer and gap >= 1:
            return c, 1.0
    if best[1] == 0:
        raise NotExact(f"none of {_PROJECTIONS} projections tells the {len(points)} states apart")
    line = np.sort(points @ best[0])
    return best[0], float(np.diff(line).min()) if len(line) > 1 else 1.0


def _check_exact(tables: AffineTables, n_states: int) -> None:
    points = tables.x.reshape(n_states, -1)
    c, _ = _projection(points, is_integer=True)
    largest = 4 * n_states * (float(np.abs(points).max(initial=0)) + 1) * (float(np.abs(c).sum()) + 1)
    if max(largest, float(np.abs(tables.A).max(initial=0)) * largest) >= _EXACT:
        raise NotExact(f"the witness needs integers of about {largest:.1e}, more than float64 holds exactly (2^53)")
