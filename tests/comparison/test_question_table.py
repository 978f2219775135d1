"""What each question says: against refits, plain integrals, counted cases and simulated reruns."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import bayesatk as bk


def drawn(seed, questions, trials, skills=(0.0,)):
    """Right and wrong of systems that find the same questions hard."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 1.2, questions)
    return {
        f"s{i}": (rng.random((questions, trials)) < np.clip(p + skill, 0, 1)[:, None]).astype(int)
        for i, skill in enumerate(skills)
    }


@pytest.mark.parametrize(
    ("options", "metric"),
    [({"pooling": "none"}, "pass^3"), ({"pooling": "complete"}, "pass@1"),
     ({"difficulty": "beta"}, "pass^3")],
)  # fmt: skip
def test_influence_is_what_a_fit_without_the_question_gives(options, metric):
    marks = drawn(1, 12, 4)["s0"]

    def evaluated(kept):
        fit = bk.evaluate(marks[kept], metric, draws=8, rng=1, **options)
        return fit, bk.table(fit).query("target == 'questions'")["mean"].item()

    fit, whole = evaluated(slice(None))
    rows = bk.checks.question_table(fit, metric)
    for question in (0, 5, 11):
        _, rest = evaluated(np.arange(12) != question)
        assert rows["influence"][question] == pytest.approx(whole - rest, abs=2e-5)


def table_of(runs, metric="pass@1", **options):
    fit = bk.evaluate(runs, metric, pooling="none", draws=8, rng=1)
    return bk.checks.question_table(fit, **options)


def test_numbers_of_single_questions_by_hand():
    rows = table_of({"a": [[1, 1, 1], [1, 0, 0], [0, 0, 0]], "b": [[0] * 3, [1] * 3, [0] * 3]})
    of_a = rows[rows["system"] == "a"]
    a, b = np.array([4.0, 2, 1]), np.array([1.0, 3, 4])  # Beta(c + 1, n - c + 1)
    p = stats.beta(a, b)
    np.testing.assert_allclose(of_a["mean"], a / 5)
    np.testing.assert_allclose(of_a["ci_lower"], p.ppf(0.025), atol=0.01)
    np.testing.assert_allclose(of_a["ci_upper"], p.ppf(0.975), atol=0.01)
    rate = np.array([1, 1 / 3, 0])
    np.testing.assert_allclose(of_a["prob_flip"], rate * (1 - a / 5) + (1 - rate) * a / 5)
    np.testing.assert_allclose(of_a["information"], 4 * a * b / (5 * 6))
    np.testing.assert_allclose(of_a["prob_saturated"], p.cdf(0.05) + p.sf(0.95), atol=0.01)
    # b is weaker by its posterior mean; a's c of three under Beta(1 + c_b, 4 - c_b).
    assert rows.groupby("system")["mean"].mean()["b"] < of_a["mean"].mean()
    c = np.array([3, 1, 0])
    weaker = stats.betabinom(3, [1, 4, 1], [4, 1, 4]).cdf(c)
    np.testing.assert_allclose(of_a["prob_weaker"], weaker, atol=0.02)
    assert rows[rows["system"] == "b"]["prob_weaker"].isna().all()


def test_a_pair_adds_up_to_its_difference_and_influence_is_a_refit():
    runs = drawn(2, 15, 4, (0.0, 0.2))

    def compared(kept):
        data = {name: marks[kept] for name, marks in runs.items()}
        fit = bk.evaluate(data, "pass@2", difficulty="beta", draws=8, rng=1)
        means = bk.table(fit).query("target == 'questions'").set_index("system")["mean"]
        return fit, means["s1"] - means["s0"]

    fit, difference = compared(slice(None))
    pair = bk.checks.question_table(fit, system="s1", other="s0")
    assert pair["part"].sum() == pytest.approx(difference, abs=1e-9)
    assert pair["influence"].abs().is_monotonic_decreasing
    assert sorted(pair["question"]) == list(range(15))
    _, without_it = compared(np.arange(15) != pair["question"][0])
    assert pair["influence"][0] == pytest.approx(difference - without_it, abs=1e-8)
    back = bk.checks.question_table(fit, system="s0", other="s1")
    np.testing.assert_allclose(back["part"].sum(), -pair["part"].sum())


