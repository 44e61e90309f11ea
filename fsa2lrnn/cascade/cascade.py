"""Cascades of small machines: the loop-free wreath products of Krohn & Rhodes (1965), checked on construction.

A cascade is a list of components. At each letter, a component applies to its own state a map that depends on the letter
and on the states of the components that it reads, all in lower layers:

    s_i(k) = f_i[a_k, s_R(k−1)](s_i(k−1)),    R = reads of i                                  (docs/theory.md §6)

In a cascade with `reads_now`, s_R(k) takes the place of s_R(k−1). A `Cascade` contains the machine that it implements.
On construction it explores both from the start until no new pair of states appears, so it is correct for every word.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fsa2lrnn.automata.language import output_classes
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine
from fsa2lrnn.symbols import Word, encode

MAX_JOINT_STATES = 200_000
_MAX_CODE = 2**62


@dataclass(frozen=True, eq=False)
class Component(Brief):
    """One component machine of a cascade.

    Args:
        n_states: the number of states, m.
        start: the start state.
        reads: the numbers of the components whose states it reads, increasing.
        layer: its layer, from 0; it reads lower layers only.
        keys: the number of the letter and the states read that select each map, int (R, 1 + |reads|).
        maps: the maps, each with the next state of every state, int (R, m).
        reads_now: whether it reads states at k even in a cascade that reads them at k−1.

    Raises `InvalidMachine` naming the first broken invariant.
    """

    n_states: int
    start: int
    reads: tuple[int, ...]
    layer: int
    keys: np.ndarray
    maps: np.ndarray
    reads_now: bool = False

    def __post_init__(self) -> None:
        if self.keys.shape != (len(self.maps), 1 + len(self.reads)) or self.maps.shape[1:] != (self.n_states,):
            raise InvalidMachine(
                f"a component of {self.n_states} states that reads {self.reads} has keys {self.keys.shape} and maps "
                f"{self.maps.shape}: give (R, {1 + len(self.reads)}) and (R, {self.n_states})"
            )
        if self.maps.min() < 0 or self.maps.max() >= self.n_states or not 0 <= self.start < self.n_states:
            raise InvalidMachine(f"a component's states run 0..{self.n_states - 1}, but start or a map leaves them")
        for array in (self.keys, self.maps):
            array.flags.writeable = False

    @cached_property
    def kind(self) -> str:
        """The kind of its maps: "trivial", "reset", "permutation", "permutation-reset" or "general" (`kind_of`)."""
        return kind_of(self.maps)

    @property
    def is_diagonal(self) -> bool:
        """Whether scalar channels x ← a x + v suffice: for two states, or if all maps are constants or identities."""
        return self.n_states <= 2 or self.kind == "reset"

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The sizes of its blocks in the network: 1 for every state except one, or m for one one-hot block."""
        return (1,) * max(1, self.n_states - 1) if self.is_diagonal else (self.n_states,)


def kind_of(maps: np.ndarray) -> str:
    """Return the kind of a set of maps on 0 … m−1, int (R, m); a reset has only constants and the identity.

    >>> kind_of(np.array([[0, 1, 2], [1, 1, 1]])), kind_of(np.array([[1, 2, 0], [1, 1, 1]]))
    ('reset', 'permutation-reset')
    """
    if maps.shape[1] == 1:
        return "trivial"
    states = np.arange(len(maps.T))
    identity = np.all(maps == states, axis=1)
    constant = np.all(maps == maps[:, :1], axis=1)
    permutation = np.all(np.sort(maps, axis=1) == states, axis=1)
    if np.all(np.logical_or(identity, constant)):
        return "reset"
    if np.all(permutation):
        return "permutation"
    return "permutation-reset" if np.all(np.logical_or(permutation, constant)) else "general"


