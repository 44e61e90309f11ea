"""Draw the packages and their imports, and count what a reader has to carry: `python -m experiments.architecture`.

Writes docs/figures/architecture.svg and prints the counts, all read from the source. With `--journeys` it also runs
five jobs, each in a fresh process, and counts the files of the library that each enters.
"""

from __future__ import annotations

import ast
import inspect
import io
import multiprocessing
import re
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from types import FrameType
from typing import Annotated

import networkx as nx
import typer

from experiments import script

ROOT = Path(__file__).parent.parent
LIBRARY = ROOT / "fsa2lrnn"
FIGURE = ROOT / "docs" / "figures" / "architecture.svg"
BASE = "errors, symbols, files …"  # the modules at the top of the library, which every package imports: not drawn
ALSO_DOWN = {("automata", "draw"), ("cascade", "draw"), ("families", "compile")}
"""Imports of a package below from one above, inside functions or of single files; pyproject.toml lists them."""
PRAGMA = re.compile(r"#\s*(noqa|pyright|fmt|type|pragma)\b")
LONG = 10  # lines from which a private function needs a docstring


def sources(root: Path = LIBRARY) -> dict[str, str]:
    """Return the text of each file below a package's folder, by the name of its module; packages end in `.__init__`."""
    return {
        ".".join(path.relative_to(root.parent).with_suffix("").parts): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*.py"))
    }


