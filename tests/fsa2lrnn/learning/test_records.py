"""Settings, results, runs and files of words of `learn`."""

import json

import pytest

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.learning.examples import FreshWords
from fsa2lrnn.learning.judging import LearningTarget
from fsa2lrnn.learning.learning_run import LearningRun
from fsa2lrnn.learning.recipe import Recipe, recipe_for
from fsa2lrnn.learning.result import Agreement, Learned
from fsa2lrnn.learning.word_files import from_pairs, read_words
from fsa2lrnn.verdicts import Scope, Undecided


def learned(verdict):
    from fsa2lrnn import zoo

    return Learned(None, zoo.parity(), verdict, "every word", (0,), None, (), 1, 1, 0.0, 0, 1)


def test_results_say_what_is_not_known_and_never_claim_a_proof():
    said = learned(Agreement(40, 39, 100, 99)).explain()
    assert "right on 39 of 40 held-out words" in said
    assert "says nothing" in said
    assert "prove" not in said
    assert not learned(Agreement(40, 40, 100, 100)).is_proved
    assert "no words were held out" in learned(None).explain()
    assert "words of up to 7 letters; the budget ended there" in learned(Undecided(7, Scope(2), 10)).explain()
    steps = learned(Undecided(None, Scope(2), 10)).explain()
    assert steps.endswith(
        "on which no word fails by single steps, in an arithmetic that is not the scans' own: no proof"
    )


def test_where_outputs_are_wrong_their_share_stands_beside_what_is_expected():
    """An exact machine was reported right on 16 of 50 words."""
    exact = Agreement(50, 16, 500, 450, noise=0.1)
    assert exact.expected == 0.9
    low, high = exact.interval
    assert low < exact.expected < high < 0.95
    said = learned(exact).explain()
    assert "equal to 450 of 500 held-out outputs" in said
    assert "the right machine is expected to reach 0.9000, since a share of 0.1 of the outputs is wrong" in said
    assert "16" not in said
    assert exact.to_json()["expected"] == 0.9
    unknown = Agreement(50, 16, 500, 450, noise=None)
    assert unknown.expected is None
    assert "no share can be expected" in learned(unknown).explain()
    with pytest.raises(UnsupportedFormat, match=r"noise = 1\.0 of an agreement"):
        Agreement(50, 16, 500, 450, noise=1.0)


def run_of(source, **changes):
    examples = FreshWords(MooreMachine.from_source(source), source=source)
    target = LearningTarget(examples.machine, examples.sampler, examples.outputs)
    return LearningRun(Recipe(**changes), examples, target, examples.machine.n_states)


def test_heads_end_runs_and_stuck_starts_give_way():
    run, records = run_of("task:sum_mod(3)", steps=2000), []
    found = run.go(records.append)
    assert found is not None
    assert found.holds
    assert run.steps < 2000
    assert records == [record for record in run.trail if "event" not in record]
    run = run_of("task:group(S3)", steps=60, seed=1)
    run.go()
    refuted = [record for record in run.trail if record.get("event") == "refuted"]
    assert len(run.examples.failures) == len(refuted)
    run = run_of("task:sum_mod(3)", steps=12, patience=2, threshold=1e-9)
    run.go()
    assert run.starts > 2
    assert [record["event"] for record in run.trail if "event" in record][:3] == ["start", "stuck", "start"]


