"""Decide whether factors of words determine a language: it is locally (threshold) testable, or of dot-depth one.

S is the semigroup of the maps of states by non-empty words.

A language has dot-depth at most one, or is piecewise locally testable (Rogers & Lambert 2019), if it is a boolean
combination of languages u₀ Σ* u₁ Σ* … u_k. Knast (1983): this holds if and only if

    (e p f q e)^ω e p f s e (e r f s e)^ω = (e p f q e)^ω (e r f s e)^ω

for all p, q, r, s and idempotents e, f of S. If it fails at a state, let a be that state after (epfqe)^ω, W the power
(erfse)^ω, b = a·pf, d = b·s e W and d′ = a·W ≠ d. Replace s by s e W and r by W (erfse)^{ω−1} e r, and let h and h′ be
the states to which r f leads d and d′. This is pattern 3:

    e fixes (a, d′, d), f fixes (b, h′, h), r: (a, d′, d) → (h′, h′, h), s: (b, h′, h) → (d, d′, d),

and a and b lie in one component. Conversely, the pattern with idempotent powers of the loops refutes the identity.
The pairs (d′, d) and (h′, h) lie in one component C of the graph of pairs. Thus r exists for all h in C if and only if
(a, d′, d) leads within C to some (x′, x′, x), and s if and only if (b, h′, h) leads to some (x, x′, x): a search of the
graph of triples whose pair stays in its component, O(n³ k). Two states of one component that a word fixes are the
case a = d′ = h′, b = d = h with r and s empty.

A language is locally threshold testable if the factors of some length, counted up to some threshold, and the two ends
determine it. Thérien & Weiss (1985), Beauquier & Pin (1991): this holds if and only if S is aperiodic and for all x, y,
z and idempotents e, f one has e x f y e z f = e z f y e x f. Dot-depth one is necessary and implies aperiodicity. The
identity fails if and only if there is pattern 4:

    e fixes (a, c, c′), f fixes (b, d, b′, d′), d ≠ d′, x: (a, c′) → (b, d′), y: (b, b′) → (c, c′), z: (a, c) → (b′, d).

A machine is locally testable if the factors of some length k and the two ends determine the state: eSe is a
semilattice, idempotent and commutative, for every idempotent e of S (Brzozowski & Simon 1973, McNaughton 1974). Kim,
McNaughton & McCloskey (1991) decide this on pairs and triples of states: patterns 0 to 2. They suffice for these
reasons. A word u that fixes some states may be replaced by its idempotent power, and states fixed by e lie in the image
of e. Write x, y for elements of eSe.

- xx ≠ x for some x if and only if a word leads some p to q, and q to r ≠ q, all three fixed by e: pattern 1.
- Else eSe is a band, and a band commutes unless it has x ≠ y with xy = y, yx = x, or with xy = x, yx = y.
- The former: if p·x = q and p·y = r ≠ q, then y leads q to r and x leads r to q, so that q and r lie in one component,
  both fixed by e: pattern 0. Conversely, let s lead such a q to r and t lead r to q. With x = ese and y = ete,
  q·xy = q and q·xyx = r; in a semilattice xyx = xy.
- The latter: if p·x = q and p·y = r ≠ q, then y fixes q and x fixes r, so that x takes (p, r) to (q, r) and y takes
  (p, q) to (r, q): pattern 2. Conversely, in a band p·xy = q·y = q and p·yx = r.

Without pattern 0, the p, q, r of the other patterns are distinct.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, islice, product

import numpy as np
from numba import njit

from fsa2lrnn.automata.monoid import map_kernels
from fsa2lrnn.automata.monoid.facts import Action, Fact, FactWitness, Letters, refuted
from fsa2lrnn.automata.table_kernels import breadth_first, can_reach
from fsa2lrnn.deadline import check_current

MAX_NODES = 10_000_000  # edges of a graph of tuples: 40 MB, and several times as much to build it
MAX_STEPS = 2_000_000_000  # steps of the search from every pair for patterns 1 and 2: some seconds
MAX_JOINS = 2_000_000_000  # candidates of pattern 4: some seconds
_SHORT = 200  # words of at most two letters in the quick search for pattern 4


def is_dot_depth_one(action: Action, j_trivial: Fact) -> Fact:
    """Decide whether the language is a boolean combination of languages u₀ Σ* u₁ … Σ* u_k, by pattern 3.

    Witness: words (u, v, p, q, r, s), states (a, d′, d, b, h′, h): u fixes a, d′ and d, v fixes b, h′ and h, p leads a
    to b, q leads b to a, r leads (a, d′, d) to (h′, h′, h), s leads (b, h′, h) to (d, d′, d), and d ≠ d′.
    """
    if j_trivial.value:
        return Fact(True, "polynomial: since the monoid is J-trivial")
    n, k = action.n_states, len(action.letters)
    if n**2 * k > MAX_NODES:
        return Fact(None, f"undecided: {n**2:,} pairs of states with {k} letters are above {MAX_NODES:,} edges")
    pairs = tuple_graph(action.letters, 2)
    fixed = on_cycle(pairs)
    if (two := two_in_a_component(action, fixed)) is not None:
        node = two[0] * n + two[1]
        witness = _knast_witness(action, pairs, (two[0], two[0], two[1]), (two[1], two[0], two[1]), (node, node))
        return Fact(False, "polynomial: by pairs of states that a word fixes", witness)
    component = map_kernels.components(pairs)
    codes = np.flatnonzero((np.bincount(component)[component] > 1) | fixed)
    m = len(codes)
    if n * m * k > MAX_NODES:
        return Fact(None, f"undecided: {n * m:,} triples of states with {k} letters are above {MAX_NODES:,} edges")
    graph = _within_components(action, pairs, component, codes)
    first, second = codes // n, codes % n  # d′ and d
    states = np.arange(n)[:, None]
    loops = on_cycle(graph).reshape(n, m)
    closed = np.append(np.where(graph < 0, n * m, graph), np.full((1, k), n * m), 0).T
    merging = [loops & _reaching(closed, states == with_).reshape(n, m) for with_ in (first, second)]
    # A component of pairs and one of states, for a and for b.
    place = component[codes] * n + map_kernels.components(action.successors)[:, None]
    both = np.intersect1d(place[merging[0]], place[merging[1]])
    method = "polynomial: by triples of states whose pairs stay in a component"
    if not len(both):
        return Fact(True, method)
    (a, i), (b, j) = (np.argwhere(merges & (place == both[0]))[0].tolist() for merges in merging)
    (d1, d), (h1, h) = divmod(int(codes[i]), n), divmod(int(codes[j]), n)
    nodes = a * m + i, b * m + j
    ends = h1 * m + j, d * m + i
    return Fact(False, method, _knast_witness(action, graph, (a, d1, d), (b, h1, h), nodes, ends))


def _within_components(action: Action, pairs: np.ndarray, component: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the graph of the nodes a m + j, state a and pair `codes[j]`, whose pair stays in its component."""
    number = np.full(len(pairs), -1)
    number[codes] = np.arange(len(codes))
    after = pairs[codes]
    stays = (after >= 0) & (component[after] == component[codes][:, None])
    moved = np.where(stays, number[after], -1)  # (m, k)
    graph = action.successors[:, None, :] * len(codes) + moved
    return np.where(moved < 0, -1, graph).reshape(-1, moved.shape[1])


