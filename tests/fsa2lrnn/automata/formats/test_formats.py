"""The one door: which format a source is and how it fails; regular expressions against those of Python."""

import re
import tracemalloc
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import equivalent, formats, minimise
from fsa2lrnn.automata.formats import meant, read_source, write_file
from fsa2lrnn.automata.formats import regex as regex_module
from fsa2lrnn.automata.formats.regex import from_regex
from fsa2lrnn.errors import BudgetExceeded, Fsa2LrnnError, InvalidMachine, SourceWarning, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas

PARITY = MooreMachine([[1, 0], [0, 1]], [True, False], alphabet=["1", "0"])
DATA = Path(__file__).parent / "data"
KNOWN = r"understood are regex:, task:, mlregtest:, \.dot, \.gv, \.jff, \.fst\.txt, \.att, \.kiss2, "


@pytest.mark.parametrize("name", ["m.dot", "m.GV", "m.jff", "m.fst.txt", "m.att", "m.json"])
def test_every_writer_has_its_reader(name, tmp_path):
    write_file(PARITY, tmp_path / name)
    assert equivalent(read_source(tmp_path / name), PARITY) is None
    assert equivalent(MooreMachine.from_source(str(tmp_path / name)), PARITY) is None
    (tmp_path / name).write_text(
        (tmp_path / name).read_text(), encoding="utf-8-sig"
    )  # a byte order mark is passed over
    assert equivalent(read_source(tmp_path / name), PARITY) is None


@given(dfas())
def test_the_doors_on_the_machine_lead_here(machine):
    assert MooreMachine.from_networkx(machine.to_networkx()) == machine
    assert machine.to_dot().startswith("digraph {")
    assert '"fsa2lrnn-machine"' in machine.to_json()
    assert len(machine.to_automata().states) == machine.n_states


def test_every_source_can_be_read_over_more_letters(tmp_path):
    for name in ("m.dot", "m.jff", "m.fst.txt", "m.json"):
        write_file(PARITY, tmp_path / name)
        wide = read_source(tmp_path / name, alphabet="012")
        assert (wide.alphabet, wide.transduce("1021")) == (("0", "1", "2"), [False, False, False, False])
        assert read_source(tmp_path / name, alphabet="012", completion="ignore").transduce("1021")[-1]
    assert read_source("task:sum_mod(2)", alphabet="012", completion="sink").transduce("12") == [1, None]
    assert read_source("regex:a.", alphabet="ab").accepts("ab")
    with pytest.raises(UnsupportedFormat, match="completion='sink': no transition can be missing in regex"):
        read_source("regex:a", alphabet="ab", completion="sink")


def test_a_source_that_accepts_no_word_or_every_word_is_reported(tmp_path):
    write_file(MooreMachine([[0]], [False], alphabet="a"), tmp_path / "m.json")
    with pytest.warns(SourceWarning, match=r"m\.json accepts no word"):
        read_source(tmp_path / "m.json")
    with pytest.warns(SourceWarning, match=r"^regex:\[ab\]\* accepts every word: is that meant\?$"):
        read_source("regex:[ab]*")
    assert not read_source("regex:[ab]*", alphabet="abc").accepts("c")


