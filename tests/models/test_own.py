"""Results of hand-written PyMC models: `bayesatk.from_draws`."""

import re

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from scipy.special import beta as beta_integral
from scipy.stats import beta, betabinom, binom

import bayesatk as bk

QUICK = {"draws": 1000, "tune": 500, "chains": 4, "cores": 1, "progressbar": False,
         "nuts_sampler": "nutpie", "random_seed": 1}  # fmt: skip
METRICS = "pass@1,4 pass^2"
QUESTIONS = 20


@pytest.fixture(scope="module")
def data() -> bk.Outcomes:
    rng = np.random.default_rng(1)
    p = rng.beta(0.8, 0.8, QUESTIONS)
    names = [f"q{number}" for number in range(QUESTIONS)]
    marks = {"old": p, "new": p**0.7}
    return bk.tally(
        pd.concat(
            [
                pd.DataFrame(
                    {"system": system, "question": names, "outcome": rng.binomial(1, chance)}
                )
                for system, chance in marks.items()
                for _ in range(4)
            ]
        )
    )


@pytest.fixture(scope="module")
def beta_binomial(data) -> xr.DataTree:
    """Two systems, named dimensions, new questions, a log likelihood."""
    n, y = data.trials.values, data.successes.values
    with pm.Model(coords={"system": data.systems, "question": data.successes["question"].values}):
        mean = pm.Beta("mean", 1, 1, dims="system")
        icc = pm.Beta("icc", 1, 1, dims="system")
        shapes = [(x * (1 / icc - 1))[:, None] for x in (mean, 1 - mean)]
        p = pm.Beta("p", *shapes, dims=("system", "question"))
        pm.Binomial("y", n, p, observed=y, dims=("system", "question"))
        trace = pm.sample(target_accept=0.9, **QUICK)
        pm.Beta("p_new", *shapes, shape=(2, 400))
        trace = pm.sample_posterior_predictive(
            trace, var_names=["p_new"], extend_inferencedata=True, progressbar=False, random_seed=1
        )
    drawn = trace["posterior"]
    size = (1.0 / drawn["icc"] - 1.0).values[..., None]
    alpha, beta = (x.values[..., None] * size for x in (drawn["mean"], 1.0 - drawn["mean"]))
    given = betabinom.logpmf(y, n, alpha, beta)  # with p integrated out
    trace["log_likelihood"] = xr.Dataset({"y": (drawn["p"].dims, given)}, drawn["p"].coords)
    return trace


@pytest.fixture(scope="module")
def logistic(data) -> xr.DataTree:
    """One system, no names of anything, no new questions, no log likelihood."""
    own = data["old"]
    with pm.Model():
        mu, sigma = pm.Normal("mu", 0, 1.5), pm.HalfNormal("sigma", 2)
        logit = mu + sigma * pm.Normal("z", size=QUESTIONS)
        p = pm.Deterministic("chance", pm.math.sigmoid(logit))
        pm.Binomial("y", own.trials.values[0], p, observed=own.successes.values[0])
        return pm.sample(**QUICK)


@pytest.fixture(scope="module")
def of_two(beta_binomial, data) -> xr.DataTree:
    return bk.from_draws(beta_binomial, data, METRICS, rng=1)


@pytest.fixture(scope="module")
def of_one(logistic, data) -> xr.DataTree:
    return bk.from_draws(logistic, data, METRICS, p="chance", system="old", rng=1)


def test_metrics_are_those_of_the_draws(beta_binomial, of_two) -> None:
    p = beta_binomial["posterior"]["p"].values
    new = beta_binomial["posterior_predictive"]["p_new"].values
    for values, target in ((p, "questions"), (new, "population")):
        found = of_two["posterior"].sel(target=target)
        for variable, k, worked_out in (
            ("pass_at_k", 4, 1 - (1 - values) ** 4),
            ("pass_hat_k", 2, values**2),
        ):
            drawn = found[variable].sel(k=k).transpose("chain", "draw", "system")
            np.testing.assert_allclose(drawn.values, worked_out.mean(-1), atol=1e-12)
    np.testing.assert_array_equal(of_two["posterior"]["p"].values, p)
    assert of_two.notes == []


def test_the_model_written_from_the_page_agrees_with_the_exact_result(of_two, data) -> None:
    exact = bk.evaluate(data, METRICS, difficulty="beta", rng=1)
    found = bk.verify(exact, of_two, alpha=1e-4)
    assert found.verdict == "agree", found.table
    assert set(found.table["variable"]) == {"pass_at_k", "pass_hat_k"}
    skewed = bk.evaluate(data, METRICS, prior=bk.priors.HyperPrior(icc=(1, 9)), difficulty="beta")
    assert bk.verify(skewed, of_two).verdict == "disagree"


