"""Languages, counters, memories and the paper's tasks against predicates and arithmetic from their definitions."""

import random
import re
from itertools import groupby, product

import pytest

from fsa2lrnn import MooreMachine, equivalent, zoo
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat


def all_words(letters: str, longest: int) -> list[str]:
    return ["".join(w) for n in range(longest + 1) for w in product(letters, repeat=n)]


def no_odd_zeros_after_odd_ones(w: str) -> bool:
    runs = [(letter, len(list(run)) % 2) for letter, run in groupby(w)]
    return not any(early == ("1", 1) and late == ("0", 1) for i, early in enumerate(runs) for late in runs[i + 1 :])


TOMITA = {
    1: lambda w: re.fullmatch("1*", w) is not None,
    2: lambda w: re.fullmatch("(10)*", w) is not None,
    3: no_odd_zeros_after_odd_ones,
    4: lambda w: "000" not in w,
    5: lambda w: w.count("0") % 2 == 0 and w.count("1") % 2 == 0,
    6: lambda w: (w.count("0") - w.count("1")) % 3 == 0,
    7: lambda w: re.fullmatch("0*1*0*1*", w) is not None,
}


@pytest.mark.parametrize("i", TOMITA)
def test_tomita_on_all_words_of_up_to_ten_letters(i):
    m = zoo.tomita(i)
    assert [m.accepts(w) for w in all_words("01", 10)] == [TOMITA[i](w) for w in all_words("01", 10)]


def nested(w: str, pairs: list[str], depth: int) -> bool:
    if any(height > depth for height in heights(w, pairs)):
        return False
    shorter = w
    for _ in w:
        for pair in pairs:
            shorter = shorter.replace(pair, "")
    return shorter == ""


def heights(w: str, pairs: list[str]) -> list[int]:
    opening = [pair[0] for pair in pairs]
    return [sum(1 if c in opening else -1 for c in w[: k + 1]) for k in range(len(w))]


@pytest.mark.long_cases("2-2")
@pytest.mark.parametrize(
    ("k", "depth"),
    [(1, 1), (1, 3), (2, 2), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2, 1), (2, 3), (3, 2)))],
)
def test_dyck_on_all_short_words(k, depth):
    pairs = ["()", "[]", "{}"][:k]
    m = zoo.dyck(k, depth)
    for w in all_words("".join(pairs), {1: 10, 2: 8, 3: 6}[k]):
        assert m.accepts(w) == nested(w, pairs, depth), w


def test_dyck_labels_are_stacks_and_many_kinds_spell_their_brackets():
    m = zoo.dyck(2, 2)
    assert m.labels[m.run("([")] == ("(", "[")
    assert m.labels[m.run(")")] == "rejected"
    m = zoo.dyck(5, 2)
    assert m.alphabet == ("(1", ")1", "(2", ")2", "(3", ")3", "(4", ")4", "(5", ")5")
    assert m.accepts("(1 (5 )5 )1")
    assert not m.accepts("(1 (5 )1 )5")


@pytest.mark.parametrize(("build", "message"), [
    (lambda: zoo.dyck(2, 10**9), r"dyck\(2, 1000000000\) has about"),
    (lambda: zoo.dyck(10**9, 10**9), r"has more than 1e\+300 states and 2,000,000,000 letters"),
    *((lambda i=i: zoo.tomita(i), "Tomita's languages are numbered 1 to 7") for i in (0, 8, True, "1", 2.0, [1])),
    (lambda: zoo.contains("abc"), r"contains\(pattern='abc'\): 'c' is not among the letters 'ab'"),
    (lambda: zoo.contains(""), "the pattern is empty"),
    (lambda: zoo.elevator(1), r"elevator\(n=1\): n must be a whole number of at least 2"),
    (lambda: zoo.count_mod(3, letter="c"), r"count_mod\(letter='c'\): it must be one of the letters 'ab'"),
    (lambda: zoo.length_mod(3, letters="aa"), "letter 'a' stands twice in the alphabet"),
    (lambda: zoo.remainder(3, base=1), r"remainder\(base=1\): base must be"),
    (lambda: zoo.shift_register(3, output="all"), r"shift_register\(output='all'\): output must be one of oldest"),
    (lambda: zoo.shift_register(1_000_000), r"shift_register\(1000000\) has about 1.84e\+19 states"),
    (lambda: zoo.sum_mod(5_000), r"sum_mod\(5000\) has about 5e\+03 states and 5,000 letters, above the limit of"),
])  # fmt: skip
def test_bad_parameters_are_named(build, message):
    with pytest.raises((BudgetExceeded, InvalidMachine, UnsupportedFormat), match=message):
        build()