@dataclass(frozen=True, eq=False)
class Cascade(Brief):
    """A cascade of components that implements a machine, checked on every reachable joint state.

    Args:
        machine: any Moore machine; `decompose` gives the minimal one.
        components: the components, each after those that it reads.
        reads_now: whether components read the states of lower layers at k, rather than at k−1.

    Raises:
        InvalidMachine: if the components do not fit together, or do not implement the machine, with the first joint
            state and letter that prove it.
        BudgetExceeded: if more than 200,000 joint states are reached.

    >>> flip = np.array([[0], [1]]), np.array([[0, 1], [1, 0]])
    >>> parity = MooreMachine([[0, 1], [1, 0]], [False, True])
    >>> Cascade(parity, (Component(2, 0, (), 0, *flip),)).transduce([1, 0, 1])
    [True, True, False]
    """

    machine: MooreMachine
    components: tuple[Component, ...]
    reads_now: bool = False
    states: np.ndarray = field(init=False, repr=False)  # the reachable joint states, (N, C), the start first
    delta: np.ndarray = field(init=False, repr=False)  # the number of the next joint state, (|Σ|, N)
    image: np.ndarray = field(init=False, repr=False)  # the machine's state that a joint state represents, (N,)

    def __post_init__(self) -> None:
        self._check_reads()
        for name, value in zip(("states", "delta", "image"), self._explore(), strict=True):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def n_layers(self) -> int:
        """The number of layers."""
        return 1 + max(component.layer for component in self.components)

    @property
    def block_sizes(self) -> tuple[tuple[int, ...], ...]:
        """The sizes of the blocks of each layer, in the order of the components."""
        layers: list[list[int]] = [[] for _ in range(self.n_layers)]
        for component in self.components:
            layers[component.layer] += component.block_sizes
        return tuple(map(tuple, layers))

    @property
    def max_block(self) -> int:
        """The size of the largest block."""
        return max(size for component in self.components for size in component.block_sizes)

    @property
    def has_reads(self) -> bool:
        """Whether any component reads another."""
        return any(component.reads for component in self.components)

    @cached_property
    def output_reads(self) -> tuple[int, ...]:
        """The numbers of components that determine the machine's output; none of them can be removed."""
        output = output_classes(self.machine.outputs)[self.image]
        needed = list(range(len(self.components)))
        for i in range(len(self.components)):
            fewer = [j for j in needed if j != i]
            # Components are removed greedily, so the result is minimal, though not always smallest.
            if tells(self.states[:, fewer], output):
                needed = fewer
        return tuple(needed)

    def simulate(self, word: Word) -> np.ndarray:
        """Return the joint states s(1) … s(T), int (T, C); raise `InvalidWord` for an unknown letter."""
        return self.states[self._follow(word)]

    def transduce(self, word: Word) -> list[Hashable]:
        """Return the outputs after every letter of a word; raise `InvalidWord` for an unknown letter."""
        return [self.machine.outputs[q] for q in self.image[self._follow(word)]]

    def to_machine(self) -> MooreMachine:
        """Return the machine of the reachable joint states, labelled with these as tuples."""
        labels = [tuple(row) for row in self.states.tolist()]
        outputs = [self.machine.outputs[q] for q in self.image]
        return MooreMachine(self.delta, outputs, 0, self.machine.alphabet, labels)

    def used(self, i: int) -> np.ndarray:
        """Return which entries of the maps of component i some reachable joint state uses: bool (R, m)."""
        used = np.zeros(self.components[i].maps.shape, bool)
        for a in range(len(self.delta)):
            used[self.rows(i, a), self.states[:, i]] = True
        return used

    def rows(self, i: int, a: int) -> np.ndarray:
        """Return the number of the map that component i applies for letter a in each joint state: int (N,)."""
        is_now = self.reads_now or self.components[i].reads_now
        read = self.states[self.delta[a]] if is_now else self.states
        return _Rows(self.components[i], self._sizes).find(a, read)

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(component.n_states for component in self.components)

    def _follow(self, word: Word) -> np.ndarray:
        numbers, j = list[int](), 0
        for a in encode(word, self.machine.alphabet):
            j = self.delta[a, j]
            numbers.append(j)
        return np.array(numbers, np.int64)

    def _check_reads(self) -> None:
        if not self.components:
            raise InvalidMachine("a cascade needs at least one component")
        for i, component in enumerate(self.components):
            for j in component.reads:
                if not 0 <= j < i or self.components[j].layer >= component.layer:
                    raise InvalidMachine(f"component {i} reads component {j}: it may read earlier ones in lower layers")

    def _explore(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the reachable joint states (N, C), the table (|Σ|, N) of their numbers, and their images (N,).

        Levels of a breadth-first search are stepped at once. Raise `InvalidMachine` if words of one joint state lead
        the machine to different states, and `BudgetExceeded` beyond `MAX_JOINT_STATES`.
        """
        rows = [_Rows(component, self._sizes) for component in self.components]
        start = tuple(component.start for component in self.components)
        number = {np.array(start, np.int64).tobytes(): 0}
        states, image = [np.array([start], np.int64)], [self.machine.start]
        columns: list[np.ndarray] = []
        frontier = states[0]
        while len(frontier):
            # Joint states are numbered in breadth-first order, so those of the frontier are the last ones numbered.
            before, targets = len(number), np.empty((len(frontier), len(self.machine.alphabet)), np.int64)
            first = before - len(frontier)
            new: list[np.ndarray] = []
            # A joint state has to represent one state of the machine, whichever word reaches it.
            for a, delta in enumerate(self.machine.delta):
                after = self._step(rows, frontier, a)
                for n, state in enumerate(after):
                    q = int(delta[image[first + n]])
                    j = number.setdefault(state.tobytes(), len(number))
                    if j == len(image):
                        image.append(q)
                        new.append(state)
                    elif image[j] != q:
                        self._refuse(frontier[n], a, f"which stands for state {image[j]}, but the machine is in {q}")
                    targets[n, a] = j
            columns.append(targets)
            if len(number) > MAX_JOINT_STATES:
                raise BudgetExceeded(f"the cascade reaches more than {MAX_JOINT_STATES:,} joint states")
            frontier = np.array(new, np.int64).reshape(-1, len(start))
            states.append(frontier)
        return np.concatenate(states), np.concatenate(columns).T.copy(), np.array(image, np.int64)

    def _step(self, rows: list[_Rows], states: np.ndarray, a: int) -> np.ndarray:
        after = np.empty_like(states)
        for i, component in enumerate(self.components):
            # Components come after those that they read, so the entries of `after` that are read are already filled.
            selected = rows[i].find(a, after if self.reads_now or component.reads_now else states)
            if (selected < 0).any():
                n = int(np.argmax(selected < 0))
                self._refuse(states[n], a, f"where component {i} has no map")
            after[:, i] = component.maps[selected, states[:, i]]
        return after

    def _refuse(self, state: np.ndarray, a: int, what: str) -> None:
        raise InvalidMachine(
            f"this cascade does not run the machine: from joint state {tuple(state.tolist())} the letter "
            f"{self.machine.alphabet[a]!r} leads to a joint state {what}"
        )


def tells(states: np.ndarray, what: np.ndarray) -> bool:
    """Return whether the rows of `states`, int (N, C), determine the entries of `what`, int (N,).

    >>> tells(np.array([[0], [0], [1]]), np.array([5, 5, 5])), tells(np.array([[0], [0]]), np.array([5, 6]))
    (True, False)
    """
    both = np.unique(np.column_stack([states, what]), axis=0)
    return len(both) == len(np.unique(both[:, :-1], axis=0))


class _Rows:
    def __init__(self, component: Component, sizes: tuple[int, ...]) -> None:
        self.reads = list(component.reads)
        # A key (letter, states read) becomes one number in mixed radix, the letter as its highest digit.
        self.radix = [1]
        for j in reversed(self.reads):
            self.radix.append(self.radix[-1] * sizes[j])
        self.radix.reverse()
        if self.radix[0] * (int(component.keys[:, 0].max()) + 1) > _MAX_CODE:
            raise BudgetExceeded(f"a component reads {len(self.reads)} others, more joint states than 2^62")
        codes = component.keys @ np.array(self.radix, np.int64)
        self.order = np.argsort(codes)
        self.codes = codes[self.order]
        if (np.diff(self.codes) == 0).any():
            raise InvalidMachine("a component has two maps for one key")

    def find(self, a: int, states: np.ndarray) -> np.ndarray:
        """Return the number of the map that each joint state selects, or −1 for none: (N, C) -> (N,)."""
        # The codes are sorted: a binary search finds the map, and a different code at its place means that none exists.
        code = states[:, self.reads] @ np.array(self.radix[1:], np.int64) + a * self.radix[0]
        place = np.minimum(np.searchsorted(self.codes, code), len(self.codes) - 1)
        return np.where(self.codes[place] == code, self.order[place], -1)


LAYER_PRICE = 256  # an additional layer costs as much as four additional blocks of 4 states


@dataclass(frozen=True, order=True)
class Cost:
    """The cost of a network per token.

    Args:
        total: the number by which costs are ordered: Σ b³ + gate units + 256 per layer.
        scan: Σ b³, the multiplications of a parallel scan.
        step: Σ b², the multiplications of a sequential step.
        units: the number of hidden units of all gates and of the read-out.
        layers: the number of layers.

    >>> Cost.of([(5, 1), (5,)], units=20)
    Cost(total=783, scan=251, step=51, units=20, layers=2)
    """

    total: int
    scan: int
    step: int
    units: int
    layers: int

    @classmethod
    def of(cls, block_sizes: list[tuple[int, ...]] | tuple[tuple[int, ...], ...], units: int) -> Cost:
        """Return the cost of layers with these block sizes and `units` hidden units in all gates and the read-out."""
        sizes = [size for layer in block_sizes for size in layer]
        scan = sum(size**3 for size in sizes)
        layers = len(block_sizes)
        total = scan + units + LAYER_PRICE * layers
        return cls(total, scan, sum(size**2 for size in sizes), units, layers)

    def explain(self) -> str:
        """Return the total and its three terms as a phrase for a message."""
        return (
            f"{self.total:,} = Σb³ {self.scan:,} + {self.units:,} gate units + {LAYER_PRICE} × {self.layers} "
            f"layer{'s' if self.layers > 1 else ''}"
        )
