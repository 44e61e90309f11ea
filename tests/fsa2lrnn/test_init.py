"""The door: every name of the contract; deadlines, errors, versions; what an installation without extras can do."""

import ast
import json
import math
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace

import pytest
import torch

import fsa2lrnn
from fsa2lrnn import deadline
from fsa2lrnn.automata import zoo
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import BudgetExceeded, InvalidWord, MissingPackage, OutOfTime, UnsupportedFormat
from fsa2lrnn.export.in_use import say
from fsa2lrnn.families import represent
from fsa2lrnn.layers import EXPORTED, LAYERS, is_layer, of_name, released_model, trained_name
from fsa2lrnn.nn.layers import layer_named
from fsa2lrnn.optional import is_installed, require
from fsa2lrnn.training.grid import Sweep, read_sweep
from fsa2lrnn.training.settings import Settings, preset
from fsa2lrnn.verification.coverage import environment

FUNCTIONS = ("certify", "check", "extract", "extract_learned", "falsify", "prove_equivalent")


def test_names_are_found_or_refused():
    assert {"Cascade", "Readout", "choose", "decompose", *FUNCTIONS} <= set(fsa2lrnn.__all__)
    for name in fsa2lrnn.__all__:
        assert getattr(fsa2lrnn, name) is not None
    assert dir(fsa2lrnn) == sorted(fsa2lrnn.__all__)
    assert isinstance(fsa2lrnn.decompose(fsa2lrnn.zoo.parity()).cascade, fsa2lrnn.Cascade)
    assert fsa2lrnn.choose(fsa2lrnn.zoo.parity()).form == "onehot"
    rooms = {module.name for module in iter_modules(fsa2lrnn.__path__)}
    assert not rooms & set(fsa2lrnn.__all__)
    with pytest.raises(AttributeError, match="module 'fsa2lrnn' has no attribute 'Mamba'"):
        _ = fsa2lrnn.Mamba


@pytest.mark.long_cases("functions", "rooms")
@pytest.mark.parametrize("first", ["rooms", "functions"])
def test_functions_stay_functions_whatever_was_imported_before(first):
    rooms = "import fsa2lrnn.cli.evidence, fsa2lrnn.verification.extraction, fsa2lrnn.repairing, fsa2lrnn.draw.explorer"
    names = (*FUNCTIONS, "repair")
    functions = f"from fsa2lrnn import {', '.join(names)}"
    look = f"import inspect, fsa2lrnn\nassert all(inspect.isfunction(getattr(fsa2lrnn, x)) for x in {names})"
    look += f"\nassert all(map(inspect.isfunction, [{', '.join(names)}]))"
    lines = [rooms, functions, look] if first == "rooms" else [functions, look, rooms, functions, look]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_functions_take_the_source_of_a_machine(tmp_path):
    source = tmp_path / "m.json"
    source.write_text(zoo.parity().to_json())
    for same in ("task:parity", str(source), source, zoo.parity()):
        assert fsa2lrnn.equivalent(same, "task:parity") is None
    model = fsa2lrnn.compile_machine(source)
    assert isinstance(fsa2lrnn.prove_equivalent(model, source), fsa2lrnn.Proved)
    assert fsa2lrnn.falsify(model, source).checked_length is None
    assert fsa2lrnn.certify(model, source, work=1e6).horizon > 100
    assert fsa2lrnn.represent(source, "diagonal[0,1]").answer == "no"
    assert fsa2lrnn.classify(source).kind == "group"
    assert fsa2lrnn.choose(source).form == "onehot"
    assert fsa2lrnn.repair(model, source).heads[0].image.rank == 2
    assert fsa2lrnn.decompose(source).cascade.n_layers == 1
    assert fsa2lrnn.compile_recurrence(source).transduce("1") == [True]
    for wrong in (5, None, [1, 0], zoo.parity):
        with pytest.raises(UnsupportedFormat, match=r"of type \w+ is not an automaton: give a MooreMachine, a source"):
            fsa2lrnn.compile_machine(wrong)
    with pytest.raises(FileNotFoundError, match=r"no such file: nowhere\.dot"):
        fsa2lrnn.compile_machine("nowhere.dot")
    with pytest.raises(FileNotFoundError, match=r"no such file: nowhere\.safetensors"):
        fsa2lrnn.load("nowhere.safetensors")


