"""What `learn` and `train --then-prove` print."""

from pathlib import Path

import pytest

from fsa2lrnn import MooreMachine, compile_machine, save
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning.commands.display import check_provable, main, prove_trained
from fsa2lrnn.training.settings import Settings


def test_networks_get_their_evidence_and_progress_is_shown(tmp_path, capsys):
    assert not main("task:sum_mod(11)", tmp_path, resume=True, as_json=False, steps=50, look=1, suffixes=0)
    captured = capsys.readouterr()
    assert "words of 5 letters, error" in captured.err
    assert captured.out.startswith("refuted: they differ on")
    results, machine = [], MooreMachine.from_source("task:sum_mod(3)")
    wrong = compile_machine(machine, normalisation="onehot")
    wrong.recurrences[0].set_map(1, 0, wrong.recurrences[0].get_map(2, 0))
    for name, model in (("a", compile_machine(machine, normalisation="onehot")), ("b", wrong)):
        (tmp_path / name).mkdir()
        save(model, tmp_path / name / "model.safetensors")
        results.append({"folder": str(tmp_path / name), "model": str(tmp_path / name / "model.safetensors")})
    assert prove_trained("task:sum_mod(3)", "task", results[:1])
    assert not prove_trained("task:sum_mod(3)", "task", [*results, {"end": "diverged"}])
    assert [result["learned"]["verdict"]["verdict"] for result in results] == ["proved", "refuted"]
    assert Path(tmp_path / "b" / "proved" / "machine.dot").exists()
    for changes in ({"normalisation": "onehot"}, {"normalisation": "onehot", "layers": 2}, {"layer": "hard_channels"}):
        check_provable(Settings("task:parity", **changes))
    for changes in ({"normalisation": "clip"}, {"layer": "householder", "options": {"factors": 1}}):
        with pytest.raises(UnsupportedFormat, match=f"--then-prove with .*{next(iter(changes))} = "):
            check_provable(Settings("task:parity", **changes))


@pytest.mark.extra("report")
def test_teaching_a_cascade_says_how_far_it_is(tmp_path, capsys):
    """It was silent until the network was proved."""
    assert main("task:sum_mod(4)", tmp_path, resume=True, as_json=True, method="cascade", block=2)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.endswith("taught")]
    assert [line.partition(", batch ")[0] for line in lines] == [
        "teaching layer 1 of 2", "teaching layer 2 of 2", "teaching the read-out",
    ]  # fmt: skip
    assert all("words of 40 letters, error 0.000, taught" in line for line in lines)