@cache
def parsed(text: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a source."""
    return tuple(ast.walk(ast.parse(text)))


def imports(texts: dict[str, str], with_types: bool) -> nx.DiGraph:
    """Return a graph with an edge from each module to each that it imports, also inside functions.

    Imports for type checkers alone count if `with_types`; `from package import name` imports the module of this name
    if one exists, else the package.
    """
    modules = {name.removesuffix(".__init__"): name for name in texts}
    graph = nx.empty_graph(texts, create_using=nx.DiGraph)
    for name, text in texts.items():
        package, for_types = name.rpartition(".")[0], set[ast.AST]()
        for node in parsed(text):
            if isinstance(node, ast.If) and not with_types and ast.unparse(node.test) == "TYPE_CHECKING":
                for_types |= set(node.body)
            targets = []
            if isinstance(node, ast.Import) and node not in for_types:
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node not in for_types:
                source = resolve_name("." * node.level + (node.module or ""), package)
                targets = [each if (each := f"{source}.{a.name}") in modules else source for a in node.names]
            graph.add_edges_from((name, modules[each]) for each in targets if modules.get(each, name) != name)
    return graph


def package_of(module: str) -> str:
    """Return the package of a module: "nn" for `fsa2lrnn.nn.scans.cpu`, `BASE` for a module at the top."""
    parts = module.split(".")
    return parts[1] if len(parts) > 2 else BASE


def comments(text: str) -> int:
    """Count the lines that hold only a comment, without directives to tools.

    >>> comments("# one\\nx = 1  # not alone\\n    # two\\n# noqa: F401\\n")
    2
    """
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(
        token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip() and not PRAGMA.match(token.string)
        for token in tokens
    )


def any_annotations(text: str) -> int:
    """Count the lines with a parameter, field or variable whose annotation is `Any` alone.

    >>> any_annotations("x: Any = 1\\ndef f(a: Any, *b: Any, c: list[Any]) -> Any: ...")
    2
    """
    annotations = [node.annotation for node in parsed(text) if isinstance(node, ast.arg | ast.AnnAssign)]
    return len({each.lineno for each in annotations if isinstance(each, ast.Name) and each.id == "Any"})


def undocumented(text: str) -> list[str]:
    """Return the private functions of `LONG` lines or more, decorators not counted, that have no docstring."""
    return [
        node.name
        for node in parsed(text)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("_")
        and not node.name.startswith("__")
        and (node.end_lineno or 0) - node.lineno + 1 >= LONG
        and ast.get_docstring(node) is None
    ]


def one_importer(texts: dict[str, str]) -> set[str]:
    """Return the modules that exactly one other imports, without packages."""
    graph = imports(texts, with_types=True)
    return {name for name in texts if graph.in_degree(name) == 1 and not name.endswith("__")}


def counts(texts: dict[str, str]) -> str:
    """Return lines and files per package and the other counts, as Markdown."""
    packages: dict[str, list[str]] = {}
    for name in texts:
        packages.setdefault(package_of(name), []).append(name)
    single = one_importer(texts)
    columns: dict[str, Callable[[str], int]] = {
        "lines": lambda name: len(texts[name].splitlines()),
        "files": lambda _: 1,
        "comment lines": lambda name: comments(texts[name]),
        "`Any`": lambda name: any_annotations(texts[name]),
        "undocumented": lambda name: len(undocumented(texts[name])),
        "one importer": lambda name: name in single,
    }
    rows = [f"| package | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for title, names in [*sorted(packages.items()), ("**all**", list(texts))]:
        rows.append(f"| {title} | {' | '.join(f'{sum(map(count, names)):,}' for count in columns.values())} |")
    numbers = Counter(name.rpartition(".")[2] for name in texts)
    twice = sorted(name for name, n in numbers.items() if n > 1 and not name.startswith("__"))
    rows += ["", f"File names that stand more than once: {len(twice)} ({', '.join(twice)})."]
    for folder in ("tests", "verify", "experiments"):
        others = sources(ROOT / folder).values()
        rows.append(f"`{folder}/`: {sum(len(text.splitlines()) for text in others):,} lines, {len(others)} files.")
    return "\n".join(rows)


def figure(texts: dict[str, str]) -> str:
    """Return the packages as boxes with an arrow from each to those that import it directly, as SVG.

    An arrow that follows from others is left out.
    """
    from experiments.boxes import boxes

    graph = nx.empty_graph(map(package_of, texts), create_using=nx.DiGraph)
    arrows = {(package_of(name), package_of(target)) for name, target in imports(texts, with_types=False).edges}
    graph.add_edges_from((there, here) for here, there in arrows - ALSO_DOWN if here != there)
    graph.remove_node(BASE)
    reduced = nx.transitive_reduction(graph)
    rank = {name: i for i, names in enumerate(nx.topological_generations(reduced)) for name in names}
    names = sorted(rank)
    drawn = sorted((names.index(a), names.index(b)) for a, b in reduced.edges)
    title = "The packages of fsa2lrnn and what they build on"
    return boxes(title, [[name] for name in names], [rank[name] for name in names], drawn, [])


def files_entered(job: Callable[[], object], root: Path = LIBRARY) -> set[str]:
    """Run a job and return the files below a folder in which at least one function was called.

    The bodies of modules and classes do not count, nor what they call while a module is imported. Functions that numba
    compiled are not seen.
    """
    files, importing = set[str](), Counter[int]()

    def note(frame: FrameType, event: str, _: object) -> None:
        code, thread = frame.f_code, threading.get_ident()
        if code.co_name == "<module>":
            importing[thread] += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and code.co_flags & inspect.CO_OPTIMIZED and not importing[thread]:
            files.add(code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        job()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {path.relative_to(root).as_posix() for name in files if (path := Path(name)).is_relative_to(root)}


def regex_to_model(folder: Path) -> Callable[[], object]:
    """Prepare compiling a regular expression and saving the model."""
    from fsa2lrnn import MooreMachine, compile_machine, save

    return lambda: save(compile_machine(MooreMachine.from_source("regex:(ab)*")), folder / "model.safetensors")


def proof(_: Path) -> Callable[[], object]:
    """Prepare the proof that a compiled model equals its machine on all words."""
    from fsa2lrnn import MooreMachine, compile_machine, prove_equivalent

    model = compile_machine(machine := MooreMachine.from_source("regex:(ab)*"))
    return lambda: prove_equivalent(model, machine)


def three_steps(folder: Path) -> Callable[[], object]:
    """Prepare three training steps on parity, with the evaluation after them and the files of the run."""
    from fsa2lrnn.training.settings import preset
    from fsa2lrnn.training.train import train

    settings = preset("quick", "task:parity", steps=3, threads=1)
    return lambda: train(settings, folder / "run")


def export_to_olmo_hybrid(folder: Path) -> Callable[[], object]:
    """Prepare the export of parity into a whole OLMo-Hybrid model, which is loaded and proved."""
    from fsa2lrnn import MooreMachine
    from fsa2lrnn.export.whole_model import export

    machine = MooreMachine.from_source("task:parity")
    return lambda: export(machine, "olmo-hybrid", folder / "model")


def certified_length(_: Path) -> Callable[[], object]:
    """Prepare loading a trained model and certifying a length up to which it is correct on every word."""
    from fsa2lrnn import MooreMachine, certify, load

    path = ROOT / "experiments" / "models" / "even5" / "seed-4.safetensors"
    machine = MooreMachine.from_source("task:even_pair(5)")
    return lambda: certify(load(path), machine)


JOURNEYS = {
    "a regular expression to a saved model": regex_to_model,
    "`prove_equivalent` of a compiled model": proof,
    "three training steps": three_steps,
    "`export` to olmo-hybrid": export_to_olmo_hybrid,
    "`certify` of a trained model": certified_length,
}


def _files_of_journey(title: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        return sorted(files_entered(JOURNEYS[title](Path(folder))))


def main(
    with_journeys: Annotated[
        bool, typer.Option("--journeys", help="also count the files that five jobs enter: two minutes")
    ] = False,
) -> None:
    """Write the figure of the packages and print the counts."""
    from fsa2lrnn.files import write_atomically

    texts = sources()
    write_atomically(FIGURE, figure(texts).encode())
    print(counts(texts))
    if with_journeys:
        for title in JOURNEYS:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                files = pool.submit(_files_of_journey, title).result()
            print(f"\n{title} enters {len(files)} files: {', '.join(files)}", flush=True)


if __name__ == "__main__":
    script.run(main)
