"""Digits of results where trials or k are many: against exact rationals, and against laws."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import betaln

import bayesatk as bk
from bayesatk.core.pooling.marks import _beta_binomial
from bayesatk.core.question.bernstein import latent_means
from bayesatk.metrics.grid import parse
from bayesatk.posterior.model import CountModel
from tests import witness

METRICS = {
    "pass@1": ("pass@", 1),
    "pass@201": ("pass@", 201),
    "pass^201": ("pass^", 201),
    "maj@16": ("maj@", 16),
    "mg-pass@540": ("mg-pass@", 540),
    "auc@64": ("auc", 64),
}
ENDS = ["ci_lower", "ci_upper"]


def rows_of(data: object, metrics: object, **options: object) -> pd.DataFrame:
    fit = bk.evaluate(data, metrics, **{"rng": 1, **options})
    return bk.table(fit).set_index(["metric", "target"])


@pytest.mark.parametrize("pooling", ["none", "complete"])
@pytest.mark.parametrize(
    ("right", "trials"),
    [([3, 2], [5, 4]), ([16], [16]), ([600, 900], [1000, 1000]), ([99_000], [100_000]),
     ([999_000, 600_000], [10**6, 10**6])],
)  # fmt: skip
def test_results_without_a_law_are_exact(pooling: str, right: list[int], trials: list[int]) -> None:
    counts = [(n - c, c) for c, n in zip(right, trials, strict=True)]
    model = CountModel.of(bk.priors.BetaPrior(), np.array(counts), pooling=pooling)
    found = model.fit([parse(label)[0] for label in METRICS])
    if pooling == "complete":
        counts = [tuple(np.sum(counts, axis=0).tolist())]
    for place, (name, k) in enumerate(METRICS.values()):
        credit = witness.credit_by_definition(name, k)
        each = [witness.posterior_moments(credit, c + 1, f + 1) for f, c in counts]
        mean, variance = (sum(column, Fraction(0)) for column in zip(*each, strict=True))
        assert found.mean[place, 0] == pytest.approx(float(mean) / len(counts), rel=1e-9)
        assert found.sd[place, 0] == pytest.approx(sqrt(variance) / len(counts), rel=5e-9)


@pytest.mark.parametrize("pooling", ["none", "complete", "partial"])
@pytest.mark.parametrize("right", [16, 1])
def test_results_stay_inside_the_scale(pooling: str, right: int) -> None:
    data = bk.tally(([right] * 3, [16] * 3))
    rows = rows_of(data, "pass@1,16 pass^16 auc@16", pooling=pooling)
    assert (rows[[*ENDS, "mean"]] >= 0.0).all(axis=None)
    assert (rows[[*ENDS, "mean"]] <= 1.0).all(axis=None)
    assert (rows["sd"] > 0.0).all()


def test_a_thousand_million_trials() -> None:
    row = rows_of(([999_900_000], [10**9]), "pass^201", pooling="none").loc["pass^201", "questions"]
    credit = witness.credit_by_definition("pass^", 201)
    mean, variance = witness.posterior_moments(credit, 999_900_001, 100_001)
    assert row["mean"] == pytest.approx(float(mean), rel=1e-9)
    assert row["sd"] == pytest.approx(sqrt(variance), rel=1e-6)


@pytest.mark.parametrize(
    ("right", "trials", "metric", "options", "sds"),
    [
        ([999_900] * 30, [10**6] * 30, "pass^201", {"difficulty": "beta"}, (0.00036, 0.00037)),
        pytest.param([995] * 300, [1000] * 300, "pass^201", {}, (0.0095, 0.0095),
                     marks=pytest.mark.long),
        pytest.param([9990] * 10, [10_000] * 10, "pass^256", {}, (0.0198, 0.0385),
                     marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_high_powers_of_many_trials(right, trials, metric, options, sds) -> None:
    rows = rows_of((right, trials), metric, **options)
    for target, sd in zip(("questions", "population"), sds, strict=True):
        assert rows.loc[metric, target]["sd"] == pytest.approx(sd, rel=0.03)
    # Questions so alike are as good as one: its p to a power, by the delta method.
    p, k = right[0] / trials[0], int(metric.split("^")[1])
    exact = k * p ** (k - 1) * sqrt(p * (1.0 - p) / sum(trials))
    assert rows.loc[metric, "questions"]["sd"] == pytest.approx(exact, rel=0.04)


def test_questions_that_hardly_differ_explain_next_to_nothing() -> None:
    row = rows_of(([999_900] * 30, [10**6] * 30), "pass^201", difficulty="beta")
    row = row.loc["pass^201", "population"]
    assert row["variance_question"] == pytest.approx(1.04e-8, rel=0.1)
    assert row["variance_trial"] == pytest.approx(1.29e-7, rel=0.05)


# Intervals without pooling


def test_one_question_without_pooling_is_its_beta() -> None:
    rows = rows_of(bk.tally(([2], [5])), "pass@1,4 pass^3", pooling="none")
    ends = stats.beta(3, 4).ppf([0.025, 0.975])
    for target in ("questions", "population"):
        for label, values in (
            ("pass@1", ends),
            ("pass@4", 1 - (1 - ends) ** 4),
            ("pass^3", ends**3),
        ):
            assert rows.loc[label, target][ENDS].tolist() == pytest.approx(values, rel=2e-6)


def test_ends_of_few_questions_keep_to_order_and_mirror() -> None:
    right, trials, order = np.array([0, 3, 5, 2, 4]), np.array([5, 4, 5, 9, 4]), [3, 0, 4, 2, 1]
    rows = rows_of(bk.tally((right, trials)), "pass@1,8 maj@3", pooling="none")
    other = rows_of(bk.tally((right[order], trials[order])), "pass@1,8 maj@3", pooling="none")
    pd.testing.assert_frame_equal(rows, other, check_exact=False, rtol=1e-12)
    turned = rows_of(bk.tally((trials - right, trials)), "pass@1 pass^8 maj@3", pooling="none")
    for label, mirrored in (("pass@1", "pass@1"), ("pass@8", "pass^8"), ("maj@3", "maj@3")):
        low, high = turned.loc[mirrored, "questions"][ENDS]
        found = rows.loc[label, "questions"][ENDS].tolist()
        assert found == pytest.approx([1.0 - high, 1.0 - low], abs=1e-9)
    p = np.random.default_rng(1).beta(1 + right, 1 + trials - right, (100_000, 5))
    for label, values in (("pass@1", p), ("pass@8", 1 - (1 - p) ** 8)):
        row = rows.loc[label, "questions"]
        drawn = np.quantile(values.mean(axis=1), [0.025, 0.975])
        assert row[ENDS].tolist() == pytest.approx(drawn, abs=0.04 * row["sd"])


# The part of the variance that more trials could remove


def test_variance_of_questions_is_that_of_known_p() -> None:
    """Draw every p from its posterior; given these, the law's posterior is a sum of logs."""
    rng, n = np.random.default_rng(11), 16
    right = rng.binomial(n, rng.beta(0.4, 0.4, 60))
    row = rows_of((right, [n] * 60), "pass@1", difficulty="beta").loc["pass@1", "population"]
    grid = (np.arange(120) + 0.5) / 120
    mean, icc = (axis.ravel() for axis in np.meshgrid(grid, grid))
    a, b = mean * (1 - icc) / icc, (1 - mean) * (1 - icc) / icc
    logs = np.sum([betaln(a + c, b + n - c) - betaln(a, b) for c in right], axis=0)
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    known = []
    for place in rng.choice(len(weight), 200, p=weight):
        shapes = np.stack([a[place] + right, b[place] + n - right])
        gammas = np.log(rng.gamma(shapes + 1.0)) - rng.exponential(size=shapes.shape) / shapes
        log_p, log_q = (gammas - np.logaddexp(*gammas)).sum(axis=1)
        logs = a * log_p + b * log_q - 60 * betaln(a, b)
        given = np.exp(logs - logs.max())
        given /= given.sum()
        known.append(given @ (mean - given @ mean) ** 2)
    assert row["variance_question"] == pytest.approx(np.mean(known), rel=0.02)
    total = weight @ (mean - weight @ mean) ** 2
    assert row["variance_trial"] == pytest.approx(total - np.mean(known), rel=0.05)