def test_ab_star_contains_parity_and_even_pairs_by_definition():
    m = zoo.ab_star()
    assert all(m.accepts(w) == (re.fullmatch("(ab)*", w) is not None) for w in all_words("ab", 10))
    assert m.n_states == m.minimise().n_states == 3
    for pattern in ("a", "ab", "aa", "aba", "abab", "aabaa", "abba"):
        m = zoo.contains(pattern)
        assert all(m.accepts(w) == (pattern in w) for w in all_words("ab", 9))
        assert m.n_states == m.minimise().n_states == len(pattern) + 1
    m = zoo.parity()
    assert all(m.accepts(w) == (w.count("1") % 2 == 1) for w in all_words("01", 10))
    assert equivalent(m, MooreMachine([[0, 1], [1, 0]], [False, True], 0, "01")) is None
    assert m.is_acceptor
    m = zoo.even_pairs()
    for w in all_words("ab", 10):
        switches = sum(w[k : k + 2] in ("ab", "ba") for k in range(len(w)))
        assert m.accepts(w) == (switches % 2 == 0), w


LONG = 400


def random_word(letters: str, seed: int) -> str:
    return "".join(random.Random(seed).choices(letters, k=LONG))


@pytest.mark.parametrize("n", [2, 3, 7])
def test_counters(n):
    assert zoo.length_mod(n).transduce(random_word("ab", n)) == [k % n for k in range(1, LONG + 1)]
    assert zoo.length_mod(n, letters="xyz").alphabet == ("x", "y", "z")
    w = random_word("abc", n)
    assert zoo.count_mod(n, "b", "abc").transduce(w) == [w[: k + 1].count("b") % n for k in range(LONG)]
    w = random_word("+++++++0", n)
    since_reset = [len(w[: k + 1].rpartition("0")[2]) for k in range(LONG)]
    assert zoo.resettable_counter(n).transduce(w) == [count % n for count in since_reset]
    floor, w = 0, random_word("ud", n)
    for letter, output in zip(w, zoo.elevator(n).transduce(w), strict=True):
        floor = sorted((0, floor + (1 if letter == "u" else -1), n - 1))[1]
        assert output == floor
    for task in ("length_mod", "count_mod", "resettable_counter", "elevator", "remainder", "cerny", "all_maps"):
        m = getattr(zoo, task)(n)
        assert m.minimise() == m
        assert m.n_states == n


@pytest.mark.parametrize(("n", "base"), [(2, 2), (3, 2), (6, 2), (8, 2), (7, 10), (9, 3)])
def test_remainder(n, base):
    w = random_word("0123456789"[:base], n)
    assert zoo.remainder(n, base).transduce(w) == [int(w[: k + 1], base) % n for k in range(LONG)]


def test_flip_flop_keeps_what_was_written_last():
    m = zoo.flip_flop()
    for w in map("".join, product("sr.", repeat=7)):
        writes = w.replace(".", "")
        assert m.outputs[m.run(w)] == int(writes.endswith("s"))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_shift_register_delays(n):
    bits = "".join(random.Random(n).choices("01", k=300))
    padded = "0" * n + bits
    windows = [padded[k + 1 : k + 1 + n] for k in range(300)]
    assert zoo.shift_register(n, output="content").transduce(bits) == windows
    assert zoo.shift_register(n).transduce(bits) == [int(window[0]) for window in windows]
    for m in (zoo.shift_register(n), zoo.shift_register(n, output="content")):
        assert m.n_states == m.minimise().n_states == 2**n
        assert m.labels[0] == (0,) * n


def shortest_reset_word(m: MooreMachine) -> int:
    subsets, seen, length = [frozenset(range(m.n_states))], set(), 0
    while True:
        if any(len(s) == 1 for s in subsets):
            return length
        seen |= set(subsets)
        reached = {frozenset(row[q] for q in s) for s in subsets for row in m.delta.tolist()}
        subsets, length = list(reached - seen), length + 1


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_cerny_resets_no_sooner_than_conjectured(n):
    assert shortest_reset_word(zoo.cerny(n)) == (n - 1) ** 2


COMPLETIONS = ["sink", "ignore", "running", "operator", "eager", "register"]


def value(expression: list[str], M: int) -> int:
    return eval("".join(expression)) % M


def random_expression(rng: random.Random, M: int, operands: int, operators: str = "+-*") -> list[str]:
    expression = [str(rng.randrange(M))]
    for _ in range(operands - 1):
        expression += [rng.choice(operators), str(rng.randrange(M))]
    return expression


@pytest.mark.parametrize("M", range(2, 8))
@pytest.mark.parametrize("completion", COMPLETIONS)
def test_mod_arith_on_every_short_expression_and_on_long_ones_at_every_digit(M, completion):
    m, rng = zoo.mod_arith(M, completion), random.Random(M)
    digits = [str(d) for d in range(M)]
    for operands in (1, 2, 3):
        for expression in product(*([digits, "+-*"] * operands)[:-1]):
            assert m.outputs[m.run(expression)] == value(expression, M), expression
    for operands in (10, 100, 150):
        expression = random_expression(rng, M, operands)
        expected = [value(expression[: k + 1], M) for k in range(0, len(expression), 2)]
        assert m.transduce("".join(expression))[::2] == expected


