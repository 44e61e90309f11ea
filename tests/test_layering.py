"""Which package may import which, read from the source: docs/architecture.md in executable form."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from fsa2lrnn import registry
from fsa2lrnn.source_kinds import FORMATS

ROOT = Path(__file__).parent.parent
PACKAGES = ("fsa2lrnn", "verify", "experiments")

CORE, ALL = {"core"}, {"*"}  # all of the library but extras; all of the library
# Packages of the core from the ground up, and those that each may import.
MAY_IMPORT = {
    "fsa2lrnn": ALL,  # its imports are loaded at first use
    "fsa2lrnn.errors": set(),
    "fsa2lrnn.deadline": {"errors"},
    "fsa2lrnn.optional": {"errors"},
    "fsa2lrnn.registry": {"errors"},
    "fsa2lrnn.files": {"errors"},
    "fsa2lrnn.reading": {"errors"},
    "fsa2lrnn.rows": set(),
    "fsa2lrnn.family_names": set(),
    "fsa2lrnn.source_kinds": set(),
    "fsa2lrnn.versions": {"fsa2lrnn"},
    "fsa2lrnn.symbols": {"errors", "reading"},
    "fsa2lrnn.walks": set(),
    "fsa2lrnn.checker": set(),
    "fsa2lrnn.display": {"errors", "optional", "symbols"},
    "fsa2lrnn.scope": {"symbols"},
    "fsa2lrnn.verdicts": {"display", "errors", "reading", "scope", "symbols"},
    "fsa2lrnn.automata": {
        "deadline", "display", "errors", "files", "walks", "reading", "registry", "source_kinds", "symbols",
    },
    "fsa2lrnn.decomposition": {"automata", "deadline", "display", "errors", "registry", "rows", "symbols"},
    "fsa2lrnn.gates": {"errors", "rows"},
    "fsa2lrnn.recurrence": {"display", "errors", "gates", "symbols"},
    "fsa2lrnn.compile": {"automata", "decomposition", "display", "errors", "gates", "recurrence"},
    "fsa2lrnn.families": {
        "automata", "compile", "deadline", "display", "errors", "family_names", "recurrence", "registry", "symbols",
    },
    "fsa2lrnn.lrnn": {
        "checker", "display", "errors", "family_names", "files", "walks", "optional", "reading",
        "registry", "symbols",
    },
    "fsa2lrnn.lower": {"automata", "compile", "errors", "families", "gates", "lrnn", "recurrence"},
    "fsa2lrnn.extraction": {"automata", "deadline", "display", "errors", "lrnn", "optional", "symbols"},
    "fsa2lrnn.tracing": {"automata", "errors", "lrnn", "walks", "symbols"},
    "fsa2lrnn.verification": {
        "automata", "checker", "deadline", "display", "errors", "extraction", "files", "lrnn", "optional",
        "reading", "recurrence", "scope", "symbols", "verdicts", "versions",
    },
    "fsa2lrnn.testing": {"automata", "errors", "lrnn", "optional", "recurrence", "symbols", "verification"},
    "fsa2lrnn.training": {
        "automata", "compile", "deadline", "decomposition", "display", "errors", "extraction", "families",
        "files", "lower", "lrnn", "optional", "reading", "recurrence", "registry", "source_kinds", "symbols",
        "verdicts", "verification",
    },
    "fsa2lrnn.cli": CORE,
    "fsa2lrnn.__main__": {"cli"},
    "fsa2lrnn.extra": set(),
    "fsa2lrnn.extra.baselines": CORE,
    "fsa2lrnn.extra.block_size": CORE,
    "fsa2lrnn.extra.distributed": CORE,
    "fsa2lrnn.extra.gpu": CORE,
    "fsa2lrnn.extra.huggingface": CORE,
    "fsa2lrnn.extra.learning": CORE,
    "fsa2lrnn.extra.probes": set(),
    "fsa2lrnn.extra.repairing": CORE,
    "fsa2lrnn.extra.report": CORE,
    "fsa2lrnn.extra.selective": CORE,
    "verify": ALL,
    "experiments": ALL,
}  # fmt: skip
# Folders that a third party may take out of the package and run, and the packages of others that they need.
ALONE = {
    "fsa2lrnn.families.recheck": set(),
    "fsa2lrnn.checker": {"numpy", "safetensors"},
    "fsa2lrnn.extra.probes": {"torch", "pytest"},
}
_LAYER_FILES = [p for p in (ROOT / "fsa2lrnn/extra/huggingface").glob("*.py") if "\nLAYER = " in p.read_text("utf-8")]
# Modules that import what is named elsewhere, and what of ours that may be.
NAMED = {
    "fsa2lrnn": set(),  # the door
    "fsa2lrnn.optional": set(),  # packages of others
    "fsa2lrnn.automata.machine": set(),  # methods that call functions built on the class
    "fsa2lrnn.lrnn.layers": set(),  # layers of users
    "fsa2lrnn.families.recheck.__main__": {"fsa2lrnn.families.recheck"},
    "fsa2lrnn.checker.__main__": {"fsa2lrnn.checker.program"},
    "fsa2lrnn.extra.huggingface": {f"fsa2lrnn.extra.huggingface.{path.stem}" for path in _LAYER_FILES},
    "fsa2lrnn.extra.learning": set(),  # names of `public`, loaded at first use
    "fsa2lrnn.extra.repairing": set(),  # the same
    "experiments.probes.implementations": set(),  # packages of others
    "experiments.probes.on_gpu": set(),  # the same
    "experiments.probes.interpreted": {"experiments.probes.interpreted_dot"},  # after Triton is told to interpret
    "fsa2lrnn.automata.formats": {
        f"fsa2lrnn.automata.{way.partition(':')[0]}" for f in FORMATS for way in (f.reader, f.writer) if way
    },
}
TORCH_FREE = (
    "checker", "deadline", "errors", "files", "walks", "optional", "reading", "registry", "rows",
    "scope", "source_kinds", "symbols", "verdicts", "automata", "decomposition", "display", "gates", "recurrence",
    "compile", "families", "extra.block_size",
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


def package(module):
    """The package that a module belongs to: "fsa2lrnn.lrnn", "fsa2lrnn.extra.report", "verify"."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[:2] == ["fsa2lrnn", "extra"] else 2]) if parts[0] == "fsa2lrnn" else parts[0]


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


