"""Single conditions of the checker at their edges: each is met by no certificate that a search writes."""

import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from fsa2lrnn import MooreMachine, compile_machine, save
from fsa2lrnn.checker import pairs
from fsa2lrnn.checker.claims import CountedAutomaton, Sets, Tables, Tail, Tube, nodes
from fsa2lrnn.checker.errors import InvalidCertificate, UnsupportedInput
from fsa2lrnn.checker.files import Automaton, automaton, read_tables, symbol
from fsa2lrnn.checker.pairs import Pairs, check_pairs, read_pairs
from fsa2lrnn.checker.program import main, target_of
from fsa2lrnn.checker.replay import TubeReplay
from fsa2lrnn.checker.rounding import FloatFormat, Slack
from fsa2lrnn.nn.switched import as_tables

ONES = np.ones(1, bool)
ALWAYS = CountedAutomaton(np.zeros((1, 1), np.int64), 0, np.zeros(1, np.int64), ONES, 2)  # one state, output 0


def halving(margin=1.0):
    """x' = x / 2 in two fast coordinates; output 0 is above output 1 by `margin` for every state."""
    numbers = {
        "A": np.eye(2)[None, None] / 2, "v": np.zeros((1, 1, 2)), "x0": np.zeros((1, 2)), "W1": np.eye(2) / 4,
        "b1": np.zeros(2), "W2": np.zeros((2, 2)), "b2": np.array([margin, 0.0]),
    }  # fmt: skip
    return Tables(numbers, "float64", ("a",), (0, 1))


def sets_of(length, ball, centre=(0.0, 0.0), alive=True):
    zeros = np.zeros((1, 1, 2, 1))
    middle = np.array(centre).reshape(1, 1, 2, 1)
    none = np.zeros((1, 0, 1))
    return Sets(length, np.full((1, 1), alive), middle, zeros, np.full((1, 1, 1), ball), none, none)


def replay_with(*tail, part=(0,)):
    slow, none = np.zeros((1, 1, 2), bool), np.zeros((1, 0, 1, 2))
    tube = Tube(1, 1, 1, np.eye(2)[None, None], slow, np.array(part), none, tail=tail)
    return TubeReplay(halving(), ALWAYS, tube, Slack())


def growing(start, by, steps):
    return Tail(start, np.zeros((1, 1, 2, 1)), np.full((1, 1, 1), by), steps)


def test_a_tail_may_grow_and_then_stand_still():
    first = growing(sets_of(1, 1.01), 0.5, 3)
    second = growing(sets_of(4, 2.6), 0.0, None)
    least, end = replay_with(first, second).tail((first, second), sets_of(1, 1.0))
    assert (least > 0.9, end) == (True, None)


def test_the_last_set_of_a_growing_tail_holds_the_image_of_the_one_before():
    """A letter adds 1 to x: the ball has to grow by 1 a letter, and a set that stays as it is holds no image."""
    tables = halving()
    tables.numbers["A"], tables.numbers["v"] = np.eye(2)[None, None], np.array([[[1.0, 0.0]]])
    slow, none = np.zeros((1, 1, 2), bool), np.zeros((1, 0, 1, 2))
    tube = Tube(1, 1, 1, np.eye(2)[None, None], slow, np.zeros(1, np.int64), none)
    replay = TubeReplay(tables, ALWAYS, tube, Slack())
    replay.check_ramp(growing(sets_of(1, 1.0), 1.001, 5))
    for by, steps in ((0.999, 5), (0.0, None)):
        with pytest.raises(InvalidCertificate, match="do not hold all states that a letter leads to"):
            replay.check_ramp(growing(sets_of(1, 1.0), by, steps))


def test_sets_hold_others_if_they_do_in_fast_coordinates_and_where_anything_is_alive():
    replay = replay_with()
    replay.check_holds(sets_of(1, 1.0, alive=False), sets_of(1, 9.0, alive=False), "sets")
    replay.check_holds(sets_of(1, 1.0), sets_of(1, 0.4, centre=(0.5, 0.0)), "sets")
    for inner in (sets_of(1, 0.6, centre=(0.5, 0.0)), sets_of(1, 0.6, centre=(0.0, 0.5))):
        with pytest.raises(InvalidCertificate, match=r"ball of \(0, 0\)"):
            replay.check_holds(sets_of(1, 1.0), inner, "sets")
    with pytest.raises(InvalidCertificate, match="lack a node"):
        replay.check_holds(sets_of(1, 1.0, alive=False), sets_of(1, 0.1), "sets")


@pytest.mark.parametrize("part", [(1,), (-1,)])
def test_states_name_parts_that_there_are(part):
    with pytest.raises(InvalidCertificate, match="part runs"):
        replay_with(part=part)


def test_states_name_parts_that_there_are_each_of_them():
    two = CountedAutomaton(np.array([[1, 0]]), 0, np.zeros(2, np.int64), np.ones(2, bool), 2)
    bases, slow, none = np.stack([np.eye(2)[None]] * 2), np.zeros((2, 1, 2), bool), np.zeros((1, 0, 1, 2))
    tube = Tube(1, 1, 1, bases, slow, np.array([0, 1]), none, tail=())
    with pytest.raises(InvalidCertificate, match="part runs"):
        TubeReplay(halving(), two, tube, Slack())


