"""The door: every name of the contract is found, none is loaded before it is asked for, and no room takes its place."""

import subprocess
import sys
from pkgutil import iter_modules

import pytest

import fsa2lrnn

FUNCTIONS = ("certify", "check", "extract", "extract_learned", "falsify", "prove_equivalent", "repair")


def test_every_name_is_found():
    assert {"Cascade", "Readout", "choose", "decompose", *FUNCTIONS} <= set(fsa2lrnn.__all__)
    for name in fsa2lrnn.__all__:
        assert getattr(fsa2lrnn, name) is not None
    assert dir(fsa2lrnn) == sorted([*fsa2lrnn.__all__, "learn", "wrap_fla"])
    assert isinstance(fsa2lrnn.decompose(fsa2lrnn.zoo.parity()).cascade, fsa2lrnn.Cascade)
    assert fsa2lrnn.choose(fsa2lrnn.zoo.parity()).form == "onehot"


def test_no_room_has_the_name_of_something_else():
    rooms = {module.name for module in iter_modules(fsa2lrnn.__path__)}
    assert rooms & set(fsa2lrnn.__all__) == {"lrnn"}
    assert fsa2lrnn.lrnn is sys.modules["fsa2lrnn.lrnn"]


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


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="module 'fsa2lrnn' has no attribute 'Mamba'"):
        _ = fsa2lrnn.Mamba


def test_decomposing_and_choosing_need_no_torch():
    code = "import sys, fsa2lrnn\nfsa2lrnn.choose(fsa2lrnn.zoo.even_pair(5))\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
