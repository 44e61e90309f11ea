"""From a machine to a folder, and what is refused on the way."""

import pytest

pytest.importorskip("transformers")

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.released import export as module
from fsa2lrnn.released.export import export
from fsa2lrnn.verdicts import Proved, Scope, Undecided


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("task", ["group(S4, transpositions)", "group(Z2xZ2)", "shift_register(2)"])
def test_what_is_written_is_proved(exported, task, dtype):
    _, written = exported(task, "olmo-hybrid", dtype)
    assert isinstance(written.verdict, Proved)
    assert written.verdict.arithmetic == dtype


def test_one_letter_is_an_alphabet(tmp_path):
    written = export(MooreMachine([[1, 0]], [False, True]), "olmo-hybrid", tmp_path / "m")
    assert written.verdict.pairs == 3


@pytest.mark.parametrize(
    ("machine", "layer", "dtype", "kind", "message"),
    [
        (zoo.parity(), "olmo-hybrid", "float16", UnsupportedFormat, "dtype float16: weights are written for float32"),
        (zoo.parity(), "gpt", "float32", UnsupportedFormat, "layer 'gpt' is not known"),
        (zoo.sum_mod(5), "olmo-hybrid", "float32", NotExpressible, "no construction .* one layer alone can't hold it"),
        (zoo.parity(), "qwen3-next", "float32", NotExpressible, "no stack of qwen3-next layers without attention can"),
    ],
)
def test_bad_input(tmp_path, machine, layer, dtype, kind, message):
    with pytest.raises(kind, match=message):
        export(machine, layer, tmp_path / "m", dtype)
    assert not (tmp_path / "m").exists()


def test_nothing_is_claimed_where_the_proof_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "prove", lambda _: Undecided(3, Scope(2), 10))
    with pytest.raises(NotExact, match="is not right on the code that is installed"):
        export(zoo.parity(), "olmo-hybrid", tmp_path / "m")
