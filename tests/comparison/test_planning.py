"""Plans against brute force and against simulated evaluations."""

import numpy as np
import pytest
from scipy.special import expit, ndtr
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom, binom

import bayesatk as bk
from bayesatk.comparison.plans import pilots
from bayesatk.comparison.plans.assumptions import pilot_correlation
from bayesatk.io.named_tables import tables_of
from bayesatk.metrics.grid import parse
from tests.conftest import plan_table

MEAN, ICC = 0.6, 0.3
SCORES, SHARES = (0.0, 0.4, 1.0), np.array([0.3, 0.3, 0.4])
TOTAL = (1 - ICC) / ICC


def _design(metric, trials, mean=(MEAN,), icc=ICC, scores=None):
    pilot = pilots.Pilot.stated(parse(metric)[0], scores, np.array(mean), icc)
    return pilot._design(pilot.places[0], trials)


def _log_pmf(trials: int, x: float, y: float):
    total = np.exp(-y)
    m = 1 / (1 + np.exp(-x))
    return betabinom(trials, m * total, (1 - m) * total).logpmf(np.arange(trials + 1))


@pytest.mark.parametrize("trials", [1, 3, 12])
def test_information_is_the_expected_curvature(trials) -> None:
    """Minus the expected second differences of the log probability."""
    x, y, h = np.log(MEAN / (1 - MEAN)), np.log(ICC / (1 - ICC)), 1e-3
    weight = np.exp(_log_pmf(trials, x, y))
    steps = h * np.eye(2)
    expected = np.empty((2, 2))
    for i, step in enumerate(steps):
        for j, other_step in enumerate(steps):
            ends = [
                _log_pmf(
                    trials,
                    x + s * step[0] + t * other_step[0],
                    y + s * step[1] + t * other_step[1],
                )
                for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1))
            ]
            second = (ends[0] - ends[1] - ends[2] + ends[3]) / (4 * h * h)
            expected[i, j] = -(weight @ second)
    design = _design("pass@1", trials)
    np.testing.assert_allclose(design.information, expected, atol=2e-5)


def test_no_trial_is_worth_less_than_none_and_none_more_than_knowing() -> None:
    """The law of total variance, for a metric without a simple posterior."""
    values = [_design("pass^4", n).question_variance[0] for n in (1, 2, 8, 64, 10**4)]
    assert np.all(np.diff(values) < 0)
    assert values[-1] > 0


def test_perfectly_correlated_difficulties_leave_the_trials_only() -> None:
    """If the same questions are hard for both, their difference is that on these questions."""
    pair, options = {"a": (0.6, 0.3), "b": (0.6, 0.3)}, {"width": 0.1, "trials": [2, 4]}
    alike = plan_table(pair, "pass@2", correlation=1 - 1e-12, **options)
    these = plan_table(pair, "pass@2", target="questions", **options)
    assert alike["questions"].tolist() == these["questions"].tolist()
    np.testing.assert_allclose(alike["width"], these["width"], rtol=1e-6)


@pytest.mark.long
@pytest.mark.slow
def test_the_same_questions_for_both_are_worth_what_planning_says() -> None:
    """Width of the paired comparison on questions with difficulties correlated at 0.8."""
    pairs, options = {"a": (0.6, 0.3), "b": (0.6, 0.3)}, {"width": 0.15, "trials": [4]}
    unpaired = plan_table(pairs, "pass@1", **options).iloc[0]
    row = plan_table(pairs, "pass@1", correlation=0.8, **options).iloc[0]
    questions = int(row["questions"])
    assert questions < 0.6 * unpaired["questions"]
    widths, shape = [], 0.5 * (1.0 - 0.3) / 0.3
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((2, questions))
        z[1] = 0.8 * z[0] + 0.6 * z[1]
        p = beta_distribution.ppf(ndtr(z), 1.2 * shape, 0.8 * shape)
        counts = bk.tally((rng.binomial(4, p), np.full(p.shape, 4)), systems=["a", "b"])
        compared = bk.compare(bk.evaluate(counts, "pass@1", draws=50, rng=1))
        gap = compared["comparison"]["pass_at_k"].sel(
            k=1, system="a", other="b", target="population"
        )
        widths.append(float(gap.sel(contrast="ci_upper") - gap.sel(contrast="ci_lower")))
    assert np.mean(widths) == pytest.approx(0.15, rel=0.12)


