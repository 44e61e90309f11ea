"""What machines and models cost, in words."""

import pytest
import torch

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.cli import console, sizes
from fsa2lrnn.lower import compile_machine


def test_the_bill():
    rows = dict(sizes.model_rows(compile_machine(zoo.group("Z5xZ4xZ3"))))
    assert rows["layers"] == "1 (3 blocks of 5, 4, 3), dense"
    assert rows["hidden units"] == "66 of gates and read-out"
    assert "token shift" not in rows
    rows = dict(sizes.model_rows(compile_machine(zoo.length_mod(100))))
    assert rows["layers"] == "1 (1 block of 100), index table of the linear map"
    assert "hidden units" not in rows


@pytest.mark.parametrize(
    ("token_shift", "shift"),
    [(True, "yes: gates see the step before too"), (False, "no: gates see this step alone")],
)
def test_the_bill_of_a_cascade_has_a_row_for_each_layer(token_shift, shift):
    model = compile_machine(zoo.mod_arith(5, "eager"), form="cascade", token_shift=token_shift)
    rows = dict(sizes.model_rows(model))
    assert rows["layers"] == "3, dense"
    layers = [rows[f"  layer {i}"] for i in (1, 2, 3)]
    assert layers == ["2 lanes", "1 block of 4 and 1 lane", "1 block of 5"]
    assert rows["token shift"] == shift
    found = sizes.model_json(model)
    assert found["token_shift"] is token_shift
    hidden = [m for name, m in model.named_modules() if name.endswith(".0") and isinstance(m, torch.nn.Linear)]
    assert found["hidden_units"] == sum(linear.out_features for linear in hidden)


def test_a_large_machine_has_no_table():
    assert sizes.transition_table(zoo.length_mod(41)) is None
    assert sizes.transition_table(zoo.length_mod(40)) is not None


def test_a_table_obeys_no_letter(capsys):
    console.out.print(sizes.transition_table(MooreMachine([[0], [0]], ["\x1b[2J"], 0, ["[bold]", "\u202e"])))
    out = capsys.readouterr().out
    for piece in ("[bold]", r"\u202e", r"\x1b[2J"):
        assert piece in out
