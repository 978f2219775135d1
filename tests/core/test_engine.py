"""Intervals as a whole: laws on any small data, honesty against draws, and what they may cost."""

import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, gammaln

import bayesatk as bk
from bayesatk.core.engine.distribution import LEVELS
from bayesatk.core.pooling.states import States
from bayesatk.metrics.grid import parse
from bayesatk.posterior.right_wrong import RightWrongModel
from bayesatk.priors import BetaPrior, HyperPrior

METRICS = ("pass@1", "pass@4", "pass^2", "maj@3")
ENDS = np.array([0.025, 0.975])

# ------------------------------------------------------------------ laws

question = st.integers(1, 5).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(max_examples=30)
@given(
    data=st.lists(question, min_size=1, max_size=6),
    metric=st.sampled_from(METRICS),
    prior=st.sampled_from([HyperPrior(), HyperPrior(families="beta"), BetaPrior(1.0, 1.0)]),
)
def test_laws_of_quantiles(
    data: list[tuple[int, int]], metric: str, prior: HyperPrior | BetaPrior
) -> None:
    """Quantiles rise within the scale, their error is known, and they average to the mean."""
    successes, trials = (list(part) for part in zip(*data, strict=True))
    pooling = "partial" if isinstance(prior, HyperPrior) else "none"
    found = RightWrongModel(pooling, States.of(successes, trials), prior).fit(parse(metric))
    (one,) = found.distributions()[0]
    ends = one.quantile(LEVELS)
    assert (np.diff(ends) >= 0.0).all()
    assert 0.0 <= ends[0] < ends[-1] <= 1.0
    stated_error = one.stated_error(LEVELS)
    assert np.isfinite(stated_error).all()
    assert (stated_error > 0.0).all()
    levels = (np.arange(5000) + 0.5) / 5000
    values, stated = one.quantile(levels), one.stated_error(levels)
    allowed = max(2e-3 * float(np.ptp(one.quantile(ENDS))), float(stated.mean()))
    assert abs(values.mean() - found.mean[0, 0]) <= allowed


@settings(max_examples=15)
@given(
    data=st.lists(question, min_size=1, max_size=6),
    metric=st.sampled_from(METRICS),
    pooling=st.sampled_from(["partial", "none"]),
)
def test_evaluate_neither_raises_nor_warns(
    data: list[tuple[int, int]], metric: str, pooling: str
) -> None:
    """Not even where numpy is told to raise for every kind of rounding, underflow included."""
    successes, trials = (list(part) for part in zip(*data, strict=True))
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        fit = bk.evaluate((successes, trials), metric, pooling=pooling, draws=50, rng=1)
    one = fit["closed_form"][parse(metric)[0].family.variable]
    assert np.isfinite(one.sel(statistic=["mean", "sd"]).values).all()
    assert np.isfinite(one.sel(statistic=["ci_lower", "ci_upper"], target="questions").values).all()


# ------------------------------------------------------------------ honesty

SHAPES = [(1, 1), (0.5, 0.5), (2, 1), (5, 0.5), (0.3, 3), (20, 20), (0.2, 0.2), (5, 20)]
CREDITS = {"pass@1": lambda p: p, "pass@4": lambda p: 1 - (1 - p) ** 4, "pass^2": np.square}
SIZE = 100_000


