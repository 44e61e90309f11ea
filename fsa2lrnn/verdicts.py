"""What judges answer: proved, refuted or undecided, about which positions, and with which failing word.

One vocabulary for all of them, in code, JSON and prose. It needs no torch, so that a report can be read without.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NoReturn, cast

from fsa2lrnn import symbols
from fsa2lrnn.display.cards import BAD, GOOD, OPEN, card, failing
from fsa2lrnn.errors import UnsupportedFormat, counted
from fsa2lrnn.reading import read, shown

_NAMED = 8  # outputs that a line of text names


class Verdict:
    """A verdict is looked at with isinstance or match: as a truth value it would be read wrongly sooner or later."""

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is no truth value: ask isinstance(verdict, Proved)")

    @property
    def kind(self) -> str:
        """Its name in JSON and in prose: "proved", "refuted", "undecided"."""
        return type(self).__name__.lower()

    def to_json(self) -> dict[str, Any]:
        """A JSON object: the kind under "verdict", and all that the verdict holds."""
        return {"verdict": self.kind, **{f.name: _plain(getattr(self, f.name)) for f in fields(cast("Any", self))}}

    def in_words(self) -> list[tuple[str, str]]:
        """What it says, as names and values for people."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        colour = {"proved": GOOD, "accepted": GOOD, "refuted": BAD}.get(self.kind, OPEN)
        failure: Counterexample | None = getattr(self, "failure", None)
        return card(self.kind.capitalize(), self.in_words(), colour, *([failing(failure)] if failure else []))


@dataclass(frozen=True)
class Scope:
    """The positions that a verdict is about: all words, after each letter, less what is named here.

    Args:
        states: of the minimal machine.
        ignored_states: how many of them have outputs that do not count.
        ignored: these outputs.
        empty_word: whether the output on the empty word counts.
    """

    states: int
    ignored_states: int = 0
    ignored: tuple[Hashable, ...] = ()
    empty_word: bool = False

    def __str__(self) -> str:
        """In words.

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
        """A JSON object."""
        return {**vars(self), "ignored": _written(self.ignored)}


EVERY, LETTERS = "every", "letters"  # shapes of call


@dataclass(frozen=True)
class Coverage:
    """The runs that a verdict is about, on the CPU, without `torch.compile`.

    Args:
        arithmetic: the dtype computed in, "int" for exact tables.
        scans: by name.
        shapes: "every" shape of call, words in batches and in pieces as one likes; or "letters": words read one at a
            time, a letter a call.
        threads: how many, None for any number.
        environment: where the result depends on the order of float operations, what decides on that order: the version
            of torch, the CPU capability, the BLAS library and its settings (`versions.environment`).
        tested_layers: names of user-defined layers. The verdict rests on what they declare, which was tested on random
            inputs, not proved.
    """

    arithmetic: str
    scans: tuple[str, ...]
    shapes: str
    threads: int | None
    environment: tuple[str, ...] = ()
    tested_layers: tuple[str, ...] = ()

    def __str__(self) -> str:
        """In words.

        >>> print(Coverage("float32", ("sequential", "fused"), "every", None))
        in float32, by the scans sequential, fused; every shape of call, batch and number of threads
        >>> print(Coverage("float32", ("sequential",), "letters", 2))
        in float32, by the scans sequential; words read letter by letter, one at a time (batch 1), with 2 threads
        >>> str(Coverage("float32", ("sequential",), "letters", 1, ("AVX2", "MKL 2024.2"))).partition("(batch 1)")[2]
        ', with 1 thread, AVX2, MKL 2024.2'
        >>> print(Coverage("float32", ("fused",), "every", None, (), ("mine:Layer",)))  # doctest: +NORMALIZE_WHITESPACE
        in float32, by the scans fused; every shape of call, batch and number of threads; what the layer mine:Layer
        declares was tested on random inputs, not proved
        """
        how = "every shape of call, batch and number of threads"
        if self.shapes == LETTERS:
            threads = f", with {self.threads} thread{'s' * (self.threads != 1)}" if self.threads else ""
            how = ", ".join([f"words read letter by letter, one at a time (batch 1){threads}", *self.environment])
        runs = f"in {self.arithmetic}, by the scans {', '.join(self.scans)}; {how}"
        return "; ".join([runs, *tested(self.tested_layers)])


def tested(layers: tuple[str, ...]) -> list[str]:
    """Return what a verdict says of user-defined layers: one sentence, or none without such layers."""
    named = f"layer{'s' * (len(layers) > 1)} {', '.join(layers)} declare{'s' * (len(layers) == 1)}"
    return [f"what the {named} was tested on random inputs, not proved"] if layers else []


@dataclass(frozen=True)
class Counterexample:
    """A word that a model gets wrong.

    Args:
        word: the letters.
        wanted, given: what the machine and the model put out after each letter, or on the empty word for the empty
            word. The model's is "NaN" where its logits are not numbers.
        counts: whether each of these outputs counts; None if all do.
        margin: the logit of the output wanted at the last letter less the largest other; None where it was not looked
            at, −∞ where one is not a number or the model has no such output.
        scans: the scans of the model that are known to be wrong after this word.
    """

    word: tuple[Hashable, ...]
    wanted: tuple[Hashable, ...]
    given: tuple[Hashable, ...]
    counts: tuple[bool, ...] | None = None
    margin: float | None = None
    scans: tuple[str, ...] = ()

    @property
    def position(self) -> int:
        """The first wrong output, from 1; 0 for the empty word. Raises `UnsupportedFormat` if none is wrong."""
        counts = self.counts or [True] * len(self.wanted)
        for k, (wanted, given, is_asked) in enumerate(zip(self.wanted, self.given, counts, strict=True), 1):
            if is_asked and wanted != given:
                return k if self.word else 0
        raise UnsupportedFormat("a failing word needs an output that counts and differs from the machine's")

    def as_text(self) -> Counterexample:
        """The same with all symbols as they are written."""
        word, wanted, given = (tuple(map(str, part)) for part in (self.word, self.wanted, self.given))
        return Counterexample(word, wanted, given, self.counts, self.margin, self.scans)

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads back; an infinite margin, which JSON can't hold, becomes null."""
        margin = self.margin if self.margin is not None and math.isfinite(self.margin) else None
        return {
            "length": self.position,
            "word": _written(self.word),
            "wanted": _written(self.wanted),
            "given": _written(self.given),
            "counts": None if self.counts is None else list(self.counts),
            "margin": margin,
            "scans": list(self.scans),
        }

    @classmethod
    def from_json(cls, value: Any, where: str = "failure") -> Counterexample:
        """Inverse of `to_json`; "counts", "margin", "scans" and "length" may be missing.

        Raises:
            UnsupportedFormat: for anything else.

        >>> Counterexample.from_json(Counterexample(("a", "b"), (0, 1), (0, 0)).to_json()).position
        2
        """
        length = None
        if isinstance(value, Mapping):
            rest = dict(cast("Mapping[str, Any]", value))
            length, value = rest.pop("length", None), rest
        found = read(cls, value, where, {Hashable: lambda symbol, _: symbols.from_json(symbol)})
        lengths = {max(len(found.word), 1), len(found.wanted), len(found.given), len(found.counts or found.wanted)}
        if len(lengths) > 1:
            raise UnsupportedFormat(
                f"{where}: {len(found.word)} letters, but {len(found.wanted)} and {len(found.given)} outputs"
            )
        if length is not None and length != found.position:
            raise UnsupportedFormat(
                f"{where}: length {shown(length)}, but the first wrong output stands at {found.position}: leave length "
                "out, the word and its outputs say it"
            )
        return found


