"""Published analyses, from NUTS and from the quadrature."""

import numpy as np
import pytest
from scipy.special import expit

import bayesatk as bk
from tests.conftest import FALSE_ALARM


@pytest.mark.long
@pytest.mark.slow
def test_rat_tumours_under_the_books_prior() -> None:
    """Gelman et al., BDA3 section 5.3: the book, the quadrature and NUTS tell one story."""
    rats, prior = bk.datasets.rat_tumors(), bk.priors.HyperPrior.bda3()
    fit = bk.evaluate(rats, "bayes", prior=prior, keep=["p"], rng=1)
    sampled = bk.sample(rats, "bayes", prior=prior, keep=["p"], draws=4000, rng=2, progress=False)
    found = bk.verify(fit, sampled, alpha=FALSE_ALARM)
    assert found.verdict == "agree", found.table.query("verdict != 'agree'").to_string()
    for tree, tolerance in ((fit, 5.0), (sampled, 8.0)):  # Monte Carlo errors at full efficiency
        draws = tree["posterior"].to_dataset().isel(system=0).stack(sample=("chain", "draw"))
        error = tolerance / np.sqrt(draws.sizes["sample"])
        log_total = np.log((1 - draws["icc"]) / draws["icc"])
        assert abs(float(draws["mean_p"].mean()) - 0.1443) < error * 0.0134 + 5e-5
        assert abs(float(log_total.mean()) - 2.7556) < error * 0.3442 + 5e-5
        assert abs(float(log_total.std()) - 0.3442) < error * 0.3442
        theta = draws["p"].mean("sample").values
        assert abs(theta[-1] - 0.2109) < error * 0.075 + 5e-5
        assert abs(theta[0] - 0.0636) < error * 0.045 + 5e-5


@pytest.mark.long
def test_surgical_mortality_under_the_logit_normal() -> None:
    """The BUGS example's posterior means: mu -2.554, population .073, hospitals A .053, H .123."""
    import pymc as pm

    model = bk.models.build_logit_normal(bk.datasets.surgical(), mu_sd=100.0, sigma_sd=1000.0)
    with model:  # the published prior: precision ~ Gamma(.001, .001), in place of a flat sigma
        sigma = model["sigma"]
        pm.Potential("gamma_precision", (-1.002 * pm.math.log(sigma) - 0.001 / sigma**2).sum())
    trace = pm.sample(
        model=model, nuts_sampler="nutpie", draws=3000, tune=1500, chains=4, cores=2,
        random_seed=4, progressbar=False,
    )  # fmt: skip
    draws = trace["posterior"].to_dataset().isel(system=0).stack(sample=("chain", "draw"))
    p = draws["p"].mean("sample").values
    assert abs(float(draws["mu"].mean()) - -2.554) < 0.01
    assert abs(float(expit(draws["mu"]).mean()) - 0.073) < 0.0015
    assert abs(p[0] - 0.053) < 0.002
    assert abs(p[7] - 0.123) < 0.002
    # The Beta family tells the same story of every hospital, within 0.6 of a posterior sd.
    fit = bk.evaluate(bk.datasets.surgical(), "bayes", difficulty="beta", keep=["p"], rng=1)
    beta = fit["posterior"]["p"].isel(system=0).mean(("chain", "draw")).values
    assert (np.abs(beta - p) < 0.6 * draws["p"].std("sample").values).all()
