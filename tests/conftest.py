"""Profiles of hypothesis, one thread a worker (pytest-xdist uses every core already), stacks made by hand, the command
line as a user calls it, and a browser if there is one."""

import gc
import io
import math
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from fsa2lrnn import cli
from fsa2lrnn.automata import explore
from fsa2lrnn.compile.integer_tables import ReluGate
from fsa2lrnn.compile.recurrence import DenseReadout, Recurrence
from fsa2lrnn.compile.stack import GatedLayer, GatedStack
from fsa2lrnn.deadline import Deadline

MODELS = Path(__file__).parents[1] / "experiments" / "models"
torch.set_num_threads(1)
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read where kernels are defined, which the first that is run brings about
# How long an example takes says something of the machine that runs the tests, and nothing of the code.
UNHURRIED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fast", max_examples=20, derandomize=True, **UNHURRIED)
settings.register_profile("deep", max_examples=2_000, print_blob=True, **UNHURRIED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
BROWSER_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as long the cases that `long_cases` names by their ids."""
    for item in items:
        if any(item.callspec.id in mark.args for mark in item.iter_markers("long_cases")):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def stacks():
    """Recurrences with several layers by name, each with the machine that it runs."""
    return {"counter": _counter(), "registers": _registers(), "repeats": _repeats()}


@pytest.fixture(scope="session", params=["counter", "registers", "repeats"])
def stack(request, stacks):
    """Each of `stacks` in turn."""
    return stacks[request.param]


def _counter():
    """Ones modulo 4, from 1, without token shift: a channel for the low digit, one for the high that reads it at k."""

    def step(state, letter):
        low, high = state
        return (1 - low, high ^ low) if letter == "1" else state

    machine = explore(("0", "1"), (1, 0), step, lambda state: state[0] + 2 * state[1])
    low = [_ands(2, [constant], [([[1]], [], [change])]) for constant, change in [(1, -2), (0, 1)]]
    high = [_ands(3, [constant], [([[1]], [2], [change])]) for constant, change in [(1, -2), (0, 1)]]
    layers = [(*low, np.array([[1]]), (1,)), (*high, np.array([[0]]), (1,))]
    votes = [([], [0, 1], 0), ([[0]], [1], 1), ([[1]], [0], 2), ([[0], [1]], [], 3)]
    return _stacked(machine, layers, False, votes), machine


def _registers():
    """Sums of products modulo 5 in registers s and t: ("+", d) and ("-", d) add t to s and put ±d into t, ("*", d)
    multiplies t; the output is s + t. The layer of s reads t at k−1; t starts as 1."""
    letters = tuple((operator, d) for operator in "+-*" for d in range(5))
    eye = np.eye(5, dtype=np.int64)

    def step(state, letter):
        (s, t), (operator, d) = state, letter
        return (s, t * d % 5) if operator == "*" else ((s + t) % 5, d if operator == "+" else -d % 5)

    machine = explore(letters, (0, 1), step, lambda state: sum(state) % 5)
    times = [([[10 + d]], [], eye[:, [t * d % 5 for t in range(5)]].ravel()) for d in range(5)]
    resets = [([[c]], [], eye[step((0, 0), letter)[1]]) for c, letter in enumerate(letters[:10])]
    turns = [([range(10), [35 + t]], [], (np.roll(eye, t, axis=0) - eye).ravel()) for t in range(1, 5)]
    layers = [
        (_ands(30, [0] * 25, times), _ands(30, [0] * 5, resets), eye[[1]], (5,)),
        (_ands(40, eye.ravel(), turns), _ands(40, [0] * 5), eye[[0]], (5,)),
    ]
    votes = [([[t], [5 + s]], [], (s + t) % 5) for t in range(5) for s in range(5)]
    return _stacked(machine, layers, True, votes), machine


def _repeats():
    """Whether an odd number of letters were equal to the one before, and the number of a's modulo 3: unequal blocks in
    a layer. Two channels hold the last letter ("b", "c", or neither for "a"; "b" at the start); a block of 3 counts."""

    def step(state, letter):
        last, count, odd = state
        return letter, (count + (letter == "a")) % 3, odd ^ (letter == last)

    machine = explore(("a", "b", "c"), ("b", 0, False), step, lambda state: state[1:])
    eye = np.eye(3, dtype=np.int64)
    block = [np.concatenate([np.zeros(18, np.int64), part.ravel()]) for part in (eye, np.roll(eye, 1, axis=0) - eye)]
    letters = [([[1]], [], np.eye(9, dtype=np.int64)[0]), ([[2]], [], np.eye(9, dtype=np.int64)[3])]
    equal = [([[0]], [15, 18]), ([[1], [15]], []), ([[2], [18]], [])]
    layers = [
        (
            _ands(6, block[0], [([[0]], [], block[1])]), _ands(6, [0] * 9, letters),
            np.array([[1, 0, 0], [0, 0, 0], [1, 0, 0]]), (1, 1, 3),
        ),
        (*(_ands(24, [c], [(*unit, [d]) for unit in equal]) for c, d in [(1, -2), (0, 1)]), np.array([[0]]), (1,)),
    ]  # fmt: skip
    votes = [([[6 + i]], [9], (i, False)) for i in range(3)] + [([[6 + i], [9]], [], (i, True)) for i in range(3)]
    return _stacked(machine, layers, True, votes), machine


def _ands(width, constant, units=()):
    """A gate with a unit for each (conditions, exceptions, vector): if every condition has a column that is 1, and no
    exception is 1, it adds the vector to the constant."""
    W1, b1 = np.zeros((len(units), width), np.int64), np.zeros(len(units), np.int64)
    for i, (conditions, exceptions, _) in enumerate(units):
        W1[i, [column for columns in conditions for column in columns]] = 1
        W1[i, exceptions] = -1
        b1[i] = 1 - len(conditions)
    vectors = np.array([vector for _, _, vector in units], np.int64).reshape(len(units), len(constant))
    return ReluGate(W1, b1, vectors.T.copy(), np.array(constant))


def _stacked(machine, layers, token_shift, votes):
    """Layers (transition, value, x0, block_sizes), each letter a cell, and a read-out of votes (…, …, output)."""
    outputs = tuple(dict.fromkeys(machine.outputs))
    stack = GatedStack(np.arange(len(machine.alphabet)), tuple(GatedLayer(*layer) for layer in layers), token_shift)
    eye = np.eye(len(outputs), dtype=np.int64)
    gate = _ands(stack.width, [0] * len(outputs), [(*vote, eye[outputs.index(output)]) for *vote, output in votes])
    return Recurrence(machine.alphabet, outputs, stack, DenseReadout(gate.W1, gate.b1, gate.W2, gate.b2))


def pytest_collection_finish():
    """What was collected stays to the end: the collector of garbage needn't look at it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def out_of_time(monkeypatch):
    """Let every time limit have passed from the beginning."""
    monkeypatch.setattr(Deadline, "left", lambda self: 0.0 if math.isfinite(self.seconds) else math.inf)


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the command line in an empty folder: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(cli.console, "_IN_LOG", (1e6, 1e6))  # so that a slow computer prints nothing else

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["fsa2lrnn", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium on the path")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=list(BROWSER_FLAGS))
        yield running
        running.close()