def test_without_new_questions_these_are_drawn_anew(of_one, logistic, data) -> None:
    notes = of_one.notes
    assert [note[:31] for note in notes] == [
        "The draws have no new questions",
        "The draws have no log likelihoo",
    ]
    claimed = bk.claim(of_one, system="old")
    assert notes[0] in claimed
    assert notes[1] not in claimed  # nothing is left out
    rows = bk.table(of_one).query("metric == 'pass@1'").set_index("target")
    p = logistic["posterior"]["chance"].values.reshape(-1, QUESTIONS)
    weight = np.random.default_rng(5).dirichlet(np.ones(QUESTIONS), len(p))
    anew = (p * weight).sum(axis=1)
    assert rows.loc["population", "mean"] == pytest.approx(anew.mean(), abs=4 * anew.std() / 60)
    assert rows.loc["population", "sd"] == pytest.approx(anew.std(), rel=0.1)
    assert rows.loc["questions", "sd"] == pytest.approx(p.mean(axis=1).std(ddof=1), rel=1e-9)


def _compared(fit):
    return bk.compare(fit)


OPERATIONS = {
    "print": str,
    "table": bk.table,
    "notes": lambda fit: fit.notes,
    "claim": lambda fit: bk.claim(fit, system=fit["posterior"]["system"].values[0]),
    "noise floor": bk.decide.noise_floor,
    "random baseline": lambda fit: bk.guessing.random_baseline(fit, 0.25, t=3),
    "provenance": bk.checks.provenance,
    "cite": bk.cite,
    "plot_curve": lambda fit: bk.plots.plot_curve(fit, "pass@"),
    "plot_systems": bk.plots.plot_systems,
    "plot_shrinkage": bk.plots.plot_shrinkage,
    "plot_questions": bk.plots.plot_questions,
    "summary": lambda fit: az.summary(fit, var_names=["pass_at_k"]),
    "forest": lambda fit: az.plot_forest(fit, var_names=["pass_at_k"]),
}
OF_PAIRS = {
    "compare": lambda fit: bk.table(_compared(fit), "comparison"),
    "leaderboard": lambda fit: bk.table(bk.leaderboard(fit), "leaderboard"),
    "claim": lambda fit: bk.claim(_compared(fit)),
    "gate": lambda fit: bk.table(bk.decide.gate(fit, "old", metric="pass@1", margin=0.05), "gate"),
    "plot_difference": lambda fit: bk.plots.plot_difference(_compared(fit)),
    "loo": az.loo,
}
UNDEFINED = {
    "plan": lambda fit: bk.plan(fit, "pass@1", width=0.1),
    "criticise": bk.checks.criticise,
    "exact_loo": bk.checks.exact_loo,
    "log_evidence": bk.checks.log_evidence,
    "tail_exponent": bk.checks.tail_exponent,
    "plot_difficulty": bk.plots.plot_difficulty,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_take_one_system_and_two(of_one, of_two, name) -> None:
    for fit in (of_one, of_two):
        assert OPERATIONS[name](fit) is not None


@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")
@pytest.mark.parametrize("name", OF_PAIRS)
def test_operations_of_pairs_take_it(of_two, name) -> None:
    assert OF_PAIRS[name](of_two) is not None


@pytest.mark.parametrize("name", UNDEFINED)
def test_what_needs_the_law_of_questions_says_so(of_two, name) -> None:
    with pytest.raises(ValueError, match="must be without draws of your own model") as refused:
        UNDEFINED[name](of_two)
    assert str(refused.value).endswith("bayesatk.evaluate(data, metrics).")


def test_it_is_reported_saved_and_loaded(of_two, of_one, tmp_path) -> None:
    page = bk.report(_compared(of_two), tmp_path / "report.html").read_text(encoding="utf-8")
    assert "known by its draws" in page
    for number, fit in enumerate((of_two, of_one)):
        for ending in ("nc", "zarr"):
            path = bk.save(fit, tmp_path / f"{number}.{ending}")
            loaded = bk.load_result(path)
            assert loaded.identical(fit)
            pd.testing.assert_frame_equal(bk.table(loaded), bk.table(fit))


def test_differences_are_those_of_the_joint_draws(of_two) -> None:
    rows = bk.table(_compared(of_two), "comparison", of="new", against="old")
    drawn = of_two["posterior"]["pass_at_k"].sel(k=4)
    for target in ("questions", "population"):
        gap = drawn.sel(target=target, system="new") - drawn.sel(target=target, system="old")
        row = rows.query("metric == 'pass@4' and target == @target").iloc[0]
        assert row["mean"] == pytest.approx(float(gap.mean()), abs=1e-9)
        assert row["sd"] == pytest.approx(float(gap.std(ddof=1)), rel=1e-3)
        assert row["prob_greater"] == pytest.approx(float((gap > 0).mean()), abs=1e-9)


def test_questions_drawn_anew_are_the_same_of_all_systems() -> None:
    """What systems share cancels in their difference on questions like these."""
    rng = np.random.default_rng(3)
    right = rng.binomial(6, rng.random(40))
    p = rng.beta(1.0 + right, 7.0 - right, (2, 500, 40))
    both = np.stack([p, 0.9 * p], axis=2)
    dims = ("chain", "draw", "system", "question")
    trace = xr.DataTree.from_dict({"posterior": xr.Dataset({"p": (dims, both)})})
    marks = (np.arange(6) < right[:, None]).astype(int)
    own = bk.from_draws(trace, {"a": marks, "b": marks}, "pass@1", rng=1)
    drawn = own["posterior"]["pass_at_k"].sel(k=1, target="population")
    np.testing.assert_allclose(drawn.isel(system=1), 0.9 * drawn.isel(system=0), rtol=1e-12)
    assert float(drawn.std()) > 0.02


def test_systems_with_the_same_counts_may_differ_by_the_model() -> None:
    rng = np.random.default_rng(1)
    p = np.stack([rng.beta(8, 2, (4, 200, 5)), rng.beta(2, 8, (4, 200, 5))], axis=2)
    dims = ("chain", "draw", "system", "question")
    trace = xr.DataTree.from_dict({"posterior": xr.Dataset({"p": (dims, p)})})
    fit = bk.from_draws(trace, {"a": [[1, 0]] * 5, "b": [[1, 0]] * 5}, "pass@1", rng=1)
    rows = bk.table(_compared(fit), "comparison", of="a", against="b")
    assert (rows["prob_greater"] > 0.99).all()


def test_a_log_likelihood_given_the_questions_own_p_is_left_out(beta_binomial, data) -> None:
    """Its leave-one-out is far off: the same Beta model would win by tens against itself."""
    p = beta_binomial["posterior"]["p"]
    given_p = binom.logpmf(data.successes.values, data.trials.values, p.values)
    trace = beta_binomial.copy()
    trace["log_likelihood"] = xr.Dataset({"y": (p.dims, given_p)}, p.coords)
    mine = bk.from_draws(trace, data, "pass@1", rng=1)
    assert "log_likelihood" not in mine.children
    (note,) = [note for note in mine.notes if "log likelihood was left out" in note]
    assert "pm.BetaBinomial" in note
    assert "log likelihood" not in bk.claim(mine, system="old")


def test_leave_one_out_of_the_same_model_is_that_of_the_library(of_two, data) -> None:
    """By importance sampling from draws, where the library's is exact."""
    fit = bk.evaluate(data, "pass@1", difficulty="beta", rng=1).sel(system=["old"])
    mine = az.loo(of_two.sel(system="old"))
    assert mine.elpd == pytest.approx(bk.checks.exact_loo(fit).elpd, abs=0.3)


@pytest.mark.parametrize("effects", [True, False], ids=["effects of questions", "regression"])
def test_of_a_regression_the_log_likelihood_given_p_stays(effects) -> None:
    rng = np.random.default_rng(3)
    right, x = rng.integers(0, 5, 30), np.linspace(-1.0, 1.0, 30)
    logits = rng.normal(size=(4, 250, 1)) + rng.normal(size=(4, 250, 1)) * x
    logits = logits + effects * 0.3 * rng.normal(size=(4, 250, 30))
    p = 1.0 / (1.0 + np.exp(-logits))
    dims = "chain", "draw", "question"
    trace = _trace(
        p,
        log_likelihood=xr.Dataset({"y": (dims, binom.logpmf(right, 4, p))}),
        observed_data=xr.Dataset({"y": ("question", right)}),
    )
    data = bk.tally([[1] * c + [0] * (4 - c) for c in right.tolist()])
    mine = bk.from_draws(trace, data, "pass@1", rng=1)
    assert ("log_likelihood" in mine.children) != effects
    if not effects:
        np.testing.assert_allclose(
            mine["log_likelihood"]["successes"].values[:, :, 0], binom.logpmf(right, 4, p)
        )


@pytest.mark.parametrize("drawn", [True, False], ids=["draws", "means given hyperparameters"])
def test_means_given_hyperparameters_in_place_of_draws_are_noted(drawn) -> None:
    """Of a Beta model whose likelihood has p integrated out, p given a count is Beta."""
    rng = np.random.default_rng(6)
    right, trials, dims = rng.binomial(4, rng.beta(1.0, 1.0, 30)), 4, ("chain", "draw", "question")
    a, b = rng.gamma(10.0, 0.1, (2, 4, 250, 1))
    p = (a + right) / (a + b + trials)
    if drawn:
        p = rng.beta(a + right, b + trials - right)
    trace = _trace(
        p,
        log_likelihood=xr.Dataset({"y": (dims, betabinom.logpmf(right, trials, a, b))}),
        observed_data=xr.Dataset({"y": ("question", right)}),
    )
    for without in ([], ["log_likelihood"]):
        some = trace.drop_nodes(without)
        mine = bk.from_draws(some, (right, np.full(30, trials)), "pass@1", rng=1)
        assert any("p varies in few directions" in note for note in mine.notes) != drawn
    mine = bk.from_draws(trace, (right, np.full(30, trials)), "pass@1", rng=1)
    assert "log_likelihood" in mine.children


def test_fewer_draws_than_questions_are_judged_too() -> None:
    rng, dims = np.random.default_rng(6), ("chain", "draw", "question")
    right = rng.integers(0, 5, 60)
    p = rng.beta(1 + right, 5 - right, (1, 20, 60))
    trace = _trace(
        p,
        log_likelihood=xr.Dataset({"y": (dims, binom.logpmf(right, 4, p))}),
        observed_data=xr.Dataset({"y": ("question", right)}),
    )
    mine = bk.from_draws(trace, (right, np.full(60, 4)), "pass@1", rng=1)
    assert "log_likelihood" not in mine.children


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (None, None),
        ("systems", "a: counts are improbable .* 0.250 .* where p expects 0.6"),
        ("questions", "a, b: p is unrelated to the counts"),
        ("questions of b", "b: p is unrelated to the counts"),
        ("no counts", "a, b: p is unrelated to the counts"),
    ],
)
def test_counts_that_p_makes_improbable_are_noted(change, finding) -> None:
    """Of 4 trials of 40 questions a solves 1 on average, and b 3."""
    rng = np.random.default_rng(8)
    right = np.stack([[0, 2] * 20, [4, 2] * 20])
    p = rng.beta(1 + right, 5 - right, (4, 250, 2, 40))
    moved = np.roll(p, 1, axis=3)
    p = {
        "systems": p[:, :, ::-1],
        "questions": moved,
        "questions of b": np.stack([p[:, :, 0], moved[:, :, 1]], axis=2),
        "no counts": np.stack([rng.beta(*ab, (4, 250, 40)) for ab in ((1, 3), (3, 1))], axis=2),
    }.get(change, p)
    data = bk.tally(dict(zip("ab", right, strict=True)), trials=4)
    fit = bk.from_draws(_trace(p, ("chain", "draw", "system", "question")), data, "pass@1", rng=1)
    found = [note for note in fit.notes if "that systems and questions of the trace" in note]
    assert bool(found) == (finding is not None)
    if finding:
        assert re.match(finding, found[0])
        of_a = found[0].split(": ", 1)[1] in bk.claim(fit, "pass@1", system="a")
        assert of_a == finding.startswith("a")


