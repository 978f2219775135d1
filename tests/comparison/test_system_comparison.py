"""Systems against each other: simulation, laws, known truth, and PyMC."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from scipy.stats import beta as beta_distribution

import bayesatk as bk
from bayesatk.comparison.joint.contrasts import (
    CONTRASTS,
    Drawn,
    ExactMean,
    Independent,
    Settings,
)
from bayesatk.comparison.joint.draws import Subset
from bayesatk.comparison.joint.paired import paired_draws
from bayesatk.results.result import Result


def _data(seed: int, questions: int = 25, shifts: tuple[float, ...] = (0.0, 0.7, 1.0)):
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0.0, 1.3, questions)
    p = 1 / (1 + np.exp(-(difficulty + np.array(shifts)[:, None])))
    trials = rng.integers(1, 6, p.shape)
    names = ["a", "b", "c", "d"][: len(shifts)]
    return bk.tally((rng.binomial(trials, p), trials), systems=names)


# With a prior of its own every system keeps its own posterior.
APART = {"prior": bk.priors.HyperPrior(mean=(2.0, 2.0))}
PROMISED = 0.002  # error of probabilities that the documentation states


def _betas(parameters) -> Independent:
    """Systems whose only metric has these Beta posteriors."""
    exact = []
    for a, b in parameters:
        law = beta_distribution(a, b)
        exact.append(
            ExactMean.of(
                law.mean(), law.std(), SimpleNamespace(quantile=law.ppf, stated_error=np.zeros_like)
            )
        )
    nothing = np.zeros((1, 1, len(parameters)))
    return Independent.among(Drawn(nothing, nothing[0], 1.0), {0: exact})


def _of_pair(first, second, rope: float = 0.0) -> dict[str, float]:
    pair, settings = np.array([0]), Settings(0.95, "eti", rope)
    found = _betas([first, second]).contrasts(0, pair, pair + 1, settings)
    return {name: float(value[0]) for name, value in found.items()}


@pytest.mark.parametrize(
    ("first", "second"), [((3, 2), (2, 5)), ((1, 1), (40, 3)), ((5, 1), (5, 1))]
)
def test_contrasts_of_two_betas_against_simulation(first, second) -> None:
    rng = np.random.default_rng(1)
    size = 400_000
    x, y = rng.beta(*first, size), rng.beta(*second, size)
    slack = 4.5 * 0.5 / np.sqrt(size) + PROMISED
    for rope in (0.0, 0.2, 0.3):
        found = _of_pair(first, second, rope)
        assert abs(found["prob_above_rope"] - (x - y > rope).mean()) < slack
        assert abs(found["prob_below_rope"] - (x - y < -rope).mean()) < slack
    for name, level in (("lower", 0.025), ("upper", 0.975)):
        assert abs((x - y <= found[f"ci_{name}"]).mean() - level) < slack
        assert abs((x / y <= found[f"ratio_{name}"]).mean() - level) < slack
    assert abs((x / y <= found["ratio_median"]).mean() - 0.5) < slack
    loss = np.maximum(y - x, 0)
    assert abs(found["expected_loss"] - loss.mean()) < 5 * loss.std() / np.sqrt(size) + 1e-4
    assert found["mean"] == pytest.approx(first[0] / sum(first) - second[0] / sum(second))


def test_ends_of_intervals_to_a_hundredth_of_the_width() -> None:
    """Against sums over a fine grid of the levels of both."""
    levels = (np.arange(2000) + 0.5) / 2000
    for first, second in (((3, 2), (2, 5)), ((30, 12), (200, 90)), ((0.7, 9), (5, 1))):
        a, b = (beta_distribution(*shape).ppf(levels) for shape in (first, second))
        low, high = np.quantile((a[:, None] - b).ravel(), [0.025, 0.975])
        found = _of_pair(first, second)
        assert abs(found["ci_lower"] - low) < 0.01 * (high - low)
        assert abs(found["ci_upper"] - high) < 0.01 * (high - low)


def test_ranks_against_simulation() -> None:
    parameters = [(8, 4), (7, 5), (2, 2), (20, 12)]
    found = _betas(parameters).ranks(0)
    np.testing.assert_allclose(found.sum(axis=0), 1.0, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
    rng = np.random.default_rng(2)
    draws = np.stack([rng.beta(a, b, 200_000) for a, b in parameters], axis=1)
    rank = np.argsort(np.argsort(-draws, axis=1), axis=1)
    for place in range(4):
        share = (rank == place).mean(axis=0)
        slack = 4.5 * 0.5 / np.sqrt(200_000) + PROMISED
        assert np.abs(found[:, place] - share).max() < slack


@pytest.mark.parametrize("model", [{"pooling": "none"}, {"pooling": "complete"}, APART])
def test_these_questions_against_the_stored_draws(model) -> None:
    fit = bk.evaluate(_data(3), "pass@2 bayes", draws=5000, rng=1, **model)
    result = bk.compare(fit, rope=0.05, rng=1)
    draws = fit["posterior"]["pass_at_k"].sel(k=2, target="questions").stack(s=("chain", "draw"))
    gap = (draws.sel(system="b") - draws.sel(system="a")).values
    found = result["comparison"]["pass_at_k"].sel(k=2, target="questions", system="b", other="a")
    one = {name: float(found.sel(contrast=name)) for name in CONTRASTS}
    slack = 4.5 * 0.5 / np.sqrt(len(gap))
    assert abs(one["mean"] - gap.mean()) < 4.5 * gap.std() / np.sqrt(len(gap))
    assert abs(one["sd"] / gap.std() - 1) < 0.03
    assert abs(one["prob_greater"] - (gap > 0).mean()) < slack
    assert abs(one["prob_in_rope"] - (np.abs(gap) <= 0.05).mean()) < slack
    assert abs(one["expected_loss"] - np.maximum(-gap, 0).mean()) < 0.002
    assert abs((gap < one["ci_lower"]).mean() - 0.025) < slack
    assert abs((gap > one["ci_upper"]).mean() - 0.025) < slack
    assert one["monte_carlo_error"] < 0.001
    assert one["prob_below_rope"] + one["prob_in_rope"] + one["prob_above_rope"] == pytest.approx(1)
    first = (draws.transpose("s", "system").values.argmax(axis=1)[:, None] == np.arange(3)).mean(0)
    ranks = result["ranks"]["pass_at_k"].sel(k=2, target="questions", rank=1).values
    assert np.abs(ranks - first).max() < slack


def test_a_pair_is_its_mirror_image() -> None:
    fit = bk.evaluate(_data(4), "bayes", rng=1)
    found = bk.compare(fit, rope=0.02, rng=1)["comparison"]["bayes"]
    mirror = found.transpose("other", "system", "target", "contrast").values
    straight = dict(zip(CONTRASTS, np.moveaxis(found.values, -1, 0), strict=True))
    turned = dict(zip(CONTRASTS, np.moveaxis(mirror, -1, 0), strict=True))
    off = ~np.eye(3, dtype=bool)
    for name, opposite, sign, shift in (
        ("mean", "mean", -1, 0), ("sd", "sd", 1, 0), ("ci_lower", "ci_upper", -1, 0),
        ("prob_greater", "prob_greater", -1, 1), ("prob_below_rope", "prob_above_rope", 1, 0),
    ):  # fmt: skip
        np.testing.assert_allclose(straight[name][off], shift + sign * turned[opposite][off])
    gap = straight["expected_loss"] - turned["expected_loss"]
    np.testing.assert_allclose(gap, turned["mean"], atol=1e-5)
    np.testing.assert_allclose((straight["ratio_lower"] * turned["ratio_upper"])[off], 1.0)


@pytest.mark.long
def test_pairing_tells_hard_questions_from_bad_systems() -> None:
    """The same difficulties for both: paired sd well under the unpaired one, mean unchanged."""
    rng = np.random.default_rng(6)
    p = np.clip(rng.beta(0.3, 0.3, 80) + np.array([[0.0], [0.06]]), 0.02, 0.98)
    fit = bk.evaluate(bk.tally((rng.binomial(32, p), 32)), "bayes", rng=1)
    for found in (
        bk.compare(fit, rng=seed)["comparison"]["bayes"].sel(target="population")[1, 0]
        for seed in (1, 2)
    ):
        sd, unpaired = (float(found.sel(contrast=name)) for name in ("sd", "sd_unpaired"))
        assert sd < 0.35 * unpaired
        questions = bk.compare(fit, rng=1)["comparison"]["bayes"].sel(target="questions")[1, 0]
        gap = float(found.sel(contrast="mean") - questions.sel(contrast="mean"))
        assert abs(gap) < 0.6 * sd


def joint_draws(template: xr.DataTree, successes, trials, seed: int) -> tuple[Drawn, Drawn]:
    """Draws for these questions and for questions like these, of other data of the same shape."""
    fit = template.copy()
    observed = fit["observed_data"].to_dataset()
    values = np.asarray(successes)
    dims = ("system", "question")
    fit["observed_data"] = xr.DataTree(observed.assign(successes=(dims, values)))
    constant = fit["constant_data"].to_dataset()
    full = np.broadcast_to(trials, values.shape)
    fit["constant_data"] = xr.DataTree(constant.assign(trials=(dims, full)))
    own = Result.of(fit)
    return paired_draws(own, Subset.whole(own), np.random.default_rng(seed))


@pytest.mark.long
@pytest.mark.slow
def test_sampled_and_exact_comparisons_agree() -> None:
    data = _data(5, shifts=(0.0, 0.8))
    options = {"difficulty": "beta", **APART}
    fit = bk.evaluate(data, "pass@2", rng=1, **options)
    options |= {"progress": False}
    sampled = bk.sample(data, "pass@2", keep=["p"], rng=1, **options)
    ours, theirs = (bk.compare(one, rng=1)["comparison"]["pass_at_k"] for one in (fit, sampled))
    pair = {"system": "b", "other": "a"}
    gap = np.abs(ours - theirs).sel(**pair)
    sd = ours.sel(**pair, contrast="sd")
    for name in ("mean", "ci_lower", "ci_upper"):
        assert bool((gap.sel(contrast=name) < 0.3 * sd).all()), name
    assert bool((gap.sel(contrast="prob_greater") < 0.03).all())
    lean = bk.sample(data, "pass@2", rng=2, **options)  # p drawn given hyperparameters
    without = bk.compare(lean, rng=1)["comparison"]["pass_at_k"]
    gap = np.abs(without - theirs).sel(**pair, contrast=["mean", "ci_lower", "ci_upper"])
    assert bool((gap < 0.3 * sd).all())


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two systems"):
        bk.compare(bk.evaluate([[1, 0]], "bayes", rng=1))
    fit = bk.evaluate(_data(8), "bayes", rng=1)
    with pytest.raises(ValueError, match="rope must be 0 or more"):
        bk.compare(fit, rope=-0.1)
    with pytest.raises(ValueError, match="must have the group 'comparison'"):
        bk.table(fit, "comparison")


def test_pairs_are_compared_on_the_questions_that_both_tried() -> None:
    """As if no other question had been asked; what all tried decides ranks and tiers."""
    full = _data(8, questions=16)
    counts = full.dataset["count"].values.copy()
    counts[0, :2], counts[1, 14:] = 0, 0
    holes = bk.tally((counts[..., 1], counts.sum(axis=-1)), systems=list("abc"), missing="ignore")
    fit = bk.evaluate(holes, "pass@2", pooling="none", rng=1)
    result = bk.compare(fit, rng=1)
    shared = result["comparison"]["shared_questions"]
    assert shared.values.tolist() == [[14, 12, 14], [12, 14, 14], [14, 14, 16]]
    for pair, kept in (("ab", slice(2, 14)), ("ac", slice(2, 16)), ("bc", slice(0, 14))):
        chosen = ["abc".index(name) for name in pair]
        own = counts[chosen][:, kept]
        alone = bk.tally((own[..., 1], own.sum(axis=-1)), systems=list(pair))
        one = bk.evaluate(alone, "pass@2", pooling="none", rng=1)
        expected = bk.compare(one, rng=1)["comparison"]["pass_at_k"]
        found = result["comparison"]["pass_at_k"].sel(expected.coords)
        exact = {"target": "questions", "contrast": list(CONTRASTS[:12])}
        xr.testing.assert_allclose(found.sel(exact), expected.sel(exact))
        moments = {"target": "population", "contrast": ["mean", "sd", "ci_lower", "ci_upper"]}
        np.testing.assert_allclose(found.sel(moments), expected.sel(moments), atol=0.02)
    common = bk.evaluate(holes.shared(), "pass@2", pooling="none", rng=1)
    ranks = bk.compare(common, rng=1)["ranks"]["pass_at_k"]
    np.testing.assert_allclose(
        result["ranks"]["pass_at_k"].sel(target="questions"), ranks.sel(target="questions")
    )
    frame = bk.table(result, "comparison").set_index(["system", "other"])
    assert sorted(set(frame["questions"])) == [12, 14]
    assert frame["sentence"].str.contains("of 16, those that both tried").all()


@pytest.mark.parametrize("model", [APART, {"pooling": "complete"}])
def test_few_questions_leave_the_population_as_open_as_evaluating_does(model) -> None:
    runs = {"a": [[1, 1, 1, 0]] * 3, "b": [[1, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]}
    fit = bk.evaluate(runs, "pass@2 pass^2", rng=1, **model)
    table = bk.table(fit).query("target == 'population'").set_index(["metric", "system"])
    pairs = bk.table(bk.compare(fit, rng=1), "comparison").query("target == 'population'")
    for row in pairs.to_dict("records"):
        one, other = (table.loc[(row["metric"], row[name])] for name in ("system", "other"))
        sd = np.hypot(one["sd"], other["sd"])
        assert abs(row["mean"] - (one["mean"] - other["mean"])) < 0.3 * sd
        assert row["sd_unpaired"] == pytest.approx(sd, rel=0.06)
        assert row["sd"] == pytest.approx(sd, rel=0.6)


def test_pairs_without_a_common_question_are_not_compared() -> None:
    runs = {"a": [[1], [0], [None]], "b": [[1], [None], [None]], "c": [[None], [None], [1]]}
    fit = bk.evaluate(bk.tally(runs, missing="ignore"), "bayes", pooling="none", rng=1)
    result = bk.compare(fit, rng=1)
    found = result["comparison"]["bayes"].sel(contrast="mean", target="questions")
    assert float(found.sel(system="a", other="b")) == pytest.approx(0.0)
    assert bool(found.sel(system=["a", "b"], other="c").isnull().all())
    assert bool(result["ranks"]["bayes"].isnull().all())
    assert not result["tiers"]["bayes"].any()
    assert set(bk.table(result, "comparison")["system"]) <= {"a", "b"}
    apart = bk.tally({"a": [[1], [None]], "b": [[None], [1]]}, missing="ignore")
    with pytest.raises(ValueError, match="two systems that tried the same question"):
        bk.compare(bk.evaluate(apart, "bayes", pooling="none", rng=1), rng=1)


def test_votes_are_compared_on_the_same_questions() -> None:
    """Two systems whose answers are the same differ by nothing; one that is always right wins."""
    rng = np.random.default_rng(3)
    given = rng.choice(["x", "y", "z"], (30, 5), p=[0.5, 0.3, 0.2])
    answers = {"a": given, "b": given, "sure": np.full((30, 5), "x")}
    data = bk.tally(None, answers=answers, reference=["x"] * 30)
    fit = bk.evaluate(data, "bayes plurality@3", pooling="none", rng=1)
    result = bk.compare(fit, rng=1)
    found = result["comparison"]["plurality_at_k"].sel(k=3)
    for target in ("questions", "population"):
        same = found.sel(system="a", other="b", target=target)
        sd = float(same.sel(contrast="sd"))
        assert abs(float(same.sel(contrast="mean"))) < 0.1 * sd
        assert float(same.sel(contrast="prob_greater")) == pytest.approx(0.5, abs=0.05)
        ahead = found.sel(system="sure", other="a", target=target, contrast="prob_greater")
        assert float(ahead) > 0.999
    draws = fit["posterior"]["plurality_at_k"].sel(k=3, target="questions")
    gap = draws.sel(system="sure") - draws.sel(system="a")
    # Draws of its own, in an order of systems that their columns have no part in.
    exact = found.sel(system="sure", other="a", target="questions", contrast="mean")
    assert float(exact) == pytest.approx(float(gap.mean()), abs=5 * float(gap.std()) / 60)
    marks = result["comparison"]["bayes"].sel(system="sure", other="a", target="questions")
    assert float(marks.sel(contrast="monte_carlo_error")) == 0.0


@pytest.mark.long
def test_sampled_votes_and_marks_without_draws_of_p_are_compared() -> None:
    """Draws of means are enough, as long as every system tried every question."""
    rng = np.random.default_rng(5)
    p = np.array([[0.5, 0.3, 0.2], [0.7, 0.2, 0.1]])
    shift = rng.dirichlet([6, 3, 2], 25)
    answers = {
        name: [rng.choice(["x", "y", "z"], 5, p=0.5 * own + 0.5 * q).tolist() for q in shift]
        for name, own in zip("ab", p, strict=True)
    }
    data = bk.tally(None, answers=answers, reference=["x"] * 25)
    options = {"pooling": "none", "rng": 1}
    exact = bk.compare(bk.evaluate(data, "bayes plurality@3", **options), rng=1)["comparison"]
    sampled = bk.sample(data, "bayes plurality@3", progress=False, **options)
    found = bk.compare(sampled, rng=1)["comparison"]
    for name in ("bayes", "plurality_at_k"):
        ours, theirs = (one[name].sel(system="b", other="a") for one in (exact, found))
        sd = ours.sel(contrast="sd")
        for contrast in ("mean", "ci_lower", "ci_upper"):
            gap = np.abs(ours - theirs).sel(contrast=contrast)
            assert bool((gap < 0.5 * sd).all()), (name, contrast)
        ratio = theirs.sel(contrast="sd") / sd
        assert bool(((ratio > 0.85) & (ratio < 1.35)).all())


def test_tiers_separate_what_is_apart_and_nothing_else() -> None:
    rng = np.random.default_rng(8)
    p = np.concatenate([rng.beta(3, 7, (2, 150)), rng.beta(7, 3, (2, 150))])
    marks = (rng.random((4, 150, 6)) < p[:, :, None]).astype(int)
    found = bk.compare(bk.evaluate(marks, "pass@1", rng=1), rng=1)["tiers"]["pass_at_k"]
    for target in ("questions", "population"):
        assert found.sel(k=1, target=target).values.tolist() == [2, 2, 1, 1]


@pytest.mark.long
@pytest.mark.slow
def test_identical_systems_are_rarely_put_into_different_tiers() -> None:
    """At most the stated share, 0.1: eleven of 50 or more would have probability .009."""
    template = bk.evaluate(
        np.tile([0, 1], (2, 40, 2)), "bayes", difficulty="beta", draws=250, rng=1
    )
    apart = np.zeros(2)
    for seed in range(50):
        rng = np.random.default_rng(seed)
        counts = rng.binomial(4, rng.beta(2, 2, (1, 40)), (2, 40))
        both = joint_draws(template, counts, 4, seed)
        apart += [each.declared(0, 0.1).any() for each in both]
    assert (apart <= 10).all()


def test_bands_hold_whole_curves() -> None:
    rng = np.random.default_rng(4)
    marks = (rng.random((2, 40, 8)) < rng.beta(2, 2, (2, 40, 1))).astype(int)
    fit = bk.evaluate(marks, "pass@1,2,4,8", rng=1, **APART)
    found = bk.compare(fit, rng=1)["comparison"]["pass_at_k"]
    pair = found.sel(system=0, other=1, target="questions")
    draws = fit["posterior"]["pass_at_k"].sel(target="questions")
    gap = draws.sel(system=0) - draws.sel(system=1)
    low, high = (pair.sel(contrast=f"band_{end}") for end in ("lower", "upper"))
    inside = ((gap >= low) & (gap <= high)).all("k").mean()
    assert float(inside) == pytest.approx(0.95, abs=0.015)
    assert (low <= pair.sel(contrast="ci_lower") + 0.003).all()
    mirror = found.sel(system=1, other=0, target="questions")
    np.testing.assert_allclose(mirror.sel(contrast="band_upper"), -low, atol=1e-12)
    with pytest.raises(ValueError, match="alpha must lie strictly"):
        bk.compare(fit, alpha=0.0)
