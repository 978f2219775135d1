"""Linear algebra runs on one thread inside, and on as many as before outside."""

from collections.abc import Iterator
from threading import Barrier, Thread

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

import bayesatk as bk
from bayesatk._tools.threads import one_thread
from bayesatk.results.result import Result


def _now() -> set[int]:
    scipy.linalg.inv(np.eye(2))  # SciPy has a library of its own
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    """As many as two cores have, whatever the tests were started with."""
    with threadpool_limits(2, user_api="blas"):
        if _now() != {2}:
            pytest.skip("the linear algebra of this NumPy has one thread")
        yield


def test_one_inside_and_as_before_outside() -> None:
    with one_thread():
        with one_thread():
            assert _now() == {1}
        assert _now() == {1}
    assert _now() == {2}


def test_an_analysis_uses_one_and_errors_put_it_back(monkeypatch) -> None:
    fit = bk.evaluate([[[1, 0]], [[1, 1]]], "pass@1", pooling="none", draws=2, rng=1)
    assert _now() == {2}
    seen = []

    def read(_: object) -> None:
        seen.append(_now())
        raise ValueError("stop")

    monkeypatch.setattr(Result, "of", read)
    with pytest.raises(ValueError, match="stop"):
        bk.checks.criticise(fit)
    assert seen == [{1}]
    assert _now() == {2}


def test_threads_of_python_that_overlap_put_it_back() -> None:
    both_in, first_out = Barrier(2), Barrier(2)

    def stay(leaves_first: bool) -> None:
        with one_thread():
            both_in.wait()
            if not leaves_first:
                first_out.wait()
        if leaves_first:
            first_out.wait()

    every = [Thread(target=stay, args=(first,)) for first in (True, False)]
    for one in every:
        one.start()
    for one in every:
        one.join()
    assert _now() == {2}
