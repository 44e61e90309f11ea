"""One reader for all files; words as text and as lists, and symbols through JSON."""

import json
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.errors import InvalidMachine, InvalidWord, UnsupportedFormat
from fsa2lrnn.reading import MAX_DEPTH, MAX_WHOLE, check_fields, parse_json, read, shown
from fsa2lrnn.symbols import (
    align,
    encode,
    encode_text,
    from_json,
    is_character_alphabet,
    letter_index,
    show,
    show_label,
    text_index,
    to_json,
    word_text,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@dataclass(frozen=True)
class Part:
    weight: float


@dataclass(frozen=True)
class Whole:
    size: int
    flag: bool
    name: str
    mode: Literal["fast", "slow"]
    limit: float | None
    sizes: tuple[int, ...]
    pair: tuple[str, int]
    parts: tuple[Part, ...]
    by_name: Mapping[str, float]
    norm: bool | str = False


GOOD = {
    "size": 3, "flag": True, "name": "ü", "mode": "fast", "limit": None, "sizes": [1, 2], "pair": ["a", 1],
    "parts": [{"weight": 2}], "by_name": {"x": 0.5},
}  # fmt: skip


@given(json_values)
def test_json_is_read_as_it_is(value):
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)
        try:
            text.encode()
        except UnicodeEncodeError:
            continue
        assert parse_json(text, "x") == parse_json(text.encode(), "x") == value


@given(st.text() | st.binary() | st.tuples(json_values.map(json.dumps), st.integers(0, 99)).map(lambda x: x[0][: x[1]]))
def test_other_text_is_refused_by_name(text):
    try:
        parse_json(text, "some file")
    except UnsupportedFormat as found:
        error = str(found)
    else:
        return
    assert error.startswith("some file")


@pytest.mark.parametrize(("text", "reason"), [
    ("[" * 100_000, "f: nested deeper than 100, and no file of ours is"),
    ("[" * 101 + "]" * 101, "nested deeper than 100"),
    ('{"a": ' * 101 + "1" + "}" * 101, "nested deeper than 100"),
    ('{"a": 1, "b": {"c": 2, "c": 2}}', "f: the field 'c' stands twice in one object"),
    ("[NaN]", "f: it holds NaN, which is not a number"),
    ("9" * 5_000, "f: it holds a number of more than 4,300 digits"),
    (r'["\ud800"]', "f holds half a character"),
    (b'["\xed\xa0\x80"]', "f is not UTF-8 .byte 0xed at offset 2, in line 1"),
    (b"\xff\xfd", "f is not UTF-8 .byte 0xff at offset 0, in line 1"),
    ('{"a": 1,', "f: line 1, column 9: Expecting property name .*: the file is truncated or not JSON"),
    ("", "f: line 1, column 1: Expecting value"),
])  # fmt: skip
def test_what_no_writer_of_ours_writes_is_refused(text, reason):
    with pytest.raises(UnsupportedFormat, match=reason):
        parse_json(text, "f")


def test_types_are_declared_or_decoded_and_faults_counted():
    found = read(Whole, GOOD, "whole")
    wanted = Whole(3, True, "ü", "fast", None, (1, 2), ("a", 1), (Part(2.0),), {"x": 0.5})
    assert found == wanted
    assert type(found.parts[0].weight) is float
    check_fields(found)

    def doubled(value, where):
        if value == "no":
            raise UnsupportedFormat(f"{where}: no")
        return complex(value)

    assert read(tuple[complex, ...], ["1", "2"], "x", {complex: doubled}) == (1, 2)
    with pytest.raises(UnsupportedFormat, match=r"x\[1\]: no"):
        read(tuple[complex, ...], ["1", "no"], "x", {complex: doubled})
    with pytest.raises(UnsupportedFormat) as caught:
        read(Whole, GOOD | {"sizes": ["x"] * 1_000}, "whole")
    assert str(caught.value).count("must be") == 10
    assert str(caught.value).endswith("; and 990 more")
    assert len(shown("x" * 10**6)) < 100
    assert len(shown([[["x"] * 1_000] * 1_000] * 1_000)) < 1_000
    assert len(shown(10**2_000)) < 100
    assert shown({"heads": -1 << 20_000}) == "{'heads': a whole number of 20,001 bits}"