def ordinary(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Successes and trials of a few questions, balanced or ragged, some hopeless."""
    rng = np.random.default_rng([710, seed])
    questions, most = int(rng.choice([1, 2, 3, 5, 8, 12, 20])), int(rng.choice([1, 2, 4, 8]))
    ragged = rng.random() < 0.4
    trials = rng.integers(1, most + 1, questions) if ragged else np.full(questions, most)
    p = rng.beta(*SHAPES[rng.integers(len(SHAPES))], questions)
    p[rng.random(questions) < 0.1 * (rng.random() < 0.3)] = 0.0
    return rng.binomial(trials, p), trials


def betaln(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Log Beta function that survives tiny arguments."""
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def log_posterior(x: np.ndarray, y: np.ndarray, successes, trials) -> np.ndarray:
    """Unnormalised log density of (logit mean, logit icc), both uniform a priori."""
    size = np.exp(-y)
    alpha, beta = expit(x) * size, expit(-x) * size
    logs = -np.logaddexp(0, -x) - np.logaddexp(0, x) - np.logaddexp(0, -y) - np.logaddexp(0, y)
    states, count = np.unique(np.stack([successes, trials]), axis=1, return_counts=True)
    for (c, n), times in zip(states.T, count, strict=True):
        logs = logs + times * (betaln(alpha + c, beta + (n - c)) - betaln(alpha, beta))
    return logs


def drawn_means(successes, trials, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draws of the means: a cell of a fine grid, a place in it, then every question."""
    low, high = np.full(2, -18.0), np.full(2, 18.0)
    for points in (181, 401):
        axes = [np.linspace(low[i], high[i], points) for i in (0, 1)]
        step = [axis[1] - axis[0] for axis in axes]
        logs = log_posterior(axes[0][:, None], axes[1][None, :], successes, trials)
        weight = np.exp(logs - logs.max())
        inside = [np.flatnonzero((weight > 1e-10).any(axis=1 - i)) for i in (0, 1)]
        low = np.array([axes[i][inside[i][0]] - step[i] for i in (0, 1)])
        high = np.array([axes[i][inside[i][-1]] + step[i] for i in (0, 1)])
    cell = rng.choice(weight.size, SIZE, p=weight.ravel() / weight.sum())
    place = np.stack(np.divmod(cell, points)) + rng.uniform(-0.5, 0.5, (2, SIZE))
    x, y = (axes[i][0] + step[i] * place[i] for i in (0, 1))
    size = np.exp(-y)
    alpha, beta = np.maximum(expit(x) * size, 1e-9), np.maximum(expit(-x) * size, 1e-9)
    total = {name: np.zeros(SIZE) for name in CREDITS}
    for c, n in zip(successes, trials, strict=True):
        p = rng.beta(alpha + c, beta + (n - c))
        for name, worth in CREDITS.items():
            total[name] += worth(p) / len(trials)
    return total


@pytest.mark.long
def test_stated_errors_hold_against_draws() -> None:
    """Ends of 95% intervals of 40 ordinary data sets, beside those of independent draws.

    Off by more than is stated and four standard errors of the draws' quantile: 1 in 100 at most.
    """
    wrong, checked = [], 0
    for seed in range(40):
        successes, trials = ordinary(seed)
        fit = bk.evaluate((successes, trials), list(CREDITS), difficulty="beta", draws=50, rng=1)[
            "closed_form"
        ]
        draws = drawn_means(successes, trials, np.random.default_rng([99, seed]))
        for metric in parse(" ".join(CREDITS)):
            own = fit[metric.family.variable].sel(k=metric.k, target="questions").squeeze()
            low, high, stated = (
                float(own.sel(statistic=each)) for each in ("ci_lower", "ci_upper", "ci_error")
            )
            values = np.sort(draws[f"{metric.family.symbol}{metric.k}"])
            slack = 4.0 * np.sqrt(ENDS * (1.0 - ENDS) / SIZE)
            least, most = np.quantile(values, ENDS - slack), np.quantile(values, ENDS + slack)
            for end, first, last in zip((low, high), least, most, strict=True):
                checked += 1
                if not first - stated <= end <= last + stated:
                    wrong.append((seed, metric.family.symbol, metric.k, end, first, last, stated))
    assert len(wrong) <= checked / 100, wrong


# ------------------------------------------------------------------ cost


@pytest.fixture(scope="module")
def unit() -> float:
    """CPU seconds of ten million additions in a loop, from two: what this machine is worth."""
    bk.evaluate([[1, 0], [1, 1]], "pass@1 pass^2", rng=1)  # imports
    start, total = time.process_time(), 0
    for number in range(2_000_000):
        total += number
    return 5.0 * (time.process_time() - start)


def ragged_counts() -> tuple[np.ndarray, np.ndarray]:
    """A hundred questions with 1 to 32 trials, most of them easy."""
    rng = np.random.default_rng(33)
    trials = rng.integers(1, 33, 100)
    return rng.binomial(trials, rng.beta(5, 0.5, 100)), trials


COSTS = {
    "ragged": (ragged_counts(), ["pass@1,4,16", "pass^4"]),
    "single trials": (([1] * 83 + [0] * 17, [1] * 100), ["pass@1,4", "pass^2"]),
    "all right": (([4] * 50, [4] * 50), ["pass@1,4", "pass^2"]),
    "huge k": (([0] * 3, [1] * 3), ["pass@1,1000,20000"]),
}


@pytest.mark.parametrize("name", COSTS)
def test_an_evaluation_costs_little(unit: float, name: str) -> None:
    """At most five times its budget of 1.5 units, so that a busy machine does not fail it."""
    counts, metrics = COSTS[name]
    start = time.process_time()
    bk.evaluate(counts, metrics, rng=1)
    assert time.process_time() - start < 5.0 * 1.5 * unit
