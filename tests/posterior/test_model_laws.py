"""What every model of counts and every scale must obey, whatever the number of categories."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import bayesatk as bk
from bayesatk.core.pooling.states import States
from bayesatk.data.scales import RIGHT_WRONG, Scored
from bayesatk.metrics.grid import parse
from bayesatk.posterior.model import CountModel

SCALES = {
    "right or wrong": RIGHT_WRONG,
    "two": Scored((0.0, 1.0)),
    "three": Scored((0.0, 0.4, 1.0)),
}
POOLINGS = ["none", "partial", "complete"]
METRICS = parse("bayes max@2,5")
# Counts (questions, categories) of which some question was tried.
tables = st.integers(2, 3).flatmap(
    lambda categories: arrays(np.int64, (5, categories), elements=st.integers(0, 6))
)


def model(scale, pooling, counts, prior=None):
    prior = scale.resolve_prior(pooling, prior)
    if isinstance(prior, bk.priors.HyperPrior):
        prior = bk.priors.HyperPrior(families="beta")
    scores = None if scale is RIGHT_WRONG else tuple(map(float, scale.scores))
    return CountModel.of(prior, np.asarray(counts), pooling=pooling, scores=scores)


def judged(scale):
    return [scale.judged(one) for one in METRICS]


def simulated(scale, questions=7, trials=4, seed=3):
    rng = np.random.default_rng(seed)
    return rng.multinomial(trials, rng.dirichlet(np.ones(len(scale.scores)), questions))


@pytest.mark.parametrize("pooling", POOLINGS)
@settings(max_examples=8, deadline=None)
@given(counts=arrays(np.int64, (5, 2), elements=st.integers(0, 6)))
def test_a_beta_is_a_dirichlet_of_two_categories(pooling, counts) -> None:
    """Two ways to the same numbers: quadrature of Betas, and sums over Dirichlets."""
    counts[0, 0] += 1  # a trial at least
    dirichlet = bk.priors.DirichletHyperPrior() if pooling == "partial" else None
    both = [
        model(SCALES["right or wrong"], pooling, counts),
        model(SCALES["two"], pooling, counts, dirichlet),
    ]
    marks, scores = (
        one.fit(judged(SCALES[name]))
        for one, name in zip(both, ("right or wrong", "two"), strict=True)
    )
    np.testing.assert_allclose(marks.mean, scores.mean, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(marks.sd, scores.sd, rtol=1e-5, atol=1e-10)
    one, other = (each.predictive() for each in both)
    order = [each.states.which for each in both]
    for name in ("left_out", "fitted"):
        first, second = (
            getattr(found, name)[which] for found, which in zip((one, other), order, strict=True)
        )
        # Partial pooling of categories leaves a question out on its points, without a finer grid.
        atol = 1e-9 if pooling != "partial" else 2e-4
        np.testing.assert_allclose(first, second, atol=atol)
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-7)


@pytest.mark.parametrize("name", SCALES)
def test_a_weaker_prior_matters_beyond_the_trials_only(name) -> None:
    scale = SCALES[name]
    one = model(scale, "none", simulated(scale, trials=4))
    metrics = judged(scale)
    posterior = one.fit(metrics)
    ratio = posterior.prior_sensitivity
    assert np.isnan(ratio[[metric.k <= 4 for metric in metrics]]).all()
    half = [value / 2 for value in one.alpha.tolist()]
    if scale is RIGHT_WRONG:
        weaker = bk.priors.BetaPrior(half[1], half[0])
    else:
        weaker = bk.priors.DirichletPrior(tuple(half))
    other = model(scale, "none", one.states.counts[one.states.which], weaker).fit(metrics)
    np.testing.assert_allclose(ratio[2], (other.sd / posterior.sd)[2], rtol=1e-9)


@given(counts=tables)
def test_states_say_all_of_their_questions(counts) -> None:
    made = [States.of_counts(counts)]
    if counts.shape[1] == 2:
        made.append(States.of(counts[:, 1], counts.sum(axis=1)))
    for states in made:
        np.testing.assert_array_equal(states.counts[states.which], counts)
        np.testing.assert_array_equal(np.bincount(states.which), states.count)
        assert len(np.unique(states.counts, axis=0)) == len(states)
        np.testing.assert_array_equal(states.trials, states.counts.sum(axis=1))


@pytest.mark.parametrize("name", SCALES)
def test_scales_draw_what_they_read(name) -> None:
    """Vectors add up to one, their mean is the first metric, and counts to their trials."""
    scale, rng = SCALES[name], np.random.default_rng(4)
    alpha = np.arange(1.0, len(scale.scores) + 1.0)
    p = rng.dirichlet(alpha, 5000) if scale.axes else rng.beta(alpha[1], alpha[0], 5000)
    assert p.shape == (5000, *(len(alpha) for _ in scale.axes))
    vectors = scale.vectors(p)
    np.testing.assert_allclose(vectors.sum(axis=-1), 1.0, rtol=1e-12)
    expected = alpha / alpha.sum()
    sd = np.sqrt(expected * (1.0 - expected) / (alpha.sum() + 1.0) / 5000)
    assert (np.abs(vectors.mean(axis=0) - expected) < 5.0 * sd).all()
    mean_score = vectors @ np.array(scale.scores)
    np.testing.assert_allclose(scale.judged(METRICS[0]).latent(p), mean_score, atol=1e-12)
    counts = scale.by_category(scale.draw_counts(7, p, rng), 7)
    np.testing.assert_array_equal(counts.sum(axis=-1), 7)
