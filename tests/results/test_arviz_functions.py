"""Functions of ArviZ on every kind of fit: the table of `docs/schema.md`, line by line."""

import re
import warnings
from functools import cache, partial
from pathlib import Path

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy.stats import betabinom

import bayesatk as bk

TRIALS = np.full(8, 4)
RIGHT = np.array([0, 1, 1, 2, 2, 3, 4, 4])
GROUP = [0, 0, 0, 1, 1, 1, 2, 2]
X = np.linspace(-1.0, 1.0, 8).tolist()
JUDGE = bk.JudgeError(18, 20, 2, 20)
SCORES = {0: 0.0, 1: 0.5, 2: 1.0}
GRADES = np.array([[0, 0, 1, 0], [1, 1, 0, 2], [2, 2, 1, 2], [0, 1, 0, 0], [1, 2, 1, 1]])
EARLIER = {"prior_trials": bk.tally(np.minimum(RIGHT, 1), trials=np.ones(8, int))}
KINDS: dict[str, dict] = {
    "averaged": {},
    "beta": {"difficulty": "beta"},
    "none": {"pooling": "none"},
    "complete": {"pooling": "complete"},
    "groups": {"group": GROUP},
    "covariates": {"covariates": ["x"]},
    "judge": {"judge": JUDGE},
    "weights": {},
    "prior trials": EARLIER,
    "categories": {},
    "covariates, judge and prior trials": {"covariates": ["x"], "judge": JUDGE, **EARLIER},
    "judge, without pooling": {"pooling": "none", "judge": JUDGE},
    "categories, without pooling": {"pooling": "none"},
    "categories, complete pooling": {"pooling": "complete"},
    "truth": {"difficulty": "beta"},
    "votes": {"difficulty": "beta"},
    "one of two systems": {"difficulty": "beta"},
}
TRUTH = np.where(np.arange(32).reshape(8, 4) % 3 == 0, np.arange(32).reshape(8, 4) % 2, np.nan)
ANSWERS = np.array([[["x", "y", "z"][(q * t) % 3] for t in range(4)] for q in range(8)])


@cache
def fitted(kind: str):
    options = dict(draws=100, rng=1, **KINDS.get(kind, {}))
    if "categories" in kind:
        return bk.evaluate(bk.tally(GRADES, scores=SCORES), "bayes", **options)
    if kind == "truth":
        marks = np.arange(4) < RIGHT[:, None]
        return bk.evaluate(bk.tally(marks.astype(float), truth=TRUTH), "pass@1,2", **options)
    if kind == "votes":
        data = bk.tally((ANSWERS == "x").astype(float), answers=ANSWERS)
        return bk.evaluate(data, "pass@1,2 plurality@2", **options)
    if kind == "one of two systems":
        both = np.stack([RIGHT, RIGHT[::-1]]), np.stack([TRIALS, TRIALS])
        return bk.evaluate(bk.tally(both, systems=["other", "system"]), "pass@1,2", **options)
    if kind == "sampled":
        quiet = {"tune": 300, "chains": 4, "progress": False}
        return bk.sample((RIGHT, TRIALS), "pass@1,2", difficulty="beta", **options | quiet)
    columns = {"covariates": {"x": X}, "weight": [1.0, 2.0] * 4 if kind == "weights" else None}
    return bk.evaluate(bk.tally(RIGHT, trials=TRIALS, **columns), "pass@1,2", **options)


def column(kind: str) -> str:
    """Column of the table that has a kind."""
    if "categories" in kind:
        return "scored categories"
    return "without pooling" if "none" in kind or "without" in kind else "other"


def shared(fit) -> list[str]:
    """Variables of prior and posterior."""
    return [name for name in fit["prior"].data_vars if name in fit["posterior"]]


def count(fit) -> str:
    return next(iter(fit["observed_data"].data_vars))


def renamed(fit):
    """ArviZ names a dimension of its own "group"."""
    return fit.map_over_datasets(
        lambda own: own.rename(group="topic") if "group" in own.dims else own
    )


def drawn(name: str, fit, **options):
    return getattr(az, name)(fit, backend="matplotlib", **options)


CALLS = {
    "summary": az.summary,
    "loo": az.loo,
    "loo_i": partial(az.loo_i, 0),
    "loo_expectations": az.loo_expectations,
    "loo_influence": az.loo_influence,
    "loo_r2": lambda fit: az.loo_r2(fit, var_name=count(fit)),
    "loo_subsample": lambda fit: az.loo_subsample(fit, 4, var_name=count(fit)),
    "compare": lambda fit: az.compare({"first": fit, "second": fit}),
    "weight_predictions": lambda fit: az.weight_predictions([fit, fit], weights=[0.5, 0.5]),
    "loo_pit": az.loo_pit,
    "loo_metrics": az.loo_metrics,
    "loo_score": az.loo_score,
    "metrics": az.metrics,
    "psense": az.psense,
    "psense_summary": az.psense_summary,
    "bayes_factor": lambda fit: az.bayes_factor(fit, var_names=shared(fit)[0], ref_vals=0.5),
    "plot_bf": lambda fit: drawn("plot_bf", renamed(fit), var_names=shared(fit)[0], ref_val=0.5),
    "plot_prior_posterior": lambda fit: drawn("plot_prior_posterior", renamed(fit)),
    "plot_pair": lambda fit: drawn("plot_pair", fit, var_names=shared(fit)[0]),
    "plot_khat": lambda fit: drawn("plot_khat", az.loo(fit, pointwise=True)),
    "plot_compare": lambda fit: drawn("plot_compare", az.compare({"a": fit, "b": fit})),
} | {
    name: partial(drawn, name)
    for name in (
        "plot_forest", "plot_dist", "plot_ridge", "plot_trace", "plot_trace_dist", "plot_rank",
        "plot_autocorr", "plot_ess", "plot_mcse", "plot_psense_dist",
        "plot_psense_quantities", "plot_ppc_dist", "plot_ppc_tstat", "plot_loo_pit",
        "plot_loo_interval", "plot_loo_pava", "plot_ppc_pit", "plot_ppc_dist_pit",
        "plot_ppc_rootogram", "plot_ppc_interval", "plot_ppc_pava", "plot_ppc_censored",
    )
} | {
    name: getattr(az, name)
    for name in ("ess", "rhat", "mcse", "eti", "hdi", "mean", "median", "mode", "std", "var",
                 "mad", "iqr", "kde", "histogram", "qds", "extract", "thin", "diagnose")
} | {"ci_in_rope": lambda fit: az.ci_in_rope(fit, rope=(0.4, 0.6))}  # fmt: skip
PAGE = Path(__file__).parents[2] / "docs" / "schema.md"
ROW = re.compile(r"^\| (`az\..*`) \| (yes|no|.*) \| (yes|no|.*) \| (yes|no|.*) \|$", re.M)