def test_two_categories_are_right_and_wrong() -> None:
    for metric, of_scores in (("bayes", "bayes"), ("pass@3", "max@3")):
        binary = _design(metric, 5)
        graded = _design(of_scores, 5, (1 - MEAN, MEAN), scores=[0.0, 1.0])
        assert graded.value == pytest.approx(binary.value, rel=1e-10)
        assert graded.question_variance[0] == pytest.approx(binary.question_variance[0], rel=1e-9)
        # The coordinate of the mean is the logit of the share of wrong.
        for mine, theirs in (
            (graded.slopes, binary.slopes),
            (graded.information, binary.information),
        ):
            np.testing.assert_allclose(np.abs(mine), np.abs(theirs), rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(graded.prior, binary.prior, atol=1e-9)
        for questions in (3, 200):
            np.testing.assert_allclose(
                graded.variance(questions), binary.variance(questions), rtol=1e-5
            )


def test_drawn_counts_say_what_all_counts_say(monkeypatch) -> None:
    """Of stated shares of scores, and of a pilot whose grades differ little between questions."""
    rng = np.random.default_rng(1)
    grades = (2 + 0.3 * rng.normal(size=(60, 1)) + rng.normal(size=(60, 4))).round().clip(0, 4)
    fit = bk.evaluate(bk.tally(grades, scores="numbers"), "mean", draws=20, rng=1)
    stated = pilots.Pilot.stated(parse("max@2")[0], SCORES, SHARES, ICC)
    (graded,) = pilots.pilots_of(fit, parse("mean")[0])
    for pilot, trials, questions in ((stated, 20, 100), (graded, 16, 20)):
        monkeypatch.setattr(pilots, "_MAX_COMPOSITIONS", 5000)
        listed = [one.variance(questions) for one in pilot.expected_information(trials)]
        monkeypatch.setattr(pilots, "_MAX_COMPOSITIONS", 10)
        drawn = [one.variance(questions) for one in pilot.expected_information(trials)]
        np.testing.assert_allclose(np.mean(drawn, 0), np.mean(listed, 0), rtol=0.05)


def _right_and_wrong(rng, questions, trials, **columns):
    p = rng.beta(MEAN * TOTAL, (1 - MEAN) * TOTAL, questions)
    return bk.tally((rng.binomial(trials, p), np.full(questions, trials)), **columns)


def _weighted(rng, questions, trials):
    return _right_and_wrong(rng, questions, trials, weight=rng.gamma(1.0, 1.0, questions) + 0.05)


def _covariate(rng, questions, trials):
    x = rng.normal(size=questions)
    mean = expit(0.3 + 1.5 * x)
    counts = rng.binomial(trials, rng.beta(5 * mean, 5 * (1 - mean)))
    return bk.tally((counts, np.full(questions, trials)), covariates={"x": x})


def test_information_with_a_covariate_is_the_sum_over_its_rows() -> None:
    """Against derivatives row by row."""
    data, h = _covariate(np.random.default_rng(2), 90, 3), 1e-4
    fit = bk.evaluate(data, "pass@1", covariates=["x"], draws=20, rng=1)
    (pilot,) = pilots.pilots_of(fit, parse("pass@1")[0])
    place, rows = pilot.places[0], pilot.rows.cells.rows[:, 0]
    assert len(rows) == 90
    theta, fields = place.theta[0], place.fit.fields
    x, y, slope = (theta[fields.slices[name]][0] for name in ("mean", "icc", "slopes"))
    expected = np.zeros((3, 3))
    for row in rows:
        ends = [
            _log_pmf(4, x + i * h + row * (slope + k * h), y + j * h)
            for i, j, k in [*np.eye(3), *-np.eye(3)]
        ]
        scores = (np.array(ends[:3]) - ends[3:]) / (2 * h)
        expected += (scores * np.exp(_log_pmf(4, x + row * slope, y))) @ scores.T / len(rows)
    places = [fields.slices[name].start for name in ("mean", "icc", "slopes")]
    information = pilot._design(place, 4).information[np.ix_(places, places)]
    np.testing.assert_allclose(information, expected, rtol=2e-3, atol=1e-4)


def test_some_rows_of_very_many_say_what_all_say(monkeypatch) -> None:
    data = _covariate(np.random.default_rng(3), 400, 3)
    fit = bk.evaluate(data, "pass@1", covariates=["x"], draws=20, rng=1)
    drawn, listed = [], []
    for values, most in ((drawn, 300), (listed, 400)):
        monkeypatch.setattr(pilots, "_ROWS_MAX", most)
        (pilot,) = pilots.pilots_of(fit, parse("pass@1")[0])
        assert len(pilot.rows.share) == most
        assert pilot.rows.share.sum() == pytest.approx(1.0)
        values += [one.variance(200) for one in pilot.expected_information(4)]
    np.testing.assert_allclose(np.mean(drawn, 0), np.mean(listed, 0), rtol=0.03)


def _graded(rng, questions, trials):
    p = rng.dirichlet(SHARES * TOTAL, questions)
    rows = [np.repeat(np.arange(3), rng.multinomial(trials, own)).tolist() for own in p]
    return bk.tally(rows, scores=dict(enumerate(SCORES)))


def _levels_in_order(rng, questions, trials):
    grades = rng.binomial(4, rng.beta(4.0, 2.0, (questions, 1)), (questions, trials))
    return bk.tally(grades, scores={level: level / 4 for level in range(5)})


GRADED = {"prior": bk.priors.DirichletHyperPrior()}
STATED, STATED_GRADES = ((MEAN, ICC), {}), ((SHARES, ICC), {"scores": SCORES})


@pytest.mark.long
@pytest.mark.parametrize("target", ["questions", "population"])
@pytest.mark.parametrize(
    ("data", "options", "metric", "stated"),
    [
        (_right_and_wrong, {}, "pass@1", STATED),
        (_right_and_wrong, {}, "pass@4", STATED),
        (_right_and_wrong, {}, "pass^4", STATED),
        (_weighted, {"population": "law"}, "pass@1", None),
        (_weighted, {"population": "bootstrap"}, "pass@1", None),
        (_covariate, {"covariates": ["x"]}, "pass@1", None),
        (_graded, GRADED, "bayes", STATED_GRADES),
        (_graded, GRADED, "max@3", STATED_GRADES),
        (_levels_in_order, {"difficulty": "beta"}, "bayes", None),
    ],
)
def test_planned_widths_are_those_of_evaluations(data, options, metric, stated, target) -> None:
    goal, options = {"width": 0.08, "target": target, "trials": [4]}, {"rng": 1} | options
    pilot = bk.evaluate(data(np.random.default_rng(7), 300, 4), metric, **options)
    questions = plan_table(pilot, metric, **goal)["questions"].item()
    if stated:
        source, scores = stated
        needed = plan_table(source, metric, **goal, **scores)["questions"].item()
        assert questions == pytest.approx(needed, rel=0.25)
        questions = needed
    widths = []
    for seed in range(6):
        simulated = data(np.random.default_rng(seed), int(questions), 4)
        rows = bk.table(bk.evaluate(simulated, metric, draws=1000, **options))
        row = rows.query(f"target == '{target}' and metric == '{metric}'").iloc[0]
        widths.append(row["ci_upper"] - row["ci_lower"])
    assert np.mean(widths) == pytest.approx(0.08, rel=0.12)


@pytest.mark.parametrize(
    ("source", "metric", "scores", "message"),
    [
        *((source, "bayes", SCORES, "source must be a result")
          for source in ((0.5, 0.3), ([0.5, 0.2, 0.2], 0.3))),
        ((SHARES, 0.3), "bayes", None, "source must be a result"),
        *(((SHARES, 0.3), "bayes", scores, "scores")
          for scores in ({0: 0.0, 1: 1.0}, "012", [0, np.nan, 1], ["0", "1", "2"], [1, 1, 1])),
        ((SHARES, 0.3), "pass@2", SCORES, "judges right and wrong"),
        (bk.evaluate([[1, 0]], "bayes", rng=1), "bayes", SCORES, "scores must be left out"),
        *((source, "pass@1", None, "source must be")
          for source in ((0.0, 0.5), 3, "x", {"a": (0.5,)}, {})),
        ((0.5, 0.5), "pass@1,2", None, "metric must be one"),
    ],
)  # fmt: skip
def test_sources_must_be_difficulties(source, metric, scores, message) -> None:
    with pytest.raises(ValueError, match=message):
        plan_table(source, metric, width=0.1, scores=scores)


@pytest.mark.parametrize("target", ["questions", "population"])
@pytest.mark.parametrize("trials", [1, 2, 4])
def test_a_system_is_significantly_better_as_often_as_planned(trials, target) -> None:
    """Witness: the z test of the two means of simulated evaluations, which knows no prior.

    On these questions the variance is that within questions; of single trials that of all marks.
    """
    pairs = {"a": (0.6, 0.3), "b": (0.67, 0.3)}
    row = plan_table(pairs, "pass@1", prob_ahead=0.8, trials=[trials], target=target).iloc[0]
    shape, rng = (4000, int(row["questions"])), np.random.default_rng(1)
    means, variances = [], []
    for mean, icc in pairs.values():
        total = (1 - icc) / icc
        share = rng.binomial(trials, rng.beta(mean * total, (1 - mean) * total, shape)) / trials
        means.append(share.mean(axis=1))
        variance = share.var(axis=1, ddof=1)
        if target == "questions" and trials > 1:
            variance = (share * (1 - share) / (trials - 1)).mean(axis=1)
        variances.append(variance / shape[1])
    z = (means[1] - means[0]) / np.sqrt(sum(variances))
    assert (z > 1.96).mean() == pytest.approx(0.8, abs=0.03)
    assert (z > 0.0).mean() == pytest.approx(row["prob_correct"], abs=0.01)
    assert row["prob_ahead"] == pytest.approx(0.8, abs=0.005)


def test_a_system_that_has_the_higher_mean_nine_times_in_ten_is_seldom_ahead() -> None:
    pairs = {"a": (0.6, 0.3), "b": (0.67, 0.3)}
    chosen = plan_table(pairs, "pass@1", prob_correct=0.9, trials=[4]).iloc[0]
    assert chosen["prob_ahead"] == pytest.approx(ndtr(1.2816 - 1.96), abs=0.01)


def test_single_trials_cannot_show_pass_at_k() -> None:
    table = plan_table((MEAN, ICC), "pass@4", width=0.1, trials=[1, 4])
    assert table["questions"].tolist()[0] == np.inf
    for icc in (1e-4, 0.99):  # no icc makes a single trial say how questions differ
        assert plan_table((MEAN, icc), "pass@3", width=0.1, trials=[1])["questions"][0] == np.inf
    assert table["cheapest"].tolist() == [False, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0.1, "prob_correct": 0.9}, "must have one goal"),
        ({"prob_ahead": 0.8}, "prob_ahead needs two systems"),
        ({"width": 0.0}, "width must be finite and > 0"),
        ({"prob_correct": 0.9}, "prob_correct needs two systems"),
        ({"width": 0.1, "trials": [0]}, "trials must be an integer >= 1"),
        ({"width": 0.1, "trials": 4}, "trials must be a sequence"),
        ({"width": 0.1, "trials": [4, 4]}, "trials must name every number once"),
        ({"width": "narrow"}, "width must be a number"),
        ({"width": 0.1, "target": "all"}, "target must be"),
        ({"width": 0.1, "ci_prob": 2.0}, "ci_prob must lie"),
        ({"width": 0.1, "correlation": 0.5}, "correlation must lie in"),
    ],
)
def test_impossible_plans_are_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        plan_table((MEAN, ICC), "pass@1", **options)


