"""The study of selective layers: Mamba-3 with a certified length."""

import json

import pytest
import torch

from experiments import results_io
from experiments.studies.selective import first_error, rotations
from fsa2lrnn import MooreMachine, certify, check, save
from fsa2lrnn.automata.formats import json_file
from fsa2lrnn.checker.program import proved
from fsa2lrnn.errors import Fsa2LrnnError
from fsa2lrnn.nn.switched import as_tables, switched


@pytest.mark.parametrize("n", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_a_rotation_of_mamba_3_is_certified_up_to_a_length_below_its_first_error(n, tmp_path):
    """The decay of exp(−1.25) per letter ends all logits in zeros, so that the certified length is finite."""
    machine, model = MooreMachine.from_source(f"task:sum_mod({n})"), rotations(n, decay=1.0)
    tokens = torch.randint(n, (8, 60), generator=torch.Generator().manual_seed(0))
    assert (model(tokens).argmax(-1) == tokens.cumsum(1) % n).all()
    certificate = certify(model, machine, work=3e8)
    check(certificate, model)
    assert certificate.horizon >= 10
    assert certificate.horizon < first_error(model, machine) <= 100
    # The independent checker takes the tables.
    tables = as_tables(model)
    of_tables = certify(tables, machine, work=3e8)
    paths = [tmp_path / name for name in ("certificate.json", "model.safetensors", "machine.json")]
    of_tables.save(paths[0])
    save(tables, paths[1])
    paths[2].write_text(json_file.to_json(machine))
    assert f"at most {of_tables.horizon:,} letters" in proved(*paths)
    assert of_tables.horizon >= certificate.horizon
    claims = json.loads(paths[0].read_text())
    assert claims["sha256"] == switched(model).sha256
    with torch.no_grad():  # a mutant: one letter turns by a hundredth more
        model.recurrences[0].in_proj.weight[-1, 1] *= 1.1
    with pytest.raises(Fsa2LrnnError, match="model"):
        check(certificate, model)


def test_no_certificate_of_the_study_covers_a_counterexample():
    rows = results_io.read("selective")["results"]["trained"]
    assert {row["layer"] for row in rows} >= {"mamba3", "mamba3, constructed"}
    for row in rows:
        assert row["fails_at"] is None or row["certified"] < row["fails_at"]
        if row["layer"].startswith("mamba3,"):
            assert row["certified"] > 100
