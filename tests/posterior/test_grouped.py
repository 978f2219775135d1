"""`evaluate` with groups: results, draws, weights, refusals."""

import numpy as np
import pytest
import xarray as xr
from scipy.special import betaln, expit, logsumexp
from scipy.stats import norm

import bayesatk as bk
from bayesatk.core.program.predictor import Effects, Predictor
from bayesatk.data.grouping import Grouping
from bayesatk.metrics.grid import parse
from bayesatk.posterior.model import CountModel
from bayesatk.results.result import Result

BETA = bk.priors.HyperPrior(families="beta")
GROUPS = ["law", "art", "law", "art", "law", "math", "math", "law", "art", "math"]


@pytest.fixture(scope="module")
def data() -> bk.Outcomes:
    rng = np.random.default_rng(8)
    p = np.array([{"law": 0.3, "art": 0.6, "math": 0.85}[name] for name in GROUPS])
    runs = {name: rng.binomial(1, p[:, None], (10, 5)) for name in ("a", "b")}
    return bk.tally(runs, group=GROUPS)


@pytest.fixture(scope="module")
def fit(data):
    return bk.evaluate(data, ["pass@1,4", "pass^2"], group="group", rng=3)


@pytest.mark.long
def test_the_result_has_three_targets_and_every_group(fit) -> None:
    rows = bk.table(fit)
    assert list(rows["target"].unique()) == ["questions", "population", "new_groups"]
    own = fit["group_closed_form"]["pass_at_k"]
    assert own["group"].values.tolist() == ["law", "art", "math"]
    assert own["target"].values.tolist() == ["questions", "population"]
    text = repr(rows)
    assert "new groups (target 'new_groups')" in text
    assert "questions of new groups like these" in text


def test_draws_have_the_exact_means_and_sds(fit) -> None:
    pairs = ("posterior", "closed_form"), ("group_posterior", "group_closed_form")
    for drawn, exact in pairs:
        for name in ("pass_at_k", "pass_hat_k"):
            draws, statistics = fit[drawn][name], fit[exact][name]
            mean, sd = (statistics.sel(statistic=one) for one in ("mean", "sd"))
            z = (draws.mean(("chain", "draw")) - mean) / sd * np.sqrt(draws.sizes["draw"] * 4)
            assert float(abs(z).max()) < 4.5
            size = draws.sizes["draw"] * 4
            square = ((draws - mean) / sd) ** 2  # of mean 1, and as spread as its draws
            error = square.std(("chain", "draw")) / np.sqrt(size) + 0.005  # squares are skewed
            assert float(abs((square.mean(("chain", "draw")) - 1.0) / error).max()) < 4.5


@pytest.mark.long
def test_the_whole_is_its_groups_with_their_weights(data, fit) -> None:
    share = np.array([0.4, 0.3, 0.3])
    weights = {"questions": share, "equal": np.full(3, 1 / 3), "given": np.array([0.0, 0.75, 0.25])}
    for name, weight in weights.items():
        asked = {"law": 0, "art": 3, "math": 1} if name == "given" else name
        own = bk.evaluate(data["a"], "pass@1", group="group", group_weights=asked, draws=5, rng=1)
        for statistic in ("estimate", "mean"):
            of_groups = own["group_closed_form"]["pass_at_k"].sel(statistic=statistic, k=1)
            of_whole = own["closed_form"]["pass_at_k"].sel(statistic=statistic, k=1)
            for target in ("questions", "population"):
                expected = of_groups.sel(target=target).values @ weight
                assert of_whole.sel(target=target).values == pytest.approx(expected, abs=1e-9)
        kept = Result.of(own).grouping
        assert kept is not None
        assert kept.shares() == pytest.approx(weight)
        assert bool(own.notes[0].startswith("Estimates")) == (name != "questions")


def test_what_arviz_checks_is_there(fit) -> None:
    az = pytest.importorskip("arviz")
    exact = bk.checks.exact_loo(fit)
    smoothed = az.loo(fit, pointwise=True)
    assert float(smoothed.elpd) == pytest.approx(exact.elpd, abs=0.5)
    assert fit["posterior_predictive"]["successes"].max() <= 5


