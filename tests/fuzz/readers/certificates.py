"""Readers of certificates: of horizons and of families."""

from __future__ import annotations

import base64
import json
import sys
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import represent
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.judge.certificate import Certificate
from fsa2lrnn.judge.certify import certify
from fsa2lrnn.judge.check import check
from fsa2lrnn.judge.packing import pack
from tests.fuzz.base import Reader
from tests.fuzz.readers.hostile import of_json
from tests.fuzz.readers.models import networks

recheck = sys.modules["fsa2lrnn.families.recheck"]  # in the package the name is the function's
Rejected = recheck.Rejected


@cache
def certificates() -> list[tuple[Certificate, Any]]:
    parity = zoo.parity()
    index, dense = networks()[1], networks()[0]
    found = [(certify(index, parity), index), (certify(dense, parity, 1), dense)]
    short = replace(found[0][0], horizon=4)
    return [*found, (short, index)]


@cache
def certificate_files() -> list[bytes]:
    return [json.dumps(certificate.to_json()).encode() for certificate, _ in certificates()]


@cache
def arrays() -> list[Any]:
    """Packed arrays: right ones, ones of other types and shapes, and bombs."""
    plain = [
        np.zeros(0),
        np.zeros((1, 1)),
        np.full(3, np.nan),
        np.full(4, 1e300),
        np.ones((2, 1, 2), bool),
        np.arange(3),
    ]
    bomb = base64.b64encode(zlib.compress(bytes(60 << 20), 9)).decode()
    bombs = [{"dtype": "float64", "shape": shape, "data": bomb} for shape in ([60 << 17], [3], [1 << 40], [0, 1 << 62])]
    empty = base64.b64encode(zlib.compress(b"")).decode()
    return [
        *map(pack, plain),
        *bombs,
        {"dtype": "bool", "shape": [1 << 24], "data": empty},
        {"dtype": "O", "shape": [], "data": ""},
    ]


def check_certificate(path: Path) -> object:
    certificate = Certificate.load(path)
    for other, model in certificates():
        if certificate.sha256 == other.sha256:
            check(certificate, model)
    return certificate


BLOCKS = ("householder", "block(1)", "block(2)", "householder(1)", "householder(2)")


@cache
def family_certificates() -> list[bytes]:
    found = [
        represent(zoo.from_task(task), family, short_words=False)
        for task in ("flip_flop", "sum_mod(3)", "ab_star", "group(S3)", "shift_register(2)", "length_mod(5)")
        for family in (*FORCED, "liquid-s4", "liquid-s4-diagonal", *BLOCKS)
    ]
    return [json.dumps(verdict.to_json()).encode() for verdict in found if hasattr(verdict, "to_json")]


@cache
def of_families() -> list[Any]:
    return [
        "1/3", "1/" + "7" * 4_000, "9" * 4_000, [[0, 10**300]], [[1, -1]], 4_620, 5_000, 10**9, [["1"] * 100] * 50,
        "lti", "impossible", "representable", "householder", [0, 0], [[0, 1]] * 2_000, {"frozenset": [1, 2]},
    ]  # fmt: skip


def recheck_file(path: Path) -> object:
    """As `python -m fsa2lrnn.families.recheck certificate.json` does."""
    try:
        return recheck.main([str(path)])
    except SystemExit as end:
        raise Rejected(end.code) from None


READERS: dict[str, Reader] = {
    "certificate": Reader(certificate_files, of_json(certificate_files, arrays), check_certificate, ".json"),
    "family certificate": Reader(
        family_certificates, of_json(family_certificates, of_families), recheck_file, ".json", (Rejected,)
    ),
}
