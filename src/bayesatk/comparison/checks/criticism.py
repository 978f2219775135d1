"""Posterior predictive checks: would difficulties of this shape have made data like these."""

from collections.abc import Callable
from dataclasses import dataclass, replace
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
from bayesatk.data.scales import RightWrong
from bayesatk.posterior.models_of import Declared
from bayesatk.posterior.replicates import draw_new_p
from bayesatk.results.difficulty import difficulty_draws
from bayesatk.results.result import Result
from bayesatk.results.schema import RATES

Array = NDArray[np.float64]
Trials = NDArray[np.int64]
Statistic = Callable[[Array, Trials], Array]
# Success probabilities of new questions and rates of a judge, at some draws.
Draw = Callable[[NDArray[np.intp], np.random.Generator], tuple[Array, Array | None]]
_DRAWS = 2000
_CELLS = 4_000_000  # replicated counts held at once


@dataclass(frozen=True)
class _Check:
    """A statistic of counts, and its meaning where the observed value is too large or too small."""

    name: str
    statistic: Statistic
    more: str
    less: str


def _never(c: Array, n: Trials) -> Array:
    """Questions never solved, less those solved in up to a quarter of their trials."""
    return np.asarray((c == 0).sum(axis=-1) - ((c > 0) & (4 * c <= n)).sum(axis=-1), float)


def _always(c: Array, n: Trials) -> Array:
    """Questions always solved, less those failed in up to a quarter of their trials."""
    return _never(n - c, n)


def _between(c: Array, n: Trials) -> Array:
    """Questions solved in a third to two thirds of their trials."""
    return np.asarray(((3 * c >= n) & (3 * c <= 2 * n)).sum(axis=-1), float)


def _kurtosis(c: Array, n: Trials) -> Array:
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

_OF_SCORES = (
    replace(
        _CHECKS[0],
        name="questions always of the lowest score minus nearly so",
        more="some questions may have no score but the lowest",
        less="fewer questions have no score but the lowest than under the model",
    ),
    replace(
        _CHECKS[1],
        name="questions always of the highest score minus nearly so",
        more="some questions may have no score but the highest",
        less="fewer questions have no score but the highest than under the model",
    ),
    replace(_CHECKS[2], name="questions with a mean score in the middle third"),
    replace(_CHECKS[3], name="kurtosis of mean scores"),
)


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
    success rates. A new question has the group, the covariates and the prior trials of the one that
    it replaces. Of scored categories the mean score of a question, scaled to [0, 1], takes the
    place of its success rate.

    Parameters
    ----------
    fit : xarray.DataTree
        A result of right and wrong, or of scores, with pooling partial or complete.
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
    With groups, covariates or prior trials the row of families is given if the fit averages several
    families; the others would take minutes for a single one.

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
    result = Result.of(fit)
    result.require("criticise")
    proper_probability("alpha", alpha)
    generator, _ = resolve_rng(rng)
    rows, systems = [], range(len(result.systems))
    run = partial(family_row, result, alpha=alpha / len(_CHECKS))
    families = dict(in_batches(run, systems, client, "Checking", False))
    run = partial(group_row, result, alpha=alpha / len(_CHECKS))
    levels = dict(in_batches(run, systems, client, "Checking", False))
    right_wrong = isinstance(result.scale, RightWrong)
    checks = _CHECKS if right_wrong else _OF_SCORES
    scores = np.array([0.0, 1.0]) if right_wrong else result.scores
    scores = (scores - scores.min()) / (float(np.ptp(scores)) or 1.0)
    for system, name in enumerate(result.systems):
        ran = result.trials[system] > 0
        counts, trials = result.counts[system][ran], result.trials[system][ran]
        size = min(_DRAWS, result.size)
        drawn = _replicated(_new_questions(result, system, ran), size, trials, scores, generator)
        for check, replicates in zip(checks, drawn, strict=True):
            row = _row(check, float(check.statistic(counts @ scores, trials)), replicates, alpha)
            rows.append({"system": name, **row})
        for last in (families[system], levels[system]):
            if last is not None:
                rows.append({"system": name, **last})
    return pd.DataFrame(rows)


def _new_questions(result: Result, system: int, ran: NDArray[np.bool_]) -> Draw:
    """Return how p of questions like those that were tried is drawn."""
    declared = Declared.of_result(result)
    scored = not isinstance(result.scale, RightWrong)
    if declared.composed or (scored and result.pooling == "partial"):
        model = declared.composed_model(system)

        def draw_composed(
            chosen: NDArray[np.intp], rng: np.random.Generator
        ) -> tuple[Array, Array | None]:
            p, rates = draw_new_p(model, len(chosen), rng)
            return p[:, ran], rates

        return draw_composed
    posterior = result.posterior.isel(system=system)
    rates, difficulty = _rates(result, system), difficulty_draws(result.tree, system)
    mean = posterior["mean_p"].transpose("chain", "draw", ...).values
    mean = mean.reshape(-1, 1, *mean.shape[2:])
    questions = int(ran.sum())

    def draw(chosen: NDArray[np.intp], rng: np.random.Generator) -> tuple[Array, Array | None]:
        place = np.linspace(0, len(mean) - 1, min(_DRAWS, len(mean))).astype(int)[chosen]
        known = None if rates is None else rates[place]
        if difficulty is not None:
            return difficulty.among(place).draw_p(questions, rng), known
        return np.repeat(mean[place], questions, axis=1), known

    return draw


def _rates(result: Result, system: int) -> Array | None:
    """Draws of the rates of a judge, where one errs; shape (draws, 2)."""
    if result.judges is None:
        return None
    return np.stack([result.hyper(name, system) for name in RATES], axis=1)


def _replicated(
    draw: Draw, size: int, trials: Trials, scores: Array, rng: np.random.Generator
) -> Array:
    """Every statistic of replicated sums of scores, or of marks; shape (checks, draws)."""
    values: Array = np.empty((len(_CHECKS), size))
    width = max(1, _CELLS // (len(trials) * len(scores)))
    for start in range(0, size, width):
        chosen = np.arange(start, min(start + width, size))
        p, rates = draw(chosen, rng)
        if rates is not None:
            s, f = rates.T[..., None]
            p = f + (s - f) * p
        sums = np.asarray(
            rng.binomial(trials, p) if p.ndim == 2 else rng.multinomial(trials, p) @ scores, float
        )
        for row, check in zip(values, _CHECKS, strict=True):
            row[chosen] = check.statistic(sums, trials)
    return values


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
