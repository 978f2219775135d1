"""`Study`: data, metrics, measurement and model choices, declared once and kept in the result."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from bayesatk._tools.arrays import Array, Ints
from bayesatk._tools.messages import Argument, ArgumentError, one_of, proper_probability
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.core.pooling.marks import by_mark
from bayesatk.data.capabilities import Capability, require_together
from bayesatk.data.design import CovariateDesign
from bayesatk.data.grouping import Grouping, with_columns
from bayesatk.data.other_trials import (
    check_judged_trials,
    read_judges,
    read_prior_trials,
)
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.question_columns import question_coordinates
from bayesatk.data.roles import GROUP, WEIGHT
from bayesatk.data.scales import RIGHT_WRONG, Scale, Scored
from bayesatk.data.tally import tally
from bayesatk.data.validation import OutcomeError
from bayesatk.judge_error import JudgeError
from bayesatk.metrics.grid import Metric, MetricGrid, MetricSpec, check_sizes, parse
from bayesatk.priors import (
    AnswerHyperPrior,
    AnswerPrior,
    CategoryPrior,
    HyperPrior,
    ModelPrior,
    Pooling,
    Population,
    VotePrior,
)
from bayesatk.priors.choice import describe_prior, prior_from, with_families

_VOTE_PRIORS: dict[Pooling, type[VotePrior]] = {"partial": AnswerHyperPrior}
_MAX_K_OF_POOLED_VOTES = 200
_MAX_MARKS_FOR_VARYING_RATES = 8  # of a question, to integrate its own error rates of a judge


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """The data, the metrics, how trials were marked, and the model.

    All fields but the data are in the text that a result keeps (`as_text`).

    Parameters
    ----------
    outcomes : Outcomes
        With the group, weight and covariates of the questions.
    metrics : tuple of Metric
    pooling : Pooling, or "own"
        ``"own"`` for draws of a model that is not the library's.
    prior : ModelPrior, optional
        Prior of the success or category probabilities; None for a model that is not the library's.
    answer_prior : VotePrior
        Prior of votes between answers.
    prior_counts : ndarray, shape (system, question, category), optional
        Prior trials, discounted by their weight.
    covariates : tuple of str, optional
        Names of columns that success depends on.
    group_weights : "questions", "equal", or mapping {group: weight}, optional
        Weights of the groups of questions; None if the model has no groups.
    judges : tuple of JudgeError, optional
        Error counts of the judge of every system, if marks may be wrong.
    population : {"law", "bootstrap"}
        Whether new questions follow the fitted difficulty distribution, or are drawn from these by
        the Bayesian bootstrap.
    ci_prob : float
        Probability of an interval.
    ci_kind : {"eti", "hdi"}
    notes : tuple of str
        On prior trials, groups and judges.
    """

    outcomes: Outcomes
    metrics: tuple[Metric, ...]
    pooling: Any
    prior: ModelPrior | None
    answer_prior: VotePrior = field(default_factory=AnswerHyperPrior)
    prior_counts: Array | None = None
    covariates: tuple[str, ...] | None = None
    group_weights: str | Mapping[str, float] | None = None
    judges: tuple[JudgeError, ...] | None = None
    population: Population = "law"
    ci_prob: float = 0.95
    ci_kind: str = "eti"
    notes: tuple[str, ...] = ()

    @property
    def judged(self) -> list[Metric]:
        """Metrics of the marks of trials."""
        return [metric for metric in self.metrics if not metric.voted]

    @property
    def votes(self) -> list[Metric]:
        """Votes between answers."""
        return [metric for metric in self.metrics if metric.voted]

    @cached_property
    def grid(self) -> MetricGrid:
        """The grid of the metrics."""
        return MetricGrid.of(self.metrics)

    @cached_property
    def scale(self) -> Scale:
        """The scale of the metrics: right and wrong, or scored categories."""
        # Prior trials are modelled by categories, unless something needs a success probability.
        needs_success = {"success metrics", "group", "covariates", "families", "judge"}
        by_category = self.prior_counts is not None and not needs_success & self._declared.keys()
        scored = by_category or not self.outcomes.binary or isinstance(self.prior, CategoryPrior)
        return Scored.of(self.outcomes) if scored and self.judged else RIGHT_WRONG

    @cached_property
    def _declared(self) -> dict[Capability, object]:
        """The capabilities that the declaration turns on, with their values."""
        return declared_values(self.declaration)

    @cached_property
    def counts(self) -> Ints:
        """Trials by category or, with judges, by `Outcomes.kinds`; (system, question, kind)."""
        return self.scale.counts(self.outcomes) if self.judges is None else self.outcomes.kinds

    @cached_property
    def prior_by_kind(self) -> Array | None:
        """Discounted prior trials, if any, arranged like `counts`."""
        if self.prior_counts is None:
            return None
        more = self.counts.shape[-1] - self.prior_counts.shape[-1]
        return np.pad(self.prior_counts, [(0, 0), (0, 0), (0, more)])

    @property
    def known_judges(self) -> tuple[JudgeError, ...] | None:
        """The judges with the error counts of trials of known truth added."""
        if self.judges is None:
            return None
        pairs = zip(self.judges, self.outcomes.kinds.sum(axis=1), strict=True)
        return tuple(judge.with_labels(kinds) for judge, kinds in pairs)

    @cached_property
    def judge_rates(self) -> tuple[JudgeRates, ...] | None:
        """The unknown error rates of the judge of every system."""
        if self.judges is None:
            return None
        vary = self._rates_vary
        return tuple(JudgeRates(judge, vary) for judge in self.judges)

    @property
    def _rates_vary(self) -> bool:
        """Whether error rates of judges vary between questions.

        This can be estimated only where some trials of known truth share a question.
        """
        if self.judges is None or self.counts.shape[-1] == 2 or self.pooling == "complete":
            return False
        if self.prior_counts is not None and self.prior_counts.any():
            return False
        most = int(by_mark(self.counts).sum(axis=-1).max())
        return 2 <= most <= _MAX_MARKS_FOR_VARYING_RATES and all(
            judge.by_question for judge in self.judges
        )

    @cached_property
    def design(self) -> CovariateDesign | None:
        """The design of the covariates that success depends on."""
        names = self.covariates
        return None if names is None else CovariateDesign.of(self.outcomes.dataset, names)

    @cached_property
    def grouping(self) -> Grouping | None:
        """The groups of the questions."""
        if self.group_weights is None:
            return None
        return Grouping.of(self.outcomes.dataset[GROUP].values, self.group_weights)

    @property
    def bootstrapped(self) -> bool:
        """Whether the population is that of the Bayesian bootstrap over the questions."""
        return self.population == "bootstrap"

    @property
    def population_words(self) -> str:
        """The population of questions, in words."""
        weighted = "weight" in self.values
        if self.pooling == "own" and not self.bootstrapped:
            return "the new questions of your model"
        if self.bootstrapped:
            within_groups = ", within groups" if self.grouping is not None else ""
            with_weights = ", with their weights" if weighted else ""
            return (
                f"these questions, resampled by the Bayesian bootstrap{within_groups}{with_weights}"
            )
        grouped = self.grouping is not None
        of_groups = " of these groups, which keep their weights," if grouped else ""
        if self.covariates is not None:
            properties = "the covariates and the weights" if weighted else "the covariates"
            return f"new questions{of_groups} with {properties} of these"
        return f"new questions{of_groups} from the fitted difficulty distribution"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities of the study (`bayesatk.data.capabilities`)."""
        return frozenset(self.values)

    @cached_property
    def values(self) -> dict[Capability, object]:
        """The capabilities of the study, with the values that messages show."""
        values = self._declared | outcome_values(self.outcomes)
        if self.grouping is not None:
            values["group"] = f"{len(self.grouping.labels)} groups"
        if self.prior_counts is not None:
            values["prior trials"] = f"{self.prior_counts.sum():.4g} trials"
        if "truth" in values:  # which is refused for the same reasons
            values.pop("judge", None)
        if isinstance(self.prior, CategoryPrior):  # which may be two
            values["categories"] = self.scale.scores
        return values

    @property
    def declaration(self) -> dict[str, Any]:
        """The fields without the data."""
        data = ("outcomes", "prior_counts", "notes")
        return {
            name: value
            for name, value in self.__dict__.items()
            if name in self.__dataclass_fields__ and name not in data
        }

    def as_text(self) -> str:
        """Return the declaration as JSON, from which `declaration_of` reads it back."""
        return text_of(self.declaration)


