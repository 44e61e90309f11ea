"""Certificates of block sizes and factors, one of each kind, and copies of them with one value changed."""

import copy

from fsa2lrnn.automata import zoo
from fsa2lrnn.families.block_sizes import minimal_block
from fsa2lrnn.families.block_sizes.factor_bounds import factor_bounds


def _certificates():
    for name, machine, field in (
        ("chain, a field", zoo.sum_mod(5), "Q"),
        ("chain, absolutely irreducible", zoo.group("S3"), "C"),
        ("chain, several levels", zoo.even_pair(2), "R"),
        ("chain, simple", zoo.tomita(4), "R"),
    ):
        yield name, minimal_block(machine, field).impossible
    for name, machine, field in (
        ("blocks, rational", zoo.group("S3"), "Q"),
        ("blocks, a real field", zoo.sum_mod(5), "R"),
        ("blocks, a complex field", zoo.sum_mod(3), "C"),
    ):
        yield name, minimal_block(machine, field).to_json()
    yield "factors, too few", factor_bounds(zoo.group("S3")).impossible
    yield "factors, none does", factor_bounds(zoo.cerny(3)).impossible
    yield "factors, enough", factor_bounds(zoo.sum_mod(5)).to_json()


CERTIFICATES = dict(_certificates())


def with_value(certificate, path, value):
    broken = copy.deepcopy(certificate)
    at = broken
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return broken
