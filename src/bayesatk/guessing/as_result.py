"""The best of t random guessers as InferenceData, for `verify` and for plots."""

import json

import numpy as np
import xarray as xr

from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.guessing.distributions import PoissonBinomial
from bayesatk.results.citations import YAUNEY
from bayesatk.results.schema import SCHEMA_VERSION, STATISTICS, build

_CHAINS = 4


def random_baseline_distribution(
    n: int,
    p: object,
    t: float = 10,
    *,
    correlation: float = 0.0,
    ci_prob: float = 0.95,
    draws: int = 1000,
    rng: RandomSource = None,
) -> xr.DataTree:
    """Distribution of the best of t random guessers, as InferenceData.

    Parameters
    ----------
    n, p, t, correlation
        As in `bayesatk.guessing.MaxOrderStatisticPoissonBinomial`.
    ci_prob : float
        Probability of the equal-tailed interval.
    draws : int
        Independent draws in each of 4 chains.
    rng : int, numpy.random.Generator or None
        Seed of the draws.

    Returns
    -------
    xarray.DataTree
        Groups ``prior`` (draws of ``best_correct`` and ``best_accuracy``), ``closed_form`` (exact
        mean, sd and interval of both) and ``closed_form_cdf`` (``best_correct``: the whole
        distribution function, by ``count``).

    See Also
    --------
    bayesatk.models.sample_random_baseline : the same variables from PyMC.
    bayesatk.verify : compares the two.

    Examples
    --------
    >>> tree = random_baseline_distribution(2, 0.5, t=2, rng=1)
    >>> tree["closed_form_cdf"]["best_correct"].values.round(12).tolist()
    [0.0625, 0.5625, 1.0]
    """
    if not 0.0 < ci_prob < 1.0:
        raise ValueError(f"ci_prob must lie strictly between 0 and 1; got {ci_prob}. Try 0.95.")
    generator, seed = resolve_rng(rng)
    best = PoissonBinomial(p, n).largest_of(t, correlation=correlation)
    counts = np.arange(best.support()[0], best.support()[1] + 1)
    statistics = np.full(len(STATISTICS), np.nan)
    statistics[1:6] = best.mean(), best.std(), *best.interval(ci_prob), 0.0
    drawn = np.asarray(best.rvs((_CHAINS, draws), generator))
    dims = ("chain", "draw")
    groups = {
        "prior": xr.Dataset(
            {"best_correct": (dims, drawn), "best_accuracy": (dims, drawn / n)},
            coords={"chain": np.arange(_CHAINS), "draw": np.arange(draws)},
            attrs={"sampling": "exact", "sample_dims": ["chain", "draw"]},
        ),
        "closed_form": xr.Dataset(
            {
                "best_correct": ("statistic", statistics),
                "best_accuracy": ("statistic", statistics / n),
            },
            coords={"statistic": list(STATISTICS)},
        ),
        "closed_form_cdf": xr.Dataset(
            {"best_correct": ("count", best.cdf(counts))}, coords={"count": counts}
        ),
    }
    attrs = {
        "schema_version": SCHEMA_VERSION, "method": "max_random", "t": float(t),
        "correlation": float(correlation), "seed": seed, "ci_prob": float(ci_prob),
        "citations": json.dumps([YAUNEY]),
    }  # fmt: skip
    return build(groups, attrs)
