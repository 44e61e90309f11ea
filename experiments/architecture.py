"""Draw the packages and their imports, and count lines and transitive imports: `python -m experiments.architecture`.

Writes docs/figures/architecture.svg and prints a table of lines per package; both are read from the source.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import networkx as nx

from experiments import script
from fsa2lrnn.draw.boxes import boxes
from fsa2lrnn.files import write_atomically

ROOT = Path(__file__).parent.parent
FIGURE = ROOT / "docs" / "figures" / "architecture.svg"
GROUPS = {  # boxes of the figure, lowest row first; a package that is not named is in the first box
    "errors, symbols, files …": (),
    "automata": ("automata",),
    "decomposition": ("decomposition",),
    "gates, recurrence, compile": ("gates", "recurrence", "compile"),
    "families": ("families",),
    "checker": ("checker",),
    "lrnn": ("lrnn",),
    "lower": ("lower",),
    "extraction": ("extraction", "tracing"),
    "verification": ("verification",),
    "training": ("training",),
    "testing": ("testing",),
    "draw": ("draw",),
    "cli": ("cli",),
    **{
        f"extra/{name}": (f"extra.{name}",)
        for name in sorted(
            path.name for path in (ROOT / "fsa2lrnn" / "extra").iterdir() if (path / "__init__.py").exists()
        )
    },
}
ENTRIES = {  # modules whose transitive imports the table states
    "fsa2lrnn.nn.model": "a network",
    "fsa2lrnn.checker.program": "the certificate checker",
    "fsa2lrnn.learning": "`learn`",
}


@cache
def sources() -> dict[str, str]:
    """Return the text of each module of the library, by name."""
    texts = {}
    for path in sorted((ROOT / "fsa2lrnn").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        texts[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return texts


@cache
def import_graph() -> nx.DiGraph:
    """Return a graph with an edge from each module to each that it imports, also in functions, but not for types."""
    graph = nx.DiGraph()
    graph.add_nodes_from(sources())
    for module, text in sources().items():
        pending: list[ast.AST] = [ast.parse(text)]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                pending += node.orelse
                continue
            pending += ast.iter_child_nodes(node)
            if isinstance(node, ast.Import):
                graph.add_edges_from((module, alias.name) for alias in node.names if alias.name in sources())
            elif isinstance(node, ast.ImportFrom):
                source = node.module or ""
                if node.level:  # relative imports stand in programs of one folder alone
                    source = f"{module.rpartition('.')[0]}.{source}"
                targets = {name if (name := f"{source}.{alias.name}") in sources() else source for alias in node.names}
                graph.add_edges_from((module, target) for target in targets if target in sources() and target != module)
    return graph


def package(module: str) -> str:
    """Return the package of a module: "lrnn", "extra.report"; a top-level module is its own package."""
    parts = module.split(".")[1:]
    return ".".join(parts[: 2 if parts[:1] == ["extra"] else 1])


def count(text: str) -> Counter[str]:
    """Count the lines of a source by kind: code, docstring, comment, blank.

    >>> count('def f():\\n    "Return 1."\\n    # one\\n\\n    return 1\\n')
    Counter({'code': 2, 'docstring': 1, 'comment': 1, 'blank': 1})
    """
    lines = text.splitlines()
    kinds = ["blank" if not line.strip() else "code" for line in lines]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                kinds[first.lineno - 1 : first.end_lineno] = ["docstring"] * (
                    (first.end_lineno or 0) - first.lineno + 1
                )
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and lines[token.start[0] - 1].lstrip().startswith("#"):
            kinds[token.start[0] - 1] = "comment"
    return Counter(kinds)


def lines_of(modules: Iterable[str]) -> Counter[str]:
    """Count the lines of several modules by kind."""
    return sum((count(sources()[module]) for module in modules), Counter[str]())


def reached(module: str) -> set[str]:
    """Return the modules that an import of one module imports, including itself and the packages that contain them."""
    graph = import_graph()
    modules, pending = set[str](), [module]
    while pending:
        name = pending.pop()
        if name in modules or name not in graph:
            continue
        modules.add(name)
        pending += graph.successors(name)
        if "." in name and name.rpartition(".")[0] != "fsa2lrnn":
            pending.append(name.rpartition(".")[0])
    return modules


def figure() -> str:
    """Return the packages as boxes with an arrow from each to those that import it directly, as SVG."""
    group_of = {name: group for group, names in GROUPS.items() for name in names}
    base = next(iter(GROUPS))
    graph = nx.DiGraph()
    for module, target in import_graph().edges:
        here, there = (group_of.get(package(name), base) for name in (module, target))
        # Machines and cascades draw themselves, by modules of `draw` that import neither; that arrow would lead down.
        if here in ("automata", "decomposition") and there == "draw":
            continue
        if here != there and "fsa2lrnn" not in (module, target):
            graph.add_edge(there, here)
    graph.remove_node(base)
    reduced = nx.transitive_reduction(graph)
    reduced.add_nodes_from(group for group in GROUPS if group != base)
    rank = {name: i for i, names in enumerate(nx.topological_generations(reduced)) for name in names}
    names = [name for name in GROUPS if name in rank]
    sizes = dict.fromkeys(GROUPS, 0)
    for module in sources():
        sizes[group_of.get(package(module), base)] += sum(count(sources()[module]).values())
    texts = [[name, f"{sizes[name]:,} lines"] for name in names]
    arrows = [(names.index(a), names.index(b)) for a, b in sorted(reduced.edges)]
    extras = [i for i, name in enumerate(names) if name.startswith("extra/")]
    return boxes(
        "The packages of fsa2lrnn and what they build on", texts, [rank[name] for name in names], arrows, extras
    )


def table() -> str:
    """Return lines per package and transitive imports, as Markdown."""
    packages: dict[str, list[str]] = {}
    for module in sources():
        packages.setdefault(package(module), []).append(module)
    top = [name for name in packages if "." not in name and len(packages[name]) == 1]
    packages["(top level)"] = [module for name in top for module in packages.pop(name)]
    rows = ["| package | code | docstrings | comments | all |", "|---|---|---|---|---|"]
    totals = {"core": Counter[str](), "extras": Counter[str]()}
    for name, modules in sorted(packages.items()):
        counts = lines_of(modules)
        totals["extras" if name.startswith("extra.") else "core"] += counts
        rows.append(_row(name, counts))
    rows += [_row(f"**{name}**", counts) for name, counts in totals.items()]
    rows += ["", "| imported by | files | lines |", "|---|---|---|"]
    for module, name in ENTRIES.items():
        modules = reached(module)
        rows.append(f"| {name} (`{module}`) | {len(modules)} | {sum(lines_of(modules).values()):,} |")
    return "\n".join(rows)


def _row(name: str, counts: Counter[str]) -> str:
    columns = (counts["code"], counts["docstring"], counts["comment"], sum(counts.values()))
    return f"| {name} | {' | '.join(f'{n:,}' for n in columns)} |"


def main() -> None:
    """Write the figure and print the table."""
    write_atomically(FIGURE, figure().encode())
    print(table())


if __name__ == "__main__":
    script.run(main)