@pytest.mark.long
def test_group_may_be_a_covariate_or_come_with_the_data(data, fit) -> None:
    data = data["a"]
    named = bk.tally(data, covariates={"domain": GROUPS})
    tables = [
        bk.evaluate(one, "pass@1", group=group, draws=5, rng=1)["closed_form"]["pass_at_k"]
        for one, group in ((named, "domain"), (data, dict(enumerate(GROUPS))), (data, "group"))
    ]
    mean = [one.sel(statistic="mean").values.tolist() for one in tables]
    assert mean[0] == mean[1] == mean[2]


@pytest.mark.parametrize(
    ("metrics", "options", "words"),
    [
        ("pass@1", {"group": "domain"}, "must name what the data know of their questions"),
        ("pass@1", {"group": "group", "group_weights": {"law": 1}}, "lacks 'art'"),
        ("pass@1", {"group": "group", "group_weights": "same"}, "'equal' is a macro average"),
        ("pass@1", {"group": "group", "group_weights": dict.fromkeys(GROUPS, 0)}, "not all 0"),
        ("pass@1", {"group": False, "group_weights": "equal"}, "must be left out without groups"),
        ("pass@1", {"group": "group", "prior": bk.priors.BetaPrior()}, "must be a HyperPrior"),
    ],
)
def test_what_has_no_second_level_is_refused(data, metrics, options, words) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        bk.evaluate(data, metrics, **options)


@pytest.mark.long
def test_scores_have_groups_as_successes_have() -> None:
    scored = bk.tally([[0, 1, 2], [2, 2, 1]], scores={0: 0, 1: 0.5, 2: 1}, group=["a", "b"])
    of_scores = bk.evaluate(scored, "bayes", group="group", draws=5, rng=1)
    assert of_scores["group_closed_form"].sizes["group"] == 2
    assert "new_groups" in of_scores["closed_form"]["target"]
    fit = bk.evaluate(scored, "pass@1", success="score >= 0.5", group="group", draws=5, rng=1)
    assert fit["group_closed_form"].sizes["group"] == 2


@pytest.mark.long
def test_what_would_ignore_groups_refuses_them(fit) -> None:
    with pytest.raises(ValueError, match="without groups"):
        bk.checks.tail_exponent(fit)
    with pytest.raises(ValueError, match="evaluated without"):
        bk.table(bk.evaluate([[1, 0]], "pass@1", draws=5, rng=1), by="group")


@pytest.mark.long
def test_few_groups_are_said_to_be_few(data) -> None:
    own = bk.evaluate(data.sel(group=["law", "art"]), "pass@1", group="group", draws=5, rng=1)
    assert "2 groups: the data hardly identify how much groups differ" in own.notes[0]


def test_one_group_is_none(data) -> None:
    law, options = data.sel(group="law"), {"draws": 5, "rng": 1}
    fit = bk.evaluate(law, "pass@1", group="group", group_weights="equal", **options)
    plain = bk.evaluate(law, "pass@1", group=False, **options)
    xr.testing.assert_equal(fit["closed_form"].to_dataset(), plain["closed_form"].to_dataset())
    assert "new_groups" not in fit["closed_form"]["target"]
    assert any("one group, 'law'" in note and "'new_groups'" in note for note in fit.notes)
    assert not any("group" in note for note in plain.notes)


def test_groups_that_the_data_have_are_used_unless_told_otherwise(data) -> None:
    options = {"difficulty": "beta", "draws": 5, "rng": 1}
    found, named = (
        bk.evaluate(data, "pass@1", **own, **options) for own in ({}, {"group": "group"})
    )
    xr.testing.assert_equal(found["closed_form"].to_dataset(), named["closed_form"].to_dataset())
    without = bk.evaluate(data, "pass@1", group=False, **options)
    assert "new_groups" not in without["closed_form"]["target"]
    with pytest.raises(ValueError, match="group=False"):
        bk.plan(found, "pass@1")
    assert "plan" in bk.plan(data, "pass@1", trials=[1]).children


