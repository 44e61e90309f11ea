"""Build a nondeterministic automaton from its parts, by Thompson's construction, within limits."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

from fsa2lrnn.errors import BudgetExceeded

MAX_NFA_STATES = 50_000  # counted repetitions multiply when nested: ((a{99}){99}){99} would be a million states
MAX_NFA_EDGES = 200_000
EMPTY = -1  # the label of an edge that reads nothing


class Part(NamedTuple):
    """A part of the automaton: no edge leads to its start or from its final state, and it was built last.

    Its states are those from `first_state`, its edges those from `first_edge`, up to those of the next part.
    """

    start: int
    final: int
    first_state: int
    first_edge: int


class Nfa:
    """A nondeterministic automaton that grows part by part; edges are (source, label, target).

    Raises `BudgetExceeded`, which names `origin`, beyond `MAX_NFA_STATES` or `MAX_NFA_EDGES`.
    """

    def __init__(self, origin: str) -> None:
        self.origin, self.n_states = origin, 0
        self.edges: list[tuple[int, int, int]] = []

    def add(self, states: int, edges: int = 0) -> int:
        """Return the number of the first of some new states, unless these or the new edges exceed the limits."""
        if self.n_states + states > MAX_NFA_STATES or len(self.edges) + edges > MAX_NFA_EDGES:
            raise BudgetExceeded(
                f"{self.origin} needs more than {MAX_NFA_STATES:,} nondeterministic states or {MAX_NFA_EDGES:,} "
                "transitions: lower the counts and the nesting, or write the automaton to a file"
            )
        self.n_states += states
        return self.n_states - states

    def letters(self, labels: list[int]) -> Part:
        """Return the part that reads one of some labels."""
        start, first_edge = self.add(2, len(labels)), len(self.edges)
        self.edges += [(start, label, start + 1) for label in labels]
        return Part(start, start + 1, start, first_edge)

    def concatenation(self, parts: list[Part]) -> Part:
        """Return the parts one after the other; that of the empty word for none."""
        if not parts:
            return self.letters([EMPTY])
        self.edges += [(p.final, EMPTY, q.start) for p, q in pairwise(parts)]
        return parts[0]._replace(final=parts[-1].final)

    def union(self, left: Part, right: Part) -> Part:
        """Return the union, without new states: the right part hangs between the left part's start and final state.

        No other edges lead back to these.
        """
        self.edges += [(left.start, EMPTY, right.start), (right.final, EMPTY, left.final)]
        return left

    def repetition(self, part: Part, low: int, high: int | None) -> Part:
        """Return between `low` and `high` copies of the part that was built last; None is infinite."""
        # Nothing but the empty word: the part's edges are removed, and its states stay without edges.
        if high == 0:
            del self.edges[part.first_edge :]
            return self.letters([EMPTY])
        copies = max(low, high or 1)
        # The part was built last, so its states and edges are the end of both lists, and a copy is a shift of
        # numbers.
        size, block = self.n_states - part.first_state, self.edges[part.first_edge :]
        self.add((copies - 1) * size, (copies - 1) * (len(block) + 2))
        for shift in range(size, copies * size, size):
            self.edges += [(source + shift, label, target + shift) for source, label, target in block]
            self.edges.append((part.final + shift - size, EMPTY, part.start + shift))
        start, final = part.start, part.final + (copies - 1) * size
        if high is not None:
            # From the start of each optional copy straight to the end.
            self.edges += [(start + k * size, EMPTY, final) for k in range(low, copies)]
            return part._replace(final=final)
        outer = self.add(2, 4)  # a new start and a new final state, since the last copy is a loop
        self.edges += [
            (outer, EMPTY, start),
            (final, EMPTY, final - part.final + part.start),
            (final, EMPTY, outer + 1),
        ]
        if low == 0:
            self.edges.append((outer, EMPTY, outer + 1))
        return part._replace(start=outer, final=outer + 1)

    def product(self, left: Part, right: Part, both: bool) -> Part:
        """Return the part of the pairs that are reached: the intersection if letters move `both`, else the shuffle."""
        moves: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for source, label, target in self.edges[left.first_edge :]:
            moves[source].append((label, target))
        # Both parts are replaced by their product; their moves are kept in `moves`.
        del self.edges[left.first_edge :]
        first_state = self.n_states
        pairs = [(left.start, right.start), (left.final, right.final)]
        number = {pair: self.add(1) for pair in pairs}
        for p, q in pairs:
            alone = [(label, (target, q)) for label, target in moves[p] if label < 0 or not both]
            alone += [(label, (p, target)) for label, target in moves[q] if label < 0 or not both]
            if both:
                alone += [(a, (s, t)) for a, s in moves[p] if a >= 0 for b, t in moves[q] if a == b]
            self.add(0, len(alone))
            for label, pair in alone:
                if pair not in number:
                    number[pair] = self.add(1)
                    pairs.append(pair)
                self.edges.append((number[p, q], label, number[pair]))
        return Part(first_state, first_state + 1, first_state, left.first_edge)

    def is_empty(self, part: Part) -> bool:
        """Return whether no word is in the product that was built last."""
        return all(target != part.final for _, _, target in self.edges[part.first_edge :])
