"""Mutation test of the lines that a proof rests on: `python -m verify.mutation 300 --seed 0`.

Mutants (one operator, constant, comparison, term or statement changed) are drawn from the trusted files in proportion
to their lines. Each is written into a copy of the tree and meets the tests of `make test` that execute its line, up to
the first failure. Children are forked from a process that has imported torch, so that a mutant takes seconds. Those
known to be equivalent are listed with the reason in mutation_equivalent.json, by file, line of source and change.
"""

# pyright: basic, reportUnusedImport=false, reportAttributeAccessIssue=false, reportOperatorIssue=false
# pyright: reportOptionalOperand=false, reportOptionalMemberAccess=false
# Fields of syntax trees have no types.

import argparse
import ast
import copy
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
EQUIVALENT = Path(__file__).with_name("mutation_equivalent.json")
TRUSTED = (
    "fsa2lrnn/checker/*.py", "fsa2lrnn/families/recheck/*.py", "fsa2lrnn/compile/recurrence.py",
    "fsa2lrnn/compile/stack.py", "fsa2lrnn/compile/integer_tables.py", "fsa2lrnn/nn/rounded_numbers.py",
    "fsa2lrnn/nn/zonotopes.py", "fsa2lrnn/nn/layer_checks.py", "fsa2lrnn/nn/switched.py", "fsa2lrnn/nn/layers/*.py",
    "fsa2lrnn/verification/walk.py", "fsa2lrnn/verification/equivalence.py", "fsa2lrnn/probes/audit.py",
)  # fmt: skip
# Of layers, what they declare to verifiers; the rest is the model itself, which verifiers run.
LAYERS = ("fsa2lrnn/nn/layers/", "fsa2lrnn/nn/switched.py")
DECLARED = {
    "rounded_tables", "is_exact", "is_lookup", "starts_exact", "has_maps", "_is_open", "_is_exact_product",
    "starts_closed", "maps_closed", "exchanges_closed", "is_signed", "is_scalar_channel", "is_one_hot", "table_error",
}  # fmt: skip
SUITES = (
    "checker", "families", "verification", "nn", "compile", "probes", "export/test_refusals.py", "export/test_alike.py",
)  # fmt: skip
LEFT = ("survived", "uncovered")
Record = dict[str, Any]  # a mutant and its fate, as JSON has it
Lines = dict[str, dict[Any, list[str]]]  # the tests of each line of each file
SECONDS, MEMORY = 60, 8 << 30  # processor time of a mutant's tests, and bytes
SWAPPED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Add,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or,
    ast.Or: ast.And,
}  # fmt: skip
REVERSED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
NAMES = [
    ("min", "max"),
    ("minimum", "maximum"),
    ("any", "all"),
    ("floor", "ceil"),
    ("argmin", "argmax"),
    ("amin", "amax"),
]
RENAMED = dict(NAMES) | {after: before for before, after in NAMES}
UNWRAPPED = {"abs", "above", "sorted", "set", "relu", "up", "down"}  # f(x) becomes x
MESSAGES = {"require", "demand", "expect"}  # their second argument is a message


