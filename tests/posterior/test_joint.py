"""The joint draws of a result, against its table and against what the questions say."""

from typing import Any

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy.special import expit

import bayesatk as bk
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values

SAMPLE = ("chain", "draw")
QUESTIONS, TRIALS = 36, 5
_RNG = np.random.default_rng(3)
DIFFICULTY = 1.5 * _RNG.standard_normal(QUESTIONS)
RATE = expit(np.array([[0.8], [0.3], [-0.4]]) + DIFFICULTY + 0.4 * _RNG.standard_normal((3, 36)))
MARKS = (_RNG.random((3, QUESTIONS, TRIALS)) < RATE[..., None]).astype(int)
SYSTEMS = ("a", "b", "c")
RUNS = dict(zip(SYSTEMS, MARKS, strict=True))
WEIGHT = np.exp(_RNG.standard_normal(QUESTIONS))
GROUP = [f"g{question % 4}" for question in range(QUESTIONS)]
ANSWERS = {
    name: np.where(own == 1, "yes", _RNG.choice(["no", "maybe"], own.shape)).tolist()
    for name, own in RUNS.items()
}
MIXED = {name: own + own[:, ::-1] for name, own in RUNS.items()}

CASES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "marks": (RUNS, "pass@1,4 pass^8", {}),
    "no pooling": (RUNS, "pass@1,4", {"pooling": "none"}),
    "complete pooling": (RUNS, "pass@1,4", {"pooling": "complete"}),
    "grades": (bk.tally(MIXED, scores={0: 0.0, 1: 1.0, 2: 2.0}), "bayes max@3", {}),
    "votes": (bk.tally(None, answers=ANSWERS, reference=["yes"] * QUESTIONS), "plurality@3", {}),
    "groups": (RUNS, "pass@1,4", {"group": GROUP}),
    "grades in groups": (
        bk.tally(MIXED, scores={0: 0.0, 1: 1.0, 2: 2.0}), "bayes max@3", {"group": GROUP}
    ),
    "equal groups": (RUNS, "pass@1", {"group": GROUP, "group_weights": "equal"}),
    "covariates": (bk.tally(RUNS, covariates={"length": DIFFICULTY}), "pass@1",
                   {"covariates": ["length"]}),
    "weights": (bk.tally(RUNS, weight=WEIGHT), "pass@1,4", {}),
    "weights by the law": (bk.tally(RUNS, weight=WEIGHT), "pass@1", {"population": "law"}),
    "judge": (RUNS, "pass@1", {"judge": bk.JudgeError(tp=90, p=100, fp=10, n=100)}),
}  # fmt: skip


def _fit(name: str) -> xr.DataTree:
    data, metrics, options = CASES[name]
    return bk.evaluate(data, metrics, rng=1, **options)


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_means_and_sds_of_the_table_and_differences_those_of_compare(
    name: str,
) -> None:
    fit = bk.compare(_fit(name))
    result = Result.of(fit)
    for metric in result.metrics:
        draws = metric_values(fit["joint_posterior"].to_dataset(), metric)
        table = metric_values(result.statistics, metric)
        mean = table.sel(statistic="mean", drop=True).transpose("system", "target")
        sd = table.sel(statistic="sd", drop=True).transpose("system", "target")
        np.testing.assert_allclose(draws.mean(SAMPLE).transpose(*mean.dims), mean, rtol=1e-9)
        # Quantiles of 10,000 draws of p, where sds have an error of .7%.
        np.testing.assert_allclose(draws.std(SAMPLE).transpose(*sd.dims), sd, rtol=0.025)
        assert ((draws >= -1e-9) & (draws <= max(result.scores) + 1e-9)).all()
        gap = (draws.sel(system="a") - draws.sel(system="c")).rename("gap")
        summary = az.summary(gap.to_dataset(), ci_prob=0.95, ci_kind="eti", round_to="none")
        row = metric_values(fit["comparison"].to_dataset(), metric).sel(system="a", other="c")
        for ours, theirs in (
            ("mean", "mean"),
            ("sd", "sd"),
            ("ci_lower", "eti95_lb"),
            ("ci_upper", "eti95_ub"),
        ):
            said = row.sel(contrast=ours).transpose("target").values
            np.testing.assert_allclose(said, summary[theirs], atol=1e-9)
        better = (gap > 0).mean(SAMPLE).transpose("target")
        np.testing.assert_allclose(row.sel(contrast="prob_greater"), better, atol=1e-9)


