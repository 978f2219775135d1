"""Counts of up to 10^9 trials: exact values, and a cost that does not grow with the trials."""

import tracemalloc
from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pandas as pd
import pytest

import bayesatk as bk
from bayesatk.core.pooling.states import States
from bayesatk.core.question.categorical import category_finite, category_moments
from bayesatk.core.question.expected_credit import finite
from bayesatk.metrics import credit as credits
from bayesatk.metrics.category_credit import CategoryCredit
from bayesatk.metrics.credit import Credit
from bayesatk.posterior.model import CountModel
from bayesatk.priors import BetaPrior
from tests import witness

BUILDERS = {
    "pass@": credits.pass_at,
    "pass^": credits.pass_hat,
    "maj@": credits.maj_at,
    "mg-pass@": credits.mg_pass_at,
    "auc": credits.auc_at,
    "g-pass@": lambda k: credits.g_pass_at(k, 0.9),
    "general": lambda k: Credit.of(np.linspace(0.0, 1.0, k + 1) ** 2),
}
BILLION = 10**9
EVALUATE = bk.evaluate  # imported here, where nothing raises


@pytest.fixture(autouse=True)
def strict():
    """Nothing overflows, underflows or divides by zero unnoticed."""
    with np.errstate(all="raise"):
        yield