@dataclass(frozen=True)
class SearchRecord:
    """One search for a failing word and what it covered.

    Args:
        name: "known", "exhaustive", "periodic", "random", "beam", "guided" or "shorten".
        what: the words that it looked at, in words.
        length: all those words were judged at every letter up to this length.
        words: how many words, at the longest length; letters: model steps taken.
        seconds: what it took.
        found: the length of the shortest failing word that it found, if any.
        finished: False where time cut it short, so that another run may answer otherwise.
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
        """A JSON object."""
        return dict(vars(self))


@dataclass(frozen=True)
class Proved(Verdict):
    """The model of this digest is right on every word of every length, wherever the output counts, in the runs covered.

    Args:
        digest: SHA-256 of weights and configuration (`judge.model_digest`); of an exported folder, of its files.
        pairs: pairs (model state, machine state) reached; the graph is closed.
        transitions: letters read in them, each computed and compared; those after which nothing counts are left out.
        covers: the runs. Where every transition that was reached is one-hot or a lane's, and rounding can change
            neither it nor an output (`judge.exactness`), every schedule gives the same. Where steps do not round and
            the margins are larger than what the read-out may (`judge.stepping`), every call does that makes x_k of
            x_{k−1}. Else it is words read letter by letter, one at a time: each transition was computed so.
        scope: which outputs count.
    """

    pairs: int
    transitions: int
    covers: Coverage
    scope: Scope
    digest: str = field(repr=False)

    def in_words(self) -> list[tuple[str, str]]:
        """Return names and values: what was proved, how, in which runs, and of which model."""
        return [
            ("right", "on every word of every length, wherever the output counts, in the runs covered"),
            ("closed", f"{counted(self.pairs, 'joint state')}, {counted(self.transitions, 'transition')}"),
            ("covers", str(self.covers)),
            ("scope", str(self.scope)),
            ("of the model", self.digest[:16]),
        ]

    @property
    def arithmetic(self) -> str:
        """The dtype computed in, "int" for a `Recurrence`."""
        return self.covers.arithmetic

    @property
    def scans(self) -> tuple[str, ...]:
        """The scans that the proof covers."""
        return self.covers.scans

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, with the parts of `covers` in place of it."""
        value = super().to_json()
        del value["covers"]
        return {**value, **{name: _plain(part) for name, part in vars(self.covers).items()}}


