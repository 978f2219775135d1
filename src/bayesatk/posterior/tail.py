"""How pass@k ends for large k: a power law, or a ceiling of questions that are never solved."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import proper_probability
from bayesatk.core.engine.distribution import Empirical
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.models_of import model_of
from bayesatk.posterior.posterior import FamilyFit
from bayesatk.results.result import Fit, Result
from bayesatk.results.views import ShownTable

_CEILING_FAMILY = "inflated"  # the family with an atom at 0
_COLUMNS = (
    "prob_ceiling", "ceiling", "ceiling_lower", "ceiling_upper",
    "exponent", "exponent_lower", "exponent_upper",
)  # fmt: skip
_NEGLIGIBLE_PROBABILITY = 0.0005  # not mentioned in a sentence


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def tail_exponent(fit: Fit, *, ci_prob: float | None = None) -> pd.DataFrame:
    """Estimate the exponent of the power law of ``1 - pass@k`` for large k, or its ceiling.

    Both are of questions like these. Where the density of success probabilities near 0 is
    proportional to ``p^(a - 1)``, the probability that all k trials fail is asymptotically
    proportional to ``k^-a`` [1]_. Under a Beta the exponent a is its alpha; under a mixture of
    Betas it is the smaller alpha. If a share of the questions is never solved, there is no power
    law but a ceiling: pass@k stays below one minus that share.

    Parameters
    ----------
    fit : xarray.DataTree
        Of right and wrong with partial pooling, from `bayesatk.evaluate` or `bayesatk.sample`; only
        its data and prior are used.
    ci_prob : float, optional
        Probability of the equal-tailed intervals; default: that of the result.

    Returns
    -------
    pandas.DataFrame
        One row per system: ``prob_ceiling``, the posterior probability of the inflated family, in
        which some questions are never solved; ``ceiling`` given that family (posterior mean and
        interval); ``exponent`` given the others (posterior median and interval). NaN for what no
        family of the prior has. ``sentence`` summarises the row.

    Raises
    ------
    ValueError
        If the result has no difficulty distribution of these families, or `ci_prob` is not a
        probability.

    See Also
    --------
    bayesatk.checks.extrapolation_range : bounds without a family of difficulties.

    Notes
    -----
    The posterior of the exponent has a median but no mean, because alpha grows without bound as the
    icc goes to 0. The probability of a ceiling depends on the families of the prior: under
    ``difficulty="beta"`` it is 0 whatever the data. n trials of a question do not distinguish p = 0
    from p much smaller than 1/n, so `ceiling` and `exponent` are two descriptions of the same
    counts; `bayesatk.checks.extrapolation_range` assumes neither.

    References
    ----------
    .. [1] Schaeffer et al. 2025, How do large language monkeys get their power (laws)?,
       arXiv:2502.17578.

    Examples
    --------
    Every question has one success in four trials, so questions are alike and none is impossible.

    >>> import bayesatk
    >>> solved = [[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]] * 10
    >>> fit = bayesatk.evaluate(solved, "pass@4", difficulty="beta", rng=1)
    >>> row = tail_exponent(fit).iloc[0]
    >>> float(row["prob_ceiling"]), bool(row["exponent_lower"] > 2)
    (0.0, True)
    """
    result = Result.of(fit)
    result.require("tail_exponent")
    level = result.ci_prob if ci_prob is None else ci_prob
    proper_probability("ci_prob", level, 0.95)
    rows = []
    for index, system in enumerate(result.systems):
        values = _tail(model_of(result, index), level)
        numbers = dict(zip(_COLUMNS, values.tolist(), strict=True))
        rows.append({"system": system, **numbers, "sentence": _sentence(system, numbers, level)})
    return ShownTable.of(pd.DataFrame(rows), "tail_exponent")


def _tail(model: CountModel, level: float) -> Array:
    """Return the values of the numeric columns of one system."""
    numbers = np.full(len(_COLUMNS), np.nan)
    ends = np.array([0.5, 0.5 * (1.0 - level), 0.5 * (1.0 + level)])
    laws = list(zip(model.families, model.family_share[0].tolist(), strict=True))
    with_atoms = [(fit, share) for fit, share in laws if fit.name == _CEILING_FAMILY]
    without_atoms = [
        (fit, share) for fit, share in laws if fit.name != _CEILING_FAMILY and share > 0.0
    ]
    numbers[0] = sum(share for _, share in with_atoms)
    if with_atoms:
        weight, ceiling = _on_points(with_atoms, _ceiling)
        numbers[1] = weight @ ceiling
        numbers[2:4] = Empirical(ceiling, weight).quantile(ends[1:])
    if without_atoms:
        weight, values = _on_points(without_atoms, _exponent)
        ratio = Empirical(values, weight).quantile(ends)
        numbers[4:] = ratio / (1.0 - ratio)
    return numbers


def _on_points(
    laws: list[tuple[FamilyFit, float]], function: Callable[[Nodes], Array]
) -> tuple[Array, Array]:
    """Return probabilities and values of a function of the difficulty distribution."""
    total = sum(share for _, share in laws)
    weight = np.concatenate([share / total * fit.points.weight for fit, share in laws])
    return weight, np.concatenate([function(fit.nodes(fit.points.theta)) for fit, _ in laws])


def _ceiling(nodes: Nodes) -> Array:
    """Share of questions that are ever solved."""
    return 1.0 - nodes.atoms[:, 0]


def _exponent(nodes: Nodes) -> Array:
    r"""Smallest alpha with a positive share, as :math:`\alpha / (1 + \alpha)`."""
    smallest = np.where(nodes.share > 0.0, nodes.alpha, np.inf).min(axis=1)
    return np.asarray(smallest / (1.0 + smallest))


def _sentence(system: object, row: dict[str, float], level: float) -> str:
    """Say how pass@k ends."""
    percent = f"{100 * level:g}%"
    law = (
        f"1 - pass@k falls like k^-{row['exponent']:.3g} for large k ({percent} interval of the "
        f"exponent {row['exponent_lower']:.3g} to {row['exponent_upper']:.3g})"
    )
    ceiling = (
        f"pass@k stays below {row['ceiling']:.3f} ({percent} interval {row['ceiling_lower']:.3f} "
        f"to {row['ceiling_upper']:.3f})"
    )
    chance = row["prob_ceiling"]
    if not chance > _NEGLIGIBLE_PROBABILITY:
        return f"{system}: {law}."
    share = f"{100 * chance:.0f}%" if chance < 0.995 else "over 99%"
    if np.isnan(row["exponent"]):
        return f"{system}: {ceiling}, for some questions are never solved."
    return (
        f"{system}: with probability {share} some questions are never solved, and {ceiling}; "
        f"otherwise {law}."
    )
