"""`question_table`: what each question says of each system, and of the difference of two."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array, Flags, Indices, Ints
from bayesatk._tools.messages import ArgumentError, one_of
from bayesatk._tools.threads import one_thread
from bayesatk.data.roles import GROUP, WEIGHT
from bayesatk.data.scales import RIGHT_WRONG, Scale
from bayesatk.metrics.grid import Metric, parse
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.models_of import model_of, right_wrong_model
from bayesatk.posterior.observed import question_shares
from bayesatk.posterior.questions import (
    QuestionPosterior,
    QuestionValues,
    question_values,
)
from bayesatk.results.difficulty_draws import flat_draws
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGETS
from bayesatk.results.views import ShownTable

_ALPHA = 0.05  # probability, at most, that any question of a system is called suspicious wrongly


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
@one_thread()
def question_table(
    fit: Fit,
    metric: str | Metric | None = None,
    *,
    system: object = None,
    other: object = None,
    target: Literal["questions", "population"] = "questions",
    margin: float = 0.05,
) -> pd.DataFrame:
    """Tabulate posteriors and influence of each question, by system or for a pair of systems.

    Probabilities are posterior: given the observed trials of all questions.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`; only its data, model and prior are used. Or
        from `bayesatk.from_draws`, whose draws of p are used, without ``influence`` (NaN).
    metric : str or Metric, optional
        Metric for ``influence``; default: the first of the result.
    system : label, optional
        One system; all if not given.
    other : label, optional
        A second system: the table is then of the difference ``system`` less ``other``, on the
        questions that both tried.
    target : {"questions", "population"}
        Target for ``influence``: the mean over these questions, or over questions like these.
    margin : float
        A question is saturated if its p is within this distance of 0 or 1; of scores, if its
        expected score is within this share of the scale of one of its ends.

    Returns
    -------
    pandas.DataFrame
        Without `other` a row for each system and question: ``trials``, ``successes`` and ``rate``;
        ``mean`` of its success probability p with ``ci_lower`` and ``ci_upper`` (equal tails);
        ``prob_flip``, the probability that a new trial has another outcome than a randomly chosen
        observed trial; ``information``, the posterior mean of 4 p (1 - p): 1 for p = 1/2, 0 for p =
        0 or 1; ``prob_saturated``, the probability that p is within the margin of 0 or 1;
        ``influence``, the posterior mean of the system's metric minus that without this question;
        ``prob_weaker``, the probability that a weaker system has as few successes or fewer, and
        ``suspicious``, where that is very small. ``group`` and ``weight``, where the data have
        them. With `judge=` ``trials``, ``successes`` and ``rate`` are of marks, and all else is of
        what is right; ``prob_flip`` and ``prob_weaker``, which compare marks with it, are not given
        (NaN), and nothing is called suspicious.

        Of scores: ``score``, the observed mean, in place of ``successes`` and ``rate``; ``mean``,
        ``sd``, ``ci_lower`` and ``ci_upper`` of its expected score; ``prob_flip``, the probability
        that a new trial has another score than a randomly chosen observed trial;
        ``prob_saturated``; ``influence``; ``prob_weaker``, the probability that a weaker system has
        a total score as bad or worse; ``suspicious``. ``information`` has no meaning for scores.

        With `other` a row for each question, in decreasing order of its effect on the difference:
        ``difference``, the posterior mean of the difference in the metric of this question, and its
        ``sd``; ``part``, its contribution to the difference for these questions (contributions add
        up to it); ``influence``, the difference minus that without this question.

    Raises
    ------
    ValueError
        For a sampled result without a closed form, or unknown labels.

    See Also
    --------
    bayesatk.decide.noise_floor : the difference of two runs of the same system.
    bayesatk.plots.plot_questions : the same as a picture.
    bayesatk.plots.plot_shrinkage : what pooling does to single questions.

    Notes
    -----
    Mean, sd, ``information`` and influence are not simulated, nor is ``prob_flip`` of right and
    wrong. Intervals, ``prob_saturated`` and ``prob_weaker`` are from draws with a fixed seed of p,
    or of the probabilities of scores: 2000 for every distinct question where these are very many,
    and up to 40,000. The error of ends of intervals is then 1% of the width, or 0.3%.

    Leaving a question out removes its likelihood from the posterior of the difficulty distribution,
    as in `bayesatk.checks.exact_loo`. This is exact for one Beta. For several families the error of
    the integration over hyperparameters is about 1e-3 with very few questions and 1e-4 with
    hundreds; for scores it is 0.03 posterior sds of the metric, and 0.1 with less than ten
    questions. With groups, covariates, prior trials or a judge, importance sampling with 800
    hyperparameters, and draws of the effects of groups for each, has an error of about 0.03
    posterior sds of the metric; where its weights without a question cannot be trusted, the model
    is fitted again. The prior trials of a question are left out with it, and groups then have the
    weights of their other questions.

    A weaker system is one whose posterior mean of the metric is worse. ``prob_weaker`` is the
    posterior predictive probability of as few successes in as many new trials of the question by a
    weaker system, averaged over those that tried it. If a system is at least as likely to solve
    every question as each weaker one, the probability that any of its questions is called
    suspicious is about 0.05 or less (Bonferroni over its questions). With few trials no question
    can reach that level. A suspicious question may have a wrong reference answer or a broken
    environment, or weaker systems may have been trained on it.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1], [1, 0], [0, 0]], "b": [[1, 0], [0, 0], [0, 0]]}
    >>> fit = bayesatk.evaluate(runs, "pass@1", pooling="none", rng=1)
    >>> rows = bayesatk.checks.question_table(fit, system="a")
    >>> rows["mean"].round(9).tolist(), rows["prob_flip"].round(9).tolist()  # (c + 1)/(n + 2)
    ([0.75, 0.5, 0.25], [0.25, 0.5, 0.25])
    >>> rows["influence"].round(12).tolist()  # 1/2 less (1/2 + 1/4)/2, and so on
    [0.125, 0.0, -0.125]
    >>> graded = bayesatk.tally([["b", "a", "b", "c"]], scores={"c": 0, "b": 0.5, "a": 1})
    >>> scored = bayesatk.evaluate(graded, "mean", pooling="none", rng=1)
    >>> bayesatk.checks.question_table(scored)[["score", "mean"]].round(6).values.tolist()  # 3.5/7
    [[0.5, 0.5]]
    >>> pair = bayesatk.checks.question_table(fit, system="a", other="b")
    >>> pair["part"].sum().round(12).item()  # 1/2 - 1/3
    0.166666666667
    """
    result = Result.of(fit)
    result.require("question_table")
    parsed_metric = chosen_metric(result, metric)
    one_of("target", target, TARGETS)
    if not 0.0 < margin < 0.5:
        rule = f" must lie strictly between 0 and 0.5; got {margin!r:.80}. Try 0.05."
        raise ArgumentError("margin", rule)
    column = TARGETS.index(target)
    if other is not None:
        return _pair_table(
            result,
            parsed_metric,
            _position(result, "system", system),
            _position(result, "other", other),
            column,
        )
    systems = result.positions(system)

    def of_systems() -> pd.DataFrame:
        all_systems = _SystemPosteriors(result, parsed_metric)
        tables = [_system_table(all_systems, index, column, margin) for index in systems]
        return pd.concat(tables, ignore_index=True)

    # A report asks for it more than once.
    table = result.once(("questions", parsed_metric, tuple(systems), column, margin), of_systems)
    return ShownTable.of(table.copy(), "question_table", ci_prob=result.ci_prob)


def chosen_metric(result: Result, metric: str | Metric | None) -> Metric:
    """Return one metric that judges trials: the one given, or the first of the result."""
    judged = result.judged or parse("pass@1")
    parsed_metric = judged[0] if metric is None else next(iter(parse(metric)), None)
    if (
        parsed_metric is None
        or parsed_metric.voted
        or (metric is not None and len(parse(metric)) > 1)
    ):
        rule = f" must be one metric that judges trials; got {metric!r:.80}. Try 'pass@1'."
        raise ArgumentError("metric", rule)
    return parsed_metric


def _position(result: Result, name: str, label: object) -> int:
    """Return the position of a system."""
    (position,) = result.positions([label], name)
    return position


@dataclass(frozen=True)
class _SystemPosteriors:
    """Models and posteriors of the systems of a result, each computed once."""

    result: Result
    metric: Metric

    @cached_property
    def models(self) -> list[CountModel]:
        return [_model(self.result, i) for i in range(len(self.result.systems))]

    @cached_property
    def posteriors(self) -> list[QuestionPosterior]:
        result, systems = self.result, range(len(self.result.systems))
        if result.own:
            vectors = _scale(result).vectors
            scores = np.array([0.0, 1.0]) if result.data.binary else np.array(result.scores)
            return [
                QuestionPosterior.of_draws(vectors(_drawn_p(result, i)), scores) for i in systems
            ]
        return [QuestionPosterior.of(model) for model in self.models]

    @cached_property
    def values(self) -> list[QuestionValues]:
        result, judged = self.result, _scale(self.result).judged(self.metric)
        systems = range(len(result.systems))
        if result.own:
            return [QuestionValues.of_draws(judged.latent(_drawn_p(result, i))) for i in systems]
        return [question_values(model, judged) for model in self.models]

    @cached_property
    def level(self) -> Array:
        """Posterior mean of the metric on these questions, by system."""
        share = question_shares(self.result.study)
        return np.array([share @ values.mean for values in self.values])

    def weaker(self, system: int) -> Indices:
        """Systems whose metric is worse."""
        utility = _scale(self.result).direction * self.level
        return np.flatnonzero(utility < utility[system])

    def prob_weaker(self, system: int) -> Array:
        """Probability that a weaker system would have as bad a total; NaN without any."""
        tried, binary = self.result.trials > 0, self.result.data.binary
        total, number = np.zeros((2, tried.shape[1]))
        marked = binary and self.result.judges is not None
        # With a judge, posteriors are of the truth, and counts are of marks.
        for weaker in () if marked else self.weaker(system):
            both = tried[system] & tried[weaker]
            posterior = self.posteriors[weaker]
            if binary:
                right = _right(self.result, system)
                chance = posterior.chance_as_few(self.result.trials[system], right)
            else:
                totals = self.result.counts[system] @ self.result.scores
                direction = self.result.scale.direction
                chance = posterior.chance_as_bad(self.result.trials[system], totals, direction)
            total += np.where(both, chance, 0.0)
            number += both
        average = np.full(len(total), np.nan)
        np.divide(total, number, out=average, where=number > 0)
        return average


def _scale(result: Result) -> Scale:
    """Return the scale on which the posteriors of questions are."""
    return RIGHT_WRONG if result.data.binary else result.scale


def _right(result: Result, system: int) -> Ints:
    """Return the successes of every question."""
    right: Ints = result.right_of_all("question_table")[0][system]
    return right


def _model(result: Result, system: int, kept: Flags | None = None) -> CountModel:
    if result.data.binary:
        return right_wrong_model(result, system, kept)
    return model_of(result, system, kept)


def _drawn_p(result: Result, system: int) -> Array:
    """Return the draws of p of a model of one's own, (draws, questions, ...)."""
    return flat_draws(result.posterior["p"], system)


def _difference(
    result: Result, metric: Metric, systems: tuple[int, int], shared: Flags
) -> QuestionValues:
    """Return the difference of two systems, independent but for joint draws of one's own model."""
    judged = _scale(result).judged(metric)
    if result.own:
        drawn = [judged.latent(_drawn_p(result, system)[:, shared]) for system in systems]
        return QuestionValues.of_draws(drawn[0] - drawn[1])
    first, second = (question_values(_model(result, i, shared), judged) for i in systems)
    return QuestionValues(
        first.mean - second.mean,
        first.variance + second.variance,
        first.influence - second.influence,
    )


def _system_table(
    posteriors: _SystemPosteriors, system: int, column: int, margin: float
) -> pd.DataFrame:
    """Return the rows of one system."""
    result, weaker = posteriors.result, posteriors.prob_weaker(system)
    tested = int((~np.isnan(weaker)).sum())
    return pd.DataFrame(
        {
            "system": _label_column(result.systems[system], len(weaker)),
            "question": result.data.dataset["question"].values,
            **_group_columns(result),
            "trials": result.trials[system],
            **_columns(posteriors, system, margin),
            "influence": posteriors.values[system].influence[:, column],
            "prob_weaker": weaker,
            "suspicious": weaker * tested < _ALPHA,
        }
    )


def _columns(posteriors: _SystemPosteriors, system: int, margin: float) -> dict[str, NDArray[Any]]:
    """Return the columns of the questions of one system."""
    result, posterior = posteriors.result, posteriors.posteriors[system]
    trials, mean = result.trials[system], posterior.mean
    trials_or_nan = np.where(trials > 0, trials, np.nan)
    lower, upper = posterior.quantiles(result.tails)
    interval = {"ci_lower": lower, "ci_upper": upper}
    saturated = posterior.near_an_end(margin)
    if not result.data.binary:
        share = result.counts[system] / trials_or_nan[:, None]
        flip = 1.0 - (share * posterior.p.mean(axis=0)[posterior.which]).sum(axis=1)
        return {
            "score": share @ result.scores,
            "mean": mean,
            "sd": np.sqrt(posterior.variance),
            **interval,
            "prob_flip": flip,
            "prob_saturated": saturated,
        }
    right = _right(result, system)
    rate = right / trials_or_nan
    flip = rate * (1.0 - mean) + (1.0 - rate) * mean
    return {
        "successes": right,
        "rate": rate,
        "mean": mean,
        **interval,
        "prob_flip": np.full(len(rate), np.nan) if result.judges is not None else flip,
        "information": 4.0 * np.maximum(mean * (1.0 - mean) - posterior.variance, 0.0),
        "prob_saturated": saturated,
    }


def _label_column(label: Any, size: int) -> NDArray[Any]:
    labels = np.empty(size, object)
    labels[:] = [label] * size
    return labels


def _group_columns(result: Result) -> dict[str, NDArray[Any]]:
    """Return the group and the weight of every question, where the data have them."""
    columns = result.of_questions
    return {name: columns[name] for name in (GROUP, WEIGHT) if name in columns}


def _observed_columns(result: Result, system: int) -> dict[str, NDArray[Any]]:
    """Return the successes of every question, or its mean score."""
    if result.data.binary:
        return {"successes": _right(result, system)}
    trials = np.maximum(result.trials[system], 1)
    return {"score": result.counts[system] @ result.scores / trials}


def _pair_table(
    result: Result, metric: Metric, system: int, other: int, column: int
) -> pd.DataFrame:
    """Return a table of the difference of two systems by question, for those that both tried."""
    if system == other:
        rule = f" must be a system other than {result.systems[system]!r}."
        raise ArgumentError("other", rule)
    trials = result.trials
    shared = (trials[[system, other]] > 0).all(axis=0)
    if not shared.any():
        raise ArgumentError(
            "other",
            " must have tried a question that the system tried; "
            f"{result.systems[system]!r} and {result.systems[other]!r} share none.",
        )
    difference = _difference(result, metric, (system, other), shared)
    observed = [
        {
            f"{prefix}{name}": values[shared]
            for name, values in _observed_columns(result, index).items()
        }
        for prefix, index in (("", system), ("other_", other))
    ]
    table = pd.DataFrame(
        {
            "system": _label_column(result.systems[system], int(shared.sum())),
            "other": _label_column(result.systems[other], int(shared.sum())),
            "question": result.data.dataset["question"].values[shared],
            **{name: column_[shared] for name, column_ in _group_columns(result).items()},
            "trials": trials[system, shared],
            **observed[0],
            "other_trials": trials[other, shared],
            **observed[1],
            "difference": difference.mean,
            "sd": np.sqrt(difference.variance),
            "part": difference.mean * question_shares(result.study, shared),
            "influence": difference.influence[:, column],
        }
    )
    size = table["influence"].fillna(table["part"]).abs()
    table = table.iloc[np.argsort(-size.to_numpy(), kind="stable")].reset_index(drop=True)
    return ShownTable.of(table, "question_table")