def _brute_force(mean, icc, trials, k, nodes=4000):
    """E g and the mean over counts of Var(g | count), g = pass@k: sums over p."""
    total, p = (1 - icc) / icc, (np.arange(nodes) + 0.5) / nodes
    law = beta_distribution(mean * total, (1 - mean) * total)
    weight = np.diff(law.cdf(np.linspace(0, 1, nodes + 1)))
    joint = weight * binom.pmf(np.arange(trials + 1)[:, None], trials, p)
    g = 1 - (1 - p) ** k
    pmf = joint.sum(axis=1)
    conditional, square = joint @ g / pmf, joint @ g**2 / pmf
    return weight @ g, pmf @ (square - conditional**2)


def test_designs_against_sums_over_p() -> None:
    design, h = _design("pass@4", 5), 1e-3
    value, variance = _brute_force(MEAN, ICC, 5, 4)
    assert design.value == pytest.approx(value, abs=1e-5)
    assert design.question_variance[0] == pytest.approx(variance, abs=1e-5)
    assert (np.linalg.eigvalsh(design.prior) > 0).all()
    ends = [  # the logit of the mean moved
        _brute_force(1 / (1 + (1 - MEAN) / MEAN * np.exp(-move)), ICC, 5, 4) for move in (h, -h)
    ]
    assert design.slopes[1, 0] == pytest.approx((ends[0][0] - ends[1][0]) / (2 * h), rel=2e-3)


