"""`verify` must accept what is right, within its stated error, and catch what is wrong."""

import re

import numpy as np
import pytest
import xarray as xr
from benchmarks import verification as faults
from scipy.stats import binom, norm

import bayesatk as bk
from bayesatk.core.question.beta_binomial import beta_binomial_moments
from bayesatk.metrics.grid import parse
from bayesatk.results.views import ShownTable
from bayesatk.verification.deviations import deviation_of_share
from bayesatk.verification.quantities import LEVELS

METRICS = "pass@4 pass^4 maj@4"


@pytest.fixture(scope="module")
def data() -> bk.Outcomes:
    rng = np.random.default_rng(0)
    return bk.tally(rng.binomial(6, rng.beta(1.2, 0.8, 40)), trials=6)


@pytest.fixture(scope="module")
def exact(data):
    return bk.evaluate(data, METRICS, pooling="none", rng=1)


@pytest.fixture(scope="module")
def sampled(data):
    """An independent sampler: conjugate draws of p by hand, metrics by simulated trials' law."""
    rng = np.random.default_rng(2)
    c, n = data.successes.values[0], data.trials.values[0]
    p = rng.beta(1.0 + c, 1.0 + n - c, (4, 1000, 40))
    tree = xr.DataTree.from_dict(
        {"/posterior": xr.Dataset({"p": (("chain", "draw", "question"), p)})}
    )
    return bk.from_draws(tree, data, METRICS, rng=3)


def test_correct_formulas_agree(exact, sampled) -> None:
    found = bk.verify(exact, sampled)
    assert found.verdict == "agree", found.table
    assert found.table["target"].value_counts().to_dict() == {
        "questions": 3,
        "population": 3,
        "observed": 3,
    }
    assert found.summary().startswith("AGREE: 9 quantities (9 agree, 0 disagree, 0 inconclusive)")
    assert str(found) == found.summary()
    worst = found.table.loc[found.table["z_mean"].abs().idxmax()]
    gap = abs(worst["sampled_mean"] - worst["exact_mean"]) / worst["exact_sd"]
    assert (
        f"largest difference of means {gap:.2g} sd, {abs(worst['z_mean']):.1f} Monte Carlo"
        in str(found)
    )
    assert found.table["detectable"].max() < 0.15


def test_differences_are_in_standard_errors_of_independent_draws(exact, sampled) -> None:
    found = bk.verify(exact, sampled).table.query("target != 'observed'")
    gap, size = found["sampled_mean"] - found["exact_mean"], np.sqrt(found["ess"])
    np.testing.assert_allclose(found["z_mean"], gap / (found["sampled_sd"] / size), rtol=0.05)
    assert found["z_mean"].abs().max() > 0.1


@pytest.mark.parametrize(("errors", "verdict"), [(2.0, "agree"), (6.0, "disagree")])
def test_a_bias_is_caught_when_it_is_many_errors(exact, sampled, errors, verdict) -> None:
    """Of six quantities with nine tests each, at 1% in all: the line is 3.7 errors."""
    draws = sampled["posterior"]["pass_at_k"].sel(target="questions").values
    biased = draws.mean() + errors * draws.std() / np.sqrt(draws.size)
    found = bk.verify(_planted(exact, "pass_at_k", mean=biased), sampled)
    row = found.table.query("variable == 'pass_at_k' and target == 'questions'").iloc[0]
    assert row["z_mean"] == pytest.approx(-errors, rel=0.1)
    assert found.verdict == verdict


def _planted(exact, variable: str, **changes):
    """Copy the result with other statistics for the questions target of one variable."""
    tree = exact.copy(deep=True)
    closed = tree["closed_form"].to_dataset()
    for statistic, value in changes.items():
        closed[variable].loc[{"statistic": statistic, "target": "questions"}] = value
    tree["closed_form"] = closed
    return tree


def _moments(data, metric: str, alpha: float = 1.0, beta: float = 1.0):
    c, n = data.successes.values[0], data.trials.values[0]
    mean, _, variance = beta_binomial_moments([parse(metric)[0].credit], c + alpha, n - c + beta)
    return mean.mean(), np.sqrt(variance.sum()) / len(c)


def _off_by_one_threshold(data):
    return "maj_at_k", dict(zip(("mean", "sd"), _moments(data, "g-pass@4:0.5"), strict=True))


def _biased_variance(data):
    mean, sd = _moments(data, "pass@4")
    return "pass_at_k", {"mean": mean, "sd": sd * np.sqrt(6 / 5)}


