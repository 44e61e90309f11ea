"""Compiled loops in torch's threads."""

import os
import signal
import warnings

import pytest

from fsa2lrnn.nn import compiled


@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_a_job_raises_is_raised(n_threads):
    def fail():
        raise ArithmeticError("no")

    with pytest.raises(ArithmeticError, match="no"):
        compiled.at_once([list, fail, list], n_threads)


def test_a_forked_child_has_threads_of_its_own():
    done = []
    compiled.at_once([lambda: done.append(1)] * 3, 2)
    assert done == [1] * 3
    assert compiled._pool.cache_info().currsize
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads, which are the point here
        child = os.fork()
    if not child:
        signal.alarm(20)  # where nobody does the work, waiting for it would never end
        compiled.at_once([lambda: done.append(2)] * 3, 2)
        os._exit(0 if done == [1, 1, 1, 2, 2, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0