def outcome_values(outcomes: Outcomes) -> dict[Capability, object]:
    """Return the capabilities that data turn on, with the values of messages."""
    values: dict[Capability, object] = {}
    weight = outcomes.weight
    if weight is not None:
        values["weight"] = f"{weight.min():.4g} to {weight.max():.4g}"
    if not outcomes.binary:
        values["categories"] = outcomes.dataset["score"].values.tolist()
    if "truth_count" in outcomes.dataset:
        values["truth"] = f"the truth of {int(outcomes.dataset['truth_count'].sum())} trials"
    return values


def as_marked(data: object) -> Outcomes:
    """Return the outcomes of data; refuse trials of known truth, since marks are taken as right."""
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    if "truth_count" in outcomes.dataset:
        raise ArgumentError(
            "data",
            " must be without trials of known truth here, where marks are taken "
            f"as they are; got {outcome_values(outcomes)['truth']}. Read the data without ",
            "truth",
            ", or use bayesatk.evaluate.",
        )
    return outcomes


def declared_values(declaration: Mapping[str, Any]) -> dict[Capability, object]:
    """Return the capabilities that a declaration turns on, with the values of messages."""
    metrics, judges, pooling = (declaration[name] for name in ("metrics", "judges", "pooling"))
    votes = [metric.label for metric in metrics if metric.voted]
    successes = [metric.label for metric in metrics if _of_success(metric)]
    prior = declaration["prior"]
    families = list(prior.family_prior) if isinstance(prior, HyperPrior) else []
    values = {
        "group": declaration["group_weights"],
        "covariates": declaration["covariates"],
        "judge": judges and judges[0],
        "votes": ", ".join(votes),
        "success metrics": ", ".join(successes),
        "families": ", ".join(families) if families != ["beta"] else "",
        cast(Capability, f"pooling {pooling}"): f"pooling={pooling!r}",
        declaration["population"]: f"population={declaration['population']!r}",
    }
    return {name: value for name, value in values.items() if value}


