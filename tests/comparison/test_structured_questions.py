"""Single questions of structured data: against plain models, refits and importance sampling."""

import numpy as np
import pytest

import bayesatk as bk

QUESTIONS, TRIALS = 20, 4
RNG = np.random.default_rng(11)
MARKS = RNG.binomial(1, RNG.beta(0.8, 1.2, QUESTIONS)[:, None], (QUESTIONS, TRIALS))
GROUPS = np.array(list("abcd") * 5)
SIZE = np.linspace(-1.0, 1.0, QUESTIONS)
JUDGE = bk.JudgeError(tp=45, p=50, fp=4, n=50)
KINDS = (
    "covariates",
    "prior trials",
    "group judge",
    "none group",
    "bootstrap weight group",
)


def evaluated(kind, kept=slice(None), **options):
    """Evaluate some of the questions."""
    columns, asked = {}, {"difficulty": "beta"}
    if "group" in kind:
        columns["group"], asked["group"] = GROUPS[kept].tolist(), "group"
    if "covariates" in kind:
        columns["covariates"] = {"size": SIZE[kept].tolist()}
        asked["covariates"] = ["size"]
    if "weight" in kind:
        columns["weight"] = np.arange(1.0, QUESTIONS + 1.0)[kept]
    if "bootstrap" in kind:
        asked["population"] = "bootstrap"
    if "judge" in kind:
        asked["judge"] = JUDGE
    if "prior trials" in kind:
        asked["prior_trials"] = bk.tally(MARKS[kept][:, ::-1][:, :2])
    if "none" in kind:
        asked["pooling"] = "none"
        del asked["difficulty"]
    data = bk.tally(MARKS[kept], **columns)
    return bk.evaluate(data, "pass@1,2", draws=8, rng=1, **asked, **options)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_influence_is_the_difference_of_two_evaluations(kind):
    fit = evaluated(kind)
    whole = bk.table(fit).query("metric == 'pass@2'").set_index("target")
    for target in ("questions", "population"):
        rows = bk.checks.question_table(fit, "pass@2", target=target)
        question = int(rows["influence"].abs().idxmax())
        kept = np.arange(QUESTIONS) != question
        rest = bk.table(evaluated(kind, kept)).query("metric == 'pass@2'")
        left = rest.set_index("target")["mean"][target]
        moved, sd = whole["mean"][target] - left, whole["sd"][target]
        assert rows["influence"][question] == pytest.approx(moved, abs=0.03 * sd)


@pytest.mark.parametrize("kind", KINDS)
def test_means_of_questions_add_up_to_the_metric(kind):
    fit = evaluated(kind)
    rows = bk.checks.question_table(fit, "pass@1")
    whole = bk.table(fit).query("metric == 'pass@1' and target == 'questions'").iloc[0]
    weight = np.arange(1.0, QUESTIONS + 1.0) if "weight" in kind else np.ones(QUESTIONS)
    total = weight @ rows["mean"] / weight.sum()
    assert total == pytest.approx(whole["mean"], abs=0.03 * whole["sd"])
    inside = (rows["ci_lower"] < rows["mean"]) & (rows["mean"] < rows["ci_upper"])
    assert inside.all()


def test_a_perfect_judge_and_moved_trials_are_the_plain_model():
    plain = bk.evaluate(MARKS, "pass@1", difficulty="beta", draws=8, rng=1)
    perfect = bk.JudgeError(tp=10**6, p=10**6, fp=0, n=10**6)
    judged = bk.evaluate(MARKS, "pass@1", difficulty="beta", judge=perfect, draws=8, rng=1)
    moved = bk.evaluate(
        MARKS[:, :2], "pass@1", difficulty="beta", prior_trials=bk.tally(MARKS[:, 2:]), draws=8,
        rng=1,
    )  # fmt: skip
    known = bk.checks.question_table(plain)
    for fit in (judged, moved):
        rows = bk.checks.question_table(fit)
        for name in ("mean", "ci_lower", "ci_upper", "information", "prob_saturated"):
            np.testing.assert_allclose(rows[name], known[name], atol=0.01)
        np.testing.assert_allclose(rows["influence"], known["influence"], atol=1e-3)