def test_questions_that_a_system_lacks_count_alike_for_both_targets() -> None:
    """a solves 1/2 of the 20 questions of both and all of the 10 that b lacks; there p of b is 0.

    The mean of b is 1/2 20/30 = 1/3 on these questions and, drawn anew, on questions like these.
    As of an evaluation no order is declared, because a scored otherwise on what b lacks.
    """
    right = np.array([[0, 4] * 10 + [4] * 10, [0, 4] * 10 + [0] * 10])
    trials = np.array([[4] * 30, [4] * 20 + [0] * 10])
    data = bk.tally((right, trials), systems=["a", "b"], missing="ignore")
    p = np.tile(right / 4, (2, 500, 1, 1))
    compared = bk.compare(
        bk.from_draws(_trace(p, ("chain", "draw", "system", "question")), data, "pass@1", rng=1)
    )
    rows = bk.table(compared, "results").set_index(["system", "target"])
    assert rows.loc[("b", "questions"), "mean"] == pytest.approx(1 / 3)
    assert rows.loc[("b", "population"), "mean"] == pytest.approx(1 / 3, abs=0.01)
    assert rows["estimate"].unstack()["questions"].tolist() == pytest.approx([2 / 3, 1 / 2])
    assert not bk.table(compared)["verdict"].eq("ahead").any()
    evaluated = bk.table(bk.compare(bk.evaluate(data, "pass@1", rng=1)))
    assert not evaluated["verdict"].eq("ahead").any()
    sentence = bk.claim(compared)
    assert "a 30, b 20. Those that a system lacks have the p that your model gives" in sentence
    shared = bk.from_draws(
        _trace(
            p,
            ("chain", "draw", "system", "question"),
            {"question": data.dataset["question"].values.astype(str)},
        ),
        data.shared(),
        "pass@1",
        rng=1,
    )
    assert bk.table(shared)["mean"].round(2).tolist() == pytest.approx([0.5] * 4, abs=0.01)