def _of_success(metric: Metric) -> bool:
    """Whether a metric judges right and wrong alone."""
    return not metric.voted and metric.family.category is None


def population_of(
    pooling: Pooling, population: Population | None = None, weighted: bool = False
) -> Population:
    """Return the population that was asked for, or the default.

    The default is ``"law"``, the fitted difficulty distribution, if there is one and questions
    have no weights, for which the distribution does not account; else ``"bootstrap"``.
    """
    if population is None:
        return "bootstrap" if pooling == "none" or weighted else "law"
    one_of("population", population, ("law", "bootstrap"))
    return population


def text_of(declaration: Mapping[str, Any]) -> str:
    """Return a declaration as JSON."""
    prior, judges = declaration["prior"], declaration["judges"]
    plain = {
        **declaration,
        "metrics": " ".join(metric.label for metric in declaration["metrics"]),
        "prior": prior and describe_prior(prior),
        "answer_prior": describe_prior(declaration["answer_prior"]),
        "judges": judges and [asdict(judge) for judge in judges],
    }
    return json.dumps(plain)


def declaration_of(text: str) -> dict[str, Any]:
    """Return the declaration that `text_of` wrote; its metrics stay text."""
    plain = json.loads(text)
    names, judges = plain["covariates"], plain["judges"]
    return {
        **plain,
        "prior": plain["prior"] and prior_from(plain["prior"]),
        "answer_prior": prior_from({"kind": "AnswerPrior"} | plain["answer_prior"]),
        "covariates": names and tuple(names),
        "judges": judges and tuple(JudgeError(**judge) for judge in judges),
    }


def text_of_systems(text: str, systems: Sequence[int]) -> str:
    """Return the text of a study with the judges of some of its systems only."""
    plain = json.loads(text)
    if plain["judges"]:
        plain["judges"] = [plain["judges"][system] for system in systems]
    return json.dumps(plain)


