"""The models sample on the data that broke earlier ones, and their evidence is the exact one."""

from collections.abc import Callable
from typing import Any

import arviz as az
import numpy as np
import nutpie
import pymc as pm
import pytest
import xarray as xr
from scipy.special import gammaln

import bayesatk as bk

RNG = np.random.default_rng(1)
LENGTHS = RNG.integers(1, 9, 8)
DATA = {
    "all right": (np.full(20, 4), np.full(20, 4)),
    "all wrong": (np.zeros(20, int), np.full(20, 4)),
    "single trials": (RNG.binomial(1, 0.6, 40), np.ones(40, int)),
    "one question": ([3], [5]),
    "one trial": ([1], [1]),
    "two kinds of questions": (np.repeat([0, 8], 15), np.full(30, 8)),
    "questions nearly alike": (RNG.binomial(16, 0.5, 200), np.full(200, 16)),
    "unequal trials": (RNG.binomial(LENGTHS, 0.5), LENGTHS),
    "many questions": (RNG.binomial(4, RNG.beta(0.6, 0.9, 2000)), np.full(2000, 4)),
    "many trials": (RNG.binomial(10_000, RNG.beta(0.6, 0.9, 100)), np.full(100, 10_000)),
}


@pytest.fixture(scope="module")
def marginal() -> Callable[[pm.Model], Any]:
    """One program for all data."""
    program = nutpie.compile_pymc_model(bk.models.build([[1, 0]]))
    return lambda model: program.with_data(**{one.name: one.get_value() for one in model.data_vars})


def mixed(trace: xr.DataTree, names: list[str]) -> None:
    """R-hat of at most 1.01, and one transition in a hundred that diverged."""
    for name, value in az.rhat(trace["posterior"].to_dataset()[names]).items():
        assert float(value.max()) <= 1.01, name
    assert float(trace["sample_stats"]["diverging"].mean()) <= 0.01


@pytest.mark.long
@pytest.mark.parametrize("name", DATA)
def test_the_marginal_form_mixes(marginal, name) -> None:
    model = bk.models.build(bk.tally(DATA[name]))
    trace = nutpie.sample(
        marginal(model), draws=1000, tune=1000, chains=4, cores=1, seed=3, progress_bar=False
    )
    mixed(trace, ["mean_p", "icc"])


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in DATA if name != "many questions"])
def test_the_full_form_mixes(name) -> None:
    """With p beside it, given hyperparameters and counts: its mean is that of the exact result."""
    data = bk.tally(DATA[name])
    with bk.models.build(data, form="full"):
        trace = pm.sample(
            1000,
            tune=1000,
            chains=4,
            cores=1,
            random_seed=3,
            progressbar=False,
            nuts_sampler="nutpie",
        )
    mixed(trace, ["mean_p", "icc", "p"])
    fit = bk.evaluate(data, "pass@2", difficulty="beta", rng=1)
    mine = bk.from_draws(trace, data, "pass@2", rng=1)
    exact, own = (
        bk.table(one).query("target == 'questions'")[["mean", "sd"]].to_numpy()[0]
        for one in (fit, mine)
    )
    np.testing.assert_allclose(own, exact, atol=0.1 * exact[1])


RIGHT = np.array([0, 0, 0, 1, 2, 3, 4, 4])
SCORED = bk.tally(
    [[0, 1, 2, 2], [2, 1, 0, 2], [2, 2, 2, 1], [0, 0, 1, 0]], scores={0: 0.0, 1: 0.5, 2: 1.0}
)
UNORDERED = bk.priors.DirichletHyperPrior()


def log_orders(counts: np.ndarray) -> float:
    """Log of the number of orders of trials with these counts."""
    return float((gammaln(counts.sum(axis=-1) + 1) - gammaln(counts + 1).sum(axis=-1)).sum())


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {"difficulty": "beta"},
        {"difficulty": "inflated"},
        {"difficulty": "mixture"},
        {"difficulty": "beta", "judge": bk.JudgeError(tp=55, p=60, fp=5, n=60)},
        {"difficulty": "beta", "group": [0, 0, 0, 0, 1, 1, 1, 1]},
        {"prior": UNORDERED},
        {"prior": bk.priors.HyperPrior(families="beta")},
    ],
    ids=["beta", "inflated", "mixture", "judge", "groups", "categories", "levels"],
)
def test_evidence_of_every_law_by_sequential_monte_carlo(options) -> None:
    """PyMC's estimate is of counts; the library's of trials in their order."""
    scored = "prior" in options
    data: Any = SCORED if scored else bk.tally((RIGHT, np.full(8, 4)))
    metric = "bayes" if scored else "pass@1"
    with bk.models.build(data, metric, **options):
        trace = pm.sample_smc(1500, chains=2, cores=1, random_seed=1, progressbar=False)
    stages = trace["sample_stats"]["log_marginal_likelihood"].values
    found = [float(np.ravel(of_chain)[-1]) for of_chain in stages]
    exact = float(bk.checks.log_evidence(bk.evaluate(data, metric, rng=1, **options)).item())
    counts = data.dataset["count"].values[0] if scored else np.stack([RIGHT, 4 - RIGHT], -1)
    exact += log_orders(counts)
    assert np.mean(found) == pytest.approx(exact, abs=0.1)
