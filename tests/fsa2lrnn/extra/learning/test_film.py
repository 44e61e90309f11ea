import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from fsa2lrnn import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning.examples import FreshWords
from fsa2lrnn.extra.learning.film import FRAMES, NEVER, Frame, HeadHistory, read_film, thinned, with_frame
from fsa2lrnn.extra.learning.judging import LearningTarget
from fsa2lrnn.extra.learning.recipe import Recipe
from fsa2lrnn.extra.learning.run import LearningRun
from fsa2lrnn.lower.harden import heads_of


def frame(step, length=5, event="", heads=(0, 1), number=0, states=2):
    row = tuple(range(states))
    rows = (row,) * len(heads)
    return Frame(step, number, length, event, heads, (0,) * len(heads), (rows, rows), rows, (0.5,) * len(heads))


@pytest.fixture(scope="module")
def run():
    """A run that mends its third head at step 100 and ends with it."""
    examples = FreshWords(MooreMachine.from_source("task:sum_mod(11)"), source="task:sum_mod(11)")
    run = LearningRun(
        Recipe(seed=3), examples, LearningTarget(examples.machine, examples.sampler, examples.outputs), 11
    )
    run.go()
    return run


def test_the_last_frame_is_what_the_run_ended_with(run):
    heads, last = heads_of(run.attempt.model), run.film[-1]
    assert np.array_equal(last.next_state, heads.next_state)
    assert list(last.start) == heads.start.tolist()
    assert last.step == run.steps
    reached = [output for output in last.outputs[0] if output != NEVER]
    assert sorted(set(reached)) == list(range(11))


def test_it_shows_the_beginning_and_which_head_went_on(run):
    steps = [frame.step for frame in run.film]
    assert steps[:7] == [0, 1, 2, 4, 8, 16, 20]
    (at,) = [i for i, frame in enumerate(run.film) if frame.event]
    mended = run.film[at]
    assert (mended.event, mended.faults) == ("mended", (0.0,))
    assert [frame.heads for frame in run.film[:at]] == [(0, 1, 2, 3)] * at
    assert {frame.heads for frame in run.film[at:]} == {mended.heads}
    assert min(range(4), key=run.film[at - 1].faults.__getitem__) == mended.heads[0]


def test_filming_changes_nothing_of_the_run(run, monkeypatch):
    examples = FreshWords(MooreMachine.from_source("task:sum_mod(11)"), source="task:sum_mod(11)")
    monkeypatch.setattr(LearningRun, "_take", lambda *_, **__: None)
    bare = LearningRun(
        Recipe(seed=3, steps=45), examples, LearningTarget(examples.machine, examples.sampler, examples.outputs), 11
    )
    bare.go()
    *before, end = bare.trail
    assert end["event"] == "end of the budget"
    assert before == run.trail[: len(before)]
    assert len(before) == 3


def test_of_many_frames_those_stay_where_something_happened():
    stages = [frame(20 * i, 5 + i // 10) for i in range(60)]
    stages[33] = replace(stages[33], event="mended")
    film = ()
    for each in stages:
        film = with_frame(film, each)
        assert len(film) <= FRAMES
    assert (film[0], film[-1]) == (stages[0], stages[-1])
    assert {stages[i] for i in (10, 20, 30, 33, 40, 50)} <= set(film)
    gaps = [after.step - before.step for before, after in pairwise(film)]
    assert max(gaps) <= 160


def test_thinning_drops_what_stands_closest():
    assert [each.step for each in thinned([frame(s) for s in (0, 10, 11, 30)], 3)] == [0, 11, 30]
    assert [each.step for each in thinned([frame(0), frame(10), frame(11, 6), frame(30, 6)], 2)] == [0, 30]


def test_another_start_begins_anew_and_large_tables_are_not_kept():
    assert with_frame((frame(0),), frame(9, number=1)) == (frame(9, number=1),)
    assert with_frame((frame(0),), frame(0)) == (frame(0),)
    assert len(with_frame((frame(0),), frame(0, event="mended"))) == 2
    film = ()
    for step in range(9):
        film = with_frame(film, frame(step, heads=(0,), states=15_000))
    assert len(film) == 6
    assert with_frame((), frame(0, heads=(0,), states=60_000)) == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outputs": ["x"]}, "the frames of steps [0] have other letters, outputs or heads"),
        ({"alphabet": [1, 2, 3]}, "the frames of steps [0] have other letters"),
        ({"alphabet": [{"set": []}, 2]}, "is not a symbol"),
        ({"frames": [{}]}, "frames[0].step is missing"),
    ],
)
def test_a_file_that_is_no_film_is_refused(tmp_path, change, message):
    path = tmp_path / "film.json"
    film = HeadHistory(("a", ("b", 1)), (True, None), (frame(0),))
    path.write_text(json.dumps(film.to_json()))
    assert read_film(path) == film
    path.write_text(json.dumps(film.to_json() | change))
    with pytest.raises(UnsupportedFormat) as caught:
        read_film(path)
    assert message in str(caught.value)


def test_tables_of_unlike_sizes_are_refused():
    with pytest.raises(UnsupportedFormat, match="other sizes than its 2 heads"):
        replace(frame(0), faults=(0.1,))
    with pytest.raises(UnsupportedFormat, match="step 3 has tables of other sizes"):
        replace(frame(3), outputs=((0,), (0,)))
    with pytest.raises(UnsupportedFormat, match="leads to states that are not 0 to 1"):
        replace(frame(3), start=(0, 2))