@cache
def table() -> dict[str, dict[str, str]]:
    """Table of the documentation: what it says of each function, by column."""
    rows = {}
    for functions, *cells in ROW.findall(PAGE.read_text()):
        for name in re.findall(r"az\.(\w+)", functions):
            words = zip(("other", "without pooling", "scored categories"), cells, strict=True)
            rows[name] = dict(words)
    return rows


def test_the_table_names_the_functions_that_are_tried() -> None:
    assert set(table()) == set(CALLS)
    assert all(hasattr(az, name) for name in CALLS)


# Those of ten seconds, and what they have beside the others.
LONG = {
    "covariates, judge and prior trials", "categories", "groups", "judge", "covariates",
    "categories, complete pooling", "truth", "votes", "one of two systems",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.long] * (kind in LONG)) for kind in [*KINDS, "sampled"]],
)
def test_functions_work_where_the_table_says(kind) -> None:
    assert failures(fitted(kind).sel(system="system"), kind) == []


OF_PRIOR = {"bayes_factor", "plot_bf", "plot_prior_posterior", "plot_pair", "psense",
            "psense_summary", "plot_psense_dist", "plot_psense_quantities"}  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
def test_functions_work_on_draws_of_your_own_model() -> None:
    """All but those of a prior, which a result of draws does not have."""
    pm = pytest.importorskip("pymc")
    with bk.models.build((RIGHT, TRIALS), form="full"):
        trace = pm.sample(100, tune=300, chains=4, cores=1, random_seed=1, progressbar=False)
        quiet = {"progressbar": False, "compile_kwargs": {"mode": "FAST_COMPILE"}}
        trace = pm.sample_posterior_predictive(trace, extend_inferencedata=True, **quiet)
    (counts,) = trace["observed_data"].data_vars
    mean, size = trace["posterior"]["mean_p"], 1.0 / trace["posterior"]["icc"] - 1.0
    logs = xr.apply_ufunc(  # of the counts, with p integrated out
        betabinom.logpmf,
        trace["observed_data"][counts],
        xr.DataArray(TRIALS, dims="question"),
        mean * size,
        (1.0 - mean) * size,
    ).transpose("chain", "draw", ...)
    trace["log_likelihood"] = xr.Dataset({counts: logs})
    own = bk.from_draws(trace, (RIGHT, TRIALS), "pass@1,2", rng=1)
    assert set(failures(own.sel(system="system"), "own")) <= OF_PRIOR


def failures(fit, kind: str) -> list[str]:
    """Functions that do not do what the table says."""
    import matplotlib.pyplot as plt

    wrong = []
    for name, call in CALLS.items():
        if name.startswith("plot") and kind in ("weights", "prior trials"):
            continue  # as of averaged families
        if name.startswith("plot_psense") and kind == "judge, without pooling":
            continue  # drawn, of the rates
        works = table()[name][column(kind)].startswith("yes")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ArviZ's own, on small numbers of draws
            try:
                call(fit)
                outcome = True
            except Exception:
                outcome = False
        plt.close("all")
        if works != outcome:
            wrong.append(name)
    return wrong


def test_attributes_say_how_hyperparameters_were_drawn() -> None:
    for kind in ("none", "complete", "beta"):
        assert fitted(kind)["posterior"].attrs["sampling"] == "exact"
    attrs = fitted("groups")["posterior"].attrs
    assert attrs["sampling"] == "importance"
    assert attrs["pareto_k"] < 0.7
    assert 100 < attrs["effective_draws"] < np.inf


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_fit_has_every_group(kind) -> None:
    fit = fitted(kind)
    groups = {"prior", "log_prior", "prior_predictive", "posterior_predictive", "log_likelihood"}
    assert groups <= set(fit.children)
    assert fit["log_likelihood"].attrs["unit"] == "question of a system"
    observed = fit["observed_data"][count(fit)]
    for name in ("prior_predictive", "posterior_predictive"):
        replicated = fit[name][count(fit)]
        assert replicated.dims[2:] == observed.dims
        assert int(replicated.max()) <= 4
    assert shared(fit)
    for name in shared(fit):
        assert fit["prior"][name].dims == fit["posterior"][name].dims
    assert all(np.isfinite(values).all() for values in fit["log_prior"].data_vars.values())