def test_a_planted_fault_is_suspicious_and_groups_are_shown():
    runs = drawn(3, 40, 8, (0.2, 0.0))
    runs["s0"][5], runs["s1"][5] = 0, 1
    data = bk.tally(runs, group=["u", "v"] * 20)
    rows = bk.checks.question_table(bk.evaluate(data, "pass@1", pooling="none", draws=8, rng=1))
    assert rows.set_index(["system", "question"]).loc[("s0", 5), "suspicious"]
    assert rows["group"].tolist() == ["u", "v"] * 40


def test_questions_that_were_not_tried_have_a_mean_and_no_rate():
    counts, trials = [[2, 0, 1], [1, 1, 0]], [[3, 0, 3], [3, 2, 0]]
    data = bk.tally(counts, trials=trials, systems=["a", "b"], missing="ignore")
    fit = bk.evaluate(data, "pass@1", pooling="none", draws=8, rng=1)
    rows = bk.checks.question_table(fit)
    assert (rows["trials"] == 0).sum() == 2
    for column in ("rate", "prob_flip"):
        assert rows[column].isna().equals(rows["trials"] == 0)
    assert rows["mean"].between(0, 1).all()
    assert bk.checks.question_table(fit, system="a", other="b")["question"].tolist() == [0]


def test_the_only_question_has_no_influence_that_could_be_known():
    for pooling in ("none", "complete", "partial"):
        fit = bk.evaluate([[1, 0]], "pass@1", pooling=pooling, draws=8, rng=1)
        assert bk.checks.question_table(fit)["influence"].isna().all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metric": "plurality@2"}, "metric"),
        ({"metric": "pass@1,2"}, "one metric"),
        ({"system": "z"}, "system must be among"),
        ({"other": "a"}, "system must be among"),
        ({"system": "a", "other": "a"}, "a system other than"),
        ({"target": "both"}, "target"),
        ({"margin": 0.5}, "margin"),
    ],
)
def test_what_cannot_be_asked_is_refused(options, said):
    fit = bk.evaluate({"a": [[1, 0]], "b": [[1, 1]]}, "pass@1", pooling="none", draws=8, rng=1)
    with pytest.raises(ValueError, match=said):
        bk.checks.question_table(fit, **options)


SCORES = {"no": 0.0, "part": 0.5, "yes": 1.0}
GRADES = [
    ["no", "part", "yes"], ["no", "no", "part"], ["yes", "yes", "yes"], ["part", "part", "yes"],
    ["no", "no", "no"], ["part", "yes", "yes"], ["no", "part", "part"], ["yes", "yes", "part"],
]  # fmt: skip


def scored(grades, **options):
    data = bk.tally(grades, scores=SCORES)
    return bk.evaluate(data, "bayes max@2", draws=50, rng=1, **options)


@pytest.mark.parametrize(
    ("options", "metric"),
    [({"pooling": "none"}, "bayes"), ({"pooling": "complete"}, "max@2"),
     ({"difficulty": "beta"}, "max@2"), ({"prior": bk.priors.DirichletHyperPrior()}, "bayes")],
    ids=["none", "complete", "ordered", "unordered"],
)  # fmt: skip
def test_influence_on_scores_is_what_a_fit_without_the_question_gives(options, metric):
    grades = GRADES if "pooling" in options else 4 * GRADES  # the points of few are few
    fit = scored(grades, **options)
    whole = bk.table(fit).set_index(["metric", "target"]).loc[metric]
    rest = {
        question: bk.table(scored(grades[:question] + grades[question + 1 :], **options))
        .set_index(["metric", "target"])
        .loc[metric]
        for question in (0, 4)
    }
    for target in ("questions", "population"):
        rows = bk.checks.question_table(fit, metric, target=target)
        for question, without_it in rest.items():
            moved = whole.loc[target, "mean"] - without_it.loc[target, "mean"]
            allowed = 0.03 * whole.loc[target, "sd"]
            assert rows["influence"][question] == pytest.approx(moved, abs=allowed)
    mean = bk.table(fit).query("metric == 'bayes' and target == 'questions'")["mean"].iloc[0]
    assert rows["mean"].mean() == pytest.approx(float(mean), abs=1e-9)