class Mutant(NamedTuple):
    """A changed file: the line of the change, as it was, the change in words, the statement's line, the new text."""

    path: str
    line: int
    source: str
    change: str
    statement: int
    text: bytes


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node."""

    def changed(**parts: object) -> ast.AST:
        new = copy.deepcopy(node)
        for name, part in parts.items():
            setattr(new, name, part)
        return new

    match node:
        case ast.BinOp(left, op, right):
            if type(op) in SWAPPED:
                yield changed(op=SWAPPED[type(op)]())
            if not isinstance(op, ast.MatMult | ast.Mod | ast.Pow):
                yield left
            if isinstance(op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr):
                yield right
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                for table in (SWAPPED, REVERSED):
                    if type(op) in table:
                        yield changed(ops=[*ops[:i], table[type(op)](), *ops[i + 1 :]])
        case ast.BoolOp(op, values):
            yield changed(op=SWAPPED[type(op)]())
            yield from (changed(values=[*values[:i], *values[i + 1 :]]) for i in range(len(values)))
        case ast.UnaryOp(op, operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.IfExp(_, body, orelse):
            yield from (body, orelse)
        case ast.Constant(value) if isinstance(value, bool):
            yield ast.Constant(not value)
        case ast.Constant(value) if isinstance(value, int):
            yield from (ast.Constant(new) for new in {value + 1, value - 1, 0} - {value})
        case ast.Constant(value) if isinstance(value, float):
            yield from (ast.Constant(new) for new in {value * 2, value / 2, 0.0} - {value})
        case ast.Name(name) if name in RENAMED:
            yield ast.Name(RENAMED[name])
        case ast.Attribute(attr=name) if name in RENAMED:
            yield changed(attr=RENAMED[name])
        case ast.Attribute(attr="inf"):
            yield ast.UnaryOp(ast.USub(), node)
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name), args) if name in UNWRAPPED and len(args) == 1:
            yield args[0]
        case ast.If(test) | ast.While(test):
            yield changed(test=ast.UnaryOp(ast.Not(), test))
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.comprehension(ifs=[_, *_]):
            yield changed(ifs=[])


def mutants(path: str) -> Iterator[Mutant]:
    """Yield every mutant of a file of the tree."""
    text = (ROOT / path).read_bytes()
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:i])) for i in range(len(lines))]

    def place(node: ast.AST) -> slice:
        """Return where a node stands; a comprehension's `for` from its target to its last condition."""
        first, last = node, node
        if isinstance(node, ast.comprehension):
            first, last = node.target, (node.ifs or [node.iter])[-1]
        return slice(starts[first.lineno - 1] + first.col_offset, starts[last.end_lineno - 1] + last.end_col_offset)

    def visit(node: ast.AST, statement: ast.stmt | None = None) -> Iterator[Mutant]:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
            return
        statement = node if isinstance(node, ast.stmt) else statement
        for new in variants(node):
            at, words = place(node), ast.unparse(new)
            if isinstance(new, ast.If | ast.While):
                at, words = place(node.test), ast.unparse(new.test)
            elif isinstance(new, ast.comprehension):
                words = f"{ast.unparse(new.target)} in {ast.unparse(new.iter)}"
            elif isinstance(new, ast.expr) and not isinstance(new, ast.Constant | ast.Name):
                words = f"({words})"
            change = f"{' '.join(text[at].decode().split())} -> {words}"
            line = text.count(b"\n", 0, at.start) + 1
            source = lines[line - 1].decode().strip()
            yield Mutant(
                path, line, source, change, statement.lineno, text[: at.start] + words.encode() + text[at.stop :]
            )
        for name, value in ast.iter_fields(node):
            parts = value if isinstance(value, list) else [value]
            if name in ("annotation", "returns", "decorator_list", "ctx") or isinstance(node, ast.Raise):
                continue
            if name == "args" and isinstance(node, ast.Call) and getattr(node.func, "id", "") in MESSAGES:
                parts = parts[:1]
            if name == "args" and getattr(getattr(node, "func", None), "attr", "") in ("reshape", "view"):
                parts = [part for part in parts if not isinstance(part, ast.UnaryOp)]  # numpy reads −2 as −1
            for part in parts:
                is_strict = isinstance(part, ast.keyword) and part.arg == "strict"
                if isinstance(part, ast.AST) and not is_strict:
                    yield from visit(part, statement)

    seen = Counter()
    for part in trusted(path, ast.parse(text)):
        for mutant in visit(part):
            seen[at := (mutant.line, mutant.change)] += 1
            yield mutant._replace(change=f"{mutant.change} [{seen[at]}]") if seen[at] > 1 else mutant


def trusted(path: str, tree: ast.Module) -> list[ast.AST]:
    """Return the tree, or the functions of a layer that make declarations."""
    if not path.startswith(LAYERS):
        return [tree]
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in DECLARED]


