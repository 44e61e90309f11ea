"""What a model's gates may make of its tables is bounded by the checker; two models that broke the old guess."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.switched import as_tables, switched
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import CertificateRefused, check
from fsa2lrnn.verification.slack import slack_of
from verify.soundness.models import Drawn, model

CANCELLING = Drawn("none", 3e4, True, 1e-3, False, False, 0)


def apart(made):
    """By how much A differs where a letter is read alone: the largest difference."""
    u, tables = made.first_inputs(), switched(made)
    with torch.no_grad():
        alone = torch.cat([made.recurrences[0].tables(row[None], "reference")[0] for row in u])
    return (alone - tables.A).abs().double().numpy(), 16 * 2.0**-23 * float(tables.A.abs().max())


@pytest.mark.parametrize("drawn", [CANCELLING, replace(CANCELLING, rule="released", seed=2)])
def test_what_gates_that_cancel_can_do_is_covered(drawn):
    """16 units in the last place of the largest entry, the old guess, was exceeded many times."""
    off, guess = apart(model(drawn, zoo.sum_mod(3)))
    assert off.max() > 10 * guess
    assert (off <= slack_of(model(drawn, zoo.sum_mod(3))).A).all()


def test_tables_that_are_given_and_look_ups_need_none():
    made = model(CANCELLING, zoo.sum_mod(3))
    assert slack_of(switched(made)) == Slack(0.0, 0.0)
    assert slack_of(switched(made), 1e-3) == Slack(1e-3, 1e-3)
    assert not slack_of(as_tables(made)).A.any()
    assert np.allclose(slack_of(made, 1e-3).A - slack_of(made).A, 1e-3)


def test_a_horizon_of_tables_is_none_of_gates_that_make_them_otherwise():
    made = model(CANCELLING, zoo.sum_mod(3))
    of_tables = certify(switched(made), zoo.sum_mod(3), 1)
    assert of_tables.horizon > 15
    check(of_tables, switched(made))
    check(of_tables, as_tables(made))
    with pytest.raises(CertificateRefused, match=r"the output may be wrong|is claimed"):
        check(of_tables, made)
    assert certify(made, zoo.sum_mod(3), 1).horizon == 0


def test_what_is_certified_of_gates_is_accepted_again():
    made = model(replace(CANCELLING, weight=30.0), zoo.sum_mod(3))
    certificate = certify(made, zoo.sum_mod(3), 1)
    assert certificate.horizon > 3
    check(certificate, made)


def test_where_nothing_is_bounded_a_model_is_refused():
    made = model(replace(CANCELLING, rule="released", weight=1e6), zoo.sum_mod(3))
    with pytest.raises(UnsupportedFormat, match=r"nothing bounds .* LRNN\.from_affine\(switched\(model\)\)"):
        slack_of(made)


def test_a_slack_that_is_none_is_refused():
    for more in (-1.0, np.nan, np.inf):
        with pytest.raises(UnsupportedFormat, match="slack = "):
            slack_of(switched(model(CANCELLING, zoo.sum_mod(3))), more)
