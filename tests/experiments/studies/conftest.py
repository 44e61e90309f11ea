"""What studies' tests share."""

import pytest


@pytest.fixture
def pool_here():
    """In the place of `ProcessPoolExecutor`: what is submitted runs here, when its result is asked for."""
    return PoolHere


class PoolHere:
    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, *arguments):
        return FutureHere(function, arguments)


class FutureHere:
    def __init__(self, function, arguments):
        self._call = function, arguments

    def result(self):
        function, arguments = self._call
        return function(*arguments)