@pytest.mark.parametrize(("changes", "reason"), [
    ({"size": 2.0}, "whole.size = 2.0 must be a whole number"),
    ({"size": True}, "whole.size = True must be a whole number"),
    ({"size": 2 * MAX_WHOLE}, "whole.size = 36893488147419103232 must be a whole number"),
    ({"flag": 1}, "whole.flag = 1 must be true or false"),
    ({"name": None}, "whole.name = None must be text"),
    ({"mode": "quick"}, "whole.mode = 'quick' must be 'fast' or 'slow'"),
    ({"limit": float("inf")}, "whole.limit = inf must be a finite number or null"),
    ({"limit": False}, "whole.limit = False"),
    ({"limit": 10**400}, "whole.limit = 1000.* must be a finite number or null"),
    ({"sizes": {"0": 1}}, "whole.sizes = .* must be a list"),
    ({"sizes": [1, 2.5, "3"]}, r"whole.sizes\[1\] = 2.5 .*; whole.sizes\[2\] = '3' must be a whole"),
    ({"pair": ["a"]}, "whole.pair has 1 entries, expected are 2"),
    ({"parts": [{}]}, r"whole.parts\[0\].weight is missing"),
    ({"parts": [3]}, r"whole.parts\[0\] = 3 must be an object"),
    ({"parts": [{"weight": 1, "heavy": 2}]}, r"whole.parts\[0\].heavy is not known: remove it"),
    ({"by_name": {"x": "y"}}, "whole.by_name.x = 'y' must be a finite number"),
    ({"by_name": []}, r"whole.by_name = \[\] must be an object"),
    ({"norm": 1}, "whole.norm = 1 must be true or false or text"),
])  # fmt: skip
def test_what_is_of_another_type_is_named(changes, reason):
    with pytest.raises(UnsupportedFormat, match=reason):
        read(Whole, GOOD | changes, "whole")


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), json_values))
def test_whatever_is_in_a_field_it_is_read_or_named(changes):
    try:
        check_fields(read(Whole, GOOD | changes, "whole"))
    except UnsupportedFormat as found:
        error = str(found)
    else:
        return
    assert any(f"whole.{name}" in error for name in changes)


def test_data_in_memory_are_checked_alike():
    for weight in (True, "1", float("nan")):
        with pytest.raises(UnsupportedFormat, match=f"weight = {weight!r} must be a finite number"):
            check_fields(Part(weight))
    whole = read(Whole, GOOD, "whole")
    object.__setattr__(whole, "sizes", [1, 2])
    with pytest.raises(UnsupportedFormat, match=r"sizes = \[1, 2\] must be a list"):
        check_fields(whole)
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH, "f") is not None
    assert parse_json(r'"\ud83d\ude00"', "f") == "😀"


ARITHMETIC = ("0", "1", "2", "+", "-", "*")
WORDY = ("10", "1", "one", "+")


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def in_pieces(pieces: list[str], alphabet: tuple) -> list[int]:
    return [int(i) for tokens in encode_text(pieces, alphabet) for i in tokens]


def test_arrays_hold_letters_of_any_hashable_type_and_words_any_white_space():
    for word in (["1", "+", "2"], "1+2", " 1 +\n2 ", ("1", "+", "2"), iter("1+2")):
        assert encode(word, ARITHMETIC).tolist() == [1, 3, 2]
    assert encode("0+1*2-" * 200, ARITHMETIC).tolist() == encode(list("0+1*2-" * 200), ARITHMETIC).tolist()
    assert encode(np.array([5, 3, 5]), (3, 5)).tolist() == [1, 0, 1]
    alphabet = (None, ("a", 1), frozenset({2}), 3)
    assert encode([frozenset({2}), None, 3, ("a", 1)], alphabet).tolist() == [2, 0, 3, 1]
    assert (encode("a b\n a", ("a", "b")).tolist(), encode("a b", ("a", "b", " ")).tolist()) == ([0, 1, 0], [0, 2, 1])
    assert encode("a b\n", ("a", "b", " ")).tolist() == [0, 2, 1]
    assert encode("10 1\tone +\n1", WORDY).tolist() == [0, 1, 2, 3, 1]


def test_typographic_letters_of_the_alphabet_stand_for_themselves_and_letters_written_alike_are_listed():
    assert (encode("−-", ("-", "−")).tolist(), encode("×", ("×", "a")).tolist()) == ([1, 0], [0])
    with pytest.raises(InvalidWord):
        encode("*", ("×", "a"))
    alphabet = (0, "0")
    assert encode(["0", 0], alphabet).tolist() == [1, 0]
    with pytest.raises(
        InvalidWord, match="letters 0 and '0' are both written '0', so a word cannot be read from text: pass"
    ):
        encode("0", alphabet)


def test_equal_alphabets_of_unlike_types_are_read_as_written():
    """(0, 1) == (False, True) == (0.0, 1.0): a cache keyed by the alphabet once mixed them up."""
    assert [is_character_alphabet(alphabet) for alphabet in ((0, 1), (False, True), (0.0, 1.0))] == [True, False, False]
    assert (encode("01", (0, 1)).tolist(), encode("False True", (False, True)).tolist()) == ([0, 1], [0, 1])
    assert (encode("0.0 1.0", (0.0, 1.0)).tolist(), text_index((False, True))) == ([0, 1], {"False": 0, "True": 1})
    assert letter_index((False, True)) == letter_index((0, 1))


@given(st.lists(st.sampled_from(WORDY), max_size=12), st.lists(st.integers(0, 60), max_size=6))
def test_long_letters_may_be_cut_anywhere(letters, cuts):
    text = " ".join(letters)
    assert in_pieces(pieces_of(text, cuts), WORDY) == encode(letters, WORDY).tolist()


