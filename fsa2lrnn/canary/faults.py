"""The faults of an inference stack as changes of what a canary holds, and the search for one that explains outputs.

A fault happens between two letters: the state after `t` letters is replaced, in all layers or in one, in the recurrent
states, in the convolution's windows, or in both. What a stack puts out then is what the canary puts out from the
altered state, so a fault is found by running each one and comparing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from fsa2lrnn.canary.machines import NO_LETTER, WINDOW, Canary, LayerState, State, Word, held

PARTS = {"": (True, True), "recurrent states only": (True, False), "windows of convolutions only": (False, True)}
SINGLE = (
    "the state were zero", "the last 1 letters had not been read", "the last 1 letters had been read twice",
    "the next 1 letters had been read before", "windows lacked the last letter", "windows held 1 letters",
    "windows were shifted by one",
)  # fmt: skip
_STALE, _AHEAD = range(1, 9), range(1, 6)


@dataclass(frozen=True)
class Moment:
    """Where a fault may happen: the states so far (that before the first letter first), and what the run was given.

    Args:
        canary: the machine.
        past: the states up to now.
        word: the letters of the run; len(past) − 1 of them were read.
        wrong: letters that were read and taken back.
        others: the words of other sequences.
        padding: how many padding tokens stood before the word, `after` behind it.
    """

    canary: Canary
    past: Sequence[State]
    word: Sequence[int]
    wrong: Sequence[int] = ()
    others: Sequence[Sequence[int]] = ()
    padding: int = 0
    after: int = 0

    def read(self, letters: Sequence[int], state: State | None = None) -> State:
        """Return the state after further letters."""
        state = self.past[-1] if state is None else state
        for letter in letters:
            state = self.canary.step(state, letter)
        return state


def _window(state: State, change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> State:
    return tuple(LayerState(layer.values, change(layer.window)) for layer in state)


# The changes, the most likely first; each yields (what happened, the altered state).
def changes(at: Moment) -> Iterator[tuple[str, State]]:
    """Yield every change of the fault model at a moment, with its description."""
    now, t = at.past[-1], len(at.past) - 1
    yield "the state were zero", at.canary.start
    if at.wrong:
        for n in range(len(at.wrong), 0, -1):
            yield f"{n} of the {len(at.wrong)} letters taken back were still read", at.read(at.wrong[:n])
    if at.padding and t == 0:
        yield f"the {at.padding} padding tokens were letters", at.read([0] * at.padding)
    if at.after:
        yield f"the {at.after} padding tokens were letters", at.read([0] * at.after)
    stale = [(f"the last {n} letters had not been read", at.past[-1 - n]) for n in _STALE if n <= t]
    yield from stale[:1]
    for i, other in enumerate(at.others):
        yield f"the state were that of other sequence {i}", at.read(other[:t] if t else other, at.canary.start)
    yield from stale[1:]
    for n in _AHEAD:
        if n <= t:
            yield f"the last {n} letters had been read twice", at.read(at.word[t - n : t])
    for n in _AHEAD:
        if t + n <= len(at.word):
            yield f"the next {n} letters had been read before", at.read(at.word[t : t + n])
    for i, other in enumerate(at.others):
        yield f"the last letter of other sequence {i} had been read as well", at.read(other[max(t - 1, 0) : t])
        yield f"the next letter of other sequence {i} had been read before", at.read(other[t : t + 1])
    yield "windows lacked the last letter", _window(now, lambda window: (*window[1:], NO_LETTER))
    yield "windows were shifted by one", _window(now, lambda window: (NO_LETTER, *window[:-1]))
    for n in range(1, WINDOW):
        yield f"windows held {n} letters", _window(now, lambda window, n=n: (*window[:n], *[NO_LETTER] * (WINDOW - n)))
    shapes = [len(heads) for heads in at.canary.layers]
    for i in range(len(now)):
        for j in range(len(now)):
            if i != j and shapes[i] == shapes[j]:
                swapped = (*now[:i], now[j], *now[i + 1 :])
                yield f"layer {i} had read the state of layer {j}", swapped


def faults(at: Moment, distinct: bool = True) -> Iterator[tuple[str, State]]:
    """Yield every fault at a moment: each change in all layers or one, in both parts of a state or one.

    With `distinct`, of those that lead to the same state the first.
    """
    now, found = at.past[-1], list(changes(at))
    seen = {now}
    for chosen in (None, *range(len(now))):  # a change of all layers, in any part, is likelier than one of one layer
        for what, altered in found:
            for part, (of_values, of_windows) in PARTS.items():
                where = [part] if part else []
                where += [] if chosen is None else [f"layer {chosen} only"]
                state = tuple(
                    old
                    if chosen not in (None, i)
                    else LayerState(new.values if of_values else old.values, new.window if of_windows else old.window)
                    for i, (old, new) in enumerate(zip(now, altered, strict=True))
                )
                if not distinct or state not in seen or len(at.past) == 1:
                    seen.add(state)
                    yield f"{what} ({', '.join(where)})" if where else what, state


def named(at: Moment, name: str) -> State:
    """Return the state that the fault of a name leads to, the right one if it does not apply at this moment."""
    return next((state for found, state in faults(at, distinct=False) if found == name), at.past[-1])


@dataclass(frozen=True)
class Deviation:
    """The first wrong token of a run, and the fault that explains it and all later ones.

    Args:
        run: the name of the run.
        position: the number of letters read before the wrong token.
        expected, found: the tokens.
        fault: the name of the fault; "" if no fault of the model explains the tokens.
        explanation: what the stack did, and when, in words; "" likewise.
        n_wrong: how many of the run's tokens are wrong.
    """

    run: str
    position: int
    expected: int
    found: int
    fault: str
    explanation: str
    n_wrong: int


def tokens_of(canary: Canary) -> Callable[[State], int]:
    """Return the function that maps a state to the token that the model puts out in it.

    Where a fault makes up values that no word leads to, no unit fires and all logits are 0: the first token.
    """
    follows, n = dict(canary.follows), len(canary.letters)
    if follows:
        return lambda state: follows.get(held(state), 0)
    return lambda state: n + canary.outputs[held(state)] if held(state) in canary.outputs else 0


def compare(canary: Canary, run: dict[str, Any]) -> Deviation | None:
    """Return where the outputs of a run of the driver deviate from the canary's, with an explanation, or None."""
    token, word, first = tokens_of(canary), run["word"], run["first"]
    states = [canary.start, *canary.run(canary.start, word)]
    expected = [token(state) for state in states[first + 1 :]]
    differs = [i for i, pair in enumerate(zip(expected, run["outputs"], strict=False)) if pair[0] != pair[1]]
    if not differs:
        return None
    at = differs[0]
    why = explained(canary, run, states, first + at + 1)
    return Deviation(run["name"], first + at + 1, expected[at], run["outputs"][at], *why, len(differs))


