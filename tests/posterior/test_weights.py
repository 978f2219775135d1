"""Weights of questions in every metric and target, and where they are refused."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import betaln, expit, logit
from scipy.stats import beta

import bayesatk as bk
from bayesatk.data.study import read_study
from bayesatk.metrics.grid import parse
from bayesatk.posterior.models_of import system_model

RUNS = np.array([[[1, 0, 1], [1, 1, 1], [0, 0, 0], [0, 1, 0]], [[0, 0, 1], [1, 1, 0], [1, 0, 0],
                 [0, 0, 0]]])  # fmt: skip
WEIGHT = [4.0, 1.0, 0.5, 2.5]
SHARE = np.array(WEIGHT) / 8.0
POOLINGS = ["none", "partial", "complete"]


def values(fit, name="pass_at_k", **chosen):
    return fit["closed_form"][name].isel(system=0).sel(**chosen).values


@pytest.mark.parametrize("pooling", POOLINGS)
def test_equal_weights_are_none(pooling) -> None:
    one, two = (
        bk.evaluate(
            bk.tally(RUNS, weight=w),
            "pass@1,2 maj@3",
            pooling=pooling,
            rng=1,
            draws=50,
            **{"difficulty": "beta"} if pooling == "partial" else {},
        )
        for w in (None, [0.1] * 4)
    )
    for group in ("posterior", "closed_form", "closed_form_quantiles"):
        xr.testing.assert_equal(one[group].dataset, two[group].dataset)


def test_a_weight_of_two_is_not_a_question_asked_twice() -> None:
    weighted = bk.evaluate(bk.tally(RUNS[0], weight=[2, 1, 1, 1]), "pass@1", pooling="none", rng=1)
    twice = bk.evaluate(RUNS[0][[0, 0, 1, 2, 3]], "pass@1", pooling="none", rng=1)
    chosen = {"k": 1, "target": "questions"}
    one, two = (
        values(fit, **chosen, statistic=["estimate", "mean", "sd"]) for fit in (weighted, twice)
    )
    np.testing.assert_allclose(one[:2], two[:2])
    variances = beta(1 + RUNS[0].sum(axis=1), 4 - RUNS[0].sum(axis=1)).var()
    assert one[2] ** 2 == pytest.approx(np.array([4, 1, 1, 1]) @ variances / 25)
    assert two[2] ** 2 == pytest.approx(np.array([2, 1, 1, 1]) @ variances / 25)


def test_one_question_with_all_the_weight_is_the_answer() -> None:
    for pooling in ("none", "partial"):
        data = bk.tally(RUNS[0], weight=[1e9, 1, 1, 1])
        fit = bk.evaluate(data, "pass@1", pooling=pooling, rng=1, keep=["p"])
        own = fit["closed_form"]["p"].isel(system=0, question=0)
        np.testing.assert_allclose(
            values(fit, k=1, target="questions", statistic=["mean", "sd"]),
            own.sel(statistic=["mean", "sd"]),
            rtol=1e-6,
        )


def test_votes_are_weighted_too() -> None:
    answers = [["x", "x", "y"], ["y", "z", "y"], ["x", "y", "z"]]
    both = [
        bk.evaluate(
            bk.tally(None, answers=answers, reference=["x"] * 3, weight=w),
            "plurality@2 pass@1",
            pooling="none",
            rng=1,
            draws=500,
        )
        for w in (None, [1e9, 1, 1])
    ]
    alone = bk.evaluate(
        bk.tally(None, answers=answers[:1], reference=["x"]),
        "plurality@2 pass@1",
        pooling="none",
        rng=1,
        draws=500,
    )
    name = next(n for n in both[0]["closed_form"].data_vars if str(n).startswith("plurality"))
    chosen = {"k": 2, "target": "questions"}
    for statistic, error in (("estimate", 1e-8), ("mean", 1e-8), ("sd", 0.02)):
        heavy, single, even = (
            values(fit, name, **chosen, statistic=statistic) for fit in (both[1], alone, both[0])
        )
        assert heavy == pytest.approx(single, abs=error)
        assert heavy != pytest.approx(even, abs=error)


def test_weights_that_go_with_success_are_named_where_pooling_ignores_that() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(60)
    marks = (rng.random((60, 3)) < p[:, None]).astype(int)
    told = [
        len(
            [
                n
                for n in bk.evaluate(
                    bk.tally(marks, weight=w), "pass@1", pooling=pooling, draws=8, rng=1
                ).notes
                if "larger weights" in n
            ]
        )
        for w, pooling in (
            (1 / (p + 0.1), "complete"),
            (1 / (p + 0.1), "none"),
            (rng.permutation(1 / (p + 0.1)), "complete"),
        )
    ]
    assert told == [1, 0, 0]


def test_differences_are_weighted_and_paired() -> None:
    data = bk.tally({"a": RUNS[0], "b": RUNS[1]}, weight=WEIGHT)
    fit = bk.evaluate(data, "pass@1", pooling="none", rng=1)
    compared = bk.compare(fit)
    right = RUNS.sum(axis=2)
    law = beta(1 + right, 4 - right)
    own = compared["comparison"]["pass_at_k"].sel(system="a", other="b", k=1, target="questions")
    found = own.sel(contrast=["mean", "sd", "prob_greater"]).values
    gap = law.mean() @ SHARE
    sd = np.sqrt((law.var() @ SHARE**2).sum())
    np.testing.assert_allclose(found[0], gap[0] - gap[1], atol=1e-9)
    np.testing.assert_allclose(found[1], sd, rtol=0.02)  # of 4,000 draws: standard error 1%
    rng = np.random.default_rng(1)
    drawn = [rng.beta(1 + c, 4 - c, (50_000, 4)) @ SHARE for c in right]
    assert found[2] == pytest.approx((drawn[0] > drawn[1]).mean(), abs=0.01)
    sentence = bk.claim(compared, target="questions")
    assert "on the same 4 weighted questions" in sentence
    assert f"scored {SHARE @ right[0] / 3:.3f}" in sentence


GROUP = np.array([0, 0, 0, 1, 1, 1, 1])
SLOPE = np.array([-1.2, 0.1, 0.8, -0.4, 0.3, 1.1, -0.7])
COUNTS, HEAVY = np.array([1, 3, 2, 0, 2, 3, 1]), np.array([1.0, 4.0, 1.0, 3.0, 1.0, 0.5, 1.0])


def declared(weight, **options):
    """Return a study of seven questions in two groups with a covariate."""
    data = bk.tally(
        COUNTS, trials=3, weight=weight, group=GROUP.tolist(), covariates={"x": SLOPE.tolist()}
    )
    plain = {
        "pooling": "partial",
        "prior": None,
        "success": None,
        "prior_trials": None,
        "prior_weight": 1.0,
        "answer_prior": None,
        "ci_prob": 0.95,
        "keep": (),
        "difficulty": None if "pooling" in options else "beta",
    }
    return read_study(data, "pass@1,2", **plain | options)


@pytest.mark.parametrize("population", ["law", "bootstrap"])
def test_both_populations_of_groups_and_a_covariate_by_simulation(population) -> None:
    """Draws of the prior, weighted by the likelihood; p by its Beta; questions drawn anew."""
    study = declared(HEAVY, population=population, group="group", covariates=["x"])
    posterior = system_model(study, 0).fit(parse("pass@1"))
    rng, size = np.random.default_rng(5), 200_000
    mean, icc = rng.random((2, size))
    slope, tau = rng.normal(0.0, 2.5, size), np.abs(rng.normal(size=size))
    effect = tau[:, None] * rng.normal(size=(size, 2))
    scaled, total = (SLOPE - SLOPE.mean()) / SLOPE.std(), (1.0 - icc) / icc
    level = logit(mean)[:, None] + slope[:, None] * scaled
    m = expit(level + effect[:, GROUP])
    a, b = np.maximum([m * total[:, None], (1.0 - m) * total[:, None]], 1e-9)
    logs = (betaln(a + COUNTS, b + 3 - COUNTS) - betaln(a, b)).sum(axis=1)
    chance = np.exp(logs - logs.max())
    chance /= chance.sum()
    assert 1.0 / (chance @ chance) > 2500
    row = rng.choice(size, 60_000, p=chance)
    share = HEAVY / HEAVY.sum()
    if population == "law":
        drawn = m[row] @ share
        new = expit(level[row] + (tau[row] * rng.normal(size=len(row)))[:, None]) @ share
    else:
        p = rng.beta(a[row] + COUNTS, b[row] + 3 - COUNTS)
        v = rng.standard_exponential(p.shape) * HEAVY
        member = np.eye(2)[GROUP]
        of_groups, outer = (v * p) @ member / (v @ member), HEAVY @ member / HEAVY.sum()
        drawn = of_groups @ outer
        w = rng.standard_exponential(of_groups.shape) * outer
        new = (of_groups * w).sum(axis=1) / w.sum(axis=1)
    for target, values_of in ((1, drawn), (2, new)):
        if population == "law" and target == 2:  # its effect is integrated: only its mean compares
            assert posterior.mean[0, 2] == pytest.approx(new.mean(), abs=0.05 * new.std())
            continue
        found = posterior.mean[0, target], posterior.sd[0, target]
        expected = values_of.mean(), values_of.std()
        np.testing.assert_allclose(found, expected, atol=0.05 * values_of.std())
    mine = posterior.draw(20_000, rng, False).metrics[:, 0, 1]
    np.testing.assert_allclose(
        np.quantile(mine, [0.05, 0.5, 0.95]),
        np.quantile(drawn, [0.05, 0.5, 0.95]),
        atol=0.08 * drawn.std(),
    )


def test_a_result_says_over_whom_its_population_is() -> None:
    words = {
        "law": "new questions from the fitted difficulty distribution",
        "bootstrap": "these questions, resampled by the Bayesian bootstrap, with their weights",
    }
    for population, said in words.items():
        fit = bk.evaluate(DATA, "pass@1", difficulty="beta", rng=1, draws=20, population=population)
        assert any(f"Questions like these are {said}." in note for note in fit.notes)
        assert bk.checks.provenance(fit)["population"] == population
        assert bk.Result.of(fit).population == bk.Result.of(fit).study.population == population
    assert "Rubin" in bk.cite(fit)
    assert not bk.evaluate(RUNS, "pass@1", difficulty="beta", rng=1, draws=9).notes
    with pytest.raises(ValueError, match="population must be 'law' or 'bootstrap'; got 'these'"):
        bk.evaluate(RUNS, "pass@1", population="these")


def test_the_note_on_weights_and_success_names_the_bootstrap_where_there_is_a_law() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(60)
    data = bk.tally(rng.binomial(3, p), trials=3, weight=1 / (p + 0.1))
    notes = [
        " ".join(
            bk.evaluate(
                data, "pass@1", difficulty="beta", population=population, draws=8, rng=1
            ).notes
        )
        for population in ("law", "bootstrap")
    ]
    assert all("larger weights have lower scores" in text for text in notes)
    assert ["population='bootstrap'" in text for text in notes] == [True, False]


def test_a_gate_weighs_the_questions_of_both() -> None:
    both = [bk.tally(RUNS[i], weight=WEIGHT) for i in (0, 1)]
    gate = bk.decide.gate(*both, metric="pass@1", margin=0.05, rng=1)
    observed = json.loads(gate["gate"].attrs["record"])["observed"]
    assert observed["new"] == pytest.approx(SHARE @ RUNS[0].mean(axis=1))
    other = bk.tally(RUNS[1], weight=[4, 1, 1, 1])
    for second, said in ((RUNS[1], "given for both"), (other, r"of 2 is 0.5 and 1")):
        with pytest.raises(ValueError, match=said):
            bk.decide.gate(both[0], second, metric="pass@1", margin=0.05, rng=1)


DATA = bk.tally({"a": RUNS[0], "b": RUNS[1]}, weight=WEIGHT)


def test_guessers_have_no_weights_and_the_remedy_works() -> None:
    fit, plain = (
        bk.evaluate(data, "pass@1", difficulty="beta", draws=20, rng=1)
        for data in (DATA, DATA.unweighted())
    )
    with pytest.raises(ValueError, match=r"weights for .*0.5 to 4.* data.unweighted\(\)"):
        bk.guessing.random_baseline(fit, 0.5)
    assert bk.guessing.random_baseline(plain, 0.5) is not None


def test_what_is_of_single_questions_or_of_their_distribution_has_no_weights() -> None:
    fits = [
        bk.evaluate(one, "pass@1", difficulty="beta", rng=1) for one in (DATA, DATA.unweighted())
    ]
    for function in (
        bk.checks.exact_loo,
        bk.checks.log_evidence,
        bk.checks.tail_exponent,
    ):
        one, two = (function(fit) for fit in fits)
        if isinstance(one, pd.DataFrame):
            pd.testing.assert_frame_equal(one, two)
        else:
            assert str(one) == str(two)
    xr.testing.assert_equal(*(fit["log_likelihood"].to_dataset() for fit in fits))


def test_metrics_of_any_draws_are_weighted() -> None:
    for pooling in ("none", "partial"):
        fit = bk.evaluate(DATA, "pass@1,2", pooling=pooling, keep=["p"], draws=50, rng=1)
        again = bk.from_draws(fit, DATA, "pass@1,2", rng=1)
        chosen = {"target": "questions"}
        one, two = (each["posterior"]["pass_at_k"].sel(chosen) for each in (fit, again))
        np.testing.assert_allclose(one, two.transpose(*one.dims), atol=1e-12)