def test_swapped_systems_are_noted_where_the_counts_of_each_are_possible() -> None:
    """20 questions of 4 trials: the p-value of each system by itself is above a thousandth.

    a solved 29 of 80 and b 44. Swapped, 15 more of the right trials are b's with the p of a, which
    loses 15 (logit 44/80 - logit 29/80) = 11 nats.
    """
    right = np.stack([[1, 2] * 9 + [1, 1], [2, 2] * 9 + [4, 4]])
    solved = right.sum(axis=1)[:, None]
    p = np.random.default_rng(8).beta(10 * solved, 800 - 10 * solved, (4, 250, 2, 20))
    data = bk.tally(dict(zip("ab", right, strict=True)), trials=4)
    for order, noted in (([0, 1], False), ([1, 0], True)):
        trace = _trace(p[:, :, order], ("chain", "draw", "system", "question"))
        notes = bk.from_draws(trace, data, "pass@1", rng=1).notes
        assert not any("improbable" in note for note in notes)
        found = [note for note in notes if "less probable" in note]
        assert bool(found) == noted
        if noted:
            assert re.match(
                r"a, b: their counts are .* than if their p were those of b, a", found[0]
            )


def test_questions_are_tabulated_from_the_draws() -> None:
    """Of 4 trials and a uniform prior p is Beta(1 + c, 5 - c); both systems are independent."""
    right = np.stack([[0, 1, 4], [2, 3, 3]])
    p = np.random.default_rng(2).beta(1 + right, 5 - right, (4, 2500, 2, 3))
    data = bk.tally(dict(zip("ab", right, strict=True)), trials=4)
    fit = bk.from_draws(_trace(p, ("chain", "draw", "system", "question")), data, "pass@1", rng=1)
    rows = bk.checks.question_table(fit)
    law = beta(1 + right.ravel(), 5 - right.ravel())
    np.testing.assert_allclose(rows["mean"], law.mean(), atol=0.01)
    for column, end in (("ci_lower", 0.025), ("ci_upper", 0.975)):
        np.testing.assert_allclose(rows[column], law.ppf(end), atol=0.02)
    near_an_end = law.cdf(0.05) + law.sf(0.95)
    np.testing.assert_allclose(rows["prob_saturated"], near_an_end, atol=0.02)
    assert rows["influence"].isna().all()
    # a is weaker: it solves at most as many of 4 new trials as b did.
    weaker = bk.checks.question_table(fit, system="b")["prob_weaker"]
    as_few = betabinom(4, 1 + right[0], 5 - right[0]).cdf(right[1])
    np.testing.assert_allclose(weaker, as_few, atol=0.02)
    pair = bk.checks.question_table(fit, system="b", other="a").set_index("question")
    mean, variance = law.mean().reshape(2, 3), law.var().reshape(2, 3)
    np.testing.assert_allclose(pair["difference"].sort_index(), mean[1] - mean[0], atol=0.02)
    np.testing.assert_allclose(pair["sd"].sort_index() ** 2, variance.sum(axis=0), atol=0.003)
    assert pair["part"].sum() == pytest.approx((mean[1] - mean[0]).mean(), abs=0.01)