def _exact(credit: Credit, c: int, n: int) -> Fraction:
    """Hypergeometric expectation in integers."""
    k, total = credit.k, Fraction(0)
    low, high = max(0, k - (n - c)), min(k, c)
    ways = comb(c, low) * comb(n - c, k - low)
    for j in range(low, high + 1):
        total += Fraction(float(credit.vector[j])) * ways
        ways = ways * (c - j) * (k - j) // ((j + 1) * (n - c - k + j + 1))
    return total / comb(n, k)


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("trials", [5000, 10**6, BILLION])
def test_finite_law_of_many_trials(name: str, trials: int) -> None:
    counts = [0, 1, 2, trials // 100, trials // 3, trials - trials // 50, trials - 1, trials]
    for k in (1, 2, 8, 33, 300):
        credit = BUILDERS[name](k)
        found = finite(credit, counts, trials)
        for c, value in zip(counts, found, strict=True):
            exact = _exact(credit, c, trials)
            if 0 < exact < Fraction(1, 10**290):
                assert value <= 1e-289  # beyond the range of double precision
            else:
                assert witness.relative_error(value, exact) <= 1e-14


@pytest.mark.parametrize("c", [BILLION // 2, BILLION - 10**7])
def test_finite_law_of_many_draws(c: int) -> None:
    maj = credits.maj_at(1001)
    assert witness.relative_error(finite(maj, c, BILLION), _exact(maj, c, BILLION)) <= 1e-13
    exact = Fraction(comb(c, 1000), comb(BILLION, 1000))
    assert witness.relative_error(finite(credits.pass_hat(1000), c, BILLION), exact) <= 1e-13
    ratios = (BILLION - 10**7 - np.arange(20_000.0)) / (BILLION - np.arange(20_000.0))
    found = finite(credits.pass_hat(20_000), BILLION - 10**7, BILLION)
    assert float(found) == pytest.approx(np.prod(ratios), rel=1e-12)


def test_estimates_cost_nothing_of_the_size_of_the_trials() -> None:
    tracemalloc.start()
    finite(credits.auc_at(64), np.arange(1000) * 10**5, BILLION)
    category_finite(CategoryCredit(4), [[BILLION // 2, BILLION // 4, BILLION // 4]], [0.0, 0.5, 1])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("worth", [None, lambda counts, scores: (counts > 0).mean(axis=1)])
@pytest.mark.parametrize("k", [1, 2, 50, 20_000])
@pytest.mark.parametrize(
    "alpha", [[1e-300] * 3, [1e-300, 1.0, 1e12], [1e12] * 3, [1e-9, 1e9, 1.0], [1.0, 1.0, 1e9]]
)
def test_categories_at_extreme_parameters(worth, k: int, alpha) -> None:
    credit, alpha = CategoryCredit(k, worth), np.array(alpha)
    if worth is not None and k > 50:
        return  # refused: too many compositions
    for scores in ([0.0, 0.5, 1.0], [0.0, -1e100, 1e100], [2.0, 2.0, 2.0]):
        top = float(np.abs(scores).max()) if worth is None else 1.0
        mean, variance = category_moments(credit, alpha, scores)
        p = np.clip(alpha, 1e-9, 1e9)
        found = [mean, credit.predictive(alpha, scores), credit.latent(p / p.sum(), scores)]
        assert (np.abs(found) <= top * (1 + 1e-9)).all()
        assert 0.0 <= variance <= top**2 * (1 + 1e-9)


def _mp_log_pmf(counts, mean, ratio):
    alpha = [mpmath.mpf(float(one)) / mpmath.mpf(ratio) for one in mean]
    log_gamma, total, n = mpmath.loggamma, sum(alpha), sum(counts)
    found = log_gamma(n + 1) + log_gamma(total) - log_gamma(total + n)
    for a, c in zip(alpha, counts, strict=True):
        found += log_gamma(a + c) - log_gamma(a) - log_gamma(c + 1)
    return found


def test_leaving_one_of_many_trials_out() -> None:
    counts, prior = [BILLION // 3, 7], BetaPrior(2.0, 1.0)
    states = States.of(counts, [BILLION, 10])
    own = np.stack([states.successes, states.trials - states.successes], axis=1)
    counts = states.counts[states.which]
    predictive = CountModel.of(prior, counts, pooling="none").predictive()
    found = [predictive.left_out, predictive.fitted]
    with mpmath.workdps(60):
        expected = [float(_mp_log_pmf(one, [2 / 3, 1 / 3], 1 / 3)) for one in own.tolist()]
    for one in found:
        np.testing.assert_allclose(one, expected, rtol=1e-7)
    both = CountModel.of(prior, counts, pooling="complete").predictive()
    rest = own.sum(axis=0) - own + [2.0, 1.0]
    with mpmath.workdps(60):
        expected = [
            float(_mp_log_pmf(one, alpha, 1.0))
            for one, alpha in zip(own.tolist(), rest, strict=True)
        ]
    np.testing.assert_allclose(both.left_out, expected, rtol=1e-4)


TOO_MANY = {
    "trials=": lambda: bk.tally([3], trials=BILLION + 1),
    "pair": lambda: bk.tally(([3, 4], [10, 10**15])),
    "evaluate": lambda: EVALUATE(([3, 4], [10, 10**15]), "bayes"),
    "counts": lambda: bk.tally(
        bk.tally([[0, 1]]).dataset.assign(
            count=(("system", "question", "category"), [[[BILLION, 1]]])
        )
    ),
    "table": lambda: bk.tally(
        pd.DataFrame({"question": ["x"], "n": [2 * BILLION], "c": [BILLION]})
    ),
}


@pytest.mark.parametrize("call", TOO_MANY.values(), ids=TOO_MANY.keys())
def test_more_than_can_be_computed_is_refused(call) -> None:
    with pytest.raises(bk.OutcomeError, match=r"at most 10\^9.*; got .*00.*[Dd]ivide"):
        call()


def test_a_billion_trials_are_taken() -> None:
    assert int(bk.tally([3], trials=BILLION).trials.max()) == BILLION


@pytest.mark.parametrize("pooling", ["none", "partial", "complete"])
def test_a_billion_trials_are_evaluated(pooling) -> None:
    data = ([3, 5 * 10**8], [10, BILLION])
    rows = bk.table(EVALUATE(data, "pass@1,4 bayes", pooling=pooling, rng=1))
    assert np.isfinite(rows[["mean", "sd", "ci_lower", "ci_upper"]]).all(axis=None)
    one = rows.query("metric == 'pass@1' and target == 'questions'")
    assert float(one["estimate"].iloc[0]) == pytest.approx(0.4, rel=1e-12)
