"""Tasks by name and their facts; group machines against the axioms; random machines by seed."""

from collections import Counter
from hashlib import sha256
from itertools import product

import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.automata.language import trim
from fsa2lrnn.automata.zoo.mlregtest import FOLDER, from_mlregtest
from fsa2lrnn.automata.zoo.sampling import _reachable_share
from fsa2lrnn.errors import BudgetExceeded, Fsa2LrnnError, InvalidMachine, UnsupportedFormat


def test_every_task_is_in_the_zoo_and_described():
    names = [source.partition("(")[0] for source in zoo.ZOO]
    assert set(names) == set(zoo.TASKS)
    assert all(isinstance(zoo.from_task(source), MooreMachine) for source in zoo.ZOO)
    assert set(zoo.TASKS) <= set(zoo.__all__)
    with pytest.raises(UnsupportedFormat) as error:
        zoo.from_task("nothing")
    assert all(name in str(error.value) for name in zoo.TASKS)


@pytest.mark.parametrize(("source", "same"), [
    ("parity", zoo.parity()),
    ("  sum_mod ( 5 ) ", zoo.sum_mod(5)),
    ("mod_arith(5, completion=register)", zoo.mod_arith(5, "register")),
    ("mod_arith(completion='ignore', M=3)", zoo.mod_arith(3, "ignore")),
    ('group("Z5xZ3")', zoo.group("Z5xZ3")),
    ("group(Z5×Z3, generators=all)", zoo.group("Z5xZ3", generators="all")),
    ("cycle_navigation", zoo.cycle_navigation(5)),
    ("random_dfa(5, 2, seed=1, minimal=True)", zoo.random_dfa(5, 2, 1, minimal=True)),
    ("random_moore(4, 2, outputs=xy, seed=3)", zoo.random_moore(4, 2, "xy", 3)),
    ('length_mod(3, letters="(, )")', zoo.length_mod(3, letters="(, )")),
    ("contains('10', letters='01')", zoo.contains("10", letters="01")),
    ("sum_mod(5,)", zoo.sum_mod(5)),
])  # fmt: skip
def test_calls_are_read(source, same):
    assert zoo.from_task(source) == same


@pytest.mark.parametrize(("source", "message"), [
    ("", "task '' is not a call: write a task as mod_arith(5, completion=register)"),
    ("sum_mod(5", "task 'sum_mod(5' is not a call: write a task as mod_arith(5, completion=register)"),
    ("sum_mod(5)(5)", "cannot be read from '5)(5' on: give values separated by commas, then name=value"),
    ("sum_mod(M=5, 6)", "cannot be read from '6' on"),
    ("sum_mod([5])", "sum_mod(M='[5]'): M must be a whole number of at least 2"),
    ("mod_aritm(5)", "task 'mod_aritm' is not known: did you mean mod_arith? the tasks are sum_mod, even_pair,"),
    ("__import__('os')", "task '__import__' is not known: "),
    ("sum_mod", "task 'sum_mod': missing a required argument: 'M': call it as sum_mod(M)"),
    ("mod_arith(5, sink, 3)", "too many positional arguments: call it as mod_arith(M, completion='sink')"),
    ("sum_mod(5, n=3)", "got an unexpected keyword argument 'n': call it as sum_mod(M)"),
    ("sum_mod(9999999999999999999999)", "sum_mod(M='9999999999999999999999'): M must be a whole number"),
    ("mod_arith(5, completion=bin)", "completion must be one of sink, ignore, running, operator, eager, register"),
    ("contains(10, letters=01)", "contains(pattern=10): pattern must be text: write it in quotes"),
])  # fmt: skip
def test_messages(source, message):
    with pytest.raises(Fsa2LrnnError) as error:
        zoo.from_task(source)
    assert message in str(error.value)


def test_names_of_mlregtest(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "04.04.SL.2.1.0.att").write_text("0\t0\tb\tb\n0\t1\ta\ta\n1\t0\tb\tb\n0\n1\n")
    machine = MooreMachine.from_source("mlregtest:04.04.SL.2.1.0")
    assert [machine.accepts(word) for word in ("", "ab", "aba", "aa", "aab")] == [True, True, True, False, False]
    with pytest.raises(UnsupportedFormat, match=rf"04.04.SL.2.1.1.att cannot be read .*set {FOLDER}"):
        MooreMachine.from_source("mlregtest:04.04.SL.2.1.1")
    monkeypatch.delenv(FOLDER, raising=False)
    with pytest.raises(UnsupportedFormat, match=f"set {FOLDER} to that folder"):
        MooreMachine.from_source("mlregtest:04.04.SL.2.1.0")
    for name in ("", "SL", "04.04.XX.2.1.0", "04.04.SL.2.1", "../../a.SL.2.1.0", "04.04.SL.²2.1.0"):
        with pytest.raises(UnsupportedFormat, match="does not name a language"):
            from_mlregtest(name)


NAMES = ("Z2", "Z5", "S2", "S3", "S4", "A3", "A4", "A5", "D2", "D4", "D5", "Q8", "Z2xZ3xS3", "Z4xQ8", "A4×Z2")
ORDERS = dict(zip(NAMES, (2, 5, 2, 6, 24, 3, 12, 60, 4, 8, 10, 8, 36, 32, 24), strict=True))