def written(tmp_path, text, name="words.jsonl"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_files_of_words_are_json_lines_and_csv(tmp_path):
    text = '{"word": ["a", "b"], "outputs": [0, 1]}\n\n{"word": "ba", "output": 1}\n[["b"], 0]\n'
    data = read_words(written(tmp_path, text + '{"word": "a", "outputs": [1, 0]}\n'))
    assert (data.alphabet, data.outputs, data.lines.tolist()) == (("a", "b"), (0, 1), [1, 3, 4, 5])
    assert data.tokens.tolist() == [[0, 1], [1, 0], [1, 0], [0, 0]]
    assert data.labels.tolist() == [
        [UNCOUNTED, 0, 1], [UNCOUNTED, UNCOUNTED, 1], [UNCOUNTED, 0, UNCOUNTED], [1, 0, UNCOUNTED],
    ]  # fmt: skip
    data = read_words(written(tmp_path, "word,output\nab,yes\nba,no\n", "words.csv"))
    assert (data.alphabet, data.outputs) == (("a", "b"), ("yes", "no"))
    data = read_words(written(tmp_path, "word,output\nstop,yes\ngo stop,no\n", "words.csv"))
    assert data.alphabet == ("stop", "go")
    dense = read_words(written(tmp_path, "word,outputs\nab,x y\n", "words.csv"))
    assert dense.labels.tolist() == [[UNCOUNTED, 0, 1]]
    data = read_words(written(tmp_path, '[["\u2028", "b"], 1]\n["b", 0]\n'))
    assert data.alphabet == ("\u2028", "b")


@pytest.mark.parametrize(("text", "message"), [
    ("", "has no words: add lines"),
    ('{"word": "", "output": 1}\n', "has only the empty word: add lines, each with a word of one or more letters"),
    ('{"word": "a", "output": 1}\n{"word": "b", "output": 1}\n', "holds the output 1 and no other"),
    ('{"word": "a", "output": 1}\n{"word": "ab", "outputs": [1]}\n', "line 2: 1 output for 2 letters: give one"),
    ('{"word": "a", "output": 1}\n{"word"\n', "words.jsonl: line 2, column 8: Expecting ':' delimiter"),
    ('{"word": "a"}\n[3]\n', "line 1: .* is neither .*; line 2: "),
    ('{"word": 3, "output": 1}\n', "line 1: word = 3 is neither a list of letters nor text"),
    ('{"word": [1], "output": 1}\n{"word": [true], "output": 0}\n', "line 2: letter True is equal to 1, which"),
])  # fmt: skip
def test_what_can_not_be_read_is_named_by_its_line(tmp_path, text, message):
    with pytest.raises(UnsupportedFormat, match=message):
        read_words(written(tmp_path, text))


def test_labels_of_a_table_are_booleans_if_all_are(tmp_path):
    read = lambda text: read_words(written(tmp_path, text, "words.csv"))  # noqa: E731
    assert read("word,output\na,TRUE\nb,false\nab,True\n").outputs == (True, False)
    assert read("word,output\na,true\nb,false\nab,maybe\n").outputs == ("true", "false", "maybe")
    dense = read("word,outputs\nab,false True\n")
    assert (dense.outputs, dense.labels.tolist()) == ((False, True), [[UNCOUNTED, 0, 1]])
    assert read('word,output\n[ ( ) ],1\n"(())",0\n').alphabet == ("[", "(", ")", "]", "(())")


@pytest.mark.parametrize(("text", "message"), [
    ("a,b\nx,y\n", "line 1: the columns are a, b: begin the file with word,output or word,outputs"),
    ("trace,verdict\n", r"or word,outputs, or name two \(--columns trace,verdict, in Python"),
    ("", "line 1: the file is empty: begin the file with word,output or word,outputs"),
    ("word,output\n", "words.csv has no words: add lines"),
    ("word,output\nab,1,2\n", "line 2: 3 columns, not 2"),
    ("word,outputs\nab,1\n", "line 2: 1 output for 2 letters"),
    # pandas#10813, PhaseNet#9: lists as Python and numpy print them
    ("word,output\n\"['a', 'b']\",1\nb,0\n", "line 2: .* is a list as Python prints it"),
    ("word,output\n[   1 6620 8114],1\n[ ( ) ],0\n", "line 2: .* is a list as Python prints it"),
    ("word,output\nε,1\na,0\n", "line 2: ε is a name of the empty word: leave the cell empty"),
    ("word,output\na,NaN\nb,0\n", "line 2: NaN is a name of no output: leave the cell empty"),
])  # fmt: skip
def test_bad_csv(tmp_path, text, message):
    with pytest.raises(UnsupportedFormat, match=message):
        read_words(written(tmp_path, text, "words.csv"))


def test_files_that_can_not_be_read_are_refused_and_shares_held_out(tmp_path):
    with pytest.raises(
        UnsupportedFormat, match=r"words are read from \.jsonl, \.csv, \.dat, \.abbadingo, \.words, \.txt files: name"
    ):
        read_words(written(tmp_path, "", "words.fst.txt"))
    with pytest.raises(UnsupportedFormat, match="line 1: letter 'c' is none of 'a', 'b'"):
        read_words(written(tmp_path, '["c", 1]\n["a", 0]\n'), alphabet="ab")
    path = tmp_path / "bytes.jsonl"
    path.write_bytes(b"\xff\xfd")
    with pytest.raises(UnsupportedFormat, match=r"is not UTF-8 \(byte 0xff at offset 0, in line 1\)"):
        read_words(path)
    with pytest.raises(UnsupportedFormat, match=r"line 2: 5 is not a pair \(word, output\)"):
        from_pairs([(("a",), 1), 5])
    text = json.dumps(["a" * 30_000, 1]) + "\n" + '["a", 0]\n' * 1_000
    with pytest.raises(UnsupportedFormat, match="1,001 words of up to 30,000 letters are too many at once, padded"):
        read_words(written(tmp_path, text))
    data = read_words(written(tmp_path, '{"word": "ab", "outputs": [0, 1]}\n["a", 0]\n["ab", 0]\n'))
    with pytest.raises(UnsupportedFormat, match=r"line 3 gives 0 after 'ab', line 1 1; correct them, or state a"):
        data.check_consistent()
    from_pairs([("ab", 1), ("a", 0), ("ab", 1)]).check_consistent()
    data = from_pairs([("a" * n, n % 2) for n in range(1, 21)])
    kept, out = data.split(0.25, seed=0)
    assert out is not None
    assert sorted(kept.lines.tolist() + out.lines.tolist()) == list(range(1, 21))
    assert len(out.tokens) == 5
    assert data.split(0.0, seed=0) == (data, None)


@pytest.mark.parametrize(("changes", "message"), [
    ({"heads": 0, "rate": -1.0}, "heads = 0 must be a whole number from 1 to 1,000,000,000; rate = -1.0 must be a"),
    ({"block": 0}, "block = 0 must be a whole number of at least 1, or None"),
    ({"growth": 1.0}, "growth = 1.0 must be a number above 1"),
    ({"floor": 0.0}, "floor = 0.0 must be a share above 0"),
    ({"seconds": 0}, "seconds = 0 must be a number above 0, or None for no limit"),
    ({"seed": -1}, "seed = -1 must be a whole number from 0"),
])  # fmt: skip
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(UnsupportedFormat, match=f"the recipe does not fit: .*{message}"):
        Recipe(**changes)


def test_a_recipe_is_json_and_keeps_its_block():
    assert Recipe(**json.loads(json.dumps(recipe_for(60).to_json()))) == recipe_for(60)
    assert Recipe(block=7).block_for(100, 3) == 7


def test_abbadingo_events_in_cells_and_labels_that_are_not_known(tmp_path):
    def words(name, text):
        (tmp_path / name).write_text(text)
        return read_words(tmp_path / name)

    data = words("a.dat", "4 2\n1 2 0 1\n0 0 \n-1 1 1\n0 1 0\n")
    assert (data.alphabet, data.outputs) == (("0", "1"), (True, False))
    assert data.labels.tolist() == [[-1, -1, 0], [1, -1, -1], [-1, -1, -1], [-1, 1, -1]]
    for text, message in (
        ("2 2\n1 2 0 1\n", r"line 1: 2 2, but there are 1 words of 2 letters"),
        ("1 2\n1 3 0 1\n", r"line 2: length 3, but 2 letters"),
        ("word,output\n", r"numbers of its words and letters \(Abbadingo, TAYSIR\), or a line with \+"),
        ("1 2\n1 1 a/0.5\n", "letters with attributes are not read"),
    ):
        with pytest.raises(UnsupportedFormat, match=message):
            words("b.dat", text)
    data = words("c.csv", 'word,output\n"login,get",true\nget,false\n"",\n')
    assert (data.alphabet, data.outputs, data.labels[2].tolist()) == (("login", "get"), (True, False), [-1, -1, -1])
    with pytest.raises(UnsupportedFormat, match=r"the word 'a,b' has ',', which can be a letter or stand between"):
        words("d.csv", 'word,output\n"a,b",true\na,false\n')
    data = words("e.jsonl", '{"word": "ab", "outputs": [null, true]}\n["a", null]\n["b", false]\n')
    assert (data.outputs, data.labels.tolist()) == ((True, False), [[-1, -1, 0], [-1, -1, -1], [-1, 1, -1]])


def test_competition_files_columns_and_separators(tmp_path):
    def words(name, text, **options):
        (tmp_path / name).write_text(text)
        return read_words(tmp_path / name, **options)

    data = words("stamina.txt", "+ 1 0\n- 0\n? 1 1\n-\n")
    assert (data.alphabet, data.outputs, data.lengths.tolist()) == (("1", "0"), (True, False), [2, 1, 2, 0])
    assert data.labels.tolist() == [[-1, -1, 0], [-1, 1, -1], [-1, -1, -1], [1, -1, -1]]
    with pytest.raises(UnsupportedFormat, match=r"has no output that is known, as TAYSIR's words: label some of them"):
        words("1.1.taysir.valid.words", "2 4\n3 2 0 3\n4 2 1 0 3\n")
    with pytest.raises(UnsupportedFormat, match=r"line 2: 0 is none of \+ - \?"):
        words("b.txt", "+ 1 0\n0 1 0\n")
    table = "day,trace,verdict,host\n1,log in; get,ok,a\n2,get;get ,null,b\n3,,bad,b\n"
    data = words("a.csv", table, columns=("trace", "verdict"), separator=";")
    assert (data.alphabet, data.outputs) == (("log in", "get"), ("ok", "bad"))
    assert data.labels.tolist() == [[-1, -1, 0], [-1, -1, -1], [1, -1, -1]]
    with pytest.raises(UnsupportedFormat, match="line 1: the columns are day, trace, verdict, host: begin the file"):
        words("a.csv", table)
    with pytest.raises(UnsupportedFormat, match=r"line 1: the columns are .*: name two of them"):
        words("a.csv", table, columns=("trace", "ok"))
    line = '{"day": 1, "trace": "log in|get", "ok": true}\n{"trace": "get", "ok": false}\n'
    data = words("a.jsonl", line, columns=("trace", "ok"), separator="|")
    assert (data.alphabet, data.outputs) == (("log in", "get"), (True, False))
    with pytest.raises(UnsupportedFormat, match=r"line 2: .* lacks 'trace' or 'ok'"):
        words("a.jsonl", line.split("\n")[0] + '\n{"trace": "get"}\n', columns=("trace", "ok"))
    with pytest.raises(UnsupportedFormat, match=r"columns and a separator are for \.csv and \.jsonl"):
        words("a.dat", "1 1\n1 1 0\n", separator=" ")
