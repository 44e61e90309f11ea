"""Facts of a small machine whose symbols would break a page that does not escape them."""

from dataclasses import replace

import pytest

from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.facts import LayerInternals, Model, ReportFacts
from fsa2lrnn.verdicts import Counterexample

NASTY = '<b a="1">&'


def lines(*shares):
    """Accuracies at 10, 100, … letters."""
    return [
        {
            "length": 10 ** (k + 1),
            "words": 50,
            **{
                name: {"accuracy": share, "interval": [max(share - 0.1, 0), min(share + 0.1, 1)]}
                for name in ("whole_word", "last_position")
            },
        }
        for k, share in enumerate(shares)
    ]


def inside(size):
    """Two letters, two heads of size 2."""
    swap, turn = [[0.0, size], [size, 0.0]], [[0.0, -size], [size, 0.0]]
    pairs = {0: [[size, 0.0], [-size, 0.0]], 1: [[0.0, size], [0.0, -size]]}
    points = [[1.0, 0.0, 0, 0], [-1.0, 0.1, 1, 0], [0.9, 0.1, 0, 1], [-0.8, 0.0, 1, 1]]
    return LayerInternals([[pairs[0], pairs[1]]] * 2, [[swap, turn]] * 2, points, [0])


@pytest.fixture
def facts():
    """A learned model that fails, its repair, which is proved, and the constructed one."""
    machine = DrawnMachine(["even", NASTY], ["a", NASTY], ["yes", "no"], [[0, 1], [1, 0]], 0)
    failure = Counterexample(("a", NASTY, "a"), ("yes", "no", "no"), ("yes", "no", NASTY))
    head = {
        "kind": "cyclic", "r2": [0.99], "cycle": {"letter": 1, "length": 2, "frequency": 1, "share": 0.5},
        "residual": 0.1, "step_error": 0.0, "beyond_circle": -0.01, "variance": 0.75,
    }  # fmt: skip
    idle = {**head, "kind": "unused", "r2": [], "cycle": None}
    probe = {"r2": 0.5, "worst_error": 0.25, "accuracy": 1.0}
    learned = Model(
        f"seed {NASTY}", "learned", parameters=1234, proved=2, failure=failure, searched="all short words",
        accuracy=lines(1.0, 0.5), inside=inside(0.9),
        alignment={"probe": probe, "heads": [head, idle], "carrying": [0], "needed": []},
        provenance={"command": f"fsa2lrnn train {NASTY}"},
    )  # fmt: skip
    repaired = Model(
        "repaired", "repaired", of=learned.name, proof="closed, 7 joint states", accuracy=lines(1.0, 1.0),
        inside=inside(1.0), notes={"change": "10 %"},
    )  # fmt: skip
    constructed = replace(repaired, name="constructed", kind="constructed", of=None, notes={})
    return ReportFacts(
        f"Parity {NASTY}", "task:parity", "1 May", machine, [learned, repaired, constructed], {"torch": "2"}
    )