def test_sums_that_may_overflow_are_refused_whatever_their_sign():
    for size, is_refused in ((2.0**40, False), (2.0**41, True), (-(2.0**41), True)):
        tables = halving()
        tables.numbers["W1"] = size * np.eye(2)
        if is_refused:
            with pytest.raises(UnsupportedInput, match="W1: sums of over 2"):
                tables.format()
        else:
            assert tables.format() == FloatFormat.of("float64")


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """Return a function that writes a model of tables with another rule for columns, layer, or transitions."""
    path = tmp_path_factory.mktemp("tables") / "model.safetensors"
    save(as_tables(compile_machine(MooreMachine.from_source("regex:(ab)*"))), path)
    with safe_open(path, "np") as file:
        weights, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118

    def write(rule="none", scale=1.0, metadata=metadata, dtype=np.float32, **layer):
        config = json.loads(metadata["config"]) if metadata else {}
        if metadata:
            config["normalisation"], config["layers"] = rule, [config["layers"][0] | layer]
        values = {name: (scale * x if "transition" in name else x).astype(dtype) for name, x in weights.items()}
        save_file(values, path, metadata and metadata | {"config": json.dumps(config)})
        return path

    return write


def test_models_with_fields_that_are_not_known_are_refused(model_file):
    assert read_tables(model_file()).alphabet == ("a", "b")
    with pytest.raises(UnsupportedInput, match="only models of as_tables"):
        read_tables(model_file(scale_of_states=2.0))


def test_columns_that_a_rule_changes_are_refused(model_file):
    assert read_tables(model_file("clip")).alphabet == ("a", "b")
    with pytest.raises(UnsupportedInput, match="normalisation = clip computes columns"):
        read_tables(model_file("clip", scale=3.0))


def test_files_of_other_types_or_without_metadata_are_refused(model_file):
    with pytest.raises(UnsupportedInput, match="holds numbers of the types"):
        read_tables(model_file(dtype=np.float16))
    with pytest.raises(UnsupportedInput, match="not a model of fsa2lrnn"):
        read_tables(model_file(metadata=None))


def test_nodes_begin_with_the_letters_that_were_read():
    """The letter b leads from the start to a state of its own, which nothing else reaches."""
    target = CountedAutomaton(np.array([[1, 1, 1], [2, 1, 1]]), 0, np.zeros(3, np.int64), np.ones(3, bool), 1)
    assert nodes(target, 1, 1).codes.tolist() == [2, 3, 5]  # (1, a), (1, b), (2, b)


def proof_of(margin, target=ALWAYS):
    """A proof by pairs for `halving`: one pair, (x0, 0)."""
    states = np.zeros((1, 2)).view(np.uint8)
    claim = Pairs(
        states, np.zeros(1, np.int64), np.zeros((1, 1), np.int64), np.zeros(1, np.int64), ("letters",), (), True
    )
    check_pairs(claim, halving(margin), target)


def test_margins_of_pairs_are_positive():
    proof_of(0.5)
    for margin in (0.0, -0.5, -2.0):
        with pytest.raises(InvalidCertificate, match="an output may be wrong"):
            proof_of(margin)


def test_the_work_of_pairs_is_counted_as_that_of_sets(monkeypatch):
    """One pair, a letter, n = m = 2, b = 2, one rival: 2 · 40 + 256 · 2 + 32 · 4 + 3 · 4 / 2 operations."""
    monkeypatch.setattr(pairs, "WORK", 2 * 40 + 512 + 128 + 6)
    proof_of(1.0)
    monkeypatch.setattr(pairs, "WORK", 2 * 40 + 512 + 128 + 5)
    with pytest.raises(InvalidCertificate, match="the check takes 726 operations"):
        proof_of(1.0)


def test_files_that_are_not_there_or_not_ours_are_refused(tmp_path):
    with pytest.raises(UnsupportedInput):
        read_pairs(tmp_path / "none.safetensors")
    value = {"format": "fsa2lrnn-machine", "version": 1, "alphabet": ["a"], "outputs": [0], "delta": [[0]], "start": 0}
    assert automaton(value, "it").start == 0
    for change in ({"delta": [[1]]}, {"delta": [[0, 0]]}, {"start": 1}, {"version": 2}, {"delta": []}):
        with pytest.raises(UnsupportedInput, match="of another version, or delta or start name no states"):
            automaton(value | change, "it")


def test_symbols_are_told_by_type():
    assert symbol({"tuple": [1, "a"]}) == ("tuple", (("int", "1"), "a"))
    assert symbol({"frozenset": [True]}) == ("frozenset", frozenset([("bool", "True")]))
    for odd in ({"tuple": [1], "frozenset": []}, {}, {"list": [1]}):
        with pytest.raises(UnsupportedInput, match="is not a symbol"):
            symbol(odd)


def test_a_letter_of_a_model_stands_once():
    machine = Automaton(("a", "b"), np.zeros((2, 1), np.int64), (0,), 0)
    assert target_of(machine, ("b", "a"), (0,), ()).n_outputs == 1
    with pytest.raises(UnsupportedInput, match="the model reads"):
        target_of(machine, ("a", "b", "a"), (0,), ())


def test_the_folder_runs_as_a_program(capsys):
    assert main([]) == 2
    said = capsys.readouterr().err
    done = subprocess.run([sys.executable, "-m", "fsa2lrnn.checker"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, said)


def test_gates_in_which_two_units_add_up_are_not_looked_up(tmp_path):
    """The sum of two terms may round; the configuration of a model is an object."""
    path = tmp_path / "model.safetensors"
    save(compile_machine(MooreMachine.from_source("regex:(ab)*")), path)
    read_tables(path)
    with safe_open(path, "np") as file:
        weights, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    first = weights["layers.0.transition.0.weight"]
    first[1:] = first[0]
    save_file(weights, path, metadata)
    with pytest.raises(UnsupportedInput, match="adds up several numbers"):
        read_tables(path)
    save_file(weights, path, metadata | {"config": json.dumps(list(json.loads(metadata["config"])))})
    with pytest.raises(UnsupportedInput, match="has no configuration"):
        read_tables(path)