def test_groups_that_are_ignored_are_noted(data) -> None:
    options = {"draws": 5, "rng": 1, "difficulty": "beta"}
    plain = bk.evaluate(data, "pass@1", group=False, **options)
    (note,) = [note for note in plain.notes if "groups of questions, which the model" in note]
    assert "3 groups" in note
    assert not any(
        "which the model ignores" in note for note in bk.evaluate(data, "pass@1", **options).notes
    )


@pytest.mark.parametrize(
    "counts",
    [
        np.array([[0, 4]] * 6),
        np.array([[4, 0]] * 6),
        np.array([[0, 1], [1, 0]]),
    ],
)
def test_extreme_counts_are_answered(counts: np.ndarray) -> None:
    group = np.arange(len(counts)) % 2
    posterior = CountModel.of(
        bk.priors.HyperPrior(families="beta"), counts, grouping=Grouping.of(group)
    ).fit(parse("pass@1,4"))
    assert np.isfinite(posterior.mean).all()
    assert ((posterior.mean >= 0.0) & (posterior.mean <= 1.0)).all()
    assert (posterior.sd >= 0.0).all()


@pytest.mark.parametrize(
    "point",
    [(2.0, 1.04, -2.2), (-3.5, 0.28, -3.0), (0.0, -0.5, -1.0), (4.0, 1.2, -0.5)],
)
def test_effects_of_groups_far_from_zero_are_integrated(point) -> None:
    """The witness sums over effects evenly; Newton's steps alone go in circles at most of these.

    A point is the typical logit, the log of the sd of groups, and the logit of the icc.
    """
    rng = np.random.default_rng(3)
    group, trials = np.repeat(np.arange(12), 5), 8
    p = expit(rng.normal(0.0, 1.2, 12)[group] + rng.normal(size=60))
    right = rng.binomial(trials, p)
    counts = np.stack([trials - right, right], axis=1)
    model = CountModel.of(
        bk.priors.HyperPrior(families="beta"), counts, grouping=Grouping.of(group)
    )
    predictor, _ = model.part("beta")
    found = float(predictor.log_likelihood(np.array([point]))[0])
    mean, log_sd, logit_icc = point
    z, total = np.linspace(-9.0, 9.0, 3601), np.exp(-logit_icc)
    logits = (mean + np.exp(log_sd) * z)[:, None]
    alpha, beta = expit(logits) * total, expit(-logits) * total
    logs = betaln(alpha + right, beta + trials - right) - betaln(alpha, beta)
    by_group = logs @ (group[:, None] == np.arange(12)) + norm.logpdf(z)[:, None]
    exact = float((logsumexp(by_group, axis=0) + np.log(z[1] - z[0])).sum())
    assert found == pytest.approx(exact, abs=0.01)


