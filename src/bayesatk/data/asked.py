"""What is asked of `evaluate` or `sample`: data, metrics and priors held against each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.arguments import proper_probability
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.design import Design
from bayesatk.data.judges import check_judge_fits, read_judges
from bayesatk.data.outcomes import Outcomes, tally
from bayesatk.data.prior_trials import read_prior_trials
from bayesatk.data.scales import RIGHT_WRONG, Scale, Scored
from bayesatk.data.validation import OutcomeError
from bayesatk.judge_error import Judges
from bayesatk.metrics.grid import Metric, MetricSpec, check_judged, parse
from bayesatk.prior_choice import resolve_regression_prior, with_families
from bayesatk.priors import AnswerPrior, CategoryPrior, Pooling, Prior, RegressionPrior


@dataclass(frozen=True)
class Asked:
    """Data, metrics, and priors that fit them.

    Parameters
    ----------
    outcomes : Outcomes
    requested : tuple of Metric
    pooling : Pooling
    prior : Prior, CategoryPrior or RegressionPrior
        The second where metrics judge scored categories, the third with covariates.
    answer_prior : AnswerPrior
    scale : Scale
        How the metrics judge trials.
    prior_counts : ndarray, shape (system, question, category), optional
        Prior trials, discounted.
    notes : list of str
        What a reader should know of the prior trials.
    design : Design, optional
        Covariates that success depends on.
    judges : Judges, optional
        Who marked the trials of every system, where judges err.
    """

    outcomes: Outcomes
    requested: tuple[Metric, ...]
    pooling: Pooling
    prior: Prior | CategoryPrior | RegressionPrior
    answer_prior: AnswerPrior
    scale: Scale
    prior_counts: NDArray[np.float64] | None
    notes: list[str]
    design: Design | None
    judges: Judges | None = None

    @property
    def judged(self) -> list[Metric]:
        """Metrics that judge trials."""
        return [one for one in self.requested if not one.voted]

    @property
    def votes(self) -> list[Metric]:
        """Votes between answers."""
        return [one for one in self.requested if one.voted]


def read_asked(
    data: object,
    metrics: MetricSpec,
    *,
    pooling: Pooling,
    prior: object,
    difficulty: object = None,
    success: str | None,
    prior_trials: object,
    prior_weight: float,
    answer_prior: AnswerPrior | None,
    ci_prob: float,
    keep: Sequence[str],
    covariates: object = None,
    judge: object = None,
) -> Asked:
    """Return what was asked, or refuse what contradicts itself; parameters of `evaluate`."""
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    proper_probability("ci_prob", ci_prob, 0.95)
    if isinstance(keep, str) or not set(keep) <= {"p", "log_likelihood", "predictive"}:
        rule = f" must be a sequence of 'p', 'log_likelihood' and 'predictive'; got {keep!r}."
        raise ArgumentError(Argument("keep"), rule)
    requested = parse(metrics)
    if success is not None:
        of_scores = [one.label for one in requested if one.family.category is not None]
        if of_scores:
            raise OutcomeError(
                Argument("success"),
                f" turns scores into right and wrong, and {', '.join(of_scores)} would no longer "
                "be about scores. Evaluate metrics of scores without it.",
            )
        outcomes = outcomes.with_success(success)
    scored = check_judged(requested, outcomes.binary, pooling, prior_trials is not None)
    scale: Scale = Scored.of(outcomes) if scored else RIGHT_WRONG
    _check_priors(requested, prior_trials, prior_weight, answer_prior)
    before = None
    notes: list[str] = []
    if prior_trials is not None:
        before, notes = read_prior_trials(outcomes, prior_trials, prior_weight)
    design = None
    if covariates is not None:
        _check_covariates(requested, scored, pooling, difficulty, prior_trials is not None)
        design = Design.of(outcomes.dataset, covariates)
    resolved = resolve_regression_prior(prior) if design else scale.resolve_prior(pooling, prior)
    if difficulty is not None and not design:
        resolved = with_families(resolved, difficulty)
    judges = read_judges(judge, outcomes)
    if judges is not None:
        check_judge_fits(outcomes, scale, requested, pooling, prior_trials, covariates)
    return Asked(
        outcomes, requested, pooling, resolved, answer_prior or AnswerPrior(), scale, before, notes,
        design, judges,
    )  # fmt: skip


def _check_covariates(
    requested: tuple[Metric, ...], scored: bool, pooling: str, difficulty: object, before: bool
) -> None:
    """Refuse what has no regression."""
    voted = [one.label for one in requested if one.voted]
    if scored or voted:
        raise ArgumentError(
            Argument("covariates"), " go with metrics of right and wrong; "
            f"{', '.join(one.label for one in requested if one.voted or scored)} judges others. "
            "Say what a success is, as in ", Argument("success", "score >= 0.5"),
            ", and leave out votes.",
        )  # fmt: skip
    if pooling != "partial" or before:
        wrong = Argument("prior_trials") if before else Argument("pooling", pooling)
        raise ArgumentError(
            Argument("covariates"), " go with ", Argument("pooling", "partial"),
            ", which learns how questions differ, and without earlier trials; got ", wrong,
            ". Leave it out.",
        )  # fmt: skip
    if difficulty not in (None, "beta"):
        raise ArgumentError(
            Argument("covariates"), " go with Beta difficulties around a mean that depends on them"
            f"; got difficulty={difficulty!r:.80}. Leave it out.",
        )  # fmt: skip


def _check_priors(
    requested: tuple[Metric, ...],
    prior_trials: object,
    prior_weight: float,
    answer_prior: AnswerPrior | None,
) -> None:
    """Refuse priors of the wrong kind, and those that would have no effect."""
    voted = [one.label for one in requested if one.voted]
    if answer_prior is not None and not voted:
        raise ArgumentError(
            Argument("answer_prior"), " must be left out without a vote between answers; got "
            f"{answer_prior!r}. Votes are 'plurality@k'.",
        )  # fmt: skip
    if answer_prior is not None and not isinstance(answer_prior, AnswerPrior):
        raise ArgumentError(
            Argument("answer_prior"), f" must be an AnswerPrior; got {answer_prior!r:.80}."
        )
    if prior_trials is None and prior_weight != 1.0:
        raise ArgumentError(
            Argument("prior_weight"), " must be left out without ", Argument("prior_trials"),
            f"; got {prior_weight!r}.",
        )  # fmt: skip
