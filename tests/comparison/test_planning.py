"""Plans against brute force and against simulated evaluations."""

import json

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom, binom
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk.cli.app import app
from bayesatk.comparison.plans import pilots
from bayesatk.io.named_tables import tables_of
from bayesatk.metrics.grid import parse
from bayesatk.posterior.model import CountModel
from tests.conftest import plan_table

MEAN, ICC = 0.6, 0.3
SCORES, SHARES = (0.0, 0.4, 1.0), np.array([0.3, 0.3, 0.4])
TOTAL = (1 - ICC) / ICC


def _design(metric, trials, mean=(MEAN,), icc=ICC, scores=None):
    pilot = pilots.Pilot.stated(parse(metric)[0], scores, np.array(mean), icc)
    rows = pilots.QuestionRows.of(pilot.model.cells)
    return pilot._design(rows, *pilot.draws[0], trials)


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
    for i, one in enumerate(steps):
        for j, other in enumerate(steps):
            ends = [
                _log_pmf(trials, x + s * one[0] + t * other[0], y + s * one[1] + t * other[1])
                for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1))
            ]
            second = (ends[0] - ends[1] - ends[2] + ends[3]) / (4 * h * h)
            expected[i, j] = -(weight @ second)
    found = _design("pass@1", trials)
    np.testing.assert_allclose(found.information, expected, atol=2e-5)


def test_expected_variance_of_known_difficulties() -> None:
    """p ~ Beta(a, b): E Var(p | n trials) = ab / ((a + b)(a + b + 1)(a + b + n))."""
    a, b = MEAN * TOTAL, (1 - MEAN) * TOTAL
    for n in (1, 5, 40):
        expected = a * b / (TOTAL * (TOTAL + 1) * (TOTAL + n))
        assert _design("pass@1", n).question_variance[0] == pytest.approx(expected, rel=1e-10)


def test_no_trial_is_worth_less_than_none_and_none_more_than_knowing() -> None:
    """The law of total variance, for a metric without a simple posterior."""
    spread = _design("pass^4", 10**4).question_variance[0]
    values = [_design("pass^4", n).question_variance[0] for n in (1, 2, 8, 64)]
    assert np.all(np.diff(values) < 0)
    assert values[-1] > spread > 0


@pytest.mark.long
@pytest.mark.parametrize(("metric", "trials"), [("pass@1", 4), ("pass@4", 4), ("pass^4", 8)])
def test_planned_widths_are_those_of_evaluations(metric, trials) -> None:
    rng = np.random.default_rng(0)
    for target in ("questions", "population"):
        row = plan_table((MEAN, ICC), metric, width=0.1, target=target, trials=[trials]).iloc[0]
        questions, widths = int(row["questions"]), []
        for _ in range(10):
            p = rng.beta(MEAN * TOTAL, (1 - MEAN) * TOTAL, questions)
            fit = bk.evaluate((rng.binomial(trials, p), trials), metric, draws=2, rng=1)
            table = bk.table(fit).set_index("target").loc[target]
            widths.append(table["ci_upper"] - table["ci_lower"])
        assert np.mean(widths) == pytest.approx(0.1, rel=0.1)


