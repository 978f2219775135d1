"""Posterior predictive checks: would difficulties of this shape have made data like these."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arguments import proper_probability
from bayesatk._tools.batches import in_batches
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.threads import one_thread
from bayesatk.comparison.checks.model_checks import family_row, group_row
from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.results.difficulty import difficulty_draws
from bayesatk.results.likelihood import RATES
from bayesatk.results.question_groups import group_difficulties
from bayesatk.results.result import Result

Array = NDArray[np.float64]
Statistic = Callable[[NDArray[np.int64], NDArray[np.int64]], Array]
_DRAWS = 2000
_CELLS = 4_000_000  # replicated counts held at once


@dataclass(frozen=True)
class _Check:
    """A statistic of counts, and its meaning where the observed value is too large or too small."""

    name: str
    statistic: Statistic
    more: str
    less: str


def _never(c: NDArray[np.int64], n: NDArray[np.int64]) -> Array:
    """Questions never solved, less those solved in up to a quarter of their trials."""
    return np.asarray((c == 0).sum(axis=-1) - ((c > 0) & (4 * c <= n)).sum(axis=-1), float)


def _always(c: NDArray[np.int64], n: NDArray[np.int64]) -> Array:
    """Questions always solved, less those failed in up to a quarter of their trials."""
    return _never(n - c, n)


def _between(c: NDArray[np.int64], n: NDArray[np.int64]) -> Array:
    """Questions solved in a third to two thirds of their trials."""
    return np.asarray(((3 * c >= n) & (3 * c <= 2 * n)).sum(axis=-1), float)


def _kurtosis(c: NDArray[np.int64], n: NDArray[np.int64]) -> Array:
    """Fourth over squared second moment of the success rates: low for two clusters."""
    rate = (c + 0.5) / (n + 1.0)
    centred = rate - rate.mean(axis=-1, keepdims=True)
    second = (centred**2).mean(axis=-1)
    fourth = (centred**4).mean(axis=-1)
    return np.asarray(np.where(second > 0, fourth / np.maximum(second, 1e-150) ** 2, 3.0))


_CHECKS = (
    _Check(
        "questions never solved minus rarely solved", _never,
        "some questions may be impossible", "fewer questions are impossible than under the model",
    ),
    _Check(
        "questions always solved minus nearly always solved", _always,
        "some questions may be certain", "fewer questions are certain than under the model",
    ),
    _Check(
        "questions solved in 1/3 to 2/3 of trials", _between,
        "more questions are of medium difficulty than under the model",
        "fewer questions are of medium difficulty than under the model",
    ),
    _Check(
        "kurtosis of success rates", _kurtosis,
        "a few questions differ much from all others", "difficulties form two clusters",
    ),
)  # fmt: skip


@one_thread()
def criticise(
    fit: xr.DataTree | Result,
    *,
    alpha: float = 0.05,
    rng: RandomSource = None,
    client: Any = None,
) -> pd.DataFrame:
    """Check the difficulty distribution against the data by posterior predictive checks.

    Counts of new questions are drawn for every posterior draw of the hyperparameters and compared
    with the observed ones, by four statistics: the number of questions never solved minus the
    number solved in up to a quarter of their trials; the same for always solved and failed in up to
    a quarter; the number solved in a third to two thirds of their trials; and the kurtosis of the
    success rates.

    Parameters
    ----------
    fit : xarray.DataTree
        A result of right and wrong, with pooling partial or complete.
    alpha : float
        Level at which a check is flagged, over the four checks of a system together (Bonferroni).
    rng : int, numpy.random.Generator or None
        Seed of the replicated counts.
    client : dask.distributed.Client, optional
        Compute the evidence of the difficulty families of each system as a task of this cluster.
        Results agree with those of a local run to rounding, as in `bayesatk.evaluate`.

    Returns
    -------
    pandas.DataFrame
        One row per system and check: ``observed``, ``expected`` and ``sd`` of the replicates,
        two-sided ``p_value`` (posterior predictive, ties split; at least 1/2000), ``flagged``, and
        a ``sentence``. Under partial pooling with a proper prior a last row, ``difficulty
        families``, compares this fit with the one that averages all families: ``observed`` is the
        posterior probability of the families of this fit, when all families have equal prior
        probability (``expected`` is their prior probability). The sentence names the family with
        the highest probability, and the metric that would change most. If the data have groups of
        questions, a row ``groups`` compares the evidence of the model with and without groups:
        ``observed`` is the posterior probability of the model of this fit, when both have equal
        prior probability.

    See Also
    --------
    bayesatk.plots.plot_difficulty : the fitted distribution of difficulty, and the questions.
    bayesatk.sample : other models of difficulty.

    Notes
    -----
    Posterior predictive p-values are conservative, because the same data are used to fit the
    hyperparameters. The row of families is flagged if the posterior probability is below
    ``alpha / 4``; if the family of this fit is true, that happens with probability of at most about
    ``alpha / 2``. If a check is flagged under ``difficulty="beta"``, evaluate again with
    ``difficulty="averaged"``, which also allows questions that are never or always solved, and a
    mixture of two Betas.

    Examples
    --------
    >>> import bayesatk
    >>> solved = [[0] * 16] * 20 + [[0, 1] * 8] * 40  # a third impossible, the others 8 of 16
    >>> fit = bayesatk.evaluate(solved, "bayes", difficulty="beta", draws=250, rng=1)
    >>> table = criticise(fit, rng=1).set_index("check")
    >>> bool(table.loc["questions never solved minus rarely solved", "flagged"])
    True
    """
    own = Result.of(fit)
    posterior = own.posterior
    successes, trials = own.right_of_all("criticise")
    proper_probability("alpha", alpha)
    generator, _ = resolve_rng(rng)
    names, rows = posterior["system"].values, []
    run = partial(family_row, own, alpha=alpha / len(_CHECKS))
    families = dict(in_batches(run, range(len(names)), client, "Checking", False))
    run = partial(group_row, own, alpha=alpha / len(_CHECKS))
    levels = dict(in_batches(run, range(len(names)), client, "Checking", False))
    for system, (c, n) in enumerate(zip(successes, trials, strict=True)):
        ran = n > 0
        rates = None if own.judges is None else _rates(posterior.isel(system=system))
        drawn = _replicated(_shapes(own, system, ran), rates, n[ran], generator)
        for check, replicates in zip(_CHECKS, drawn, strict=True):
            row = _row(check, float(check.statistic(c[ran], n[ran])), replicates, alpha)
            rows.append({"system": names[system], **row})
        for last in (families[system], levels[system]):
            if last is not None:
                rows.append({"system": names[system], **last})
    return pd.DataFrame(rows)


Shapes = list[tuple[Difficulty, NDArray[np.intp]]]


def _shapes(fit: Result, system: int, ran: NDArray[np.bool_]) -> Shapes:
    """Difficulty distributions in every draw, each with the places of its questions."""
    if fit.grouping is not None and fit.pooling == "partial":
        code = fit.grouping.code[ran]
        each = group_difficulties(fit.posterior, system)
        return [(one, np.flatnonzero(code == g)) for g, one in enumerate(each)]
    difficulty = difficulty_draws(fit.tree, system)
    if difficulty is None:
        difficulty = _one_for_all(fit.posterior["mean_p"].isel(system=system))
    return [(difficulty, np.arange(int(ran.sum())))]


def _one_for_all(mean: xr.DataArray) -> Difficulty:
    """Return distributions in which all questions have the same success probability."""
    flat = mean.transpose("chain", "draw").values.ravel()
    return Difficulty.of_beta(flat, np.zeros(len(flat)))


def _rates(posterior: xr.Dataset) -> Array:
    """Draws of the rates of a judge; shape (draws, 2)."""
    flat = [posterior[name].transpose("chain", "draw").values.ravel() for name in RATES]
    return np.stack(flat, axis=1)


def _replicated(
    shapes: Shapes, rates: Array | None, trials: NDArray[np.int64], rng: np.random.Generator
) -> Array:
    """Every statistic of replicated counts, or marks of a judge; shape (checks, draws)."""
    size = len(shapes[0][0])
    chosen = np.linspace(0, size - 1, min(_DRAWS, size)).astype(int)
    found: Array = np.empty((len(_CHECKS), len(chosen)))
    width = max(1, _CELLS // len(trials))
    for start in range(0, len(chosen), width):
        some = chosen[start : start + width]
        counts = np.empty((len(some), len(trials)), np.int64)
        for difficulty, place in shapes:
            counts[:, place] = difficulty.among(some).draw_counts(trials[place], rng)
        if rates is not None:
            s, f = rates[some].T[..., None]
            counts = rng.binomial(counts, s) + rng.binomial(trials - counts, f)
        for row, check in zip(found, _CHECKS, strict=True):
            row[start : start + len(counts)] = check.statistic(counts, trials)
    return found


def _row(check: _Check, observed: float, replicates: Array, alpha: float) -> dict[str, object]:
    above = float((replicates > observed).mean() + 0.5 * (replicates == observed).mean())
    p_value = max(2.0 * min(above, 1.0 - above), 1.0 / len(replicates))
    flagged = p_value < alpha / len(_CHECKS)
    expected, sd = float(replicates.mean()), float(replicates.std(ddof=1))
    words = check.more if observed > expected else check.less
    sentence = (
        f"{check.name}: {observed:.4g} ({expected:.4g} ± {sd:.2g} expected under the model, "
        f"p = {p_value:.2g}): {words}."
        if flagged
        else f"{check.name}: {observed:.4g} ({expected:.4g} ± {sd:.2g} expected under the model)."
    )
    return {
        "check": check.name, "observed": observed, "expected": expected, "sd": sd,
        "p_value": p_value, "flagged": flagged, "sentence": sentence,
    }  # fmt: skip
