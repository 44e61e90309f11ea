"""Facts decided by single letters and pairs of letters: whether the monoid is a group or commutative."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.automata.monoid.facts import Action, Fact, FactWitness


def is_group(action: Action) -> Fact:
    """Decide whether the monoid is a group: its generators are permutations.

    Witness: words (a,), states (p, q, r) with p ≠ q and both led to r by the letter a.
    """
    method = "polynomial: whether every letter is a permutation"
    for a, row in enumerate(action.letters):
        targets, first = np.unique(row, return_index=True)
        if len(targets) < action.n_states:
            q = int(np.setdiff1d(np.arange(action.n_states), first)[0])
            r = int(row[q])
            p = int(np.flatnonzero(row == r)[0])
            word = action.word([a])
            return Fact(
                False,
                method,
                FactWitness(f"{action.spell(word)} leads states {p} and {q} both to {r}", (word,), (p, q, r)),
            )
    return Fact(True, method)


def is_commutative(action: Action) -> Fact:
    """Decide whether the monoid is commutative: its generators commute.

    Witness: words (ab, ba), states (q, r, s): ab leads from q to r, ba to s ≠ r.
    """
    method = "polynomial: whether every two letters commute"
    for a, row in enumerate(action.letters):
        differ = row[action.letters] != action.letters[:, row]  # [b, q]: q·ba against q·ab
        if differ.any():
            b, q = (int(i) for i in np.argwhere(differ)[0])
            words = action.word([a, b]), action.word([b, a])
            r, s = action.follow(q, [a, b])[-1], action.follow(q, [b, a])[-1]
            says = f"from state {q}, {action.spell(words[0])} leads to {r} and {action.spell(words[1])} to {s}"
            return Fact(False, method, FactWitness(says, words, (q, r, s)))
    return Fact(True, method)
