"""Features are looked up by name, so no type checker sees what is asked of them: here all such uses are."""

import ast
from pathlib import Path

import pytest

from fsa2lrnn import registry

LIBRARY = Path(registry.__file__).parent


def feature_of(node):
    """Return the name of the feature that an expression looks up, else None."""
    while isinstance(node, ast.IfExp):  # `require(…) if asked else None`
        node = node.body
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("registry.require", "registry.find"):
        return node.args[0].value if isinstance(node.args[0], ast.Constant) else None
    return None


def uses(tree):
    """Yield each feature with a name that a module asks of it."""
    for scope in ast.walk(tree):
        if not isinstance(scope, (ast.FunctionDef, ast.Module)):
            continue
        named = {}
        for node in ast.walk(scope):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if (feature := feature_of(getattr(node, "value", None))) and isinstance(targets[0], ast.Name):
                named[targets[0].id] = feature
        for node in ast.walk(scope):
            if isinstance(node, ast.Attribute):
                value = node.value
                feature = named.get(value.id) if isinstance(value, ast.Name) else feature_of(value)
                if feature is not None:
                    yield feature, node.attr


USES = sorted({use for path in LIBRARY.rglob("*.py") for use in uses(ast.parse(path.read_text(encoding="utf-8")))})


@pytest.mark.parametrize(("feature", "name"), USES)
def test_a_feature_has_what_is_asked_of_it(feature, name):
    if (extra := registry.find(feature)) is None:
        pytest.skip("its extra is not installed")
    assert hasattr(extra, name)


def test_uses_are_read_from_the_code():
    assert ("distributed.replay", "GraphReplay") in USES
    assert ("gpu.scans", "dense") in USES
    assert len({feature for feature, _ in USES}) > 5
