"""Systems against each other: simulation, laws, known truth, and PyMC."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayesatk as bk


def _data(seed: int, questions: int = 25, shifts: tuple[float, ...] = (0.0, 0.7, 1.0)):
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0.0, 1.3, questions)
    p = 1 / (1 + np.exp(-(difficulty + np.array(shifts)[:, None])))
    trials = rng.integers(1, 6, p.shape)
    names = ["a", "b", "c", "d"][: len(shifts)]
    return bk.tally((rng.binomial(trials, p), trials), systems=names)


def _votes(shares):
    """Five answers to each of 25 questions, whose shares systems have in common in part."""
    rng = np.random.default_rng(5)
    common = rng.dirichlet([6, 3, 2], 25)
    answers = {
        name: [rng.choice(["x", "y", "z"], 5, p=0.5 * np.add(own, p)).tolist() for p in common]
        for name, own in zip("ab", shares, strict=True)
    }
    return bk.tally(None, answers=answers, reference=["x"] * 25)


@pytest.mark.long
@pytest.mark.parametrize(
    ("data", "metrics", "options"),
    [
        (_data(5, shifts=(0.0, 0.8)), "pass@2", {"difficulty": "beta", "keep": ["p"]}),
        (_votes([[0.5, 0.3, 0.2], [0.7, 0.2, 0.1]]), "bayes plurality@3", {"pooling": "none"}),
    ],
    ids=["marks", "votes, without draws of p"],
)
def test_sampled_and_exact_comparisons_agree(data, metrics, options) -> None:
    exact = bk.compare(bk.evaluate(data, metrics, rng=1, **options))["comparison"]
    sampled = bk.sample(data, metrics, rng=1, progress=False, **options)
    sampled = bk.compare(sampled)["comparison"]
    for name in (variable for variable in exact.data_vars if "contrast" in exact[variable].dims):
        ours, theirs = (tree[name].sel(system="b", other="a") for tree in (exact, sampled))
        sd = ours.sel(contrast="sd")
        for contrast in ("mean", "ci_lower", "ci_upper"):
            gap = np.abs(ours - theirs).sel(contrast=contrast)
            assert bool((gap < 0.35 * sd).all()), (name, contrast)
        ratio = theirs.sel(contrast="sd") / sd
        assert bool(((ratio > 0.85) & (ratio < 1.35)).all())


def test_pairs_without_a_common_question_are_not_compared() -> None:
    runs = {"a": [[1], [0], [None]], "b": [[1], [None], [None]], "c": [[None], [None], [1]]}
    fit = bk.evaluate(bk.tally(runs, missing="ignore"), "bayes", pooling="none", rng=1)
    result = bk.compare(fit)
    mean = result["comparison"]["bayes"].sel(contrast="mean", target="questions")
    assert np.isfinite(float(mean.sel(system="a", other="b")))
    assert bool(mean.sel(system=["a", "b"], other="c").isnull().all())
    assert set(bk.table(result, "comparison")["system"]) <= {"a", "b"}


def test_votes_are_compared_on_the_same_questions() -> None:
    """Two systems whose answers are the same differ by nothing; one that is always right wins."""
    rng = np.random.default_rng(3)
    drawn = rng.choice(["x", "y", "z"], (30, 5), p=[0.5, 0.3, 0.2])
    answers = {"a": drawn, "b": drawn, "sure": np.full((30, 5), "x")}
    data = bk.tally(None, answers=answers, reference=["x"] * 30)
    fit = bk.evaluate(data, "bayes plurality@3", pooling="none", rng=1)
    result = bk.compare(fit)
    contrasts = result["comparison"]["plurality_at_k"].sel(k=3)
    for target in ("questions", "population"):
        same = contrasts.sel(system="a", other="b", target=target)
        sd = float(same.sel(contrast="sd"))
        assert abs(float(same.sel(contrast="mean"))) < 0.1 * sd
        assert float(same.sel(contrast="prob_greater")) == pytest.approx(0.5, abs=0.05)
        ahead = contrasts.sel(system="sure", other="a", target=target, contrast="prob_greater")
        assert float(ahead) > 0.999


@pytest.fixture(scope="module")
def fit():
    return bk.evaluate(_data(7), "pass@1,2", rng=1)


def _contrast(fit, **weights: float) -> pd.DataFrame:
    return bk.table(bk.compare(fit, contrast=weights), "contrast")


def test_a_contrast_of_two_is_their_difference_and_others_are_sums_of_draws(fit) -> None:
    pair = bk.table(bk.compare(fit), "comparison", of="b", against="a")
    pair = pair.set_index(["metric", "target"])
    rows = _contrast(fit, b=1, a=-1).set_index(["metric", "target"])
    pair = pair.rename(columns={"prob_greater": "prob_positive"}).loc[rows.index]
    for name in ("mean", "sd", "ci_lower", "ci_upper", "monte_carlo_error", "prob_positive"):
        np.testing.assert_allclose(rows[name], pair[name])
    half = _contrast(fit, a=0.5, b=0.5, c=-1).query("metric == 'pass@2' and target == 'population'")
    draws = fit["joint_posterior"]["pass_at_k"].sel(k=2, target="population")
    sums = (draws * xr.DataArray([0.5, 0.5, -1.0], dims="system")).sum("system")
    assert half["mean"].item() == pytest.approx(float(sums.mean()))
    assert half["ci_upper"].item() == pytest.approx(float(sums.quantile(0.975)))
    assert "0.5 a + 0.5 b - c is " in half["sentence"].item()


def test_a_contrast_that_is_no_difference_says_so(fit) -> None:
    for weights, said in (({"a": 1, "b": -1}, False), ({"a": 1, "b": 1}, True)):
        assert any("add up to 2" in line for line in _contrast(fit, **weights).sentences) == said


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"contrast": {"z": 1.0}}, "contrast must name systems of .*; got 'z'"),
        ({"contrast": {"a": 0.0}}, "contrast must have finite weights that are not all 0"),
        ({"contrast": {"a": np.inf}}, "contrast must have finite weights"),
        ({"contrast": {"a": "1"}}, "contrast must be a number"),
        ({"contrast": ["a", "b"]}, "contrast must be a mapping"),
        ({"rope": -0.1}, "rope must be 0 or more"),
        ({"rope": 2}, r"rope must be smaller than 1, .*; got 2\. Try rope=0\.02"),
        ({"alpha": 0.0}, "alpha must lie strictly"),
    ],
)
def test_impossible_comparisons_are_refused(fit, options, fault) -> None:
    with pytest.raises(ValueError, match=fault):
        bk.compare(fit, **options)


def test_a_verdict_comes_with_the_notes_of_the_systems_that_it_is_about() -> None:
    runs = {"a": [[1, 0, 1, 1]] * 6, "b": [[1, 0, 0, 0]] * 6, "c": [[0, 1, 0, 0]] * 6}
    fit = bk.compare(bk.evaluate(runs, "pass@2", pooling="none", rng=1))
    noted = [note for note in fit.notes if note.startswith("a: ")]
    assert noted
    assert noted[0] in bk.claim(fit, system="a", other="b")
    assert noted[0] not in bk.claim(fit, system="b", other="c")
    assert f"Note: {noted[0]}" in bk.table(fit, "comparison").sentences
    assert f"Note: {noted[0]}" in bk.table(bk.leaderboard(fit), "leaderboard").sentences
