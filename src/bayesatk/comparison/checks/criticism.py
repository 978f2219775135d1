"""Posterior predictive checks of the distribution of difficulty, and comparisons of models."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from bayesatk._tools.arrays import Array, Flags, Ints, Rng
from bayesatk._tools.batches import in_batches
from bayesatk._tools.messages import proper_probability
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.threads import one_thread
from bayesatk.core.engine.distribution import measured_interval
from bayesatk.core.pooling.marks import mark_probability
from bayesatk.data.grouping import Grouping
from bayesatk.data.roles import GROUP
from bayesatk.data.scales import RightWrongScale
from bayesatk.metrics.grid import Metric, parse
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.models_of import model_arguments, model_of, system_model
from bayesatk.posterior.posterior import Posterior
from bayesatk.posterior.questions import draw_new_p
from bayesatk.posterior.remarks import FAMILY_WORDS, family_shares
from bayesatk.priors import DIFFICULTY_FAMILIES, DirichletHyperPrior, HyperPrior
from bayesatk.results.difficulty_draws import flat_draws
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGETS, metric_values
from bayesatk.results.views import ShownTable

FAMILIES_CHECK, GROUPS_CHECK = "difficulty families", "groups"
_CHANGE_SDS = 1.0  # change of a metric that is reported, in posterior sds
_TARGET_WORDS = {"questions": "these questions", "population": "questions like these"}


def family_row(fit: Result, system: int, alpha: float) -> dict[str, object] | None:
    """Return the posterior probability of the families of a fit, as a row of `criticise`.

    It is flagged below `alpha`. None under complete pooling and improper priors, where families
    have no marginal likelihood, if that of a family is unknown, and for a single family with groups
    or covariates, where the other families would take minutes.
    """
    prior = fit.prior
    if not isinstance(prior, HyperPrior) or not prior.proper:
        return None
    if model_of(fit, system).structured and len(prior.family_prior) == 1:
        return None
    metrics = fit.judged
    all_families = replace(prior, families=DIFFICULTY_FAMILIES)
    judged = [fit.scale.judged(metric) for metric in metrics or parse("pass@1")]
    averaged = replace(model_of(fit, system), prior=all_families).fit(judged)
    shares = {name: share.probability for name, share in averaged.model.described.items()}
    if any(np.isnan(share.log_evidence) for share in averaged.model.described.values()):
        return None
    probability = float(sum(shares[name] for name in prior.family_prior))
    text = f"{FAMILIES_CHECK}: {family_shares(shares, least=0.0)}"
    if set(prior.family_prior) == set(DIFFICULTY_FAMILIES):
        sentence = f"{text}; all are averaged."
    else:
        change = _change(fit, system, metrics, averaged)
        families = " and ".join(FAMILY_WORDS[name] for name in prior.family_prior)
        sentence = f"{text}. This fit has {families} alone. {change}"
    return {
        "check": FAMILIES_CHECK,
        "observed": probability,
        "expected": len(prior.family_prior) / len(DIFFICULTY_FAMILIES),
        "sd": np.nan,
        "p_value": np.nan,
        "flagged": probability < alpha,
        "sentence": sentence,
    }


def _change(fit: Result, system: int, metrics: list[Metric], averaged: Posterior) -> str:
    """Return a sentence on the metric that averaging over all families changes most."""
    if not metrics:
        return ""
    statistics = fit.statistics.isel(system=system)
    fitted = np.array(
        [
            [
                [
                    float(metric_values(statistics, member).sel(target=target, statistic=name))
                    for name in ("mean", "sd", "ci_lower", "ci_upper")
                ]
                for target in TARGETS
            ]
            for member in metrics
        ]
    )
    change_in_sds = np.abs(averaged.mean[:, : len(TARGETS)] - fitted[..., 0]) / np.maximum(
        fitted[..., 1], 1e-300
    )
    metric, target = (
        int(i) for i in np.unravel_index(np.argmax(change_in_sds), change_in_sds.shape)
    )
    if change_in_sds[metric, target] <= _CHANGE_SDS:
        return "Averaging over all families changes no metric by more than its sd."
    quantity = averaged.distributions()[target][metric]
    if quantity is None:
        raise AssertionError("partial pooling has every distribution")
    (low, high), _ = measured_interval(quantity, fit.ci_prob, "eti")
    mean, _, ci_lower, ci_upper = fitted[metric, target]
    return (
        f"Averaged over all families, {metrics[metric].label} of "
        f"{_TARGET_WORDS[TARGETS[target]]} would be {averaged.mean[metric, target]:.3f} "
        f"[{low:.3f}, {high:.3f}]; in this fit it is {mean:.3f} [{ci_lower:.3f}, {ci_upper:.3f}]."
    )


def group_row(fit: Result, system: int, alpha: float) -> dict[str, object] | None:
    """Return the posterior probability of the model of a fit, with or without groups, as a row.

    It is flagged below `alpha`. Both models have Beta difficulties, and the same priors of mean and
    icc, covariates and prior trials; that with groups adds the sd between groups. None for data
    without groups, marks with error, or improper priors.
    """
    log_ratio = log_evidence_ratio(fit, system)
    if log_ratio is None:
        return None
    with_groups = float(expit(log_ratio))
    probability = with_groups if fit.grouping is not None else 1.0 - with_groups
    flagged = probability < alpha
    size = f"{np.exp(abs(log_ratio)):.3g}" if abs(log_ratio) < 20.0 else f"e^{abs(log_ratio):.0f}"
    favoured_model = "groups that differ" if log_ratio > 0.0 else "groups that do not differ"
    text = (
        f"{GROUPS_CHECK}: the evidence for {favoured_model} is {size} times that for the "
        f"contrary (the model with groups has posterior probability {with_groups:.2g} at equal "
        "prior probabilities)"
    )
    if flagged:
        text += (
            ". This fit has groups. Evaluate with group=False."
            if fit.grouping is not None
            else ". This fit has no groups, so its intervals for questions like these are too "
            f"narrow for new groups. Evaluate with group={GROUP!r}."
        )
    return {
        "check": GROUPS_CHECK,
        "observed": probability,
        "expected": 0.5,
        "sd": np.nan,
        "p_value": np.nan,
        "flagged": flagged,
        "sentence": text + "." * (not flagged),
    }


def log_evidence_ratio(fit: Result, system: int) -> float | None:
    """Return the log evidence of the model with groups minus that of the model without."""
    prior = fit.prior
    groups = fit.of_questions.get(GROUP)
    if groups is None or fit.judges is not None:
        return None
    right_wrong = isinstance(prior, HyperPrior)
    if not (prior.proper if right_wrong else isinstance(prior, DirichletHyperPrior)):
        return None
    tried = fit.trials[system] > 0
    prior_of_both = prior.of_family("beta") if right_wrong else prior
    ungrouped, grouped = (
        CountModel.of(
            **model_arguments(fit.study, system)
            | {"prior": prior_of_both, "grouping": grouping, "weight": None}
        ).among(tried)
        for grouping in (None, Grouping.of(groups))
    )
    ratio = grouped.log_evidence() - ungrouped.log_evidence()
    return ratio if np.isfinite(ratio) else None


Trials = Ints
Statistic = Callable[[Array, Trials], Array]
# Draws success probabilities of new questions and, where a judge errs, its rates.
DrawNewP = Callable[[int, Rng], tuple[Array, Array | None]]
_DRAWS = 2000
_MAX_REPLICATED_COUNTS = 4_000_000  # in memory at a time


@dataclass(frozen=True)
class _Check:
    """A statistic of counts, and its meaning where the observed value is too large or too small."""

    name: str
    statistic: Statistic
    more: str
    less: str


def _never_solved(c: Array, n: Trials) -> Array:
    """Questions never solved, less those solved in up to a quarter of their trials."""
    return np.asarray((c == 0).sum(axis=-1) - ((c > 0) & (4 * c <= n)).sum(axis=-1), float)


def _always_solved(c: Array, n: Trials) -> Array:
    """Questions always solved, less those failed in up to a quarter of their trials."""
    return _never_solved(n - c, n)


def _medium_difficulty(c: Array, n: Trials) -> Array:
    """Questions solved in a third to two thirds of their trials."""
    return np.asarray(((3 * c >= n) & (3 * c <= 2 * n)).sum(axis=-1), float)


def _kurtosis(c: Array, n: Trials) -> Array:
    """Fourth over squared second moment of the success rates: low for two clusters."""
    rate = (c + 0.5) / (n + 1.0)
    centred = rate - rate.mean(axis=-1, keepdims=True)
    second = (centred**2).mean(axis=-1)
    fourth = (centred**4).mean(axis=-1)
    return np.where(second > 0, fourth / np.maximum(second, 1e-150) ** 2, 3.0)


_CHECKS = (
    _Check(
        "questions never solved minus rarely solved", _never_solved,
        "some questions may be impossible", "fewer questions are impossible than under the model",
    ),
    _Check(
        "questions always solved minus nearly always solved", _always_solved,
        "some questions may be certain", "fewer questions are certain than under the model",
    ),
    _Check(
        "questions solved in 1/3 to 2/3 of trials", _medium_difficulty,
        "more questions are of medium difficulty than under the model",
        "fewer questions are of medium difficulty than under the model",
    ),
    _Check(
        "kurtosis of success rates", _kurtosis,
        "a few questions differ much from all others", "difficulties form two clusters",
    ),
)  # fmt: skip

_SCORE_CHECKS = (
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


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
@one_thread()
def criticise(
    fit: Fit,
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
    With groups or covariates the row of families is given if the fit averages several families; the
    others would take minutes for a single one.

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
    >>> fit = bayesatk.evaluate(solved, "mean", difficulty="beta", draws=250, rng=1)
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
    groupings = dict(in_batches(run, systems, client, "Checking", False))
    right_wrong = isinstance(result.scale, RightWrongScale)
    checks = _CHECKS if right_wrong else _SCORE_CHECKS
    scores = np.array([0.0, 1.0]) if right_wrong else result.scores
    scores = (scores - scores.min()) / (float(np.ptp(scores)) or 1.0)
    for system, name in enumerate(result.systems):
        tried = result.trials[system] > 0
        counts, trials = result.counts[system][tried], result.trials[system][tried]
        size = min(_DRAWS, result.size)
        drawn = _replicated_statistics(
            _new_questions(result, system, tried), size, trials, scores, generator
        )
        for check, replicates in zip(checks, drawn, strict=True):
            row = _row(check, float(check.statistic(counts @ scores, trials)), replicates, alpha)
            rows.append({"system": name, **row})
        for model_row in (families[system], groupings[system]):
            if model_row is not None:
                rows.append({"system": name, **model_row})
    return ShownTable.of(rows, "criticise")


def _new_questions(result: Result, system: int, tried: Flags) -> DrawNewP:
    """Return a function that draws p of new questions like those that were tried."""
    if result.pooling == "partial":
        model = system_model(result.study, system)

        def draw_new(size: int, rng: Rng) -> tuple[Array, Array | None]:
            p, rates = draw_new_p(model, size, rng)
            return p[:, tried], rates

        return draw_new
    mean = flat_draws(result.posterior["mean_p"], system)[:, None]
    rates = None
    if result.study.judge_rates is not None:
        judge = result.study.judge_rates[system]
        rates = judge.rows(
            {name: flat_draws(result.posterior[name], system) for name in judge.names}
        )

    def draw_common(size: int, rng: Rng) -> tuple[Array, Array | None]:
        positions = rng.integers(len(mean), size=size)
        common = np.repeat(mean[positions], int(tried.sum()), axis=1)
        return common, None if rates is None else rates[positions]

    return draw_common


def _replicated_statistics(
    draw: DrawNewP, size: int, trials: Trials, scores: Array, rng: Rng
) -> Array:
    """Statistics of replicated total scores of questions; shape (checks, draws)."""
    values = np.empty((len(_CHECKS), size))
    block_size = max(1, _MAX_REPLICATED_COUNTS // (len(trials) * len(scores)))
    for start in range(0, size, block_size):
        block = slice(start, min(start + block_size, size))
        p, rates = draw(block.stop - start, rng)
        if rates is not None:
            p = mark_probability(p, rates, rng)
        sums = np.asarray(
            rng.binomial(trials, p) if p.ndim == 2 else rng.multinomial(trials, p) @ scores, float
        )
        for row, check in zip(values, _CHECKS, strict=True):
            row[block] = check.statistic(sums, trials)
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
        "check": check.name,
        "observed": observed,
        "expected": expected,
        "sd": sd,
        "p_value": p_value,
        "flagged": flagged,
        "sentence": sentence,
    }