def _prior_dropped(data):
    return "pass_at_k", dict(zip(("mean", "sd"), _moments(data, "pass@4", 1e-9, 1e-9), strict=True))


def _trials_and_k_swapped(data):
    return "pass_hat_k", dict(zip(("mean", "sd"), _moments(data, "pass^6"), strict=True))


def _finite_law_for_posterior(data):
    estimate = bk.evaluate(data, "pass@4", pooling="none", rng=1)["closed_form"]["pass_at_k"]
    return "pass_at_k", {"mean": estimate.sel(statistic="estimate").values.ravel()[0]}


def _failures_for_successes(data):
    return "pass_at_k", {"mean": 1.0 - _moments(data, "pass^4")[0]}


@pytest.mark.parametrize(
    "bug",
    [
        _off_by_one_threshold,
        _biased_variance,
        _prior_dropped,
        _trials_and_k_swapped,
        _finite_law_for_posterior,
        _failures_for_successes,
    ],
)
def test_planted_bugs_are_caught(data, exact, sampled, bug) -> None:
    variable, changes = bug(data)
    found = bk.verify(_planted(exact, variable, **changes), sampled)
    assert found.verdict == "disagree"
    wrong = found.table[found.table["verdict"] == "disagree"]
    assert set(wrong["variable"]) == {variable}
    assert set(wrong["target"]) == {"questions"}


def test_a_wrong_shape_with_right_moments_is_caught(exact, sampled) -> None:
    tree = exact.copy(deep=True)
    levels = tree["closed_form_quantiles"].to_dataset()
    closed = tree["closed_form"].to_dataset()["pass_hat_k"].sel(target="questions")
    mean, sd = (closed.sel(statistic=word).item() for word in ("mean", "sd"))
    # A uniform distribution with the same mean and sd.
    wrong = mean + np.sqrt(12) * sd * (levels["quantile"].values - 0.5)
    levels["pass_hat_k"].loc[{"target": "questions"}] = wrong
    tree["closed_form_quantiles"] = levels
    found = bk.verify(tree, sampled)
    row = found.table.query("variable == 'pass_hat_k' and target == 'questions'").iloc[0]
    assert row["verdict"] == "disagree"
    assert abs(row["z_mean"]) < 4
    assert abs(row["z_pit"]) > 5


def test_chains_that_have_not_mixed_are_inconclusive(exact, sampled) -> None:
    stuck = sampled.copy(deep=True)
    posterior = stuck["posterior"].to_dataset()
    stuck["posterior"] = posterior + 0.05 * posterior["chain"]
    found = bk.verify(exact, stuck)
    assert found.verdict == "inconclusive"
    assert found.table["rhat"].min() > 1.01


def test_draws_that_are_nan_are_said(exact, sampled) -> None:
    failed = sampled.copy(deep=True)
    posterior = failed["posterior"].to_dataset()
    failed["posterior"] = posterior.assign(
        pass_at_k=posterior["pass_at_k"].where(posterior["chain"] > 0)
    )
    result = bk.verify(exact, failed)
    assert result.verdict == "inconclusive"
    assert re.search(r"Some draws are NaN \(of \d+ quantities, first of pass@", str(result))
    assert "NaN" not in str(bk.verify(exact, sampled))


@pytest.mark.long
def test_false_alarms_stay_within_the_stated_rate(data, exact) -> None:
    """200 independent replications of a correct sampler; at most 5% of families may err."""
    c, n = data.successes.values[0], data.trials.values[0]
    grid = parse(METRICS)
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(1000 + seed)
        p = rng.beta(1.0 + c, 1.0 + n - c, (4, 500, 40))
        values = {
            metric.family.variable: (
                ("chain", "draw", "system", "k", "target"),
                metric.latent(p).mean(-1)[:, :, None, None, None],
            )
            for metric in grid
        }
        coords = {"system": ["system"], "k": [4], "target": ["questions"]}
        tree = xr.DataTree.from_dict({"/posterior": xr.Dataset(values, coords=coords)})
        questions = exact.copy()
        for name in ("closed_form", "closed_form_quantiles"):
            questions[name] = exact[name].to_dataset().sel(target=["questions"])
        wrong += bk.verify(questions, tree, alpha=0.05).verdict == "disagree"
    # The stated rate is an upper bound of 5%: more than 20 of 200 has probability 0.002 at 5%.
    assert wrong <= 20


