"""What `evaluate` was asked: the data, metrics and priors, checked against each other."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, ndtr

from bayesatk.closed_form.analysis import Request
from bayesatk.closed_form.assembly import CHAINS
from bayesatk.core.priors import (
    AnswerPrior,
    CategoryPrior,
    Pooling,
    Prior,
    resolve_category_prior,
    resolve_prior,
)
from bayesatk.metrics import Metric, MetricGrid, MetricSpec, check_judged, parse
from bayesatk.outcomes import Outcomes, tally
from bayesatk.validation import OutcomeError, shown

_AGAINST = -np.log(10.0)  # log Bayes factor from which two sets of trials are said to differ


def read_request(
    data: object,
    metrics: MetricSpec,
    *,
    pooling: Pooling,
    prior: Prior | CategoryPrior | None,
    success: str | None,
    prior_trials: object,
    prior_weight: float,
    answer_prior: AnswerPrior | None,
    ci_prob: float,
    ci_kind: str,
    draws: int,
    keep: Sequence[str],
) -> tuple[Outcomes, Request, list[str]]:
    """Return the data, what is asked of every system, and notes; parameters of `evaluate`."""
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    _check_options(ci_prob, ci_kind, draws, keep)
    requested = parse(metrics)
    if success is not None:
        scored = [one.label for one in requested if one.family.category is not None]
        if scored:
            raise OutcomeError(
                f"success turns scores into right and wrong, and {', '.join(scored)} would no "
                "longer be about scores. Evaluate metrics of scores without success=."
            )
        outcomes = outcomes.with_success(success)
    on_categories = check_judged(requested, outcomes.binary, pooling)
    _check_priors(requested, prior_trials, prior_weight, answer_prior)
    on_categories = on_categories or prior_trials is not None
    before = None
    notes: list[str] = []
    if prior_trials is not None:
        before, notes = _prior_counts(outcomes, prior_trials, prior_weight)
    resolved: Prior | CategoryPrior = (
        resolve_category_prior(pooling, prior) if on_categories else resolve_prior(pooling, prior)  # type: ignore[arg-type]
    )
    return outcomes, Request(
        requested, MetricGrid.of(requested), pooling, resolved, answer_prior or AnswerPrior(),
        before, ci_prob, ci_kind, CHAINS * draws,
    ), notes  # fmt: skip


def _check_priors(
    requested: tuple[Metric, ...],
    prior_trials: object,
    prior_weight: float,
    answer_prior: AnswerPrior | None,
) -> None:
    """Refuse priors of the wrong kind, and those that would have no effect."""
    voted = [one.label for one in requested if one.family.on_answers]
    if answer_prior is not None and not voted:
        raise ValueError(
            f"answer_prior must be left out without a vote between answers; got {answer_prior!r}. "
            "Votes are 'plurality@k'."
        )
    if answer_prior is not None and not isinstance(answer_prior, AnswerPrior):
        raise ValueError(f"answer_prior must be an AnswerPrior; got {answer_prior!r:.80}.")
    if prior_trials is None:
        if prior_weight != 1.0:
            raise ValueError(
                f"prior_weight must be left out without prior_trials; got {prior_weight!r}."
            )
        return
    other = [one.label for one in requested if one.family.category is None]
    if other:
        raise ValueError(
            f"prior_trials must be left out for {', '.join(other)}: they are for metrics of "
            "scores, 'bayes' and 'max@k' (which is pass@k where right is 1 and wrong 0)."
        )


def _check_options(ci_prob: float, ci_kind: str, draws: int, keep: Sequence[str]) -> None:
    if not 0.0 < ci_prob < 1.0:
        raise ValueError(f"ci_prob must lie strictly between 0 and 1; got {ci_prob}. Try 0.95.")
    if ci_kind not in ("eti", "hdi"):
        raise ValueError(f"ci_kind must be 'eti' or 'hdi'; got {ci_kind!r}.")
    if not isinstance(draws, int | np.integer) or draws < 2:
        raise ValueError(f"draws must be an integer >= 2 (per chain); got {draws!r}.")
    if isinstance(keep, str) or not set(keep) <= {"p", "log_likelihood", "predictive"}:
        raise ValueError(
            f"keep must be a sequence of 'p', 'log_likelihood' and 'predictive'; got {keep!r}."
        )


def _prior_counts(
    outcomes: Outcomes, prior_trials: object, weight: float
) -> tuple[NDArray[np.float64], list[str]]:
    """Discounted prior trials, aligned with the data, and how well they agree with it."""
    if not 0.0 < weight <= 1.0:
        raise ValueError(
            f"prior_weight must lie in (0, 1]; got {weight}. It is what a prior trial is worth."
        )
    scores = {
        str(name): float(score)
        for name, score in zip(
            outcomes.dataset["category"].values, outcomes.dataset["score"].values, strict=True
        )
    }
    before = prior_trials if isinstance(prior_trials, Outcomes) else _tallied(prior_trials, scores)
    for name in ("category", "score", "question"):
        ours, theirs = outcomes.dataset[name].values, before.dataset[name].values
        if len(ours) != len(theirs) or (ours != theirs).any():
            raise OutcomeError(
                f"prior_trials must have the same {name} labels as the data, in the same order; "
                f"got {shown(theirs.tolist())} for {shown(ours.tolist())}. Tally both with the "
                "same scores= and questions=."
            )
    if len(before.systems) != 1 and before.systems != outcomes.systems:
        raise OutcomeError(
            "prior_trials must be of one system, for all, or of the same systems; got "
            f"{shown(before.systems)} for {shown(outcomes.systems)}."
        )
    new, values = outcomes.dataset["count"].values, outcomes.dataset["score"].values
    old = np.broadcast_to(before.dataset["count"].values, new.shape)
    notes = [
        _conflict_note(*pair, values, weight)
        for pair in zip(outcomes.systems, new, old, strict=True)
    ]
    return old * float(weight), notes


def _tallied(prior_trials: object, scores: dict[str, float]) -> Outcomes:
    """Tally prior trials by the scores of the data, whose labels may have been numbers."""
    try:
        return tally(prior_trials, scores=scores)
    except OutcomeError:
        return tally(prior_trials, scores={_number(name): value for name, value in scores.items()})


def _number(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _conflict_note(
    name: object,
    new: NDArray[np.int64],
    old: NDArray[np.int64],
    scores: NDArray[np.float64],
    weight: float,
) -> str:
    """Compare new trials with prior ones.

    If a question's old and new trials are alike, which of them are new is a matter of chance: the
    mean score of the new ones has a known mean and variance given all (sampling without
    replacement). And the log Bayes factor of one vector of probabilities for both, at the weight
    given, against two.
    """
    both = (new.sum(axis=1) > 0) & (old.sum(axis=1) > 0)
    new, old = new[both], old[both]
    trials, total = new.sum(axis=1), (new + old).sum(axis=1)
    mean = (new + old) @ scores / total
    spread = np.einsum("ac,ac->a", new + old, (scores - mean[:, None]) ** 2) / total
    variance = spread / trials * (total - trials) / np.maximum(total - 1.0, 1.0)
    gap, sd = float((new @ scores / trials - mean).sum()), float(np.sqrt(variance.sum()))
    z = gap / sd if sd > 0.0 else 0.0
    factor = float((_log_marginal(1.0 + weight * old, new) - _log_marginal(1.0, new)).sum())
    p_value = 2.0 * float(ndtr(-abs(z)))
    verdict = (
        "the prior trials conflict with the data: leave them out, or lower prior_weight"
        if factor < _AGAINST or p_value < 0.01
        else "no conflict"
    )
    return (
        f"{name}: prior trials are worth {weight * old.sum(axis=1).mean():.4g} trials per question "
        f"(weight {weight:g}); if old and new trials were alike, the new mean score would be "
        f"{z:+.1f} sds from its expectation (p = {p_value:.2g}); log Bayes factor of agreement "
        f"{factor:+.1f}: {verdict}."
    )


def _log_marginal(alpha: ArrayLike, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log probability of trials in their order under Dirichlet(alpha), by question."""
    alpha = np.broadcast_to(np.asarray(alpha, float), counts.shape)
    rises = (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=1)
    total = alpha.sum(axis=1)
    return np.asarray(rises - gammaln(total + counts.sum(axis=1)) + gammaln(total))
