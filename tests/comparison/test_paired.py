"""Systems paired by the correlation of their difficulties over questions."""

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.special import expit

import bayesatk as bk
from bayesatk.comparison.joint.paired import difficulty_correlation, question_noise, reordered
from tests.comparison.test_system_comparison import joint_draws

MU, SIGMA, RHO = np.array([0.3, 0.8]), 1.5, 0.85


def _draw(rng: np.random.Generator, questions: int) -> np.ndarray:
    """Success probabilities of two systems on questions with correlated logit-normal difficulty."""
    covariance = SIGMA**2 * np.array([[1.0, RHO], [RHO, 1.0]])
    return expit(rng.multivariate_normal(MU, covariance, questions).T)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("questions", "trials", "k"), [(40, 1, 1), (60, 4, 4)])
def test_paired_intervals_are_neither_short_nor_long(questions, trials, k) -> None:
    """Their sd is the spread of the estimates, though systems share most of the difficulty."""
    big = _draw(np.random.default_rng(0), 400_000) ** k
    truth = float(big[1].mean() - big[0].mean())
    template = bk.evaluate(
        np.tile([0, 1], (2, questions, 1)), f"pass^{k}", difficulty="beta", draws=250, rng=1
    )
    error, sd, unpaired, held, size = [], [], [], 0, 40
    for seed in range(size):
        rng = np.random.default_rng(100 + seed)
        counts = rng.binomial(trials, _draw(rng, questions))
        drawn = joint_draws(template, counts, trials, seed)[1]
        gap = drawn.values[:, 0, 1] - drawn.values[:, 0, 0]
        error.append(gap.mean() - truth)
        sd.append(gap.std())
        unpaired.append(np.hypot(*drawn.sd[0]))
        low, high = np.quantile(gap, [0.025, 0.975])
        held += low <= truth <= high
    assert held >= 34  # of 40: fewer has probability .0014 at 95%
    assert 0.75 < np.mean(sd) / np.std(error) < 1.4
    assert np.mean(sd) < 0.87 * np.mean(unpaired)


def test_correlation_of_difficulty_is_freed_from_the_noise_of_trials() -> None:
    rng = np.random.default_rng(5)
    p = _draw(rng, 200_000)
    rates = rng.binomial(1, p).astype(float)
    even = np.full((1, p.shape[1]), 1 / p.shape[1])
    truth = np.corrcoef(p)[0, 1]
    found = difficulty_correlation(rates, p.std(axis=1)[None], even)[0, 0, 1]
    assert found == pytest.approx(truth, abs=0.01)
    assert np.corrcoef(rates)[0, 1] < 0.5 * truth
    alike = difficulty_correlation(np.array([[0.2, 0.2]] * 3), np.zeros((1, 3)), even[:, :2])
    np.testing.assert_array_equal(alike[0], np.eye(3))


def test_impossible_correlations_become_possible_ones() -> None:
    """A B alike, B C alike, A C opposed: no three systems are."""
    rates = np.array([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    spread, even = np.full((2, 3), 0.1), np.full((2, 4), 0.25)
    found = difficulty_correlation(rates, spread, even)
    assert np.linalg.eigvalsh(found).min() > -1e-12
    np.testing.assert_allclose(np.diagonal(found, axis1=1, axis2=2), 1.0)


def test_noise_has_the_covariance_it_is_given() -> None:
    rng = np.random.default_rng(6)
    own = np.array([[[4.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 9.0]]])
    correlation = np.array([[[1.0, 0.6], [0.6, 1.0]]])
    noise = question_noise(correlation, own, 8, 200_000, rng)
    for system in (0, 1):
        np.testing.assert_allclose(np.cov(noise[:, :, system].T) * 9, own[system], atol=0.1)
    cross = np.cov(noise[:, :, 0].T, noise[:, :, 1].T)[:2, 2:] * 9
    np.testing.assert_allclose(cross, 0.6 * sqrtm(own[0]) @ sqrtm(own[1]), atol=0.1)
    values = rng.gamma(1.0, size=(1000, 3))
    moved = reordered(values, rng.normal(size=(1000, 3)))
    np.testing.assert_array_equal(np.sort(moved, axis=0), np.sort(values, axis=0))