def test_a_pilot_of_all_families_knows_of_impossible_questions() -> None:
    """A third impossible: pass@32 varies less between questions than under the Beta's shape."""
    pilot = bk.tally(([0] * 30 + [8] * 30 + [12] * 30, [16] * 90))
    plans = {
        name: plan_table(
            bk.evaluate(pilot, "pass@32", difficulty=name, rng=1), "pass@32", width=0.1, trials=[8]
        )
        for name in ("beta", "averaged")
    }
    # Of 90 alike two thirds are solved: a proportion of 2/3 to a width of 0.1 takes 341.
    needed = plans["averaged"]["questions"][0]
    assert 300 < needed < 400
    assert plans["beta"]["questions"][0] < 300


@pytest.mark.parametrize("stated", [True, False])
def test_a_plan_is_a_group_of_its_pilot_or_stands_alone(tmp_path, stated) -> None:
    data = bk.tally({"a": [[1, 1, 0, 1], [0, 1, 0, 0]] * 9, "b": [[1, 0], [1, 1]] * 9})
    fit = bk.evaluate(data, "pass@1", rng=1, draws=50)
    source, options = ((MEAN, ICC), {}) if stated else (fit, {"system": "a"})
    tree = bk.plan(source, "pass@2", width=0.2, trials=[1, 4], **options)
    table = bk.table(tree, "plan")
    assert tree["plan"]["total"].sel(trials=4) == table["total"][1]
    assert "no number of questions is enough" in str(table)  # of single trials, for k = 2
    again = bk.load_result(bk.save(tree, tmp_path / "plan.nc"))
    assert again.identical(tree)
    assert str(bk.table(again, "plan")) == str(table)
    assert list(tables_of(tree)) == (["plan"] if stated else ["results", "plan"])
    if not stated:
        of_data = bk.plan(data, "pass@2", width=0.2, trials=[1, 4], **options)
        assert of_data["posterior"]["system"].values.tolist() == ["a"]