def test_a_question_of_scores_without_pooling_by_hand():
    """Dirichlet(1 + n_c): its mean, sd, interval, and the Dirichlet-multinomial of new trials."""
    fit = scored({"weak": GRADES[::-1], "strong": [["yes"] * 3] * 7 + [["no"] * 3]}, pooling="none")
    rows = bk.checks.question_table(fit).set_index(["system", "question"])
    row = rows.loc["weak", 7]  # no, part, yes: Dirichlet(2, 2, 2)
    assert row["score"] == pytest.approx(0.5)
    assert row["mean"] == pytest.approx(0.5)
    # E sum p s^2 - mean^2 = 5/12 - 1/4, over 6 + 1
    assert row["sd"] == pytest.approx(np.sqrt((5 / 12 - 1 / 4) / 7))
    assert row["prob_flip"] == pytest.approx(2 / 3, abs=0.01)
    p = np.random.default_rng(3).dirichlet([2, 2, 2], 200_000)
    expected = p @ [0, 0.5, 1]
    ends = np.quantile(expected, [0.025, 0.975])
    np.testing.assert_allclose(row[["ci_lower", "ci_upper"]].tolist(), ends, atol=0.03)
    near = ((expected < 0.05) | (expected > 0.95)).mean()
    assert row["prob_saturated"] == pytest.approx(near, abs=0.01)
    # The strong system has no, no, no: a total of 0 has the probability 2 3 4 / (6 7 8).
    strong = rows.loc["strong", 7]
    assert strong["prob_weaker"] == pytest.approx(24 / 336, abs=0.02)
    assert not rows["suspicious"].any()
    assert rows.loc["weak", "prob_weaker"].isna().all()


@pytest.mark.parametrize(("better", "suspect"), [("lower", "fast"), ("higher", "slow")])
def test_a_failure_where_a_weaker_system_is_sure_is_suspicious_in_scores_too(better, suspect):
    slow = np.tile([9.0, 9.0, 8.0, 9.0, 7.0, 9.0, 8.0, 9.0], (12, 1))
    fast = slow - 6.0
    slow[3], fast[3] = 1.0, 9.0
    data = bk.tally({"slow": slow, "fast": fast}, scores="numbers", better=better)
    rows = bk.checks.question_table(bk.evaluate(data, "bayes", pooling="none", draws=5, rng=1))
    assert rows.loc[rows["suspicious"], ["system", "question"]].values.tolist() == [[suspect, 3]]


@pytest.mark.parametrize("options", [{}, {"group": "group"}])
def test_parts_of_scores_add_up_to_the_difference_also_in_groups(options):
    data = bk.tally({"a": GRADES, "b": GRADES[::-1]}, scores=SCORES, group=["x", "y"] * 4)
    fit = bk.evaluate(data, "bayes", pooling="none", draws=50, rng=1, **options)
    pair = bk.checks.question_table(fit, system="a", other="b")
    means = bk.table(fit).query("target == 'questions'").set_index("system")["mean"]
    assert pair["part"].sum() == pytest.approx(means["a"] - means["b"], abs=1e-9)
    assert {"score", "other_score", "group"} <= set(pair.columns)


# --- the noise of a run ---


@pytest.mark.parametrize("trials", [1, 2])
def test_the_difference_of_two_runs_by_enumeration(trials):
    counts, n = np.array([0, 1, 3]), 3
    fit = bk.evaluate(bk.tally(counts, trials=n), "pass@1", pooling="none", draws=8, rng=1)
    row = bk.decide.noise_floor(fit, trials=trials, ci_prob=0.9).iloc[0]
    # Given p both runs are binomial; p of each question is Beta(1 + c, 1 + n - c).
    law: dict[float, float] = {}
    p, weight = np.polynomial.legendre.leggauss(30)
    p, weight = (p + 1) / 2, weight / 2
    by_question = []
    for c in counts:
        density = weight * stats.beta.pdf(p, 1 + c, 1 + n - c)
        pmf = np.array([stats.binom.pmf(j, trials, p) for j in range(trials + 1)])
        by_question.append(np.einsum("p,ip,jp->ij", density, pmf, pmf))
    for first in product(range(trials + 1), repeat=3):
        for second in product(range(trials + 1), repeat=3):
            chance = np.prod(
                [pmf[i, j] for pmf, i, j in zip(by_question, first, second, strict=True)]
            )
            gap = abs(sum(first) - sum(second)) / (3 * trials)
            law[round(gap, 9)] = law.get(round(gap, 9), 0.0) + chance
    gaps = np.array(sorted(law))
    cumulative = np.cumsum([law[gap] for gap in gaps])
    at = int(np.searchsorted(cumulative, 0.9))
    assert row["floor"] == pytest.approx(gaps[at])
    assert row["prob_within"] == pytest.approx(cumulative[at], abs=0.005)  # of some 100,000 draws