@pytest.mark.long
@pytest.mark.slow
def test_planned_decisions_are_right_as_often_as_planned() -> None:
    pairs, prior = {"a": (0.6, 0.3), "b": (0.67, 0.3)}, bk.priors.HyperPrior(families="beta")
    row = plan_table(pairs, "pass@1", prob_correct=0.85, trials=[4]).iloc[0]
    questions, rng = int(row["questions"]), np.random.default_rng(1)
    right = 0
    for _ in range(120):
        means = []
        for mean, icc in pairs.values():
            total = (1 - icc) / icc
            p = rng.beta(mean * total, (1 - mean) * total, questions)
            right_trials = rng.binomial(4, p)
            counts = np.stack([4 - right_trials, right_trials], axis=1)
            fitted = CountModel.of(prior, counts).fit(parse("pass@1"))
            means.append(fitted.mean[0, 1])
        right += means[1] > means[0]
    assert 0.75 < right / 120 < 0.95  # .85 within three standard errors


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
        found = _design(of_scores, 5, (1 - MEAN, MEAN), scores=[0.0, 1.0])
        assert found.value == pytest.approx(binary.value, rel=1e-10)
        assert found.question_variance[0] == pytest.approx(binary.question_variance[0], rel=1e-9)
        # The coordinate of the mean is the logit of the share of wrong.
        for mine, theirs in (
            (found.slopes, binary.slopes),
            (found.information, binary.information),
        ):
            np.testing.assert_allclose(np.abs(mine), np.abs(theirs), rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(found.prior, binary.prior, atol=1e-9)
        for questions in (3, 200):
            np.testing.assert_allclose(
                found.variance(questions), binary.variance(questions), rtol=1e-5
            )


def test_drawn_counts_say_what_all_counts_say(monkeypatch) -> None:
    listed = _design("max@2", 20, SHARES, scores=SCORES).variance(100)
    monkeypatch.setattr(pilots, "_MAX_COMPOSITIONS", 10)
    drawn = _design("max@2", 20, SHARES, scores=SCORES).variance(100)
    np.testing.assert_allclose(drawn, listed, rtol=0.05)


def _widths(data, metric, target, runs=6, **options):
    """Mean width of the interval over evaluations of simulated data."""
    found = []
    for seed in range(runs):
        fit = bk.evaluate(data(np.random.default_rng(seed)), metric, draws=1000, rng=1, **options)
        rows = bk.table(fit).query(f"target == '{target}'").set_index("metric")
        found.append(rows.loc[metric, "ci_upper"] - rows.loc[metric, "ci_lower"])
    return np.mean(found)


def _graded(rng, questions, trials):
    total = (1 - ICC) / ICC
    p = rng.dirichlet(SHARES * total, questions)
    rows = [np.repeat(np.arange(3), rng.multinomial(trials, own)).tolist() for own in p]
    return bk.tally(rows, scores=dict(enumerate(SCORES)))


@pytest.mark.long
@pytest.mark.parametrize("target", ["questions", "population"])
@pytest.mark.parametrize("metric", ["bayes", "max@3"])
def test_planned_widths_of_scores_are_those_of_evaluations(metric, target) -> None:
    row = plan_table(
        (SHARES, ICC), metric, width=0.1, target=target, trials=[4], scores=SCORES
    ).iloc[0]
    questions = int(row["questions"])
    prior = bk.priors.DirichletHyperPrior()
    found = _widths(lambda rng: _graded(rng, questions, 4), metric, target, prior=prior)
    assert found == pytest.approx(0.1, rel=0.08)
    pilot = bk.evaluate(_graded(np.random.default_rng(1), 300, 4), metric, prior=prior, rng=1)
    again = plan_table(pilot, metric, width=0.1, target=target, trials=[4]).iloc[0]
    assert again["questions"] == pytest.approx(questions, rel=0.2)


@pytest.mark.long
@pytest.mark.parametrize("target", ["questions", "population"])
def test_planned_widths_of_levels_in_order_are_those_of_evaluations(target) -> None:
    def data(rng, questions):
        grades = rng.binomial(4, rng.beta(4.0, 2.0, (questions, 1)), (questions, 4))
        return bk.tally(grades, scores={level: level / 4 for level in range(5)})

    pilot = bk.evaluate(data(np.random.default_rng(1), 300), "bayes", difficulty="beta", rng=1)
    row = plan_table(pilot, "bayes", width=0.06, target=target, trials=[4]).iloc[0]
    questions = int(row["questions"])
    found = _widths(lambda rng: data(rng, questions), "bayes", target, difficulty="beta")
    assert found == pytest.approx(0.06, rel=0.1)


def test_stated_categories_need_shares_and_scores() -> None:
    for source, scores in (
        ((0.5, 0.3), SCORES),
        ((SHARES, 0.3), None),
        (([0.5, 0.2, 0.2], 0.3), SCORES),
    ):
        with pytest.raises(ValueError, match="source must be a result"):
            plan_table(source, "bayes", width=0.1, scores=scores)
    for bad in (
        {0: 0.0, 1: 1.0},
        "012",
        [0, np.nan, 1],
        ["0", "1", "2"],
        [1, 1, 1],
        (0, np.inf, 1),
    ):
        with pytest.raises(ValueError, match="scores"):
            plan_table((SHARES, 0.3), "bayes", width=0.1, scores=bad)
    with pytest.raises(ValueError, match="judges right and wrong"):
        plan_table((SHARES, 0.3), "pass@2", width=0.1, scores=SCORES)
    with pytest.raises(ValueError, match="scores must be left out"):
        plan_table(bk.evaluate([[1, 0]], "bayes", rng=1), "bayes", width=0.1, scores=SCORES)


def test_a_pilot_is_averaged_over() -> None:
    rng = np.random.default_rng(2)
    p = rng.beta(MEAN * TOTAL, (1 - MEAN) * TOTAL, 400)
    fit = bk.evaluate((rng.binomial(8, p), 8), "pass@1", rng=1)
    pilot, stated = (plan_table(one, "pass@1", width=0.1, trials=[4]) for one in (fit, (MEAN, ICC)))
    assert pilot["questions"][0] == pytest.approx(stated["questions"][0], rel=0.15)


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
        ({"width": 0.0}, "width must be finite and > 0"),
        ({"prob_correct": 0.9}, "prob_correct needs two systems"),
        ({"width": 0.1, "trials": [0]}, "trials must be an integer >= 1"),
        ({"width": 0.1, "trials": 4}, "trials must be a sequence"),
        ({"width": "narrow"}, "width must be a number"),
        ({"width": 0.1, "correlation": "high"}, "correlation must be a number"),
        ({"width": 0.1, "target": "all"}, "target must be"),
        ({"width": 0.1, "ci_prob": 2.0}, "ci_prob must lie"),
        ({"width": 0.1, "correlation": 0.5}, "correlation must lie in"),
    ],
)
def test_impossible_plans_are_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        plan_table((MEAN, ICC), "pass@1", **options)


