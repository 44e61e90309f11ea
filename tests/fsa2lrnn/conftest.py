"""What compiled loops must do, whatever they compute."""

import pytest
import torch

from fsa2lrnn.lrnn.compiled import threads


@pytest.fixture
def same_by_any_threads(monkeypatch):
    """Asserts that a function's tensors are the same to the bit by 1, 2 and 3 threads, however little work there is."""
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    before = torch.get_num_threads()

    def check(results):
        found = []
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            found.append(results())
        for others in found[1:]:
            assert all(torch.equal(one, other) for one, other in zip(found[0], others, strict=True))

    yield check
    torch.set_num_threads(before)
