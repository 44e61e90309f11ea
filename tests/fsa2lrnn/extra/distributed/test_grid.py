"""A grid holds every combination once, and says what does not fit before anything runs."""

import json

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.distributed import grid
from fsa2lrnn.extra.distributed.grid import NETWORKS, Sweep, read
from fsa2lrnn.training.seeds import RunPlan
from fsa2lrnn.training.settings import preset

VALUES = {
    "tasks": ["task:parity", "task:sum_mod(3)"],
    "networks": ["block-8", "diagonal"],
    "settings": {"slow": {"learning_rate": 1e-4}, "fast": {"learning_rate": 1e-2}},
    "seeds": [0, 5],
    "preset": "quick",
    "lengths": [7, 30],
    "words": 11,
}


def test_every_combination_once():
    sweep = Sweep.from_dict(VALUES)
    cells = [(t.task, t.network, t.setting, t.settings.seed) for t in sweep.trials]
    assert len(cells) == len(set(cells)) == 16
    assert cells[:2] == [("task:parity", "block-8", "slow", 0), ("task:parity", "block-8", "slow", 5)]
    last = sweep.trials[-1]
    wanted = preset("quick", "task:sum_mod(3)", learning_rate=1e-2, seed=5, **NETWORKS["diagonal"])
    assert last.settings == wanted
    assert last.plan == RunPlan(lengths=(7, 30), n_words=11)
    assert last.judged == {"lengths": [7, 30], "words": 11, "letters": RunPlan.letters}


def test_folders_are_distinct_and_plain_and_stay_when_the_sweep_grows():
    small, large = Sweep.from_dict(VALUES), Sweep.from_dict({**VALUES, "seeds": [5, 6, 0], "tasks": ["task:parity"]})
    folders = [trial.folder for trial in small.trials]
    assert len(set(folders)) == 16
    assert all(set("/ :()") & set(folder) == set() for folder in folders)
    assert set(folders[:8]) < {trial.folder for trial in large.trials}
    other = Sweep.from_dict({**VALUES, "settings": {"slow": {"learning_rate": 1e-5}}})
    assert not {trial.folder for trial in other.trials} & set(folders)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_by_name_are_of_one_width(name):
    (trial,) = Sweep.from_dict({"tasks": ["task:mod_arith(5)"], "networks": [name]}).trials
    network = trial.settings.network("ab", "cd")
    assert {layer.width for layer in network.layers} == {64}


def test_a_network_of_ones_own():
    (trial,) = Sweep.from_dict({"tasks": ["task:parity"], "networks": {"small": {"block": 2, "heads": 3}}}).trials
    assert (trial.network, trial.settings.block, trial.settings.heads) == ("small", 2, 3)


