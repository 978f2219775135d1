"""Hyperparameters of categories: likelihood, evidence and posterior against brute force."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from bayesatk.core.program.weighted_points import around, located
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import FamilyFit
from bayesatk.priors import DirichletHyperPrior
from tests.core.agreement import modelled

Array = np.ndarray
OF_SD, OF_EVIDENCE = 0.02, 0.02  # error of means and sds in sds, and of log evidence in nats


def simulated(seed: int, questions: int, trials: int, categories: int, icc: float) -> Array:
    rng = np.random.default_rng(seed)
    mean = rng.dirichlet(np.full(categories, 3.0))
    p = rng.dirichlet(mean * (1.0 - icc) / icc, questions)
    return np.array([rng.multinomial(trials, q) for q in p])


def model_of(counts, prior: DirichletHyperPrior | None = None, before: Array | None = None):
    counts = np.asarray(counts, np.int64)
    scores = tuple(np.linspace(0.0, 1.0, counts.shape[1]).tolist())
    return CountModel.of(prior or DirichletHyperPrior(), counts, before, scores=scores)


def typical(fit: FamilyFit) -> tuple[Array, Array]:
    """Means and sds of the mean vector and the icc."""
    mean, icc = fit.typical(fit.points.theta)
    values = np.column_stack([mean, icc])
    centre = fit.points.weight @ values
    return centre, np.sqrt(fit.points.weight @ (values - centre) ** 2)


def direct(alpha: Array, counts: Array) -> float:
    """Dirichlet-multinomial log probability of ordered trials, by log gamma functions."""
    rises = (gammaln(alpha + counts) - gammaln(alpha)).sum()
    return float(rises - gammaln(alpha.sum() + counts.sum()) + gammaln(alpha.sum()))


@pytest.mark.parametrize("y", [-8.0, -1.0, 0.5, 4.0])
@pytest.mark.parametrize("before", [None, [[1.5, 2.0, 0.25], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]]])
def test_log_likelihood_of_whole_and_discounted_counts(y: float, before) -> None:
    counts, mean = np.array([[3, 0, 2], [0, 7, 1], [0, 0, 0]]), np.array([0.2, 0.5, 0.3])
    before = np.zeros((3, 3)) if before is None else np.array(before)
    predictor, _ = model_of(counts, before=before).part("dirichlet")
    theta = np.array([[*np.log(mean[:2] / mean[2]), y]])
    exact = sum(direct(mean * np.exp(-y), own) for own in counts + before)
    assert predictor.log_likelihood(theta)[0] == pytest.approx(exact, abs=1e-9)


def test_log_likelihood_near_independence_does_not_cancel() -> None:
    """At icc = 1e-15 the trials are multinomial to all digits; gamma functions would lose six."""
    mean = np.array([0.2, 0.5, 0.3])
    predictor, _ = model_of([[3, 1, 2]]).part("dirichlet")
    theta = np.array([[*np.log(mean[:2] / mean[2]), np.log(1e-15)]])
    exact = 3 * np.log(0.2) + np.log(0.5) + 2 * np.log(0.3)
    assert predictor.log_likelihood(theta)[0] == pytest.approx(exact, rel=1e-12)


def brute_force(counts: Array, prior, icc_prior) -> tuple[float, Array, Array]:
    """Three categories on a fine grid over (m_1, m_2, icc): evidence, means and sds."""
    size = 80
    edges = (np.arange(size) + 0.5) / size
    one, two, r = np.meshgrid(edges, edges, edges, indexing="ij")
    inside = one + two < 1.0 - 1e-9
    # Cells on the diagonal are halves, with their centres of gravity.
    half = np.abs(one + two - (1.0 - 0.0)) < 1e-9
    shift = np.where(half, 1.0 / (6.0 * size), 0.0)
    one, two, inside = one - shift, two - shift, inside | half
    mean = np.stack([one, two, 1.0 - one - two], axis=-1)[inside]
    icc, area = r[inside], np.where(half, 0.5, 1.0)[inside]
    alpha = mean * ((1.0 - icc) / icc)[:, None]
    logs = ((np.asarray(prior) - 1.0) * np.log(mean)).sum(axis=1) + np.log(area)
    logs += gammaln(np.sum(prior)) - gammaln(prior).sum()
    logs += (icc_prior[0] - 1) * np.log(icc) + (icc_prior[1] - 1) * np.log1p(-icc)
    logs -= gammaln(icc_prior[0]) + gammaln(icc_prior[1]) - gammaln(sum(icc_prior))
    for own in counts:
        rises = (gammaln(alpha + own) - gammaln(alpha)).sum(axis=1)
        total = alpha.sum(axis=1)
        logs += rises - gammaln(total + own.sum()) + gammaln(total)
    weight = np.exp(logs - logsumexp(logs))
    values = np.column_stack([mean, icc])
    centre = weight @ values
    spread = np.sqrt(weight @ (values - centre) ** 2)
    return float(logsumexp(logs) - 3 * np.log(size)), centre, spread


@pytest.mark.parametrize(("mean", "icc"), [((1, 1, 1), (1, 1)), ((2, 1, 3), (2, 3))])
def test_posterior_and_evidence_against_a_brute_force_grid(mean, icc) -> None:
    counts = simulated(3, 12, 5, 3, 0.3)
    model = model_of(counts, DirichletHyperPrior(tuple(map(float, mean)), icc))
    evidence, centre, spread = brute_force(counts, mean, icc)
    assert model.log_evidence() == pytest.approx(evidence, abs=OF_EVIDENCE)
    found, sd = typical(model.families[0])
    assert (np.abs(found - centre) < OF_SD * spread).all()
    assert (np.abs(sd - spread) < OF_SD * spread).all()


@pytest.mark.parametrize("shape", [(30, 5, 0.3), (5, 3, 0.5), (200, 8, 0.1)])
def test_importance_sampling_agrees_with_the_lattice_for_two_categories(shape) -> None:
    questions, trials, icc = shape
    counts = simulated(1, questions, trials, 2, icc)
    model = model_of(counts)
    (exact,) = model.families
    assert exact.points.method == "quadrature"
    predictor, fields = model.part("dirichlet")

    def log_density(theta: Array) -> Array:
        return fields.log_density(theta) + predictor.log_likelihood(theta)

    laplace = located(log_density, [np.zeros(2), np.array([0.0, -2.0])])
    drawn = FamilyFit("dirichlet", predictor, fields, around(log_density, laplace, 1, 4096))
    assert drawn.points.method == "importance sampling"
    assert drawn.points.log_evidence == pytest.approx(exact.points.log_evidence, abs=OF_EVIDENCE)
    (mean, sd), (found, spread) = typical(exact), typical(drawn)
    assert (np.abs(found - mean) < OF_SD * sd).all()
    assert (np.abs(spread - sd) < OF_SD * sd).all()


@pytest.mark.parametrize("shape", [(30, 5, 0.3), (5, 3, 0.5), (200, 8, 0.1)])
def test_two_categories_are_right_and_wrong(shape) -> None:
    """One Beta is a Dirichlet of two categories, in evidence and in both hyperparameters."""
    questions, trials, icc = shape
    counts = simulated(1, questions, trials, 2, icc)
    (one,) = model_of(counts).families
    (other,) = modelled((counts[:, 1], counts.sum(axis=1))).families
    assert one.points.log_evidence == pytest.approx(other.points.log_evidence, abs=1e-4)
    (mean, sd), (found, spread) = typical(other), typical(one)
    assert (np.abs(found[1:] - mean) < 1e-3 * sd).all()
    assert (np.abs(spread[1:] - sd) < 1e-3 * sd).all()


@pytest.mark.parametrize(
    ("questions", "trials", "categories", "icc"),
    [(2, 2, 4, 0.3), (500, 8, 5, 0.2), (200, 1, 4, 0.3), (200, 4, 3, 0.001), (30, 8, 10, 0.2)],
)
def test_points_are_worth_their_number(questions, trials, categories, icc) -> None:
    counts = simulated(5, questions, trials, categories, icc)
    points = model_of(counts).families[0].points
    assert points.method == "importance sampling"
    assert 1.0 / (points.weight @ points.weight) > 1500
    assert points.effective_draws > 400


def test_one_kind_of_outcome_only() -> None:
    mean, _ = typical(model_of([[4, 0, 0]] * 6).families[0])
    assert mean[0] > 0.8
    assert mean[1] == pytest.approx(mean[2], abs=0.01)


@pytest.mark.parametrize("size", [1500, 500])
def test_fewer_points_keep_the_posterior(size: int) -> None:
    (fit,) = model_of(simulated(2, 40, 6, 4, 0.2)).families
    full = fit.points
    mean = full.weight @ full.theta
    sd = np.sqrt(full.weight @ (full.theta - mean) ** 2)
    fewer = full.at_most(size)
    assert size / 2 < len(fewer.weight) <= size
    assert (np.abs(fewer.weight @ fewer.theta - mean) < 1e-6 * sd).all()
    beyond = [points.weight @ (points.theta > mean + sd) for points in (full, fewer)]
    assert np.abs(beyond[0] - beyond[1]).max() < 0.5 / np.sqrt(size)
    assert full.at_most(10**6) is full
