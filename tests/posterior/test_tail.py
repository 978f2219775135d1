"""`tail_exponent`: slopes of pass@k at large k, draws against exact quantiles, and ceilings."""

import numpy as np
import pandas as pd
import pytest

import bayesatk as bk


def _counts(questions=60, trials=8, impossible=0.0, seed=1):
    rng = np.random.default_rng(seed)
    p = np.where(rng.random(questions) < impossible, 0.0, rng.beta(0.8, 1.5, questions))
    return rng.binomial(trials, p), np.full(questions, trials)


def _fit(counts, difficulty="averaged", metrics="pass@8", **options):
    return bk.evaluate(bk.tally(counts), metrics, difficulty=difficulty, rng=1, **options)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.0])
def test_the_exponent_is_the_slope_of_the_failures_left(alpha) -> None:
    """With a prior that fixes the Beta, log2 of (1 - pass@k) / (1 - pass@2k) at k = 2048.

    The exact ratio is ``2^a (1 + O(1 / k))``.
    """
    mean, icc = alpha / (alpha + 1.5), 1 / (alpha + 2.5)
    firm = 1e7
    prior = bk.priors.HyperPrior(
        mean=(firm * mean, firm * (1 - mean)), icc=(firm * icc, firm * (1 - icc)), families="beta"
    )
    fit = bk.evaluate([[0, 1, 0, 0], [1, 1, 0, 1]], "pass@2048,4096", prior=prior, rng=1)
    exact = fit["closed_form"]["pass_at_k"].sel(target="population", statistic="mean").squeeze()
    slope = np.log2((1 - float(exact[0])) / (1 - float(exact[1])))
    row = bk.checks.tail_exponent(fit).iloc[0]
    assert row["exponent"] == pytest.approx(slope, rel=5e-3)
    assert row["exponent_lower"] < alpha < row["exponent_upper"]
    assert row["exponent_upper"] - row["exponent_lower"] < 0.01 * alpha


def test_quantiles_are_those_of_the_draws_under_a_beta() -> None:
    fit = _fit(_counts(), "beta", draws=25_000)
    drawn = fit["posterior"].to_dataset().squeeze("system")
    alpha = (drawn["mean_p"] * (1 / drawn["icc"] - 1)).values.ravel()
    row = bk.checks.tail_exponent(fit, ci_prob=0.9).iloc[0]
    own = row[["exponent", "exponent_lower", "exponent_upper"]].astype(float)
    np.testing.assert_allclose(own, np.quantile(alpha, [0.5, 0.05, 0.95]), rtol=0.01)
    assert row["prob_ceiling"] == 0.0
    assert np.isnan(row["ceiling"])
    assert row["sentence"].startswith("system: 1 - pass@k falls like k^-")


def test_quantiles_are_those_of_the_draws_of_all_families() -> None:
    """Smallest alpha of draws without an atom at 0; its share and place in the others.

    Draws of means are at some hundred of the points that quantiles rest on: a standard error of
    .02 for the median, and of .007 for the ends.
    """
    fit = _fit(_counts(trials=4), draws=25_000)
    drawn = fit["difficulty"].to_dataset().squeeze("system")
    alpha = drawn["mean"] * (1 / drawn["icc"] - 1)
    smallest = alpha.where(drawn["share"] > 0).min("component").values.ravel()
    inflated = (drawn["never"] > 0).values.ravel()
    row = bk.checks.tail_exponent(fit).iloc[0]
    assert 0.05 < row["prob_ceiling"] < 0.95
    assert row["prob_ceiling"] == pytest.approx(inflated.mean(), abs=0.005)
    levels = [0.5, 0.025, 0.975]
    for name, level in zip(["exponent", "exponent_lower", "exponent_upper"], levels, strict=True):
        below = (smallest[~inflated] <= row[name]).mean()
        assert below == pytest.approx(level, abs=0.05 if level == 0.5 else 0.02)
    ceiling = 1 - drawn["never"].values.ravel()[inflated]
    assert row["ceiling"] == pytest.approx(ceiling.mean(), abs=0.01)
    for name, level in zip(["ceiling_lower", "ceiling_upper"], levels[1:], strict=True):
        assert (ceiling <= row[name]).mean() == pytest.approx(level, abs=0.02)


def test_impossible_questions_have_a_ceiling_or_next_to_none() -> None:
    """30% impossible of 200, 16 trials each.

    Sixteen trials cannot tell them from a cluster of very small p, the lower Beta of a mixture: its
    exponent is then close to 0. The Beta alone is ruled out.
    """
    rng = np.random.default_rng(3)
    p = np.where(rng.random(200) < 0.3, 0.0, rng.beta(2, 2, 200))
    counts = rng.binomial(16, p), np.full(200, 16)
    row = bk.checks.tail_exponent(_fit(counts)).iloc[0]
    assert 0.1 < row["prob_ceiling"] < 0.9
    assert row["ceiling_lower"] < 1 - (p == 0).mean() < row["ceiling_upper"]
    assert row["exponent"] < 0.15
    assert "% some questions are never solved, and pass@k stays below" in row["sentence"]
    two = bk.checks.tail_exponent(_fit(counts, ["beta", "inflated"])).iloc[0]
    assert two["prob_ceiling"] > 0.9999
    assert "over 99%" in two["sentence"]


def test_each_family_alone_and_several_systems() -> None:
    c, n = _counts()
    data = bk.tally(np.stack([c, n - c]), trials=np.stack([n, n]), systems=["a", "b"])
    inflated = bk.checks.tail_exponent(bk.evaluate(data, "pass@8", difficulty="inflated", rng=1))
    assert inflated["system"].tolist() == ["a", "b"]
    assert (inflated["prob_ceiling"] == 1.0).all()
    assert inflated["exponent"].isna().all()
    assert inflated["sentence"].str.endswith("for some questions are never solved.").all()
    mixture = bk.checks.tail_exponent(bk.evaluate(data, "pass@8", difficulty="mixture", rng=1))
    assert (mixture["prob_ceiling"] == 0.0).all()
    assert (mixture["exponent_lower"] < mixture["exponent"]).all()


def test_only_the_data_and_the_prior_count() -> None:
    counts = _counts()
    first, second = _fit(counts, metrics="bayes"), _fit(counts, metrics="pass@2", draws=50)
    pd.testing.assert_frame_equal(bk.checks.tail_exponent(first), bk.checks.tail_exponent(second))


def test_refusals_name_the_remedy() -> None:
    for pooling in ("none", "complete"):
        fit = bk.evaluate([[0, 1], [1, 1]], "pass@1", pooling=pooling, rng=1)
        with pytest.raises(ValueError, match="pass pooling='partial'"):
            bk.checks.tail_exponent(fit)
    fit = bk.evaluate([[0, 1], [1, 1]], "pass@1", rng=1)
    with pytest.raises(ValueError, match=r"ci_prob must lie strictly between 0 and 1; got 95"):
        bk.checks.tail_exponent(fit, ci_prob=95)