def test_one_p_of_all_questions_is_planned_by_the_total() -> None:
    """The expected width of a Beta posterior, over counts that the pilot's posterior predicts."""
    marks = np.random.default_rng(3).binomial(1, 0.7, (30, 4))
    pilot = bk.evaluate(marks, "pass@2", pooling="complete", rng=1)
    table = bk.table(bk.plan(pilot, "pass@1", width=0.1, trials=[1, 4]), "plan")
    total = int(table["total"][0])
    assert table["total"][1] - total == pytest.approx(0, abs=3)
    right = int(marks.sum())
    counts, before = np.arange(total + 1), beta_distribution(right + 1, 121 - right)
    law = betabinom(total, *before.args)
    sd = beta_distribution(counts + 1, total - counts + 1).std()
    assert 2 * 1.959964 * (law.pmf(counts) @ sd) == pytest.approx(0.1, rel=0.01)
    later = bk.table(bk.plan(pilot, "pass@2", width=0.1, trials=[1]), "plan")
    assert np.isfinite(later["questions"].item())  # single trials tell p, and so every k


# Two systems.


def _pair(shared: float, questions: int = 150, trials: int = 6):
    rng = np.random.default_rng(1)
    common, own = rng.standard_normal(questions), rng.standard_normal((2, questions))
    z = shared**0.5 * common + (1.0 - shared) ** 0.5 * own
    right = rng.binomial(trials, expit(np.array([[0.6], [0.2]]) + 1.5 * z))
    data = bk.tally((right, np.full(right.shape, trials)), systems=["new", "old"])
    return bk.evaluate(data, "pass@1", difficulty="beta", rng=1)


def test_the_correlation_of_a_pilot_is_that_of_its_difficulties() -> None:
    """Trial noise is in the values of the questions, and not in what the draw of them adds."""
    high, none = (pilot_correlation(_pair(shared), parse("pass@1")[0]) for shared in (0.8, 0.0))
    assert high == pytest.approx(0.8, abs=0.15)
    assert none < 0.25
    assert pilot_correlation((0.6, 0.3), parse("pass@1")[0]) == 0.0


