"""What people read."""

import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.cli import console
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.verdicts import FailingWord, Proved, Refuted, Scope, Undecided


def test_verdicts_in_words():
    text = console.verdict_text(Proved(1, 2, "bfloat16", ("sequential",), Scope(3, 1, ("?",))))
    assert "computed in bfloat16" in text
    assert text.endswith("outputs of 1 of 3 states do not count: ?; nor does that of the empty word")
    text = console.verdict_text(Refuted(FailingWord(("a", "b"), (True, True), (True, False)), 1, Scope(3)))
    assert text.endswith("every output counts but that of the empty word")
    assert "differ on [bold]ab[/] (2 letters)" in text
    assert "model   accept reject" in text
    assert "the empty word" in console.verdict_text(Refuted(FailingWord((), (2,), (1,)), -1, Scope(3, empty_word=True)))
    assert "every word of at most 7 letters" in console.verdict_text(Undecided(7, Scope(3), 10))


@pytest.mark.parametrize(("word", "text"), [("ab", "ab"), (("up", "down"), "up down"), ((1, 0), "10"), ((), "")])
def test_words_are_shown_as_they_are_typed(word, text):
    assert console.show_word(word) == text


def test_long_lists_are_cut():
    assert console.symbol_list(range(30), limit=3) == "0 1 2 … (30)"
    assert console.symbol_list([True, None]) == "accept –"


def test_the_bill():
    rows = dict(console.model_rows(compile_machine(zoo.group("Z5xZ4xZ3"))))
    assert rows["layers"] == "1 (3 blocks of 5, 4, 3), dense"
    assert rows["hidden units"] == "66 of gates and read-out"
    assert "token shift" not in rows
    rows = dict(console.model_rows(compile_machine(zoo.length_mod(100))))
    assert rows["layers"] == "1 (1 block of 100), index table of the linear map"
    assert "hidden units" not in rows


@pytest.mark.parametrize(
    ("token_shift", "shift"),
    [(True, "yes: gates see the step before too"), (False, "no: gates see this step alone")],
)
def test_the_bill_of_a_cascade_has_a_row_for_each_layer(token_shift, shift):
    model = compile_machine(zoo.mod_arith(5, "eager"), form="cascade", token_shift=token_shift)
    rows = dict(console.model_rows(model))
    assert rows["layers"] == "3, dense"
    layers = [rows[f"  layer {i}"] for i in (1, 2, 3)]
    assert layers == ["2 lanes", "1 block of 4 and 1 lane", "1 block of 5"]
    assert rows["token shift"] == shift
    sizes = console.model_json(model)
    assert sizes["token_shift"] is token_shift
    hidden = [m for name, m in model.named_modules() if name.endswith(".0") and isinstance(m, torch.nn.Linear)]
    assert sizes["hidden_units"] == sum(linear.out_features for linear in hidden)


def test_a_large_machine_has_no_table():
    assert console.transition_table(zoo.length_mod(41)) is None
    assert console.transition_table(zoo.length_mod(40)) is not None
