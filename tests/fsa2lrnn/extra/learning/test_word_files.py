import json

import pytest

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning.word_files import from_pairs, read_words


def written(tmp_path, text, name="words.jsonl"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_json_lines_of_every_kind(tmp_path):
    text = '{"word": ["a", "b"], "outputs": [0, 1]}\n\n{"word": "ba", "output": 1}\n[["b"], 0]\n'
    data = read_words(written(tmp_path, text + '{"word": "a", "outputs": [1, 0]}\n'))
    assert (data.alphabet, data.outputs, data.lines.tolist()) == (("a", "b"), (0, 1), [1, 3, 4, 5])
    assert data.tokens.tolist() == [[0, 1], [1, 0], [1, 0], [0, 0]]
    assert data.labels.tolist() == [
        [UNCOUNTED, 0, 1],
        [UNCOUNTED, UNCOUNTED, 1],
        [UNCOUNTED, 0, UNCOUNTED],
        [1, 0, UNCOUNTED],
    ]


def test_csv(tmp_path):
    data = read_words(written(tmp_path, "word,output\nab,yes\ngo stop,no\n", "words.csv"))
    assert (data.alphabet, data.outputs) == (("a", "b", "go", "stop"), ("yes", "no"))
    dense = read_words(written(tmp_path, "word,outputs\nab,x y\n", "words.csv"))
    assert dense.labels.tolist() == [[UNCOUNTED, 0, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no word of one letter or more"),
        ('{"word": "", "output": 1}\n', "holds no word of one letter or more"),
        ('{"word": "a", "output": 1}\n{"word": "b", "output": 1}\n', "holds the output 1 and no other"),
        ('{"word": "a", "output": 1}\n{"word": "ab", "outputs": [1]}\n', "line 2: 1 output for 2 letters: give one"),
        ('{"word": "a", "output": 1}\n{"word"\n', "words.jsonl: line 2, column 8: Expecting ':' delimiter"),
        ('{"word": "a"}\n[3]\n', "line 1: .* is neither .*; line 2: "),
        ('{"word": 3, "output": 1}\n', "line 1: word = 3 is neither a list of letters nor text"),
        ('{"word": [1], "output": 1}\n{"word": [true], "output": 0}\n', "line 2: letter True is equal to 1, which"),
    ],
)
def test_what_can_not_be_read_is_named_by_its_line(tmp_path, text, message):
    with pytest.raises(UnsupportedFormat, match=message):
        read_words(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\nx,y\n", "line 1: the columns are a, b, not word,output or word,outputs"),
        ("word,output\nab,1,2\n", "line 2: 3 columns, not 2"),
        ("word,outputs\nab,1\n", "line 2: 1 output for 2 letters"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    with pytest.raises(UnsupportedFormat, match=message):
        read_words(written(tmp_path, text, "words.csv"))


def test_other_files_and_letters_are_refused(tmp_path):
    with pytest.raises(UnsupportedFormat, match=r"words are read from \.jsonl and \.csv files: name it so"):
        read_words(written(tmp_path, "", "words.txt"))
    with pytest.raises(UnsupportedFormat, match="line 1: letter 'c' is none of 'a', 'b'"):
        read_words(written(tmp_path, '["c", 1]\n["a", 0]\n'), alphabet="ab")
    path = tmp_path / "bytes.jsonl"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UnsupportedFormat, match=r"is not UTF-8 \(byte 0xff at offset 0, in line 1\)"):
        read_words(path)
    with pytest.raises(UnsupportedFormat, match=r"line 2: 5 is no pair \(word, output\)"):
        from_pairs([(("a",), 1), 5])


def test_what_padding_would_blow_up_is_refused(tmp_path):
    text = json.dumps(["a" * 30_000, 1]) + "\n" + '["a", 0]\n' * 1_000
    with pytest.raises(UnsupportedFormat, match="1,001 words of up to 30,000 letters are too many at once, padded"):
        read_words(written(tmp_path, text))


def test_letters_may_hold_any_character(tmp_path):
    data = read_words(written(tmp_path, '[["\u2028", "b"], 1]\n["b", 0]\n'))
    assert data.alphabet == ("\u2028", "b")


def test_contradictions_are_named_by_both_lines(tmp_path):
    data = read_words(written(tmp_path, '{"word": "ab", "outputs": [0, 1]}\n["a", 0]\n["ab", 0]\n'))
    with pytest.raises(UnsupportedFormat, match=r"line 3 gives 0 after 'ab', line 1 1; mend them, or say that labels"):
        data.check_consistent()
    from_pairs([("ab", 1), ("a", 0), ("ab", 1)]).check_consistent()


def test_a_share_is_held_out():
    data = from_pairs([("a" * n, n % 2) for n in range(1, 21)])
    kept, out = data.split(0.25, seed=0)
    assert out is not None
    assert sorted(kept.lines.tolist() + out.lines.tolist()) == list(range(1, 21))
    assert len(out.tokens) == 5
    assert data.split(0.0, seed=0) == (data, None)