def quadrature_of_new_groups(right: np.ndarray, trials: int, group: np.ndarray) -> np.ndarray:
    """Mean and sd of pass@1 and pass@4 of new groups, under the model written out.

    The typical logit, the sd of groups and the icc are summed over a grid, effects of groups over
    normal nodes; what depends on a logit and an icc is a table, read between its logits by lines.
    """
    eta, icc = np.linspace(-14.0, 14.0, 1401), (np.arange(40) + 0.5) / 40 * 0.3
    total = (1.0 / icc - 1.0)[:, None]
    a, b = expit(eta) * total, expit(-eta) * total
    states = np.arange(trials + 1)[:, None, None]
    logs = betaln(a + states, b + trials - states) - betaln(a, b)
    number = np.stack([np.bincount(right[group == g], minlength=trials + 1) for g in range(4)])
    by_group = np.einsum("gs,sie->gie", number, logs)
    by_group -= by_group.max(axis=(1, 2), keepdims=True)
    metrics = np.stack([a / (a + b), -np.expm1(betaln(a, b + 4) - betaln(a, b))])
    z, sds = np.linspace(-6.0, 6.0, 81), np.geomspace(0.01, 4.0, 50)
    node_weight, logits = norm.pdf(z) / norm.pdf(z).sum(), np.linspace(-4.0, 6.0, 121)
    sums = np.zeros((3, 2))

    def averaged(table: np.ndarray, sd: float) -> np.ndarray:
        """Mean over effects of a table (icc, eta), at every typical logit."""
        place = (logits[:, None] + sd * z - eta[0]) / (eta[1] - eta[0])
        place = np.clip(place, 0.0, len(eta) - 1.001)
        below, part = place.astype(int), place % 1.0
        return (table[:, below] * (1.0 - part) + table[:, below + 1] * part) @ node_weight

    for sd in sds:
        likelihood = np.prod([averaged(np.exp(table), sd) for table in by_group], axis=0)
        # Uniform priors of the icc and of the typical p; half-normal of the sd, on its logarithm.
        weight = likelihood * expit(logits) * expit(-logits) * np.exp(-0.5 * sd**2) * sd
        for metric, table in enumerate(metrics):
            value = averaged(table, sd)
            sums[:, metric] += [(weight * value**power).sum() for power in range(3)]
    mean = sums[1] / sums[0]
    return np.stack([mean, np.sqrt(sums[2] / sums[0] - mean**2)])


def test_new_groups_vary_as_they_do_where_groups_hardly_differ() -> None:
    """Few groups do not exclude others far away: .1% of the posterior is 40% of the variance."""
    rng, group = np.random.default_rng(4), np.repeat(np.arange(4), 30)
    p = expit(1.2 + 0.2 * rng.normal(size=4)[group] + 0.3 * rng.normal(size=120))
    right = rng.binomial(10, p)
    data = bk.tally((right, np.full(120, 10)), group=[f"g{each}" for each in group])
    fit = bk.evaluate(data, "pass@1,4", draws=8, rng=1)
    found = fit["closed_form"]["pass_at_k"].sel(target="new_groups").squeeze("system")
    expected = quadrature_of_new_groups(right, 10, group)
    mean, sd = (found.sel(statistic=name).values for name in ("mean", "sd"))
    np.testing.assert_allclose(sd, expected[1], rtol=0.03)
    np.testing.assert_allclose(mean, expected[0], atol=0.03 * expected[1].min())
    worth = found.attrs["new_groups_sd_draws"]  # few, because one point in many is far away
    assert worth < 0.5 * found.attrs["sd_draws"]


def test_systems_with_equal_cells_and_other_counts_are_evaluated_as_alone() -> None:
    """Priors are drawn without the counts, and then such systems have the same model."""
    runs = {"a": [[1, 0], [1, 1], [1, 1]], "b": [[1, 0], [1, 1], [0, 0]]}
    options = {"metrics": "pass@1", "pooling": "complete", "rng": 1}
    together = bk.table(bk.evaluate(bk.tally(runs, group=["x", "y", "x"]), **options))
    for system, own in runs.items():
        alone = bk.table(bk.evaluate(bk.tally(own, group=["x", "y", "x"]), **options))
        rows = together[together["system"] == system]
        assert rows["mean"].tolist() == alone["mean"].tolist()
        assert rows["ci_lower"].tolist() == alone["ci_lower"].tolist()


def test_effects_of_groups_are_worked_out_once_for_each_fit(monkeypatch) -> None:
    worked_out, effects = [], Predictor.effects

    def counted(self: Predictor, theta: np.ndarray) -> Effects:
        worked_out.append(self.has_group_effects)
        return effects(self, theta)

    monkeypatch.setattr(Predictor, "effects", counted)
    runs = np.random.default_rng(12).binomial(1, 0.6, (10, 4))
    fit = bk.evaluate(bk.tally(runs, group=GROUPS), "pass@1,2", difficulty="beta", rng=1)
    bk.decide.noise_floor(fit)
    bk.checks.criticise(fit, rng=1)
    assert sum(worked_out) == 1
