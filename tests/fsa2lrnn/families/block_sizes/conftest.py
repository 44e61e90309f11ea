"""Machines made to be hard: pencils of functions, code locks, metacyclic groups; and what is known of named ones."""

from fsa2lrnn.automata import MooreMachine

# The least block over C, R and Q, and the Householder factors: (lower, upper), None where no number does or is known.
KNOWN = {
    "parity": (1, 1, 1, (1, 1)),
    "sum_mod(3)": (1, 2, 2, (2, 2)),
    "sum_mod(5)": (1, 2, 4, (2, 2)),
    "sum_mod(7)": (1, 2, 6, (2, 2)),
    "even_pair(3)": (3, 3, 3, (None, None)),
    "even_pair(5)": (3, 3, 3, (None, None)),
    "cycle_navigation(8)": (1, 2, 4, (2, 2)),
    "tomita(2)": (2, 2, 2, (2, 2)),
    "tomita(3)": (4, 4, 4, (None, None)),
    "tomita(4)": (3, 3, 3, (None, None)),
    "tomita(7)": (4, 4, 4, (None, None)),
    "dyck(1,4)": (5, 5, 5, (5, 5)),
    "dyck(2,2)": (7, 7, 7, (7, 7)),
    "ab_star": (2, 2, 2, (2, 2)),
    "flip_flop": (1, 1, 1, (1, 1)),
    "shift_register(3)": (3, 3, 3, (1, None)),
    "resettable_counter(5)": (1, 2, 4, (2, 2)),
    "elevator(6)": (5, 5, 5, (5, None)),
    "contains(abaab)": (5, 5, 5, (None, None)),
    "remainder(6)": (2, 2, 2, (1, None)),
    "group(S3)": (2, 2, 2, (2, 2)),
    "group(S4)": (3, 3, 3, (2, 2)),
    "group(D5)": (2, 2, 4, (2, 2)),
    "subtraction(5)": (3, 5, 9, (None, None)),
    "mod_arith(2)": (4, 4, 4, (None, None)),
    "mod_arith(3, completion=register)": (3, 6, 6, (None, None)),
    "cerny(4)": (3, 3, 3, (None, None)),
    "all_maps(4)": (3, 3, 3, (None, None)),
}
LARGE = {
    "mod_arith(5)": (10, 20, 40), "mod_arith(5, completion=eager)": (11, 22, 44),
    "mod_arith(5, completion=register)": (5, 10, 20), "dyck(2,3)": (15, 15, 15), "group(A5)": (3, 3, 4),
    "group(Z60)": (1, 2, 4), "group(S5)": (4, 4, 4),
}  # fmt: skip

# Both counterexamples to the roots of a pencil being those in one prime field: det x² + 1, and a cubic.
PENCILS = (
    [["x", "1", 0], [0, "x", "1"], ["1", 0, "1"]],
    [[0, "1", "1", "1"], ["1", "1", 0, "x"], ["1", "x", "1", "1"], ["x", 0, "x", "1"]],
)


def machine_of(delta):
    """Every state with its own output."""
    return MooreMachine(delta, range(len(delta[0])))


def rank_machine(matrix):
    """The machine of T34 for a matrix of 0, "1" and variables, with letters that keep columns or entries."""
    values = sorted({entry for row in matrix for entry in row if entry})
    states = ["start", *range(len(matrix[0])), *values, "sink"]
    number = {state: i for i, state in enumerate(states)}
    sink = number["sink"]
    delta = []
    for row in matrix:
        delta.append([sink] * len(states))
        for column, entry in enumerate(row):
            delta[-1][number[column]] = number[entry or "sink"]
    delta += [[number[state], *[sink] * (len(states) - 1)] for state in states[1:]]
    for kept in (range(len(matrix[0])), values):
        delta.append([number[state] if state in kept else sink for state in states])
    return machine_of(delta)


def code_lock(code, n_letters, turns):
    """States (l, r): the right letter raises l, a wrong one puts it to 0, the end of the code adds 1 to r too."""
    states = [(place, r) for place in range(len(code)) for r in range(turns)]
    number = {state: i for i, state in enumerate(states)}

    def step(letter, place, r):
        if letter != code[place]:
            return 0, r
        return (0, (r + 1) % turns) if place == len(code) - 1 else (place + 1, r)

    return machine_of([[number[step(letter, *state)] for state in states] for letter in range(n_letters)])


def regular(generators, times, one):
    """The machine of a group that acts on itself."""
    elements = [one]
    number = {one: 0}
    for x in elements:
        for g in generators:
            if (y := times(x, g)) not in number:
                number[y] = len(elements)
                elements.append(y)
    return machine_of([[number[times(x, g)] for x in elements] for g in generators])


def metacyclic(p, m, u):
    """Z_p with Z_m acting by multiplication with u."""

    def times(x, y):
        return (x[0] + pow(u, x[1], p) * y[0]) % p, (x[1] + y[1]) % m

    return regular([(1, 0), (0, 1)], times, (0, 0))


def random_machine(rng, most=9):
    """A reachable machine of 2 to `most` states with letters of mixed kinds: resets, permutations, any maps."""
    while True:
        n, delta, is_wild = rng.randint(2, most), [], rng.random() < 0.4
        for _ in range(rng.randint(1, 3)):
            kind = rng.random()
            if is_wild:
                delta.append([rng.randrange(n) for _ in range(n)])
            elif kind < 0.25:
                delta.append([rng.randrange(n)] * n)
            elif kind < 0.5:
                delta.append(rng.sample(range(n), n))
            else:
                delta.append([rng.randrange(n) if rng.random() < 0.5 else q for q in range(n)])
        machine = machine_of(delta).minimise()
        if machine.n_states > 1:
            return machine
