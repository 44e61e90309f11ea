"""The one door: which format a source is, every way in which it cannot be opened, and what was meant by a source."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import equivalent, formats
from fsa2lrnn.automata.formats import FORMATS, options_of, read_source, write_file
from fsa2lrnn.automata.formats.suggestion import meant
from fsa2lrnn.errors import BudgetExceeded, Fsa2LrnnError, InvalidMachine, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas

PARITY = MooreMachine([[1, 0], [0, 1]], [True, False], alphabet=["1", "0"])
DATA = Path(__file__).parent / "data"
FIXTURES = sorted(path for path in DATA.iterdir() if path.name.endswith((".dot", ".jff", ".fst.txt")))
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


def test_formats_say_what_they_do():
    assert [f.name for f in FORMATS if not f.writes] == ["regex", "task", "MLRegTest", "KISS2"]
    assert {f.name: " ".join(options_of(f)) for f in FORMATS} == {
        "regex": "alphabet",
        "task": "",
        "MLRegTest": "folder",
        "DOT": "completion kind separator",
        "JFLAP": "completion",
        "OpenFst": "completion isymbols osymbols acceptor",
        "KISS2": "completion",
        "JSON": "",
    }


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("machine.xyz", {}, rf"'machine\.xyz' can't be read, its kind is not known: {KNOWN}"),
        ("(ab)*", {}, r"^\(ab\)\*: no such file; did you mean regex:\(ab\)\*\?$"),
        ("mod_arith(5)", {}, r"^mod_arith\(5\): no such file; did you mean task:mod_arith\(5\)\?$"),
        ("ab" * 50_000 + "*", {}, r"^a[ab]+…\(99,801 characters\)…[ab]+\*: no such file; did you mean regex:a.*\*\?$"),
        ("regex:a\udcffb", {}, r"regex 'regex:a\\udcffb' is not UTF-8 \('\\udcff' at position 8\): write it in that"),
        ("task:sum_mod\ud800", {}, r"task 'task:sum_mod\\ud800' is not UTF-8"),
        ("nowhere.dot", {}, "no such file: nowhere.dot"),
        ("x" * 5000 + ".dot", {}, "can't be read .*: check the path"),
        ("\0.dot", {}, "no such file|can't be read"),
        ("regex:a", {"completion": "sink"}, "completion='sink': no transition can be missing in regex, leave it out"),
        ("regex:a", {"alphabt": "a"}, "option 'alphabt' is not known to the reader of regex: it takes alphabet"),
        ("m.json", {"kind": "moore"}, "option 'kind' is not known to the reader of JSON: it takes no options"),
        ("task:nothing_like_it", {}, "nothing_like_it"),
    ],
)
def test_sources_that_are_not_understood(source, options, message):
    with pytest.raises(Fsa2LrnnError, match=message):
        read_source(source, **options)


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    for name, data, message in [
        ("empty.jff", b" \n", "empty.jff is empty: was it written to the end"),
        ("latin.dot", b'digraph {\n"\xe9"}', r"latin.dot is not UTF-8 \(byte 0xe9 at offset 11, in line 2\)"),
        ("m.dot", b"digraph { p -> p [label=a] }", r"m\.dot: no state is marked as start"),
    ]:
        (tmp_path / name).write_bytes(data)
        with pytest.raises((InvalidMachine, UnsupportedFormat), match=message):
            read_source(tmp_path / name)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UnsupportedFormat, match=r"folder.json is a directory: name one of its files"):
        read_source(tmp_path / "folder.json")
    with pytest.raises(UnsupportedFormat, match=f"can't be read, its kind is not known: {KNOWN}"):
        read_source(tmp_path)
    (tmp_path / "large.dot").write_text("digraph { }")
    monkeypatch.setattr(formats, "MAX_FILE_BYTES", 10)
    with pytest.raises(BudgetExceeded, match=r"large.dot has 11 bytes, the limit is 10: minimise"):
        read_source(tmp_path / "large.dot")


@given(data=st.data())
def test_damaged_files_end_with_a_machine_or_a_message(data, tmp_path_factory):
    path = data.draw(st.sampled_from(FIXTURES))
    text = path.read_text()
    for _ in range(data.draw(st.integers(1, 3))):
        begin = data.draw(st.integers(0, len(text)))
        end = min(begin + data.draw(st.integers(0, 12)), len(text))
        text = text[:begin] + data.draw(st.text('<>"\\{}[]/=-,;& \n0a\x00', max_size=4)) + text[end:]
    damaged = tmp_path_factory.mktemp("damaged") / path.name
    damaged.write_text(text)
    try:
        message = f"{damaged} is read as {read_source(damaged)}"
    except Fsa2LrnnError as fault:
        message = str(fault)
    assert str(damaged) in message


@pytest.mark.parametrize(("name", "written"), [("m.dot", ["m.dot"]), ("m.fst.txt", ["m.fst.txt", "m.syms"])])
def test_a_target_is_tried_before_there_is_a_machine(name, written, tmp_path):
    formats.check_target(tmp_path / name)
    assert not list(tmp_path.iterdir())
    write_file(PARITY, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == written
    formats.check_target(tmp_path / name)
    for target, message in [
        (tmp_path / "m.png", r"m\.png' can't be written, its kind .* \.dot, \.gv, \.jff, \.fst\.txt"),
        (tmp_path / "none" / name, r"can't be written \(no such folder, make it first\): choose"),
    ]:
        for refuse in (formats.check_target, lambda path: write_file(PARITY, path)):
            with pytest.raises(UnsupportedFormat, match=message):
                refuse(target)
    (tmp_path / "folder").mkdir()
    for target in written:
        (tmp_path / "folder" / target).mkdir()
        with pytest.raises(UnsupportedFormat, match=rf"{target} can't be written \(this is a folder, give a file\)"):
            formats.check_target(tmp_path / "folder" / name)
        (tmp_path / "folder" / target).rmdir()


@pytest.mark.parametrize("name", ["m.json", "m.dot", "m.jff", "m.fst.txt"])
def test_half_a_character_is_not_written(name, tmp_path):
    machine = MooreMachine([[0]], [True], alphabet=["\ud800"])
    with pytest.raises(UnsupportedFormat, match=r"'\\ud800' (holds|is) half a char|control characters.* JFLAP"):
        write_file(machine, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_no_format_needs_torch():
    code = (
        "import sys; from importlib import import_module as load; import fsa2lrnn.automata.formats as f;"
        "[load('fsa2lrnn.automata.' + x.reader.split(':')[0]) for x in f.FORMATS];"
        "import fsa2lrnn.automata.formats.networkx_graph; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
