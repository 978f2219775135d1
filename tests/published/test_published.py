"""Published analyses, from NUTS and from the quadrature."""

import numpy as np
import pytest

import bayesatk as bk
from tests.conftest import FALSE_ALARM


@pytest.mark.long
@pytest.mark.slow
def test_rat_tumours_under_the_books_prior() -> None:
    """Gelman et al., BDA3 section 5.3: the book, the quadrature and NUTS tell one story."""
    rats, prior = bk.datasets.rat_tumors(), bk.priors.HyperPrior.bda3()
    fit = bk.evaluate(rats, "bayes", prior=prior, keep=["p"], rng=1)
    sampled = bk.sample(rats, "bayes", prior=prior, keep=["p"], draws=4000, rng=2, progress=False)
    verified = bk.verify(fit, sampled, alpha=FALSE_ALARM)
    assert verified.verdict == "agree", verified.table.query("verdict != 'agree'").to_string()
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
