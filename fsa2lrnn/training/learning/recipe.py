"""The training settings of `learn`, as frozen data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from fsa2lrnn.errors import UnsupportedFormat

LAYERS = ("block", "hard_lanes", "hard_reflections")
"""Layers that are automata for all weights: blocks with one-hot columns, and the signed maps of docs/theory.md T51."""
_WHOLE = (
    "layers",
    "heads",
    "gate_hidden",
    "hidden",
    "length",
    "first_length",
    "letters",
    "look",
    "patience",
    "decay",
    "ease",
    "settle",
    "steps",
    "threads",
)
STARTS = ("random", "identity", "permutations")
"""Initial maps of the gates of several layers."""
_REFINED = 1.5  # times the states of a machine in a block, where labels tell states apart
_HEADS = {"hard_lanes": 12, "hard_reflections": 12}
_SMALL, _LARGE = (
    24,
    128,
)  # states of a machine whose block has three times as many; the largest size that blocks grow to


@dataclass(frozen=True)
class Recipe:
    """The settings with which a hard layer is trained and verified.

    Args:
        heads: the number of parallel automata; with blocks, usually one of them becomes the whole machine.
        block: the states per automaton; None for two to three times those of the machine, or growing sizes if no
            machine is given. For reflections, how many numbers they exchange; None for the size that theory gives.
        layer: one of `LAYERS`. With one layer of blocks a single head has to be the machine; otherwise the whole
            network is verified, which requires a machine as the source.
        layers: the number of layers of blocks; the gates of each read the letters and lower states, now and before.
        start: the initial maps of the gates of several layers, one of `STARTS`; permutations are drawn per letter.
        gate_hidden: the hidden units of such a gate.
        factors: the reflections per letter of a reflection layer; None for the number that theory gives.
        anyway: whether to train a layer that, by theory, cannot represent the machine.
        hidden: the hidden units of the read-out.
        suffixes: labels are refined by the outputs after suffixes of up to so many letters, and letters that act alike
            become one (`refining`); 0 for neither. Each label then begins with a state of its own, the read-out learns
            slowly, and positions after the first error of a word do not count. For a machine, one
            layer of blocks and correct labels of every word.
        rate, temperature: Adam's learning rate, and the temperature of the softmax in the backward pass.
        length, first_length: the word length grows from `first_length` to `length`.
        growth: the factor by which words grow, if all lengths are possible.
        letters: the number of letters per batch, independent of the word length.
        threshold: the running error below which words grow, if no label is wrong.
        noise: the share of wrong labels, uniformly drawn; None for unknown: words then grow when the error stagnates.
        decay, floor: at full word length the rate falls to `floor` times itself in `decay` steps.
        ease: the steps without growth after which the rate falls at shorter lengths too, until words grow again.
        look: the steps between two evaluations of the heads.
        mend: the steps between two attempts to repair the best head (`mending`) if labels are correct; 0 for none.
        patience: the steps without growth after which a start ends.
        settle: the steps at full length after which noisy labels count as learned.
        steps: the steps of all starts together.
        seconds: the time limit, None for no limit; with a limit the result depends on the speed of the machine.

    Raises:
        UnsupportedFormat: with every invalid value.
    """

    heads: int = 4
    block: int | None = None
    layer: str = "block"
    layers: int = 1
    start: str = "random"
    gate_hidden: int = 64
    factors: int | None = None
    anyway: bool = False
    hidden: int = 64
    suffixes: int = 0
    rate: float = 0.03
    temperature: float = 0.4
    length: int = 40
    first_length: int = 5
    growth: float = 1.25
    letters: int = 1280
    threshold: float = 0.03
    noise: float | None = 0.0
    decay: int = 400
    floor: float = 0.02
    ease: int = 200
    look: int = 20
    mend: int = 100
    patience: int = 700
    settle: int = 1000
    steps: int = 20_000
    seconds: float | None = None
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        faults = [
            f"{name} = {getattr(self, name)!r} must be a whole number of at least 1"
            for name in _WHOLE
            if type(getattr(self, name)) is not int or getattr(self, name) < 1
        ]
        if self.block is not None and (type(self.block) is not int or self.block < 1):
            faults.append(f"block = {self.block!r} must be a whole number of at least 1, or None to be found")
        if self.layer not in LAYERS:
            faults.append(f"layer = {self.layer!r} must be one of {', '.join(LAYERS)}")
        if self.start not in STARTS:
            faults.append(f"start = {self.start!r} must be one of {', '.join(STARTS)}")
        if self.layers > 1 and self.layer != "block":
            faults.append(f"layers = {self.layers} of {self.layer}: several layers are of blocks")
        if self.factors is not None and (type(self.factors) is not int or self.factors < 1):
            faults.append(f"factors = {self.factors!r} must be a whole number of at least 1, or None for theory's")
        if type(self.anyway) is not bool:
            faults.append(f"anyway = {self.anyway!r} must be true or false")
        faults += [
            f"{name} = {getattr(self, name)!r} must be a whole number of at least 0"
            for name in ("mend", "suffixes")
            if type(getattr(self, name)) is not int or getattr(self, name) < 0
        ]
        if self.suffixes and (self.is_whole or not self.is_clean):
            faults.append(f"suffixes = {self.suffixes} refine correct labels of one layer of blocks")
        faults += [
            f"{name} = {getattr(self, name)!r} must be a number above 0"
            for name in ("rate", "temperature", "threshold")
            if not (_is_number(getattr(self, name)) and 0 < getattr(self, name) < math.inf)
        ]
        if not (_is_number(self.growth) and 1 < self.growth < math.inf):
            faults.append(f"growth = {self.growth!r} must be a number above 1")
        if self.noise is not None and not (_is_number(self.noise) and 0 <= self.noise < 1):
            faults.append(f"noise = {self.noise!r} must be a share from 0 to below 1, or None for unknown")
        if not (_is_number(self.floor) and 0 < self.floor <= 1):
            faults.append(f"floor = {self.floor!r} must be a share above 0")
        if self.seconds is not None and not (_is_number(self.seconds) and self.seconds > 0):
            faults.append(f"seconds = {self.seconds!r} must be above 0, or None for no limit")
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 32:
            faults.append(f"seed = {self.seed!r} must be a whole number from 0 to 2³² − 1")
        if faults:
            raise UnsupportedFormat("the recipe does not fit: " + "; ".join(faults))

    @property
    def is_whole(self) -> bool:
        """Whether the whole network is verified, not a single head."""
        return self.layer != "block" or self.layers > 1

    @property
    def is_clean(self) -> bool:
        """Whether every label is right."""
        return self.noise == 0

    def block_for(self, n_states: int | None, start: int) -> int:
        """Return the block size of start number `start`, counted from 0, for a machine of `n_states` states.

        >>> Recipe().block_for(5, 0), Recipe().block_for(51, 0), [Recipe().block_for(None, i) for i in range(5)]
        (15, 102, [8, 12, 18, 27, 40])
        """
        if self.block is not None:
            return self.block
        if n_states is None:
            return min(_LARGE, int(8 * 1.5 ** min(start, 8)))
        if self.suffixes:
            return max(6, math.ceil(_REFINED * n_states))
        return max(6, (3 if n_states <= _SMALL else 2) * n_states)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object of all settings."""
        return asdict(self)