def test_draws_in_single_precision_are_those_in_double() -> None:
    """Samplers on a GPU return them; close to one the logit of a p is not finite there."""
    p = np.random.default_rng(4).beta(8, 0.1, (2, 50, 12)).astype(np.float32)
    assert (p == 1.0).any()
    single, double = (
        bk.from_draws(_trace(draws), [[1, 1]] * 12, "pass@2", rng=1)["posterior"].to_dataset()
        for draws in (p, p.astype(float))
    )
    xr.testing.assert_equal(single, double)


def test_a_log_likelihood_of_some_of_the_draws_stays() -> None:
    right, dims = np.array([0, 1, 2, 3, 4]), ("chain", "draw", "question")
    p = np.random.default_rng(1).beta(2.0, 2.0, (4, 100, 5))
    logs = binom.logpmf(right, 4, p[:2])
    trace = _trace(
        p,
        log_likelihood=xr.Dataset({"y": (dims, logs)}),
        observed_data=xr.Dataset({"y": ("question", right)}),
    )
    mine = bk.from_draws(trace, (right, np.full(5, 4)), "pass@1", rng=1)
    assert mine["log_likelihood"]["successes"].shape == (2, 100, 1, 5)


def _trace(p, dims=("chain", "draw", "question"), coords=None, **groups) -> xr.DataTree:
    posterior = xr.Dataset({"p": (dims, p)}, coords or {})
    return xr.DataTree.from_dict({"posterior": posterior, **groups})