def test_rows_of_a_system_and_of_a_difference_say_of_what_they_are() -> None:
    both = bk.tally({"a": [[1, 0, 1], [0, 0, 1]] * 5, "b": [[1, 1, 1], [0, 1, 0]] * 5})
    fit = bk.evaluate(both, "pass@1", difficulty="beta", rng=1)
    printed = str(
        ShownTable.of(bk.verify(fit, fit.drop_nodes("closed_form")).table, "verification")
    )
    assert "nan" not in printed
    rows = [line.split()[:3] for line in printed.splitlines()[2:]]
    assert ["pass@1", "a", "these"] in rows
    assert ["pass@1", "b", "-"] in rows
    assert ["pass@1", "a", "observed"] in rows


def test_what_is_not_tested_is_blank_and_said(right) -> None:
    """A model of one's own has no order of the questions: there the spread is not tested."""
    exact, sampled = right
    tested = bk.verify(exact, sampled)
    assert "of differences is tested (4) by correlations, which both results" in str(tested)
    own = bk.from_draws(
        xr.DataTree.from_dict({"posterior": sampled["posterior"].to_dataset()[["p"]]}),
        faults.data_of(3),
        faults.METRICS,
        rng=3,
    )
    found = bk.verify(exact, own)
    assert "the spread of differences is not tested (4)" in str(found)
    of_pairs = found.table.query("target == 'population' and other == 'a'")
    assert of_pairs[["z_sd", "z_pit", "z_ends", "detectable_sd"]].isna().all(axis=None)
    observed = found.table.query("target == 'observed'")
    assert observed.filter(like="z_").isna().all(axis=None)


def test_every_pair_of_systems_is_compared() -> None:
    rng = np.random.default_rng(1)
    p = rng.beta(1.0, 1.0, 30)
    data = bk.tally({name: rng.binomial(1, p[:, None], (30, 4)) for name in "abc"})
    fit = bk.evaluate(data, "pass@2", rng=1, difficulty="beta")
    drawn = fit.drop_nodes(["closed_form", "joint_posterior"])
    right = bk.verify(fit, drawn)
    pairs = right.table.dropna(subset="other")
    assert {*zip(pairs["system"], pairs["other"], strict=True)} == {*map(tuple, ("ba", "ca", "cb"))}
    assert right.verdict == "agree"
    joint = fit["joint_posterior"]["pass_at_k"].sel(target="population", k=2)
    last = pairs.query("target == 'population' and system == 'c' and other == 'b' and k == 2")
    gap = joint.sel(system="c") - joint.sel(system="b")
    assert last["exact_sd"].item() == pytest.approx(float(gap.std()), rel=1e-9)
    assert last["sampled_sd"].item() == pytest.approx(float(gap.std()), rel=0.1)


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ({"pooling": "none"}, {}), ({"pooling": "complete"}, {}),
        ({"difficulty": "beta", "ci_kind": "hdi"}, {}),
        ({"difficulty": "beta"}, {"weight": np.arange(1.0, 31.0)}),
        ({"difficulty": "beta"}, {"group": ["x", "y", "z"] * 10}),
    ],
)  # fmt: skip
def test_right_results_agree_with_their_own_draws_in_a_new_order(options, read) -> None:
    rng = np.random.default_rng(2)
    p, trials = rng.beta(1.0, 1.0, 30), np.where(np.arange(30) % 3, 4, 1)
    data = bk.tally(
        {name: [rng.binomial(1, x, n) for x, n in zip(p, trials, strict=True)] for name in "ab"},
        **read,
    )
    fit = bk.evaluate(data, "pass@1,4 auc@2", rng=1, **options)
    found = bk.verify(fit, fit.drop_nodes(["closed_form", "joint_posterior"]))
    assert found.verdict == "agree", str(found)
    observed = found.table.query("target == 'observed' and variable == 'pass_at_k' and k == 1")
    share = read.get("weight", np.ones(30))
    rates = data.successes.values / trials
    np.testing.assert_allclose(observed["sampled_mean"], np.average(rates, 1, share), rtol=1e-9)


def test_systems_that_tried_different_questions_agree_but_for_their_untested_spread() -> None:
    """Their errors about what they did not try are opposite, and sampled systems independent."""
    rng = np.random.default_rng(1)
    trials = np.full((2, 60), 8)
    trials[0, 35:], trials[1, :25] = 0, 0
    data = bk.tally((rng.binomial(trials, rng.beta(1, 1, 60)), trials), missing="ignore")
    fit, other = (bk.evaluate(data, "pass@1", difficulty="beta", rng=seed) for seed in (1, 2))
    found = bk.verify(fit, other.drop_nodes("closed_form"))
    assert found.verdict == "agree"
    pairs = found.table[found.table["other"].notna()].set_index("target")
    assert pairs["z_sd"].isna().to_dict() == {"questions": True, "population": False}
    assert "the spread of differences is not tested (1)" in found.summary()


