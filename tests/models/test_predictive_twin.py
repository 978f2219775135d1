"""Prior and predictive groups of sampled results, against those of closed forms."""

import arviz as az
import numpy as np
import pytest

import bayesatk as bk

TRIALS = np.array([4, 4, 3, 4, 2, 4])
RIGHT = np.array([1, 3, 2, 0, 2, 4])
GROUP = [0, 0, 0, 1, 1, 1]
GROUPS = ("prior", "log_prior", "prior_predictive", "posterior_predictive", "log_likelihood")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "none"},
        {"pooling": "complete"},
        pytest.param({"group": GROUP, "difficulty": "inflated"}, marks=pytest.mark.long),
    ],
    ids=["none", "complete", "groups"],
)
def test_sampled_groups_agree_with_those_of_the_closed_form(options) -> None:
    data = bk.tally(RIGHT, trials=TRIALS)
    exact = bk.evaluate(data, "pass@1", draws=1000, rng=1, **options)
    sampled = bk.sample(
        data, "pass@1", draws=1000, rng=1, progress=False, sample_kwargs={"cores": 1}, **options
    )
    for name in GROUPS:
        first, second = exact[name].to_dataset(), sampled[name].to_dataset()
        assert set(first.data_vars) == set(second.data_vars) or name == "prior"
        assert set(first.data_vars) <= set(second.data_vars)
        for variable in first.data_vars:
            assert first[variable].dims == second[variable].dims
    first, second = (
        fit["posterior_predictive"]["successes"].mean(("chain", "draw")) for fit in (exact, sampled)
    )
    np.testing.assert_allclose(first, second, atol=0.12)
    first, second = (
        az.psense_summary(fit.sel(system="system"), var_names=["pass_at_k"], round_to=6)
        for fit in (exact, sampled)
    )
    np.testing.assert_allclose(first["prior"], second["prior"], atol=0.03)
    np.testing.assert_allclose(first["likelihood"], second["likelihood"], atol=0.05)