def test_questions_are_matched_by_label_and_weighted() -> None:
    data = bk.tally(
        pd.DataFrame({"question": list("abc") * 2, "outcome": [1, 0, 1, 1, 1, 0]}),
        weight={"a": 1.0, "b": 2.0, "c": 5.0},
    )
    p = np.full((2, 10, 3), [0.1, 0.5, 0.9])
    trace = _trace(p, coords={"question": ["c", "b", "a"]})
    rows = bk.table(bk.from_draws(trace, data, "pass@1", rng=1)).set_index("target")
    assert rows.loc["questions", "mean"] == pytest.approx((0.9 + 2 * 0.5 + 5 * 0.1) / 8)
    unlabelled = bk.table(bk.from_draws(_trace(p), data, "pass@1", rng=1)).set_index("target")
    assert unlabelled.loc["questions", "mean"] == pytest.approx((0.1 + 2 * 0.5 + 5 * 0.9) / 8)
    part = bk.table(bk.from_draws(trace, data.sel(question=["a", "c"]), "pass@1", rng=1))
    assert part["mean"][0] == pytest.approx((0.9 + 5 * 0.1) / 6)


def test_weights_and_groups_of_the_data_are_used_or_noted() -> None:
    """The Bayesian bootstrap with weights w, s = w over their sum, has the mean sum of s p less the
    bias of a ratio, sum of s^2 (p - mean), and the variance sum of s^2 (p - mean)^2."""
    known = np.concatenate([np.full(30, 0.9), np.full(30, 0.1)])
    names = [f"q{number}" for number in range(60)]
    data = bk.tally(
        pd.DataFrame({"question": names * 2, "outcome": [1, 0] * 60}),
        weight=dict(zip(names, [3.0] * 30 + [1.0] * 30, strict=True)),
        group=dict(zip(names, ["easy", "hard"] * 30, strict=True)),
    )
    p = np.broadcast_to(known, (4, 1000, 60))
    new = xr.Dataset({"p_new": (("chain", "draw", "new"), np.full((4, 1000, 200), 0.3))})
    trace = _trace(p, coords={"question": names}, predictions=new)
    fit = bk.from_draws(trace, data, "pass@1", rng=1)
    rows = bk.table(fit).set_index("target")
    share = np.repeat([3.0, 1.0], 30) / 120
    sd = np.sqrt((share**2 * (known - 0.7) ** 2).sum())
    mean = 0.7 - share**2 @ (known - 0.7)
    assert rows.loc["population", "mean"] == pytest.approx(mean, abs=4 * sd / 4000**0.5)
    assert rows.loc["population", "sd"] == pytest.approx(sd, rel=0.05)
    assert "new questions (p_new) are not used, because they have no weights" in fit.notes[0]
    assert "groups of the data are not used" in fit.notes[1]
    assert "data.sel(group='easy')" in fit.notes[1]
    one = bk.table(bk.from_draws(trace, data.sel(group="easy"), "pass@1", rng=1))
    assert one["mean"][0] == pytest.approx((15 * 3 * 0.9 + 15 * 0.1) / 60)


def test_scored_categories_have_a_vector_for_each_question() -> None:
    data = bk.tally([["b", "a"], ["c", "a"]], scores={"c": 0.0, "b": 0.5, "a": 1.0})
    names = data.dataset["category"].values.tolist()
    vector = {"a": 0.2, "b": 0.3, "c": 0.5}
    p = np.broadcast_to([vector[name] for name in names], (2, 10, 2, 3))
    fit = bk.from_draws(_trace(p, ("chain", "draw", "item", "level")), data, "bayes max@2", rng=1)
    rows = bk.table(fit).query("target == 'questions'").set_index("metric")
    assert rows.loc["bayes", "mean"] == pytest.approx(0.2 + 0.15)
    assert rows.loc["max@2", "mean"] == pytest.approx(1 - 0.8**2 + 0.5 * (0.8**2 - 0.5**2))
    reached = bk.table(fit, "categories").query("target == 'questions'").set_index("category")
    assert reached.loc["b", "mean"] == pytest.approx(0.5)