def test_one_group_alone_is_the_plain_model_when_groups_cannot_differ():
    prior = bk.priors.HyperPrior(families="beta", group_sd=1e-3)
    plain = bk.evaluate(MARKS, "pass@1", difficulty="beta", draws=8, rng=1)
    data = bk.tally(MARKS, group=GROUPS.tolist())
    fit = bk.evaluate(data, "pass@1", prior=prior, group="group", draws=8, rng=1)
    rows, known = bk.checks.question_table(fit), bk.checks.question_table(plain)
    for name in ("mean", "ci_lower", "ci_upper"):
        np.testing.assert_allclose(rows[name], known[name], atol=0.01)
    np.testing.assert_allclose(rows["influence"], known["influence"], atol=2e-3)


@pytest.mark.long
def test_a_pair_of_structured_systems_adds_up_to_its_difference():
    other = RNG.permuted(MARKS, axis=0)
    data = bk.tally({"x": MARKS, "y": other}, group=GROUPS.tolist())
    fit = bk.evaluate(data, "pass@1", group="group", difficulty="beta", draws=8, rng=1)
    pair = bk.checks.question_table(fit, system="x", other="y")
    means = bk.table(fit).query("target == 'questions'").set_index("system")["mean"]
    assert pair["part"].sum() == pytest.approx(means["x"] - means["y"], abs=2e-3)
    assert (pair["sd"] > 0.0).all()


# --- evidence and leaving out, prior trials given ---


@pytest.mark.long
@pytest.mark.parametrize("kind", ["", "group", "covariates", "judge", "none", "none group"])
def test_evidence_with_prior_trials_is_that_of_all_less_that_of_prior_trials(kind):
    later, before = MARKS[:, 2:], MARKS[:, :2]

    def fitted(marks, **options):
        columns, asked = {}, {} if "none" in kind else {"difficulty": "beta"}
        if "group" in kind:
            columns["group"], asked["group"] = GROUPS.tolist(), "group"
        if kind == "covariates":
            columns["covariates"], asked["covariates"] = {"size": SIZE.tolist()}, ["size"]
        if kind == "judge":
            asked["judge"] = JUDGE
        if "none" in kind:
            asked["pooling"] = "none"
        data = bk.tally(marks, **columns)
        return bk.evaluate(data, "pass@1", draws=8, rng=1, **asked, **options)

    given = fitted(later, prior_trials=bk.tally(before))
    evidence = [float(bk.checks.log_evidence(fitted(marks))[0]) for marks in (MARKS, before)]
    assert float(bk.checks.log_evidence(given)[0]) == pytest.approx(
        evidence[0] - evidence[1], abs=0.05
    )
    # One question alone: p(n | before, others) is what its trials add to the evidence.
    elpd = bk.checks.exact_loo(given).elpd_i.values[0]
    missing = later.astype(float)
    missing[3] = np.nan
    data = bk.tally(missing, missing="ignore", **(
        {"group": GROUPS.tolist()} if "group" in kind else {}
    ), **({"covariates": {"size": SIZE.tolist()}} if kind == "covariates" else {}))  # fmt: skip
    asked = {"pooling": "none"} if "none" in kind else {"difficulty": "beta"}
    if "group" in kind:
        asked["group"] = "group"
    if kind == "covariates":
        asked["covariates"] = ["size"]
    if kind == "judge":
        asked["judge"] = JUDGE
    rest = bk.evaluate(data, "pass@1", draws=8, rng=1, prior_trials=bk.tally(before), **asked)
    gap = float(bk.checks.log_evidence(given)[0] - bk.checks.log_evidence(rest)[0])
    ways = np.log([1, 2, 1])[later[3].sum()]
    assert elpd[3] == pytest.approx(gap + ways, abs=0.05)


@pytest.mark.long
def test_categories_with_prior_trials_are_predicted_with_these():
    rng = np.random.default_rng(2)
    grades = rng.choice(3, (15, 4), p=[0.5, 0.2, 0.3])
    scores = {0: 0.0, 1: 0.5, 2: 1.0}

    def evidence(marks, **options):
        data = bk.tally(marks, scores=scores)
        fit = bk.evaluate(data, "bayes", difficulty="beta", draws=8, rng=1, **options)
        return float(bk.checks.log_evidence(fit)[0]), bk.checks.exact_loo(fit).elpd

    before = grades[:, :2]
    given, elpd = evidence(grades[:, 2:], prior_trials=bk.tally(before, scores=scores))
    assert given == pytest.approx(evidence(grades)[0] - evidence(before)[0], abs=0.02)
    assert np.isfinite(elpd)
