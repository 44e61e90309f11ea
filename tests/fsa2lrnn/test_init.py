"""The door: every name of the contract is found, and none is loaded before it is asked for."""

import subprocess
import sys

import pytest

import fsa2lrnn


def test_every_name_is_found():
    assert {"Cascade", "choose", "decompose"} <= set(fsa2lrnn.__all__)
    for name in fsa2lrnn.__all__:
        assert getattr(fsa2lrnn, name) is not None
    assert dir(fsa2lrnn) == sorted(fsa2lrnn.__all__)
    assert isinstance(fsa2lrnn.decompose(fsa2lrnn.zoo.parity()).cascade, fsa2lrnn.Cascade)
    assert fsa2lrnn.choose(fsa2lrnn.zoo.parity()).form == "onehot"


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="module 'fsa2lrnn' has no attribute 'Mamba'"):
        _ = fsa2lrnn.Mamba


def test_decomposing_and_choosing_need_no_torch():
    code = "import sys, fsa2lrnn\nfsa2lrnn.choose(fsa2lrnn.zoo.even_pair(5))\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
