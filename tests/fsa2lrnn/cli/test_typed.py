"""Words, outputs and evidence as the verbs print them."""

import io
from pathlib import Path

import pytest

from fsa2lrnn.cli import evidence, options, sources
from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.files import check_folder
from fsa2lrnn.verdicts import Counterexample, Refuted, Scope, SearchRecord, Undecided


def test_bytes_and_control_characters():
    assert sources.checked("aé") == "aé"
    with pytest.raises(InvalidWord, match=r"the word is not UTF-8 \(byte 0xff at offset 3\): type it in that encoding"):
        sources.checked("aé\udcff")
    text = evidence.verdict_text(failing(("\x1b[2J",), scope=Scope(3, 1, ("\u202e",))), ("\x1b[2J", "b"))
    assert all(c.isprintable() or c == "\n" for c in text)


CHECKS = {
    "model.safetensors": options.check_model,
    "machine.dot": options.check_machine,
    "machine.fst.txt": options.check_machine,
    "plot.pdf": lambda path: options.check_output(path, "a plot", ".svg", ".png", ".pdf"),
}


@pytest.mark.parametrize(("name", "check"), CHECKS.items())
def test_places_and_endings(tmp_path, name, check):
    check(tmp_path / name)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UnsupportedFormat, match=r"file ending in|its kind is not known"):
        check(tmp_path / "file.xyz")
    with pytest.raises((OSError, UnsupportedFormat), match="no such folder, make it first"):
        check(tmp_path / "none" / name)
    (tmp_path / name).mkdir()
    with pytest.raises((OSError, UnsupportedFormat), match="this is a folder, give a file"):
        check(tmp_path / name)


def test_paths_endings_and_folders_of_runs(tmp_path):
    for check in CHECKS.values():
        check(None)
    with pytest.raises(UnsupportedFormat, match=r"output m\.pt: a model is written to a file ending in \.safetensors$"):
        options.check_model(Path("m.pt"))
    with pytest.raises(UnsupportedFormat, match=r"a plot is written to a file ending in \.svg or \.png or \.pdf$"):
        CHECKS["plot.pdf"](Path("m.pt"))
    check_folder(tmp_path / "to" / "be" / "made")
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="this is a file, give a folder"):
        check_folder(tmp_path / "file")


SEARCHED = SearchRecord("exhaustive", "all words of 3 letters", 3, 8, 24, 0.1, None, False)
EVERYWHERE = Scope(3)


def failing(word, checked=3, scope=EVERYWHERE):
    failure = Counterexample(word, (0,) * (len(word) - 1) + (1,), (0,) * len(word), None, -0.5, ("sequential",))
    return Refuted(failure, checked, scope, "beam", (SEARCHED,))


def test_failing_words_and_searches_in_vain():
    text = evidence.verdict_text(failing("abab"), ("a", "b"))
    assert "differ on [bold]abab[/] (4 letters, found by the beam search), and on no shorter word\n" in text
    assert text.splitlines()[1:3] == ["  model   0 0 0 0", "  machine 0 0 0 1"]
    text = evidence.verdict_text(failing("ab" * 100), ("a", "b", "\x1b"))
    assert "ab" * 100 in text
    assert (
        "(200 letters, found by the beam search), and on no word of at most 3 letters, which were all checked\n" in text
    )
    assert text.splitlines()[2] == "  machine … " + "0 " * 39 + "1"
    text = evidence.verdict_text(Undecided(3, Scope(2), None, (SEARCHED,)))
    assert "no counterexample was found; equal on every word of at most 3 letters, by single steps\n" in text
    assert text.splitlines()[1:] == [
        "  exhaustive  all words of 3 letters, cut short",
        "  every output counts but that of the empty word",
    ]
    assert "equal on every word of every length, by" in evidence.verdict_text(Undecided(None, Scope(2), None, ()))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1 << 20])
def test_pieces_of_a_stream(size, monkeypatch):
    monkeypatch.setattr(sources, "_PIECE", size)
    text = "aé€𝄞\r\nb" * 10
    pieces = list(sources.read_pieces(io.BytesIO(text.encode())))
    assert "".join(pieces) == text.replace("\r\n", "\n")
    assert max(map(len, pieces)) <= size
    assert list(sources.read_pieces(io.BytesIO())) == []


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1 << 20])
@pytest.mark.parametrize(
    ("content", "byte", "offset"), [(b"ab\xe9c", 0xE9, 2), (b"\xe2\x82\xac\xff", 0xFF, 3), (b"abc\xe2\x82", 0xE2, 3)]
)
def test_a_byte_that_is_no_utf8_is_named_with_its_offset(size, content, byte, offset, monkeypatch):
    monkeypatch.setattr(sources, "_PIECE", size)
    with pytest.raises(UnsupportedFormat, match=rf"standard input is not UTF-8 \(byte 0x{byte:x} at offset {offset}\)"):
        list(sources.read_pieces(io.BytesIO(content)))
