"""Checks of the shape of difficulties, and the model with room for extremes."""

import numpy as np
import pytest
from scipy.special import expit

import bayesatk as bk

TRIALS = 16


def _fit(p, seed: int = 0, metrics: str = "bayes", **options):
    counts = np.random.default_rng(seed).binomial(TRIALS, p)
    return bk.evaluate((counts, TRIALS), metrics, draws=250, rng=1, **options)


def _shapes(name: str, questions: int = 300):
    rng = np.random.default_rng(5)
    smooth = rng.beta(3, 2, questions)
    extreme = rng.random(questions) < 0.15
    return {
        "impossible": np.where(extreme, 0.0, smooth),
        "certain": np.where(extreme, 1.0, rng.beta(3, 3, questions)),
        "two clusters": np.where(rng.random(questions) < 0.5, 0.2, 0.8),
    }[name]


@pytest.mark.parametrize(
    ("shape", "check", "words"),
    [
        ("impossible", "questions never solved minus rarely solved", "may be impossible"),
        ("certain", "questions always solved minus nearly always solved", "may be certain"),
        ("two clusters", "questions solved in 1/3 to 2/3 of trials", "fewer questions"),
        ("two clusters", "kurtosis of success rates", "two clusters"),
    ],
)
def test_what_a_beta_cannot_make_is_flagged_in_words(shape, check, words) -> None:
    row = (
        bk.checks.criticise(_fit(_shapes(shape), difficulty="beta"), rng=1)
        .set_index("check")
        .loc[check]
    )
    assert row["flagged"]
    assert words in row["sentence"]


def test_impossible_questions_beside_a_covariate_are_flagged() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    p = np.where(rng.random(200) < 0.2, 0.0, expit(0.5 + 0.7 * x))
    data = bk.tally((rng.binomial(8, p), np.full(200, 8)), covariates={"x": x})
    fit = bk.evaluate(data, "pass@1", covariates=["x"], rng=1)
    rows = bk.checks.criticise(fit, rng=1).set_index("check")
    assert rows.loc["questions never solved minus rarely solved", "flagged"]


@pytest.mark.long
@pytest.mark.parametrize("pair", [(2.0, 1.5), (0.3, 0.3), (20.0, 20.0)])
def test_beta_difficulties_are_rarely_flagged(pair) -> None:
    """At most the stated 0.05 of the systems; five of 20 would have probability .003."""
    rng = np.random.default_rng(1)
    counts = rng.binomial(TRIALS, rng.beta(*pair, (20, 100)))
    options = {"difficulty": "beta", "draws": 250, "rng": 1}
    fit = bk.evaluate((counts, np.full(counts.shape, TRIALS)), "bayes", **options)
    flagged = bk.checks.criticise(fit, rng=1).groupby("system")["flagged"].any()
    assert flagged.sum() <= 4


def test_one_probability_for_all_is_flagged_when_questions_differ() -> None:
    rng = np.random.default_rng(2)
    fit = _fit(rng.beta(1, 1, 100), pooling="complete")
    assert bk.checks.criticise(fit, rng=1)["flagged"].sum() >= 3


def test_criticism_needs_a_difficulty_distribution() -> None:
    with pytest.raises(ValueError, match=r"fit .*'none'.* pass pooling='partial'"):
        bk.checks.criticise(bk.evaluate([[1, 0]], "bayes", pooling="none", rng=1))


