"""Prior and predictive groups of sampled results, against those of closed forms."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import bayesatk as bk
from bayesatk.data.study import read_study
from bayesatk.metrics.grid import one_metric
from bayesatk.models.evidence import average
from bayesatk.models.metric_draws import drawn_hyperparameters, named_draws
from bayesatk.models.predictive import Predictive
from bayesatk.models.program import build_models
from bayesatk.models.question_draws import traced_laws
from bayesatk.posterior.analysis import _replicates
from bayesatk.posterior.models_of import system_model
from bayesatk.posterior.posterior import Draws
from bayesatk.priors import HyperPrior

TRIALS = np.array([4, 4, 3, 4, 2, 4])
RIGHT = np.array([1, 3, 2, 0, 2, 4])
GROUP = [0, 0, 0, 1, 1, 1]
GROUPS = ("prior", "log_prior", "prior_predictive", "posterior_predictive", "log_likelihood")


X = {"x": [-1.2, 0.1, 0.8, -0.4, 0.3, 1.1]}
LABELLED = np.array([[1, 1, 0, 0], [1, 0, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1]])
TRUTH = [[1, None, 0, None], [None, 0, 1, 1], [0, None, None, None], [1, 1, None, None],
         [None, None, None, None]]  # fmt: skip
STUDIES = {
    "one Beta": ("pass@1", {}),
    "two Betas": ("pass@2", {"difficulty": "mixture"}),
    "groups and covariates": ("pass@1", {"group": GROUP, "covariates": ["x"]}),
    "earlier trials": (
        "pass@1",
        {"prior_trials": ([1, 0, 2, 1, 2, 0], [2] * 6), "prior_weight": 0.5},
    ),
    "judge": ("pass@1", {"judge": bk.JudgeError(18, 20, 2, 20)}),
    "known truth": ("pass@1", {}),
    "categories": ("mean", {"prior": bk.priors.DirichletHyperPrior(), "group": GROUP}),
    "earlier levels": (
        "mean",
        {
            "prior": HyperPrior(icc=(2.0, 4.0), families="inflated", shape_scale=0.3),
            "prior_trials": ([[0], [2], [1], [2], [2], [0]], None),
            "prior_weight": 0.5,
        },
    ),
    "levels": ("mean", {"prior": HyperPrior(icc=(2.0, 4.0), families="beta", shape_scale=0.3)}),
}


def at_draws_of_the_prior(name: str, size: int):
    """A model, the engine's coordinates and effects of groups, and PyMC's groups at these draws."""
    metrics, options = STUDIES[name]
    data = bk.tally(RIGHT, trials=TRIALS, covariates=X)
    if name == "known truth":
        data = bk.tally(LABELLED, truth=TRUTH)
    elif metrics == "mean":
        scores = np.random.default_rng(2).integers(0, 3, (6, 4))
        data = bk.tally(scores, scores="numbers")
    if "prior_trials" in options:
        counts, trials = options["prior_trials"]
        if trials is None:
            earlier = bk.tally(counts, scores="numbers")
        else:
            earlier = bk.tally(np.array(counts), trials=np.array(trials))
        options = options | {"prior_trials": earlier}
    plain = {
        "pooling": "partial",
        "prior": None,
        "success": None,
        "prior_trials": None,
        "judge": None,
        "prior_weight": 1.0,
        "answer_prior": None,
        "ci_prob": 0.95,
        "keep": (),
        "group": None,
        "difficulty": None if "prior" in options else "beta",
        "covariates": None,
    }
    study = read_study(data, metrics, **(plain | options))
    models, rng = build_models(study), np.random.default_rng(1)
    ((family, pymc_model),) = models.items()
    drawn = pm.draw(pymc_model.free_RVs, size, random_seed=1)
    names = [variable.name for variable in pymc_model.free_RVs]
    posterior = xr.Dataset(
        {
            variable: (("chain", "draw", *pymc_model.named_vars_to_dims[variable]), values[None])
            for variable, values in zip(names, drawn, strict=True)
        }
    )
    labels = {
        dim: list(pymc_model.coords[dim]) for dim in posterior.dims if dim in pymc_model.coords
    }
    posterior = posterior.assign_coords(chain=[0], draw=np.arange(size), **labels)
    averaged = None
    if isinstance(study.prior, HyperPrior):
        averaged = average(study, {family: posterior}, rng)
    laws = traced_laws(study, posterior, 0, averaged and averaged.difficulties[0])
    variables = named_draws(study, posterior, [drawn_hyperparameters(study, posterior, 0, laws)])
    traces = {family: xr.DataTree.from_dict({"posterior": posterior})}
    result = xr.Dataset(variables).assign_coords(posterior.coords)
    groups = Predictive(study, models, traces, averaged, result, (), rng).groups()
    model = system_model(study, 0)
    fit = model.families[0]
    columns = []
    for field in fit.fields:
        values = dict(zip(names, drawn, strict=True))[
            {"mean": "mean_p"}.get(field.name, field.name)
        ]
        columns.append(field.distribution.coordinates(values[:, 0]).reshape(size, -1))
    theta, effect = np.concatenate(columns, axis=1), np.zeros((size, model.cells.groups))
    if "group_effect" in posterior:
        effect = (posterior["group_sd"] * posterior["group_effect"]).values[0, :, 0]
    return study, model, fit, theta, effect, groups


@pytest.mark.parametrize("name", STUDIES)
def test_pymc_has_the_likelihoods_priors_and_new_questions_of_the_engine(name) -> None:
    """At the same draws: nothing is shared between the two but the data and the declared prior."""
    size = 300
    study, model, fit, theta, effect, groups = at_draws_of_the_prior(name, size)
    predictor, cells = fit.predictor, model.cells
    offset = predictor.offsets(theta) + effect[:, cells.group]
    logs = predictor.log_cells_at(theta, offset) + model.states.log_ways
    earlier = model.earlier(fit)
    if earlier is not None:
        logs -= earlier.log_cells_at(theta, offset)
    (counts,) = groups["log_likelihood"].data_vars
    found = groups["log_likelihood"][counts].values[0, :, 0]
    near = np.abs(theta).max(axis=1) < 12.0  # beyond, the models bound parameters differently
    assert near.mean() > 0.9
    np.testing.assert_allclose(found[near], logs[near][:, cells.which], atol=2e-3)
    metric = model.scores is None and one_metric("pass@1")
    posterior = model.fit([metric or study.scale.judged(one_metric("mean"))])
    engine = sum(posterior._log_prior(fit, theta).values())
    sampled = sum(values.values[0, :, 0] for values in groups["log_prior"].data_vars.values())
    np.testing.assert_allclose(sampled[near], engine[near], atol=1e-5)
    rng = np.random.default_rng(3)
    new_p = predictor.draw_new(theta, effect, rng, earlier=False)
    drawn = Draws(np.zeros((size, 0)), posterior.reported(fit, theta), new_p=new_p)
    engine = _replicates(study, model, drawn, rng)
    sampled = groups["posterior_predictive"][counts].values[0, :, 0]
    for power in (1, 2):  # of new questions at the same hyperparameters
        gap = (engine**power - sampled**power).reshape(size, engine.shape[1], -1).mean(axis=1)
        error = gap.std(axis=0) / np.sqrt(size)
        assert (np.abs(gap.mean(axis=0)) < 4.5 * error + 1e-12).all()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "none"},
        {"pooling": "complete"},
        pytest.param({"group": GROUP, "difficulty": "inflated"}, marks=pytest.mark.long),
    ],
    ids=["none", "complete", "groups"],
)
def test_sampled_groups_agree_with_those_of_the_closed_form(options) -> None:
    data = bk.tally(RIGHT, trials=TRIALS)
    exact = bk.evaluate(data, "pass@1", draws=1000, rng=1, **options)
    sampled = bk.sample(
        data, "pass@1", draws=1000, rng=1, progress=False, sample_kwargs={"cores": 1}, **options
    )
    for name in GROUPS:
        first, second = exact[name].to_dataset(), sampled[name].to_dataset()
        assert set(first.data_vars) == set(second.data_vars) or name == "prior"
        assert set(first.data_vars) <= set(second.data_vars)
        for variable in first.data_vars:
            assert first[variable].dims == second[variable].dims
    first, second = (
        fit["posterior_predictive"]["successes"].mean(("chain", "draw")) for fit in (exact, sampled)
    )
    np.testing.assert_allclose(first, second, atol=0.12)
    first, second = (
        az.psense_summary(fit.sel(system="system"), var_names=["pass_at_k"], round_to=6)
        for fit in (exact, sampled)
    )
    np.testing.assert_allclose(first["prior"], second["prior"], atol=0.03)
    np.testing.assert_allclose(first["likelihood"], second["likelihood"], atol=0.05)
