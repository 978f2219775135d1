"""PyMC against the closed forms: every pooling, both forms, ragged data, two systems."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy.special import expit
from scipy.stats import betabinom

import bayesatk as bk
from bayesatk.models.mixing import mixing_notes
from tests.conftest import METRICS

INTERPRETED = {"mode": "FAST_COMPILE"}
SHORT = {"difficulty": "beta", "draws": 500, "tune": 500, "progress": False}


@pytest.mark.long
@pytest.mark.slow
def test_sampled_and_exact_trees_have_the_same_schema(ragged, tmp_path) -> None:
    fit = bk.evaluate(ragged, METRICS, difficulty="beta", rng=1, draws=500)
    sampled = bk.sample(ragged, METRICS, rng=1, keep=["p"], **SHORT)
    ours, theirs = fit["posterior"].to_dataset(), sampled["posterior"].to_dataset()
    assert set(ours.data_vars) | {"p"} == set(theirs.data_vars)
    for name, variable in ours.data_vars.items():
        assert variable.dims == theirs[name].dims
        assert variable.shape == theirs[name].shape
        for coordinate in variable.coords:
            np.testing.assert_array_equal(variable[coordinate], theirs[name][coordinate])
    path = bk.save(sampled, tmp_path / "sampled.nc")
    xr.testing.assert_equal(bk.load_result(path)["posterior"].to_dataset(), theirs)
    frame = bk.table(sampled)
    assert frame.loc[frame["metric"] == "bayes", "mean"].between(0, 1).all()


@pytest.mark.slow
def test_same_seed_gives_the_same_draws(ragged) -> None:
    one, two = (bk.sample(ragged, "pass@2", rng=4, **SHORT) for _ in range(2))
    xr.testing.assert_equal(one["posterior"].to_dataset(), two["posterior"].to_dataset())


def test_models_have_names_and_coordinates(ragged) -> None:
    partial = bk.models.build(ragged, form="full")
    assert [rv.name for rv in partial.free_RVs] == ["mean_p", "icc", "quantile"]
    assert list(partial.coords["system"]) == ["a", "b"]
    assert [rv.name for rv in partial.observed_RVs] == ["successes"]
    marginal = bk.models.build(ragged)
    assert [rv.name for rv in marginal.free_RVs] == ["mean_p", "icc"]
    complete = bk.models.build(ragged, pooling="complete", prior=bk.priors.BetaPrior(2, 3))
    assert [rv.name for rv in complete.free_RVs] == ["mean_p"]
    improper = bk.models.build(ragged, prior=bk.priors.HyperPrior.bda3())
    assert "improper_icc_prior" in improper.named_vars


def test_prior_predictive_works_on_the_full_form(ragged) -> None:
    with bk.models.build(ragged, form="full"):
        prior = pm.sample_prior_predictive(50, random_seed=1, compile_kwargs=INTERPRETED)
    drawn = prior["prior_predictive"]["successes"]
    assert bool((drawn <= ragged.trials.values).all())


def test_options_are_checked(ragged) -> None:
    with pytest.raises(ValueError, match="form must be"):
        bk.models.build(ragged, form="half")
    with pytest.raises(TypeError, match="must be a BetaPrior"):
        bk.models.build(ragged, pooling="none", prior=bk.priors.HyperPrior())


@pytest.mark.parametrize("icc", [(0.3, -0.3), (0.5, -0.5), (1.5, -1.5)])
def test_improper_priors_are_those_given(icc) -> None:
    """Log density of the model, up to a constant: prior of the logits times likelihood."""
    c, n = np.array([2, 9, 0]), 10
    model = bk.models.build(bk.tally((c, n)), prior=bk.priors.HyperPrior(icc=icc))
    logp = model.compile_logp()
    gaps = []
    for x, y in [(0.0, 0.0), (0.5, -4.0), (-1.0, 3.0)]:
        mean, r = expit([x, y])
        total = (1.0 - r) / r
        expected = betabinom(n, mean * total, (1.0 - mean) * total).logpmf(c).sum()
        expected += np.log(mean * (1.0 - mean)) + icc[0] * np.log(r) + icc[1] * np.log1p(-r)
        gaps.append(logp({"mean_p_logodds__": [x], "icc_interval__": [y]}) - expected)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)


@pytest.mark.parametrize("icc", [(0.5, -0.4), (0.0, 0.0), (np.inf, -np.inf), (1.0,), 1.0])
def test_other_improper_priors_are_refused(icc) -> None:
    with pytest.raises(ValueError, match="prior: icc must be two Beta parameters > 0"):
        bk.priors.HyperPrior(icc=icc)


@pytest.mark.long
def test_categories_are_alike_wherever_questions_hardly_differ() -> None:
    """There a density of mere rounding errors would get one chain in a hundred stuck."""
    data = bk.tally([[0, 1, 2, 2], [2, 1, 0, 2]], scores={0: 0.0, 1: 0.5, 2: 1.0})
    flat = 8.0 * np.log(1.0 / 3.0)  # trials alike in all questions, in their order
    orders = np.log(12.0) * 2  # of four trials, of which two are of one category
    ordered = {"mean_p_logodds__": np.zeros(1), "shape": np.zeros((1, 1))}
    for prior, point, expected, error in (
        # PyMC takes differences of log-gammas of some 1e10.
        (
            bk.priors.DirichletHyperPrior(),
            {"mean_p_simplex__": np.zeros((1, 2))},
            flat + orders,
            1e-3,
        ),
        # The narrowest law of the grid.
        (bk.priors.HyperPrior(families="beta"), ordered, flat + orders, 0.01),
    ):
        model = bk.models.build(data, "bayes", prior=prior)
        terms = [*model.observed_RVs, *model.potentials]
        log_density = model.compile_logp(vars=terms, jacobian=False)
        slope = model.compile_dlogp()
        for logit in (-20.0, -35.0, -60.0, -200.0, -700.0):
            at = point | {"icc_logodds__": np.array([logit])}
            assert float(log_density(at)) == pytest.approx(expected, abs=error)
            assert np.isfinite(slope(at)).all()


def test_chains_that_have_not_mixed_are_noted() -> None:
    rng = np.random.default_rng(1)
    calm = xr.Dataset({"diverging": (("chain", "draw"), np.zeros((4, 500), bool))})
    values = rng.normal(size=(4, 500, 2))
    dims = ("chain", "draw", "system")
    good = xr.Dataset({"icc": (dims, values), "p": (dims, values + 9.0 * np.eye(4)[:, :1, None])})
    assert mixing_notes(good, [calm]) == []
    values = values.copy()
    values[3, :, 1] = 0.0
    (note,) = mixing_notes(good.assign(icc=(dims, values)), [calm])
    assert note.startswith("the chains have not mixed: R-hat is ")
    assert " for icc, " in note
    diverging = calm.copy(data={"diverging": np.arange(2000).reshape(4, 500) < 30})
    assert mixing_notes(good, [calm, diverging]) == []
    diverging = calm.copy(data={"diverging": np.arange(2000).reshape(4, 500) < 50})
    (note,) = mixing_notes(good, [calm, diverging])
    assert note.startswith("the chains may have missed")
    assert "50 of 4000 transitions" in note


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.arange(1000.0)[None], "R-hat is 3"),  # one chain, judged by its halves
        (np.arange(4.0)[:, None].repeat(1000, 1), "R-hat is infinite or unknown"),
        (np.random.default_rng(0).normal(size=(4, 2)), "R-hat is infinite or unknown"),
        (np.ones((1, 100)), None),
        (np.random.default_rng(1).normal(size=(1, 2000)), None),
    ],
)
def test_chains_that_cannot_be_judged_are_not_called_mixed(values, said) -> None:
    calm = xr.Dataset({"diverging": (("chain", "draw"), np.zeros(values.shape, bool))})
    notes = mixing_notes(xr.Dataset({"x": (("chain", "draw"), values)}), [calm])
    assert [said in one for one in notes] == ([True] if said else [])


@pytest.mark.long
def test_notes_of_sampling_reach_the_reader() -> None:
    short = bk.sample(
        [[0, 1], [1, 1]],
        "pass@1",
        difficulty="beta",
        draws=20,
        tune=1,
        rng=1,
        chains=2,
        progress=False,
    )
    (note,) = short.notes
    assert "have not mixed" in note