def draw(count: int, seed: int, patterns: list[str]) -> list[Mutant]:
    """Return `count` mutants, or a few more, of the files that match, each file's share as its share of lines."""
    size = {}
    for place in sorted({place for pattern in patterns for place in ROOT.glob(pattern)}):
        text, path = place.read_text(), str(place.relative_to(ROOT))
        parts = trusted(path, ast.parse(text))
        size[path] = sum(len((ast.get_source_segment(text, part) or text).splitlines()) for part in parts)
    rng, drawn = random.Random(seed), []
    for path in size:
        found = list(mutants(path))
        share = -(-count * size[path] // sum(size.values()))
        drawn += sorted(rng.sample(found, min(share, len(found))), key=lambda mutant: mutant.line)
    return drawn


def forked(task: Callable[[], int], seconds: int) -> tuple[bool, float]:
    """Return whether a task of a child ended with exit code 0 within this processor time, and the time it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if (child := os.fork()) == 0:
        os.setpgrp()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        quiet = os.open(os.environ.get("MUTATION_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = 70
        try:
            code = task()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    deadline, status = time.monotonic() + 10 * seconds, None
    while status is None:
        done, word = os.waitpid(child, os.WNOHANG)
        status = word if done else None
        if status is None and time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return status == 0, sum(after[:2]) - sum(before[:2])


class Watch:
    """A pytest plugin that records the lines of trusted files that each test executes, and how long it takes."""

    def __init__(self, folder: Path, paths: list[str]) -> None:
        import coverage

        self.folder = folder
        self.lines: Lines = {}
        self.seconds: dict[str, float] = {}
        self.coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[str(folder / path) for path in paths]
        )
        self.coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)
        self.began = time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.coverage.switch_context("")
        self.seconds[nodeid] = time.process_time() - self.began

    def write(self, file: Path) -> None:
        """Write (seconds, lines): lines are {path: {line: tests}}."""
        self.coverage.stop()
        data = self.coverage.get_data()
        for path in data.measured_files():
            found = data.contexts_by_lineno(path)
            name = str(Path(path).relative_to(self.folder))
            self.lines[name] = {line: [test for test in tests if test] for line, tests in found.items()}
        file.write_text(json.dumps([self.seconds, self.lines]))


def tests(arguments: Sequence[str], *plugins: object) -> int:
    """Run pytest in this process, with the tests of `make test` alone."""
    import pytest

    loaded = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # the parent imported plugins' modules
    quick = ("-q", "-x", *loaded, "-p", "no:cacheprovider", "-m", "not slow and not long")
    return int(pytest.main([*quick, *arguments], plugins=plugins))


def main() -> None:
    """Draw mutants, run their tests, and print and write what survives."""
    parser = argparse.ArgumentParser(prog="python -m verify.mutation", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", nargs="+", default=list(TRUSTED), help="patterns of files in place of all trusted")
    parser.add_argument("--map", type=Path, help="a file with the tests of each line: read, or written if missing")
    parser.add_argument("--out", type=Path, help="a JSON file of results: mutants that were killed there are kept")
    options = parser.parse_args()
    if options.out:
        options.out = options.out.resolve()
    import coverage, hypothesis, numpy, pytest, safetensors.numpy, torch  # noqa: E401, F401, I001 - for all children

    drawn = draw(options.count, options.seed, options.files)
    known = {tuple(at): reason for *at, reason in json.loads(EQUIVALENT.read_text())} if EQUIVALENT.exists() else {}
    folder = Path(tempfile.mkdtemp(prefix="mutation-")).resolve()
    try:
        shutil.copytree(ROOT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis"))
        os.chdir(folder)
        sys.path[:] = [str(folder), *(path for path in sys.path if Path(path or ".").resolve() not in (ROOT, folder))]
        os.environ["PYTHONPATH"] = str(folder)
        place = (options.map or folder / "map.json").resolve()
        if not place.exists():
            everything = sorted({str(path.relative_to(ROOT)) for pattern in TRUSTED for path in ROOT.glob(pattern)})

            def mapped() -> int:
                watch = Watch(folder, everything)
                code = tests([*(f"tests/fsa2lrnn/{suite}" for suite in SUITES), *everything], watch)
                watch.write(place)
                return code

            passed, spent = forked(mapped, 3_000)
            print(f"tests of each line: {spent:.0f} s of processor time", flush=True)
            if not passed:
                sys.exit("a test fails on the tree as it is (MUTATION_LOG=FILE has the output)")
        seconds, lines = json.loads(place.read_text())
        sys.dont_write_bytecode, os.environ["PYTHONDONTWRITEBYTECODE"] = True, "1"
        results: dict[tuple[str, ...], Record] = {}
        if options.out and options.out.exists():
            results = {key(old): old for old in json.loads(options.out.read_text()) if old["fate"] == "killed"}
        for mutant in drawn:
            at = key(mutant._asdict())
            results[at] = results.get(at) or judged(mutant, folder, seconds, lines, known)
            if options.out:
                options.out.write_text(json.dumps(list(results.values()), indent=1, ensure_ascii=False) + "\n")
    finally:
        shutil.rmtree(folder)
    print(table([results[key(mutant._asdict())] for mutant in drawn]))


def key(mutant: Record) -> tuple[str, str, str]:
    """Return what names a mutant though lines before it change."""
    return mutant["path"], mutant["source"], mutant["change"]


def judged(
    mutant: Mutant, folder: Path, seconds: dict[str, float], lines: Lines, known: dict[tuple[str, ...], str]
) -> Record:
    """Return what became of a mutant: "killed", "survived", "uncovered", or why it is equivalent."""
    reason = known.get(key(mutant._asdict()))
    span = lines.get(mutant.path, {})
    meet = {test for line in (mutant.line, mutant.statement) for test in span.get(str(line), ())}
    # A line of a module's or class's own level runs at import, before any test: all tests of the file meet it.
    chosen = meet or {test for some in span.values() for test in some}
    if not chosen:  # run in processes of their own alone, such as __main__: the tests of the folder
        beside = [found for path, found in lines.items() if Path(path).parent == Path(mutant.path).parent]
        chosen = {test for span in beside for some in span.values() for test in some}
    chosen = sorted(chosen, key=lambda test: seconds.get(test, 0.0))
    file, spent, fate = folder / mutant.path, 0.0, reason or ("survived" if chosen else "uncovered")
    if chosen and not reason:
        before = file.read_bytes()
        file.write_bytes(mutant.text)
        for pyc in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            pyc.unlink()
        limit = SECONDS + int(3 * sum(seconds.get(test, 0.0) for test in chosen))
        passed, spent = forked(lambda: tests(chosen), limit)
        file.write_bytes(before)
        fate = "survived" if passed else "killed"
    if fate in LEFT:
        print(f"{mutant.path}:{mutant.line}: {fate}: {mutant.change}\n    {mutant.source}", flush=True)
    told = {"line": mutant.line, "fate": fate, "tests": len(chosen), "seconds": round(spent, 1)}
    return dict(zip(("path", "source", "change"), key(mutant._asdict()), strict=True)) | told


def table(results: list[Record]) -> str:
    """Return a table of the files, as Markdown: mutants, killed, equivalent, survived."""
    rows = ["|file|mutants|killed|equivalent|survived|", "|---|---|---|---|---|"]
    for path in [*sorted({result["path"] for result in results}), "all"]:
        fates = [result["fate"] for result in results if path in (result["path"], "all")]
        killed, left = fates.count("killed"), sum(map(fates.count, LEFT))
        rows.append(f"|{path}|{len(fates)}|{killed}|{len(fates) - killed - left}|{left}|")
    return "\n".join(rows) + f"\n\n{sum(result['seconds'] for result in results):.0f} s of processor time"


if __name__ == "__main__":
    main()
