"""Mean cost of a trial and cost of a success: exact enumerations, and what is not known."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta as beta_law

import bayesatk as bk
from bayesatk.posterior.costs import QuestionCosts

BOTH = "pass@1 cost cost/success"
FAST = {"difficulty": "beta", "rng": 1}


def simulated(seed: int, questions: int = 12, trials: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 1, questions)[:, None]
    marks = (rng.random((questions, trials)) < p).astype(int)
    return marks, rng.lognormal(1.0 - p, 0.7, (questions, trials)) * (1.0 + marks)


def rows(fit, metric: str, system: str = "system"):
    table = bk.table(fit).set_index(["system", "metric", "target"])
    return [table.loc[(system, metric, target)] for target in ("questions", "population")]


def test_the_covariance_of_these_questions_is_unbiased_by_enumeration() -> None:
    """Every outcome of three questions tried 2, 3 and 2 times, in rationals, with unequal shares.

    A trial is one of two equally likely pairs of a cost and a mark.
    """
    trials = [2, 3, 2]
    share = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    law = [((1, 0), (5, 1)), ((2, 1), (3, 0)), ((4, 1), (10, 1))]
    means, stated = [], []
    for drawn in product((0, 1), repeat=sum(trials)):
        outcomes = iter(drawn)
        runs = [[own[next(outcomes)] for _ in range(n)] for n, own in zip(trials, law, strict=True)]
        data = bk.tally(
            [[y for _, y in run] for run in runs], cost=[[x for x, _ in run] for run in runs]
        )
        covariance, degrees = QuestionCosts(data).covariance(0, np.array(share, float))
        by_question = [
            [s * Fraction(sum(column), len(run)) for column in zip(*run, strict=True)]
            for s, run in zip(share, runs, strict=True)
        ]
        means.append([sum(column) for column in zip(*by_question, strict=True)])
        stated.append(covariance)
        assert degrees == 4.0
    exact = [
        [
            sum(a[i] * a[j] for a in means) / len(means)
            - sum(a[i] for a in means) * sum(a[j] for a in means) / len(means) ** 2
            for j in (0, 1)
        ]
        for i in (0, 1)
    ]
    assert_allclose(np.mean(stated, axis=0), np.array(exact, float), rtol=1e-12)


def test_a_question_tried_once_has_the_pooled_covariance() -> None:
    data = bk.tally([[1, 0], [1, None], [1, 1]], cost=[[2, 6], [7, None], [3, 5]], missing="ignore")
    share = np.full(3, 1 / 3)
    within, degrees = QuestionCosts(data).covariance(0, share)
    first, third = np.cov([[2, 6], [1, 0]]), np.cov([[3, 5], [1, 1]])
    pooled = (first + third) / 2
    assert degrees == 2.0
    assert_allclose(within, (first / 2 + third / 2 + pooled) / 9)


def test_single_trials_have_the_uncertainty_between_questions_and_say_so() -> None:
    marks, cost = simulated(3, 20, 1)
    between, degrees = QuestionCosts(bk.tally(marks, cost=cost)).covariance(0, np.full(20, 0.05))
    assert degrees == 19.0
    assert_allclose(between, np.cov(cost[:, 0], marks[:, 0]) / 20)
    notes = bk.evaluate(bk.tally(marks, cost=cost), BOTH, **FAST).notes
    assert any("too few trials are repeated to tell how they differ" in one for one in notes)


def test_few_repeated_trials_do_not_tell_the_variance_within_questions() -> None:
    marks, cost = simulated(13, 6, 2)
    marks[:4, 1] = -1
    gaps = [[None if mark < 0 else int(mark) for mark in row] for row in marks]
    data = bk.tally(gaps, cost=cost, missing="ignore")
    between, degrees = QuestionCosts(data).covariance(0, np.full(6, 1 / 6))
    means = np.where(marks[:, 1] < 0, cost[:, 0], cost.mean(axis=1))
    assert degrees == 5.0  # of two questions that were repeated there would be 2
    assert between[0, 0] == pytest.approx(means.var(ddof=1) / 6)
    fit = bk.evaluate(bk.tally([[1, 0]] * 2, cost=[[1, 2]] * 2), "cost", **FAST)
    assert "system: with so few trials nothing tells how uncertain its costs are." in fit.notes
    assert np.isnan(rows(fit, "cost")[0]["sd"])


def test_draws_of_these_questions_have_the_variance_of_students_t() -> None:
    marks, cost = simulated(4)
    questions = QuestionCosts(bk.tally(marks, cost=cost))
    share = np.full(12, 1 / 12)
    covariance, degrees = questions.covariance(0, share)
    mean = questions.mean[0] @ share
    logs = np.log(questions.draw(0, share, 200_000, np.random.default_rng(1)))
    assert_allclose(logs.mean(axis=0), np.log(mean), atol=2e-3)
    expected = covariance / np.outer(mean, mean) * degrees / (degrees - 2.0)
    assert_allclose(np.cov(logs.T), expected, rtol=0.02)


def test_questions_drawn_anew_have_exact_moments() -> None:
    """Dirichlet weights: the mean, the covariance, and the mean of a ratio by quadrature.

    Of the ratio of two sums of Gamma variables: E[A/B] is the integral over t of E[A exp(-tB)].
    """
    marks, cost = simulated(5, 8)
    questions = QuestionCosts(bk.tally(marks, cost=cost))
    drawn = questions.draw_anew(np.ones(8), np.arange(8), 400_000, np.random.default_rng(1))[:, 0]
    x, y = questions.mean[0]
    assert_allclose(drawn.mean(axis=0), [x.mean(), y.mean()], rtol=2e-3)
    assert_allclose(np.cov(drawn.T), np.cov(x, y) / 8 * (8 - 1) / (8 - 3), rtol=0.02)
    shape, step = 1.0 - 4.0 / 8.0, 1e-3
    t = np.exp(np.arange(-40.0, 80.0, step))[:, None]
    moment = (1.0 + t * y) ** -shape
    integrand = moment.prod(axis=1) * (shape * x / (1.0 + t * y)).sum(axis=1)
    ratio = drawn[:, 0] / drawn[:, 1]
    error = ratio.std() / np.sqrt(len(ratio))
    assert ratio.mean() == pytest.approx(float(integrand @ t[:, 0] * step), abs=4 * error)


def test_weights_and_groups_weigh_costs_as_they_do_marks() -> None:
    marks, cost = simulated(6)
    weight = np.arange(1.0, 13.0)
    doubled = np.repeat(np.arange(12), np.arange(1, 13))
    fit = bk.evaluate(bk.tally(marks, cost=cost, weight=weight), BOTH, **FAST)
    whole = bk.evaluate(bk.tally(marks[doubled], cost=cost[doubled]), BOTH, **FAST)
    for metric in ("cost", "cost/success"):
        for own, other in zip(rows(fit, metric), rows(whole, metric), strict=True):
            assert own["estimate"] == pytest.approx(other["estimate"])
            assert own["sd"] > 1.3 * other["sd"]  # weights are no data
    groups = np.repeat([0, 1, 2, 3, 4, 5], [7, 1, 1, 1, 1, 1])
    macro = bk.evaluate(
        bk.tally(marks, cost=cost, group=groups),
        "pass@1 cost",
        group="group",
        group_weights="equal",
        **FAST,
    )
    table = bk.table(macro).query("metric == 'cost'").set_index("target")
    by_group = [cost[groups == group].mean() for group in range(6)]
    assert table["estimate"].to_numpy() == pytest.approx(np.mean(by_group))
    assert table.loc["new_groups", "mean"] == pytest.approx(np.mean(by_group), rel=0.03)
    sd = np.std(by_group, ddof=1) / np.sqrt(6) * np.sqrt(5 / 3)
    assert table.loc["new_groups", "sd"] == pytest.approx(sd, rel=0.1)


def test_differences_and_ratios_come_from_the_joint_draws() -> None:
    marks, cost = simulated(7)
    data = bk.tally({"a": marks, "b": marks}, cost={"a": cost, "b": 2.0 * cost}, cost_unit="USD")
    fit = bk.evaluate(data, BOTH, **FAST)
    table = bk.table(bk.compare(fit, rope=0.01), "comparison")
    for metric in ("cost", "cost/success"):
        these, like = (
            table[(table["metric"] == metric) & (table["target"] == target)].iloc[0]
            for target in ("questions", "population")
        )
        draws = fit["posterior"][{"cost": "cost"}.get(metric, "cost_per_success")]
        gap = (draws.sel(system="a") - draws.sel(system="b")).sel(target="population")
        sign = 1.0 if (like["system"], like["other"]) == ("a", "b") else -1.0
        assert like["mean"] == pytest.approx(sign * float(gap.mean()))
        # On the same questions the ratio is certain; on these, each has noise of its own.
        ends = like[["ratio_lower", "ratio_median", "ratio_upper"]].astype(float)
        assert_allclose(ends, 2.0**-sign)
        assert these["ratio_lower"] < 2.0**-sign < these["ratio_upper"]
        chance = {1.0: 1.0, -1.0: 0.0}[sign]  # the lower is the better
        assert like["prob_greater"] == chance
        assert like["verdict"] == ("ahead" if sign > 0 else "behind")
        assert "P(a is cheaper) > 0.999" in like["sentence"]
        assert like["sentence"] in str(table)
        assert np.isnan(like["prob_in_rope"])


def test_tables_have_no_metric_that_nobody_asked_for() -> None:
    marks, cost = simulated(8)
    data = bk.tally({"a": marks, "b": marks}, cost={"a": cost, "b": cost})
    for asked, shown in (("cost/success", ["cost/success"]), ("mean cost", ["mean", "cost"])):
        fit = bk.compare(bk.evaluate(data, asked, **FAST))
        for name in ("results", "comparison"):
            assert list(bk.table(fit, name)["metric"].unique()) == shown


def test_systems_alike_are_as_likely_to_be_cheaper() -> None:
    marks, cost = simulated(8)
    data = bk.tally({"a": marks, "b": marks}, cost={"a": cost, "b": cost})
    table = bk.table(bk.compare(bk.evaluate(data, BOTH, **FAST)), "comparison")
    costs = table[table["metric"] != "pass@1"].set_index(["metric", "target"])
    assert (costs["verdict"] == "not separated").all()
    assert (costs.xs("population", level="target")["prob_greater"] == 0.5).all()
    assert costs["prob_greater"].to_numpy() == pytest.approx(0.5, abs=0.04)


def test_without_a_success_its_cost_is_not_known() -> None:
    marks, cost = simulated(9)
    data = bk.tally({"a": marks, "b": 0 * marks}, cost={"a": cost, "b": cost})
    fit = bk.evaluate(data, BOTH, **FAST)
    for row in rows(fit, "cost/success", "b"):
        assert row[["estimate", "mean", "sd", "ci_lower", "ci_upper"]].isna().all()
    for row in rows(fit, "cost", "b"):
        assert row["estimate"] == pytest.approx(cost.mean())
    assert "b: no trial with a known cost succeeded, so cost/success is not known." in fit.notes
    compared = bk.table(bk.compare(fit), "comparison")
    assert compared["metric"].value_counts().to_dict() == {"pass@1": 2, "cost": 2}


@pytest.mark.parametrize(("solved", "has_mean"), [(1, False), (3, False), (4, True), (12, True)])
def test_the_cost_of_a_success_has_a_mean_where_its_variance_is_finite(
    solved: int, has_mean: bool
) -> None:
    """Of 12 questions at a cost of 1, always or never solved, the rate of success is a Beta.

    It is Beta(2/3 solved, 2/3 others), whose inverse has a variance from a first parameter of 2 on.
    """
    marks = np.repeat([1, 0], [solved, 12 - solved])[:, None] * np.ones((1, 3), int)
    runs, ones = {"a": marks, "b": marks[::-1]}, np.ones(marks.shape)
    data = bk.tally(runs, cost={"a": ones, "b": 2.0 * ones})
    fit = bk.evaluate(data, "cost/success", draws=20_000, **FAST)
    _, like = rows(fit, "cost/success", "a")
    assert np.isfinite(like[["mean", "sd"]].astype(float)).all() == has_mean
    rate = beta_law(2 / 3 * solved, 2 / 3 * (12 - solved) or 1e-9)
    exact = 1.0 / rate.ppf([0.975, 0.025])
    assert_allclose(
        np.log(like[["ci_lower", "ci_upper"]].astype(float)), np.log(exact), atol=0.1, rtol=0.1
    )
    noted = f": {solved} of 12 questions had a success, so few that cost/success on questions"
    assert any(noted in note for note in fit.notes) != has_mean
    compared = bk.table(bk.compare(fit)).query("target == 'population'").iloc[0]
    assert np.isfinite(compared["mean"]) == has_mean
    words = " times as much with a as with b (95% interval "
    assert (words in compared["sentence"]) != has_mean


def test_what_nothing_is_known_of_is_told() -> None:
    marks, cost = simulated(10, 4)
    fit = bk.evaluate(bk.tally(marks, cost=cost), "cost", **FAST)
    these, like = rows(fit, "cost")
    assert np.isfinite(these["sd"])
    assert np.isnan(like["sd"])
    assert "4 questions say nothing of costs on other questions; 5 are needed." in fit.notes
    gaps = {"a": marks.tolist(), "b": [[None] * 3, *marks[1:].tolist()]}
    data = bk.tally(gaps, cost={"a": cost, "b": cost}, missing="ignore")
    unknown = {"a": cost, "b": np.where(np.arange(4)[:, None] == 0, np.nan, cost)}
    no_costs = bk.tally({"a": marks, "b": marks}, cost=unknown, missing_cost="ignore")
    for lacking in (data, no_costs):
        fit = bk.evaluate(lacking, "cost", **FAST)
        assert any(note.startswith("Systems with costs of different") for note in fit.notes)
        assert "cost" not in set(bk.table(bk.compare(fit), "comparison")["metric"])
    shared = bk.compare(bk.evaluate(data.shared(), "cost", **FAST))
    assert "cost" in set(bk.table(shared, "comparison")["metric"])


def test_trials_without_a_cost_and_free_ones() -> None:
    marks, cost = simulated(11)
    known = cost.copy()
    known[0, 0] = known[5] = np.nan
    told = bk.tally(marks, cost=known, missing_cost="ignore")
    without = [
        [None if gap else mark for mark, gap in zip(*pair, strict=True)]
        for pair in zip(marks.tolist(), np.isnan(known), strict=True)
    ]
    left_out = bk.tally(without, cost=cost, missing="ignore")
    for metric in ("cost", "cost/success"):
        own, other = (rows(bk.evaluate(data, BOTH, **FAST), metric) for data in (told, left_out))
        assert_allclose(
            own[0][["estimate", "sd"]].astype(float), other[0][["estimate", "sd"]].astype(float)
        )
    free = bk.tally({"a": marks, "b": marks}, cost={"a": cost, "b": 0.0 * cost})
    fit = bk.evaluate(free, BOTH, **FAST)
    assert rows(fit, "cost/success", "b")[1][["mean", "sd"]].tolist() == [0.0, 0.0]
    compared = bk.compare(fit)
    ratios = [
        bk.table(compared, "comparison", of=of, against=against).query("metric == 'cost'")
        for of, against in ("ab", "ba")
    ]
    assert ratios[0]["ratio_median"].isna().all()  # to nothing there is no ratio
    assert "(no ratio, because b may cost nothing)" in ratios[0]["sentence"].iloc[0]
    assert ratios[1]["ratio_median"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (bk.tally([[1, 0]]), {}, r"data must say what trials cost for 'cost'.* cost='usd'"),
        (bk.tally([["a", "b"]], scores={"a": 0, "b": 0.5, "c": 1}, cost=[[1, 2]]),
         {}, r"needs trials that succeed or fail.* success='score >= 0.5'"),
        (bk.tally([[1, 0]], cost=[[1, 2]]), {"judge": bk.JudgeError(9, 10, 1, 10)},
         r"not corrected for errors of a judge"),
    ],
)  # fmt: skip
def test_costs_that_cannot_be_are_refused(data, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.evaluate(data, "cost cost/success", **FAST, **options)


def test_scores_have_a_cost_and_rules_a_cost_of_success() -> None:
    data = bk.tally([["a", "b", "c"]] * 6, scores={"a": 0, "b": 0.5, "c": 1}, cost=[[1, 2, 6]] * 6)
    assert rows(bk.evaluate(data, "bayes cost", rng=1), "cost")[0]["estimate"] == 3.0
    by_rule = bk.evaluate(data, "pass@1 cost/success", success="score >= 0.5", **FAST)
    assert rows(by_rule, "cost/success")[0]["estimate"] == pytest.approx(4.5)


def test_a_saved_result_keeps_its_costs(tmp_path) -> None:
    marks, cost = simulated(12)
    data = bk.tally(marks, cost=cost, cost_unit="s")
    fit = bk.evaluate(data, BOTH, **FAST)
    bk.save(fit, tmp_path / "fit.nc")
    again = bk.load_result(tmp_path / "fit.nc")
    assert bk.table(again).equals(bk.table(fit))
    assert str(bk.table(again)) == str(bk.table(fit))
    assert "arXiv:2504.13359" in again.attrs["citations"]
    plain = bk.evaluate(data, "pass@1", **FAST)  # whose numbers costs do not change
    assert (
        bk.table(fit).query("metric == 'pass@1'")["sd"].tolist() == bk.table(plain)["sd"].tolist()
    )
