"""How likely words are under an acceptor, and changes that make them likelier.

Assumed is that a word of a given length and label is drawn uniformly among all words of its length that the acceptor
gives this label: it takes log₂ of the share of these words in bits. Of two acceptors that are right on all words, the
one that gives a label to fewer words then explains the words with this label better. `is_plausible` tests the
assumption; where it fails, absent words are no evidence, and the bits of the words are not counted.

`likelier` compares the words with a rare label with as many drawn from what the acceptor gives this label. Rules that
hold for many of the drawn words and for none of the given ones change the acceptor, if the words get likelier by more
bits than describe the rules; these bits are counted on words drawn anew. Single transitions and outputs change as long
as no word gets wrong and the words get likelier by more bits than name the change.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import numpy as np

from fsa2lrnn.automata.language import product
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import OutOfTime
from fsa2lrnn.learning.decision_lists import DecisionList, Space, Way, Words, ranked, refined, some, tiers, wrong_words
from fsa2lrnn.learning.literals import letter_classes

BOUNDS = (4.5, 3.0)  # of |z| for letters that act alike, the second if the first leaves words wrong
SMALL, MOST = 5, 12  # letters that are not united, and classes that are tried
_MORE = 1.5  # times the largest share of a pair of letters that uniform words allow
_EXCLUDING = Way(0, 1.44, True, 1.44)  # a drawn word, if it is one of few, is worth 1 / ln 2 bits
_SAMPLES = (4000, 60_000)  # words that rules are learned on, the second if the first give none
_FINAL, _GAIN, _ROUNDS = 2, 10.0, 6  # spaces that are compared on all words, least bits of a change, rounds of rules
_RARE = 0.25  # share of all words with a label that is compared
_IMPROVED, _CHANGES = 60, 30_000  # states of a machine whose transitions change, and changes of single letters
_FEW = 200  # words that most wrong changes get wrong


def draw(machine: MooreMachine, label: object, length: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return words drawn uniformly among those of a length and label, of which there is one: int64 (size, length)."""
    share, delta = _shares(machine, label, length), machine.delta
    q, words = np.full(size, machine.start), np.empty((size, length), np.int64)
    for t in range(length):
        weights = share[length - t - 1][delta[:, q]].cumsum(0)
        words[:, t] = (weights <= rng.random(size) * weights[-1]).sum(0).clip(max=len(delta) - 1)
        q = delta[words[:, t], q]
    return words


def share_of(machine: MooreMachine, label: object, length: int) -> float:
    """Return the share of all words of a length that get a label."""
    return float(_shares(machine, label, length)[-1][machine.start])


def _shares(machine: MooreMachine, label: object, length: int) -> list[np.ndarray]:
    """Return, for 0 … `length` letters, the share of such words that lead from each state to the label."""
    share = [np.array([float(output == label) for output in machine.outputs])]
    for _ in range(length):
        share.append(share[-1][machine.delta].mean(0))
    return share


def _sizes(words: Words) -> Counter[tuple[int, int]]:
    """Return the number of words of each length and label."""
    return Counter(zip(words[1].tolist(), words[2].tolist(), strict=True))


def is_plausible(machine: MooreMachine, words: Words) -> bool:
    """Return whether no two neighbouring letters are far more frequent than in words drawn as assumed.

    Of the words with a label, which have the share s of all, an event occurs in at most 1 / s times the share of all.
    """
    tokens, lengths, labels = words
    k, inside = len(machine.alphabet), np.arange(1, tokens.shape[1]) < lengths[:, None]
    for label in (0, 1):
        of = labels == label
        counts = np.bincount((tokens[of, :-1] * k + tokens[of, 1:])[inside[of]], minlength=k * k)
        sizes = [(length, size) for (length, y), size in _sizes(words).items() if y == label]
        most = sum(size * (length - 1) / share_of(machine, label, length) for length, size in sizes) / k**2
        if counts.max() > _MORE * most + 6 * np.sqrt(most):
            return False
    return True


def bits(machine: MooreMachine, words: Words | None) -> float:
    """Return the bits of a machine's outputs and pairs of a state and a next state, and those of the words if given."""
    n = machine.n_states
    pairs = sum(len(set(row)) for row in machine.delta.T.tolist())
    sizes = _sizes(words) if words is not None else {}
    of_words = (m * np.log2(max(share_of(machine, y, length), 1e-300)) for (length, y), m in sizes.items())
    return float(n + 2 * np.log2(max(n, 1)) * pairs + sum(of_words))


def likelier(machine: MooreMachine, words: Words, limit: Deadline) -> MooreMachine:
    """Return a machine that is right on all words after rules and changes that make them likelier."""
    longest = int(words[1].max())
    for seed in range(_ROUNDS):
        before = machine
        for label in (0, 1):
            if 0 < share_of(machine, label, longest) < _RARE:
                with suppress(OutOfTime):
                    machine = _with_rules(machine, label, words, seed, limit)
        if machine == before and (machine := _improved(machine, words, limit)) == before:
            break
    return machine


