"""The definitions, by brute force over the monoid in plain Python: what the fast tests are held against."""

import pytest

from fsa2lrnn import MooreMachine


class Brute:
    """The semigroup of the non-empty words of a minimal machine, the monoid with the identity, and their properties."""

    def __init__(self, machine: MooreMachine) -> None:
        m = machine.minimise()
        self.n = m.n_states
        self.letters = [tuple(row) for row in m.delta.tolist()]
        identity = tuple(range(self.n))
        new = set(self.letters)
        self.semigroup = set(new)
        while new:
            new = {then(f, a) for f in new for a in self.letters} - self.semigroup
            self.semigroup |= new
        self.monoid = self.semigroup | {identity}
        self.identity = identity

    def group(self) -> bool:
        return all(any(then(f, g) == self.identity for g in self.monoid) for f in self.monoid)

    def commutative(self) -> bool:
        return all(then(f, g) == then(g, f) for f in self.monoid for g in self.monoid)

    def aperiodic(self) -> bool:
        return all(power(f, self.n) == power(f, self.n + 1) for f in self.monoid)

    def r_trivial(self) -> bool:
        return self._trivial(lambda f: {then(f, x) for x in self.monoid})

    def j_trivial(self) -> bool:
        return self._trivial(lambda f: {then(then(x, f), y) for x in self.monoid for y in self.monoid})

    def _trivial(self, ideal) -> bool:
        ideals = [frozenset(ideal(f)) for f in self.monoid]
        return len(set(ideals)) == len(ideals)

    def two_groups(self) -> bool:
        return all(len(self.units(e)).bit_count() == 1 for e in self.monoid if then(e, e) == e)

    def solvable(self) -> bool:
        return all(solvable(self.units(e)) for e in self.monoid if then(e, e) == e)

    def units(self, e) -> set:
        """The largest subgroup with identity e."""
        local = {then(then(e, s), e) for s in self.monoid}
        return {f for f in local if any(then(f, g) == e for g in local)}


def then(f, g):
    return tuple(g[x] for x in f)


def power(f, k):
    g = tuple(range(len(f)))
    for _ in range(k):
        g = then(g, f)
    return g


def solvable(group) -> bool:
    while len(group) > 1:
        inverse = {f: next(g for g in group if then(then(f, g), f) == f and then(then(g, f), g) == g) for f in group}
        smaller = closure({then(then(inverse[f], inverse[g]), then(f, g)) for f in group for g in group})
        if len(smaller) == len(group):
            return False
        group = smaller
    return True


def closure(generators) -> set:
    group, new = set(generators), set(generators)
    while new:
        new = {then(f, g) for f in new for g in generators} - group
        group |= new
    return group


@pytest.fixture(scope="module")
def brute():
    return Brute


@pytest.fixture(scope="module")
def check_witness():
    return _check_witness


def _check_witness(c, name) -> None:
    """That a false fact is refuted by its witness, as the function that found it documents."""
    witness = getattr(c, name).witness
    words, states, run = witness.words, witness.states, runner(c.machine)
    assert all(0 <= q < c.machine.n_states for q in states)
    if name == "group":
        ((_,),), (p, q, r) = words, states
        assert p != q
        assert run(p, words[0]) == run(q, words[0]) == r
    elif name == "commutative":
        (ab, ba), (q, r, s) = words, states
        assert (ab, r != s) == (ba[::-1], True)
        assert (run(q, ab), run(q, ba)) == (r, s)
    elif name == "aperiodic":
        turns(words[0], states, run)
    elif name == "r_trivial":
        passes(words[0], states, run)
    elif name == "j_trivial":
        passes(words[0], states, run) if len(words) == 1 else equal_prefixes(*words, states, c, run)
    elif name == "two_groups":
        (w,) = words
        assert len(states) & (len(states) - 1)
        turns(w, states, run)
    elif name == "solvable":
        permutations = set()
        for w in words:
            images = [run(q, w) for q in states]
            assert sorted(images) == sorted(states)
            permutations.add(tuple(states.index(q) for q in images))
        assert not solvable(closure(permutations))
    else:
        raise AssertionError(f"no check of {name}")


def runner(machine):
    row = {a: machine.delta[i].tolist() for i, a in enumerate(machine.alphabet)}

    def run(q, word):
        for a in word:
            q = row[a][q]
        return q

    return run


def same(c, u, v, run) -> bool:
    return all(run(q, u) == run(q, v) for q in range(c.machine.n_states))


def turns(w, cycle, run) -> None:
    assert len(set(cycle)) == len(cycle) >= 2
    assert [run(q, w) for q in cycle] == [*cycle[1:], cycle[0]]


def passes(w, states, run) -> None:
    assert states[0] == states[-1]
    assert len(set(states)) > 1
    assert [run(states[0], w[:k]) for k in range(len(w) + 1)] == list(states)


def equal_prefixes(u, v, states, c, run) -> None:
    q, p, r = states
    assert p != r
    assert (run(q, u), run(q, v)) == (p, r)
    assert same(c, u + v, u, run)
    assert same(c, v + u, v, run)