@pytest.mark.parametrize("pooling", ["partial", "complete"])
def test_scored_categories_have_predictive_groups(pooling) -> None:
    """Replicates have the predictive mean, and the prior its mean and overdispersion."""
    marks = np.random.default_rng(2).choice(3, p=[0.5, 0.3, 0.2], size=(12, 6))
    data = bk.tally(marks, scores={0: 0.0, 1: 0.5, 2: 1.0})
    prior = bk.priors.DirichletHyperPrior() if pooling == "partial" else None
    fit = bk.evaluate(data, "bayes", pooling=pooling, prior=prior, draws=1000, rng=1)
    replicated = fit["posterior_predictive"]["count"]
    assert (replicated.sum("category") == 6).all()
    mean = fit["posterior"]["mean_p"].mean(("chain", "draw")).values[0]
    predicted = replicated.mean(("chain", "draw", "question")).values[0] / 6
    np.testing.assert_allclose(predicted, mean, atol=0.01)
    drawn = fit["prior_predictive"]["count"].isel(system=0, question=0, category=0).values
    # Marginally p is Beta(1, 2) without icc; with it, between that and all or none.
    assert drawn.mean() == pytest.approx(2.0, abs=0.35)
    assert drawn.var() > 1.5 * 6 * (1 / 3) * (2 / 3)
    p = fit["posterior"]["mean_p"].transpose("chain", "draw", "system", "category").values
    log_density = np.log(2.0 * p.prod(axis=-1)).ravel()
    np.testing.assert_allclose(fit["log_prior"]["mean_p"].values.ravel(), log_density, rtol=1e-9)


def test_log_prior_is_the_density_of_logits() -> None:
    prior = bk.priors.HyperPrior(mean=(2.0, 3.0), icc=(1.0, 4.0), families="beta")
    fit = bk.evaluate([[1, 0], [1, 1]], "bayes", prior=prior, rng=1)
    p = fit["posterior"]["mean_p"].values
    expected = np.log(12.0 * p * (1 - p) ** 2) + np.log(p * (1 - p))  # Beta(2, 3), Jacobian
    np.testing.assert_allclose(fit["log_prior"]["mean_p"].values, expected, rtol=1e-10)


def test_equal_rates_have_a_kurtosis() -> None:
    """Few questions are often replicated with the same rate everywhere: no division by zero."""
    fit = bk.evaluate([[1, 0], [1, 0], [0, 1]], "bayes", draws=50, rng=1)
    table = bk.checks.criticise(fit, rng=1).set_index("check")
    assert table.loc["kurtosis of success rates", "observed"] == 3.0


def test_families_are_compared_with_the_average_of_all() -> None:
    """15% impossible: the Beta has no probability left, and pass@64 is what would change."""
    p, metrics = _shapes("impossible"), ["pass@1,64", "pass^2"]
    fit, whole = (_fit(p, metrics=metrics, **options) for options in ({"difficulty": "beta"}, {}))
    row = bk.checks.criticise(fit, rng=1).set_index("check").loc["difficulty families"]
    closed = whole["closed_form"].to_dataset().squeeze("system")
    share = closed["family_probability"].sel(family="beta").item()
    assert row["observed"] == pytest.approx(share, rel=1e-9)
    assert row["expected"] == pytest.approx(1 / 3)
    assert row["flagged"]
    assert (
        closed["family_probability"].idxmax().item() in row["sentence"].partition("Beta alone")[0]
    )
    alone, averaged = (bk.table(tree).set_index(["metric", "target"]) for tree in (fit, whole))
    metric, target = ((alone["mean"] - averaged["mean"]).abs() / alone["sd"]).idxmax()
    assert metric == "pass@64"
    moved = averaged.loc[(metric, target)]
    text = f"would be {moved['mean']:.3f} [{moved['ci_lower']:.3f}"
    assert text in row["sentence"]


def test_a_beta_that_holds_is_not_flagged_and_moves_nothing() -> None:
    fit = _fit(np.random.default_rng(8).beta(2.0, 1.5, 200), metrics="pass@4", difficulty="beta")
    row = bk.checks.criticise(fit, rng=1).iloc[-1]
    assert not row["flagged"]
    assert "changes no metric" in row["sentence"]


@pytest.mark.parametrize("shape", ["impossible", "certain", "two clusters"])
def test_the_average_of_all_families_has_room_for_each_shape(shape) -> None:
    """Nothing is flagged, and no other families are left to compare with."""
    table = bk.checks.criticise(_fit(_shapes(shape)), rng=1)
    assert not table["flagged"].any()
    assert table["observed"].iloc[-1] == pytest.approx(1.0)


def test_an_improper_prior_has_no_families_to_compare() -> None:
    fit = _fit(_shapes("impossible"), prior=bk.priors.HyperPrior.bda3())
    assert "difficulty families" not in bk.checks.criticise(fit, rng=1)["check"].tolist()
