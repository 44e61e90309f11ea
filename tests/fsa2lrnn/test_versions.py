import torch

from fsa2lrnn import __version__
from fsa2lrnn.versions import environment, versions


def test_the_versions_are_those_that_compute():
    found = versions()
    assert found["torch"] == torch.__version__
    assert found["fsa2lrnn"] == __version__


def test_the_environment_names_what_decides_on_the_order_of_sums(monkeypatch):
    before = environment()
    assert before[:2] == (f"torch {torch.__version__}", f"CPU capability {torch.backends.cpu.get_cpu_capability()}")
    assert before[2].startswith(("MKL 2", "BLAS "))
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert set(environment()) - set(before) == {"MKL_CBWR=COMPATIBLE", "OPENBLAS_CORETYPE=Haswell"}
    was_on = torch.backends.mkldnn.enabled
    torch._C._set_mkldnn_enabled(False)
    try:
        assert "oneDNN off" in environment()
    finally:
        torch._C._set_mkldnn_enabled(was_on)