def explained(canary: Canary, run: dict[str, Any], states: Sequence[State], position: int) -> tuple[str, str]:
    """Return the fault that leads to the outputs of a run whose first wrong token follows letter `position`, in words.

    A fault at one event (the borders of calls and the like) before that letter is tried first, the latest first, then
    the same at every event from there on, then at every second event.
    """
    events = [event for event in run["events"] if event < position] or [0]
    given = {
        name: run.get(name, default) for name, default in (("wrong", ()), ("others", ()), ("padding", 0), ("after", 0))
    }
    begins = list(dict.fromkeys([*reversed(events[-4:]), *events[:2]]))
    for every in (0, 1, 2):
        for event in begins:
            again = {later for later in run["events"] if later > event}
            again = set(sorted(again)[every - 1 :: every]) if every else set[int]()
            if every and not again:
                continue
            moment = Moment(canary, states[: event + 1], run["word"], **given)
            for name, state in faults(moment, distinct=not again):  # equal states part at later events
                if every == 2 and "layer" in name:  # too many hypotheses: some follow by chance
                    continue
                if _follows(canary, run, states[: event + 1], state, again, name, given):
                    if every:
                        return name, f"as if, at every {'second ' * (every - 1)}border from letter {event} on, {name}"
                    where = (
                        f"as if, after letter {event}, {name}" if event else f"as if {name}, before the first letter"
                    )
                    return name, where
    return "", ""


def _follows(
    canary: Canary,
    run: dict[str, Any],
    past: Sequence[State],
    state: State,
    events: set[int],
    name: str,
    given: dict[str, Any],
) -> bool:
    """Return whether the outputs are those after replacing the state, and at later events by the fault of that name."""
    token, first, outputs, word = tokens_of(canary), run["first"], run["outputs"], run["word"]
    past = [*past[:-1], state]
    for t in range(len(past) - 1, len(word)):
        past.append(canary.step(past[-1], word[t]))
        if 0 <= t - first < len(outputs) and token(past[-1]) != outputs[t - first]:
            return False
        if t + 1 in events and t + 1 < len(word):
            past[-1] = named(Moment(canary, past, word, **given), name)
    return True


@dataclass(frozen=True)
class Detection:
    """What outputs show of a fault, over all histories of uniformly drawn letters and all continuations.

    Args:
        harmless: the share of histories after which the altered state is the right one.
        unseen: the share of the others, and of their continuations, in which `tokens` tokens are all right.
        tokens: the number of tokens.
        within: the number of tokens within which the fault shows after every other history and in every continuation;
            None if there is none, or no history that the fault changes.
    """

    harmless: Fraction
    unseen: Fraction
    tokens: int
    within: int | None


def detection(canary: Canary, name: str, tokens: int = 8, last: int = 3, length: int = 10) -> Detection:
    """Return how the fault `name` of `faults` shows, exactly, for histories of `length` letters.

    The pair of the right and the altered state is followed through all continuations (the product automaton). `last`
    letters before the fault, and those after it that are read too early, are enumerated, which is as far as the fault
    may look; before them a history matters by its state alone, weighted by the number of words that lead to it.
    """
    letters = range(len(canary.letters))
    early = re.match(r"the next (\d+) letters", name)
    n_early = int(early[1]) if early else 0
    weights = Counter([canary.start])
    for _ in range(length - last):
        after = Counter[State]()
        for state, weight in weights.items():
            for a in letters:
                after[canary.step(state, a)] += weight
        weights = after
    pairs, harmless = Counter[tuple[State, State, Word]](), 0  # with the letters that must follow
    for state, weight in weights.items():
        for word in product(letters, repeat=last + n_early):
            past = [state, *canary.run(state, word[:last])]
            altered = named(Moment(canary, past, word), name)
            if altered == past[-1]:
                harmless += weight
            else:
                pairs[past[-1], altered, word[last:]] += weight
    total, met = harmless + pairs.total(), pairs.total()
    token, merged, within, continued = tokens_of(canary), 0, None, met
    for n in range(1, tokens + 1):
        after = Counter[tuple[State, State, Word]]()
        if n > n_early:
            merged, continued = merged * len(letters), continued * len(letters)
        for (right, altered, following), weight in pairs.items():
            for a in following[:1] or letters:
                one, other = canary.step(right, a), canary.step(altered, a)
                if one == other:
                    merged += weight
                elif token(one) == token(other):
                    after[one, other, following[1:]] += weight
        pairs = after
        if met and not pairs and not merged:
            within = n
            break
    unseen = Fraction(pairs.total() + merged, max(continued, 1))
    return Detection(Fraction(harmless, total), unseen, tokens, within)
