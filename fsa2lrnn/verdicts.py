"""The verdicts that all verifiers share: proved, refuted with a counterexample, undecided, or accepted.

This module does not import torch, so that reports can be read without it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NoReturn, cast

from fsa2lrnn import symbols
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import UnsupportedFormat, counted, shortened
from fsa2lrnn.reading import read, shown

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
        in float32, by the scan sequential; words read letter by letter, one at a time (batch 1), with 2 threads
        >>> print(Coverage("float32", ("fused",), "every", None, (), ("mine:Layer",)))  # doctest: +NORMALIZE_WHITESPACE
        in float32, by the scan fused; every shape of call, batch and number of threads; what the layer mine:Layer
        declares was tested on random inputs, not proved
        >>> print(Coverage("bfloat16", ("RWKV_x070 of rwkv 0.8.30",), "letters", None))
        in bfloat16, by RWKV_x070 of rwkv 0.8.30; words read letter by letter, one at a time (batch 1)
        """
        how = "every shape of call, batch and number of threads"
        if self.shapes == LETTERS:
            threads = f", with {self.threads} thread{'s' * (self.threads != 1)}" if self.threads else ""
            how = ", ".join([f"words read letter by letter, one at a time (batch 1){threads}", *self.environment])
        # The code of another package is named by a phrase, our scans by a word each.
        by = "" if any(" " in scan for scan in self.scans) else f"the scan{'s' * (len(self.scans) != 1)} "
        return "; ".join([f"in {self.arithmetic}, by {by}{', '.join(self.scans)}; {how}", *tested(self.tested_layers)])


def tested(layers: tuple[str, ...]) -> list[str]:
    """Return the assumption about user-defined layers as a list of one clause, empty without such layers."""
    named = f"layer{'s' * (len(layers) > 1)} {', '.join(layers)} declare{'s' * (len(layers) == 1)}"
    return [f"what the {named} was tested on random inputs, not proved"] if layers else []


class Verdict(Brief):
    """The base class of verdicts; `bool(verdict)` raises `TypeError`, so use `isinstance` or `match`."""

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is not a truth value: ask isinstance(verdict, Proved)")

    @property
    def kind(self) -> str:
        """The name of the verdict in JSON and messages: "proved", "refuted", "undecided" or "accepted"."""
        return type(self).__name__.lower()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the kind under "verdict" and all fields of the verdict."""
        return {"verdict": self.kind, **{f.name: _plain(getattr(self, f.name)) for f in fields(cast("Any", self))}}

    def in_words(self) -> list[tuple[str, str]]:
        """Return the facts of the verdict for display, as pairs of a name and a text."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return the verdict as one line of text."""
        return f"{self.kind}: {self.in_words()[0][1]}"