@dataclass(frozen=True)
class Refuted(Verdict):
    """Wrong, with a word that shows it.

    Args:
        failure: the word; the model is wrong after its last letter and right wherever else it counts.
        checked_length: no word of at most this length fails; −1 where the empty one does.
        scope: which outputs count.
        found_by: the search that found it.
        searches: everything that was searched, by `falsify`.
    """

    failure: Counterexample
    checked_length: int
    scope: Scope
    found_by: str = "exhaustive"
    searches: tuple[SearchRecord, ...] = ()

    def in_words(self) -> list[tuple[str, str]]:
        """How long the word is, and what is known of shorter ones."""
        checked = counted(self.checked_length, "letter")
        least = "no shorter word fails" if self.is_shortest else f"no word of up to {checked} fails"
        found = f"{counted(self.position, 'letter')} long, found by {self.found_by}"
        return [("failing word", found), ("shorter", least), ("scope", str(self.scope))]

    @property
    def word(self) -> tuple[Hashable, ...]:
        """The letters of the failing word."""
        return self.failure.word

    @property
    def position(self) -> int:
        """Where the model is wrong, counted from 1: the last letter."""
        return len(self.failure.word)

    @property
    def is_shortest(self) -> bool:
        """Whether all shorter words were tried."""
        return self.checked_length >= self.position - 1

    def to_json(self) -> dict[str, Any]:
        """As every verdict, and whether all shorter words were tried."""
        return {**super().to_json(), "is_shortest": self.is_shortest}


@dataclass(frozen=True)
class Undecided(Verdict):
    """No failing word, and no proof.

    Args:
        checked_length: no word of at most this length fails, by single steps; None if that holds for words of every
            length, since the states closed, in an arithmetic that is not the scans' own (`falsify` proves nothing).
        scope: which outputs count.
        budget: the joint states allowed to the proof that ran out of them, None for a search.
        searches: everything that was searched, by `falsify`.
        seconds: the time limit that ended the proof, None where none did.
    """

    checked_length: int | None
    scope: Scope
    budget: int | None = None
    searches: tuple[SearchRecord, ...] = ()
    seconds: float | None = None

    def in_words(self) -> list[tuple[str, str]]:
        """How far was looked."""
        so_far = f"of up to {counted(self.checked_length or 0, 'letter')} fails, by single steps"
        if self.checked_length is None:
            so_far = "of any length fails by single steps, in an arithmetic that is not the scans' own: no proof"
        spent = [] if self.budget is None else [("budget", f"{counted(self.budget, 'joint state')}, all spent")]
        spent += [] if self.seconds is None else [("time limit", f"{self.seconds:.3g} s, all spent")]
        looked = [("searched", search.what) for search in self.searches]
        return [("checked", f"no word {so_far}"), *spent, *looked, ("scope", str(self.scope))]


@dataclass(frozen=True)
class Accepted(Verdict):
    """A certificate proves what it claims, of this model: right on every word so long, wherever the output counts.

    Args:
        horizon: N, or None for words of every length.
        scope: which outputs count.
        tested_layers: as those of `Coverage`.
    """

    horizon: int | None
    scope: Scope
    tested_layers: tuple[str, ...] = ()

    def in_words(self) -> list[tuple[str, str]]:
        """Up to which length."""
        length = "length" if self.horizon is None else f"length up to {self.horizon:,}"
        right = f"on every word of every {length}, wherever the output counts"
        assumed = [("assumed", text) for text in tested(self.tested_layers)]
        return [("right", right), ("scope", str(self.scope)), *assumed]


def _plain(value: Any) -> Any:
    """A field as JSON: what knows how to write itself does, lists and mappings go part by part."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in cast("Mapping[str, Any]", value).items()}
    return [_plain(part) for part in cast("Iterable[Any]", value)] if isinstance(value, tuple | list) else value


def _written(values: Iterable[Hashable]) -> list[Any]:
    return [symbols.to_json(symbol) for symbol in values]
