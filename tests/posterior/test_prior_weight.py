"""An estimated weight of prior trials, against sums over grids that import nothing of it."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, logsumexp

import bayesatk as bk

NOW, TRIALS = np.array([2, 0, 3, 1, 3]), 3
EARLIER, BEFORE = np.array([5, 1, 4, 4, 5]), 5


def fitted(metrics="pass@1", now=NOW, trials=TRIALS, earlier=EARLIER, before=BEFORE, **options):
    size, columns = np.ones_like(now), {}
    if "covariates" in options:
        columns["covariates"] = {"size": range(len(now))}
    data = bk.tally(now, trials=trials * size, **columns)
    options["prior_trials"] = bk.tally(earlier, trials=before * size)
    options = {"prior_weight": "estimated", "draws": 200, "rng": 1} | options
    return bk.evaluate(data, metrics, **options)


def statistics(fit, name="prior_weight"):
    values = fit["closed_form"][name].isel(system=0)
    if "target" in values.dims:
        values = values.sel(target="questions")
    return values.sel(statistic=["mean", "sd", "ci_lower", "ci_upper"]).values.squeeze()


def on_a_grid(size=50, weights=201):
    """Weight, p and evidence of one Beta law, whose mean and icc are uniform, by plain sums."""
    ticks = (np.arange(size) + 0.5) / size
    mean, icc = (grid.ravel()[:, None] for grid in np.meshgrid(ticks, ticks))
    a, b = mean * (1.0 - icc) / icc, (1.0 - mean) * (1.0 - icc) / icc
    weight, logs, expected = (np.arange(weights) + 0.5) / weights, [], []
    for w in weight:
        right, wrong = a + w * EARLIER, b + w * (BEFORE - EARLIER)
        earlier = (betaln(right, wrong) - betaln(a, b)).sum(axis=1)
        both = (betaln(right + NOW, wrong + TRIALS - NOW) - betaln(a, b)).sum(axis=1)
        logs.append(logsumexp(both) - logsumexp(earlier))
        p = (right + NOW) / (right + wrong + TRIALS)
        expected.append(np.exp(both - logsumexp(both)) @ p.mean(axis=1))
    density = np.exp(logs - logsumexp(logs))
    return weight, density, float(density @ expected), float(logsumexp(logs) - np.log(weights))


def test_weight_and_metric_are_those_of_sums_over_a_grid():
    weight, density, p, evidence = on_a_grid()
    fit = fitted(difficulty="beta")
    mean, sd, low, high = statistics(fit)
    assert mean == pytest.approx(density @ weight, abs=2e-3)
    assert sd == pytest.approx(np.sqrt(density @ (weight - mean) ** 2), abs=2e-3)
    inside = (weight > low) & (weight < high)
    assert density[inside].sum() == pytest.approx(0.95, abs=5e-3)
    assert statistics(fit, "pass_at_k")[0] == pytest.approx(p, abs=1e-3)
    assert float(bk.checks.log_evidence(fit)[0]) == pytest.approx(evidence, abs=3e-3)


def test_without_pooling_it_is_an_integral_of_one_dimension():
    def density(w):
        a, b = 1.0 + w * EARLIER, 1.0 + w * (BEFORE - EARLIER)
        return np.exp((betaln(a + NOW, b + TRIALS - NOW) - betaln(a, b)).sum())

    total = quad(density, 0.0, 1.0)[0]
    mean = quad(lambda w: w * density(w), 0.0, 1.0)[0] / total
    fit = fitted(pooling="none")
    assert statistics(fit)[0] == pytest.approx(mean, abs=1e-5)
    assert float(bk.checks.log_evidence(fit)[0]) == pytest.approx(np.log(total), abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {"difficulty": "averaged"},
        {"pooling": "complete"},
        pytest.param({"covariates": ["size"]}, marks=pytest.mark.slow),
    ],
    ids=["families", "complete", "covariates"],
)
def test_evidence_is_the_mean_of_that_at_weights(options):
    nodes, shares = np.polynomial.legendre.leggauss(5)
    known = [0.5 * (node + 1.0) for node in nodes]
    logs = [float(bk.checks.log_evidence(fitted(prior_weight=w, **options))[0]) for w in known]
    fit = fitted(**options)
    assert float(bk.checks.log_evidence(fit)[0]) == pytest.approx(
        logsumexp(logs, b=0.5 * shares), abs=0.03
    )
    density = 0.5 * shares * np.exp(logs)
    assert statistics(fit)[0] == pytest.approx(density @ known / density.sum(), abs=0.01)


def test_same_p_has_a_weight_near_1_and_another_p_near_0():
    rng = np.random.default_rng(4)
    p, other = rng.beta(2, 2, (2, 100))
    now = rng.binomial(8, p)
    for source, (low, high) in {"same": (0.7, 1.0), "other": (0.0, 0.2)}.items():
        earlier = rng.binomial(8, p if source == "same" else other)
        fit = fitted(now=now, trials=8, earlier=earlier, before=8, difficulty="beta")
        assert low < statistics(fit)[0] < high
        conflict, weight = bk.notes(fit)[:2]
        assert ("no conflict" in conflict) == (source == "same")
        assert f"estimated to be {statistics(fit)[0]:.2f}" in weight


def test_a_narrow_posterior_is_looked_at_closely():
    rng = np.random.default_rng(4)
    p, other = rng.beta(2, 2, (2, 400))
    earlier = rng.binomial(8, other)
    fit = fitted(now=rng.binomial(8, p), trials=8, earlier=earlier, before=8, pooling="none")

    now = bk.Result.of(fit).counts[0, :, 1]

    def log_density(w):
        a, b = 1.0 + w * earlier, 1.0 + w * (8 - earlier)
        return (betaln(a + now, b + 8 - now) - betaln(a, b)).sum()

    weight = (np.arange(20_000) + 0.5) / 20_000
    logs = np.array([log_density(w) for w in weight])
    density = np.exp(logs - logsumexp(logs))
    mean, sd = statistics(fit)[:2]
    assert mean == pytest.approx(density @ weight, rel=1e-3)
    assert sd == pytest.approx(np.sqrt(density @ (weight - mean) ** 2), rel=1e-2)


def test_draws_are_of_the_distribution_that_is_reported():
    fit = fitted(difficulty="beta", draws=2000)
    drawn = np.sort(fit["posterior"]["prior_weight"].values.ravel())
    levels = fit["closed_form_quantiles"]["prior_weight"].isel(system=0)
    below = np.searchsorted(drawn, levels.values) / drawn.size
    assert np.abs(below - levels["quantile"].values).max() < 0.03
    assert np.unique(drawn).size == drawn.size


@pytest.mark.long
def test_leaving_a_question_out_keeps_its_prior_trials():
    fit = fitted(difficulty="beta")
    missing = np.ones(5, int) * TRIALS
    missing[3] = 0
    now = np.where(missing > 0, NOW, 0)
    rest = bk.evaluate(
        bk.tally(now, trials=missing, missing="ignore"), "pass@1", difficulty="beta", draws=8,
        prior_trials=bk.tally(EARLIER, trials=BEFORE * np.ones(5, int)), rng=1,
        prior_weight="estimated",
    )  # fmt: skip
    gap = float(bk.checks.log_evidence(fit)[0] - bk.checks.log_evidence(rest)[0])
    left_out = bk.checks.exact_loo(fit).elpd_i.values[0, 3]
    assert left_out == pytest.approx(gap + np.log(3.0), abs=0.02)  # one of three: three orders


def test_a_saved_result_is_asked_again(tmp_path):
    fit = fitted(pooling="none")
    bk.save(fit, tmp_path / "fit.nc")
    again = bk.load_result(tmp_path / "fit.nc")
    assert bk.Result.of(again).study.earlier.estimated
    assert bk.checks.exact_loo(again).elpd == pytest.approx(bk.checks.exact_loo(fit).elpd, abs=1e-9)


@pytest.mark.parametrize("weight", ["often", "", -0.1, 1.5, float("nan"), None, [0.5]])
def test_other_weights_are_refused(weight):
    with pytest.raises(ValueError, match="prior_weight must lie in") as refusal:
        fitted(prior_weight=weight)
    assert repr(weight) in str(refusal.value)


def test_a_weight_of_no_prior_trials_is_refused():
    with pytest.raises(ValueError, match="prior_weight must be left out without prior_trials"):
        bk.evaluate([[1, 0]], "pass@1", prior_weight="estimated")


@pytest.mark.slow
def test_sampled_models_are_refused_with_the_reason():
    before = bk.tally(EARLIER, trials=BEFORE * np.ones(5, int))
    with pytest.raises(ValueError, match="divided by an integral over all other parameters"):
        bk.sample(
            (NOW, TRIALS * np.ones(5, int)), "pass@1", prior_trials=before,
            prior_weight="estimated",
        )  # fmt: skip


def test_trials_that_systems_share_count_once_and_are_noted():
    runs, before = {"a": [[1, 1]], "b": [[0, 1]]}, bk.tally([[1]])
    fit = bk.evaluate(runs, "pass@1", pooling="none", prior_trials=before, rng=1)
    assert any("prior trials are of one system" in note for note in bk.notes(bk.compare(fit)))
    each = bk.tally({"a": [[1]], "b": [[1]]})
    fit = bk.evaluate(runs, "pass@1", pooling="none", prior_trials=each, rng=1)
    assert not any("prior trials are of one" in note for note in bk.notes(bk.compare(fit)))


def test_without_pooling_every_draw_has_a_prior_at_its_weight():
    fit = fitted(pooling="none", keep=["log_likelihood", "p"])
    weight = fit["posterior"]["prior_weight"].values[..., 0][..., None]
    a, b = 1.0 + weight * EARLIER, 1.0 + weight * (BEFORE - EARLIER)
    ways = np.log([3.0, 1.0, 1.0, 3.0, 1.0])
    logs = ways + betaln(a + NOW, b + TRIALS - NOW) - betaln(a, b)
    stored = fit["log_likelihood"]["successes"].values[:, :, 0]
    np.testing.assert_allclose(stored, logs, atol=1e-9)
    p = fit["posterior"]["p"].values[:, :, 0]
    density = fit["log_prior"]["p"].values[:, :, 0]
    np.testing.assert_allclose(density, a * np.log(p) + b * np.log1p(-p) - betaln(a, b), atol=1e-8)
    drawn = fit["prior"]["prior_weight"].values
    assert 0.4 < drawn.mean() < 0.6
    expected = quad(lambda w: (1.0 + w * 5.0) / (2.0 + w * 5.0), 0.0, 1.0)[0]
    p_of_first = fit["prior"]["p"].values[..., 0].mean()
    assert p_of_first == pytest.approx(expected, abs=0.05)
