"""Certificates of many machines and families, and what breaks them."""

import copy

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import RejectedCertificate, recheck, represent
from fsa2lrnn.families.identities import FORCED

CASES = {
    f"{source} {family}": represent(zoo.from_task(source), family, short_words=False).to_json()
    for source in ("flip_flop", "sum_mod(3)", "length_mod(5)", "shift_register(2)", "ab_star", "group(S3)", "parity")
    for family in FORCED
}
OTHERS = {
    "S3 householder": represent(zoo.group("S3"), "householder").to_json(),
    "S3 liquid-s4": represent(zoo.group("S3"), "liquid-s4").to_json(),
    "parity liquid-s4-diagonal": represent(zoo.parity(), "liquid-s4-diagonal").to_json(),
    "subtraction(3) liquid-s4": represent(zoo.subtraction(3), "liquid-s4").to_json(),
}
REPRESENTABLE = [name for name, certificate in CASES.items() if certificate["verdict"] == "representable"]


def leaves(value, path=()):
    """Paths to every value in a JSON document, containers included."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, (*path, i))


def parent(certificate, path):
    for key in path[:-1]:
        certificate = certificate[key]
    return certificate


def changed(certificate, path, change):
    """A copy with `change` applied to the value at a path."""
    broken = copy.deepcopy(certificate)
    at = parent(broken, path)
    at[path[-1]] = change(at[path[-1]])
    return broken


def accepted(certificate):
    try:
        recheck(certificate)
    except RejectedCertificate:
        return False
    return True


def rejected(certificate, fault):
    with pytest.raises(RejectedCertificate, match=fault):
        recheck(certificate)


def at_path(value, path):
    """The value at a path."""
    return parent(value, (*path, None))


def projective_line(q):
    """The letters x ↦ x + 1 and x ↦ −1/x of the q + 1 points over a prime field, the last one infinity: PSL(2, q)."""
    inverted = [q, *(-pow(x, -1, q) % q for x in range(1, q)), 0]
    return np.array([[*((x + 1) % q for x in range(q)), q], inverted])
