from fsa2lrnn import MooreMachine
from fsa2lrnn.errors import OutOfTime
from fsa2lrnn.extra.learning.examples import FreshWords
from fsa2lrnn.extra.learning.judging import LearningTarget
from fsa2lrnn.extra.learning.recipe import Recipe
from fsa2lrnn.extra.learning.run import LearningRun


def run_of(source, **changes):
    examples = FreshWords(MooreMachine.from_source(source), source=source)
    target = LearningTarget(examples.machine, examples.sampler, examples.outputs)
    return LearningRun(Recipe(**changes), examples, target, examples.machine.n_states)


def test_it_ends_as_soon_as_a_head_holds():
    run, records = run_of("task:sum_mod(3)", steps=2000), []
    found = run.go(records.append)
    assert found is not None
    assert found.holds
    assert run.steps < 2000
    assert records == [record for record in run.trail if "event" not in record]


def test_a_stuck_start_gives_way_to_another():
    run = run_of("task:sum_mod(3)", steps=12, patience=2, threshold=1e-9)
    run.go()
    assert run.starts > 2
    assert [record["event"] for record in run.trail if "event" in record][:3] == ["start", "stuck", "start"]


def test_failing_words_join_the_data():
    run = run_of("task:group(S3)", steps=60, seed=1)
    run.go()
    refuted = [record for record in run.trail if record.get("event") == "refuted"]
    assert len(run.examples.failures) == len(refuted)


def test_a_step_that_outlasts_the_time_ends_with_what_there_is(monkeypatch):
    run = run_of("task:sum_mod(3)", seconds=1e-9)

    def late(_report):
        raise OutOfTime

    monkeypatch.setattr(run, "_step", late)
    found = run.go()
    assert found is None or not found.holds
    assert run.trail[-1]["event"] == "end of the budget"