def test_an_observed_value_that_is_off_is_said(exact, sampled) -> None:
    found = bk.verify(_planted(exact, "pass_at_k", estimate=0.25), sampled)
    wrong = found.table[found.table["verdict"] == "disagree"]
    assert wrong["target"].tolist() == ["observed"]
    right = exact["closed_form"]["pass_at_k"].sel(statistic="estimate", target="questions").item()
    assert f"pass@4, system, observed must be {right:.4g} and is 0.25" in str(found)


def test_metrics_that_the_sampled_result_lacks_are_named(data, sampled) -> None:
    fit = bk.evaluate(data, "pass@2,4 auc@2", pooling="none", rng=1)
    found = bk.verify(fit, sampled)
    assert found.verdict == "agree"
    assert {*found.table.query("target != 'observed'")["k"]} == {4}
    assert "because the sampled result lacks them: pass@2, auc@2." in str(found)


def test_observed_values_are_counted_with_weights_of_questions_and_groups() -> None:
    data = bk.tally(
        [[1, 0, 1], [0, 0, 1], [1, 1, 1], [1, 1], [0, 1, 0]] * 4,
        weight=[1.0, 2.0, 3.0, 4.0, 5.0] * 4,
        group=["a", "b", "b", "c", "c"] * 4,
    )
    for weights in (None, "equal", {"a": 0.5, "b": 0.2, "c": 0.3}):
        fit = bk.evaluate(data, "pass@1,2,3", group_weights=weights, draws=1000, rng=1)
        table = bk.verify(fit, fit.drop_nodes("closed_form")).table
        observed = table[table["target"] == "observed"]
        assert observed["verdict"].tolist() == ["agree"] * 3


def test_known_constants_must_match() -> None:
    fit = bk.evaluate([[1, 0], [1, 1]], "mg-pass@1", difficulty="beta", rng=1)
    moved = fit.copy(deep=True).drop_nodes("closed_form")
    assert bk.verify(fit, moved).table["verdict"].tolist() == ["agree"] * 5
    posterior = moved["posterior"].to_dataset()
    moved["posterior"] = posterior.assign(mg_pass_at_k=posterior["mg_pass_at_k"] + 1e-6)
    assert bk.verify(fit, moved).verdict == "disagree"


def test_what_is_no_result_is_refused_in_a_line(exact) -> None:
    with pytest.raises(ValueError, match=r"^sampled must be draws .* got Outcomes\. Pass bayesatk"):
        bk.verify(exact, bk.tally([[1, 0]]))


def test_different_questions_are_refused(exact) -> None:
    fit = bk.evaluate([[1, 0]], METRICS, pooling="none", rng=1)
    other = fit.drop_nodes("closed_form")
    with pytest.raises(ValueError, match="same data"):
        bk.verify(exact, other)
    pooled = bk.evaluate([[1, 0]], METRICS, rng=1).drop_nodes("closed_form")
    with pytest.raises(ValueError, match="same pooling; got 'none' and 'partial'"):
        bk.verify(exact, pooled)
    informed = bk.evaluate([[1, 0]], METRICS, pooling="none", prior=bk.priors.BetaPrior(2, 2))
    with pytest.raises(ValueError, match="same prior"):
        bk.verify(informed, other)
    covered = bk.tally([[1, 0]] * 9, covariates={"x": list(range(9))}, weight=[*range(1, 10)])
    earlier = {"prior_trials": [[1]] * 9, "prior_weight": 0.5}
    for options, said in (
        ({"covariates": ["x"]}, "same covariates"),
        ({"population": "law"}, "same population"),
        (earlier, "their prior_count differ"),
    ):
        plain, changed = (
            bk.evaluate(covered, "pass@1", difficulty="beta", draws=9, **more)
            for more in ({}, options)
        )
        with pytest.raises(ValueError, match=said):
            bk.verify(plain, changed.drop_nodes("closed_form"))
    with pytest.raises(ValueError, match="share at least one variable"):
        bk.verify(bk.evaluate([[1, 0]], "auc@2", pooling="none", rng=1), other)
    with pytest.raises(ValueError, match="alpha"):
        bk.verify(exact, exact, alpha=2.0)
    with pytest.raises(TypeError, match="made by"):
        bk.verify(42, exact)


