from experiments.studies.learn_and_prove import random_tasks, table
from fsa2lrnn import MooreMachine


def test_random_tasks_are_named_and_minimal():
    tasks = random_tasks(100)
    assert len(set(tasks)) == 100
    assert MooreMachine.from_source(f"task:{tasks[0]}").minimise().n_states == 4


def test_a_row_a_task_and_one_for_all_random_machines():
    def run(task, proved, seconds):
        return {"task": task, "proved": proved, "starts": 1, "steps": 20, "seconds": seconds}

    rows = table([run("parity", True, 1.0), run("parity", False, 3.0), *(run(t, True, 2.0) for t in random_tasks(3))])
    assert [(row["task"], row["runs"], row["proved"]) for row in rows] == [("parity", 2, 1), ("random machines", 3, 3)]
    assert (rows[0]["median_seconds"], rows[0]["worst_seconds"]) == (2.0, 3.0)