def read_study(
    data: object,
    metrics: MetricSpec,
    *,
    pooling: Pooling,
    prior: object,
    difficulty: object = None,
    success: str | None,
    prior_trials: object,
    prior_weight: float,
    answer_prior: VotePrior | None,
    ci_prob: float,
    ci_kind: str = "eti",
    keep: Sequence[str],
    group: object = None,
    group_weights: object = None,
    covariates: object = None,
    judge: object = None,
    population: Population | None = None,
) -> Study:
    """Return the study of the arguments of `evaluate`, or refuse arguments that contradict."""
    if group is None and isinstance(data, Outcomes) and GROUP in data.dataset.coords:
        group = GROUP  # named when the data were read
    ignored: tuple[str, ...] = ()
    if group is False:
        ignored, group = _ignored_groups(data), None
    ignored += _ignored_covariates(data, group, covariates)
    asked_for_none = isinstance(covariates, list | tuple) and not covariates
    covariates = None if asked_for_none else covariates
    outcomes = with_columns(data, group, covariates)
    outcomes = outcomes.settled() or outcomes
    proper_probability("ci_prob", ci_prob, 0.95)
    one_of("ci_kind", ci_kind, ("eti", "hdi"))
    one_of("pooling", pooling, ("none", "partial", "complete"))
    _check_keep(keep)
    requested = parse(metrics)
    check_sizes(requested)
    if success is not None:
        outcomes = _with_success(outcomes, success, requested)
    elif outcomes.right_or_wrong and not outcomes.binary and any(map(_of_success, requested)):
        outcomes = outcomes.with_success("score >= 1")
    _check_priors(requested, pooling, prior_trials, prior_weight, answer_prior)
    prior_counts, notes = read_prior_trials(outcomes, prior_trials, prior_weight)
    weights_of_groups, more = _groups(outcomes, group, group_weights)
    design = None if covariates is None else CovariateDesign.of(outcomes.dataset, covariates)
    names = None if design is None else tuple(map(str, design.frame))
    families = "beta" if difficulty is None else difficulty  # replaced once the prior is known
    judges, of_judges = read_judges(judge, outcomes)
    # With covariates, new questions have the covariates and weights of these questions.
    weighted = outcomes.weight is not None and pooling == "partial" and names is None
    study = Study(
        outcomes=outcomes,
        metrics=requested,
        pooling=pooling,
        prior=HyperPrior(families=families),
        answer_prior=answer_prior or _VOTE_PRIORS.get(pooling, AnswerPrior)(),
        prior_counts=prior_counts,
        covariates=names,
        group_weights=weights_of_groups,
        judges=judges,
        population=population_of(pooling, population, weighted),
        ci_prob=float(ci_prob),
        ci_kind=ci_kind,
        notes=(*notes, *ignored, *([] if names else more), *of_judges),
    )
    require_together(study.values)
    if {"votes", "group", "pooling none"} <= study.capabilities:
        raise ArgumentError(
            "pooling",
            " must be 'partial' for votes in groups, whose posterior is of answers that "
            "questions share; got 'none'. Pass ",
            Argument("pooling", "partial"),
            ", or leave out ",
            Argument("group"),
            ".",
        )
    if {"votes", "pooling partial"} <= study.capabilities:
        _check_right_answers(outcomes)
    if judges is not None:
        check_judged_trials(outcomes, pooling)
    if isinstance(study.scale, Scored):
        for metric in study.judged:
            _ = metric.category_credit  # raises an error if it is of right and wrong
    study = replace(study, notes=(*study.notes, *_population_note(study)))
    return replace(study, prior=_resolved_prior(study, prior, difficulty))


def _check_right_answers(outcomes: Outcomes) -> None:
    """Refuse questions with several right answers, which the pooled model of votes lacks."""
    answers = outcomes.answers
    if answers is None:
        return
    right = answers.correct & (answers.count > 0)
    cells = np.stack([answers.system, answers.question])[:, right]
    distinct, count = np.unique(cells, axis=1, return_counts=True)
    if (count > 1).any():
        system, question = distinct[:, np.argmax(count)].tolist()
        several = np.flatnonzero(
            right & (answers.system == system) & (answers.question == question)
        )
        texts = " and ".join(repr(answers.label[i]) for i in several[:2])
        raise ArgumentError(
            "pooling",
            " must be 'none' for votes where a question has several right answers; "
            f"got 'partial', and {texts}, both right, for question "
            f"{outcomes.dataset['question'].values[question]!r}. Pass ",
            Argument("pooling", "none"),
            ", or count right answers as one: ",
            Argument("answer_rules", ..., "tally"),
            " with bayesatk.AnswerRules(merge_correct=True).",
        )


def _population_note(study: Study) -> list[str]:
    """Return a note on the population, if questions have weights or it is the bootstrap."""
    weighted = "weight" in study.values
    if study.pooling != "partial" or not (weighted or study.bootstrapped):
        return []
    note = f"Questions like these are {study.population_words}."
    if not study.bootstrapped and study.covariates is None:
        note += " Weights of questions count in means over these questions."
    return [note]


def _resolved_prior(study: Study, prior: object, difficulty: object) -> ModelPrior:
    """Return the prior that was asked for, checked, or the default for the study."""
    structured = not study.values.keys().isdisjoint({"group", "covariates"})
    pooled_prior_trials = {"prior trials", "pooling partial"} <= study.capabilities
    # Averaging over families would take minutes there.
    beta_only = structured or (
        pooled_prior_trials and not study.capabilities.isdisjoint({"judge", "truth"})
    )
    resolved = study.scale.resolve_prior(study.pooling, prior)
    if not (structured or pooled_prior_trials) or not isinstance(resolved, HyperPrior):
        return resolved if difficulty is None else with_families(resolved, difficulty)
    if beta_only or difficulty is not None:
        resolved = with_families(resolved, "beta" if difficulty is None else difficulty)
    if not resolved.proper:
        where = "with group= and with prior trials"
        where = "with covariates" if study.covariates else where
        raise ArgumentError(
            "prior",
            f" must be proper {where}; got icc={resolved.icc}. Use "
            "bayesatk.priors.HyperPrior(icc=(1, 1)).",
        )
    return resolved


