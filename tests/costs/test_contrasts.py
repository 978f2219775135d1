"""Systems compared by cost, Pareto sets, and plans in money."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import bayesatk as bk
from bayesatk import costs as bkc
from tests.conftest import plan_table

FAST: dict[str, Any] = {"difficulty": "beta", "draws": 100, "rng": 1}


def _data(**unit: str) -> bk.Outcomes:
    rng = np.random.default_rng(1)
    right = {"small {k}": 0.5, "large": 0.75}
    runs = {name: (rng.random((40, 4)) < p).astype(int) for name, p in right.items()}
    cost = {name: rng.gamma(4.0, 0.25, (40, 4)) * (1.0 if p < 0.6 else 5.0)
            for name, p in right.items()}  # fmt: skip
    return bk.tally(runs, cost=cost, **unit)


@pytest.fixture(scope="module")
def costs() -> xr.DataTree:
    return bkc.evaluate_cost(_data(cost_unit="USD"), [1, 3], [2.0], **FAST)


def test_contrasts_are_those_of_the_draws(costs: xr.DataTree) -> None:
    table = bkc.compare_cost(costs)
    assert len(table) == 2 * (4 + 2 * 2 + 3)
    for row in table.to_dict("records"):
        values = costs["posterior"][row["quantity"]].sel(target=row["target"])
        for name in ("k", "budget"):
            values = values.sel({name: row[name]}) if row[name] == row[name] else values
        first, second = (values.sel(system=row[one]).values.ravel() for one in ("system", "other"))
        assert_allclose(row["difference"], np.median(first - second))
        assert_allclose(row["ratio"], np.median(first / second))
        assert_allclose(row["ci_lower"], np.quantile(first - second, 0.025))
        assert_allclose(row["ratio_upper"], np.quantile(first / second, 0.975))
        share = (first > second).mean() + 0.5 * (first == second).mean()
        assert_allclose(row["prob_greater"], share)
        inside = np.clip(share, 1 / (len(first) + 2), 1 - 1 / (len(first) + 2))
        assert_allclose(row["prob_error"], np.sqrt(inside * (1 - inside) / len(first)))


def test_a_sentence_says_who_on_what_and_how_surely(costs: xr.DataTree) -> None:
    rows = bkc.compare_cost(costs).set_index(["quantity", "target"])
    said = rows.loc[("cost_of_pass", "questions"), "sentence"]
    assert "on 40 questions: a success costs" in said
    assert " USD with small {k} (" in said
    assert said.endswith("P(large is higher) > 0.99.")
    other = rows.loc[("pass_at_k", "population"), "sentence"].iloc[0]
    assert "on questions like these: pass@1 is" in other
    assert "USD" not in other


def test_the_pareto_set_of_a_cheap_and_a_good_system(costs: xr.DataTree) -> None:
    table = bkc.pareto(costs, 3)
    title, headings, *_ = str(table).splitlines()
    assert title == "Pareto set of pass@3 and its cost in USD"
    assert "P(cheapest)" in headings
    assert "prob_error" not in headings
    found = table.set_index(["target", "system"])
    for target in ("questions", "population"):
        own = found.loc[target]
        assert (own["prob_pareto"] > 0.95).all()
        assert own.loc["small {k}", "prob_cheapest"] > 0.99
        assert own.loc["large", "prob_solves_most"] > 0.95
        assert own.loc["small {k}", "prob_cheapest_success"] > 0.99
        assert_allclose(own["prob_cheapest"].sum(), 1.0)


def test_who_is_beaten_in_both_is_not_in_the_set() -> None:
    runs = {"good": [[1, 1, 1, 1]] * 30, "bad": [[0, 1, 0, 0]] * 30, "same": [[1, 1, 1, 1]] * 30}
    cost = {
        name: [[c, c * 1.1, c * 0.9, c]] * 30 for name, c in (("good", 1), ("bad", 3), ("same", 1))
    }
    fit = bkc.evaluate_cost(bk.tally(runs, cost=cost), **FAST)
    found = bkc.pareto(fit).query("target == 'questions'").set_index("system")
    assert found.loc["bad", "prob_pareto"] == 0.0
    assert 0.5 < found.loc["good", "prob_pareto"] < 1.0
    assert abs(found.loc["good", "prob_cheapest"] - found.loc["same", "prob_cheapest"]) < 0.2


def test_what_cannot_be_compared_is_refused(costs: xr.DataTree) -> None:
    with pytest.raises(ValueError, match="at least two systems"):
        bkc.compare_cost(bkc.evaluate_cost(_data()["large"], **FAST))
    runs = {"a": [[1], [0]], "b": [[1], [None]]}
    cost = {"a": [[1.0], [2.0]], "b": [[1.0], [2.0]]}
    data = bk.tally(runs, cost=cost, missing="ignore")
    with pytest.raises(ValueError, match=r"\[2, 1\] of 2.*data\.shared\(\)"):
        bkc.pareto(bkc.evaluate_cost(data, **FAST))
    assert len(bkc.pareto(bkc.evaluate_cost(data.shared(), **FAST))) == 4
    with pytest.raises(ValueError, match=r"k must be one of \[1, 3\]"):
        bkc.pareto(costs, 2)
    with pytest.raises(ValueError, match="evaluated with some k"):
        bkc.pareto(bkc.evaluate_cost(_data(), (), **FAST))


def test_a_plan_in_money_is_the_plan_in_trials(costs: xr.DataTree) -> None:
    pilot = bk.evaluate(_data(), "pass@1", difficulty="beta", rng=1)
    price = float(
        costs["posterior"]["mean_cost"].sel(target="population").mean(("chain", "draw")).sum()
    )
    plan = plan_table(pilot, "pass@1", width=0.2, trials=[1, 4], price=costs)
    assert_allclose(plan["cost"], price * plan["total"])
    spent = plan_table(pilot, "pass@1", spend=300.0, trials=[1, 4], price=price)
    assert (spent["questions"] == np.floor(300.0 / price / spent["trials"])).all()
    assert (spent["cost"] <= 300.0).all()
    assert spent["best"].sum() == 1
    assert spent.loc[spent["best"], "prob_correct"].item() == spent["prob_correct"].max()
    for questions, n, width in spent[["questions", "trials", "width"]].to_numpy():
        again = plan_table(pilot, "pass@1", width=width * 1.000001, trials=[int(n)])
        assert again["questions"].item() == questions
    poor = plan_table(pilot, "pass@1", spend=0.01, trials=[1], price=price)
    assert poor["questions"].item() == 0.0
    assert not poor["best"].any()


def test_plans_in_money_that_cannot_be_are_refused(costs: xr.DataTree) -> None:
    source = (0.5, 0.3)
    for options, message in (
        ({"spend": 10.0}, "beside the price"), ({"spend": -1.0, "price": 1.0}, "spend must be"),
        ({"spend": 10.0, "price": 0.0}, "price must be"),
        ({"width": 0.1, "price": costs}, "1 systems"),
        ({"spend": 1.0, "price": 1.0, "width": 0.1}, "exactly one goal"), ({}, "exactly one goal"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            plan_table(source, "pass@1", **options)


def test_the_plot_shows_means_and_regions(costs: xr.DataTree) -> None:
    plot = bk.plots.plot_cost(costs, k=3, backend="matplotlib")
    means = costs["posterior"].to_dataset().sel(k=3, target="population", system="large").mean()
    place = plot.get_viz("points", system="large", target="population").get_offsets()[0]
    assert_allclose(place, [means["cost_to_success"], means["pass_at_k"]])
    line = plot.get_viz("region", system="large", target="population")
    x, y = line.get_xdata(), line.get_ydata()
    drawn = costs["posterior"].to_dataset().sel(k=3, target="population", system="large")
    cost, solved = drawn["cost_to_success"].values.ravel(), drawn["pass_at_k"].values.ravel()
    from matplotlib.path import Path

    inside = Path(np.stack([x, y], axis=1)).contains_points(np.stack([cost, solved], axis=1))
    assert 0.9 < inside.mean() < 0.99
    for backend in ("plotly", "bokeh"):
        bk.plots.plot_cost(costs, target="questions", backend=backend)
    with pytest.raises(ValueError, match=r"k must be one of \[1, 3\]"):
        bk.plots.plot_cost(costs, k=7)


def test_verifying_needs_the_same_prior_of_costs(costs: xr.DataTree) -> None:
    assert bk.verify(costs, costs.drop_nodes("closed_form")).verdict != "disagree"
    other = bkc.evaluate_cost(_data(), 1, cost_prior=bkc.CostPrior(slope=2.0), **FAST)
    with pytest.raises(ValueError, match="same cost_prior"):
        bk.verify(costs, other.drop_nodes("closed_form"))


def test_exports_hold_the_table_of_costs(costs: xr.DataTree, tmp_path: Any) -> None:
    table = bk.table(costs, "costs")
    assert set(table["quantity"]) >= {"cost_of_pass", "coverage_at_budget"}