@pytest.mark.parametrize("source", [(0.0, 0.5), 3, "x", {"a": (0.5,)}, {}])
def test_sources_must_be_difficulties(source) -> None:
    with pytest.raises(ValueError, match="source must be"):
        plan_table(source, "pass@1", width=0.1)
    with pytest.raises(ValueError, match="metric must be one"):
        plan_table((0.5, 0.5), "pass@1,2", width=0.1)


def test_the_command_plans_from_a_pilot_and_from_stated_difficulties(tmp_path) -> None:
    path = tmp_path / "pilot.csv"
    rows = [f"q{i},{j},{int(i % 3 > 0 and j < 3)}" for i in range(30) for j in range(4)]
    path.write_text("question,trial,correct\n" + "\n".join(rows) + "\n")
    runner = CliRunner()
    found = runner.invoke(app, ["plan", str(path), "-m", "pass@2", "--width", "0.1"])
    assert found.exit_code == 0, found.output
    assert "fewest trials" in found.output
    stated = ["--difficulty", "a=0.6,0.3", "--difficulty", "b=0.65,0.3"]
    found = runner.invoke(app, ["plan", "-m", "pass@1", *stated, "--prob-correct", "0.9", "--json"])
    rows = json.loads(found.output)["tables"]["plan"]
    assert min(row["prob_correct"] for row in rows) >= 0.9
    found = runner.invoke(app, ["plan", "-m", "pass@1", "--width", "0.1"])
    assert found.exit_code == 2