def _reaching(closed: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return can_reach(closed, np.append(targets.reshape(-1), False))[:-1]


def _knast_witness(
    action: Action,
    graph: np.ndarray,
    at: tuple[int, int, int],
    to: tuple[int, int, int],
    nodes: tuple[int, int],
    ends: tuple[int, int] | None = None,
) -> FactWitness:
    """Return pattern 3 at (a, d′, d) and (b, h′, h), which are `nodes` of a graph; r and s lead to its nodes `ends`."""
    (a, d1, d), (b, h1, h) = at, to
    u, v = (action.path(graph, q, q) for q in nodes)
    p, q = _path(action, action.successors, a, b), _path(action, action.successors, b, a)
    r, s = (_path(action, graph, *edge) for edge in zip(nodes, nodes if ends is None else ends, strict=True))
    spelt = [action.spell(word) for word in (u, v, r, s)]
    says = (
        f"{spelt[0]} fixes states {a}, {d1} and {d}, {spelt[1]} fixes {b}, {h1} and {h}, and {a} and {b} lie in one "
        f"component; {spelt[2]} leads {a} to {h1}, {d1} to {h1} and {d} to {h}, {spelt[3]} leads {b} to {d}, {h1} to "
        f"{d1} and {h} to {d}"
    )
    return FactWitness(says, (u, v, p, q, r, s), (a, d1, d, b, h1, h))


def _path(action: Action, graph: np.ndarray, start: int, goal: int) -> Letters:
    return () if start == goal else action.path(graph, start, goal)


def is_locally_threshold_testable(action: Action, dot_depth_one: Fact) -> Fact:
    """Decide whether the language is locally threshold testable, by pattern 4.

    The time is polynomial: it joins the pairs reachable from all pairs with the triples and quadruples that a word
    fixes.

    Witness: that of `is_dot_depth_one`; or words (u, v, x, y, z), states (a, b, c, d, b′, c′, d′): u fixes a, c and c′,
    v fixes b, d, b′ and d′, x leads a to b and c′ to d′, y leads b to c and b′ to c′, z leads a to b′ and c to d ≠ d′.
    """
    if dot_depth_one.value is False:
        return Fact(False, "since the language is not piecewise locally testable", dot_depth_one.witness)
    if (witness := _short_refutation(action)) is not None:
        return Fact(False, "by words of at most two letters", witness)
    if dot_depth_one.value is None:
        return dot_depth_one
    n, k = action.n_states, len(action.letters)
    if n == 1:
        return Fact(True, "since the machine has one state")
    if max(n, k) * n**3 > MAX_NODES:
        return Fact(None, f"undecided: {n**3:,} triples of {n} states with {k} letters are too many to search")
    pairs, triples = (tuple_graph(action.letters, size, distinct=False) for size in (2, 3))
    loops3 = on_cycle(triples).reshape(n, n, n)
    numbers, quads = _quadruples(action.letters, loops3, MAX_NODES // k)
    if len(quads) and quads[0, 0] == -2:
        return Fact(None, f"undecided: more than {MAX_NODES // k:,} quadruples of states may be fixed by a word")
    loops4 = on_cycle(quads) if len(quads) else np.zeros(0, bool)
    reach = np.stack([reachable(pairs, node) for node in range(n * n)])
    method, joins = "polynomial: by triples and quadruples of states that a word fixes", 0
    for a, c in product(range(n), repeat=2):
        check_current("comparing paths")
        pattern = _not_exchangeable(reach, loops3, numbers, loops4, n, a, c)
        if pattern[0] >= 0:
            return Fact(False, method, _exchange_witness(action, pairs, [int(q) for q in pattern]))
        if (joins := joins + int(pattern[1])) > MAX_JOINS:
            return Fact(None, f"undecided: more than {MAX_JOINS:,} pairs of paths to compare")
    return Fact(True, method)


def _exchange_witness(action: Action, pairs: np.ndarray, states: Sequence[int]) -> FactWitness:
    a, b, c, d, b1, c1, d1 = states
    n = action.n_states
    u, v = _fixing(action, (a, c, c1)), _fixing(action, (b, d, b1, d1))
    x = _path(action, pairs, a * n + c1, b * n + d1)
    y = _path(action, pairs, b * n + b1, c * n + c1)
    z = _path(action, pairs, a * n + c, b1 * n + d)
    return _exchange(action, (u, v, x, y, z), states)


def _fixing(action: Action, states: tuple[int, ...]) -> Letters:
    """Return a shortest word that fixes all of these states; one exists."""
    origin, waiting = dict[tuple[int, ...], tuple[tuple[int, ...], int]](), [states]
    for at in waiting:
        for a, row in enumerate(action.letters):
            to = tuple(int(row[q]) for q in at)
            if to in origin:
                continue
            origin[to] = at, a
            if to == states:
                numbers = [a]
                while at != states:
                    at, a = origin[at]
                    numbers.append(a)
                return action.word(reversed(numbers))
            waiting.append(to)
    raise AssertionError("no word fixes these states")


def _exchange(action: Action, words: tuple[Letters, ...], states: Sequence[int]) -> FactWitness:
    u, v, x, y, z = map(action.spell, words)
    a, b, c, d, b1, c1, d1 = states
    says = (
        f"{u} fixes states {a}, {c} and {c1}, {v} fixes {b}, {d}, {b1} and {d1}; from {a}, {x}, {y} and {z} lead over "
        f"{b} and {c} to {d}, while {z}, {y} and {x} lead over {b1} and {c1} to {d1}"
    )
    return FactWitness(says, words, tuple(states))


def _short_refutation(action: Action) -> FactWitness | None:
    """Return a witness of pattern 4 with u = v and an empty y, for words of at most two letters; None proves nothing.

    It shows that eSe is not commutative, where e is an idempotent power of u, and exe and eze replace x and z.
    """
    k, n = action.letters.shape
    short = list(islice(chain(product(range(k)), product(range(k), repeat=2)), _SHORT))
    maps = np.array(
        [action.letters[w[0]] if len(w) == 1 else action.letters[w[1]][action.letters[w[0]]] for w in short]
    )
    for u, f in zip(short, maps, strict=True):
        e, times = f, 1
        while (e[e] != e).any() and times <= n:  # a power that is idempotent, if the monoid is aperiodic
            e, times = f[e], times + 1
        if (e[e] != e).any():
            continue
        inside = e[maps[:, e]]  # exe for each word x
        for i in range(len(short)):
            one, other = inside[:, inside[i]], inside[i][inside]  # x then z, z then x
            if (one != other).any():
                j, a = (int(q) for q in np.argwhere(one != other)[0])
                a = int(e[a])
                loop = action.word(u) * times
                x, z = (action.word(short[w]) + loop for w in (i, j))
                b, b1 = int(inside[i][a]), int(inside[j][a])
                d, d1 = int(inside[j][b]), int(inside[i][b1])
                return _exchange(action, (loop, loop, x, (), z), (a, b, b, d, b1, b1, d1))
    return None


def is_locally_testable(action: Action, definite: Fact, reverse_definite: Fact, threshold: Fact) -> Fact:
    """Decide whether the language is locally testable: eSe is a semilattice for every idempotent e of S.

    The time is polynomial, O(n⁴ k), by pairs and triples of states. Beyond `MAX_NODES` or `MAX_STEPS` only `definite`,
    `reverse_definite`, `threshold` and pairs of states are used, so that the value may be None.

    Witness: that of `threshold`, or distinct states, each fixed by u, with
    words (u, x, y), states (q, r): x leads q to r, y leads r to q; or
    words (u, x), states (p, q, r): x leads p to q and q to r; or
    words (u, x, y), states (p, q, r): x leads p to q and fixes r, y leads p to r and fixes q.
    """
    if definite.value or reverse_definite.value:
        kind = "definite" if definite.value else "reverse definite"
        return Fact(True, f"since the machine is {kind}")
    k, n = action.letters.shape
    is_large = n**3 * k > MAX_NODES or n**4 * k > MAX_STEPS
    if is_large and threshold.value is False:
        return Fact(False, "since the language is not locally threshold testable", threshold.witness)
    if n**2 * k > MAX_NODES:
        return Fact(None, f"undecided: {n**2:,} pairs of states with {k} letters are above {MAX_NODES:,} edges")
    # 1. Pairs of states that a word fixes: neither may lead to the other and back.
    pairs = tuple_graph(action.letters, 2)
    if (two := two_in_a_component(action, on_cycle(pairs))) is not None:
        (q, r), graph = two, action.successors
        words = action.path(pairs, q * n + r, q * n + r), action.path(graph, q, r), action.path(graph, r, q)
        loop, x, y = map(action.spell, words)
        says = f"{loop} fixes states {q} and {r}, yet {x} leads from {q} to {r} and {y} from {r} to {q}"
        return refuted("polynomial: by pairs of states that a word fixes", says, words, two)
    if is_large:
        return Fact(None, f"undecided: {n**3:,} triples of states with {k} letters are too many to search")
    # 2. Triples that a word fixes: on them words must be idempotent and commute.
    triples = tuple_graph(action.letters, 3)
    pattern, p, q, r = _not_semilattice(pairs, on_cycle(triples), n)
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
    """Return two states of one component that a word fixes, or None; `fixed`, bool (n²,), marks all fixed pairs."""
    component, n = map_kernels.components(action.successors), action.n_states
    together = np.argwhere(fixed.reshape(n, n) & (component[:, None] == component))
    return (int(together[0, 0]), int(together[0, 1])) if len(together) else None


def _not_semilattice(pairs: np.ndarray, loops: np.ndarray, n: int) -> tuple[int, int, int, int]:
    """Return a pattern (kind, p, q, r) among triples that a word fixes; kind 0 means none.

    `pairs` is the graph of pairs, (n², k); `loops[(p n + q) n + r]` is whether some word fixes p, q and r. Kind 1: a
    word maps (p, q) to (q, r). Kind 2: one word maps (p, r) to (q, r), another (p, q) to (r, q). The time is O(n⁴ k).
    """
    loops = loops.reshape(n * n, n)
    moves_past = np.zeros((n, n, n), np.bool_)  # [p, q, r]: some word takes (p, q) to (r, q)
    for start in np.flatnonzero(loops.any(axis=1)).tolist():
        p, q = divmod(start, n)
        reached = reachable(pairs, start).reshape(n, n)
        if (onward := loops[start] & reached[q]).any():
            return 1, p, q, int(onward.argmax())
        moves_past[p, q] = loops[start] & reached[:, q]
    for p, q, r in np.argwhere(moves_past & moves_past.swapaxes(1, 2)).tolist():
        return 2, p, q, r
    return 0, 0, 0, 0


def _quadruples(letters: np.ndarray, loops: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the quadruples of distinct states every three of which a word fixes, and the graph of the letters on them.

    `loops`, bool (n, n, n), is whether a word fixes three states. The first result is the number of each quadruple, or
    −1, int32 (n, n, n, n). The second is the graph, −1 for edges that leave it, or [[−2]] beyond `limit` quadruples.
    """
    n = letters.shape[1]
    apart = ~np.eye(n, dtype=bool)
    loops = loops & apart[:, :, None] & apart[:, None, :] & apart
    fixed = loops[:, :, :, None] & loops[:, :, None, :] & loops[:, None, :, :] & loops
    numbers = np.full(fixed.shape, -1, np.int32)
    if np.count_nonzero(fixed) > limit:
        return numbers, np.full((1, 1), -2, np.int32)
    states = np.argwhere(fixed).T
    numbers[fixed] = np.arange(states.shape[1])
    p, q, r, s = letters[:, states].swapaxes(0, 1)
    return numbers, np.ascontiguousarray(numbers[p, q, r, s].T)


@njit(cache=True)
def _not_exchangeable(
    reach: np.ndarray, loops3: np.ndarray, numbers: np.ndarray, loops4: np.ndarray, n: int, a: int, c: int
) -> tuple[int, int, int, int, int, int, int]:
    """Return pattern 4 at (a, c), (a, b, c, d, b′, c′, d′), or (−1, the comparisons, −1, …) if none.

    `reach[p n + q, r n + s]` is whether some word leads (p, q) to (r, s); `loops3[p, q, r]` whether some word fixes
    three states, and `loops4[numbers[p, q, r, s]]` whether one fixes four.
    """
    first, second = np.empty((n * n, 2), np.int64), np.empty((n * n, 2), np.int64)
    steps = 0
    if reach[a * n + a, c * n + c]:
        for c1 in range(c, n):  # the pattern is symmetric in c and c′
            if not loops3[a, c, c1] or not reach[a * n + a, c1 * n + c1]:
                continue
            n_first = n_second = 0
            for b in range(n):
                for d in range(n):
                    if loops3[b, b, d]:
                        if reach[a * n + c1, b * n + d] and reach[b * n + b, c * n + c]:
                            first[n_first] = b, d
                            n_first += 1
                        if reach[a * n + c, b * n + d] and reach[b * n + b, c1 * n + c1]:
                            second[n_second] = b, d
                            n_second += 1
            steps += n_first * n_second + n * n
            for i in range(n_first):
                b, d1 = first[i]
                for j in range(n_second):
                    b1, d = second[j]
                    if d == d1 or not reach[b * n + b1, c * n + c1]:
                        continue
                    if b == b1:
                        fixed = loops3[b, d, d1]
                    elif d in (b, b1):
                        fixed = loops3[b, b1, d1]
                    elif d1 in (b, b1):
                        fixed = loops3[b, b1, d]
                    else:
                        number = numbers[b, d, b1, d1]
                        fixed = number >= 0 and loops4[number]
                    if fixed:
                        return a, b, c, d, b1, c1, d1
    return -1, steps, -1, -1, -1, -1, -1


def on_cycle(successors: np.ndarray) -> np.ndarray:
    """Return whether each node lies on a cycle, which may be a loop: bool, shape (N,)."""
    component = map_kernels.components(successors)
    loops = (successors == np.arange(len(successors))[:, None]).any(axis=1)
    return (np.bincount(component)[component] > 1) | loops


def tuple_graph(letters: np.ndarray, size: int, distinct: bool = True) -> np.ndarray:
    """Return the graph of all letters on ordered pairs (size 2) or triples (3): int32, shape (n^size, k).

    The tuple (p, q, r) has the number (p n + q) n + r. If `distinct`, there are no edges from or to tuples that repeat
    a state.
    """
    k, n = letters.shape
    targets = rows = letters.astype(np.int32)
    for _ in range(size - 1):
        targets = (targets[:, :, None] * n + rows[:, None, :]).reshape(k, -1)
    graph = np.ascontiguousarray(targets.T)
    if distinct:
        states = np.indices((n,) * size).reshape(size, -1)
        repeats = np.any([p == q for p, q in combinations(states, 2)], axis=0)
        graph[np.logical_or(repeats[:, None], repeats[graph])] = -1
    return graph


def reachable(successors: np.ndarray, start: int) -> np.ndarray:
    """Return whether some path, possibly empty, leads from `start` to each node: bool, shape (N,)."""
    reached = np.zeros(len(successors), np.bool_)
    reached[breadth_first(successors.T, start)] = True
    return reached
