"""evaluate_cost: laws, extremes, and how often its intervals are right."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import bayesatk as bk
from bayesatk import costs as bkc
from bayesatk.core.costs.prior import trial_worth
from bayesatk.core.costs.quantities import cost_quantities

FAST: dict[str, Any] = {"difficulty": "beta", "draws": 50}


def _simulated(
    questions: int, trials: int, rng: np.random.Generator, shape: str = "gamma"
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.int64], NDArray[np.float64]]:
    """Return the truth, outcomes and costs; hard questions cost more, successes less."""
    p = rng.beta(1.2, 1.0, questions)
    mean = np.exp(0.8 * (0.5 - p) + 0.6 * rng.standard_normal(questions))
    right = rng.random((questions, trials)) < p[:, None]
    cost = mean[:, None] * np.where(right, 0.8, 1.0)
    if shape == "gamma":
        cost = cost * rng.gamma(4.0, 0.25, right.shape)
    else:
        cost = cost * np.exp(0.6 * rng.standard_normal(right.shape) - 0.18)
    truth = cost_quantities(p[None], mean[None], 0.8 * mean[None], None, [4], [2.0])
    return truth, right.astype(int), cost


def test_a_large_study_finds_the_truth() -> None:
    truth, runs, cost = _simulated(400, 6, np.random.default_rng(1))
    fit = bkc.evaluate_cost(bk.tally(runs, cost=cost), 4, 2.0, difficulty="beta", draws=200, rng=1)
    for name, exact in truth.items():
        own = fit["closed_form"][name].sel(target="questions").squeeze()
        mean, sd = (float(own.sel(statistic=one)) for one in ("mean", "sd"))
        assert abs(mean - float(np.ravel(exact)[0])) < 4.0 * sd
        assert sd < 0.1 * mean


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 2**31), st.floats(1e-6, 1e6))
def test_the_unit_of_costs_changes_money_alone(seed: int, unit: float) -> None:
    _, runs, cost = _simulated(8, 3, np.random.default_rng(seed))
    plain, scaled = (
        bkc.evaluate_cost(bk.tally(runs, cost=c * cost), 2, c * 1.5, rng=1, **FAST)
        for c in (1.0, unit)
    )
    for name in ("mean_cost", "cost_of_pass", "cost_to_success", "coverage_at_budget", "pass_at_k"):
        ratio = unit if "cost" in name else 1.0
        found, other = (one["posterior"][name].values for one in (scaled, plain))
        assert_allclose(found, ratio * other, rtol=1e-3)


EXTREMES: list[tuple[Any, Any]] = [
    ([[1]], [[2.0]]),
    ([[0]], [[2.0]]),
    ([[0, 0], [0, 0]], [[1.0, 1.0], [1.0, 1.0]]),
    ([[1, 0, 1, 1]] * 40, [[7.0] * 4] * 40),
    ([[1, 1], [1, 1]], [[1.0, 2.0], [1e-9, 1e9]]),
    ([[1, 0]] * 5, [[3.0, 3.0]] * 5),
    ([[1, 0, 1], [0]], [[1e-90, 1e90, 1.0], [1.0]]),
    ([[1] * 60] * 3, np.linspace(1.0, 1.001, 180).reshape(3, 60)),
]


@pytest.mark.parametrize(("runs", "cost"), EXTREMES)
def test_no_data_break_it(runs: Any, cost: Any) -> None:
    fit = bkc.evaluate_cost(bk.tally(runs, cost=cost), [1, 100], [1e-3, 1.0, 1e9], rng=1, **FAST)
    for name, values in fit["posterior"].data_vars.items():
        assert not np.isnan(values.values).any(), name
    closed = fit["closed_form"].to_dataset()
    successes = np.concatenate([np.ravel(row) for row in runs]).sum()
    infinite = np.isinf(closed["cost_of_pass"].sel(statistic="mean", target="questions")).all()
    assert bool(infinite) == (successes < 1)


def test_questions_that_are_not_tried_or_not_paid_are_left_to_the_rest() -> None:
    runs = {"a": [[1, 0], [1, 1], [0, 1]], "b": [[1, 1], [None, None], [0, 0]]}
    cost = {"a": [[1.0, 2.0], [None, None], [1.0, 3.0]], "b": [[1.0, 1.0], [5.0, 5.0], [2.0, 2.0]]}
    data = bk.tally(runs, cost=cost, missing="ignore", missing_cost="ignore")
    fit = bkc.evaluate_cost(data, rng=1, **FAST)
    estimate = fit["closed_form"]["mean_cost"].sel(statistic="estimate", target="questions")
    assert np.isnan(estimate.values[0])
    assert estimate.values[1] == 1.5
    alone = bkc.evaluate_cost(data["b"].sel(question=[0, 2]), rng=1, **FAST)
    own, other = (one["posterior"]["mean_cost"].sel(system="b") for one in (fit, alone))
    assert abs(float(own.mean() - other.mean())) < 0.5 * float(other.std())


def test_weights_of_questions_count_in_all_means() -> None:
    runs, cost = [[1, 1]] * 8 + [[0, 0]] * 8, [[1.0, 1.1]] * 8 + [[4.0, 4.1]] * 8
    for weight, heavy in (([9.0] * 8 + [1.0] * 8, "right"), ([1.0] * 8 + [9.0] * 8, "wrong")):
        fit = bkc.evaluate_cost(bk.tally(runs, cost=cost, weight=weight), 1, rng=1, **FAST)
        share = 0.9 if heavy == "right" else 0.1
        own = fit["closed_form"].to_dataset()
        expected = {"mean_cost": share * 1.05 + (1 - share) * 4.05, "pass_at_k": share}
        for name, value in expected.items():
            cells = own[name].squeeze()
            assert_allclose(cells.sel(statistic="estimate"), value)
            assert_allclose(cells.sel(statistic="mean"), value, rtol=0.35)


def test_questions_like_these_are_new_ones_of_the_law() -> None:
    """Success as `evaluate` has it; costs as of many questions drawn with the parameters drawn."""
    _, runs, cost = _simulated(40, 4, np.random.default_rng(7))
    data = bk.tally(runs, cost=cost)
    fit = bkc.evaluate_cost(data, 4, 2.0, difficulty="beta", draws=500, rng=1)
    alone = bk.evaluate(data, "pass@4", difficulty="beta", rng=1)["closed_form"]["pass_at_k"]
    own = fit["closed_form"]["pass_at_k"].sel(target="population").squeeze()
    expected = alone.sel(target="population").squeeze()
    sd = float(expected.sel(statistic="sd"))
    assert_allclose(own.sel(statistic="mean"), expected.sel(statistic="mean"), atol=0.1 * sd)
    assert_allclose(own.sel(statistic="sd"), sd, rtol=0.1)
    rng, posterior = np.random.default_rng(8), fit["posterior"].to_dataset().squeeze("system")
    drawn = {
        name: posterior[name].values.ravel()[:, None]
        for name in ("cost_level", "cost_slope", "cost_outcome", "cost_spread", "mean_p")
    }
    # The icc is not kept: mean costs depend on it little, through the slope.
    p = np.clip(drawn["mean_p"] + 0.28 * rng.standard_normal((2000, 400)), 0.0, 1.0)
    logs = drawn["cost_level"] + drawn["cost_slope"] * (0.5 - p)
    mean = np.exp(logs + drawn["cost_spread"] * rng.standard_normal(p.shape))
    mean *= cost.mean() * (1.0 + p * np.expm1(drawn["cost_outcome"]))
    witness, found = mean.mean(axis=1), posterior["mean_cost"].sel(target="population").values
    assert_allclose(found.mean(), witness.mean(), rtol=0.03)
    assert_allclose(found.std(), witness.std(), rtol=0.15)


def test_what_is_observed_is_of_whole_trials() -> None:
    rng = np.random.default_rng(5)
    runs = rng.integers(0, 2, (30, 4))
    cost = np.exp(1.2 * rng.standard_normal((30, 4)))
    fit = bkc.evaluate_cost(bk.tally(runs, cost=cost), rng=1, **FAST)
    row = fit["closed_form"].to_dataset().sel(target="questions", statistic="estimate").squeeze()
    assert_allclose(row["mean_cost"], cost.mean())
    assert_allclose(row["cost_of_pass"], cost.sum() / runs.sum())
    assert_allclose(row["cost_if_right"], cost[runs == 1].mean())


@pytest.mark.parametrize(("sigma", "low", "high"), [(0.0, 0.97, 1.0), (0.83, 0.82, 0.93)])
def test_heavy_tails_count_for_fewer_trials(sigma: float, low: float, high: float) -> None:
    """Of Gamma costs, whatever their shape, and of log-normal ones with a variation of one."""
    rng = np.random.default_rng(3)
    for shape in (1.0, 4.0):
        cost = rng.gamma(shape, 1.0, (2000, 4)) if sigma == 0.0 else (
            np.exp(sigma * rng.standard_normal((2000, 4)))
        )  # fmt: skip
        mean = rng.lognormal(size=(2000, 1)) * cost
        sums = [term.sum(axis=1) for term in (np.ones((2000, 4)), mean, np.log(mean), mean**2)]
        assert low < trial_worth(*sums) <= high


def test_systems_with_the_same_data_weigh_questions_alike() -> None:
    _, runs, cost = _simulated(30, 4, np.random.default_rng(2))
    data = bk.tally({"a": runs, "b": runs}, cost={"a": cost, "b": cost})
    draws = bkc.evaluate_cost(data, rng=1, draws=200, difficulty="beta")["posterior"]["mean_cost"]
    apart, together = (
        np.corrcoef(draws.sel(target=target).values.reshape(-1, 2).T)[0, 1]
        for target in ("questions", "population")
    )
    assert abs(apart) < 0.15
    assert together > 0.5


def test_a_result_is_saved_tabulated_and_cited(tmp_path: Any) -> None:
    _, runs, cost = _simulated(12, 3, np.random.default_rng(3))
    fit = bkc.evaluate_cost(bk.tally(runs, cost=cost, cost_unit="USD"), 3, 2.0, rng=5, **FAST)
    bk.save(fit, tmp_path / "costs.nc")
    again = bk.load_result(tmp_path / "costs.nc")
    table = bk.table(fit, "costs")
    assert table.equals(bk.table(again, "costs"))
    assert set(table.loc[table["unit"] == "USD", "quantity"]) == {
        "mean_cost", "cost_if_right", "cost_if_wrong", "cost_of_pass", "cost_to_success"
    }  # fmt: skip
    assert "erol2025cost" in bk.cite(fit)
    assert bk.notes(again) == []
    beyond = bkc.evaluate_cost(bk.tally(runs, cost=cost), 7, rng=5, **FAST)
    assert "up to 7 tries or more" in bk.notes(beyond)[0]
    assert again.attrs["seed"] == "5"
    assert fit["constant_data"]["cost_sums"].dims == ("system", "question", "category", "cost_sum")
    drawn = fit.copy()
    del drawn["closed_form"]
    assert_allclose(bk.table(drawn, "costs")["mean"], table["mean"], rtol=1e-9)


def test_what_takes_no_account_of_costs_says_so() -> None:
    _, runs, cost = _simulated(8, 3, np.random.default_rng(4))
    fit = bkc.evaluate_cost(bk.tally(runs, cost=cost), 4, 1.0, **FAST, rng=1)
    for refusing in (
        lambda: bk.guessing.random_baseline(fit, 0.2), lambda: bk.plan(fit, "pass@1", width=0.1),
        lambda: bk.checks.question_table(fit),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"without costs for .*use bayesatk\.evaluate"):
            refusing()


def test_a_budget_far_below_any_cost_buys_nothing() -> None:
    _, runs, cost = _simulated(6, 2, np.random.default_rng(5))
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        fit = bkc.evaluate_cost(bk.tally(runs, cost=1e9 * cost), 1, 1.0, **FAST, rng=1)
    bought = fit["posterior"]["coverage_at_budget"]
    assert float(bought.max()) < 1e-6


def test_what_cannot_be_evaluated_is_refused() -> None:
    runs = [[1, 0], [1, 1]]
    paid = bk.tally(runs, cost=[[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"none has a cost.*cost='usd'"):
        bkc.evaluate_cost(runs)
    for options, message in (
        ({"k": 0}, "k must be an integer >= 1"), ({"k": [1.5]}, "k must be"),
        ({"spend": 0.0}, "spend must be finite and > 0"), ({"spend": "x"}, "spend must be"),
        ({"ci_prob": 1.0}, "ci_prob"), ({"cost_prior": 3}, "must be a CostPrior"),
        ({"draws": 1}, "draws"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            bkc.evaluate_cost(paid, **options)
    with pytest.raises(ValueError, match="must be a result of"):
        bk.table(bk.evaluate(runs, "pass@1", rng=1), "costs")


@pytest.mark.long
@pytest.mark.parametrize("shape", ["gamma", "log-normal"])
def test_intervals_are_right_as_often_as_they_say(shape: str) -> None:
    hits: dict[str, list[bool]] = {}
    for seed in range(35):
        truth, runs, cost = _simulated(60, 4, np.random.default_rng([seed, 7]), shape)
        fit = bkc.evaluate_cost(
            bk.tally(runs, cost=cost), 4, 2.0, difficulty="beta", draws=250, rng=seed
        )
        for name, exact in truth.items():
            own = fit["closed_form"][name].sel(target="questions").squeeze()
            low, high = (float(own.sel(statistic=one)) for one in ("ci_lower", "ci_upper"))
            hits.setdefault(name, []).append(low <= float(np.ravel(exact)[0]) <= high)
    # Of 35 intervals at 95%, fewer than 28 are right once in 5,000 studies; at 80%, in 4 of 10.
    assert {name: sum(own) for name, own in hits.items() if sum(own) < 28} == {}


def test_sums_of_an_earlier_version_are_refused_in_one_line() -> None:
    data = bk.tally({"a": [[1, 0]]}, cost={"a": [[1.0, 2.0]]})
    old = replace(data, dataset=data.dataset.isel(cost_sum=slice(3)))
    with pytest.raises(ValueError, match=r"earlier version lacks square_total.*cost='usd'"):
        bkc.evaluate_cost(old)
