"""What `evaluate` was asked: the data, metrics and priors, checked against each other."""

from collections.abc import Sequence

import numpy as np

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
from bayesatk.prior_trials import read_prior_trials
from bayesatk.validation import OutcomeError


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
    on_categories = check_judged(requested, outcomes.binary, pooling, prior_trials is not None)
    _check_priors(requested, prior_trials, prior_weight, answer_prior)
    before = None
    notes: list[str] = []
    if prior_trials is not None:
        before, notes = read_prior_trials(outcomes, prior_trials, prior_weight)
    resolved: Prior | CategoryPrior = (
        resolve_category_prior(pooling, prior) if on_categories else resolve_prior(pooling, prior)
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
    if prior_trials is None and prior_weight != 1.0:
        raise ValueError(
            f"prior_weight must be left out without prior_trials; got {prior_weight!r}."
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