def is_core(name):
    return name.startswith("fsa2lrnn") and not name.startswith("fsa2lrnn.extra.")


def breaks(edges):
    """Imports of a package that may not be imported."""
    for module, name in edges.edges:
        here, there = package(module), package(name)
        rule = MAY_IMPORT[here]
        if rule == CORE:
            may = is_core(there)
        else:
            may = name.startswith("fsa2lrnn") if rule == ALL else there.removeprefix("fsa2lrnn.") in rule
        if here != there and not may:
            yield f"{module} imports {name}"


def without_root(edges):
    """All modules but `fsa2lrnn` itself, whose names are loaded at first use."""
    return edges.subgraph(set(edges) - {"fsa2lrnn"})


def test_every_room_says_what_it_may_know():
    assert set(MAY_IMPORT) == set(map(package, MODULES))


def test_a_room_imports_only_those_below_it():
    assert list(breaks(edges(typing=True))) == []


def test_modules_import_in_no_circle():
    assert circle(without_root(edges(typing=False))) is None


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
    imported = without_root(edges(typing=True)).edges
    packages = nx.DiGraph((package(m), package(name)) for m, name in imported if package(m) != package(name))
    assert circle(packages) is None


def test_what_these_tests_must_object_to():
    """Made-up modules: a circle in functions, one of packages that types alone make, a break, a name in a string."""
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
    sideways = {
        "fsa2lrnn.extra.report": ast.parse("import fsa2lrnn.extra.baselines.s4"),
        "fsa2lrnn.extra.baselines.s4": ast.parse("import fsa2lrnn.cli"),
        "fsa2lrnn.cli": ast.parse("import fsa2lrnn.extra.report"),
    }
    assert list(breaks(graph(sideways, typing=True))) == [
        "fsa2lrnn.extra.report imports fsa2lrnn.extra.baselines.s4",
        "fsa2lrnn.cli imports fsa2lrnn.extra.report",
    ]
    for text, why in [("import_module(x)", "by a name that is not"), ("from . import x", "imports relatively")]:
        with pytest.raises(AssertionError, match=why):
            graph({"fsa2lrnn.rows": ast.parse(text)}, typing=True)


def test_what_needs_no_torch_does_not_load_it():
    names = [
        module for module in MODULES if package(module).removeprefix("fsa2lrnn.") in TORCH_FREE or module == "fsa2lrnn"
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


def test_what_an_extra_declares_exists():
    """Every entry point names an object of the extra that it says, and each extra declares at least one."""
    points = [point for kind in ("layers", "commands", "features") for point in registry.declared(kind).values()]
    assert {point.module.split(".")[2] for point in points if registry.is_ours(point)} == {
        path.name for path in (ROOT / "fsa2lrnn/extra").iterdir() if (path / "__init__.py").exists()
    }
    assert all(point.load() is not None for point in points)
    assert all(
        name.split(".")[0] == point.module.split(".")[2] for name, point in registry.declared("features").items()
    )
