"""The training settings of `learn`, as frozen data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid import classify
from fsa2lrnn.errors import NotExpressible, UnsupportedFormat, meant
from fsa2lrnn.nn.layers import LAYERS
from fsa2lrnn.reading import Allowed, check_fields, whole

_HEADS = 12  # of layers other than blocks
_REFINED = 1.5  # times the states of a machine in a block, if labels separate states
_SMALL, _LARGE = (
    24,
    128,
)  # states of a machine whose block has three times as many; the largest size that blocks grow to


_MOST = 10**9
_Count = Annotated[int, whole(1, _MOST)]
_CountOrNone = Annotated[int | None, Allowed("a whole number of at least 1, or None", lambda x: 1 <= x <= _MOST)]
_Positive = Annotated[float, Allowed("a number above 0", lambda x: x > 0)]


@dataclass(frozen=True)
class Recipe:
    """The settings with which a hard layer is trained and verified.

    Args:
        heads: the number of parallel automata; with blocks, usually one of them becomes the whole machine.
        block: the states per automaton. None for 3 times those of the machine (2 times if it has more than 24 states,
            1.5 times with `suffixes`), at least 6; without a machine, for sizes that grow from start to start. For
            other layers, how many numbers they exchange; None for the number of states, at most 8.
        layer: "block", or one that is an automaton for all weights, such as "hard_reflections" (`Layer.is_finite`).
            With blocks a single head has to be the machine; otherwise the whole network is verified, which requires a
            machine as the source.
        factors: the reflections per letter of a reflection layer; None for one less than the size.
        hidden: the hidden units of the read-out.
        suffixes: labels are refined by the outputs after suffixes of up to so many letters, and letters that act alike
            become one (`methods.refine`); 0 for neither. Each label then begins with a state of its own, the read-out
            learns slowly, and positions after the first error of a word do not count. This requires a machine as the
            source, one layer of blocks, and correct labels of every word.
        rate, temperature: Adam's learning rate, and the temperature of the softmax in the backward pass.
        length, first_length: the word length grows from `first_length` to `length`.
        growth: the factor by which words grow, if all lengths are possible.
        letters: the number of letters per batch, independent of the word length.
        threshold: the running error below which words grow, if no label is wrong.
        noise: the share of wrong labels, uniformly drawn; None for unknown: words then grow when the error stagnates.
        decay, floor: at full word length the rate falls to `floor` times itself in `decay` steps.
        ease: the steps without growth after which the rate falls at shorter lengths too, until words grow again.
        look: the steps between two evaluations of the heads.
        repair: the steps between two attempts to repair the best head (`patching`) if labels are correct; 0 for none.
        patience: the steps without growth after which a start ends.
        settle: the steps at full length after which noisy labels count as learned.
        steps: the steps of all starts together.
        seconds: the limit of processor time, None for no limit; with a limit the result depends on the speed of
            the computer.
        seed: the seed of the initial weights and of the words.
        threads: the number of torch's threads.

    Raises:
        UnsupportedFormat: for invalid values, all of which the message names, or values that contradict each other.
    """

    heads: _Count = 4
    block: _CountOrNone = None
    layer: str = "block"
    factors: _CountOrNone = None
    hidden: _Count = 64
    suffixes: Annotated[int, whole(0, _MOST)] = 0
    rate: _Positive = 0.03
    temperature: _Positive = 0.4
    length: _Count = 40
    first_length: _Count = 5
    growth: Annotated[float, Allowed("a number above 1", lambda x: x > 1)] = 1.25
    letters: _Count = 1280
    threshold: _Positive = 0.03
    noise: Annotated[float | None, Allowed("a share from 0 to below 1, or None for unknown", lambda x: 0 <= x < 1)] = (
        0.0
    )
    decay: _Count = 400
    floor: Annotated[float, Allowed("a share above 0", lambda x: 0 < x <= 1)] = 0.02
    ease: _Count = 200
    look: _Count = 20
    repair: Annotated[int, whole(0, _MOST)] = 100
    patience: _Count = 700
    settle: _Count = 1000
    steps: _Count = 20_000
    seconds: Annotated[float | None, Allowed("a number above 0, or None for no limit", lambda x: x > 0)] = None
    seed: Annotated[int, whole(0, (1 << 32) - 1)] = 0
    threads: _Count = 1

    def __post_init__(self) -> None:
        check_fields(self, "the recipe does not fit")
        if self.layer != "block" and not is_automaton(self.layer):
            hard = ["block", *(name for name in LAYERS if is_automaton(name))]
            raise UnsupportedFormat(f"the recipe does not fit: layer = {self.layer!r} must be one of {', '.join(hard)}")
        if self.suffixes and (self.is_whole or not self.is_clean):
            raise UnsupportedFormat(
                f"the recipe does not fit: suffixes = {self.suffixes} refine correct labels of one layer of blocks"
            )

    @property
    def is_whole(self) -> bool:
        """Whether the whole network is verified, not a single head."""
        return self.layer != "block"

    @property
    def is_clean(self) -> bool:
        """Whether every label is correct."""
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


def is_automaton(layer: str) -> bool:
    """Return whether this kind of layer is an automaton for all weights, under every column rule.

    >>> is_automaton("hard_channels"), is_automaton("block"), is_automaton("index")
    (True, False, False)
    """
    return layer in LAYERS and LAYERS[layer].is_finite("none") and not LAYERS[layer].Config.reads_letters


# What the machines have in common that a layer's networks can be, of any size: a fact of `classify`, and its negation.
_NEEDED = {
    "hard_channels": (
        "two_groups",
        "has a group that is not a 2-group, which diagonal entries 0, 1 and −1 exclude (T37)",
    ),
    "hard_slice": ("group", "has a letter that joins states, and products of permutations join none"),
}
_SECONDS = 5.0


def check_possible(layer: str, machine: MooreMachine) -> None:
    """Raise `NotExpressible` if no network of this layer, of any size, is equal to a machine on all words.

    >>> check_possible("hard_channels", MooreMachine.from_source("task:sum_mod(3)"))
    Traceback (most recent call last):
    ...
    fsa2lrnn.errors.NotExpressible: no network of hard_channels is this machine, which has a group that is not a \
