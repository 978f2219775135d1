"""Questions in groups by NUTS: the same targets, groups and hyperparameters as the closed form."""

import numpy as np
import pytest

import bayesatk as bk
from tests.conftest import FALSE_ALARM


@pytest.mark.long
@pytest.mark.slow
def test_nuts_agrees_on_every_target_and_group() -> None:
    rng = np.random.default_rng(3)
    groups = np.repeat([f"g{i}" for i in range(5)], rng.integers(3, 8, 5))
    mean = 1.0 / (1.0 + np.exp(-rng.normal(0.5, 0.8, 5))).repeat(
        np.unique(groups, return_counts=True)[1]
    )
    c = rng.binomial(4, rng.beta(2.0 * mean, 2.0 * (1.0 - mean)))
    data = bk.tally(c, trials=4, group=groups.tolist())
    options = {"group": "group", "group_weights": "equal", "rng": 1}
    fit = bk.evaluate(data, "pass@1,4", draws=5000, **options)
    sampled = bk.sample(
        data, "pass@1,4", draws=2000, progress=False, sample_kwargs={"cores": 1}, **options
    )
    found = bk.verify(fit, sampled, alpha=FALSE_ALARM)
    assert found.verdict == "agree", found.table
    assert set(found.table["target"].dropna()) == {
        "questions", "population", "new_groups", "observed",
    }  # fmt: skip
    assert len(found.table) == 2 * 3 + 3 + 2 * 2 * 5 + 2
    rows = [bk.table(one, by="group") for one in (fit, sampled)]
    assert len(rows[0]) == len(rows[1])