@pytest.mark.parametrize("x", [object(), [2]])
def test_wrong_types_are_named_with_what_is_expected(x):
    m = fsa2lrnn.compile_machine("task:parity")
    for call, expected in (
        (lambda: fsa2lrnn.Budget(seconds=x), "seconds = .*: give a number above 0"),
        (lambda: fsa2lrnn.Budget(length=x), "length = .*: give a whole number"),
        (lambda: fsa2lrnn.LRNN(x), "config = .*: give an LRNNConfig"),
        (lambda: fsa2lrnn.Stream(m, batch=x), "batch = .*: give the number of streams"),
        (lambda: fsa2lrnn.certify(m, "task:parity", seconds=x), "seconds = .*: give a positive number, or None"),
        (lambda: fsa2lrnn.check(x, m), "certificate = .*: give what certify"),
        (lambda: fsa2lrnn.explain("task:parity", x), "famil.* = .*: give"),
        (lambda: fsa2lrnn.extract(m, x), "max_states = .*: give a whole number"),
        (lambda: fsa2lrnn.extract_learned(x), r"model = .*: give a network, of load\(…\)"),
        (lambda: fsa2lrnn.falsify(x, "task:parity"), r"model = .*: give a network, of load\(…\)"),
        (lambda: fsa2lrnn.falsify(m, "task:parity", x), r"budget = .*: give a Budget\(seconds=…\)"),
        (lambda: fsa2lrnn.prove_equivalent(m, "task:parity", x), "budget = .*: give the most joint states"),
        (lambda: fsa2lrnn.represent("task:parity", x), "family = .*: give one of lti,"),
        (lambda: fsa2lrnn.train(x, "folder"), r"settings = .*: give Settings\("),
        (lambda: m(x), "tokens = .*: give an int64 tensor"),
    ):
        with pytest.raises(UnsupportedFormat, match=expected):
            call()


@pytest.mark.parametrize("wrong", [7, object()])
def test_what_is_not_iterable_is_named_with_what_is_expected(wrong):
    for call, expected in (
        (lambda: fsa2lrnn.MooreMachine([[0]], wrong), "outputs = .*: give a list with the output of each state"),
        (lambda: fsa2lrnn.MooreMachine([[0]], [0], alphabet=wrong), "alphabet = .*: give a list with one per row"),
        (lambda: fsa2lrnn.MooreMachine.from_regex(wrong), "regex = .*: give the text of a regular expression"),
        (lambda: fsa2lrnn.learn(wrong), "source = .*: give a machine, its source, a file of words, or pairs"),
        (lambda: fsa2lrnn.wrap(torch.nn.Identity(), wrong, "ab"), "alphabet = .*: give a list of symbols"),
    ):
        with pytest.raises(UnsupportedFormat, match=expected):
            call()
    with pytest.raises(InvalidWord, match="is not a word: give text or a list of letters"):
        zoo.parity().run(wrong)


@pytest.fixture
def now(monkeypatch):
    """A clock that tests set."""
    times = [100.0]
    monkeypatch.setattr(deadline, "time", SimpleNamespace(process_time=lambda: times[0]))
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


def test_a_deadline_does_not_pass_while_others_run():
    limit = Deadline(0.05)
    time.sleep(0.1)
    assert limit.left() > 0


def test_a_deadline_stands_for_itself_and_other_limits_are_positive():
    limit = Deadline(1.0)
    assert Deadline.of(limit) is limit
    for seconds in (0, -1, math.nan):
        with pytest.raises(UnsupportedFormat, match="a time limit is a positive number, or None for no limit"):
            Deadline.of(seconds)


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


ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
PACKAGES = {
    extra: [re.split(r"[<>=;\[]", text)[0] for text in texts] for extra, texts in EXTRAS.items() if extra != "dev"
}
OPTIONAL = {package for packages in PACKAGES.values() for package in packages}
VERBS = ("compile", "run", "explain", "verify", "extract", "train", "compare", "certify", "repair", "draw", "demo")
ALONE = f"""
import sys

class Less:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        is_missing = name.partition(".")[0] in {OPTIONAL | {"pydot", "tensorboard"}!r}
        return None if is_missing else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):  # what importlib.metadata asks finders for
        return getattr(self.finder, name)

sys.meta_path[:] = map(Less, sys.meta_path)
"""


