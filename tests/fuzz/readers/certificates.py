"""Readers of certificates: of horizons, of families and of refusals."""

from __future__ import annotations

import base64
import json
import sys
import tempfile
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fsa2lrnn import certify, check, compile_machine, prove_equivalent, represent, save, zoo
from fsa2lrnn.checker.errors import InvalidCertificate, UnsupportedInput
from fsa2lrnn.checker.program import proved
from fsa2lrnn.export import recheck as refusals
from fsa2lrnn.export.refuse import refuse
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.verification.certificate import Certificate, pack
from tests.fuzz.mutate import Reader, of_json
from tests.fuzz.readers.models import networks, of_tensors

recheck = sys.modules["fsa2lrnn.families.recheck"]  # in the package the name is the function's


@cache
def certificates() -> list[tuple[Certificate, Any]]:
    parity = zoo.parity()
    index, dense = networks()[1], networks()[0]
    found = [(certify(index, parity), index), (certify(dense, parity, 1), dense)]
    short = replace(found[0][0], horizon=4)
    stack = compile_machine(zoo.sum_mod(4), form="cascade")
    joint = certify(stack, zoo.sum_mod(4), method="joint sets", work=1e8)
    return [*found, (short, index), (joint, stack)]


@cache
def certificate_files() -> list[bytes]:
    return [json.dumps(certificate.to_json()).encode() for certificate, _ in certificates()]


@cache
def arrays() -> list[Any]:
    """Packed arrays: right ones, ones of other types and shapes, and bombs."""
    plain = [
        np.zeros(0), np.zeros((1, 1)), np.full(3, np.nan), np.full(4, 1e300), np.ones((2, 1, 2), bool), np.arange(3),
    ]  # fmt: skip
    bomb = base64.b64encode(zlib.compress(bytes(60 << 20), 9)).decode()
    bombs = [{"dtype": "float64", "shape": shape, "data": bomb} for shape in ([60 << 17], [3], [1 << 40], [0, 1 << 62])]
    empty = base64.b64encode(zlib.compress(b"")).decode()
    wrong = {"dtype": "bool", "shape": [1 << 24], "data": empty}, {"dtype": "O", "shape": [], "data": ""}
    return [*map(pack, plain), *bombs, *wrong]


def check_certificate(path: Path) -> object:
    certificate = Certificate.load(path)
    for other, model in certificates():
        if certificate.sha256 == other.sha256:
            check(certificate, model)
    return certificate


@cache
def proofs() -> tuple[tempfile.TemporaryDirectory[str], list[bytes]]:
    """A folder with the models and machines of proofs by enumeration, and their certificates."""
    place, files = tempfile.TemporaryDirectory(), []
    for name, machine in (("0", zoo.parity()), ("1", zoo.sum_mod(3))):
        folder, model = Path(place.name), compile_machine(machine)
        path = folder / f"{name}.certificate.safetensors"
        prove_equivalent(model, machine, certificate=path)
        save(model, folder / f"{name}.safetensors")
        (folder / f"{name}.json").write_text(machine.to_json(), encoding="utf-8")
        files.append(path.read_bytes())
    return place, files


def proof_files() -> list[bytes]:
    return proofs()[1]


def check_proof(path: Path) -> object:
    """Give the file to the checker with each model; the first refusal stands where none accepts it."""
    folder, refusal = Path(proofs()[0].name), None
    for name in ("0", "1"):
        try:
            return proved(path, folder / f"{name}.safetensors", folder / f"{name}.json")
        except (InvalidCertificate, UnsupportedInput) as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


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


@cache
def refusal_certificates() -> list[bytes]:
    pairs = ((zoo.parity(), "qwen3-next"), (zoo.parity(), "mamba"), (zoo.sum_mod(3), "olmo-hybrid"))
    return [json.dumps(refuse(machine, layer).to_json()).encode() for machine, layer in pairs]


def ran(main: Any, rejected: type[Exception]) -> Any:
    """Read as `python -m fsa2lrnn.families.recheck FILE` and `python recheck.py FILE` do."""

    def read(path: Path) -> object:
        try:
            return main([str(path)])
        except SystemExit as end:
            raise rejected(end.code) from None

    return read


READERS: dict[str, Reader] = {
    "proof certificate": Reader(
        proof_files, of_tensors(proof_files, "certificate"), check_proof, ".safetensors",
        (InvalidCertificate, UnsupportedInput, OSError), 500 << 20,
    ),
    "certificate": Reader(
        certificate_files, of_json(certificate_files, arrays), check_certificate,
        ".json", spare=500 << 20,
    ),
    "family certificate": Reader(
        family_certificates, of_json(family_certificates, of_families),
        ran(recheck.main, recheck.RejectedCertificate), ".json", (recheck.RejectedCertificate,), 500 << 20,
    ),
    "refusal certificate": Reader(
        refusal_certificates, of_json(refusal_certificates, of_families),
        ran(refusals.main, refusals.RejectedRefusal), ".json", (refusals.RejectedRefusal,),
    ),
}  # fmt: skip
