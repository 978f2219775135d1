"""Data drawn from PyMC models have the distributions of the documentation."""

import numpy as np
import pytest
from scipy.special import logit

import bayesatk as bk
from bayesatk.data.study import read_study
from bayesatk.models.program import build_program
from bayesatk.verification.replications import Forward

SIZE = 2000
ERROR = 4.5 / np.sqrt(SIZE)


def drawn(model, *names: str) -> list[np.ndarray]:
    forward, rng = Forward(model), np.random.default_rng(1)
    rows = [forward.draw(rng) for _ in range(SIZE)]
    return [np.stack([row[name].values[0, 0] for row in rows]) for name in names]


def test_a_draw_depends_on_its_seed_alone() -> None:
    forward = Forward(bk.models.build([[1, 0], [1, 1]], form="full"))
    first, other, again = (forward.draw(np.random.default_rng(seed)) for seed in (1, 2, 1))
    assert first.equals(again)
    assert not first.equals(other)
    assert first["successes"].dims == ("chain", "draw", "system", "question")


def test_logit_normal_difficulties_are_normal_around_mu() -> None:
    """They are sampled otherwise: the mean of these questions first, and mu given it."""
    model = bk.models.build_logit_normal([[1, 0], [1, 1], [0, 1]], mu_sd=1.2, sigma_sd=0.5)
    mu, sigma, p = (values[:, 0] for values in drawn(model, "mu", "sigma", "p"))
    z = (logit(p) - mu[:, None]) / sigma[:, None]
    assert mu.mean() == pytest.approx(0.0, abs=1.2 * ERROR)
    assert mu.std() == pytest.approx(1.2, rel=ERROR)
    assert (sigma**2).mean() == pytest.approx(0.25, rel=2 * ERROR)
    assert z.mean() == pytest.approx(0.0, abs=ERROR)
    table = np.corrcoef(np.column_stack([z, mu]), rowvar=False)
    np.testing.assert_allclose(table, np.eye(4), atol=ERROR)
    assert z.std(axis=0) == pytest.approx(np.ones(3), rel=ERROR)


def test_crossed_difficulties_have_the_correlation_that_is_drawn() -> None:
    prior = bk.priors.CrossedPrior(mu_sd=1.0, sigma_sd=1.0, eta=2.0)
    model = bk.models.build_crossed({"a": [[1], [0]], "b": [[0], [0]]}, prior=prior)
    mu, sigma, table, p = drawn(model, "mu", "sigma", "correlation", "p")
    z = (logit(np.clip(p, 1e-15, 1 - 1e-15)) - mu[..., None]) / sigma[..., None]
    rho = table[:, 0, 1]
    assert (rho**2).mean() == pytest.approx(1 / 5, abs=ERROR)  # of 2 Beta(2, 2) - 1
    assert (z[:, 0] * z[:, 1]).mean() == pytest.approx(rho.mean(), abs=1.5 * ERROR)
    assert (z[:, 0] * z[:, 1] * rho[:, None]).mean() == pytest.approx(1 / 5, abs=1.5 * ERROR)
    np.testing.assert_allclose(np.corrcoef(mu, rowvar=False), np.eye(2), atol=ERROR)
    assert z.std() == pytest.approx(1.0, rel=ERROR)


def test_the_share_of_a_mixture_is_that_of_its_first_part_in_either_form() -> None:
    prior = bk.priors.HyperPrior(families="mixture", share=(4.0, 2.0))
    study = read_study(
        [[1, 0]], "pass@1", pooling="partial", prior=prior, success=None, prior_trials=None,
        prior_weight=1.0, answer_prior=None, ci_prob=0.95, keep=(),
    )  # fmt: skip
    mean, share = drawn(build_program(study, "mixture", "full"), "mean_p", "share")
    lower = np.where(mean[:, 0, 0] < mean[:, 0, 1], share[:, 0], 1.0 - share[:, 0])
    assert lower.mean() == pytest.approx(2 / 3, abs=0.18 * ERROR)
