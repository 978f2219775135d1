"""Evaluated systems against random guessers: direct simulation, and laws."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import beta, binom

import bayesatk as bk
from bayesatk.core.engine.distribution import interval
from bayesatk.guessing.max_random import selected_skill
from tests.conftest import FALSE_ALARM

BETA = {"difficulty": "beta", "rng": 1}
SHORT = BETA | {"draws": 800, "tune": 800, "progress": False}


def _data(rng: np.random.Generator) -> bk.Outcomes:
    trials = rng.integers(1, 6, (2, 12))
    p = np.array([[0.35], [0.6]]) + rng.uniform(-0.2, 0.2, (2, 12))
    return bk.tally((rng.binomial(trials, p), trials), systems=["a", "b"])


def _group(fit: xr.DataTree, *args: object, **kwargs: object) -> xr.Dataset:
    return bk.guessing.random_baseline(fit, *args, rng=1, **kwargs)["random_baseline"].to_dataset()


@pytest.mark.parametrize("pooling", ["none", "partial", "complete"])
def test_against_simulated_guessers(pooling) -> None:
    rng = np.random.default_rng(3)
    data, chance = _data(rng), rng.uniform(0.1, 0.5, 12)
    fit = bk.evaluate(data, "bayes", pooling=pooling, keep=["p"], draws=2500, rng=2)
    group = _group(fit, chance, 6)
    size = 40_000
    for system in range(2):
        c, n = data.successes.values[system], data.trials.values[system]
        guesses = rng.binomial(n, chance, (size, 6, 12)).sum(axis=2).max(axis=1)
        of_system = group.isel(system=system)
        error = 4.5 * guesses.std() / n.sum() / np.sqrt(size)
        assert abs(float(of_system["expected_best"]) - guesses.mean() / n.sum()) < error
        share = (guesses >= c.sum()).mean()
        assert abs(float(of_system["p_value"]) - share) < 4.5 * 0.5 / np.sqrt(size)
        # A new run, from the stored draws of p, against a new best.
        p = fit["posterior"]["p"].isel(system=system).values.reshape(-1, 12)
        runs = rng.binomial(n, p).sum(axis=1)
        best = guesses[rng.integers(0, size, len(runs))]
        slack = 4.5 * 0.5 / np.sqrt(len(runs)) + 4.5 * float(of_system["prob_beats_error"])
        assert abs(float(of_system["prob_beats"]) - (runs > best).mean()) < slack
        assert abs(float(of_system["prob_ties"]) - (runs == best).mean()) < slack
        draws = fit["posterior"]["bayes"].isel(system=system) > float(of_system["expected_best"])
        shares = draws.mean(("chain", "draw")).values
        slack = 4.5 * 0.5 / np.sqrt(10_000) + 4.5 * of_system["prob_exceeds_error"].values
        assert (np.abs(of_system["prob_exceeds"].values - shares) < slack).all()
        assert float(of_system["prob_exceeds_error"].sel(target="questions")) == 0.0


@pytest.mark.long
def test_closed_form_and_sampled_results_agree() -> None:
    data = _data(np.random.default_rng(4))
    fit, sampled = bk.evaluate(data, "bayes", **BETA), bk.sample(data, "bayes", **SHORT)
    ours, theirs = _group(fit, 0.25, 5), _group(sampled, 0.25, 5)
    assert set(ours) == set(theirs)
    xr.testing.assert_equal(ours["p_value"], theirs["p_value"])
    error = 6 * theirs["prob_exceeds_error"]
    assert bool((np.abs(ours["prob_exceeds"] - theirs["prob_exceeds"]) < error).all())
    assert bool((np.abs(ours["prob_beats"] - theirs["prob_beats"]) < 0.03).all())
    with pytest.raises(ValueError, match="must have the metric 'mean'"):
        _group(bk.sample(data, "pass^2", **SHORT), 0.25)


def test_the_group_travels_with_its_result(tmp_path) -> None:
    fit = bk.evaluate([[1, 0, 1], [1, 1, 1]], "bayes", rng=1)
    result = bk.guessing.random_baseline(fit, {2: 1, 4: 1}, 3, rng=1)
    assert "random_baseline" not in fit.children
    path = bk.save(result, tmp_path / "baseline.nc")
    xr.testing.assert_equal(
        bk.load_result(path)["random_baseline"].to_dataset(), result["random_baseline"].to_dataset()
    )
    frame = bk.table(result)
    assert frame.loc[0, "selected_ci_lower"] < frame.loc[0, "selected_mean"]


def test_chances_are_aligned_by_question() -> None:
    fit = bk.evaluate(bk.tally(([2, 1], [2, 5]), questions=["x", "y"]), "bayes", rng=1)
    given = xr.DataArray([0.5, 0.1], dims="question", coords={"question": ["y", "x"]})
    xr.testing.assert_equal(_group(fit, given), _group(fit, [0.1, 0.5]))
    with pytest.raises(ValueError, match=r"lacks \['x'\]"):
        _group(fit, given.sel(question=["y"]))
    with pytest.raises(ValueError, match="when trials differ"):
        _group(fit, {2: 2})
    with pytest.raises(ValueError, match="n=2 probabilities"):
        _group(fit, [0.5])


def test_one_configuration_is_the_beta_posterior() -> None:
    for correct, marks in ((0, 5), (3, 5), (5, 5), (40, 1000)):
        mean, sd, skill = selected_skill(correct, marks, 1.0)
        exact = beta(correct + 1, marks - correct + 1)
        assert mean == pytest.approx(exact.mean(), rel=1e-8)
        assert sd == pytest.approx(exact.std(), rel=1e-7)
        levels = np.array([0.025, 0.5, 0.975])
        np.testing.assert_allclose(skill.quantile(levels), exact.ppf(levels), atol=1e-5)


@pytest.mark.parametrize(("correct", "marks", "t"), [(14, 20, 10), (20, 20, 7), (0, 3, 4)])
def test_skill_of_the_best_of_several_against_simulation(correct, marks, t) -> None:
    """Skills from the uniform prior, kept where the best of t binomial counts is as observed."""
    rng = np.random.default_rng(5)
    skill = rng.random(600_000)
    accepted = skill[rng.binomial(marks, skill, (t, len(skill))).max(axis=0) == correct]
    mean, sd, posterior = selected_skill(correct, marks, float(t))
    assert abs(mean - accepted.mean()) < 5 * sd / np.sqrt(len(accepted))
    assert abs(sd / accepted.std() - 1.0) < 5 / np.sqrt(len(accepted))
    low, high = interval(posterior, 0.9, "eti")
    for end, level in ((low, 0.05), (high, 0.95)):
        assert abs((accepted <= end).mean() - level) < 5 * np.sqrt(0.05 * 0.95 / len(accepted))


def test_selection_takes_luck_off() -> None:
    means = [selected_skill(60, 100, t)[0] for t in (1.0, 2.5, 10.0, 1e3, 1e6)]
    assert (np.diff(means) < 0).all()
    mean, _, _ = selected_skill(60, 100, 1e6)
    # The best of a million with this skill is expected where it was observed.
    law = binom(100, mean)
    assert abs(law.isf(1e-6) - 60) < 3


def test_guessers_in_pymc_agree_with_the_closed_form_and_a_wrong_one_is_caught() -> None:
    sampled = bk.models.sample_random_baseline(50, {2: 30, 4: 20}, t=8, draws=5000, rng=2)
    chances = [0.5] * 30 + [0.25] * 20
    for options, verdict in (
        ({}, "agree"),
        ({"guess": np.add(chances, 0.01)}, "disagree"),
        ({"t": 10}, "disagree"),
        ({"correlation": 0.1}, "disagree"),
    ):
        arguments = {"n": 50, "guess": chances, "t": 8} | options
        exact = bk.guessing.random_baseline_distribution(**arguments, rng=1)
        verified = bk.verify(exact, sampled, alpha=FALSE_ALARM)
        assert verified.verdict == verdict, (options, verified.table.to_string())
    drawn = bk.guessing.random_baseline_distribution(50, chances, t=8, rng=3)
    assert bk.verify(drawn, drawn.drop_nodes("closed_form"), alpha=FALSE_ALARM).verdict == "agree"


def test_simulated_guessers_need_whole_numbers() -> None:
    with pytest.raises(ValueError, match="whole number"):
        bk.models.build_random_guessers(4, 0.5, t=2.5)
    with pytest.raises(ValueError, match="ci_prob"):
        bk.guessing.random_baseline_distribution(4, 0.5, ci_prob=1.0)


def test_a_p_value_deep_in_the_tail_is_printed_with_its_digits() -> None:
    fit = bk.evaluate([[1] * 8] * 40, "pass@1", difficulty="beta", rng=1)
    table = bk.table(bk.guessing.random_baseline(fit, 0.25, t=10, rng=1))
    exact = 10.0 * 0.25**320  # all of 320 trials right, in any of ten runs
    assert float(table["p_value"][0]) == pytest.approx(exact, rel=1e-10)
    assert f"{exact:.2g}" in str(table)