def _correlation(fit: xr.DataTree, target: str, **at: Any) -> float:
    joint_draws = fit[fit["posterior"].attrs["joint_draws"]]
    draws = joint_draws["pass_at_k"].sel(target=target, k=1, **at)
    values = draws.transpose("system", *SAMPLE).values.reshape(3, -1)
    return float(np.corrcoef(values)[0, 1])


def test_systems_are_independent_on_these_questions_and_move_together_on_others() -> None:
    fit = _fit("marks")
    assert abs(_correlation(fit, "questions")) < 0.05
    seen = np.corrcoef(MARKS.mean(axis=2))[0, 1]
    assert abs(_correlation(fit, "population") - seen) < 0.12
    # What covariates account for, all questions like these have in common.
    within = _fit("covariates")
    slope = np.column_stack([np.ones(QUESTIONS), DIFFICULTY])
    rates = MARKS.mean(axis=2).T
    left = rates - slope @ np.linalg.lstsq(slope, rates, rcond=None)[0]
    assert abs(_correlation(within, "population") - np.corrcoef(left.T)[0, 1]) < 0.15


def test_in_a_group_that_both_tried_in_full_systems_are_independent_on_these_questions() -> None:
    """Elsewhere each lacks what the other tried, and their errors there are opposite."""
    group, marks = np.repeat(["tried by both", "tried by one"], [12, 24]), MARKS.astype(float)
    marks[0, 12:24], marks[1, 24:] = np.nan, np.nan
    runs = dict(zip("ab", marks, strict=False))
    data = bk.tally(runs, group=group.tolist(), missing="ignore")
    fit = bk.evaluate(data, "pass@1", rng=1)
    draws = fit["group_posterior"]["pass_at_k"].sel(target="questions", k=1)
    values = draws.transpose("group", "system", *SAMPLE).values.reshape(2, 2, -1)
    both, one = (np.corrcoef(of_group)[0, 1] for of_group in values)
    assert abs(both) < 0.05
    assert one < -0.3


def test_draws_of_one_system_keep_their_metrics_together() -> None:
    fit = _fit("marks")
    for group in ("posterior", "joint_posterior"):
        draws = fit[group]["pass_at_k"].sel(target="population", system="a")
        one, four = (draws.sel(k=k).values.ravel() for k in (1, 4))
        assert np.corrcoef(one, four)[0, 1] > 0.5


def test_a_copy_of_a_system_changes_nothing_for_the_others() -> None:
    with_copy = bk.compare(bk.evaluate(RUNS | {"d": MARKS[0]}, "pass@1", rng=1))
    without = bk.compare(bk.evaluate(RUNS, "pass@1", rng=1))
    rows = [
        found["comparison"]["pass_at_k"].sel(system="a", other="b", k=1, target="population")
        for found in (with_copy, without)
    ]
    means, sds, chances = (
        [float(row.sel(contrast=name)) for row in rows] for name in ("mean", "sd", "prob_greater")
    )
    assert abs(means[0] - means[1]) < 1e-9
    assert abs(sds[0] / sds[1] - 1.0) < 0.08
    assert abs(chances[0] - chances[1]) < 0.03


def test_questions_that_only_some_systems_tried_count_for_those() -> None:
    tried = np.full((3, QUESTIONS), TRIALS)
    tried[1, ::2] = 0
    data = bk.tally((MARKS.sum(axis=2) * (tried > 0), tried), missing="ignore")
    fit = bk.compare(bk.evaluate(data, "pass@1", rng=1))
    assert int(fit["comparison"]["shared_questions"].sel(system=0, other=1)) == QUESTIONS // 2
    draws = fit["joint_posterior"]["pass_at_k"].sel(target="population", k=1)
    values = draws.transpose("system", *SAMPLE).values.reshape(3, -1)
    full = np.corrcoef(MARKS.mean(axis=2))
    found = np.corrcoef(values)
    assert abs(found[0, 2] - full[0, 2]) < 0.15
    # Half of the questions are shared: n / sqrt(n_a n_b) of the correlation is left.
    shared = np.corrcoef(MARKS[:, 1::2].mean(axis=2))[0, 1] / np.sqrt(2.0)
    assert abs(found[0, 1] - shared) < 0.2