def test_a_pilot_of_both_needs_fewer_questions_than_its_two_systems_apart() -> None:
    pilot = _pair(0.8)
    paired, apart = (
        bk.table(bk.plan(pilot, "pass@1", trials=[6], **options), "plan")
        for options in ({}, {"correlation": 0.0})
    )
    assert paired["questions"].item() < 0.8 * apart["questions"].item()


@pytest.mark.parametrize(
    ("source", "options", "words", "column", "value"),
    [
        ((0.6, 0.3), {}, ["0.1 or less (the default", "95% interval of pass@1"], "width", 0.1),
        ((0.6, 0.3), {"width": 0.2}, ["Goal: an interval of width 0.2 or less."], "width", 0.2),
        ({"a": (0.6, 0.3), "b": (0.65, 0.3)}, {"correlation": 0.5},
         ["with probability 0.9 (the default", "difference in pass@1 on questions like these",
          "pass@1 0.6 of a and 0.65 of b", "a difference of -0.05",
          "correlation of their difficulties 0.50"], "prob_correct", 0.9),
    ],
)  # fmt: skip
def test_a_plan_says_what_it_assumes_and_reaches_its_goal(
    source, options, words, column, value
) -> None:
    plan = bk.table(bk.plan(source, "pass@1", trials=[4], **options), "plan")
    for phrase in words:
        assert phrase in str(plan)
    assert plan[column].item() == pytest.approx(value, abs=0.01)


def test_no_fewer_questions_are_offered_than_plans_were_checked_for() -> None:
    """Four questions were promised to separate systems in .25 of runs, and did in .06."""
    pair = {"a": (0.5, 0.3), "b": (0.7, 0.3)}
    tree = bk.plan(pair, "pass@1", prob_ahead=0.25, correlation=0.8, trials=[1, 4])
    assert bk.table(tree, "plan")["questions"].tolist() == [30, 30]
    assert "30 questions are the fewest that are offered" in str(bk.table(tree, "plan"))
    more = bk.plan(pair, "pass@1", prob_ahead=0.99, correlation=0.8, trials=[4])
    assert "fewest that are offered" not in str(bk.table(more, "plan"))


def test_of_equal_systems_no_number_of_questions_is_blamed_on_trials() -> None:
    text = str(bk.table(bk.plan({"a": (0.6, 0.3), "b": (0.6, 0.3)}, "pass@1"), "plan"))
    said = " ".join(text.split())
    assert "assumed to be equal" in said
    assert "so few trials" not in said
    assert "0.00 (the default" in said


def test_a_pilot_of_single_trials_says_what_its_plan_rests_on() -> None:
    """In the printed plan, and that probabilities are averages over the pilot's posterior."""
    marks = np.random.default_rng(2).binomial(1, [[0.4], [0.6]], (2, 60))
    pilot = bk.evaluate({"a": marks[0][:, None], "b": marks[1][:, None]}, "pass@1", rng=1)
    plan = bk.plan(pilot, "pass@1", prob_ahead=0.5, trials=[1])
    said = " ".join(str(bk.table(plan, "plan")).split())
    assert "Note: a, b: one trial of each question does not say how much" in said
    assert "averages over this posterior" in said
    means = pilot["joint_posterior"]["pass_at_k"].sel(target="population", k=1)
    sd = (means.sel(system="a") - means.sel(system="b")).values.std()
    assert f"with posterior sd {sd:.2g}:" in said


def test_the_draws_of_a_pilot_are_paired_as_its_joint_draws() -> None:
    """Otherwise differences of systems that find the same questions hard would vary too much."""
    pilot = _pair(0.9)
    (metric,) = parse("pass@1")
    first, second = (each.expected_information(6) for each in pilots.pilots_of(pilot, metric))
    gap = np.array([a.value - b.value for a, b in zip(first, second, strict=True)])
    means = pilot["joint_posterior"]["pass_at_k"].sel(target="population", k=1)
    paired = (means.sel(system="new") - means.sel(system="old")).values.std()
    apart = np.hypot(*means.std(["chain", "draw"]).values)
    assert paired < 0.75 * apart
    assert gap.std() == pytest.approx(paired, rel=0.3)


def test_a_plan_beyond_what_is_searched_says_how_far_it_searched() -> None:
    said = str(bk.table(bk.plan((0.6, 0.3), "pass@1", width=1e-5, trials=[1, 4]), "plan"))
    assert "more than 10,000,000 questions" in said
    assert "no number of questions" not in said
