"""Who may import whom: read from the source, so that a break shows before it hurts."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from fsa2lrnn.extra.huggingface import LAYERS
from fsa2lrnn.source_kinds import FORMATS

ROOT = Path(__file__).parent.parent
PACKAGES = ("fsa2lrnn", "verify", "experiments")

ALL = {"*"}  # of the library
# Rooms from the ground up; a room may import from those named.
MAY_IMPORT = {
    "fsa2lrnn": ALL,  # the door: its imports are loaded at first use
    "fsa2lrnn.errors": set(),
    "fsa2lrnn.deadline": {"errors"},
    "fsa2lrnn.optional": {"errors"},
    "fsa2lrnn.files": {"errors"},
    "fsa2lrnn.graph_kernels": set(),
    "fsa2lrnn.reading": {"errors"},
    "fsa2lrnn.rows": set(),
    "fsa2lrnn.source_kinds": set(),
    "fsa2lrnn.versions": {"fsa2lrnn"},
    "fsa2lrnn.symbols": {"errors", "reading"},
    "fsa2lrnn.multi_step": {"graph_kernels"},
    "fsa2lrnn.checker": set(),
    "fsa2lrnn.extra.report.drawing": {"errors", "extras", "symbols"},
    "fsa2lrnn.verdicts": {"drawing", "errors", "reading", "symbols"},
    "fsa2lrnn.automata": {"drawing", "errors", "files", "graph_kernels", "reading", "source_kinds", "symbols"},
    "fsa2lrnn.decomposition": {"automata", "deadline", "drawing", "errors", "rows", "symbols"},
    "fsa2lrnn.gates": {"errors", "rows"},
    "fsa2lrnn.recurrence": {"drawing", "errors", "gates", "symbols"},
    "fsa2lrnn.compile": {"automata", "decomposition", "errors", "gates", "recurrence"},
    "fsa2lrnn.families": {"automata", "compile", "deadline", "drawing", "errors", "recurrence", "symbols"},
    "fsa2lrnn.lrnn": {
        "checker", "drawing", "errors", "extras", "files", "graph_kernels", "leaps", "reading", "symbols",
    },
    "fsa2lrnn.lower": {"automata", "compile", "errors", "families", "gates", "lrnn", "recurrence"},
    "fsa2lrnn.extraction": {"automata", "deadline", "errors", "extras", "lrnn", "symbols"},
    "fsa2lrnn.tracing": {"automata", "errors", "graph_kernels", "lrnn", "symbols"},
    "fsa2lrnn.streaming": {
        "automata", "errors", "extraction", "graph_kernels", "leaps", "lrnn", "symbols", "tracing",
    },
    "fsa2lrnn.verification": {
        "automata", "checker", "deadline", "drawing", "errors", "extraction", "extras", "files", "lrnn", "reading",
        "recurrence", "symbols", "verdicts", "versions",
    },
    "fsa2lrnn.testing": {"automata", "errors", "extras", "judge", "lrnn", "recurrence", "symbols"},
    "fsa2lrnn.training": {
        "automata", "compile", "deadline", "decomposition", "drawing", "errors", "extraction", "extras", "families",
        "files", "judge", "lower", "lrnn", "reading", "recurrence", "source_kinds", "symbols", "verdicts",
    },
    "fsa2lrnn.repairing": {
        "automata", "deadline", "errors", "extraction", "extras", "judge", "lower", "lrnn", "verdicts",
    },
    "fsa2lrnn.extra.huggingface": {
        "automata", "deadline", "decomposition", "drawing", "errors", "extras", "files", "reading", "symbols",
        "verdicts", "versions",
    },
    "fsa2lrnn.extra.report": {
        "automata", "deadline", "drawing", "errors", "extraction", "extras", "files", "graph_kernels", "judge", "lower",
        "lrnn", "repairing", "symbols", "training", "verdicts", "versions",
    },
    "fsa2lrnn.cli": ALL,
    "fsa2lrnn.__main__": {"cli"},
    "verify": ALL,
    "experiments": ALL,
}  # fmt: skip
# Folders that a third party may take out of the package and run, and the packages of others that they need.
ALONE = {"fsa2lrnn.families.recheck": set(), "fsa2lrnn.checker": {"numpy", "safetensors"}}
# Modules that import what is named elsewhere, and what of ours that may be.
NAMED = {
    "fsa2lrnn": set(),  # the door
    "fsa2lrnn.optional": set(),  # packages of others
    "fsa2lrnn.lrnn.layers": set(),  # layers of users
    "fsa2lrnn.families.recheck.__main__": {"fsa2lrnn.families.recheck"},
    "fsa2lrnn.checker.__main__": {"fsa2lrnn.checker.program"},
    "fsa2lrnn.extra.huggingface": {f"fsa2lrnn.extra.huggingface.{file}" for file in LAYERS.values()},
    "fsa2lrnn.automata.formats": {
        f"fsa2lrnn.automata.{way.partition(':')[0]}" for f in FORMATS for way in (f.reader, f.writer) if way
    },
}
TORCH_FREE = (
    "checker", "deadline", "errors", "extras", "files", "graph_kernels", "reading", "rows", "source_kinds", "symbols",
    "verdicts", "automata", "decomposition", "drawing", "gates", "recurrence", "compile", "families",
)  # fmt: skip


def modules():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


@cache
def trees():
    return {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}


def room(module):
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "fsa2lrnn" else parts[0]


def imports(module, tree, known, typing):
    """Modules among `known` that a file imports anywhere, in functions too; with `typing`, what only type checkers see
    counts as well. Raises `AssertionError` for an import that can't be read from the source."""
    found, stack = set(NAMED.get(module, ())), [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not typing:
            stack += node.orelse
            continue
        stack += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = node.module
            if node.level:
                alone = next((name for name in ALONE if module == name or module.startswith(f"{name}.")), None)
                assert alone, f"{module} imports relatively: {ast.unparse(node)}"
                assert node.level == 1, f"{module} imports from beyond its folder: {ast.unparse(node)}"
                source = f"{alone}.{node.module}"
            names = {f"{source}.{alias.name}" for alias in node.names}
            found |= {name if name in known else source for name in names}
        elif isinstance(node, ast.Call) and name_of(node.func).endswith(("import_module", "__import__")):
            assert module in NAMED, f"{module} imports by a name that is not in its source: {ast.unparse(node)}"
    return sorted((found & known) - {module})


def name_of(called):
    """The last name of what is called, or what stands in its place."""
    return getattr(called, "attr", getattr(called, "id", ""))


def graph(trees, typing):
    """Which module imports which, from their sources."""
    edges = nx.DiGraph()
    edges.add_nodes_from(trees)
    edges.add_edges_from((m, name) for m, tree in trees.items() for name in imports(m, tree, set(trees), typing))
    return edges


@cache
def edges(typing):
    """Which module of ours imports which."""
    return graph(trees(), typing)


def circle(edges):
    """One circle of a graph, in words; None where there is none."""
    try:
        starts = [edge[0] for edge in nx.find_cycle(edges)]
    except nx.NetworkXNoCycle:
        return None
    return " → ".join([*starts, starts[0]])


def breaks(edges):
    """Imports of a room that may not know the other."""
    for module, name in edges.edges:
        here, there = room(module), room(name)
        may = name.startswith("fsa2lrnn") if MAY_IMPORT[here] == ALL else short(there) in MAY_IMPORT[here]
        if here != there and not may:
            yield f"{module} imports {name}"


def short(room):
    return room.removeprefix("fsa2lrnn.")


def without_the_door(edges):
    """All modules but `fsa2lrnn` itself, whose names are loaded at first use."""
    return edges.subgraph(set(edges) - {"fsa2lrnn"})


def test_every_room_says_what_it_may_know():
    assert set(MAY_IMPORT) == set(map(room, MODULES))


def test_a_room_imports_only_those_below_it():
    assert list(breaks(edges(typing=True))) == []


def test_modules_import_in_no_circle():
    assert circle(without_the_door(edges(typing=False))) is None


@pytest.mark.parametrize("alone", ALONE)
def test_checkers_import_themselves_and_what_they_need_alone(alone):
    files = {m: tree for m, tree in trees().items() if m == alone or m.startswith(f"{alone}.")}
    assert len(files) > 5
    for module, tree in files.items():
        assert [name for name in imports(module, tree, set(MODULES), typing=True) if name not in files] == []
        used = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        used |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level}
        assert {name.partition(".")[0] for name in used} <= sys.stdlib_module_names | ALONE[alone]


