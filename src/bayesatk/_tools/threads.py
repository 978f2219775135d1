"""Linear algebra on one thread.

The matrices of an evaluation are small: a second thread doubles the processor time, and on busy
cores threads that wait for each other take longer than one alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Let libraries of linear algebra use one thread, then as many as before."""
    with threadpool_limits(1, user_api="blas"):
        yield
