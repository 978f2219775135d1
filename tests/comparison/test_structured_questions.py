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


def evaluated(kind, kept=slice(None), marks=MARKS, **options):
    """Evaluate some of the questions."""
    columns, arguments = {}, {"difficulty": "beta"}
    if "group" in kind:
        columns["group"], arguments["group"] = GROUPS[kept].tolist(), "group"
    if "covariates" in kind:
        columns["covariates"] = {"size": SIZE[kept].tolist()}
        arguments["covariates"] = ["size"]
    if "weight" in kind:
        columns["weight"] = np.arange(1.0, QUESTIONS + 1.0)[kept]
    if "bootstrap" in kind:
        arguments["population"] = "bootstrap"
    if "judge" in kind:
        arguments["judge"] = JUDGE
    if "prior trials" in kind:
        arguments["prior_trials"] = bk.tally(MARKS[kept][:, ::-1][:, :2])
    if "none" in kind:
        arguments["pooling"] = "none"
        del arguments["difficulty"]
    data = bk.tally(marks[kept], missing="ignore", **columns)
    return bk.evaluate(data, "pass@1,2", draws=8, rng=1, **arguments, **options)


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


ALONE = bk.priors.HyperPrior(families="beta", group_sd=1e-3)
PERFECT = bk.JudgeError(tp=10**6, p=10**6, fp=0, n=10**6)


@pytest.mark.parametrize(
    ("marks", "columns", "options"),
    [
        (MARKS, {}, {"judge": PERFECT}),
        (MARKS[:, :2], {}, {"prior_trials": MARKS[:, 2:]}),
        (MARKS, {"group": GROUPS.tolist()}, {"prior": ALONE, "group": "group"}),
    ],
    ids=["perfect judge", "moved trials", "groups that cannot differ"],
)
def test_what_changes_nothing_leaves_questions_and_noise_as_they_were(marks, columns, options):
    family = {} if "prior" in options else {"difficulty": "beta"}
    plain = bk.evaluate(MARKS, "pass@1", difficulty="beta", draws=8, rng=1)
    fit = bk.evaluate(bk.tally(marks, **columns), "pass@1", draws=8, rng=1, **family, **options)
    rows, known = bk.checks.question_table(fit), bk.checks.question_table(plain)
    for name in ("mean", "ci_lower", "ci_upper", "information", "prob_saturated"):
        np.testing.assert_allclose(rows[name], known[name], atol=0.01)
    np.testing.assert_allclose(rows["influence"], known["influence"], atol=2e-3)
    noise, expected = (bk.decide.noise_floor(each, trials=3).iloc[0] for each in (fit, plain))
    assert noise["sd"] == pytest.approx(expected["sd"], rel=0.02)
    assert noise["floor"] == pytest.approx(expected["floor"], abs=2.0 / (3.0 * QUESTIONS))


# --- evidence and leaving out, prior trials given ---


@pytest.mark.long
@pytest.mark.parametrize("kind", ["", "group", "covariates", "judge", "none", "none group"])
def test_evidence_given_prior_trials_is_that_of_all_less_that_of_these(kind):
    later, before = MARKS[:, 2:].astype(float), MARKS[:, :2]

    def evidence(marks, **options):
        fit = evaluated(kind, marks=marks, **options)
        return float(bk.checks.log_evidence(fit)[0]), fit

    given, fit = evidence(later, prior_trials=bk.tally(before))
    assert given == pytest.approx(evidence(MARKS)[0] - evidence(before)[0], abs=0.05)
    # One question alone: p(n | before, others) is what its trials add to the evidence.
    without = later.copy()
    without[3] = np.nan
    rest, _ = evidence(without, prior_trials=bk.tally(before))
    ways = np.log([1, 2, 1])[int(later[3].sum())]
    elpd = bk.checks.exact_loo(fit).elpd_i.values[0]
    assert elpd[3] == pytest.approx(given - rest + ways, abs=0.05)


@pytest.mark.long
def test_evidence_of_categories_given_prior_trials_is_that_of_all_less_that_of_these():
    grades = np.random.default_rng(2).choice(3, (15, 4), p=[0.5, 0.2, 0.3])

    def evidence(marks, before=None):
        data, earlier = (
            None if each is None else bk.tally(each, scores={0: 0.0, 1: 0.5, 2: 1.0})
            for each in (marks, before)
        )
        fit = bk.evaluate(data, "bayes", difficulty="beta", draws=8, rng=1, prior_trials=earlier)
        return float(bk.checks.log_evidence(fit)[0])

    before, later = grades[:, :2], grades[:, 2:]
    given = evidence(later, before)
    assert given == pytest.approx(evidence(grades) - evidence(before), abs=0.02)