def test_missing_packages_are_named_and_errors_inside_pass_through(monkeypatch, tmp_path):
    assert require("json.decoder", "test", "this test").JSONDecoder().decode("[1]") == [1]
    assert is_installed("json")
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    monkeypatch.delitem(sys.modules, "cvxpy.atoms", raising=False)  # another test may have imported it
    assert not is_installed("cvxpy")
    with pytest.raises(MissingPackage) as caught:
        require("cvxpy.atoms", "repair", "this test", "none at all")
    wanted = 'this test needs cvxpy, which is not installed: pip install "fsa2lrnn[repair]", or none at all'
    assert str(caught.value) == wanted
    with pytest.raises(MissingPackage, match=r"this test needs cvxpy, which is not installed: pip install cvxpy$"):
        require("cvxpy", None, "this test")
    assert isinstance(caught.value, ImportError)
    (tmp_path / "half_here.py").write_text("import not_here_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="not_here_at_all") as caught:
        require("half_here", "test", "this test")
    assert not isinstance(caught.value, MissingPackage)


def test_every_extra_that_is_named_brings_what_is_asked_of_it():
    asked = [
        [ast.literal_eval(beginning(argument)) for argument in call.args[:2]]
        for path in (ROOT / "fsa2lrnn").rglob("*.py")
        if re.search(r"from fsa2lrnn.optional import .*\b(require|missing)\b", text := path.read_text(encoding="utf-8"))
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("require", "missing")
    ]
    assert {extra for _, extra in asked} >= {"gpu", "hf", "plot", "repair", "sweep", "test"}
    for module, extra in asked:
        assert extra is None or module.partition(".")[0] in PACKAGES[extra], (module, extra)


def beginning(text):
    """The literal that a text begins with."""
    return text.values[0] if isinstance(text, ast.JoinedStr) else text


@pytest.mark.long
def test_a_core_installation_does_the_work_or_names_the_extra(tmp_path):
    models = ROOT / "experiments" / "models"
    even, total = models / "even5" / "seed-4.safetensors", models / "sum2" / "seed-0.safetensors"
    few = ["--words", "5", "--lengths", "5"]
    against, parity, source = ["task:even_pair(5)"], "task:parity", "task:sum_mod(2)"
    works = [
        *([verb, "--help"] for verb in VERBS),
        ["compile", "regex:(ab)*", "-o", "ab.safetensors"],
        ["compile", parity, "--form", "cascade"],
        ["run", "ab.safetensors", "abab"],
        ["verify", "ab.safetensors", "regex:(ab)*"],
        ["explain", parity],
        ["extract", "ab.safetensors", "-o", "ab.dot"],
        ["extract", str(total), "--method", "suffixes"],
        ["train", parity, "--preset", "quick", "--steps", "2", "--output", "runs", *few],
        ["compare", str(even), *against, *few, "--max-seconds", "0.5"],
        ["repair", str(total), source, "--mode", "dyadic", "-o", "repaired.safetensors"],
    ]
    refused = [
        (["certify", str(even), "task:even_pair(5)"], "repair"),
        (["repair", str(total), source], "repair"),
        (["compare", str(even), *against, *few, "--plot", "plot.svg"], "plot"),
    ]
    code = f"""{ALONE}
import contextlib, io
import fsa2lrnn, fsa2lrnn.cli
for name in fsa2lrnn.__all__:
    getattr(fsa2lrnn, name)

def call(arguments):
    out, err = io.StringIO(), io.StringIO()
    fsa2lrnn.cli.console.out.file, fsa2lrnn.cli.console.err.file = out, err
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            fsa2lrnn.cli.main(arguments)
        except SystemExit as end:
            return end.code or 0, out.getvalue(), err.getvalue()

from fsa2lrnn.cli import console
for arguments in {works!r}:
    code, out, err = call(arguments)
    assert code == 0, (arguments, code, out, err)
for arguments, extra in {refused!r}:
    code, out, err = call(arguments)
    assert (code, err.count("\\n")) == (2, 1), (arguments, code, out, err)
    assert f'not installed: pip install "fsa2lrnn[{{extra}}]"' in err, (arguments, err)

from fsa2lrnn.errors import MissingPackage
from fsa2lrnn.training.engines import on_ray
from fsa2lrnn.training.trainer import Stop
asks = dict(test=lambda: __import__("fsa2lrnn.testing.strategies"), sweep=lambda: on_ray(Stop()).__enter__())
for extra, ask in asks.items():
    try:
        ask()
    except MissingPackage as error:
        assert f'not installed: pip install "fsa2lrnn[{{extra}}]"' in str(error)
    else:
        raise AssertionError("nothing is missed")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_verifier_loads_no_layer_that_it_does_not_verify():
    code = (
        "import sys; from fsa2lrnn import prove_equivalent; "
        "print(sum(name.partition('.')[0] == 'fsa2lrnn' for name in sys.modules)); "
        "from fsa2lrnn import compile_machine, zoo; prove_equivalent(compile_machine(zoo.parity()), zoo.parity()); "
        "print(*(name for name in sys.modules if name.startswith('fsa2lrnn.nn.layers.') and name.count('.') == 3))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, layers = done.stdout.splitlines()
    assert int(count) <= 110
    assert {name.rpartition(".")[2] for name in layers.split()} <= {
        "base", "block", "hard", "householder_layer", "index",
    }  # fmt: skip


@pytest.mark.parametrize("row", LAYERS.values(), ids=LAYERS)
def test_every_spelling_is_taken_everywhere_or_told_what_can_be_done(row, tmp_path):
    names = [row.name, *row.spellings, *row.exported_to]
    names += [spelled for name in names for spelled in (name.replace("-", "_"), name.replace("-", "").upper())]
    assert {of_name(name).name for name in names} == {row.name}
    assert all(map(is_layer, names))
    other = names[-1]
    told = re.escape(f"{row.name} ")  # what the message then lists
    if row.trained_by and not row.setting:
        trained = row.trained_by
        assert {trained_name(name) for name in names} == {trained}
        assert layer_named(other) is layer_named(trained)
        assert (
            Settings("task:parity", layer=other).layer == preset("quick", "task:parity", layer=other).layer == trained
        )
        file = tmp_path / "sweep.json"
        file.write_text(json.dumps({"tasks": ["task:parity"], "settings": {"named": {"layer": other}}}))
        (trial,) = Sweep.from_dict(read_sweep(file)).trials
        assert trial.settings.layer == trained
    else:
        for refuse in (trained_name, layer_named, lambda name: Settings("task:parity", layer=name)):
            with pytest.raises(UnsupportedFormat, match=told):
                refuse(other)
    if row.exported_to:
        assert {released_model(name) for name in names} == set(row.exported_to)
    else:
        with pytest.raises(UnsupportedFormat, match=f"{told}.*no released model with it .* {EXPORTED[0]}, "):
            released_model(other)
    if row.family:
        assert say(zoo.parity(), other).name == row.name
        assert represent(zoo.parity(), other).answer in ("yes", "no", "unknown")
    else:
        with pytest.raises(UnsupportedFormat, match=told):
            represent(zoo.parity(), other)


@pytest.mark.parametrize(("arguments", "said"), [
    (("train", "--layer", "olmo-hybrid"), "--set neg_eigval=true"),
    (("train", "--layer", "mamba"), "mamba is decided (`explain --layer`)"),
    (("train", "--layer", "lstm"), "lstm"),
    (("export", "--layer", "mamba-3"), "mamba-3 trains (`train --layer mamba3`), is decided"),
    (("explain", "--layer", "deltanet"), "stacks of deltanet are not decided: deltanet is a special case"),
    (("explain", "--family", "rwkv7"), "rwkv7 is described by no family: rwkv-7 trains"),
])  # fmt: skip
def test_what_cannot_be_done_says_what_can(call, arguments, said):
    command, *options = arguments
    output = [] if command == "explain" else ["-o", "out"]
    code, _, err = call(command, "task:parity", *options, *output)
    assert (code, said in " ".join(err.split())) == (2, True), err