@pytest.mark.parametrize(
    "difficulty",
    ["inflated", *(pytest.param(one, marks=pytest.mark.long) for one in ("mixture", "averaged"))],
)
def test_trials_without_end_leave_the_variance_of_questions(difficulty: str) -> None:
    rng = np.random.default_rng(11)
    p = rng.beta(0.4, 0.4, 60)
    few, many = (
        rows_of((rng.binomial(n, p), [n] * 60), "pass@1,4", difficulty=difficulty)
        for n in (16, 20_000)
    )
    for label in ("pass@1", "pass@4"):
        row, without_end = few.loc[label, "population"], many.loc[label, "population"]
        assert row["variance_trial"] > 1e-4
        assert row["variance_question"] == pytest.approx(without_end["sd"] ** 2, rel=0.15)


# Many metrics at once


def test_metrics_of_any_k_are_sums_over_questions() -> None:
    taus = parse([f"g-pass@1030:{tau:.2f}" for tau in np.linspace(0.01, 1.0, 100)])
    powers = ",".join(str(2**i) for i in range(12))
    every = [
        *taus,
        *parse(
            " ".join(
                name + powers for name in ("pass@", "pass^", "maj@", "mg-pass@", "auc@", "max@")
            )
        ),
    ]
    p, share = np.random.default_rng(1).random((3, 4)), np.full((4, 1), 0.25)
    sums = latent_means([metric.credit for metric in every], p, share)[:, 0]
    values = np.stack([metric.latent(p).mean(axis=1) for metric in every], axis=1)
    np.testing.assert_allclose(sums, values, rtol=1e-9, atol=1e-14)


