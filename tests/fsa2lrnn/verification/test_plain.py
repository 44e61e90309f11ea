"""What the checker is given: numbers as they are, the same digest, and the library's errors for the checker's."""

import numpy as np
import pytest
import torch

from fsa2lrnn import checker
from fsa2lrnn.errors import Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.lrnn.switched import Readout, SwitchedAffine
from fsa2lrnn.verification import CertificateRefused
from fsa2lrnn.verification.plain import checked, library_errors, plain


def tables(dtype, layer_norm):
    torch.manual_seed(0)
    A, v, x0 = (torch.randn(*shape, dtype=dtype) for shape in ((2, 3, 2, 2), (2, 3, 2), (3, 2)))
    v[0, 0, 0] = -0.0
    parts = [torch.randn(*shape, dtype=dtype) for shape in ((4, 6), (4,), (2, 4), (2,), *([(6,)] * 2 * layer_norm))]
    return SwitchedAffine.of(A, v, x0, Readout(*parts))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_numbers_and_digest_are_those_of_the_tables(dtype, layer_norm):
    given = tables(dtype, layer_norm)
    found = plain(given)
    assert found.sha256 == given.sha256
    assert found.numbers["A"].dtype == given.A.numpy().dtype
    assert np.array_equal(found.weights["W2"], given.readout.W2.double().numpy())
    assert ("norm_weight" in found.numbers) == layer_norm


def test_other_dtypes_are_refused_by_name():
    with pytest.raises(UnsupportedFormat, match="computes in float16"):
        checked(tables(torch.float32, False).to(torch.float16))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [(checker.InvalidCertificate, CertificateRefused), (checker.UnsupportedInput, UnsupportedFormat)],
)
def test_errors_of_the_checker_are_the_librarys(theirs, ours):
    with pytest.raises(ours, match="the fault") as caught, library_errors():
        raise theirs("the fault")
    assert isinstance(caught.value, Fsa2LrnnError)
