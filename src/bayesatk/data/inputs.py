"""Arguments of `evaluate` and `sample`: data, metrics and priors, checked together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.arguments import proper_probability
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.columns import GROUP
from bayesatk.data.design import Design
from bayesatk.data.grouping import Grouping, ungrouped_note, with_groups
from bayesatk.data.judges import check_judge_fits, read_judges
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.prior_trials import read_prior_trials
from bayesatk.data.question_columns import refuse_weights
from bayesatk.data.scales import RIGHT_WRONG, Scale, Scored
from bayesatk.data.validation import OutcomeError
from bayesatk.judge_error import Judges
from bayesatk.metrics.grid import Metric, MetricSpec, check_judged, parse
from bayesatk.priors import (
    AnswerPrior,
    HyperPrior,
    ModelPrior,
    Pooling,
)
from bayesatk.priors.choice import (
    prior_of,
    with_families,
)


@dataclass(frozen=True)
class Inputs:
    """Data, metrics and priors after checks and with defaults filled in.

    Parameters
    ----------
    outcomes : Outcomes
    requested : tuple of Metric
    pooling : Pooling
    prior : ModelPrior
        Of the scale; with covariates or groups a `HyperPrior` of the Beta family.
    scale : Scale
        How the metrics judge trials.
    answer_prior : AnswerPrior
    prior_counts : ndarray, shape (system, question, category), optional
        Prior trials, discounted.
    notes : tuple of str
        What a reader should know of the prior trials, or of groups.
    design : Design, optional
        Covariates that success depends on.
    grouping : Grouping, optional
        Groups of the questions.
    judges : Judges, optional
        Who marked the trials of every system, where judges err.
    """

    outcomes: Outcomes
    requested: tuple[Metric, ...]
    pooling: Pooling
    prior: ModelPrior
    scale: Scale
    answer_prior: AnswerPrior = field(default_factory=AnswerPrior)
    prior_counts: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()
    design: Design | None = None
    grouping: Grouping | None = None
    judges: Judges | None = None

    @property
    def judged(self) -> list[Metric]:
        """Metrics that judge trials."""
        return [one for one in self.requested if not one.voted]

    @property
    def votes(self) -> list[Metric]:
        """Votes between answers."""
        return [one for one in self.requested if one.voted]


def read_inputs(
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
    group: object = None,
    group_weights: object = None,
    covariates: object = None,
    judge: object = None,
    combined: bool = False,
) -> Inputs:
    """Return what was asked, or refuse what contradicts itself; parameters of `evaluate`.

    Sampled models take groups, covariates, judges, earlier trials and families `combined`.
    """
    outcomes = with_groups(data, group)
    proper_probability("ci_prob", ci_prob, 0.95)
    if isinstance(keep, str) or not set(keep) <= {"p", "log_likelihood", "predictive"}:
        rule = f" must be a sequence of 'p', 'log_likelihood' and 'predictive'; got {keep!r}."
        raise ArgumentError(Argument("keep"), rule)
    requested = parse(metrics)
    if success is not None:
        outcomes = _with_success(outcomes, success, requested)
    structured = covariates is not None or group is not None
    counted = prior_trials is not None and not (
        combined and outcomes.binary and (structured or judge is not None or difficulty is not None)
    )
    scored = check_judged(requested, outcomes.binary, pooling, counted)
    scale: Scale = Scored.of(outcomes) if scored else RIGHT_WRONG
    _check_priors(requested, prior_trials, prior_weight, answer_prior)
    before = None
    notes: list[str] = []
    if prior_trials is not None:
        before, notes = read_prior_trials(outcomes, prior_trials, prior_weight)
    design, grouping = _structure(outcomes, covariates, group, group_weights, combined)
    if design is not None and combined:
        _check_sampled(pooling)
    elif structured and not combined:
        name = "covariates" if grouping is None else GROUP
        _check_structure(name, requested, scored, pooling, difficulty, prior_trials is not None)
    resolved: ModelPrior
    if design is not None or grouping is not None:
        notes += [] if grouping is None else grouping.notes
        where = "with covariates" if design is not None else "with group="
        resolved = _prior_of_structure(prior, where, scale, pooling, difficulty)
    else:
        resolved = scale.resolve_prior(pooling, prior)
        if difficulty is not None:
            resolved = with_families(resolved, difficulty)
        notes += ungrouped_note(outcomes)
    judges = read_judges(judge, outcomes)
    if judges is not None:
        others = (None,) * 3 if combined else (prior_trials, covariates, group)
        check_judge_fits(outcomes, scale, requested, pooling, *others, combined)
    return Inputs(
        outcomes, requested, pooling, resolved, scale, answer_prior or AnswerPrior(), before,
        tuple(notes), design, grouping, judges,
    )  # fmt: skip


def _check_sampled(pooling: str) -> None:
    """Refuse covariates where no distribution of difficulties depends on them."""
    if pooling != "partial":
        raise ArgumentError(
            Argument("covariates"), " needs ", Argument("pooling", "partial"),
            f", whose difficulties depend on them; got pooling={pooling!r}. Leave one out.",
        )  # fmt: skip


def _prior_of_structure(
    prior: object, where: str, scale: Scale, pooling: Pooling, difficulty: object
) -> ModelPrior:
    """Return the prior of questions that differ by groups or covariates, by default of one Beta."""
    if pooling != "partial" or scale.axes:
        resolved: ModelPrior = scale.resolve_prior(pooling, prior)
        return resolved
    families = "beta" if difficulty is None else difficulty
    chosen = with_families(prior_of(HyperPrior, prior, where), families)
    if not chosen.proper:
        raise ArgumentError(
            Argument("prior"),
            f" must be proper {where}; got icc={chosen.icc}. Use HyperPrior(icc=(1, 1)).",
        )
    return chosen


def _with_success(outcomes: Outcomes, success: str, requested: Sequence[Metric]) -> Outcomes:
    """Turn scores into right and wrong, unless a metric is about scores."""
    of_scores = [one.label for one in requested if one.family.category is not None]
    if of_scores:
        raise OutcomeError(
            Argument("success"),
            f" turns scores into right and wrong, and {', '.join(of_scores)} would no longer "
            "be about scores. Evaluate metrics of scores without it.",
        )
    return outcomes.with_success(success)


def _structure(
    outcomes: Outcomes,
    covariates: object,
    group: object,
    group_weights: object,
    combined: bool,
) -> tuple[Design | None, Grouping | None]:
    """Return what tells questions apart in the model: covariates, or groups."""
    if group is None:
        if group_weights is not None:
            rule = f" must be left out without groups; got {group_weights!r:.80}. Name them: "
            raise ArgumentError(Argument("group_weights"), rule, Argument(GROUP, ...), ".")
        return None if covariates is None else Design.of(outcomes.dataset, covariates), None
    if combined:
        design = None if covariates is None else Design.of(outcomes.dataset, covariates)
        return design, Grouping.of(outcomes.dataset[GROUP].values, group_weights)
    if covariates is not None:
        raise ArgumentError(
            Argument("covariates"), " must be left out with ", Argument(GROUP), f"; got "
            f"{covariates!r:.80}. Leave one out: a group may be a covariate.",
        )  # fmt: skip
    refuse_weights(outcomes.weight, "groups (which have weights of their own, group_weights)")
    return None, Grouping.of(outcomes.dataset[GROUP].values, group_weights)


def _check_structure(
    name: str,
    requested: tuple[Metric, ...],
    scored: bool,
    pooling: str,
    difficulty: object,
    before: bool,
) -> None:
    """Refuse what has no model with covariates, or with groups."""
    voted = [one.label for one in requested if one.voted]
    if scored or voted:
        raise ArgumentError(
            Argument(name), " needs metrics of right and wrong; "
            f"{', '.join(one.label for one in requested if one.voted or scored)} judges others. "
            "Say what a success is, as in ", Argument("success", "score >= 0.5"),
            ", and leave out votes.",
        )  # fmt: skip
    if pooling != "partial" or before:
        wrong = Argument("prior_trials") if before else Argument("pooling", pooling)
        raise ArgumentError(
            Argument(name), " needs ", Argument("pooling", "partial"),
            ", which learns how questions differ, and no earlier trials; got ", wrong,
            ". Leave it out.",
        )  # fmt: skip
    if difficulty not in (None, "beta"):
        raise ArgumentError(
            Argument(name), " needs Beta difficulties, around a mean that depends on it; families "
            f"are not averaged. Got difficulty={difficulty!r:.80}. Leave it out.",
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