2-group, which diagonal entries 0, 1 and −1 exclude (T37): leave layer out; blocks, the default, represent every machine
    """
    fact, why = _NEEDED.get(layer, ("", ""))
    if fact and getattr(classify(machine, max_seconds=_SECONDS), fact).value is False:
        raise NotExpressible(
            f"no network of {layer} is this machine, which {why}: leave layer out; blocks, the default, represent "
            "every machine"
        )


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


def recipe_for(n_states: int | None, is_refined: bool = False, **changes: object) -> Recipe:
    """Return the recipe for a machine of `n_states` states: large ones get more heads, more letters and slower decay.

    `is_refined` is for machines of which every word counts: if labels are correct, they are refined until they tell all
    states apart, and a single head learns them.

    Raises `UnsupportedFormat` for unknown settings and invalid values.

    >>> recipe_for(51).heads, recipe_for(5, heads=2).heads, recipe_for(5, is_refined=True).heads
    (6, 2, 1)
    """
    names = [field.name for field in fields(Recipe)]
    if unknown := sorted(set(changes) - set(names)):
        raise UnsupportedFormat(
            f"{', '.join(unknown)}: no such setting of a recipe; {meant(unknown[0], names)}it has {', '.join(names)}"
        )
    if changes.get("layer", "block") != "block":
        return Recipe(**{"heads": _HEADS, **changes})
    plain = {"noise": 0.0, "suffixes": n_states}
    if is_refined and n_states and all(changes.get(name, value) == value for name, value in plain.items()):
        return Recipe(**{"heads": 1, "suffixes": n_states, "rate": 0.1, "temperature": 1.0, **changes})
    large = {"heads": 6, "letters": 2600, "decay": 600, "first_length": 3}
    return Recipe(**{**(large if n_states is not None and n_states > _SMALL else {}), **changes})