@pytest.mark.parametrize("one_tried_all", [False, True])
def test_on_these_questions_each_lacks_what_the_other_tried(one_tried_all: bool) -> None:
    """Of equal p it is the difference of means of 35: 2 (1 - 10 / 35) / 35 of their variance.

    Where one tried all, it has no error, and there is nothing to share.
    """
    p = (np.arange(60) * 37 % 60 + 0.5) / 60
    trials = np.full((2, 60), 400)
    trials[1, :25] = 0
    if not one_tried_all:
        trials[0, 35:] = 0
    data = bk.tally((np.rint(trials * p).astype(int), trials), missing="ignore")
    fit = bk.evaluate(data, "pass@1", difficulty="beta", rng=1)
    draws = fit["joint_posterior"]["pass_at_k"].sel(target="questions", k=1)
    first, second = draws.transpose("system", *SAMPLE).values.reshape(2, -1)
    if one_tried_all:
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.05
        return
    expected = 2 * p.var() / 35 * (1 - 10 / 35)
    assert (first - second).var() == pytest.approx(expected, rel=0.1)


def test_groups_of_questions_have_joint_draws_too() -> None:
    fit = _fit("groups")
    drawn = fit["group_posterior"]["pass_at_k"]
    table = fit["group_closed_form"]["pass_at_k"].sel(statistic="mean")
    found = drawn.mean(SAMPLE)
    np.testing.assert_allclose(found, table.transpose(*found.dims), rtol=1e-6)
    quantiles = fit["group_closed_form_quantiles"]["pass_at_k"]
    below = (drawn <= quantiles).mean(SAMPLE)
    assert float(abs(below - quantiles["quantile"]).max()) < 0.03
    compared = bk.compare(fit)["group_comparison"]["pass_at_k"]
    means = compared.sel(system="a", other="b", contrast="mean")
    gap = drawn.mean(SAMPLE).sel(system="a") - drawn.mean(SAMPLE).sel(system="b")
    np.testing.assert_allclose(means, gap.transpose(*means.dims), atol=1e-9)


@pytest.mark.parametrize(("questions", "trials", "wrong"), [(40, 8, 1), (20, 4, 2), (6, 16, 1)])
def test_the_last_digits_of_solved_questions_put_no_system_ahead(questions, trials, wrong) -> None:
    """pass@64 is 1 to ten digits for both; a shift of draws by less said P(better) = 1."""
    marks = np.ones((2, questions, trials), int)
    marks[1, :wrong, 0] = 0
    fit = bk.evaluate({"all right": marks[0], "nearly": marks[1]}, "pass@1,64", rng=1)
    table = bk.table(bk.compare(fit)).query("target == 'questions' and metric == 'pass@64'")
    assert table["prob_greater"].between(0.05, 0.95).all()
    assert (table["verdict"] == "not separated").all()


def test_what_trials_do_not_tell_of_their_own_questions_no_other_system_tells() -> None:
    """Of pass@64 from 16 trials, a difference on questions like these is no surer than on these."""
    rng = np.random.default_rng(8)
    common = rng.standard_normal(40)
    p = expit(0.3 + 1.2 * common + 0.7 * rng.standard_normal((2, 40)))
    p[:, common < -0.5] = 0.0
    runs = bk.tally((rng.binomial(16, p), np.full(p.shape, 16)))
    draws = bk.evaluate(runs, "pass@1,64", rng=1)["joint_posterior"]["pass_at_k"].sel(k=64)
    gap = (draws.isel(system=0) - draws.isel(system=1)).var(SAMPLE)
    assert float(gap.sel(target="population")) > 0.9 * float(gap.sel(target="questions"))


def test_questions_that_nobody_tried_change_nothing_on_others() -> None:
    """Nor what two systems have in common of pass@16 from 4 trials."""
    rng = np.random.default_rng(8)
    p = expit(0.3 + 1.2 * rng.standard_normal(40) + 0.5 * rng.standard_normal((2, 40)))
    counts, found = rng.binomial(4, p), []
    for more in (0, 80):
        right = np.pad(counts, ((0, 0), (0, more)))
        trials = np.pad(np.full(counts.shape, 4), ((0, 0), (0, more)))
        data = bk.tally((right, trials), missing="ignore")
        draws = bk.evaluate(data, "pass@1,16", difficulty="beta", rng=1)["joint_posterior"]
        others = draws["pass_at_k"].sel(target="population").transpose("k", "system", *SAMPLE)
        found.append([np.corrcoef(own.reshape(2, -1))[0, 1] for own in others.values])
    assert found[0][1] > 0.1
    np.testing.assert_allclose(found[1], found[0], atol=0.01)
