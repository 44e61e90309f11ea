"""The scope of a verdict: which outputs count, and which runs of the model it covers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from fsa2lrnn import symbols

_NAMED = 8  # the most outputs that a line of text names


@dataclass(frozen=True)
class Scope:
    """The outputs that a verdict covers: those after each letter of every word, except the ignored ones.

    Args:
        states: the number of states of the minimal machine.
        ignored_states: the number of states whose outputs do not count.
        ignored: the outputs that do not count.
        empty_word: whether the output on the empty word counts.
    """

    states: int
    ignored_states: int = 0
    ignored: tuple[Hashable, ...] = ()
    empty_word: bool = False

    def __str__(self) -> str:
        """Return the scope as a sentence.

        >>> print(Scope(5, 2, ("error",)))
        outputs of 2 of 5 states do not count: error; nor does that of the empty word
        >>> print(Scope(5))
        every output counts but that of the empty word
        """
        if not self.ignored_states:
            return "every output counts" if self.empty_word else "every output counts but that of the empty word"
        named = ", ".join(symbols.show(output) for output in self.ignored[:_NAMED])
        more = f" and {len(self.ignored) - _NAMED} more" if len(self.ignored) > _NAMED else ""
        rest = "" if self.empty_word else "; nor does that of the empty word"
        return f"outputs of {self.ignored_states:,} of {self.states:,} states do not count: {named}{more}{rest}"

    def to_json(self) -> dict[str, Any]:
        """Return the scope as a JSON object."""
        return {**vars(self), "ignored": [symbols.to_json(output) for output in self.ignored]}


EVERY, LETTERS = "every", "letters"  # shapes of call


@dataclass(frozen=True)
class Coverage:
    """The runs of a model that a verdict covers, all of them on the CPU and without `torch.compile`.

    Args:
        arithmetic: the dtype of the computation, "int" for exact tables.
        scans: the names of the scans.
        shapes: "every", for words in any batches and pieces; or "letters", for words read one at a time, one letter per
            call.
        threads: the number of threads, None for any number.
        environment: the versions and settings that fix the order of float operations, if the result depends on it:
            torch, the CPU capability, the BLAS library and its settings (`versions.environment`).
        tested_layers: the names of user-defined layers. The verdict relies on their declarations, which were tested on
            random inputs, not proved.
    """

    arithmetic: str
    scans: tuple[str, ...]
    shapes: str
    threads: int | None
    environment: tuple[str, ...] = ()
    tested_layers: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the coverage as one line of text.

        >>> print(Coverage("float32", ("sequential", "fused"), "every", None))
        in float32, by the scans sequential, fused; every shape of call, batch and number of threads
        >>> print(Coverage("float32", ("sequential",), "letters", 2))
        in float32, by the scans sequential; words read letter by letter, one at a time (batch 1), with 2 threads
        >>> print(Coverage("float32", ("fused",), "every", None, (), ("mine:Layer",)))  # doctest: +NORMALIZE_WHITESPACE
        in float32, by the scans fused; every shape of call, batch and number of threads; what the layer mine:Layer
        declares was tested on random inputs, not proved
        """
        how = "every shape of call, batch and number of threads"
        if self.shapes == LETTERS:
            threads = f", with {self.threads} thread{'s' * (self.threads != 1)}" if self.threads else ""
            how = ", ".join([f"words read letter by letter, one at a time (batch 1){threads}", *self.environment])
        return "; ".join(
            [f"in {self.arithmetic}, by the scans {', '.join(self.scans)}; {how}", *tested(self.tested_layers)]
        )


def tested(layers: tuple[str, ...]) -> list[str]:
    """Return the assumption about user-defined layers as a list of one clause, empty without such layers."""
    named = f"layer{'s' * (len(layers) > 1)} {', '.join(layers)} declare{'s' * (len(layers) == 1)}"
    return [f"what the {named} was tested on random inputs, not proved"] if layers else []