@pytest.mark.parametrize("spec", ORDERS)
def test_a_group_has_a_state_an_element_and_letters_that_are_a_regular_permutation_group(spec):
    """Right multiplications: permutations, closed under composition, only the identity with a fixed point."""
    standard, m = zoo.group(spec), zoo.group(spec, generators="all")
    assert standard.n_states == standard.minimise().n_states == ORDERS[spec] == len(set(standard.outputs))
    assert standard.outputs == standard.labels
    rows = m.delta.tolist()
    assert all(sorted(row) == list(range(m.n_states)) for row in rows)
    assert sum(row == list(range(m.n_states)) for row in rows) == 1
    assert all(row[q] != q for row in rows for q in range(m.n_states) if row != list(range(m.n_states)))
    assert len(set(map(tuple, rows))) == ORDERS[spec]
    assert {tuple(q[image] for image in p) for p in rows for q in rows} == set(map(tuple, rows))


def test_permutations_and_exchanged_neighbours_multiply():
    m = zoo.group("S4", generators="all")
    for word in product(m.alphabet, repeat=2):
        first, second = images(word[0]), images(word[1])
        assert images(str(m.outputs[m.run(word)])) == [second[image] for image in first]
    m = zoo.group("S4", generators="transpositions")
    assert m.alphabet == ("(1,2)", "(2,3)", "(3,4)")
    assert m.n_states == 24
    assert m.transduce(["(1,2)", "(2,3)"]) == zoo.group("S4", generators="all").transduce(["(1,2)", "(2,3)"])
    assert (zoo.group("S2xS3", generators="transpositions").n_states, zoo.group("S7").n_states) == (12, 5_040)


def images(cycles: str, n: int = 4) -> list[int]:
    p = list(range(n))
    for cycle in cycles.strip("()").split(")("):
        points = [int(c) - 1 for c in cycle.split(",") if c]
        for a, b in zip(points, points[1:] + points[:1], strict=True):
            p[a] = b
    return p


UNKNOWN = r"is not a group of the zoo: write Zn, Sn, An, Dn \(of order 2n\) or Q8"
TRIVIAL = r"is trivial or not of its kind: .n needs n of at least [23]"


@pytest.mark.parametrize(("spec", "options", "message"), [
    *((s, {}, UNKNOWN) for s in ("", "Z", "X5", "z5", "Z5x", "Z5 x Z3", "Q16", "S-3", "5", "Z5xx", 5, None)),
    *((s, {}, TRIVIAL) for s in ("Z1", "Z0", "S1", "A2", "D1", "Z5xZ1")),
    ("S12", {}, r"group\(S12\) has about 4.79e\+08 states and 2 letters"),
    ("S999999999", {}, "states"),
    ("x".join(["S5"] * 50), {}, "states"),
    ("S7", {"generators": "all"}, "5,040 letters"),
    ("A4", {"generators": "transpositions"}, "only symmetric groups are generated by those"),
    ("Z5", {"generators": "some"}, r"group\(generators='some'\): generators must be one of standard, all"),
])  # fmt: skip
def test_unknown_trivial_and_large_groups_are_refused(spec, options, message):
    with pytest.raises((BudgetExceeded, InvalidMachine, UnsupportedFormat), match=message):
        zoo.group(spec, **options)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 3), (2, 1), (2, 2), (7, 1), (12, 2), (30, 5), (40, 30), (300, 2)])
def test_every_state_is_reachable_and_numbered_breadth_first(n, k):
    for seed in range(5):
        m = zoo.random_dfa(n, k, seed)
        assert (m.n_states, len(m.alphabet)) == (n, k)
        assert trim(m) == m
        assert m.is_acceptor


@pytest.mark.parametrize(("n", "k"), [(1, 2), (2, 1), (2, 2), (9, 1), (15, 2), (20, 3)])
def test_minimal_machines_are_minimal(n, k):
    for seed in range(10):
        assert zoo.random_dfa(n, k, seed, minimal=True).minimise().n_states == n


def test_a_seed_means_the_same_machine_for_ever_and_another_differs():
    drawn = [zoo.random_moore(10, 3, outputs=4, seed=seed) for seed in range(20)]
    assert drawn == [zoo.random_moore(10, 3, outputs=4, seed=seed) for seed in range(20)]
    assert len(set(drawn)) == 20
    m = zoo.random_dfa(12, 2, seed=2024, minimal=True)
    text = f"{m.delta.tolist()} {m.outputs}"
    assert sha256(text.encode()).hexdigest()[:16] == "094eb40be6597d72"


@pytest.mark.long_cases("2-2-12")
@pytest.mark.parametrize(("n", "k", "structures"), [(2, 2, 12), (3, 1, 3), (2, 1, 2)])
def test_transition_structures_are_uniform(n, k, structures):
    """Accessible structures of 2 states over 2 letters, numbered breadth first: 12 (Bassino & Nicaud 2007)."""
    draws = 300 * structures
    seen = Counter(zoo.random_dfa(n, k, seed).delta.tobytes() for seed in range(draws))
    assert len(seen) == structures
    assert min(seen.values()) > 200
    assert max(seen.values()) < 400


def test_the_reachable_share_is_that_of_carayol_and_nicaud():
    assert _reachable_share(2) == pytest.approx(0.7968, abs=1e-4)


def test_bad_parameters_are_named():
    with pytest.raises(InvalidMachine, match=r"random_dfa\(n=0\): n must be a whole number of at least 1"):
        zoo.random_dfa(0, 2, 0)
    with pytest.raises(InvalidMachine, match=r"random_dfa\(seed=-1\): seed must be a whole number of at least 0"):
        zoo.random_dfa(2, 2, -1)
    with pytest.raises(InvalidMachine, match=r"random_moore\(outputs=0\): outputs must be"):
        zoo.random_moore(3, 2, outputs=0, seed=0)
    with pytest.raises(InvalidMachine, match="with a single output every machine has one state: give two"):
        zoo.random_moore(3, 2, outputs=1, seed=0, minimal=True)
