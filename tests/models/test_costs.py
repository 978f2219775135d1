"""The PyMC model of success and cost against the posterior without a sampler."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk import costs as bkc
from bayesatk.core.costs.quantities import cost_quantities
from bayesatk.models.costs import _Tries
from tests.conftest import FALSE_ALARM


def _data() -> bk.Outcomes:
    rng = np.random.default_rng(9)
    p = rng.beta(2.0, 2.0, 25)
    mean = np.exp(0.8 * (0.5 - p) + 0.6 * rng.standard_normal(25))
    runs = (rng.random((25, 5)) < p[:, None]).astype(int)
    cost = mean[:, None] * np.where(runs, 0.8, 1.0) * rng.gamma(4.0, 0.25, runs.shape)
    return bk.tally(runs, cost=cost, cost_unit="USD")


@pytest.mark.long
def test_sampled_costs_agree_and_are_results(tmp_path) -> None:
    data = _data()
    exact = bkc.evaluate_cost(data, [1, 4], [1.0], difficulty="beta", draws=2000, rng=1)
    sampled = bk.models.sample_cost(data, [1, 4], [1.0], rng=2, progress=False)
    found = bk.verify(exact, sampled, alpha=FALSE_ALARM)
    assert found.verdict == "agree", found.table.query("verdict != 'agree'").to_string()
    ours, theirs = (one["posterior"].to_dataset() for one in (exact, sampled))
    assert set(ours) == set(theirs)
    for name in ("cost_level", "cost_slope", "cost_outcome", "cost_spread", "cost_shape_wrong"):
        gap = float(ours[name].mean() - theirs[name].mean())
        assert abs(gap) < 0.15 * float(ours[name].std())
    again = bk.load_result(bk.save(sampled, tmp_path / "sampled.nc"))
    assert len(bk.table(again, "costs")) == len(bk.table(exact, "costs"))
    assert "hoffman2014nuts" in bk.cite(again)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.3, 2.0]))
def test_quantities_of_draws_are_computed_twice_and_agree(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    p = rng.beta(spread, spread, (20, 7))  # 0 and 1 included
    wrong, right = rng.lognormal(size=(2, 20, 7))
    weight = rng.dirichlet(np.ones(7), 20)
    asked = [1, 2, 50, 3000], [0.1, 1.0, 30.0]
    expected = cost_quantities(p, wrong, right, weight, *asked)
    found = _Tries(p, wrong, right, weight).quantities(*asked)
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6, atol=1e-12, err_msg=name)


def test_the_model_takes_costs_of_some_trials_and_one_family_only() -> None:
    runs, cost = (
        {"a": [[1, 0], [1, 1]], "b": [[1], [0]]},
        {"a": [[1, 2], [None, 1]], "b": [[1], [2]]},
    )
    data = bk.tally(runs, cost=cost, missing_cost="ignore")
    model = bk.models.build_cost_model(data)
    assert np.isfinite(model.compile_logp()(model.initial_point()))
    with pytest.raises(ValueError, match="of a single Beta"):
        bk.models.build_cost_model(data, prior=bk.priors.HyperPrior())
    with pytest.raises(ValueError, match="none has a cost"):
        bk.models.sample_cost([[1, 0]])
