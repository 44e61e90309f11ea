"""Automata, models and number types by name, and letters that do not fit."""

import pytest
import torch

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.cli import sources
from fsa2lrnn.errors import CheckpointError, InvalidMachine, UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn.checkpoint import save


def test_a_model_comes_from_a_file_or_is_compiled_on_the_spot(tmp_path):
    save(compile_machine(zoo.parity(), dtype=torch.float64), tmp_path / "m.safetensors")
    assert sources.model_of(str(tmp_path / "m.safetensors"), "float16").dtype == torch.float64
    assert sources.model_of("task:parity", "float16").dtype == torch.float16
    assert sources.model_of("task:parity", alphabet="012", completion="sink").alphabet == ("0", "1", "2")


def test_learned_models_have_short_names_where_these_tell_them_apart(tmp_path):
    paths = [tmp_path / folder / "m.safetensors" for folder in ("a", "b", "c/a")]
    for path in paths:
        path.parent.mkdir(parents=True)
        save(compile_machine(zoo.parity()), path)
    assert list(sources.learned_models([str(path) for path in paths[:2]])) == ["a/m", "b/m"]
    assert list(sources.learned_models([str(path) for path in paths])) == [str(path) for path in paths]
    with pytest.raises(UnsupportedFormat, match="one is given twice"):
        sources.learned_models([str(paths[0])] * 2)


def test_models_and_automata_are_told_apart():
    with pytest.raises(CheckpointError, match=r"task:parity is not a model: give a file ending in \.safetensors"):
        sources.learned_model("task:parity")
    with pytest.raises(UnsupportedFormat, match=r"m\.safetensors is a model, where an automaton is asked for"):
        sources.read_machine("m.safetensors")


def test_a_folder_of_runs_is_not_taken_for_a_source(tmp_path):
    with pytest.raises(CheckpointError, match=r"is a folder that `fsa2lrnn export` did not write: give a model in it"):
        sources.model_of(str(tmp_path))
    assert sources.exported_folder(str(tmp_path)) is None


def test_an_automaton_over_more_letters():
    machine = sources.read_machine("regex:a*", alphabet="ab")
    assert machine.transduce("aab") == [True, True, False]
    assert sources.read_machine("regex:.*", alphabet="ab").accepts("ab")
    assert sources.read_machine("task:sum_mod(2)", "ignore", "012").transduce("121") == [1, 1, 0]
    with pytest.raises(InvalidMachine, match="no transition for state 0 on '2'"):
        sources.read_machine("task:sum_mod(2)", alphabet="012")


@pytest.mark.parametrize(
    ("ours", "theirs", "remedy"),
    [
        (("a", "b"), ("a",), r"; --alphabet 'ab' reads S over the letters of both$"),
        (
            ("a",),
            ("a", "b"),
            r"have the same; a model knows more letters where it is compiled with --alphabet 'ab'$",
        ),
        (("a b",), ("c",), r"; --alphabet '\[\"a b\", \"c\"\]' reads S .*; a model knows more letters where"),
        ((0,), ("0",), r"alphabet=machine\.alphabet, outputs=…\)$"),
    ],
)
def test_letters_that_differ_come_with_a_remedy(ours, theirs, remedy):
    model = compile_machine(MooreMachine([[0]] * len(ours), [True], 0, ours))
    machine = MooreMachine([[0]] * len(theirs), [True], 0, theirs)
    with pytest.raises(InvalidMachine, match=remedy):
        sources.check_letters(model, machine, "S")
    sources.check_letters(model, MooreMachine([[0]] * len(ours), [True], 0, ours[::-1]), "S")


def test_machines_that_are_no_acceptors_need_a_completion():
    model = compile_machine(zoo.sum_mod(3))
    with pytest.raises(InvalidMachine, match=r"both, where --completion sink or ignore says what new ones do$"):
        sources.check_letters(model, zoo.sum_mod(2), "S")