def test_rooms_import_in_no_circle():
    imported = without_the_door(edges(typing=True)).edges
    rooms = nx.DiGraph((room(m), room(name)) for m, name in imported if room(m) != room(name))
    assert circle(rooms) is None


def test_what_these_tests_must_object_to():
    """Made-up modules: a circle in functions, one of rooms that types alone make, a break, a name in a string."""
    deferred = {"fsa2lrnn.files": "def f():\n  import fsa2lrnn.rows", "fsa2lrnn.rows": "from fsa2lrnn import files"}
    typed = {
        "fsa2lrnn.lower.a": "if TYPE_CHECKING:\n    from fsa2lrnn.lrnn.b import B\nelse:\n    import fsa2lrnn.files",
        "fsa2lrnn.lrnn.b": "from fsa2lrnn.lower.a import A, C",
        "fsa2lrnn.files": "",
    }
    trees, of_types = ({m: ast.parse(text) for m, text in texts.items()} for texts in (deferred, typed))
    assert circle(graph(trees, typing=False)) == "fsa2lrnn.files → fsa2lrnn.rows → fsa2lrnn.files"
    assert circle(graph(of_types, typing=False)) is None
    assert circle(graph(of_types, typing=True)) == "fsa2lrnn.lower.a → fsa2lrnn.lrnn.b → fsa2lrnn.lower.a"
    assert list(breaks(graph(of_types, typing=False))) == [
        "fsa2lrnn.lower.a imports fsa2lrnn.files",
        "fsa2lrnn.lrnn.b imports fsa2lrnn.lower.a",
    ]
    upwards = {"fsa2lrnn.cli": ast.parse("import verify"), "verify": ast.parse("")}
    assert list(breaks(graph(upwards, typing=True))) == ["fsa2lrnn.cli imports verify"]
    for text, why in [("import_module(x)", "by a name that is not"), ("from . import x", "imports relatively")]:
        with pytest.raises(AssertionError, match=why):
            graph({"fsa2lrnn.rows": ast.parse(text)}, typing=True)


def test_what_needs_no_torch_does_not_load_it():
    names = [
        module for module in MODULES if room(module).removeprefix("fsa2lrnn.") in TORCH_FREE or module == "fsa2lrnn"
    ]
    code = f"import sys, importlib\nfor n in {names!r}: importlib.import_module(n)\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_help_of_the_command_line_loads_neither_torch_nor_numpy():
    code = "import sys, fsa2lrnn.cli\nassert not {'torch', 'numpy', 'networkx', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_network_knows_nothing_of_automata():
    names = [module for module in MODULES if module.startswith("fsa2lrnn.lrnn")]
    code = (
        f"import sys, importlib\nfor n in {names!r}: importlib.import_module(n)\n"
        "assert not [m for m in sys.modules if m.startswith('fsa2lrnn.automata')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tests_mirror_the_packages():
    missing = [
        module
        for module, path in MODULES.items()
        if path.name not in ("__init__.py", "__main__.py")
        and not mirror(path).exists()
        and room(module) != "fsa2lrnn.checker"  # what its files hold is tested by way of the program
    ]
    assert not missing


def mirror(path):
    relative = path.relative_to(ROOT)
    return ROOT / "tests" / relative.parent / f"test_{relative.name}"
