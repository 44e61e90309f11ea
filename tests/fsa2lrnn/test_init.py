"""The door: every name of the contract, no early imports; deadlines, errors, kinds of sources, versions."""

import inspect
import math
import subprocess
import sys
from pkgutil import iter_modules
from types import SimpleNamespace

import pytest
import torch

import fsa2lrnn
from fsa2lrnn import deadline, errors
from fsa2lrnn.automata import formats
from fsa2lrnn.cli import app, options
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime, UnsupportedFormat
from fsa2lrnn.source_kinds import FORMATS, endings
from fsa2lrnn.versions import environment

FUNCTIONS = ("certify", "check", "extract", "extract_learned", "falsify", "prove_equivalent", "repair")


def test_every_name_is_found():
    assert {"Cascade", "Readout", "choose", "decompose", *FUNCTIONS} <= set(fsa2lrnn.__all__)
    for name in fsa2lrnn.__all__:
        assert getattr(fsa2lrnn, name) is not None
    assert dir(fsa2lrnn) == sorted(fsa2lrnn.__all__)
    assert isinstance(fsa2lrnn.decompose(fsa2lrnn.zoo.parity()).cascade, fsa2lrnn.Cascade)
    assert fsa2lrnn.choose(fsa2lrnn.zoo.parity()).form == "onehot"


def test_no_room_has_the_name_of_something_else_and_unknown_names_are_named():
    rooms = {module.name for module in iter_modules(fsa2lrnn.__path__)}
    assert rooms & set(fsa2lrnn.__all__) == {"lrnn"}
    assert fsa2lrnn.lrnn is sys.modules["fsa2lrnn.lrnn"]
    with pytest.raises(AttributeError, match="module 'fsa2lrnn' has no attribute 'Mamba'"):
        _ = fsa2lrnn.Mamba


@pytest.mark.extra("report")
@pytest.mark.parametrize("first", ["rooms", "functions"])
def test_functions_stay_functions_whatever_was_imported_before(first):
    rooms = "import fsa2lrnn.cli.evidence, fsa2lrnn.extraction, fsa2lrnn.repairing, fsa2lrnn.extra.report.judgement"
    functions = f"from fsa2lrnn import {', '.join(FUNCTIONS)}"
    look = f"import inspect, fsa2lrnn\nassert all(inspect.isfunction(getattr(fsa2lrnn, x)) for x in {FUNCTIONS})"
    look += f"\nassert all(map(inspect.isfunction, [{', '.join(FUNCTIONS)}]))"
    lines = [rooms, functions, look] if first == "rooms" else [functions, look, rooms, functions, look]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_one_namespace_goes_the_whole_way():
    from fsa2lrnn import certify, check, compile_machine, extract, falsify, prove_equivalent, repair, zoo

    machine = zoo.sum_mod(2)
    model = compile_machine(machine)
    assert extract(model) == machine.minimise()
    assert prove_equivalent(model, machine).pairs == 2
    assert falsify(model, machine).checked_length is None
    certificate = certify(model, machine)
    check(certificate, model)
    assert repair(model, machine).change.A < 1e-6


def test_decomposing_and_choosing_need_no_torch():
    code = "import sys, fsa2lrnn\nfsa2lrnn.choose(fsa2lrnn.zoo.even_pair(5))\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def now(monkeypatch):
    """A clock that tests set."""
    times = [100.0]
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: times[0]))
    return times


def test_the_time_runs_from_construction_and_no_limit_has_no_end(now):
    limit = Deadline.of(5)
    now[0] += 2
    assert (limit.passed(), limit.left()) == (2, 3)
    limit.check("nothing")
    part = limit.share(0.5)
    now[0] += 1.5
    assert (limit.left(), part.left()) == (1.5, 0)
    said = r"counting: a share of 1\.5 s of the limit of 5 s has passed: give more seconds"
    with pytest.raises(OutOfTime, match=said):
        part.check("counting")
    assert issubclass(OutOfTime, BudgetExceeded)
    assert Deadline.of(None).left() == NEVER.share(0.1).left() == math.inf
    now[0] += 1e9
    NEVER.check("nothing")


def test_a_deadline_stands_for_itself_and_other_limits_are_positive():
    limit = Deadline(1.0)
    assert Deadline.of(limit) is limit
    for seconds in (0, -1, math.nan):
        with pytest.raises(UnsupportedFormat, match="a time limit is a positive number, or None for no limit"):
            Deadline.of(seconds)


@pytest.mark.parametrize("kind", [k for _, k in inspect.getmembers(errors, inspect.isclass)])
def test_every_kind_has_the_base_and_says_what_it_is(kind):
    assert issubclass(kind, errors.Fsa2LrnnError)
    assert kind.__doc__


def test_bad_values_are_value_errors():
    for kind in (errors.InvalidMachine, errors.InvalidWord, errors.UnsupportedFormat, errors.CheckpointError):
        assert issubclass(kind, ValueError)


def test_one_is_no_plural_and_long_texts_keep_both_ends():
    counts = [errors.counted(n, "joint state") for n in (0, 1, 1_000)]
    assert counts == ["0 joint states", "1 joint state", "1,000 joint states"]
    assert errors.shortened("short") == "short"
    text = "a" * 100_000 + "b"
    short = errors.shortened(text)
    assert len(short) < 250
    assert short.endswith("…(99,801 characters)…" + "a" * 99 + "b")


def test_help_names_every_ending_and_prefixes_stand_in_place_of_endings():
    files = [ending for known in FORMATS if known.is_file for ending in known.endings]
    assert endings().split() == files
    assert endings(for_writing=True).split() == [e for known in FORMATS if known.writes for e in known.endings]
    assert options.WRITTEN.endswith(endings(for_writing=True))
    assert str(app.info.epilog).endswith(f"a file: {endings()}")
    assert [known.endings for known in FORMATS if not known.is_file] == [("regex:",), ("task:",), ("mlregtest:",)]
    assert formats.FORMATS is FORMATS


def test_the_environment_names_what_decides_on_the_order_of_sums(monkeypatch):
    before = environment()
    assert before[:2] == (f"torch {torch.__version__}", f"CPU capability {torch.backends.cpu.get_cpu_capability()}")
    assert before[2].startswith(("MKL 2", "BLAS "))
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert set(environment()) - set(before) == {"MKL_CBWR=COMPATIBLE", "OPENBLAS_CORETYPE=Haswell"}
    was_on = torch.backends.mkldnn.enabled
    torch._C._set_mkldnn_enabled(False)
    try:
        assert "oneDNN off" in environment()
    finally:
        torch._C._set_mkldnn_enabled(was_on)