@given(st.text("012+-* \n", max_size=40), st.lists(st.integers(0, 60), max_size=6))
def test_characters_may_be_cut_anywhere(text, cuts):
    assert in_pieces(pieces_of(text, cuts), ARITHMETIC) == encode(text, ARITHMETIC).tolist()


@given(st.text("01+ ×", min_size=0, max_size=700))
def test_the_table_for_ascii_equals_the_dictionary(text):
    index = letter_index(ARITHMETIC)
    assert encode(text, ARITHMETIC).tolist() == [index[c] for c in text if c != " "]


@pytest.mark.parametrize(("word", "alphabet", "message"), [
    ("1+a", ("1", "+"), "letter 'a' at position 3 is not in the alphabet ('1', '+'): use letters of the alphabet"),
    (["1", "a"], ("1",), "letter 'a' at position 2 is not in the alphabet ('1'): use letters of the alphabet"),
    ([0, "1"], (0, 1), "letter '1' at position 2 is not in the alphabet (0, 1): write 1 (int), not '1' (str)"),
    ([1], ("1", "2"), "letter 1 at position 1 is not in the alphabet ('1', '2'): write '1' (str), not 1 (int)"),
    ([[1]], (0, 1), "letter [1] at position 1 is not in the alphabet (0, 1): use letters of the alphabet"),
    ("one 2", WORDY, "letter '2' at position 2 is not in the alphabet ('10', '1', 'one', '+'): "),
    ("0 0  9", ("0", "1"), "letter '9' at position 3 is not in the alphabet"),
    ("0" * 999 + "x", ("0", "1"), "letter 'x' at position 1000 is not in the alphabet"),
    ("0" * 999 + "é", ("0", "1"), "letter 'é' at position 1000 is not in the alphabet"),
    ([99], tuple(range(20)), "is not in the alphabet (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …): use letters"),
])  # fmt: skip
def test_an_unknown_letter_is_named_with_its_place(word, alphabet, message):
    with pytest.raises(InvalidWord) as error:
        encode(word, alphabet)
    assert message in str(error.value)


scalars = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
symbols = st.recursive(scalars, lambda inner: st.lists(inner).map(tuple) | st.frozensets(inner), max_leaves=8)


@given(symbols)
def test_symbols_survive_json(symbol):
    back = from_json(json.loads(json.dumps(to_json(symbol))))
    assert back == symbol
    assert type(back) is type(symbol)


def test_types_of_symbols_survive_json_and_labels_are_shown():
    back = from_json(to_json((1, True, 1.0, "1", None)))
    assert [type(x) for x in back] == [int, bool, float, str, type(None)]
    numpy_scalars = (np.int64(1), np.bool_(True), np.float64(0.5), np.str_("a"))
    assert [type(to_json(x)) for x in numpy_scalars] == [int, bool, float, str]
    shown = [show(x) for x in (True, False, np.bool_(True), None, 3, "a")]
    assert shown == ["accept", "reject", "accept", "–", "3", "a"]
    named = namedtuple("Registers", "sum term")(0, 1)
    assert [show_label(x) for x in (named, (0, "a"), "s", 3)] == ["(0, 1)", "(0, 'a')", "s", "3"]


def test_alphabets_are_aligned_or_told_apart():
    assert align(("a", "b", "c"), ("c", "a", "b")) == [1, 2, 0]
    with pytest.raises(
        InvalidMachine, match=r"only the first has \['a'\], only the second \['c'\]\): rename or add letters"
    ):
        align(("a", "b"), ("b", "c"))
    with pytest.raises(
        InvalidMachine, match=r"differ in kind: the first has 0 \(int\), the second '0' \(str\): make both"
    ):
        align((0, "1"), ("1", "0"))


@pytest.mark.parametrize(("symbol", "message"), [
    *((symbol, "cannot be written to JSON, which holds strings") for symbol in (b"a", 1j, object(), (1, b"a"))),
    *((symbol, r"holds half a character \(a lone surrogate\)") for symbol in ("a\ud800", ("x", "\udcff"))),
])  # fmt: skip
def test_other_types_and_half_characters_are_refused(symbol, message):
    with pytest.raises(UnsupportedFormat, match=message):
        to_json(symbol)


@pytest.mark.parametrize(
    "value", [[1], {"tuple": 5}, {"set": []}, {}, {"tuple": [], "frozenset": []}, {"tuple": [[1]]}]
)
def test_foreign_json_is_refused(value):
    with pytest.raises(
        UnsupportedFormat, match="is not a symbol: expected a string, number, boolean, null or a tagged"
    ):
        from_json(value)


@given(
    st.sampled_from(
        [("a", "b"), ("a", "b", "ab"), ("a b", "a", "b"), (0, "0"), (" ", "a"), (object, "a b"), ("", "a")]
    ),
    st.data(),
)
def test_words_of_one_text_are_one_word(alphabet, data):
    words = st.lists(st.sampled_from(alphabet), max_size=4)
    u, v = data.draw(words), data.draw(words)
    assert (word_text(u, alphabet) == word_text(v, alphabet)) == (u == v)