def test_a_closed_form_is_no_witness_of_itself(exact) -> None:
    other = bk.evaluate([[1, 0]], METRICS, pooling="none", rng=2)
    for fit in (exact, other):
        with pytest.raises(
            ValueError, match=r"sampled must be draws of a sampler.*bayesatk.sample"
        ):
            bk.verify(exact, fit)


@pytest.fixture(scope="module")
def right() -> tuple[xr.DataTree, xr.DataTree]:
    """An exact result of two systems, with joint draws, and 4 x 4,000 independent draws."""
    data = faults.data_of(3)
    return faults.exact_result(data, 3, pooling="none"), faults.conjugate(data, 3)


def test_the_line_is_that_of_all_tests_of_all_quantities() -> None:
    """Shares of questions are 0 with a probability of their own: levels above it are tested."""
    fit = bk.evaluate([[0, 1, 1, 0], [1, 1, 0, 1], [0, 0, 0, 1]] * 4, "pass@1,2", rng=1)
    found = bk.verify(fit, fit.drop_nodes("closed_form"))
    shares = ["never_solved", "always_solved"]
    levels = fit["closed_form_quantiles"].to_dataset()[shares].sel(quantile=list(LEVELS))
    drawn = found.table[found.table["target"] != "observed"]  # which has no error
    others = ~drawn["variable"].isin(shares)
    points = 7 * others.sum() + int((levels.to_array() > 0.0).sum())
    tests = (2 + 2 + 1) * len(drawn) + 2 * points  # moments, ends, stored mean; levels twice
    assert found.table.attrs["threshold"] == pytest.approx(norm.isf(0.01 / tests / 2), rel=1e-9)


def test_what_people_quote_is_compared(right) -> None:
    exact, sampled = right
    found = bk.verify(exact, sampled)
    assert found.verdict == "agree", found.table
    of_pairs = found.table["other"].notna()
    assert (len(found.table), of_pairs.sum()) == (32, 8)
    assert "Noticed with probability 0.9: means off by " in found.summary()
    of_questions = found.table[~of_pairs & (found.table["target"] == "questions")]
    assert of_questions["detectable"].max() < 0.06
    assert of_questions["detectable_sd"].max() < 0.05
    assert of_questions["detectable_end"].between(0.02, 0.1).all()


@pytest.mark.parametrize("name", faults.FAULTS)
def test_planted_faults_are_caught(right, name) -> None:
    """One seed of `benchmarks.verification`, where each is caught in 20 of 20."""
    exact, sampled = right
    found = bk.verify(faults.FAULTS[name](exact), sampled)
    assert found.verdict == "disagree"
    column = next(
        column
        for word, column in (
            ("end", "z_ends"),
            ("cubed", "z_draws"),
            ("difference", "z_draws"),
            ("sd by", "z_sd"),
            ("targets", "z_sd"),
            ("permuted", "z_sd"),
            ("", "z_mean"),
        )
        if word in name
    )
    wrong = found.table[found.table["verdict"] == "disagree"]
    assert (wrong[column].abs() > found.table.attrs["threshold"]).any()


def test_ends_of_the_shortest_interval_are_tested_by_what_is_inside() -> None:
    data = faults.data_of(4)
    exact = bk.evaluate(data, faults.METRICS, pooling="none", ci_kind="hdi", rng=4)
    sampled = faults.conjugate(data, 4)
    assert bk.verify(exact, sampled).verdict == "agree"
    wrong = faults.FAULTS["lower end by 10% of the width"](exact)
    assert bk.verify(wrong, sampled).verdict == "disagree"


@pytest.mark.parametrize(
    ("level", "count", "size"), [(0.025, 9, 1000), (0.5, 70, 100), (0.9, 3, 8)]
)
def test_shares_are_tested_by_the_binomial(level, count, size) -> None:
    """Against SciPy's exact tails."""
    share = np.array([count / size])
    variance = np.array([level * (1 - level) / size])
    z = deviation_of_share(share, share, np.array([level]), variance)[0]
    below, above = binom.cdf(count, size, level), binom.sf(count - 1, size, level)
    expected = norm.ppf(below) if count / size < level else -norm.ppf(above)
    assert z == pytest.approx(expected, rel=1e-9)
    tied = deviation_of_share(share, np.array([1.0]), np.array([level]), variance)[0]
    assert tied == (0.0 if count / size <= level else z)