def check_noise(noise: float | None, n_outputs: int) -> None:
    """Raise `UnsupportedFormat` if labels with this share of errors are no better than guessing.

    >>> check_noise(0.49, 2), check_noise(0.6, 3), check_noise(None, 2)
    (None, None, None)
    """
    if noise is not None and not 0 <= noise < 1 - 1 / n_outputs:
        raise UnsupportedFormat(
            f"noise = {noise!r}, but with {n_outputs} outputs a guess is wrong with a share of "
            f"{1 - 1 / n_outputs:.3g}: give the share of wrong outputs, from 0 to below that, or None for unknown"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def recipe_for(n_states: int | None, is_refined: bool = False, **changes: Any) -> Recipe:
    """Return the recipe for a machine of `n_states` states: large ones get more heads, more letters and slower decay.

    `is_refined` is for machines of which every word counts: if labels are correct, they are refined until they tell all
    states apart, and a single head learns them.

    Raises `UnsupportedFormat` for unknown settings and invalid values.

    >>> recipe_for(51).heads, recipe_for(5, heads=2).heads, recipe_for(5, is_refined=True).heads
    (6, 2, 1)
    """
    if unknown := sorted(set(changes) - set(Recipe.__dataclass_fields__)):
        raise UnsupportedFormat(
            f"{', '.join(unknown)}: no such setting of a recipe, which has {', '.join(Recipe.__dataclass_fields__)}"
        )
    if changes.get("layer", "block") != "block":
        return Recipe(**{"heads": _HEADS.get(changes["layer"], 4), **changes})
    plain = {"layers": 1, "noise": 0.0, "suffixes": n_states}
    if is_refined and n_states and all(changes.get(name, value) == value for name, value in plain.items()):
        return Recipe(**{"heads": 1, "suffixes": n_states, "rate": 0.1, "temperature": 1.0, **changes})
    large = {"heads": 6, "letters": 2600, "decay": 600, "first_length": 3}
    return Recipe(**{**(large if n_states is not None and n_states > _SMALL else {}), **changes})