def _with_rules(machine: MooreMachine, label: int, words: Words, seed: int, limit: Deadline) -> MooreMachine:
    """Return the machine that gives the label to no words of certain rules, if such rules are found."""
    k = len(machine.alphabet)
    compared, again = (_compared(machine, label, words, each) for each in (seed, seed + _ROUNDS))
    partitions = [np.arange(k)]
    if k > SMALL:
        rows, of = np.unique(machine.delta, axis=0, return_index=True, return_inverse=True)[1:]
        alike = np.unique(rows[of.ravel()], return_inverse=True)[1]
        every = {each.tobytes(): each for each in (letter_classes(*compared, k, BOUNDS[0], limit), alike.ravel())}
        partitions = [each for each in every.values() if 1 <= each.max() < MOST]
    for size in _SAMPLES:
        for classes in partitions:
            first, second = ((np.ascontiguousarray(classes[x]), y, z) for x, y, z in (compared, again))
            rules = _rules(first, second, int(classes.max()) + 1, size, limit)
            if rules is not None and (keeps := rules.machine()) is not None:
                keeps = MooreMachine(keeps.delta[classes], keeps.outputs, keeps.start, machine.alphabet)
                return product(machine, keeps, lambda y, kept: y if kept else 1 - label).minimise()
        if size >= len(compared[2]):
            break
    return machine


def _compared(machine: MooreMachine, label: int, words: Words, seed: int) -> Words:
    """Return the words with a label, labelled 1, and as many that the machine gives this label, labelled 0."""
    rng, given = np.random.default_rng(seed), np.flatnonzero(words[2] == label)
    tokens, lengths = np.tile(words[0][given], (2, 1)), np.tile(words[1][given], 2)
    for length in set(words[1][given].tolist()):
        rows = len(given) + np.flatnonzero(words[1][given] == length)
        tokens[rows, :length] = draw(machine, label, length, len(rows), rng)
    order = rng.permutation(len(tokens))
    return tokens[order], lengths[order], np.repeat([1, 0], len(given))[order]


def _rules(compared: Words, again: Words, n: int, few: int, limit: Deadline) -> DecisionList | None:
    """Return the rules for words with the label 0 that are worth most, and that no word with the label 1 satisfies.

    They are learned on the first few words, and on words with the label 1 that satisfy one; they are worth bits for
    the words with the label 0 of `again`.
    """
    best, most = None, _GAIN
    spaces = [Space(tier, False) for tier in tiers(n)] + [Space((), True)]
    for first, space in ranked(compared, n, spaces, (_EXCLUDING,), few, limit)[:_FINAL]:
        rules = refined(compared, n, first, space, few, limit, counted=1)
        left = int((rules.wrong(again) & (again[2] == 0)).sum())
        n_drawn = len(again[2]) // 2
        gain = n_drawn * np.log2(n_drawn / max(left, 0.5)) - rules.cost
        if rules.rules and np.isfinite(rules.bits) and gain > most:
            best, most = rules, gain
    return best


def _improved(machine: MooreMachine, words: Words, limit: Deadline) -> MooreMachine:
    """Return the machine after changes of single transitions or outputs that make words of their labels likelier.

    Each change leaves all words right, and is worth more bits than it takes to name it among all changes.
    """
    few, sizes = some(words, slice(_FEW)), _sizes(words)
    while machine.n_states <= _IMPROVED and limit.left() > 0:
        changes = _changes(machine.delta)
        gains = _gains(machine, changes, sizes)
        order = np.argsort(-gains, kind="stable")
        for i in order[gains[order] > _GAIN + np.log2(len(gains))]:
            delta, outputs = machine.delta.copy(), [*machine.outputs]
            if i < len(changes):
                letters, q, to = changes[i]
                delta[letters, q] = to
            else:
                outputs[i - len(changes)] = 1 - outputs[i - len(changes)]
            changed = MooreMachine(delta, outputs, machine.start, machine.alphabet)
            if not wrong_words(changed, few).any() and not wrong_words(changed, words).any():
                machine = changed.minimise()
                break
            if limit.left() < 0:
                return machine
        else:
            break
    return machine


def _changes(delta: np.ndarray) -> list[tuple[np.ndarray, int, int]]:
    """Return all redirections of a state by letters that act alike, and by single letters unless these are too many."""
    k, n = delta.shape
    alike = np.unique(delta, axis=0, return_inverse=True)[1].ravel()
    groups = [np.flatnonzero(alike == c) for c in range(alike.max() + 1)]
    if k * n * n <= _CHANGES:
        groups += [np.array([a]) for a in range(k) if (alike == alike[a]).sum() > 1]
    return [(letters, q, to) for letters in groups for q in range(n) for to in range(n) if delta[letters[0], q] != to]


def _gains(machine: MooreMachine, changes: list[tuple[np.ndarray, int, int]], sizes: Counter) -> np.ndarray:
    """Return by how many bits the words get likelier by each change, and by a change of each state's output."""
    (k, n), outputs = machine.delta.shape, np.array(machine.outputs)
    step = np.zeros((n, n))
    np.add.at(step, (np.tile(np.arange(n), k), machine.delta.ravel()), 1 / k)
    every, (state, to) = np.arange(len(changes)), (np.array([each[i] for each in changes], int) for i in (1, 2))
    share = np.array([len(letters) / k for letters, _, _ in changes])
    before = np.array([machine.delta[letters[0], q] for letters, q, _ in changes], int)
    # The probabilities of the states after each length, of the machine and of each changed one.
    at, reached = np.eye(1, n, machine.start)[0], np.tile(np.eye(1, n, machine.start), (len(changes), 1))
    gains = np.zeros(len(changes) + n)
    for length in range(1, max(length for length, _ in sizes) + 1):
        moved = reached[every, state] * share
        reached = reached @ step
        reached[every, before] -= moved
        reached[every, to] += moved
        at = at @ step
        for label in (0, 1):
            is_label = outputs == label
            now = at[is_label].sum()
            after = np.concatenate([reached[:, is_label].sum(1), now + np.where(is_label, -at, at)])
            if size := sizes[length, label]:
                gains += size * np.log2(now / np.maximum(after, 1e-300))
    return gains