def test_few_new_questions_are_noted() -> None:
    rng = np.random.default_rng(1)
    mean = rng.beta(20, 20, (4, 500, 1))
    p_new = np.where(rng.random((4, 500, 12)) < mean, 0.999, 0.001)
    new = xr.Dataset({"p_new": (("chain", "draw", "new"), p_new)})
    fit = bk.from_draws(_trace(np.repeat(mean, 3, 2), predictions=new), [[1, 0]] * 3, "pass@1")
    note = fit.notes[0]
    assert note.startswith("12 new questions a draw are few: ")
    share = 1 - mean.std() / np.hypot(mean.std(), 0.5 / np.sqrt(12))
    assert float(note.split(": ")[1].split("%")[0]) == pytest.approx(100 * share, abs=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": "q"}, r"p must name a variable of the posterior, \['p'\]; got 'q'"),
        ({"new": "later"}, "new must name a variable of .*; got 'later'"),
        ({"metrics": "plurality@3"}, "metrics must judge trials"),
        ({"ci_prob": 1.0}, "ci_prob must lie strictly between"),
        ({"system": "c"}, "system must be among the labels"),
        ({"system": None}, "p must have the dimensions .*name it: system='...'"),
        ({"data": {"a": [[1, 0]] * 4}}, "p must have the 4 labels of the data along 'question'"),
        ({"data": [[0, 0], [1, 1], [1, 1]], "system": None}, "differs from the data in 2 of 3"),
        ({"trace": xr.Dataset()}, "trace must be a DataTree with the group 'posterior'"),
        ({"trace": _trace(np.full((2, 5, 3), 1.5))}, r"between 1.5 and 1.5.*sigmoid"),
        ({"trace": _trace(np.stack([np.full((5, 3), 0.5), np.full((5, 3), np.nan)]))},
         r"is NaN in 5 of 10 draws, of the chains at \[1\]"),
        ({"trace": _trace(np.zeros((2, 0, 3)))}, "must have draws along the dimensions chain"),
        ({"trace": _trace(np.full((9, 3), 0.5), ("sample", "question"))}, "before az.extract"),
        ({"metrics": "pass@1 cost"}, "metrics must judge trials, .*; got cost. Votes and costs"),
        ({"trace": _trace(np.full((2, 5, 3, 3), 0.5), ("chain", "draw", "a", "b"))},
         "p must have the 1 labels of the data along 'a'"),
        ({"trace": _trace(np.full((2, 5, 3), 0.5), coords={"question": ["x", "y", "z"]})},
         r"labels of the data along 'question', or none; got 3: \['x'"),
        ({"trace": _trace(
            np.full((2, 5, 3), 0.5),
            predictions=xr.Dataset({"p_new": (("chain", "draw", "n"), np.full((2, 4, 9), 0.5))}),
        )}, "new must have the chains and draws of p"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change, message) -> None:
    observed = xr.Dataset({"y": ("question", [1, 2, 0])})
    marks = [[1, 0], [1, 1], [0, 0]]
    given = {
        "trace": _trace(np.full((2, 5, 3), 0.5), observed_data=observed),
        "data": {"a": marks, "b": marks},
        "metrics": "pass@1",
        "system": "a",
        **change,
    }
    with pytest.raises(ValueError, match=message):
        bk.from_draws(given.pop("trace"), given.pop("data"), given.pop("metrics"), **given)


@pytest.mark.parametrize("dim", ["p_dim_0", "question"])
def test_numbers_that_arviz_gives_are_labels_only_where_the_dimension_is_named(dim) -> None:
    """ArviZ numbers every dimension without coordinates; the ids of these questions are numbers."""
    ids, p = ["2", "0", "1"], np.tile([0.9, 0.1, 0.5], (2, 10, 1))
    data = bk.tally(pd.DataFrame({"question": ids * 2, "outcome": [1, 0, 1, 1, 0, 0]}))
    trace = _trace(p, ("chain", "draw", dim), {dim: [0, 1, 2]})
    fit = bk.from_draws(trace, data, "pass@1", rng=1)
    mean = fit["posterior"]["p"].mean(("chain", "draw")).sel(system=fit["posterior"]["system"][0])
    found = dict(zip(mean["question"].values.tolist(), mean.values.tolist(), strict=True))
    numbers = ids if dim == "p_dim_0" else ["0", "1", "2"]
    expected = dict(zip(numbers, [0.9, 0.1, 0.5], strict=True))
    assert found == pytest.approx(expected)
    assert any("matched by these numbers" in note for note in fit.notes) == (dim == "question")


_RIGHT = np.random.default_rng(3).binomial(4, [[0.3] * 20, [0.8] * 20])
_P = np.random.default_rng(4).beta(1 + _RIGHT, 5 - _RIGHT, (2, 250, 2, 20))
_NEW = np.random.default_rng(5).beta(
    *(0.7 * (_RIGHT.mean(axis=1) * np.array([[1], [-1]]) + np.array([[1], [5]])))[..., None],
    (2, 250, 2, 300),
)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({}, None),
        ({"new": _NEW[:, :, ::-1]}, "a: p_new has the mean 0"),
        ({"new": np.repeat(_NEW.mean(-1, keepdims=True), 300, -1)}, "is one number a draw"),
        ({"new": np.round(_NEW)}, "is made of outcomes, shares of 4 trials"),
        ({"new": np.round(4 * _NEW) / 4}, "is made of outcomes, shares of 4 trials"),
        ({"new": _P}, "p_new is p itself"),
        ({"p": np.round(4 * _P) / 4}, "p are shares of right trials, replicated counts"),
        ({"p": _P[:1], "new": _NEW[:1]}, "One chain has no R-hat"),
    ],
)
def test_what_is_no_probability_of_new_questions_is_noted(change, finding) -> None:
    p, new = change.get("p", _P), change.get("new", _NEW)
    dims = ("chain", "draw", "system", "question")
    trace = _trace(p, dims, predictions=xr.Dataset({"p_new": ((*dims[:3], "new"), new)}))
    data = bk.tally(dict(zip("ab", _RIGHT, strict=True)), trials=4)
    notes = bk.from_draws(trace, data, "pass@1", rng=1).notes
    words = "p_new (is|has)|p are shares|One chain"
    found = [note for note in notes if re.search(words, note) and "no new questions" not in note]
    if finding is None:
        assert not found
    else:
        assert any(finding in note for note in notes)