@pytest.mark.parametrize("M", range(2, 8))
def test_mod_arith_has_the_sizes_stated(M):
    sizes = {c: zoo.mod_arith(M, c).minimise().n_states for c in COMPLETIONS}
    square = M * M
    assert sizes == {
        "sink": 2 * square + 1, "ignore": 2 * square, "running": 2 * square + 2 * M + 1 if M > 2 else 11,
        "operator": 3 * square if M > 2 else 8, "eager": 3 * square if M > 2 else 8, "register": square,
    }  # fmt: skip


def test_subtraction_and_mod_arith_beyond_legal_expressions():
    beyond = {c: zoo.mod_arith(5, c).transduce("3++4*-22") for c in COMPLETIONS}
    assert beyond["sink"] == [3, None] + 6 * ["error"]
    assert beyond["ignore"] == [3, None, None, 2, None, None, 1, 1]  # 3+4*2
    assert beyond["running"] == [3, 3] + 6 * ["error"]
    assert beyond["operator"] == [3, 3, 3, 2, 2, 2, 0, 3]  # 3 + 4 − 2 − 2
    assert beyond["eager"] == [3, 1, 4, 0, 0, 4, 3, 3]  # s + t: 0+3, 3+3, 6+3, 6+4, 6+4, 10+4, 10−2, 10−2
    assert beyond["register"] == [3, 4, 0, 3, 3, 2, 1, 4]
    starts = [zoo.mod_arith(5, c).outputs[0] for c in COMPLETIONS]
    assert starts == [None, None, 0, 0, 0, 1]
    assert [zoo.sum_mod(5).outputs[0], zoo.even_pair(5).outputs[0], zoo.subtraction(5).outputs[0]] == [0, 0, None]
    m = zoo.mod_arith(5)
    assert m.transduce("1+2−3×4") == m.transduce("1 + 2 - 3 * 4") == m.transduce("1+2–3·4")
    assert zoo.subtraction(5).transduce("11-1") == [1, "error", "error", "error"]
    assert zoo.subtraction(5).transduce("-") == ["error"]
    assert zoo.subtraction(5, "ignore").transduce("11--2") == [1, 1, None, None, 4]
    both = zoo.mod_arith(5)
    kept = [both.alphabet.index(letter) for letter in zoo.subtraction(5).alphabet]
    restricted = MooreMachine(both.delta[kept], both.outputs, both.start, zoo.subtraction(5).alphabet)
    assert equivalent(restricted, zoo.subtraction(5)) is None


@pytest.mark.parametrize("M", [2, 3, 5, 12])
def test_sum_mod_sums(M):
    rng, m = random.Random(M), zoo.sum_mod(M)
    ds = [rng.randrange(M) for _ in range(200)]
    assert m.transduce(map(str, ds)) == [sum(ds[: k + 1]) % M for k in range(200)]
    assert m.minimise() == m
    assert m.labels == tuple(range(M))


@pytest.mark.parametrize("M", [2, 3, 5, 11])
def test_even_pair_compares_the_ends(M):
    rng, m = random.Random(M), zoo.even_pair(M)
    ds = [str(rng.randrange(M)) for _ in range(300)]
    assert m.transduce(ds) == [int(d == ds[0]) for d in ds]
    assert m.minimise().n_states == m.n_states == 2 * M + 1


@pytest.mark.parametrize("M", range(2, 8))
def test_subtraction_subtracts(M):
    rng = random.Random(M)
    for completion, size in [("sink", 2 * M + 2), ("ignore", 2 * M + 1)]:
        m = zoo.subtraction(M, completion)
        expression = random_expression(rng, M, 60, operators="-")
        assert m.transduce(expression)[::2] == [value(expression[: k + 1], M) for k in range(0, 119, 2)]
        assert set(m.transduce(expression)[1::2]) == {None}
        assert m.minimise().n_states == size - (M == 2)


@pytest.mark.parametrize("task", ["sum_mod", "even_pair", "mod_arith", "subtraction"])
@pytest.mark.parametrize("M", [1, 0, -3, 2.0, "5", True, None])
def test_a_modulus_below_two_is_refused(task, M):
    with pytest.raises(InvalidMachine, match=rf"{task}\(M={M!r}\): M must be a whole number of at least 2 \("):
        getattr(zoo, task)(M)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_cycle_navigation_walks_round(n):
    m = zoo.cycle_navigation(n)
    for w in map("".join, product("0+-", repeat=7)):
        assert m.outputs[m.run(w)] == (w.count("+") - w.count("-")) % n
    assert m.n_states == m.minimise().n_states == n