@dataclass(frozen=True)
class Counterexample(Brief):
    """A word on which a model's output differs from the machine's.

    Args:
        wanted, given: the expected and the predicted outputs after each letter; for the empty word, its one output. The
            predicted output is "NaN" where logits are NaN.
        counts: whether each of these outputs counts; None if all do.
        margin: the logit of the expected output after the last letter minus the largest other logit; None if not
            computed, −∞ if a logit is NaN or the model lacks the output.
        scans: the names of the scans whose output is wrong after this word.
    """

    word: tuple[Hashable, ...]
    wanted: tuple[Hashable, ...]
    given: tuple[Hashable, ...]
    counts: tuple[bool, ...] | None = None
    margin: float | None = None
    scans: tuple[str, ...] = ()

    @property
    def position(self) -> int:
        """The position of the first wrong output, from 1, or 0 for the empty word.

        Raises `UnsupportedFormat` if all outputs that count are correct.
        """
        counts = self.counts or [True] * len(self.wanted)
        for k, (wanted, given, does_count) in enumerate(zip(self.wanted, self.given, counts, strict=True), 1):
            if does_count and wanted != given:
                return k if self.word else 0
        raise UnsupportedFormat("a counterexample needs an output that counts and differs from the machine's")

    def as_text(self) -> Counterexample:
        """Return the counterexample with all symbols as text."""
        word, wanted, given = (tuple(map(str, part)) for part in (self.word, self.wanted, self.given))
        return Counterexample(word, wanted, given, self.counts, self.margin, self.scans)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back; an infinite margin becomes null."""
        return {
            "length": self.position,
            "word": _written(self.word),
            "wanted": _written(self.wanted),
            "given": _written(self.given),
            "counts": None if self.counts is None else list(self.counts),
            "margin": self.margin if self.margin is not None and math.isfinite(self.margin) else None,
            "scans": list(self.scans),
        }

    @classmethod
    def from_json(cls, value: object, where: str = "failure") -> Counterexample:
        """Return the counterexample of a JSON object; "counts", "margin", "scans" and "length" may be missing.

        Raises `UnsupportedFormat`, which names the object as `where`, if a field does not fit or no output is wrong.

        >>> Counterexample.from_json(Counterexample(("a", "b"), (0, 1), (0, 0)).to_json()).position
        2
        """
        length = None
        if isinstance(value, Mapping):
            rest = dict(cast("Mapping[str, Any]", value))
            length, value = rest.pop("length", None), rest
        loaded = read(cls, value, where, {Hashable: lambda symbol, _: symbols.from_json(symbol)})
        lengths = {max(len(loaded.word), 1), len(loaded.wanted), len(loaded.given), len(loaded.counts or loaded.wanted)}
        if len(lengths) > 1:
            raise UnsupportedFormat(
                f"{where}: {len(loaded.word)} letters, but {len(loaded.wanted)} and {len(loaded.given)} outputs"
            )
        if length is not None and length != loaded.position:
            raise UnsupportedFormat(
                f"{where}: length {shown(length)}, but the first wrong output stands at {loaded.position}: leave "
                "length out, the word and its outputs say it"
            )
        return loaded


@dataclass(frozen=True)
class SearchRecord(Brief):
    """One search for a counterexample and the words that it covered.

    Args:
        name: "known", "exhaustive", "periodic", "random", "beam", "guided" or "shorten".
        what: a description of the words searched.
        length: the length up to which all these words were compared, after every letter.
        words: the number of words of that length.
        letters: the number of steps of the model.
        seconds: the time that the search took.
        found: the length of the shortest counterexample that the search found, if any.
        finished: False if the time limit ended the search, so that another run may differ.
    """

    name: str
    what: str
    length: int
    words: int
    letters: int
    seconds: float
    found: int | None
    finished: bool

    def to_json(self) -> dict[str, Any]:
        """Return the record as a JSON object."""
        return dict(vars(self))


@dataclass(frozen=True)
class Proved(Verdict):
    """A proof that the model is correct on all words of all lengths, wherever outputs count, in the runs covered.

    Args:
        pairs: the number of reachable pairs (model state, machine state), all of which were enumerated.
        transitions: the number of transitions between them, all of which were computed and compared. After those left
            out, no output counts.
        covers: the runs covered. If all transitions are one-hot or of one scalar channel, and rounding can change no
            transition and no output (`verification.walk`): every schedule. If steps do not round and the margins
            exceed the rounding of the read-out (`verification.equivalence`): every call that computes x_k from x_{k−1}.
            Otherwise: words read letter by letter, one at a time, as each transition was computed.
        scope: the outputs that count.
        digest: SHA-256 of weights and configuration (`verification.model_digest`), or of the files of an export.
    """

    pairs: int
    transitions: int
    covers: Coverage
    scope: Scope
    digest: str = field(repr=False)

    def in_words(self) -> list[tuple[str, str]]:
        return [
            ("right", "on every word of every length, wherever the output counts, in the runs covered"),
            ("closed", f"{counted(self.pairs, 'joint state')}, {counted(self.transitions, 'transition')}"),
            ("covers", str(self.covers)),
            ("scope", str(self.scope)),
            ("of the model", self.digest[:16]),
        ]

    @property
    def arithmetic(self) -> str:
        """The dtype of the computation, "int" for a `Recurrence`."""
        return self.covers.arithmetic

    @property
    def scans(self) -> tuple[str, ...]:
        """The scans that the proof covers."""
        return self.covers.scans

    def to_json(self) -> dict[str, Any]:
        return _with_coverage(super().to_json(), self.covers)


@dataclass(frozen=True)
class Refuted(Verdict):
    """A refutation: a counterexample, and the searches that found it.

    Args:
        failure: the counterexample; its last output is wrong, and all before that count are correct.
        checked_length: the length up to which the model is correct on all words; −1 if it fails on the empty word.
        scope: the outputs that count.
        found_by: the search that found the counterexample.
        searches: the records of all searches of `falsify`.
    """

    failure: Counterexample
    checked_length: int
    scope: Scope
    found_by: str = "exhaustive"
    searches: tuple[SearchRecord, ...] = ()

    def in_words(self) -> list[tuple[str, str]]:
        checked = counted(self.checked_length, "letter")
        least = "no shorter word fails" if self.is_shortest else f"no word of up to {checked} fails"
        length = f"{counted(self.position, 'letter')} long, found by {self.found_by}"
        return [("counterexample", length), ("shorter", least), ("scope", str(self.scope))]

    def __str__(self) -> str:
        word, failure = shortened(symbols.word_text(self.word, self.word) or "ε", 80), self.failure
        expected, predicted = (symbols.show(part[-1]) for part in (failure.wanted, failure.given))
        return f"refuted: after {word} the output is {predicted}, not {expected}"

    @property
    def word(self) -> tuple[Hashable, ...]:
        """The letters of the counterexample."""
        return self.failure.word

    @property
    def position(self) -> int:
        """The position of the wrong output, from 1: that of the last letter."""
        return len(self.failure.word)

    @property
    def is_shortest(self) -> bool:
        """Whether the model is correct on all shorter words, which were all tried."""
        return self.checked_length >= self.position - 1

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "is_shortest": self.is_shortest}


@dataclass(frozen=True)
class Undecided(Verdict):
    """An open verdict: neither a counterexample nor a proof was found.

    Args:
        checked_length: the length up to which the model is correct on all words, computed by single steps; None for
            every length. None is not a proof: the finitely many states were enumerated in an arithmetic that is not the
            scans' own.
        scope: the outputs that count.
        budget: the number of joint states after which the proof gave up; None for a search.
        searches: the records of all searches of `falsify`.
        seconds: the time limit that ended the proof, if one did.
    """

    checked_length: int | None
    scope: Scope
    budget: int | None = None
    searches: tuple[SearchRecord, ...] = ()
    seconds: float | None = None

    def in_words(self) -> list[tuple[str, str]]:
        so_far = f"of up to {counted(self.checked_length or 0, 'letter')} fails, by single steps"
        if self.checked_length is None:
            so_far = "of any length fails by single steps, in an arithmetic that is not the scans' own: no proof"
        spent = [] if self.budget is None else [("budget", f"{counted(self.budget, 'joint state')}, all spent")]
        spent += [] if self.seconds is None else [("time limit", f"{self.seconds:.3g} s, all spent")]
        searched = [("searched", search.what) for search in self.searches]
        return [("checked", f"no word {so_far}"), *spent, *searched, ("scope", str(self.scope))]


@dataclass(frozen=True)
class Accepted(Verdict):
    """A successful check: the certificate proves that the model is correct up to a length, in the runs covered.

    Args:
        horizon: the certified length, or None for all lengths.
        scope: the outputs that count.
        covers: the runs covered; for an enumeration of a model that rounds, only words read letter by letter.
    """

    horizon: int | None
    scope: Scope
    covers: Coverage

    def in_words(self) -> list[tuple[str, str]]:
        length = "" if self.horizon is None else f" up to {self.horizon:,}"
        right = f"on every word of every length{length}, wherever the output counts, in the runs covered"
        return [("right", right), ("covers", str(self.covers)), ("scope", str(self.scope))]

    @property
    def tested_layers(self) -> tuple[str, ...]:
        """The user-defined layers whose declarations were tested, not proved."""
        return self.covers.tested_layers

    def to_json(self) -> dict[str, Any]:
        return _with_coverage(super().to_json(), self.covers)


def _with_coverage(value: dict[str, Any], covers: Coverage) -> dict[str, Any]:
    """Return a JSON object with the fields of a coverage in place of "covers"."""
    del value["covers"]
    return value | {name: _plain(part) for name, part in vars(covers).items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in cast("Mapping[str, Any]", value).items()}
    return [_plain(part) for part in cast("Iterable[Any]", value)] if isinstance(value, tuple | list) else value


def _written(values: Iterable[Hashable]) -> list[Any]:
    return [symbols.to_json(symbol) for symbol in values]