def test_new_questions_that_are_the_same_in_all_draws_are_refused_unless_p_is_known() -> None:
    new = xr.Dataset({"p_new": (("chain", "draw", "new"), np.tile([0.2, 0.8], (2, 250, 1)))})
    with pytest.raises(ValueError, match="p_new' is the same in all draws"):
        bk.from_draws(_trace(_P[:, :, 0], predictions=new), _RIGHT[0][:, None] > 1, "pass@1")
    known = np.tile([0.3, 0.5], (2, 250, 1))
    fit = bk.from_draws(_trace(known, predictions=new), [[0, 1], [1, 0]], "pass@1", rng=1)
    rows = bk.table(fit)
    assert rows["mean"].tolist() == pytest.approx([0.4, 0.5])
    assert rows["sd"].tolist() == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("convention", ["counts", "marks", "marks, covariates"])
def test_a_log_likelihood_without_binomial_coefficients_is_left_out(convention) -> None:
    """Of a Beta(1, 1) each count of n trials has the probability 1 / (n + 1)."""
    right, trials = np.repeat([0, 1, 2, 3, 0, 1, 2], 4), np.repeat([3, 2], [16, 12])
    rng = np.random.default_rng(1)
    p = rng.beta(1 + right, 1 + trials - right, (4, 250, 28))
    trace = _trace(p, ("chain", "draw", "question"))
    logs = np.log(beta_integral(1 + right, 1 + trials - right))
    if convention == "counts":
        logs = np.log(1 / (trials + 1.0))
    elif convention == "marks, covariates":  # of unequal questions it cannot be told
        logs = logs + 0.1 * np.arange(28)
    trace["log_likelihood"] = xr.Dataset(
        {"y": (("chain", "draw", "question"), np.broadcast_to(logs, p.shape))}
    )
    trace["observed_data"] = xr.Dataset({"y": ("question", right)})
    fit = bk.from_draws(trace, (right, trials), "pass@1", rng=1)
    left_out = any("without the binomial coefficient" in note for note in fit.notes)
    assert left_out == (convention == "marks")
    assert ("log_likelihood" in fit.children) != left_out


@pytest.mark.parametrize(
    ("dims", "words"),
    [(("question",), "observed_data does not have"), (("question", "trial"), "of single trials")],
)
def test_why_a_log_likelihood_is_left_out_is_said(dims, words) -> None:
    logs = np.full((2, 250, 20, 4)[: 2 + len(dims)], -1.0)
    group = xr.Dataset({"y": (("chain", "draw", *dims), logs)})
    trace = _trace(_P[:, :, 0], log_likelihood=group)
    fit = bk.from_draws(trace, (_RIGHT[0], np.full(20, 4)), "pass@1", rng=1)
    (note,) = [note for note in fit.notes if "log likelihood" in note]
    assert words in note
