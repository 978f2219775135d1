"""Shared data: small enough to be quick, ragged and extreme enough to be honest."""

import sys
from collections.abc import Iterator
from zlib import crc32

import numpy as np
import pytest
from hypothesis import settings

import bayesatk as bk

settings.register_profile("default", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("default")

collect_ignore_glob = ["logs/*.py"]  # they make the genuine logs, with tools of their own

# NUTS draws anew on every make of processor, and many tests ask whether it agrees: each may be
# wrong about a right formula this seldom. The planted errors are far outside it. Of two chains with
# 800 well mixed draws each, about one run in a hundred has an R-hat above 1.01 by chance, which is
# "inconclusive": tests that ask for "agree" sample 2,000, or four chains.
FALSE_ALARM = 1e-4
METRICS = "pass@1,4 pass^4 maj@3 g-pass@4:0.5 mg-pass@4 auc@4 bayes"


def plan_table(source, metric, **options):
    """The table of a plan."""
    return bk.table(bk.plan(source, metric, **options), "plan")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="I/N", help="only part I of N parts of the tests, from 0")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a part of the tests, chosen by name, so that all of N runs are all tests."""
    if config.getoption("part") is None:
        return
    part, parts = map(int, config.getoption("part").split("/"))
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (kept if crc32(item.nodeid.encode()) % parts == part else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@pytest.fixture(autouse=True)
def _no_figure_left() -> Iterator[None]:
    """Matplotlib warns of many open figures, and warnings are errors."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def ragged() -> bk.Outcomes:
    """Two systems, twelve questions, one to nine trials; all-right and all-wrong included."""
    rng = np.random.default_rng(20)
    trials = rng.integers(1, 10, (2, 12))
    successes = rng.binomial(trials, rng.beta(0.6, 0.6, (2, 12)))
    successes[0, :2] = [0, trials[0, 1]]
    return bk.tally(successes, trials=trials, systems=["a", "b"])


@pytest.fixture(scope="session", params=["partial", "none", "complete"])
def fit(request, ragged):
    """A closed-form result of each kind of pooling."""
    return bk.evaluate(ragged, METRICS, pooling=request.param, rng=5)
