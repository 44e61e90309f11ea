"""Tasks by name: parsing, messages, and the facts stated of every example; languages of MLRegTest by name."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.zoo.mlregtest import FOLDER, parse_name
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat


@pytest.mark.parametrize("source", zoo.ZOO)
def test_the_facts_of_every_example(source):
    m = zoo.from_task(source)
    assert m.n_states == m.minimise().n_states == zoo.ZOO[source].n_states
    assert kind(m.minimise()) == zoo.ZOO[source].kind
    assert m.labels is not None or source.startswith("random")
    letters = [str(m.alphabet[k % len(m.alphabet)]) for k in range(12)]
    joined = "".join(letters) if all(len(a) == 1 for a in letters) else " ".join(letters)
    assert m.transduce(joined) == m.transduce(letters)


def kind(m: MooreMachine) -> str:
    """By brute force over the transition monoid, a word at a time."""
    rows = m.delta
    if all(len(set(row)) == m.n_states for row in rows.tolist()):
        return "group"
    maps = [np.arange(m.n_states)]
    seen = {maps[0].tobytes()}
    for f in maps:
        periodic = np.arange(m.n_states)
        for _ in range(m.n_states):
            periodic = np.unique(f[periodic])
        if (f[periodic] != periodic).any():
            return "mixed"
        for row in rows:
            g = row[f]
            if g.tobytes() not in seen:
                seen.add(g.tobytes())
                maps.append(g)
    return "aperiodic"


def test_the_zoo_holds_every_task_and_all_names_are_public():
    names = [source.partition("(")[0] for source in zoo.ZOO]
    assert set(names) == set(zoo.TASKS)
    machines = [zoo.from_task(source) for source in zoo.ZOO]
    assert min(m.n_states for m in machines) == 1
    assert max(m.n_states for m in machines) == 120
    assert min(len(m.alphabet) for m in machines) == 1
    assert len(machines) == 68
    assert all(hasattr(zoo, name) for name in zoo.__all__)
    assert set(zoo.TASKS) <= set(zoo.__all__)


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ("parity", zoo.parity()),
        ("parity()", zoo.parity()),
        ("  sum_mod ( 5 ) ", zoo.sum_mod(5)),
        ("sum_mod(M=5)", zoo.sum_mod(5)),
        ("mod_arith(5, completion=register)", zoo.mod_arith(5, "register")),
        ("mod_arith(5,register)", zoo.mod_arith(5, "register")),
        ("mod_arith(completion='ignore', M=3)", zoo.mod_arith(3, "ignore")),
        ('group("Z5xZ3")', zoo.group("Z5xZ3")),
        ("group(Z5xZ3)", zoo.group("Z5xZ3")),
        ("group(Z5×Z3, generators=all)", zoo.group("Z5xZ3", generators="all")),
        ("cycle_navigation", zoo.cycle_navigation(5)),
        ("random_dfa(5, 2, seed=1, minimal=True)", zoo.random_dfa(5, 2, 1, minimal=True)),
        ("random_dfa(5, 2, 1, false)", zoo.random_dfa(5, 2, 1)),
        ("random_moore(4, 2, outputs=xy, seed=3)", zoo.random_moore(4, 2, "xy", 3)),
        ('length_mod(3, letters="(, )")', zoo.length_mod(3, letters="(, )")),
        ("contains('10', letters='01')", zoo.contains("10", letters="01")),
        ("sum_mod(5,)", zoo.sum_mod(5)),
    ],
)
def test_calls_are_read(source, same):
    assert zoo.from_task(source) == same


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "task '' is not a call: write a task as mod_arith(5, completion=register)"),
        ("sum_mod(5", "task 'sum_mod(5' is not a call: write a task as mod_arith(5, completion=register)"),
        ("sum_mod(5)(5)", "can't be read from '5)(5' on: give values separated by commas, then name=value"),
        ("sum_mod(5 6)", "can't be read from '5 6' on"),
        ("sum_mod(M=5, 6)", "can't be read from '6' on"),
        ("sum_mod(M=5, M=6)", "can't be read from 'M=6' on"),
        ("sum_mod(,)", "can't be read from ',' on"),
        ("sum_mod([5])", "sum_mod(M='[5]'): M must be a whole number of at least 2"),
        ("mod_aritm(5)", "task 'mod_aritm' is not known: did you mean mod_arith? the tasks are sum_mod, even_pair,"),
        ("xyzzy", "task 'xyzzy' is not known: the tasks are sum_mod, even_pair,"),
        ("__import__('os')", "task '__import__' is not known: "),
        ("sum_mod", "task 'sum_mod': missing a required argument: 'M': call it as sum_mod(M)"),
        ("mod_arith(5, sink, 3)", "too many positional arguments: call it as mod_arith(M, completion='sink')"),
        ("sum_mod(5, n=3)", "got an unexpected keyword argument 'n': call it as sum_mod(M)"),
        ("sum_mod(0)", "sum_mod(M=0): M must be a whole number of at least 2"),
        ("sum_mod(9999999999999999999999)", "sum_mod(M='9999999999999999999999'): M must be a whole number"),
        ("mod_arith(5, completion=bin)", "completion must be one of sink, ignore, running, operator, eager, register"),
        ("contains(10, letters=01)", "contains(pattern=10): pattern must be text: write it in quotes"),
    ],
)
def test_messages(source, message):
    with pytest.raises(Fsa2LrnnError) as error:
        zoo.from_task(source)
    assert message in str(error.value)


def test_all_tasks_are_listed_and_described_in_a_line():
    with pytest.raises(UnsupportedFormat) as error:
        zoo.from_task("nothing")
    assert all(name in str(error.value) for name in zoo.TASKS)
    described = zoo.task_names()
    assert [signature.partition("(")[0] for signature in described] == list(zoo.TASKS)
    assert "mod_arith(M, completion='sink')" in described
    assert all(line.endswith(".") and len(line) < 120 for line in described.values())


names = st.sampled_from([*zoo.TASKS, "sum", "import", "x"])
arguments = st.lists(
    st.sampled_from(["0", "3", "-2", "ab", "'a'", '"', "(", "M=3", "n=2", "=", "seed=1", "true", "Z3", ""])
)


@settings(deadline=None)  # random machines load compiled kernels
@given(st.builds(lambda name, given: f"{name}({','.join(given)})", names, arguments) | st.text())
def test_whatever_is_asked_gives_a_machine_or_one_of_our_errors(source):
    try:
        assert isinstance(zoo.from_task(source), MooreMachine)
    except Fsa2LrnnError as error:
        assert str(error)  # noqa: PT017 - either outcome is right


def test_a_name_is_read_from_the_folder_and_missing_transitions_reject(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "04.04.SL.2.1.0.att").write_text("0\t0\tb\tb\n0\t1\ta\ta\n1\t0\tb\tb\n0\n1\n")
    machine = MooreMachine.from_source("mlregtest:04.04.SL.2.1.0")
    assert [machine.accepts(word) for word in ("", "ab", "aba", "aa", "aab")] == [True, True, True, False, False]
    with pytest.raises(UnsupportedFormat, match=rf"04.04.SL.2.1.1.att cannot be read .*set {FOLDER}"):
        MooreMachine.from_source("mlregtest:04.04.SL.2.1.1")


def test_a_folder_that_is_not_set_and_names_of_another_form_are_refused(monkeypatch):
    monkeypatch.delenv(FOLDER, raising=False)
    with pytest.raises(UnsupportedFormat, match=f"set {FOLDER} to that folder"):
        MooreMachine.from_source("mlregtest:04.04.SL.2.1.0")
    for name in ("", "SL", "04.04.XX.2.1.0", "04.04.SL.2.1", "../../a.SL.2.1.0", "04.04.SL.²2.1.0"):
        with pytest.raises(UnsupportedFormat, match="does not name a language"):
            parse_name(name)