@pytest.mark.parametrize(("source", "options", "message"), [
    ("machine.xyz", {}, rf"'machine\.xyz' cannot be read, its kind is not known: {KNOWN}"),
    ("(ab)*", {}, r"^\(ab\)\*: no such file; did you mean regex:\(ab\)\*\?$"),
    ("mod_arith(5)", {}, r"^mod_arith\(5\): no such file; did you mean task:mod_arith\(5\)\?$"),
    ("ab" * 50_000 + "*", {}, r"^a[ab]+…\(99,801 characters\)…[ab]+\*: no such file; did you mean regex:a.*\*\?$"),
    ("regex:a\udcffb", {}, r"regex 'regex:a\\udcffb' is not UTF-8 \('\\udcff' at position 8\): write it in that"),
    ("task:sum_mod\ud800", {}, r"task 'task:sum_mod\\ud800' is not UTF-8"),
    ("nowhere.dot", {}, "no such file: nowhere.dot"),
    ("x" * 5000 + ".dot", {}, "cannot be read .*: check the path"),
    ("\0.dot", {}, "no such file|cannot be read"),
    ("regex:a", {"completion": "sink"}, "completion='sink': no transition can be missing in regex, leave it out"),
    ("regex:a", {"alphabt": "a"}, "option 'alphabt' is not known to the reader of regex: it takes alphabet"),
    ("m.json", {"kind": "moore"}, "option 'kind' is not known to the reader of JSON: it takes no options"),
    ("task:nothing_like_it", {}, "nothing_like_it"),
])  # fmt: skip
def test_sources_that_are_not_understood(source, options, message):
    with pytest.raises(Fsa2LrnnError, match=message):
        read_source(source, **options)


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    for name, data, message in [
        ("empty.jff", b" \n", "empty.jff is empty: was it written to the end"),
        ("latin.dot", b'digraph {\n"\xe9"}', r"latin.dot is not UTF-8 \(byte 0xe9 at offset 11, in line 2\)"),
        ("wide.dot", "digraph {}".encode("utf-16"), "wide.dot is UTF-16: save it as UTF-8"),
        ("program.dot", b"\x7fELF\x00\xff", "program.dot is not text: it contains zero bytes; give a text file"),
        ("m.dot", b"digraph { p -> p [label=a] }", r"m\.dot: no state is marked as start"),
    ]:
        (tmp_path / name).write_bytes(data)
        with pytest.raises((InvalidMachine, UnsupportedFormat), match=message):
            read_source(tmp_path / name)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UnsupportedFormat, match=r"folder.json is a directory: name one of its files"):
        read_source(tmp_path / "folder.json")
    with pytest.raises(UnsupportedFormat, match=f"is a folder: give a file in it; {KNOWN}"):
        read_source(tmp_path)
    (tmp_path / "large.dot").write_text("digraph { }")
    monkeypatch.setattr(formats, "MAX_FILE_BYTES", 10)
    with pytest.raises(BudgetExceeded, match=r"large.dot has 11 bytes, the limit is 10: minimise"):
        read_source(tmp_path / "large.dot")