@pytest.mark.long
def test_a_hundred_thresholds() -> None:
    taus = [f"g-pass@1030:{tau:.2f}" for tau in np.linspace(0.01, 1.0, 100)]
    rows = rows_of(([3, 9, 16, 0], [16] * 4), taus, difficulty="beta")
    means = rows.xs("questions", level="target")["mean"]
    assert (np.diff(means) <= 1e-12).all()  # more successes are harder
    assert rows.loc["g-pass@1030:1", "questions"]["mean"] == pytest.approx(
        rows_of(([3, 9, 16, 0], [16] * 4), "pass^1030", difficulty="beta").loc[
            "pass^1030", "questions"
        ]["mean"],
        rel=1e-9,
    )


# Votes


def votes_of(answers: list[list[str]], seeds: tuple[int, ...]) -> pd.DataFrame:
    data = bk.tally(None, answers=answers, reference=["r"] * len(answers))
    found = [rows_of(data, "plurality@64", rng=seed) for seed in seeds]
    rows = pd.concat(found, keys=seeds, names=["seed"])
    assert (rows[[*ENDS, "mean"]] >= 0.0).all(axis=None)
    assert (rows[[*ENDS, "mean"]] <= 1.0).all(axis=None)
    return rows


@pytest.mark.parametrize(
    ("questions", "votes", "seeds"),
    [(5, 3, (1, 2)), pytest.param(50, 8, (1, 2), marks=pytest.mark.long)],
)
def test_seeds_of_votes_agree(questions: int, votes: int, seeds: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    p = np.ones(questions) if votes == 3 else rng.beta(20, 0.5, questions)
    right = rng.random((questions, votes)) < p[:, None]
    answers = np.where(right, "r", rng.choice(["a", "b", "c"], right.shape)).tolist()
    rows = votes_of(answers, seeds)
    for _, of_target in rows.groupby(level="target"):
        error = of_target["sd"].mean() / np.sqrt(4000)  # of a mean of so many draws
        assert np.ptp(of_target["mean"]) <= 5.0 * error


def test_simulated_votes_stay_inside_the_scale() -> None:
    data = bk.tally(None, answers=[["r"] * 19 + ["a"]] * 3, reference=["r"] * 3)
    rows = rows_of(data, "plurality@400", pooling="none")
    assert (rows["ci_upper"] <= 1.0).all()
    assert (rows["ci_lower"] < rows["mean"]).all()


# Marks of a judge


@pytest.mark.parametrize("icc", [0.5, 1e-2, 1e-4, 1e-6])
def test_rates_that_hardly_differ_are_numbers(icc: float) -> None:
    total = 1.0 / icc - 1.0
    found = _beta_binomial(np.array([0.9]), np.array([icc]), np.array([[2, 5]]), 64)[0, 64, :, 0]
    expected = stats.betabinom(64, 0.9 * total + 5, 0.1 * total + 2).pmf(np.arange(65))
    np.testing.assert_allclose(found, expected, rtol=1e-7)
