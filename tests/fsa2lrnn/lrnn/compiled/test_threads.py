"""What is shared out is done once, whole, by as many threads as it is worth, and what fails is told."""

import os
import signal
import warnings

import numpy as np
import pytest
import torch

from fsa2lrnn.lrnn import compiled as threads


def test_cuts_cover_everything_once():
    for total in range(12):
        for n_parts in range(1, 6):
            cuts = threads.cuts(total, n_parts)
            assert np.concatenate([np.arange(*cut) for cut in cuts]).tolist() == list(range(total))
            assert len(cuts) == max(1, min(total, n_parts))


@pytest.mark.parametrize(("multiplications", "wanted"), [(0, 1), (1, 1), (20, 2), (29, 2), (30, 3), (99, 3)])
def test_threads_are_as_many_as_torchs_and_as_the_work_is_worth(monkeypatch, multiplications, wanted):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 10)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert threads.thread_count(multiplications) == wanted


def test_more_parts_than_threads_wait_their_turn(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(threads, "_pool", None)
    seen = []
    threads.share(lambda _, part: seen.append(part), (torch.zeros(4),), threads.cuts(4, 4))
    assert seen == [(0, 1), (1, 2), (2, 3), (3, 4)]


@pytest.mark.parametrize("n_parts", [1, 3])
def test_a_kernel_gets_flat_arrays_that_are_the_tensors_memory(n_parts):
    tensor = torch.zeros(3, 4, requires_grad=True)

    def kernel(flat, step, part):
        flat[part[0] : part[1]] += step

    threads.share(kernel, (tensor, 5), threads.cuts(12, n_parts))
    assert tensor.tolist() == [[5.0] * 4] * 3


@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_a_job_raises_is_raised(n_threads):
    def fail():
        raise ArithmeticError("no")

    with pytest.raises(ArithmeticError, match="no"):
        threads.at_once([list, fail, list], n_threads)


def test_a_forked_child_has_threads_of_its_own():
    done = []
    threads.at_once([lambda: done.append(1)] * 3, 2)
    assert done == [1] * 3
    assert threads._pool.cache_info().currsize
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads, which are the point here
        child = os.fork()
    if not child:
        signal.alarm(20)  # where nobody does the work, waiting for it would never end
        threads.at_once([lambda: done.append(2)] * 3, 2)
        os._exit(0 if done == [1, 1, 1, 2, 2, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0
