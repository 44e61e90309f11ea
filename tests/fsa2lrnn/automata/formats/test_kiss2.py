"""KISS2: against the rows read one by one, and faults."""

import random

import pytest

from fsa2lrnn.automata.formats import read_source
from fsa2lrnn.automata.formats.kiss2 import from_kiss2
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

HEAD = ".i 2\n.o 1\n"
CIRCUIT = HEAD + ".p 5\n.s 3\n.r b # reset\n0- a b 1\n11 a c -\n10 a a 0\n-- b a 1\n-- * a 1\n.e\nnot read"


def test_the_machine_does_what_the_rows_say():
    text = CIRCUIT.replace("-- * a 1", "-- c b 0")
    rows = [line.split() for line in text.split("\n") if line.count(" ") == 3]
    machine, rng = from_kiss2(text), random.Random(0)
    assert machine.alphabet == ("00", "01", "10", "11")
    for _ in range(50):
        word, state, expected = [rng.choice(machine.alphabet) for _ in range(20)], "b", []
        for letter in word:
            _, _, state, output = next(row for row in rows if row[1] == state and
                                       all(bit in ("-", x) for bit, x in zip(row[0], letter, strict=True)))  # fmt: skip
            expected.append(output)
        assert machine.transduce(word) == expected


def test_any_state_a_missing_next_state_and_the_first_row_as_start(tmp_path):
    machine = from_kiss2(HEAD + "-- * a 1\n")
    assert machine.transduce(["00", "11"]) == ["1", "1"]
    (tmp_path / "m.kiss").write_text(HEAD + "0- a b 1\n1- a * 0\n-- b a 0\n")
    with pytest.raises(InvalidMachine, match="transition"):
        read_source(tmp_path / "m.kiss")
    assert read_source(tmp_path / "m.kiss", completion="ignore").transduce(["10", "01", "00"]) == [None, "1", "0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CIRCUIT, "two edges leave 'a' on '00'"),
        (HEAD + ".p 2\n-- a a 1\n", r"\.p says 2 rows, the file has 1: was it cut off"),
        (HEAD + ".s 2\n-- a a 1\n", r"\.s says 2 states, the file has 1"),
        (HEAD + "-- a a 1\n0 a a 1\n", "line 4: input '0' is not 2 of the characters"),
        (HEAD + "-- a a 12\n", "line 3: output '12' is not 1 of the characters"),
        (HEAD + ".r z\n-- a a 1\n", "line 3: the start 'z' is not a state of the file"),
        (HEAD + "-- a a\n", "line 3: 3 fields, a row has input"),
        (HEAD + ".gate\n-- a a 1\n", r"line 3: '\.gate' is not known: remove the line"),
        (HEAD, "there are no rows"),
        (".i x\n0 a a 1\n", r"line 1: \.i takes one whole number"),
        ("0 a a 1\n", r"add '\.i N' and '\.o N'"),
        (HEAD + "-- * * 1\n", "there are no states"),
    ],
)
def test_faults_are_named_with_their_line(text, message):
    with pytest.raises(InvalidMachine, match=message):
        from_kiss2(text)


def test_sizes_are_bounded_before_anything_is_allocated():
    with pytest.raises(BudgetExceeded, match=r"99 input bits make 2\^99 letters, the limit is 2\^16"):
        from_kiss2(f".i 99\n.o 1\n{'-' * 99} a a 1\n")
    rows = "".join(f"{'-' * 16} {q} {q} 1\n" for q in range(20))
    with pytest.raises(BudgetExceeded, match="more than 1,000,000 transitions"):
        from_kiss2(".i 16\n.o 1\n" + rows)
