"""Certificates of equivalence: all pairs of model state and machine state, as `fsa2lrnn.checker.pairs` replays them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from fsa2lrnn import symbols
from fsa2lrnn.automata.formats import json_file
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.files import write_atomically
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.verdicts import Coverage
from fsa2lrnn.verification.coverage import STEPPING, model_digest
from fsa2lrnn.verification.specification import Specification

FORMAT, VERSION = "fsa2lrnn-equivalence-certificate", 1


@dataclass(frozen=True, eq=False)
class PairsTable:
    """All reachable pairs of model state and machine state, first the pair of the empty word.

    Args:
        rows: uint8 (N, D), the bytes of the model states.
        states: int64 (N,), the machine states.
        successors: int64 (N, |Σ|), −1 where no position that follows counts.
        start_is_read: whether the output of the first pair is compared.
        letters: the number of letters read.
    """

    rows: np.ndarray
    states: np.ndarray
    successors: np.ndarray
    start_is_read: bool
    letters: int

    @property
    def read(self) -> slice:
        """The pairs whose outputs are compared."""
        return slice(0 if self.start_is_read else 1, None)


def write(
    path: Path, model: LRNN, machine: MooreMachine, goal: Specification, covers: Coverage, table: PairsTable
) -> None:
    """Write a proof by enumeration into one safetensors file, atomically.

    The file names the scans of `covers` that compute x_k from x_{k-1}, since the checker computes no others. The digest
    is that of the model's tables if it has tables, else of the model.

    Raises `UnsupportedFormat` for symbols that JSON cannot represent, and `OSError`.
    """
    is_read = np.ones(len(table.states), bool)
    is_read[0] = table.start_is_read
    outputs = np.where(is_read & goal.counts[table.states], goal.wanted[table.states], -1)
    value = {
        "format": FORMAT,
        "version": VERSION,
        "dtype": covers.arithmetic,
        "sha256": switched(model).sha256 if model.is_switched else model_digest(model),
        "scans": [scan for scan in covers.scans if scan in STEPPING],
        "environment": list(covers.environment),
        "empty_word": goal.empty_word,
        "machine": {name: part for name, part in json_file.to_value(machine).items() if name != "labels"},
        "ignore": [symbols.to_json(output) for output in goal.ignored],
    }
    arrays = {
        "states": np.ascontiguousarray(table.rows),
        "machine_states": table.states.astype(np.int64),
        "successors": table.successors.astype(np.int64),
        "outputs": outputs.astype(np.int64),
    }
    write_atomically(path, save(arrays, {"certificate": json.dumps(value)}))