def _brute_force(mean, icc, trials, k, nodes=4000):
    """E g, mean over counts of Var(g | count), g = pass@k, and chances of counts: sums over p."""
    total, p = (1 - icc) / icc, (np.arange(nodes) + 0.5) / nodes
    law = beta_distribution(mean * total, (1 - mean) * total)
    weight = np.diff(law.cdf(np.linspace(0, 1, nodes + 1)))
    joint = weight * binom.pmf(np.arange(trials + 1)[:, None], trials, p)
    g = 1 - (1 - p) ** k
    pmf = joint.sum(axis=1)
    conditional, square = joint @ g / pmf, joint @ g**2 / pmf
    return weight @ g, pmf @ (square - conditional**2), pmf


def test_designs_against_sums_over_p() -> None:
    found, h = _design("pass@4", 5), 1e-3
    value, trial, pmf = _brute_force(MEAN, ICC, 5, 4)
    assert found.value == pytest.approx(value, abs=1e-5)
    assert found.question_variance[0] == pytest.approx(trial, abs=1e-5)
    assert (np.linalg.eigvalsh(found.prior) > 0).all()
    assert (np.linalg.eigvalsh(found.information) > -1e-9).all()
    ends = [  # the logit of the mean moved
        _brute_force(1 / (1 + (1 - MEAN) / MEAN * np.exp(-move)), ICC, 5, 4) for move in (h, -h)
    ]
    score = (ends[0][2] - ends[1][2]) / (2 * h)
    assert found.information[0, 0] == pytest.approx((score**2 / pmf).sum(), rel=2e-3)
    assert found.slopes[1, 0] == pytest.approx((ends[0][0] - ends[1][0]) / (2 * h), rel=2e-3)


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


def test_a_plan_is_a_group_of_its_pilot_or_stands_alone(tmp_path) -> None:
    options = {"width": 0.2, "trials": [1, 4]}
    data = bk.tally({"a": [[1, 1, 0, 1], [0, 1, 0, 0]] * 9, "b": [[1, 0], [1, 1]] * 9})
    fit = bk.evaluate(data, "pass@1", rng=1, draws=50)
    stated, pilot, of_data = (
        bk.plan(source, "pass@2", system=system, **options)
        for source, system in (((MEAN, ICC), None), (fit, "a"), (data, "a"))
    )
    for tree in (stated, pilot):
        table = bk.table(tree, "plan")
        again = bk.load_result(bk.save(tree, tmp_path / "plan.nc"))
        assert again.identical(tree)
        assert str(bk.table(again, "plan")) == str(table)
        assert tree["plan"]["total"].sel(trials=4) == table["total"][1]
        assert "Questions needed for pass@2" in str(table)
        assert "no number of questions is enough" in str(table)  # of single trials, for k = 2
        assert bk.table(again, "plan")["trials"].tolist() == [1, 4]
    assert list(tables_of(stated)) == ["plan"]
    assert list(tables_of(pilot)) == ["results", "plan"]
    assert of_data["posterior"]["system"].values.tolist() == ["a"]
    assert stated["plan"].attrs["source"] == "(0.6, 0.3)"
    with pytest.raises(ValueError, match="trials must name every number once"):
        bk.plan((MEAN, ICC), "pass@1", width=0.1, trials=[4, 4])


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


def test_the_goal_is_stated_also_where_nobody_asked_for_one() -> None:
    one = str(bk.plan((0.6, 0.3), "pass@1", trials=[1]))
    assert "Goal: an interval of width 0.1 or less (the default" in one
    two = str(bk.plan({"a": (0.6, 0.3), "b": (0.7, 0.3)}, "pass@1", trials=[1]))
    assert "has the higher posterior mean with probability 0.9 (the default" in two
    asked = str(bk.plan((0.6, 0.3), "pass@1", trials=[1], width=0.2))
    assert "Goal: an interval of width 0.2 or less." in asked