def test_what_a_file_holds_is_checked_at_once():
    wrong = {"networks": ["block-8", "lstm"], "seeds": ["0"], "preset": 3, "words": True, "colour": "red"}
    with pytest.raises(UnsupportedFormat) as caught:
        Sweep.from_dict(wrong)
    for piece in (
        "'colour' is none of tasks, networks, settings",
        "seeds = ['0']: give a list of whole numbers",
        "preset = 3: give the name of a preset",
        "words = True: give a whole number",
        "tasks are missing: give at least one",
        "network 'lstm' is none of block-8, block-8-clip",
    ):
        assert piece in str(caught.value)
    for networks in ("block-8", [["block-8"]], [{}], {"x": 1}):
        with pytest.raises(UnsupportedFormat, match=r"networks = .*: give a list of names, or a table of changes"):
            Sweep.from_dict({"tasks": ["task:parity"], "networks": networks})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": []}, "tasks is empty: give at least one"),
        ({"seeds": [1, 1]}, r"seeds = \[1, 1\]: each may occur once"),
        (
            {"settings": {"wide": {"heads": 2}}},
            "setting 'wide' changes heads, which network 'block-8' decides: name ano",
        ),
        ({"settings": {"lucky": {"seed": 7}}}, "'block-8' with 'lucky' changes seed: those are axes of their own"),
        ({"settings": {"x": {"colour": 1}}}, "network 'diagonal' with setting 'x': colour: no such setting"),
        ({"settings": {"x": {"batch": 0}}}, "with setting 'x': settings do not fit: batch = 0 must be a whole number"),
        (
            {"settings": {"x": {"layers": 2, "embedding_dim": 5}}},
            "layer 0 is 64 wide and the residual stream 5: choose",
        ),
        ({"tasks": ["task:parity", "task:nothing"]}, "task 'task:nothing': task 'nothing' is not known"),
        ({"preset": "slow"}, "preset 'slow' is not known: choose one of released, quick"),
        ({"seeds": [-1]}, "seed = -1 must be a whole number from 0"),
        ({"lengths": [0]}, "all must be at least 1"),
        ({"lengths": [10**30]}, "1000.* words or letters are too many to be meant: at most 1,000,000,000,000 are"),
        ({"settings": {"x": {"layers": 99_999_999_999}}}, "layers = 99999999999 must be a whole number from 1 to 256"),
        (
            {"networks": {"x": {"heads": 99_999_999_999}}},
            "heads = 99999999999 must be a whole number from 1 to 65,536",
        ),
        (
            {"networks": {"x": {"heads": 65_536, "block": 2}}},
            "make a state of 131,072 numbers: at most 65,536",
        ),
        ({"settings": {"x": {"name": "y"}}}, "with setting 'x': name: no such setting"),
        ({"settings": {"x": {"connection": ["chain"]}}}, r"connection = \['chain'\] must be text"),
        ({"settings": {"x": {"options": [1]}}}, r"options = \[1\] must be an object"),
        ({"seeds": list(range(20_000))}, "160,000 runs: at most 10,000 are a sweep, split it"),
    ],
)
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(UnsupportedFormat, match=message):
        Sweep.from_dict({**VALUES, **changes})


def test_machines_too_large_together_are_refused(monkeypatch):
    monkeypatch.setattr(grid, "MAX_ENTRIES", 30)
    tasks = [f"task:length_mod({n})" for n in range(5, 15)]
    with pytest.raises(UnsupportedFormat, match="the machines of the tasks have more than 30 transitions: split"):
        Sweep.from_dict({**VALUES, "tasks": tasks, "seeds": [0], "settings": {"x": {}}, "networks": ["diagonal"]})


def test_a_fault_of_many_trials_is_named_once():
    with pytest.raises(UnsupportedFormat) as caught:
        Sweep.from_dict({**VALUES, "settings": {"x": {"batch": 0}}})
    assert str(caught.value).count("network 'diagonal'") == 1


def test_both_kinds_of_file(tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(VALUES))
    (tmp_path / "s.toml").write_text('tasks = ["task:parity"]\n[settings.fast]\nlearning_rate = 0.01\n')
    assert read(tmp_path / "s.json") == VALUES
    assert read(tmp_path / "s.toml") == {"tasks": ["task:parity"], "settings": {"fast": {"learning_rate": 0.01}}}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("s.yaml", "", "s.yaml ends in .yaml: a sweep is a .json or a .toml file"),
        ("s.json", "{", r"s.json can't be read \(.*: Expecting .*: give a JSON table"),
        ("s.toml", "x", r"s.toml can't be read \(.*: give a TOML table"),
        ("s.json", "[1]", "s.json holds a list: give a table of tasks, networks"),
        ("s.json", "[" * 100_000, r"s.json can't be read \(the text: nested deeper than 100"),
        ("s.toml", "a = " + "[" * 5_000 + "]" * 5_000, r"s.toml can't be read \(the text: nested deeper than 100"),
        ("s.toml", ".".join(["a"] * 5_000) + " = 1", r"s.toml can't be read \(the text: nested deeper than 100"),
        ("s.toml", "a = " + "9" * 5_000, "s.toml can't be read .*: correct the TOML"),
        ("s.toml", "# " + "-" * (1 << 20), "s.toml has 1,048,578 bytes, and at most 1,048,576 are a sweep: split it"),
        ("s.toml", '[networks.mine]\nlayer = "os:path"', "layer kind 'os:path' is not known: .* is made known first"),
        ("s.json", '{"settings": {"x": {"layer": ["block"]}}}', r"layer kind \['block'\] is not known"),
    ],
)
def test_files_that_are_no_sweep(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(UnsupportedFormat, match=message):
        read(tmp_path / name)
