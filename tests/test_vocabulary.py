"""Words that docs, docstrings, messages and identifiers avoid: `vocabulary.toml` holds the counts that are left.

The counts may fall and never rise; `python -m tests.test_vocabulary` writes them down after a rewrite.
"""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = Path(__file__).parent / "vocabulary.toml"


def words(name):
    """The words of an identifier, in lower case: "joint_walk" and "JointWalk" are both joint and walk."""
    return [word.lower() for part in name.split("_") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", part)]


def identifiers(tree):
    """The names that a module gives to something: classes, functions, arguments, variables, fields."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@cache
def sources():
    """The source and the syntax tree of each file of the library."""
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "fsa2lrnn").rglob("*.py"))]
    return [(text, ast.parse(text)) for text in texts]


def counts(vocabulary):
    """How often each word of the vocabulary occurs: in identifiers, and in sources and pages as a word or words."""
    named = Counter(word for _, tree in sources() for name in identifiers(tree) for word in set(words(name)))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = [*(path.read_text("utf-8") for path in pages), *(text for text, _ in sources())]
    text = re.sub(r"[\s#]+", " ", "\n".join(texts).lower())
    phrases = {phrase: occurrences(phrase, text) for phrase in vocabulary["prose"]}
    return {word: named[word] for word in vocabulary["identifiers"]}, phrases


def occurrences(phrase, text):
    """How often a text has a phrase that no letter or digit touches; several times faster than a regular expression."""
    n, at = 0, text.find(phrase)
    while at >= 0:
        n += not (text[at - 1 : at].isalnum() or text[at + len(phrase) : at + len(phrase) + 1].isalnum())
        at = text.find(phrase, at + 1)
    return n


def shared_names():
    """The class names that denote several classes."""
    names = Counter(node.name for _, tree in sources() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return sorted(name for name, n in names.items() if n > 1)


def vocabulary():
    return tomllib.loads(FILE.read_text("utf-8"))


def test_avoided_words_do_not_come_back():
    known = vocabulary()
    found = dict(zip(("identifiers", "prose"), counts(known), strict=True))
    more = {(kind, word): n for kind in found for word, n in found[kind].items() if n > known[kind][word]}
    assert not more, "use the terms of CONTRIBUTING.md in place of these"


def test_a_class_name_denotes_one_class():
    assert shared_names() == vocabulary()["classes"]["several"]


def test_what_this_counts():
    assert words("JointWalk_of_DNA") == ["joint", "walk", "of", "dna"]
    source = "def f(a, *, b=1):\n    c: int = 2\n    for d in a: e.g = d\nclass G: h = 1"
    assert sorted(identifiers(ast.parse(source))) == sorted("fabcdGh")


def main():
    names, phrases = counts(vocabulary())
    text = "# Words to avoid, and how often they still occur: tests/test_vocabulary.py.\n"
    for kind, found in (("identifiers", names), ("prose", phrases)):
        text += f"\n[{kind}]\n" + "".join(f'"{word}" = {n}\n' for word, n in sorted(found.items()))
    shared = ", ".join(f'"{name}"' for name in shared_names())
    FILE.write_text(f"{text}\n# Class names that denote several classes.\n[classes]\nseveral = [{shared}]\n", "utf-8")


if __name__ == "__main__":
    main()
