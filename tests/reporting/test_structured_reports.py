"""Reports of results with covariates and groups."""

import numpy as np
import pytest

import bayesatk as bk

pytest.importorskip("matplotlib")


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "sections"),
    [
        ({"covariates": ["size"]}, ["success depends on size", "Coefficients of covariates",
                                    "Regression on covariates"]),
        ({"group": "group"}, ["in 3 groups", "Groups of questions in pass@1",
                              "Differences between systems on groups of questions",
                              "New groups of questions", "<bdi>new groups</bdi>"]),
    ],
)  # fmt: skip
def test_a_report_has_the_sections_of_its_model(tmp_path, options, sections) -> None:
    rng, size = np.random.default_rng(1), np.arange(18)
    chance = 1.0 / (1.0 + np.exp(0.3 * (size - 9.0)))
    runs = {name: rng.binomial(1, chance[:, None], (18, 3)) for name in ("a", "b")}
    data = bk.tally(runs, covariates={"size": size}, group=list("xyz" * 6))
    fit = bk.evaluate(data, "pass@1", rng=1, **({"group": False} | options))
    page = bk.report(bk.compare(fit), tmp_path / "page.html").read_text(encoding="utf-8")
    for words in sections:
        assert words in page
