"""Predictions at values of covariates, and horizons: against formulas, limits and simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit, ndtr
from scipy.stats import beta as beta_law

import bayesatk as bk
from bayesatk.metrics.grid import parse
from bayesatk.results.predictions import curve_of
from bayesatk.results.result import Result


def simulated(seed=1, questions=60, starts=(1.5, 3.0), slope=-0.7, trials=4, shared=0.8):
    """Systems on tasks of 1 to 64 minutes, in two domains; what covariates leave is shared."""
    rng = np.random.default_rng(seed)
    doublings = rng.uniform(0.0, 6.0, questions)
    z = rng.standard_normal(questions)
    runs = {}
    for i, start in enumerate(starts):
        mean = expit(start + slope * doublings)
        scores = np.sqrt(shared) * z + np.sqrt(1.0 - shared) * rng.standard_normal(questions)
        p = beta_law.ppf(ndtr(scores), 2.0 * mean, 2.0 * (1.0 - mean))
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
    row = bk.decide.horizon(fit, "doublings", level=0.7).set_index("system").loc["s1"]
    coefficients, _ = curve_of(Result.of(fit), 1)
    exact = (logit(0.7) - coefficients[:, 0]) / coefficients[:, 1]
    assert row["median"] == pytest.approx(np.median(exact), abs=0.01)
    ends = np.quantile(exact, [0.025, 0.975])
    assert [row["ci_lower"], row["ci_upper"]] == pytest.approx(ends, abs=0.02)
    assert row["prob_none"] == 0.0
    values = simulated().dataset["doublings"].values
    assert row["prob_outside"] == np.mean((exact < values.min()) | (exact > values.max()))
    assert "falls to 0.7 at doublings" in row["sentence"]


@pytest.mark.parametrize("metric", ["pass@1", "pass@4", "pass^3", "maj@3"])
def test_the_metric_has_the_level_at_the_horizon(fit, metric) -> None:
    """In as many draws the metric at the median is above the level as it is below."""
    coefficients, curve = curve_of(Result.of(fit), 1)
    median = bk.decide.horizon(fit, "doublings", metric, 0.4)["median"].iloc[1]
    at_median = curve.average(parse(metric)[0])(coefficients @ [1.0, median])
    assert (at_median > 0.4).mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("start", "slope", "words"),
    [
        (1.5, 0.0, ["outside the observed values, 0.232 to 5.84", "there is no such value."]),
        (-2.0, 0.7, ["rises to 0.5"]),
    ],
)
def test_a_curve_may_be_flat_or_rise(start, slope, words) -> None:
    data = simulated(2, questions=60, starts=(start,), slope=slope, trials=4)
    fit = bk.evaluate(data, "pass@1", covariates=["doublings"], rng=1)
    row = bk.decide.horizon(fit, "doublings").iloc[0]
    for phrase in words:
        assert phrase in row["sentence"]
    if slope:
        assert row["ci_lower"] < -start / slope < row["ci_upper"]
    else:
        assert row["ci_upper"] == np.inf
        assert 0.05 < row["prob_none"] < 0.95


@pytest.mark.parametrize("level", [0.2, 0.45, 0.5, 0.55, 0.8])
def test_a_sentence_says_where_the_median_is(level) -> None:
    """Along a flat curve horizons are anywhere, with intervals that are often without ends."""
    data = simulated(2, questions=40, starts=(0.0, 0.3), slope=0.02, trials=4)
    fit = bk.evaluate(data, "pass@1", covariates=["doublings"], rng=1)
    low, high = np.percentile(data.dataset["doublings"].values, [0, 100])
    for row in bk.decide.horizon(fit, "doublings", level=level).to_dict("records"):
        sentence = row["sentence"]
        assert (f" to {level:g} at any doublings" in sentence) == np.isinf(row["median"])
        assert "= infinity" not in sentence
        assert "-infinity to infinity" not in sentence
        is_outside = np.isfinite(row["median"]) and not low <= row["median"] <= high
        assert ("outside the observed values" in sentence) == is_outside


def test_a_level_that_unsolvable_questions_keep_out_of_reach_is_never_crossed() -> None:
    """A third of the questions is never solved, so that pass@1 is below 0.9 at any size."""
    size = np.repeat([1.0, 2.0, 3.0], 30)
    marks = (np.arange(90) % 3 > 0)[:, None] & (np.arange(8) < 9 - 2 * size[:, None])
    data = bk.tally(marks.astype(int), covariates={"size": size})
    fit = bk.evaluate(data, "pass@1", covariates=["size"], difficulty="inflated", rng=1)
    row = bk.decide.horizon(fit, "size", level=0.9).iloc[0]
    assert row["prob_none"] > 0.9
    assert row["median"] == -np.inf
    assert "does not fall to 0.9 at any size, with probability > 0.999." in row["sentence"]


def test_other_covariates_move_it() -> None:
    fit = bk.evaluate(simulated(), "pass@1", covariates=["doublings", "domain"], draws=99, rng=1)
    coefficients, _ = curve_of(Result.of(fit), 0)
    for domain, maths in (("code", 0.0), ("maths", 1.0)):
        row = bk.decide.horizon(fit, "doublings", at={"domain": domain}).iloc[0]
        exact = -(coefficients[:, 0] + maths * coefficients[:, 2]) / coefficients[:, 1]
        assert row["median"] == pytest.approx(np.median(exact), abs=0.05)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"covariate": "minutes"}, "one of 'doublings'"),
        ({"metric": "pass@1,2"}, "must be one metric"),
        ({"metric": "plurality@3"}, "of right and wrong"),
        ({"level": 1.0}, "strictly between 0 and 1"),
        ({"at": {"domain": "code"}}, "covariates of the model, 'doublings'"),
        ({"at": {"doublings": 1.0}}, "each other covariate"),
        ({"ci_prob": 2.0}, "between 0 and 1"),
    ],
)
def test_what_has_no_horizon_is_refused(fit, options, says) -> None:
    with pytest.raises(ValueError, match=says):
        bk.decide.horizon(fit, **({"covariate": "doublings"} | options))


def test_results_without_covariates_are_refused() -> None:
    plain = bk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1, draws=2)
    for call in (lambda: bk.predict(plain, {"x": 1}), lambda: bk.decide.horizon(plain, "x")):
        with pytest.raises(ValueError, match="fit must have covariates"):
            call()


@pytest.mark.long
def test_intervals_of_horizons_hold_the_truth() -> None:
    inside = np.zeros(2)
    for seed in range(25):
        fit = bk.evaluate(
            simulated(1000 + seed), "pass@1", covariates=["doublings"], draws=500, rng=1
        )
        rows, truth = bk.decide.horizon(fit, "doublings"), np.array([1.5, 3.0]) / 0.7
        inside += (rows["ci_lower"] <= truth) & (truth <= rows["ci_upper"])
    # Fewer than 20 of 25 hold the truth once in 5,000 studies at 95%; at 75%, in 6 of 10.
    assert (inside >= 20).all(), inside


def test_true_and_false_are_values_as_they_are_in_the_data() -> None:
    data = bk.tally([[1, 1], [0, 1], [1, 0], [0, 0]], covariates={"web": [True, False] * 2})
    fit = bk.evaluate(data, "pass@1", covariates=["web"], difficulty="beta", draws=50, rng=1)
    flags, numbers = (bk.predict(fit, {"web": values}) for values in ([True, False], [1, 0]))
    assert flags["mean"].tolist() == numbers["mean"].tolist()
    assert bk.predict(fit, {"web": np.bool_(True)})["web"].tolist() == [1.0, 1.0]
