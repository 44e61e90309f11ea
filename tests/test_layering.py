"""Who may import whom: read from the source, so that a break shows before it hurts."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("fsa2lrnn", "verify", "experiments")

# Rooms from the ground up; a room may import from those named.
MAY_IMPORT = {
    "fsa2lrnn": set(),  # the door: its imports are loaded at first use
    "fsa2lrnn.errors": set(),
    "fsa2lrnn.extras": {"errors"},
    "fsa2lrnn.files": {"errors"},
    "fsa2lrnn.graph_kernels": set(),
    "fsa2lrnn.reading": {"errors"},
    "fsa2lrnn.rows": set(),
    "fsa2lrnn.versions": {"fsa2lrnn"},
    "fsa2lrnn.symbols": {"errors", "reading"},
    "fsa2lrnn.leaps": {"graph_kernels"},
    "fsa2lrnn.verdicts": {"errors", "reading", "symbols"},
    "fsa2lrnn.automata": {"errors", "files", "graph_kernels", "reading", "symbols"},
    "fsa2lrnn.decomposition": {"automata", "errors", "rows", "symbols"},
    "fsa2lrnn.gates": {"errors", "rows"},
    "fsa2lrnn.recurrence": {"errors", "gates", "symbols"},
    "fsa2lrnn.compile": {"automata", "decomposition", "errors", "gates", "recurrence"},
    "fsa2lrnn.families": {"automata", "compile", "errors", "recurrence", "symbols"},
    "fsa2lrnn.lrnn": {"errors", "extras", "files", "graph_kernels", "leaps", "reading", "symbols"},
    "fsa2lrnn.lower": {"automata", "compile", "errors", "families", "gates", "lrnn", "recurrence"},
    "fsa2lrnn.extraction": {"automata", "errors", "extras", "lrnn", "symbols"},
    "fsa2lrnn.streaming": {"automata", "errors", "extraction", "graph_kernels", "leaps", "lrnn", "symbols"},
    "fsa2lrnn.judge": {
        "automata", "errors", "extraction", "extras", "files", "lrnn", "reading", "recurrence", "symbols", "verdicts",
    },
    "fsa2lrnn.testing": {"automata", "errors", "extras", "lrnn", "recurrence", "symbols"},
    "fsa2lrnn.training": {
        "automata", "compile", "errors", "extras", "files", "lower", "lrnn", "reading", "recurrence",
    },
    "fsa2lrnn.repairing": {"automata", "errors", "extraction", "extras", "judge", "lower", "lrnn", "verdicts"},
    "fsa2lrnn.report": {
        "automata", "errors", "extraction", "extras", "files", "graph_kernels", "judge", "lower", "lrnn", "repairing",
        "training", "verdicts", "versions",
    },
    "fsa2lrnn.cli": {"fsa2lrnn"},
    "fsa2lrnn.__main__": {"cli"},
    "verify": {"fsa2lrnn"},
    "experiments": {"fsa2lrnn"},
}  # fmt: skip
TORCH_FREE = (
    "errors", "extras", "files", "graph_kernels", "reading", "rows", "symbols", "verdicts", "automata",
    "decomposition", "gates", "recurrence", "compile", "families",
)  # fmt: skip


def modules():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


def room(module):
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "fsa2lrnn" else parts[0]


def imports(path, deferred=True):
    """Modules of ours that a file imports; without `deferred`, only those loaded with the file itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree) if deferred else top_level(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {
                f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in MODULES else node.module
                for alias in node.names
            }
    return {name for name in found if name in MODULES}


def top_level(tree):
    """Statements run on import: neither in functions nor under TYPE_CHECKING."""
    stack = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            stack += list(ast.iter_child_nodes(node))


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_only_those_below_it(module):
    here = room(module)
    assert here in MAY_IMPORT, f"{here} is a new room: say in MAY_IMPORT what it may know"
    allowed = MAY_IMPORT[here]
    for name in imports(MODULES[module], deferred=here != "fsa2lrnn"):
        there = room(name)
        below = there == here or there.removeprefix("fsa2lrnn.") in allowed or there.split(".")[0] in allowed
        assert below, f"{module} imports {name}"


def test_no_cycle_of_imports():
    graph = {module: imports(path, deferred=False) - {module} for module, path in MODULES.items()}
    done, path = set(), []

    def visit(module):
        assert module not in path, " → ".join([*path[path.index(module) :], module])
        if module not in done:
            path.append(module)
            for name in sorted(graph[module]):
                visit(name)
            done.add(path.pop())

    for module in graph:
        visit(module)


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
        if path.name not in ("__init__.py", "__main__.py") and not mirror(path).exists()
    ]
    assert not missing


def mirror(path):
    relative = path.relative_to(ROOT)
    return ROOT / "tests" / relative.parent / f"test_{relative.name}"