def _check_keep(keep: Sequence[str]) -> None:
    if isinstance(keep, str) or not set(keep) <= {"p", "log_likelihood", "predictive"}:
        rule = f" must be a sequence of 'p', 'log_likelihood' and 'predictive'; got {keep!r}."
        raise ArgumentError("keep", rule)


def _with_success(outcomes: Outcomes, success: str, requested: Sequence[Metric]) -> Outcomes:
    """Turn scores into right and wrong, unless a metric is about scores."""
    of_scores = [metric.label for metric in requested if metric.family.category is not None]
    if of_scores:
        raise OutcomeError(
            "success",
            f" turns scores into right and wrong, and {', '.join(of_scores)} would no longer "
            "be about scores. Evaluate metrics of scores without it.",
        )
    return outcomes.with_success(success)


def _ignored_groups(data: object) -> tuple[str, ...]:
    """Return a note if the data have groups that the model ignores."""
    if not isinstance(data, Outcomes) or GROUP not in data.dataset.coords:
        return ()
    n_groups = len(set(data.dataset[GROUP].values.tolist()))
    if n_groups == 1:
        return ()
    return (
        f"The data have {n_groups} groups of questions, which the model ignores: questions are "
        "taken as independent, and intervals are too narrow if those of a group are alike.",
    )


def _ignored_covariates(data: object, group: object, covariates: object) -> tuple[str, ...]:
    """Return a note if none was asked for of the covariates of the data that are no groups."""
    if covariates is not None or not isinstance(data, Outcomes):
        return ()
    ignored = [
        name for name in question_coordinates(data.dataset) if name not in (GROUP, WEIGHT, group)
    ]
    if not ignored:
        return ()
    return (
        f"Covariates of the data are not used: {', '.join(ignored)}. Success depends on those that "
        "covariates= names.",
    )


def _groups(
    outcomes: Outcomes, group: object, group_weights: object
) -> tuple[str | Mapping[str, float] | None, list[str]]:
    """Return the weights of groups that the model has, None without groups, and notes.

    A single group counts as none: the data would not say how much groups differ, and the prior of
    the mean would not be the one without groups.
    """
    if group is None:
        if group_weights is not None:
            rule = f" must be left out without groups; got {group_weights!r:.80}. Name them: "
            raise ArgumentError("group_weights", rule, Argument(GROUP, ...), ".")
        return None, []
    grouping = Grouping.of(outcomes.dataset[GROUP].values, group_weights)
    if len(grouping.labels) == 1:
        return None, [
            f"All questions are of one group, {grouping.labels[0]!r}: they are evaluated as "
            "without groups, and nothing is known of new groups (no target 'new_groups')."
        ]
    return grouping.described() or "questions", grouping.notes


def _check_priors(
    requested: tuple[Metric, ...],
    pooling: Pooling,
    prior_trials: object,
    prior_weight: float,
    answer_prior: VotePrior | None,
) -> None:
    """Refuse priors of votes of the wrong kind, and priors that would have no effect."""
    voted = [metric.label for metric in requested if metric.voted]
    if answer_prior is not None and not voted:
        raise ArgumentError(
            "answer_prior",
            " must be left out without a vote between answers; got "
            f"{answer_prior!r}. Votes are 'plurality@k'.",
        )
    kind = _VOTE_PRIORS.get(pooling, AnswerPrior)
    if answer_prior is not None and not isinstance(answer_prior, kind):
        raise ArgumentError(
            "answer_prior",
            f" must be an {kind.__name__} with ",
            Argument("pooling", pooling),
            f"; got {answer_prior!r:.80}. Pass "
            f"bayesatk.priors.{kind.__name__}(), or leave it out for that default.",
        )
    large_k = [
        metric.label for metric in requested if metric.voted and metric.k > _MAX_K_OF_POOLED_VOTES
    ]
    if large_k and pooling == "partial":
        raise ArgumentError(
            "metrics",
            f" must have k <= {_MAX_K_OF_POOLED_VOTES} for votes with ",
            Argument("pooling", "partial"),
            f", whose work grows with k; got {large_k[0]}. Pass ",
            Argument("pooling", "none"),
            ", or a smaller k.",
        )
    if prior_trials is None and prior_weight != 1.0:
        raise ArgumentError(
            "prior_weight",
            " must be left out without ",
            "prior_trials",
            f"; got {prior_weight!r}.",
        )