def test_a_noise_floor_grows_with_its_probability_and_shrinks_with_trials():
    fit = bk.evaluate(drawn(5, 100, 2), "pass@1", difficulty="beta", draws=8, rng=1)
    row, wide, more = (
        bk.decide.noise_floor(fit, **options).iloc[0]
        for options in ({}, {"ci_prob": 0.999}, {"trials": 4})
    )
    assert f"by up to {100 * row['floor']:.1f} points in 95% of cases" in row["sentence"]
    assert wide["floor"] > row["floor"]
    assert more["sd"] == pytest.approx(row["sd"] / 2, rel=0.01)
    few = {"metric": "pass@4", "trials": 3}
    for options in ({"ci_prob": 1.0}, {"trials": 0}, {"trials": 10**6}, few):
        with pytest.raises(ValueError, match=r"prob|trials"):
            bk.decide.noise_floor(fit, **options)


@pytest.mark.long
def test_reruns_stay_within_the_floor_and_ordered_systems_are_not_suspected():
    rng, inside, suspected, size = np.random.default_rng(6), 0.0, 0, 30
    for seed in range(size):
        p = rng.beta(0.8, 1.2, 60)
        strong = np.clip(p + 0.1 * rng.random(60), 0, 1)
        runs = {"weak": rng.binomial(8, p), "strong": rng.binomial(8, strong)}
        data = bk.tally(np.stack(list(runs.values())), trials=8, systems=list(runs))
        fit = bk.evaluate(data, "pass@1", difficulty="beta", draws=8, rng=seed)
        floor = bk.decide.noise_floor(fit).set_index("system").loc["weak", "floor"]
        first, second = rng.binomial(1, p, (2, 200, 60)).mean(axis=2)
        inside += float((np.abs(first - second) <= floor + 1e-9).mean())
        rows = bk.checks.question_table(fit).groupby("system")["suspicious"].any()
        suspected += bool(rows["strong"])
    assert inside / size > 0.94
    assert suspected / size < 0.05 + 3 * np.sqrt(0.05 * 0.95 / size)


def test_the_noise_of_weighted_questions_by_its_variance():
    marks, weight = drawn(7, 24, 4)["s0"], np.arange(1.0, 25.0)
    data = bk.tally(marks, weight=weight)
    fit = bk.evaluate(data, "pass@1", pooling="none", draws=8, rng=1)
    right = marks.sum(axis=1)
    a, b = 1.0 + right, 5.0 - right  # p is Beta(a, b), and E p (1 - p) = a b / (6 7)
    variance = 2.0 * (weight / weight.sum()) ** 2 @ (a * b / 42.0)
    row = bk.decide.noise_floor(fit).iloc[0]
    assert row["sd"] == pytest.approx(np.sqrt(variance), rel=0.015)
    assert row["floor"] == pytest.approx(1.96 * np.sqrt(variance), rel=0.03)


@pytest.mark.parametrize("asked", [{"group": "group"}, {"covariates": ["size"]}])
def test_the_noise_of_structured_questions_is_that_of_their_posterior(asked):
    marks = drawn(9, 24, 4)["s0"]
    data = bk.tally(marks, group=list("abcd") * 6, covariates={"size": list(range(24))})
    options = {"difficulty": "beta", "draws": 4000, "keep": ["p"], "rng": 1, "group": False}
    fit = bk.evaluate(data, "pass@1", **(options | asked))
    p = fit["posterior"]["p"].values.reshape(-1, 24)
    expected = np.sqrt(2.0 * (p * (1.0 - p)).mean(axis=0).sum()) / 24.0
    assert bk.decide.noise_floor(fit)["sd"][0] == pytest.approx(expected, rel=0.015)


def test_the_noise_of_scores_is_in_their_unit():
    data = bk.tally([[0, 5, 10]] * 6, scores={0: 0, 5: 5, 10: 10})
    fit = bk.evaluate(data, "bayes", pooling="none", draws=8, rng=1)
    row = bk.decide.noise_floor(fit).iloc[0]
    # Dirichlet(2, 2, 2): E var = (E s^2 - (E s)^2) 6 / 7 = (125/3 - 25) 6/7
    variance = 2.0 * (125.0 / 3.0 - 25.0) * 6.0 / 7.0 / 6.0
    assert row["sd"] == pytest.approx(np.sqrt(variance), rel=0.015)
    assert "points" not in row["sentence"]
