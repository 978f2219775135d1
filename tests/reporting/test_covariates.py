"""A report of a result with covariates."""

import numpy as np
import pytest

import bayesatk as bk

pytest.importorskip("matplotlib")


@pytest.mark.long
def test_a_report_says_what_success_depends_on(tmp_path) -> None:
    rng = np.random.default_rng(1)
    size = np.arange(18)
    chance = 1.0 / (1.0 + np.exp(0.3 * (size - 9.0)))
    runs = {name: rng.binomial(1, chance[:, None], (18, 3)) for name in ("a", "b")}
    data = bk.tally(runs, covariates={"size": size})
    fit = bk.compare(bk.evaluate(data, "pass@1", covariates=["size"], rng=1))
    page = bk.report(fit, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "success depends on size" in page
    assert "Coefficients of covariates" in page
    assert "Regression on covariates" in page
