"""Simulation-based calibration: whether a posterior is right on data from its own prior.

Talts et al. 2018, arXiv:1804.06788. Parameters and data are drawn from a PyMC model; where the true
value falls among independent draws of its posterior must be uniform.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from pytensor.graph.traversal import ancestors
from scipy.special import ndtr, ndtri
from scipy.stats import kstest

from bayesatk._tools.arrays import Array, Rng
from bayesatk._tools.messages import ArgumentError, proper_probability, whole_number
from bayesatk._tools.progress import track
from bayesatk.models.predictive import quietly
from bayesatk.models.sampling import Sampling
from bayesatk.results.citations import TALTS
from bayesatk.results.schema import chain_dataset

Drawn = Mapping[str, Array]
Posterior = Callable[[Drawn, Rng], Any]
_THIN = 5  # of NUTS, until draws are all but independent
_NUTS = Sampling(draws=500, tune=1000, chains=2, options={"cores": 1})


@dataclass(frozen=True)
class Calibration:
    """Result of simulation-based calibration, made by `calibrate`.

    Parameters
    ----------
    tree : xarray.DataTree
        Group ``prior_sbc``: for every quantity, the share of posterior draws below the true value,
        dims ``(chain=1, draw=replication)``, for `arviz.plot_ecdf_pit`.
    alpha : float
        Upper bound on the probability, over replications, that the table reports an error in any
        quantity of a correct posterior.

    See Also
    --------
    bayesatk.plots.plot_calibration : shows the ranks.
    """

    tree: xr.DataTree
    alpha: float = 0.01

    @property
    def table(self) -> pd.DataFrame:
        """One row per quantity: tests of location, spread and shape, and their power.

        ``bias`` and ``spread`` are the mean and the sd of the normal scores of the ranks (0 and 1
        for a correct posterior); ``p_value`` is the smallest of three tests (location, spread,
        Kolmogorov-Smirnov), Bonferroni corrected over all quantities and tests. A bias of
        ``detectable_bias`` (in posterior sds) or a spread of ``detectable_spread`` would be
        reported as an error with probability 0.9.
        """
        group = self.tree["prior_sbc"].to_dataset()
        tests = 3 * len(group.data_vars)
        needed = float(ndtri(1.0 - self.alpha / (2.0 * tests)) + ndtri(0.9))
        rows = []
        for name, variable in group.data_vars.items():
            pit = variable.values.ravel()
            z = ndtri(pit)
            size = len(z)
            location = 2.0 * ndtr(-abs(z.mean()) * np.sqrt(size))
            spread = 2.0 * ndtr(-abs((z**2).mean() - 1.0) * np.sqrt(size / 2.0))
            shape = float(kstest(pit, "uniform").pvalue)
            p_value = min(1.0, tests * min(location, spread, shape))
            rows.append(
                {
                    "quantity": str(name),
                    "bias": float(z.mean()),
                    "spread": float(z.std()),
                    "p_value": p_value,
                    "detectable_bias": needed / np.sqrt(size),
                    "detectable_spread": needed / np.sqrt(2.0 * size),
                    "verdict": "wrong" if p_value < self.alpha else "calibrated",
                }
            )
        return pd.DataFrame(rows).set_index("quantity")

    @property
    def verdict(self) -> Literal["calibrated", "wrong"]:
        """``"wrong"`` if any quantity is, else ``"calibrated"``."""
        return "wrong" if (self.table["verdict"] == "wrong").any() else "calibrated"

    def __str__(self) -> str:
        """Return the verdict in one line."""
        table = self.table
        wrong = table.index[table["verdict"] == "wrong"]
        which = f" ({', '.join(wrong)})" if len(wrong) else ""
        return (
            f"{self.verdict.upper()}{which}: {len(table)} quantities in "
            f"{self.tree['prior_sbc'].sizes['draw']} data sets; probability of any false 'wrong' "
            f"at most {self.alpha:g}. Noticed with probability 0.9: posteriors off by "
            f"{table['detectable_bias'].max():.2g} sd, sds by "
            f"{100 * table['detectable_spread'].max():.0f}%."
        )


def calibrate(
    model: pm.Model,
    posterior: Posterior | None = None,
    *,
    replications: int = 200,
    rng: int = 0,
    alpha: float = 0.01,
    progress: bool | None = None,
) -> Calibration:
    """Check posteriors by simulation-based calibration: ranks of true values in the posterior.

    Parameters and data are drawn from the model, again and again. For a correct posterior the share
    of its draws below the true value is uniform over replications (Talts et al. 2018).

    Parameters
    ----------
    model : pymc.Model
        Any model whose prior is proper: yours, or one of `bayesatk.models.build`.
    posterior : callable, optional
        ``posterior(data, rng)`` returns what has a group ``posterior`` of independent draws, as
        `bayesatk.evaluate` and ``pm.sample`` do; ``data`` has the drawn values of the observed
        variables by name. Default: NUTS on the model, which is compiled once and whose observed
        values must be in containers, ``observed=pm.Data("y_data", y)``.
    replications : int
        Number of simulated data sets.
    rng : int
        Seed.
    alpha : float
        As in `Calibration`.
    progress : bool, optional
        Show a progress bar. Default: after two seconds, if the output is a terminal.

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        If the model has potentials, from which nothing can be drawn, if NUTS cannot exchange its
        data, or if the posterior has no variable of the model.

    See Also
    --------
    bayesatk.plots.plot_calibration : shows the ranks.
    bayesatk.verify : compares exact and sampled posteriors of one data set.

    Notes
    -----
    Quantities are the variables that model and posterior both have, by their names: numbers as they
    are, and of arrays the first entry and the mean of all. For a metric add its value to the model,
    such as ``pm.Deterministic("pass@2", (1 - (1 - p) ** 2).mean())``.

    References
    ----------
    Talts, Betancourt, Simpson, Vehtari and Gelman 2018, arXiv:1804.06788.

    Examples
    --------
    The exact posterior of five success probabilities, of three trials each.

    >>> import bayesatk
    >>> model = bayesatk.models.build(([0] * 5, 3), pooling="none")
    >>> def exact(data, rng):
    ...     options = {"pooling": "none", "keep": ["p"], "draws": 50, "rng": rng}
    ...     return bayesatk.evaluate((data["successes"], 3), "pass@1", **options)
    >>> found = calibrate(model, exact, replications=60, rng=1, progress=False)
    >>> found.verdict, list(found.table.index)
    ('calibrated', ['p first', 'p mean'])
    """
    number, seed = whole_number("replications", replications), whole_number("rng", rng, 0)
    proper_probability("alpha", alpha, 0.01)
    if not isinstance(model, pm.Model):
        raise ArgumentError(
            "model",
            f" must be a pymc.Model; got {type(model).__name__}. Pass your own, or "
            "bayesatk.models.build(data, metrics, form='full').",
        )
    if model.potentials:
        names = ", ".join(potential.name for potential in model.potentials)
        raise ArgumentError(
            "model",
            f" must have no potentials, from which nothing can be drawn; got {names}. "
            "Write observed variables; models of bayesatk.models.build have them in form='full'.",
        )
    ask, rows = posterior or _nuts(model), []
    with quietly():
        drawn = pm.sample_prior_predictive(
            number, model, random_seed=seed, compile_kwargs={"mode": "FAST_COMPILE"}
        )
    by_group = {
        "prior": [*model.free_RVs, *model.deterministics],
        "prior_predictive": model.observed_RVs,
    }
    for replication in track(range(number), "calibration", number, progress):
        generator = np.random.default_rng([seed, replication])
        truth, data = (
            {one.name: drawn[group][one.name].values[0, replication] for one in variables}
            for group, variables in by_group.items()
        )
        rows.append(_places(truth, ask(data, generator), generator))
    group = chain_dataset({name: np.array([[row[name] for row in rows]]) for name in rows[0]})
    tree = xr.DataTree.from_dict({"/prior_sbc": group})
    tree.attrs |= {
        "method": "simulation-based calibration",
        "seed": seed,
        "citations": json.dumps([TALTS]),
    }
    return Calibration(tree, alpha)


def _places(truth: Drawn, fit: Any, rng: Rng) -> dict[str, float]:
    """Return places of true values among draws of the posterior, by quantity."""
    posterior, places = fit["posterior"], {}
    for name, value in truth.items():
        if name not in posterior:
            continue
        drawn = posterior[name].transpose("chain", "draw", ...).values
        drawn, value = drawn.reshape(drawn.shape[0] * drawn.shape[1], -1), np.ravel(value)
        if drawn.shape[1] != value.size:
            raise ArgumentError(
                "posterior",
                f" must have variables of the shapes of the model; {name!r} has "
                f"{drawn.shape[1]} entries in a draw, and {value.size} in the model. Leave it out "
                "of the group, or rename it.",
            )
        if value.size == 1:
            places[name] = _place(value[0], drawn[:, 0], rng)
        else:
            places[f"{name} first"] = _place(value[0], drawn[:, 0], rng)
            places[f"{name} mean"] = _place(value.mean(), drawn.mean(axis=1), rng)
    if not places:
        raise ArgumentError(
            "posterior",
            f" must have a variable of the model, {', '.join(truth)}; got "
            f"{', '.join(map(str, posterior))}. Give variables the same names.",
        )
    return places


def _place(value: float, draws: Array, rng: Rng) -> float:
    """Rank of the truth among the draws, ties and the gap it falls in broken at random."""
    below, same = int((draws < value).sum()), int((draws == value).sum())
    rank = below + rng.integers(0, same + 1)
    return float((rank + rng.random()) / (len(draws) + 1))


def _nuts(model: pm.Model) -> Posterior:
    """Return what samples the model given other data with NUTS; it is compiled here."""
    import nutpie

    containers = {variable.name: _container(model, variable) for variable in model.observed_RVs}
    program = nutpie.compile_pymc_model(model)

    def posterior(data: Drawn, rng: Rng) -> Any:
        exchanged = {
            containers[name].name: np.asarray(value, containers[name].get_value().dtype)
            for name, value in data.items()
        }
        trace = _NUTS.run(model, int(rng.integers(2**31)), lambda _: program.with_data(**exchanged))
        return {"posterior": trace["posterior"].to_dataset().isel(draw=slice(None, None, _THIN))}

    return posterior


def _container(model: pm.Model, variable: Any) -> Any:
    """Return the container of the values that a variable observes."""
    above = set(ancestors([model.rvs_to_values[variable]]))
    containers = [data for data in model.data_vars if data in above]
    if len(containers) != 1:
        raise ArgumentError(
            "model",
            " must observe values in containers, so that NUTS can be given others; "
            f"{variable.name!r} observes an array. Write observed=pm.Data('{variable.name}_data', "
            "...), or pass a posterior of your own.",
        )
    return containers[0]
