from experiments.studies import learn_and_prove
from experiments.studies.learn_and_prove import plan, random_tasks, run_one, table
from fsa2lrnn import MooreMachine


def test_random_tasks_are_named_and_minimal():
    tasks = random_tasks(100)
    assert len(set(tasks)) == 100
    assert MooreMachine.from_source(f"task:{tasks[0]}").minimise().n_states == 4


def test_every_cell_is_planned_once():
    cells = plan(3, 5)
    named = len(learn_and_prove.TASKS) + len(learn_and_prove.LONG)
    assert len(cells) == len(set(cells)) == 3 * named + 5 + len(learn_and_prove.LARGE)


def test_large_machines_come_last_and_have_rows_of_their_own():
    cells = plan(1, 3)
    assert [task for task, _ in cells[-len(learn_and_prove.LARGE) :]] == list(learn_and_prove.LARGE)
    assert len({learn_and_prove.group(task) for task in (*learn_and_prove.LARGE, cells[-9][0])}) == 9


def test_a_run_ends_in_a_proof_or_when_its_time_has_passed():
    assert run_one("parity", 0, 60.0)["proved"]
    late = run_one("sum_mod(11)", 0, 1e-9)
    assert not late["proved"]
    assert (late["steps"], late["last_look"]["step"]) == (20, 20)


def test_a_row_a_task_and_one_for_all_random_machines():
    def run(task, proved, seconds):
        return {"task": task, "proved": proved, "starts": 1, "steps": 20, "processor_seconds": seconds}

    runs = [run("parity", True, 1.0), run("parity", False, 3.0), *(run(t, True, 2.0) for t in random_tasks(3))]
    rows = table({"asked": {"parity": 5, "random machines": 3, "dyck(2, 3)": 5}, "runs": runs})
    assert [(row["task"], row["asked"], row["runs"], row["proved"]) for row in rows] == [
        ("parity", 5, 2, 1),
        ("random machines", 3, 3, 3),
        ("dyck(2, 3)", 5, 0, 0),
    ]
    assert (rows[0]["median_processor_seconds"], rows[0]["worst"], rows[2]["worst"]) == (1.0, 1.0, None)
