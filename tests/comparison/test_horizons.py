"""Predictions at values of covariates, and horizons: against formulas, limits and simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit, ndtr
from scipy.stats import beta as beta_law
from scipy.stats import spearmanr

import bayesatk as bk
from bayesatk.metrics.grid import parse
from bayesatk.results.predictions import at_logits, curve_of
from bayesatk.results.result import Result


def simulated(seed=1, questions=60, starts=(1.5, 3.0), slope=-0.7, trials=4, shared=0.8):
    """Systems on tasks of 1 to 64 minutes, in two domains; what covariates leave is shared."""
    rng = np.random.default_rng(seed)
    doublings = rng.uniform(0.0, 6.0, questions)
    z = rng.standard_normal(questions)
    runs = {}
    for i, start in enumerate(starts):
        mean = expit(start + slope * doublings)
        own = np.sqrt(shared) * z + np.sqrt(1.0 - shared) * rng.standard_normal(questions)
        p = beta_law.ppf(ndtr(own), 2.0 * mean, 2.0 * (1.0 - mean))
        runs[f"s{i}"] = rng.binomial(1, p[:, None], (questions, trials))
    domain = rng.choice(["code", "maths"], questions)
    columns = {"doublings": doublings, "minutes": 2.0**doublings, "domain": domain}
    return bk.tally(runs, covariates=columns)


@pytest.fixture(scope="module")
def fit():
    return bk.evaluate(simulated(), "pass@1", covariates=["doublings"], rng=1)


def test_predictions_are_the_model(fit) -> None:
    """Average pass@2 by the moments of a Beta; a typical question by its median."""
    rows = bk.predict(fit, {"doublings": [0.0, 3.0]}, "pass@1 pass@2")
    coefficients, curve = curve_of(Result.of(fit), 1)
    icc = curve.laws.difficulty.icc[:, 0]
    ratio = icc / (1.0 - icc)
    for x in (0.0, 3.0):
        mean = expit(coefficients @ [1.0, x])
        a, b = mean / ratio, (1.0 - mean) / ratio
        exact = {
            ("pass@1", "average"): mean,
            ("pass@2", "average"): 1.0 - b * (b + 1.0) / ((a + b) * (a + b + 1.0)),
            ("pass@1", "typical"): beta_law.ppf(0.5, a, b),
        }
        for (metric, question), draws in exact.items():
            where = {"system": "s1", "doublings": x, "metric": metric, "question": question}
            (row,) = rows[(rows[list(where)] == pd.Series(where)).all(axis=1)].to_dict("records")
            assert row["mean"] == pytest.approx(draws.mean(), abs=1e-6)
            assert row["sd"] == pytest.approx(draws.std(ddof=1), abs=1e-6)
            ends = np.quantile(draws, [0.025, 0.975])
            assert [row["ci_lower"], row["ci_upper"]] == pytest.approx(ends, abs=1e-6)


def test_the_horizon_of_a_line_is_minus_intercept_over_slope(fit) -> None:
    found = bk.decide.horizon(fit, "doublings", level=0.7, rng=1)
    coefficients, _ = curve_of(Result.of(fit), 1)
    exact = np.maximum((logit(0.7) - coefficients[:, 0]) / coefficients[:, 1], 0.0)
    assert np.sort(found["horizon"]["draws"].sel(system="s1")) == pytest.approx(
        np.sort(exact), abs=1e-9
    )
    row = bk.table(found, "horizon").set_index("system").loc["s1"]
    assert row["median"] == pytest.approx(np.median(exact), abs=0.01)
    assert row["prob_none"] == np.mean(exact == 0.0) < 0.01  # below the level everywhere
    assert "falls to 0.7 at doublings" in row["sentence"]


@pytest.mark.parametrize("question", ["average", "typical"])
@pytest.mark.parametrize("metric", ["pass@1", "pass@4", "pass^3", "maj@3"])
def test_the_metric_has_the_level_at_the_horizon(fit, question, metric) -> None:
    (one,) = parse(metric)
    coefficients, curve = curve_of(Result.of(fit), 1)
    # One system alone keeps the order of its draws.
    alone = fit.map_over_datasets(lambda own: own.isel(system=[1]) if "system" in own.dims else own)
    values = bk.decide.horizon(alone, "doublings", metric, 0.4, question=question)["horizon"][
        "draws"
    ].values[:, 0]
    reached = at_logits(one, coefficients[:, 0] + coefficients[:, 1] * values, curve, question)
    crossed = values > 0.0
    assert crossed.mean() > 0.5
    assert reached[crossed] == pytest.approx(0.4, abs=1e-5)


def test_a_flat_curve_has_an_unbounded_interval_and_says_so() -> None:
    data = simulated(5, questions=30, starts=(1.5,), slope=0.0, trials=2)
    found = bk.decide.horizon(
        bk.evaluate(data, "pass@1", covariates=["minutes"], rng=1), "minutes", rng=1
    )
    row = bk.table(found, "horizon").iloc[0]
    assert 0.05 < row["prob_none"] < 0.95
    assert row["ci_upper"] == np.inf
    assert "infinity" in row["sentence"]
    assert "outside the observed values" in row["sentence"]
    assert row["sentence"].endswith("it never reaches that level.")


def test_a_covariate_may_help() -> None:
    data = simulated(2, starts=(-2.0,), slope=0.7)
    fit = bk.evaluate(data, "pass@1", covariates=["doublings"], rng=1)
    row = bk.table(bk.decide.horizon(fit, "doublings", rng=1), "horizon").iloc[0]
    assert "rises to 0.5" in row["sentence"]
    assert row["ci_lower"] < 2.0 / 0.7 < row["ci_upper"]


def test_lengths_are_never_negative() -> None:
    """Success below the level at any length: a horizon of 0, not of minus ten minutes."""
    data = simulated(3, starts=(-3.0, 3.0), slope=-0.3)
    fit = bk.evaluate(data, "pass@1", covariates=["minutes"], rng=1)
    found = bk.decide.horizon(fit, "minutes", rng=1)
    rows = bk.table(found, "horizon").set_index("system")
    assert rows.loc["s0", "median"] == 0.0
    assert rows.loc["s0", "prob_none"] > 0.9
    assert (found["horizon"]["draws"] >= 0.0).all()
    (pair,) = bk.table(found, "horizon_pairs").to_dict("records")
    assert pair["system"] == "s1"
    assert pair["ratio_upper"] == np.inf
    assert pair["prob_greater"] > 0.99


def test_systems_that_share_difficulty_err_together() -> None:
    many = simulated(questions=400, shared=0.9)
    fit = bk.evaluate(many, "pass@1", covariates=["doublings"], draws=500, rng=1)
    found = bk.decide.horizon(fit, "doublings", rng=1)
    assert spearmanr(*found["horizon"]["draws"].values.T).statistic > 0.1
    (pair,) = bk.table(found, "horizon_pairs").to_dict("records")
    width = pair["difference_upper"] - pair["difference_lower"]
    rng, draws = np.random.default_rng(1), found["horizon"]["draws"].values
    apart = np.quantile(draws[:, 1] - rng.permutation(draws[:, 0]), [0.025, 0.975])
    assert width < 0.98 * (apart[1] - apart[0])
    assert pair["prob_greater"] > 0.99
    assert "longer by" in pair["sentence"]
    turned = bk.decide.horizon(fit, "doublings", rng=2)
    assert bk.table(turned, "horizon").equals(bk.table(found, "horizon"))


@pytest.mark.long
def test_a_formula_is_turned_round() -> None:
    pytest.importorskip("formulaic")
    data = simulated(questions=40)
    for formula in ("~ log10(minutes) * domain", "~ sqrt(minutes)"):
        fit = bk.evaluate(data, "pass@1", covariates=formula, draws=250, rng=1)
        found = bk.table(bk.decide.horizon(fit, "minutes", rng=1), "horizon").set_index("system")
        for system in ("s0", "s1"):
            at = bk.predict(fit, {"minutes": found.loc[system, "median"]})
            (row,) = at[at["system"] == system].query("question == 'average'").to_dict("records")
            assert row["mean"] == pytest.approx(0.5, abs=0.02)
    both = bk.evaluate(data, "pass@1", covariates="~ log2(minutes) + domain", draws=99, rng=1)
    rows = [
        bk.table(bk.decide.horizon(both, "minutes", at={"domain": one}, rng=1), "horizon")
        for one in ("code", "maths")
    ]
    coefficient = both["posterior"]["coefficients"].sel(coefficient="domain[T.maths]")
    longer = rows[1]["median"].to_numpy() > rows[0]["median"].to_numpy()
    assert (longer == (coefficient.median(("chain", "draw")).values > 0.0)).all()
    same = bk.evaluate(data, "pass@1", covariates=["doublings"], draws=99, rng=1)
    log = bk.evaluate(data, "pass@1", covariates="~ log2(minutes)", draws=99, rng=1)
    medians = [
        bk.table(bk.decide.horizon(each, name, rng=1), "horizon")["median"].to_numpy()
        for each, name in ((same, "doublings"), (log, "minutes"))
    ]
    assert 2.0 ** medians[0] == pytest.approx(medians[1], rel=1e-6)


def test_a_bend_is_refused() -> None:
    pytest.importorskip("formulaic")
    fit = bk.evaluate(simulated(), "pass@1", covariates="~ poly(minutes, 2)", rng=1, draws=10)
    with pytest.raises(ValueError, match="crosses a level once"):
        bk.decide.horizon(fit, "minutes")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"covariate": "minutes"}, "one of 'doublings'"),
        ({"metric": "pass@1,2"}, "must be one metric"),
        ({"metric": "plurality@3"}, "of right and wrong"),
        ({"level": 1.0}, "strictly between 0 and 1"),
        ({"question": "usual"}, "'typical' or 'average'"),
        ({"at": {"domain": "code"}}, "covariates of the model, 'doublings'"),
        ({"at": {"doublings": 1.0}}, "each other covariate"),
        ({"ci_prob": 2.0}, "between 0 and 1"),
    ],
)
def test_what_has_no_horizon_is_refused(fit, options, says) -> None:
    given = {"covariate": "doublings"} | options
    with pytest.raises(ValueError, match=says):
        bk.decide.horizon(fit, **given)


def test_results_without_covariates_are_refused() -> None:
    plain = bk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1, draws=2)
    for call in (lambda: bk.predict(plain, {"x": 1}), lambda: bk.decide.horizon(plain, "x")):
        with pytest.raises(ValueError, match="fit must have covariates"):
            call()


@pytest.mark.long
def test_intervals_of_horizons_and_their_difference_hold_the_truth() -> None:
    """Over 25 data sets whose systems share what covariates leave."""
    inside = np.zeros(3)
    for seed in range(25):
        fit = bk.evaluate(
            simulated(1000 + seed), "pass@1", covariates=["doublings"], draws=500, rng=1
        )
        found = bk.decide.horizon(fit, "doublings", rng=1)
        truth = np.array([1.5, 3.0]) / 0.7
        rows = bk.table(found, "horizon")
        inside[:2] += (rows["ci_lower"] <= truth) & (truth <= rows["ci_upper"])
        (pair,) = bk.table(found, "horizon_pairs").to_dict("records")
        inside[2] += pair["difference_lower"] <= truth[1] - truth[0] <= pair["difference_upper"]
    # Fewer than 20 of 25 hold the truth once in 5,000 studies at 95%; at 75%, in 6 of 10.
    assert (inside >= 20).all(), inside
