"""Local testability: whether the factors of some length k, and the two ends, determine the state.

With S the semigroup of the non-empty words, a machine is locally testable when eSe is a semilattice, idempotent and
commutative, for every idempotent e of S (Brzozowski & Simon 1973, McNaughton 1974). Kim, McNaughton & McCloskey
(1991) decide this on pairs and triples of states; these are the patterns of this module, with proofs that they suffice.
A word u that fixes some states may be replaced by its idempotent power, and states fixed by e lie in the image of e.
Write x, y for elements of eSe.

- xx ≠ x for some x if and only if a word leads some p to q, and q to r ≠ q, all three fixed by e: pattern 1.
- Else eSe is a band, and a band commutes unless it has x ≠ y with xy = y, yx = x, or with xy = x, yx = y.
- The former: if p·x = q and p·y = r ≠ q, then y leads q to r and x leads r to q, so that q and r lie in one component,
  both fixed by e: pattern 0. Conversely, let s lead such a q to r and t lead r to q. With x = ese and y = ete,
  q·xy = q and q·xyx = r; in a semilattice xyx = xy.
- The latter: if p·x = q and p·y = r ≠ q, then y fixes q and x fixes r, so that x takes (p, r) to (q, r) and y takes
  (p, q) to (r, q): pattern 2. Conversely, in a band p·xy = q·y = q and p·yx = r.

Where pattern 0 is absent, the p, q, r of the others are distinct.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.automata.monoid.facts import Action, Fact, refuted

MAX_TUPLES = 30_000_000  # edges of the graph of triples: 120 MB
MAX_STEPS = 2_000_000_000  # steps of the search from every pair: some seconds


def is_locally_testable(action: Action, definite: Fact, reverse_definite: Fact, threshold: Fact) -> Fact:
    """Decide whether eSe is a semilattice for every idempotent e of the semigroup of non-empty words.

    Polynomial, by pairs and triples of states: O(n⁴ k) at worst. Beyond `MAX_TUPLES` and `MAX_STEPS` it is false if the
    language is not even locally threshold testable (`threshold`), else undecided.

    Witness: u fixes each of the states, which are distinct, and
    words (u, x, y), states (q, r): x leads q to r, y leads r to q; or
    words (u, x), states (p, q, r): x leads p to q and q to r; or
    words (u, x, y), states (p, q, r): x leads p to q and fixes r, y leads p to r and fixes q; or
    that of `threshold`.
    """
    if definite.value or reverse_definite.value:
        kind = "definite" if definite.value else "reverse definite"
        return Fact(True, f"since the machine is {kind}")
    k, n = action.letters.shape
    is_large = n**3 * k > MAX_TUPLES or n**4 * k > MAX_STEPS
    if is_large and threshold.value is False:
        return Fact(False, "since the language is not locally threshold testable", threshold.witness)
    if n**2 * k > MAX_TUPLES:
        return Fact(None, f"undecided: {n**2:,} pairs of states with {k} letters are above {MAX_TUPLES:,} edges")
    pairs = map_kernels.tuple_graph(action.letters, 2)
    if (two := two_in_a_component(action, map_kernels.on_cycle(pairs))) is not None:
        (q, r), graph = two, action.successors
        words = action.path(pairs, q * n + r, q * n + r), action.path(graph, q, r), action.path(graph, r, q)
        loop, x, y = map(action.spell, words)
        says = f"{loop} fixes states {q} and {r}, yet {x} leads from {q} to {r} and {y} from {r} to {q}"
        return refuted("polynomial: by pairs of states that a word fixes", says, words, two)
    if is_large:
        return Fact(None, f"undecided: {n**3:,} triples of states with {k} letters are too many to search")
    triples = map_kernels.tuple_graph(action.letters, 3)
    pattern, p, q, r = map_kernels.not_semilattice(pairs, map_kernels.on_cycle(triples), n)
    if pattern == 0:
        return Fact(True, "polynomial: no pattern among pairs and triples of states that a word fixes")
    code = (p * n + q) * n + r
    words = (action.path(triples, code, code),)
    if pattern == 1:
        words += (action.path(pairs, p * n + q, q * n + r),)
        yet = f"{action.spell(words[1])} leads {p} to {q} and {q} on to {r}"
    else:
        words += action.path(pairs, p * n + r, q * n + r), action.path(pairs, p * n + q, r * n + q)
        x, y = map(action.spell, words[1:])
        yet = f"{x} leads {p} to {q} and fixes {r}, while {y} leads {p} to {r} and fixes {q}"
    says = f"{action.spell(words[0])} fixes states {p}, {q} and {r}, yet {yet}"
    return refuted("polynomial: by triples of states that a word fixes", says, words, (p, q, r))


def two_in_a_component(action: Action, fixed: np.ndarray) -> tuple[int, int] | None:
    """Return two states of one component that a word fixes; `fixed` says of each pair of states whether a word does."""
    component, n = map_kernels.components(action.successors), action.n_states
    together = np.argwhere(fixed.reshape(n, n) & (component[:, None] == component))
    return (int(together[0, 0]), int(together[0, 1])) if len(together) else None