@pytest.mark.parametrize(("name", "written"), [("m.dot", ["m.dot"]), ("m.fst.txt", ["m.fst.txt", "m.syms"])])
def test_a_target_is_tried_before_there_is_a_machine(name, written, tmp_path):
    formats.check_target(tmp_path / name)
    assert not list(tmp_path.iterdir())
    write_file(PARITY, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == written
    formats.check_target(tmp_path / name)
    for target, message in [
        (tmp_path / "m.png", r"m\.png' cannot be written, its kind .* \.dot, \.gv, \.jff, \.fst\.txt"),
        (tmp_path / "none" / name, r"cannot be written \(no such folder, make it first\): choose"),
    ]:
        for refuse in (formats.check_target, lambda path: write_file(PARITY, path)):
            with pytest.raises(UnsupportedFormat, match=message):
                refuse(target)
    (tmp_path / "folder").mkdir()
    for target in written:
        (tmp_path / "folder" / target).mkdir()
        with pytest.raises(UnsupportedFormat, match=rf"{target} cannot be written \(this is a folder, give a file\)"):
            formats.check_target(tmp_path / "folder" / name)
        (tmp_path / "folder" / target).rmdir()


@pytest.mark.parametrize("name", ["m.json", "m.dot", "m.jff", "m.fst.txt"])
def test_half_a_character_is_not_written(name, tmp_path):
    machine = MooreMachine([[0]], [True], alphabet=["\ud800"])
    with pytest.raises(UnsupportedFormat, match=r"'\\ud800' (holds|is) half a char|control characters.* JFLAP"):
        write_file(machine, tmp_path / name)
    assert not list(tmp_path.iterdir())


MEANT = {
    "(ab)*": "regex:(ab)*",
    "a|b": "regex:a|b",
    "[ab]+/c": "regex:[ab]+/c",
    "REGEX:(ab)*": "regex:(ab)*",
    "regex :a": "regex:a",
    "parity": "task:parity",
    "mod_arith(5, completion=register)": "task:mod_arith(5, completion=register)",
    "mod_arth(5)": "task:mod_arith(5)",
    " Task: sum_mod(5)": "task:sum_mod(5)",
    'count_mod(4, letter="b")': 'task:count_mod(4, letter="b")',
}


def test_what_is_meant_can_be_read_and_nothing_is_made_up():
    for source, suggestion in MEANT.items():
        assert meant(source) == suggestion
        read_source(suggestion)
    for source in ("machine.xyz", "abab", "folder/machine", "", "m", "ñ"):
        assert meant(source) is None
    assert meant("mod_arith(5") == "task:mod_arith(5"  # a call that is cut off is a task all the same
    assert meant("ab(c)*") == "regex:ab(c)*"


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


@pytest.mark.parametrize(("expression", "alphabet", "accepted", "rejected"), [
    ("(a|b)*a&b(a|b)*", None, ["ba", "bba"], ["", "a", "ab"]),
    ("ab^c", None, ["abc", "acb", "cab"], ["ab", "bac", "c"]),
    (r"\d+", None, ["0", "2024"], [""]),
    (r"\d+", "01", ["0", "11"], [""]),
    (r"[a-c]\D", "abc1", ["aa", "cb"], ["a1", "1a"]),
    ("a b", None, ["a b"], ["a", "b"]),
    (r"\*\\\$", None, [r"*\$"], [r"\*"]),
    (r"\x41b|\u00e9+|[\x42-\x44]|\101\0", None, ["Ab", "éé", "C", "A\0"], ["b", ""]),
    (r"[\]a][]a][!-\]][\b]", None, ["]]!\b", "aa]\b"], ["aaa"]),
    ("(?:ab)+(?#not read)|(?P<y>ab)c", None, ["abab", "abc"], ["", "ab" * 3 + "c"]),
    (r"[\s\S]x|[\D1]yy|[^\S]z|[\W\d]w", None, ["xx", "1yy", "xyy", " z", "1w"], ["2yy", "xz", "xw"]),
    (r"\w+|[\W]-", "é-1", ["é1", "--"], ["-", "1-"]),
    ("a*?b+?|a{1,2}?|", None, ["aab", "b", "aa", "", "a"], ["aaa"]),
    ("a\nb|.", None, ["a\nb", "\n"], ["ab"]),
    ("(a|){0}b{,}", None, ["", "bb"], ["a"]),
    (r"q=[0-9]\&p=[0-9]|2\^3", None, ["q=1&p=2", "2^3"], ["2", "3"]),
    ("()", "a", [""], ["a"]),
    ("", "a", [""], ["a"]),
    ("a&b", None, [], ["", "a", "b", "ab"]),
    ("(a&b)a", None, [], ["", "a", "aa"]),
])  # fmt: skip
def test_syntax_of_automata_lib(expression, alphabet, accepted, rejected):
    machine = from_regex(expression, alphabet)
    for word in accepted:
        assert machine.accepts(list(word)), word
    for word in rejected:
        assert not machine.accepts(list(word)), word
    assert from_regex(r"(a{2,3}|[x-z])\*").alphabet == ("*", "a", "x", "y", "z")
    assert from_regex("(01)*", alphabet=(1, 0)).alphabet == (1, 0)


@pytest.mark.parametrize(("expression", "message"), [
    ("(ab", r"regex '\(ab': '\(' at position 1 is not closed: add \), or write \\\( for the letter"),
    ("ab)", r"'\)' at position 3 closes no parenthesis"),
    ("*a", r"'\*' at position 1 has nothing before it"),
    ("a&|b", r"'&' at position 2 has nothing after it: write \(\) for no letter"),
    ("^a$", r"2 problems\n.*'\$' at position 3 is not a letter: words are matched whole, so no anchor is needed"),
    ("aε", r"'ε' at position 2 is not a letter: write \(\) for the empty word"),
    ("a{2", r"'{' at position 2 is not a letter: it opens no counted repetition"),
    ("[a", r"'\[' at position 1 is not a letter: it opens no class"),
    ("a\\", "nothing follows that it could mark"),
    ("a{3,1}", r"'\{3,1\}' at position 2 has its bounds reversed: write \{1,3\}"),
    ("b[]a", r"'\[' at position 2 is not a letter: it opens no class"),
    *(
        (f"b{c}a", rf"'\[.*\]' at position 2 is not a class \(bad character range {c[1:-1]}")
        for c in ("[a-Z]", "[z-a]")
    ),
    (r"[a-\d]", r"bad character range a-\\d"),
    ("[[:alpha:]]", r"at position 1 may be a set operation or a POSIX class"),
    ("[a&&b]", r"at position 1 may be a set operation"),
    (r"\Aab\Z", r"2 problems\n.*'\\\\A' at position 1 is an anchor.*\n.*'\\\\Z' at position 5 is an anchor"),
    (r"a\bb\B", r"'\\\\b' at position 2 is a word boundary.*\n.*'\\\\B' at position 5 is the opposite of a word"),
    (r"(a|b)\1", r"'\\\\1' at position 6 is a back-reference"),
    *((rf"a\{c}", rf"at position 2 is not an escape \(.*\\{c}") for c in ("Q", "h", "e", "c", "p", "x4", "777")),
    (r"a\N", r"at position 2 is not an escape \(missing {\)"),
    (r"\ud800", "names half a character"),
    ("a(?=b)", r"'\(\?=' at position 2 is look-ahead"),
    ("(?<!a)b", r"'\(\?<!' at position 1 is look-behind"),
    ("(?i)a", r"'\(\?i' at position 1 is a flag or an unknown group: leave it out, write \[aA\] for both cases"),
    ("(?>a)", "an atomic group"),
    ("(a)?(?(1)b|c)", r"'\(\?\(1\)' at position 5 is a conditional group"),
    ("(?P<n>a)(?P=n)", r"at position 9 is a back-reference"),
    ("(?P<n>a)(?P<n>b)", r"at position 9 has no valid name, or that of another group"),
    ("a(?#b", r"at position 2 is a comment without its end"),
    ("a*+", r"'\*\+' at position 2 is possessive"),
    ("a**", r"'\*' at position 3 repeats a repetition: put '\*' at position 2 and what it repeats in parentheses"),
    ("a{1, 2}", r"'{' at position 2 is not a letter: it opens no counted"),
    ("[^a]", r"'\[\^a\]' at position 1 stands for no letter: give the alphabet, which is \('a',\) here"),
    ("", "the alphabet is empty"),
    ("a" * (regex_module.MAX_LENGTH - 1) + ")", "^.{,400}$"),  # long expressions are cut in messages
])  # fmt: skip
def test_a_regex_that_does_not_parse_names_the_place_and_the_remedy(expression, message):
    with pytest.raises(InvalidMachine, match=message):
        from_regex(expression)


def test_the_alphabet_has_to_suit_the_expression():
    with pytest.raises(InvalidMachine, match=r"letter 'c' at position 2 is not in the alphabet \('a', 'b'\): add it"):
        from_regex("ac", alphabet="ab")
    with pytest.raises(InvalidMachine, match="letter 10 of the alphabet is not one character"):
        from_regex("1", alphabet=(1, 10))
    with pytest.raises(InvalidMachine, match=r"two letters of the alphabet \(1, '1'\) have the same text"):
        from_regex("1", alphabet=(1, "1"))


@pytest.mark.parametrize("expression", [
    "((a{99}){99}){99}", "(a{9999}){0}" * 1600, "".join(f"[^{chr(0x4E00 + i)}]" for i in range(600)),
    ".{1,5000}[一-七]|[㐀-䀀]", "((((a*){40}^b*){40})^c*){40}", "a" * 30_000, "a{999999999}",
    "a{" + "9" * 5000 + "}",
])  # fmt: skip
def test_blow_up_is_refused_before_it_happens(expression):
    with pytest.raises(BudgetExceeded, match=r"states|letters|characters"):
        from_regex(expression)


def test_operators_that_are_letters_in_re_are_named():
    cases = (("AT&T", "'&' at position 3 is the intersection of both sides, and no word is on both; write \\& for"),
             ("a.*&.*a", "'&' at position 4 is the intersection of both sides; write"),
             ("2^3", "'^' at position 2 is the shuffle of both sides; write \\^ for the letter"))  # fmt: skip
    for expression, message in cases:
        with pytest.warns(SourceWarning, match=re.escape(message)):
            from_regex(expression)
    with pytest.warns(SourceWarning) as notes:
        read_source("regex:AT&T")
    assert str(notes[-1].message) == "regex:AT&T accepts no word: is that meant?"


@given(EXPRESSIONS, EXPRESSIONS)
def test_intersection_and_shuffle_are_those_of_the_languages(left, right):
    first, second = from_regex(left, alphabet="ab"), from_regex(right, alphabet="ab")
    both, shuffle = (from_regex(f"({left}){sign}({right})", alphabet="ab") for sign in "&^")
    for word in WORDS[:31]:
        assert both.accepts(word) == (first.accepts(word) and second.accepts(word)), (left, right, word)
        sides = ([[c for c, x in zip(word, pick, strict=True) if x is side] for side in (True, False)]
                 for pick in product((True, False), repeat=len(word)))  # fmt: skip
        assert shuffle.accepts(word) == any(first.accepts(x) and second.accepts(y) for x, y in sides), (
            left, right, word,
        )  # fmt: skip


@pytest.mark.parametrize("expression", ["[\x21-\U0010ffff]", "a[^b\\n-\\\U0010ffff]*", "[a-c\x00-\ud7ff]{2}"])
def test_a_range_over_all_of_unicode_is_not_written_out(expression):
    tracemalloc.start()
    try:
        with pytest.raises(BudgetExceeded, match="names more than 10,000 letters in classes: narrow '"):
            from_regex(expression)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
