"""Regular expressions: the language against Python's `re`, and every complaint."""

import re
import tracemalloc
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import minimise
from fsa2lrnn.automata.formats import regex as regex_module
from fsa2lrnn.automata.formats.regex import from_regex
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

ATOMS = st.sampled_from(["a", "b", "(a|b)", "()", ".", "[ab]", "[^a]"])


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    suffix = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "{0,1}", "{,}"])
    return (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map("|".join).map("({})".format)
        | st.tuples(inner, suffix).map(lambda pair: f"({pair[0]}){pair[1]}")
    )


EXPRESSIONS = st.recursive(ATOMS, _combined, max_leaves=6)
WORDS = ["".join(word) for length in range(5) for word in product("ab", repeat=length)]


@given(EXPRESSIONS)
def test_the_language_is_that_of_python_on_the_common_syntax(expression):
    machine = from_regex(expression, alphabet="ab")
    assert machine.alphabet == ("a", "b")
    assert minimise(machine) == machine
    python = re.compile(expression.replace("{,", "{0,"))
    for word in WORDS:
        assert machine.accepts(word) == bool(python.fullmatch(word)), (expression, word)


@pytest.mark.parametrize(
    ("expression", "alphabet", "accepted", "rejected"),
    [
        ("(a|b)*a&b(a|b)*", None, ["ba", "bba"], ["", "a", "ab"]),
        ("ab^c", None, ["abc", "acb", "cab"], ["ab", "bac", "c"]),
        (r"\d+", None, ["0", "2024"], [""]),
        (r"\d+", "01", ["0", "11"], [""]),
        (r"[a-c]\D", "abc1", ["aa", "cb"], ["a1", "1a"]),
        ("a b", None, ["a b"], ["a", "b"]),
        (r"\*\\\$", None, [r"*\$"], [r"\*"]),
        ("()", "a", [""], ["a"]),
        ("", "a", [""], ["a"]),
        ("a&b", None, [], ["", "a", "b", "ab"]),
        ("(a&b)a", None, [], ["", "a", "aa"]),
    ],
)
def test_syntax_of_automata_lib(expression, alphabet, accepted, rejected):
    machine = from_regex(expression, alphabet)
    for word in accepted:
        assert machine.accepts(list(word)), word
    for word in rejected:
        assert not machine.accepts(list(word)), word
    assert from_regex(r"(a{2,3}|[x-z])\*").alphabet == ("*", "a", "x", "y", "z")
    assert from_regex("(01)*", alphabet=(1, 0)).alphabet == (1, 0)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("(ab", r"regex '\(ab': '\(' at position 1 is not closed: add \), or write \\\( for the letter"),
        ("ab)", r"'\)' at position 3 closes no parenthesis"),
        ("a|", r"'\|' at position 2 has nothing after it: write \(\) for no letter"),
        ("(a|)", r"'\|' at position 3 has nothing after it"),
        ("*a", r"'\*' at position 1 has nothing before it"),
        ("a||b", r"'\|' at position 3 has nothing before it"),
        ("^a$", r"2 problems\n.*no anchor is needed, words are matched whole\n.*'\$' at position 3 is not a letter"),
        ("aε", r"'ε' at position 2 is not a letter: write \(\) for the empty word"),
        ("a{2", r"'{' at position 2 is not a letter: it opens no counted repetition"),
        ("[a", r"'\[' at position 1 is not a letter: it opens no class"),
        ("a\\", "nothing follows that it could mark"),
        ("a\nb", r"'\\n' at position 2 is not a letter: write white space"),
        ("a{3,1}", r"'a\{3,1\}': '\{3,1\}' at position 2: Lower bound 3"),
        ("b[]", r"'\[\]' at position 2: Empty character class"),
        ("a{0}", r"'{0}' at position 2 repeats nothing: write \(\)"),
        ("[^a]", r"'\[\^a\]' at position 1 stands for no letter: give the alphabet, which is \('a',\) here"),
        ("", "the alphabet is empty"),
        ("a{" + "9" * 5000 + "}", "at position 2: Invalid lower bound"),
        ("a" * (regex_module.MAX_LENGTH - 1) + ")", "^.{,400}$"),  # long expressions are cut in messages
    ],
)
def test_a_regex_that_does_not_parse_names_the_place_and_the_remedy(expression, message):
    with pytest.raises(InvalidMachine, match=message):
        from_regex(expression)
    with pytest.raises(InvalidMachine, match=r"letter 'c' at position 2 is not in the alphabet \('a', 'b'\): add it"):
        from_regex("ac", alphabet="ab")
    with pytest.raises(InvalidMachine, match="letter 10 of the alphabet is not one character"):
        from_regex("1", alphabet=(1, 10))


@pytest.mark.parametrize(
    "expression",
    [
        "((a{99}){99}){99}",
        "(" * 3000 + "a" + ")*" * 3000,
        "((((a*){40}^b*){40})^c*){40}",
        "[\x21-\U0010ffff]",
        "a" * 30_000,
        "a{999999999}",
    ],
)
def test_blow_up_is_refused_before_it_happens(expression):
    with pytest.raises(BudgetExceeded, match=r"states|letters|characters"):
        from_regex(expression)


@pytest.mark.parametrize("expression", ["[\x21-\U0010ffff]", "a[^b\\n-\\\U0010ffff]*", "[a-c\x00-\ud7ff]{2}"])
def test_a_range_over_all_of_unicode_is_not_written_out(expression):
    tracemalloc.start()
    try:
        with pytest.raises(BudgetExceeded, match="names more than 10,000 letters in classes: narrow '"):
            from_regex(expression)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_letters_that_occur_once_each_cost_no_table_of_python_objects():
    letters = "".join(chr(0x4E00 + i) for i in range(900))
    assert from_regex(letters).accepts(letters)
    with pytest.raises(BudgetExceeded, match="the deterministic machine is beyond"):
        from_regex("".join(chr(0x4E00 + i) for i in range(2_000)))
