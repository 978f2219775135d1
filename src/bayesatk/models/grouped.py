"""Questions in groups in PyMC: the model of `bayesatk.evaluate` with groups, and its metrics."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.columns import GROUP
from bayesatk.data.grouping import Grouping, with_groups
from bayesatk.data.outcomes import Outcomes
from bayesatk.metrics.grid import Metric, MetricGrid
from bayesatk.models.derived import expected_metric
from bayesatk.models.difficulty_families import beta_parameters, log_beta_binomial
from bayesatk.models.parts import Part
from bayesatk.priors import HyperPrior
from bayesatk.results.difficulty import flat_draws
from bayesatk.results.question_groups import group_difficulties, grouped_p

Array = NDArray[np.float64]
_DIMS = ("chain", "draw", "system")
_STATES = ("state_successes", "state_trials", "state_count", "state_system", "state_group")
_Z = np.linspace(-8.0, 8.0, 65)  # effects of new groups, in sds: a rule that is exact to 1e-15


def build_grouped(
    data: object, group: object = GROUP, *, prior: HyperPrior | None = None
) -> pm.Model:
    """Beta-binomial model of questions in groups, one for each system.

    ``p ~ Beta`` within a group with mean ``group_mean`` and intraclass correlation ``icc``, p
    integrated; ``logit(group_mean) ~ Normal(logit(typical_p), group_sd)``.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Right and wrong.
    group : str, sequence or mapping
        As in `bayesatk.evaluate`.
    prior : HyperPrior, optional

    Returns
    -------
    pymc.Model
        Variables ``typical_p``, ``icc`` and ``group_sd`` by system, and ``group_mean(system,
        group)``.

    See Also
    --------
    bayesatk.sample : samples it, and works out the metrics.

    Examples
    --------
    >>> model = build_grouped([[1, 0], [1, 1], [0, 0]], ["law", "art", "art"])
    >>> sorted(variable.name for variable in model.free_RVs)
    ['group_effect', 'group_sd', 'icc', 'typical_p']
    """
    outcomes, own = with_groups(data, group), prior or HyperPrior()
    grouping = Grouping.of(outcomes.dataset[GROUP].values)
    coords = {"system": outcomes.systems, "group": grouping.labels}
    data = grouped_data(outcomes, grouping)
    with pm.Model(coords=coords) as model:
        c, n, count, system, of_group = (pm.Data(name, values) for name, values in data.items())
        typical = pm.Beta("typical_p", *own.mean, dims="system")
        icc = pm.Beta("icc", *own.icc, dims="system")
        sd = pm.HalfNormal("group_sd", own.group_sd, dims="system")
        effect = pm.Normal("group_effect", dims=("system", "group"))
        x = pt.log(typical) - pt.log1p(-typical)
        mean = pm.Deterministic(
            "group_mean", pm.math.sigmoid(x[:, None] + sd[:, None] * effect),
            dims=("system", "group"),
        )  # fmt: skip
        alpha, beta = beta_parameters(mean[system, of_group], icc[system])
        pm.Potential("log_likelihood", count * log_beta_binomial(alpha, beta, c, n))
    return model


def grouped_data(outcomes: Outcomes, grouping: Grouping) -> dict[str, NDArray[Any]]:
    """Return the values of the model's `pymc.Data` containers: all that depends on the data.

    Distinct counts, how many questions have them, and their system and group.
    """
    c, n = outcomes.successes.values, outcomes.trials.values
    system = np.repeat(np.arange(len(c)), c.shape[1])
    code = np.tile(grouping.code, len(c))
    rows = np.stack([c.ravel(), n.ravel(), system, code], axis=1)
    distinct, count = np.unique(rows, axis=0, return_counts=True)
    c, n, system, code = distinct.T
    found = c.astype(float), n.astype(float), count.astype(float), system, code
    return dict(zip(_STATES, found, strict=True))


def grouped_part(
    outcomes: Outcomes,
    grid: MetricGrid,
    posterior: xr.Dataset,
    grouping: Grouping,
    keep_p: bool,
    rng: np.random.Generator,
) -> tuple[Part, Array]:
    """Metrics of the whole by target, and draws (draws, system, group, metrics, target).

    Parameters
    ----------
    outcomes : Outcomes
    grid : MetricGrid
    posterior : xarray.Dataset
        Draws of the model above.
    grouping : Grouping
    keep_p : bool
    rng : numpy.random.Generator
    """
    c, n = outcomes.successes.values, outcomes.trials.values
    metrics, weight = list(grid), grouping.shares()
    whole, of_groups, kept = [], [], []
    for system in range(len(c)):
        counts = np.stack([n[system] - c[system], c[system]], axis=1)
        p = grouped_p(posterior, grouping, system, counts, rng)
        by_group = _by_group(posterior, system, metrics, grouping, p)
        own = [by_group[..., 0] @ weight, by_group[..., 1] @ weight]
        own.append(new_groups(posterior.isel(system=system), metrics))
        whole.append(np.stack(own, axis=-1))
        of_groups.append(np.moveaxis(by_group, 2, 1))
        kept += [p] * keep_p
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    values = np.stack(whole, axis=1)
    extra: dict[str, tuple[tuple[str, ...], Array]] = {
        name: (_DIMS, posterior[name].transpose(*_DIMS).values)
        for name in ("typical_p", "group_sd", "icc")
    }
    dims = (*_DIMS, "group")
    extra["group_mean"] = (dims, posterior["group_mean"].transpose(*dims).values)
    if keep_p:
        every = np.stack(kept, axis=1)
        extra["p"] = ((*_DIMS, "question"), every.reshape(*shape, *every.shape[1:]))
    part = Part(values.reshape(*shape, *values.shape[1:]), list(range(len(metrics))), extra)
    return part, np.stack(of_groups, axis=1)


def _by_group(
    posterior: xr.Dataset, system: int, metrics: Sequence[Metric], grouping: Grouping, p: Array
) -> Array:
    """Metrics of every group, (draws, metrics, group, target)."""
    found = np.empty((len(p), len(metrics), len(grouping.labels), 2))
    for g, difficulty in enumerate(group_difficulties(posterior, system)):
        own = p[:, grouping.code == g]
        for i, metric in enumerate(metrics):
            found[:, i, g, 0] = metric.latent(own).mean(axis=1)
            found[:, i, g, 1] = expected_metric(difficulty, metric)
    return found


def new_groups(own: xr.Dataset, metrics: Sequence[Metric]) -> Array:
    """Return expected metrics of a question of a new group, (draws, metrics).

    Parameters
    ----------
    own : xarray.Dataset
        Draws of ``typical_p``, ``group_sd`` and ``icc`` of one system.
    metrics : sequence of Metric
    """
    typical, sd, icc = (flat_draws(own[name]) for name in ("typical_p", "group_sd", "icc"))
    weight = np.exp(-0.5 * _Z**2)
    found = np.zeros((len(sd), len(metrics)))
    x = np.log(typical) - np.log1p(-typical)
    for z, share in zip(_Z, weight / weight.sum(), strict=True):
        difficulty = Difficulty.of_beta(1.0 / (1.0 + np.exp(-x - sd * z)), icc)
        for i, metric in enumerate(metrics):
            found[:, i] += share * expected_metric(difficulty, metric)
    return found
