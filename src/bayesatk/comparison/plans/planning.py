"""How many questions and trials an evaluation needs, before it is run."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import ndtr, ndtri

from bayesatk._tools.messages import (
    Argument,
    ArgumentError,
    one_of,
    positive_number,
    proper_probability,
    real_number,
    whole_number,
)
from bayesatk._tools.threads import one_thread
from bayesatk.comparison.plans.assumptions import (
    assumed_values,
    assumptions,
    pilot_correlation,
)
from bayesatk.comparison.plans.pilots import ExpectedInformation, Pilot, pilots_of
from bayesatk.data.outcomes import Outcomes
from bayesatk.metrics.grid import Metric, parse
from bayesatk.posterior.evaluate import evaluate
from bayesatk.results.result import Fit, Result, analysis_group, tree_of, with_analysis
from bayesatk.results.schema import TARGETS
from bayesatk.results.selection import result_of_systems
from bayesatk.results.tables import noted

_QUESTIONS_MIN = 30  # see `_RAISED`
_QUESTIONS_MAX = 10**7  # a design that needs more is out of reach
_METHOD = "expected posterior variance"
_OUT_OF_REACH = (
    f"-: more than {_QUESTIONS_MAX:,} questions, the most that are searched; the width and the "
    "probabilities of such a row are those with so many."
)
_UNIDENTIFIED = (
    "-: one trial of each question does not say how questions differ, so no number of questions is "
    "enough for k > 1."
)
_EQUAL = (
    "-: the systems are assumed to be equal, and no number of questions shows which is better; "
    "state two difficulties, or plan for a width."
)
_RAISED = (
    f"{_QUESTIONS_MIN} questions are the fewest that are offered: with fewer, plans promise too "
    "much, because posteriors are far from normal."
)
# Expected information of a question, by draw of the difficulty distribution and by system.
InformationByDraw = Sequence[Sequence[ExpectedInformation]]


def information_of(pilots: Sequence[Pilot], trials: int) -> InformationByDraw:
    """Return the expected information of a question with these trials; empty if unidentified."""
    return list(zip(*(pilot.expected_information(trials) for pilot in pilots), strict=True))


# What is said of a goal, and a usual value of it.
_GOALS = {
    "width": ("an interval of width {:g} or less", 0.1),
    "prob_correct": ("the better system has the higher posterior mean with probability {:g}", 0.9),
    "prob_ahead": ("the better system is declared ahead with probability {:g}", 0.8),
}


@dataclass(frozen=True)
class _Goal:
    """Goal of a plan: a width, at most, or the probability of a decision, at least."""

    name: str
    value: float
    target: int
    ci_prob: float
    correlation: float

    @property
    def quantile(self) -> float:
        """Half of the width of the interval, in sds."""
        return float(ndtri(0.5 + 0.5 * self.ci_prob))

    def reached(
        self, information: InformationByDraw, trials: int, questions: float
    ) -> dict[str, float]:
        """Return the expected width (of a difference), and the probabilities of decisions.

        Whatever the target, the questions are new, so that the mean of the posterior of the
        difference lies around the assumed one with the sd for questions like these.
        """
        variance = np.array(
            [[system.variance(questions) for system in pair] for pair in information]
        )
        total = variance.sum(axis=1)  # of the difference, (draws, targets)
        if variance.shape[1] > 1:
            # The variance due to the choice of questions is shared by correlated difficulties.
            sampling_variance = np.maximum(variance[:, :, 1] - variance[:, :, 0], 0.0)
            total[:, 1] -= 2.0 * self.correlation * np.sqrt(sampling_variance.prod(axis=1))
        sd = np.sqrt(np.maximum(total, 1e-300))
        width = 2.0 * self.quantile * float(sd[:, self.target].mean())
        if len(information[0]) < 2:
            return {"width": width, "prob_correct": np.nan, "prob_ahead": np.nan}
        gap = np.array([pair[0].value - pair[1].value for pair in information])
        decides = 1 if trials == 1 else self.target  # as `compare` decides on single trials
        needed = 0.0, self.quantile * sd[:, decides]
        correct, ahead = (float(ndtr((np.abs(gap) - least) / sd[:, 1]).mean()) for least in needed)
        return {"width": width, "prob_correct": correct, "prob_ahead": ahead}

    def words(self, by_default: bool) -> str:
        """Return the goal as a sentence, and say if it is the default."""
        note = " (the default: state a width or a probability for another)" * by_default
        return f"Goal: {_GOALS[self.name][0].format(self.value)}{note}."

    def met(self, information: InformationByDraw, trials: int, questions: float) -> bool:
        reached = self.reached(information, trials, questions)[self.name]
        return reached <= self.value if self.name == "width" else reached >= self.value


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
@one_thread()
def plan(
    source: object,
    metric: str | Metric,
    *,
    width: float | None = None,
    prob_correct: float | None = None,
    prob_ahead: float | None = None,
    target: Literal["questions", "population"] = "population",
    trials: Sequence[int] = (1, 2, 4, 8, 16, 32),
    ci_prob: float = 0.95,
    correlation: float | None = None,
    scores: Sequence[float] | None = None,
    system: object = None,
) -> xr.DataTree:
    """Find the number of questions at each number of trials, for a width or a right decision.

    Widths and probabilities are expectations before the data: over the counts that the evaluation
    may give, under the stated difficulties or the posterior of a pilot.

    Parameters
    ----------
    source : result, Outcomes, pair or mapping
        The difficulties: a pilot evaluated with ``pooling="partial"`` (the plan averages over its
        posterior), or its data, which are evaluated so (without groups or covariates); a stated
        mean and intraclass correlation ``(mean, icc)``; or ``{system: (mean, icc)}`` of one or two
        systems. With two systems the plan is for their difference.
    metric : str or Metric
        One metric of marks or scores at one k.
    width : float, optional
        Desired width of the credible interval, in units of the metric.
    prob_correct : float, optional
        Desired probability that the better of two systems (that with the higher assumed mean) has
        the higher posterior mean, strictly between 0.5 and 1; by very little, perhaps. Default: 0.9
        for two systems, and for one
        a width of a tenth of the range of the metric. Give one of the three goals.
    prob_ahead : float, optional
        Desired probability that the interval of the difference lies on the side of the better of
        two systems, strictly between 0 and 1; it takes many more questions. With ``ci_prob=0.95``
        `bayesatk.compare` then declares that system ahead; with single trials it decides by the
        interval on questions like these, and so does the plan, whatever the target.
    target : {"population", "questions"}
        ``"population"``: the mean over questions like these; ``"questions"``: over these questions.
    trials : sequence of int
        Trials per question to consider.
    ci_prob : float
        Probability of the interval.
    correlation : float, optional
        Correlation of the two systems' difficulties over the questions, which are the same for
        both, in [0, 1): the larger it is, the more certain their difference. Default: of a pilot of
        both, that of its joint draws, as `bayesatk.compare` has them; else 0, which gives more
        questions than a larger one.
    scores : sequence of float, optional
        Scores of categories, for stated difficulties: ``mean`` is then one probability for each.
    system : label or collection of labels, optional
        For a pilot or data of several systems: the one or two to plan for.

    Returns
    -------
    xarray.DataTree
        The pilot (of data: its evaluation; of stated difficulties: nothing else) with the group
        ``plan``. ``bayesatk.table(tree, "plan")`` has a row per number of ``trials``: ``questions``
        needed (30 or more, infinite beyond 10^7), ``total`` trials of a system, the expected
        ``width``, ``prob_correct`` and ``prob_ahead``, and ``cheapest``, true for the smallest
        total. Single trials do not identify how much questions differ, so for k > 1 no number of
        questions with one trial each is enough.

    Raises
    ------
    ValueError
        If there are several goals, if the goal is outside its range, or if the source has no
        difficulty distribution.

    See Also
    --------
    bayesatk.decide.StoppingRule : when to stop.

    Notes
    -----
    Preposterior analysis in closed form: expected posterior variances over the counts to come, with
    the uncertainty of the difficulty distribution from its Fisher information and the prior; the
    posterior is taken to be normal. The planned questions are new, so that with the true difference
    d its posterior mean varies with the expected sd s of its posterior for questions like these.
    ``prob_correct`` is Phi(abs(d) / s) and, with the sd u of the posterior that decides (s itself;
    with ``target="questions"`` and two trials or more, the sd for these questions) and the quantile
    z of the interval, ``prob_ahead`` is Phi((abs(d) - z u) / s). Stated difficulties have one d; of
    a pilot probabilities are averages over draws of its posterior, each with its own d. If
    there are over 1000 possible counts of categories, some are drawn. Seeds are fixed, so equal
    arguments give equal plans, accurate to a few per cent.

    The Fisher information is that at the stated difficulties. Plans are accurate to 10% for an icc
    between 0.05 and 0.95, means not close to 0 or 1, and 30 questions or more. Nearer the edges the
    posterior is far from normal, and the plan has far too few questions; so 30 is the smallest
    number of questions that is offered.

    New questions have the covariates and the weights of a pilot's questions in the same
    proportions; weights are taken to be unrelated to difficulty. Widths then follow from the Fisher
    information at draws of the pilot's posterior; of a pilot with ``population="bootstrap"``
    questions like these are drawn from the planned ones by the Bayesian bootstrap.

    Where a judge errs its rates are hyperparameters like the others, known from the calibration set
    and the marks.

    Examples
    --------
    >>> import bayesatk
    >>> needed = plan((0.6, 0.3), "pass@1", width=0.1, trials=[1, 4])
    >>> table = bayesatk.table(needed, "plan")
    >>> table[["trials", "questions", "total"]].values.tolist()
    [[1.0, 367.0, 367.0], [4.0, 174.0, 696.0]]

    By hand: single trials of 1000 questions have s = sqrt((0.6 0.4 + 0.65 0.35) / 1000) = 0.0216,
    and Phi(0.05 / 0.0216 - 1.96) = 0.64.

    >>> pair = {"a": (0.6, 0.3), "b": (0.65, 0.3)}
    >>> row = bayesatk.table(plan(pair, "pass@1", prob_ahead=0.64, trials=[1]), "plan").iloc[0]
    >>> bool(980 < row["questions"] < 1020)
    True
    """
    parsed_metric = _one_metric(metric)
    pilot = _pilot_of(source, parsed_metric, system)
    by_default = correlation is None and not isinstance(pilot, Fit)
    if correlation is None:
        correlation = pilot_correlation(pilot, parsed_metric)
    pilots = pilots_of(pilot, parsed_metric, scores)
    goals = {"width": width, "prob_correct": prob_correct, "prob_ahead": prob_ahead}
    stated = {name: value for name, value in goals.items() if value is not None}
    span = float(np.ptp(pilots[0].model.scores or (0.0, 1.0)))
    default = {"width": 0.1 * span} if len(pilots) == 1 else {"prob_correct": 0.9}
    one_of("target", target, TARGETS)
    goal = _checked_goal(
        stated or default, TARGETS.index(target), ci_prob, correlation, len(pilots), span
    )
    table = _table(pilots, goal, _trial_counts(trials))
    if table["trials"].duplicated().any():
        rule = f" must name every number once; got {list(trials)!r:.80}."
        raise ArgumentError("trials", rule)
    attrs = {
        "metric": parsed_metric.label,
        "target": target,
        "ci_prob": ci_prob,
        goal.name: goal.value,
        "correlation": correlation,
        "method": _METHOD,
        "citations": [],
    }
    sentences = [goal.words(not stated)]
    sentences += assumptions(pilot, parsed_metric, target, ci_prob, correlation, by_default)
    out_of_reach = ~np.isfinite(table["total"])
    if out_of_reach.any():
        values = assumed_values(pilot, parsed_metric) or {}
        equal = goal.name != "width" and len({*values.values()}) == 1
        unidentified = table["width"].isna()
        sentences += [_UNIDENTIFIED] * bool(unidentified.any())
        further = bool((out_of_reach & ~unidentified).any())
        sentences += [_EQUAL if equal else _OUT_OF_REACH] * further
    sentences += [_RAISED] * bool((table["questions"] == _QUESTIONS_MIN).any())
    if isinstance(pilot, Fit):
        sentences += noted(Result.of(pilot).notes_on())
    group = analysis_group(table, ["trials"], attrs, sentences=sentences)
    if isinstance(pilot, Fit):
        return with_analysis(Result.of(pilot).tree, "plan", plan=group)
    assumed = {"source": repr(source), "scores": "" if scores is None else repr(scores)}
    return with_analysis(tree_of(None, _METHOD), "plan", plan=group.assign_attrs(assumed))


def _table(pilots: Sequence[Pilot], goal: _Goal, trials: Sequence[int]) -> pd.DataFrame:
    """Return the table of `plan`."""
    rows = []
    for n in trials:
        information, questions = information_of(pilots, n), float("inf")
        achieved = dict.fromkeys(_GOALS, np.nan)
        if information:
            questions = _smallest_number(goal, information, n)
            achieved = goal.reached(information, n, min(questions, _QUESTIONS_MAX))
        rows.append({"trials": n, "questions": questions, "total": questions * n, **achieved})
    table = pd.DataFrame(rows)
    total = table["total"]
    return table.assign(cheapest=(total == total.min()) & np.isfinite(total))


def _one_metric(metric: str | Metric) -> Metric:
    (parsed_metric, *more_metrics) = parse(metric)
    if more_metrics or parsed_metric.voted:
        raise ArgumentError(
            "metric",
            f" must be one metric of marks or scores at one k; got {metric!r}. Plan for "
            "the one that matters most; in place of a vote for its strict majority, 'maj@k'.",
        )
    return parsed_metric


def _trial_counts(trials: object) -> list[int]:
    """Return the numbers of trials to consider, checked."""
    if not isinstance(trials, Sequence | np.ndarray) or len(trials) == 0:
        rule = f" must be a sequence of integers; got {trials!r}. Try [1, 4, 16]."
        raise ArgumentError("trials", rule)
    return [whole_number("trials", trial_count) for trial_count in trials]


def _pilot_of(source: object, metric: Metric, system: object) -> object:
    """Return the source of a plan: of some of its systems, and evaluated if it is data."""
    if isinstance(source, Outcomes):
        data = source.sel(system=system)
        return evaluate(data, metric, group=False, rng=0)
    if system is None:
        return source
    if not isinstance(source, Fit):
        rule = f" must be left out for stated difficulties; got {system!r:.80}."
        raise ArgumentError("system", rule)
    fit = Result.of(source)
    return result_of_systems(fit, fit.positions(system))


def _checked_goal(
    goals: Mapping[str, float],
    target: int,
    ci_prob: float,
    correlation: float,
    systems: int,
    span: float,
) -> _Goal:
    """Return the goal, or refuse several, or one outside its range."""
    if len(goals) > 1:
        width, correct, ahead = (Argument(name, usual) for name, (_, usual) in _GOALS.items())
        raise ArgumentError(
            "the plan must have one goal, ",
            width,
            ", ",
            correct,
            " or ",
            ahead,
            f"; got {len(goals)}.",
        )
    ((name, value),) = goals.items()
    if name == "width":
        positive_number(name, value, "Try 0.1.")
        if value >= systems * span > 0.0:
            raise ArgumentError(
                name,
                f" must be smaller than {systems * span:g}, the widest interval that there "
                f"can be; got {value:g}. Try ",
                Argument(name, 0.1 * span),
                ".",
            )
    elif systems < 2:
        raise ArgumentError(
            name,
            " needs two systems, ",
            Argument("source", {"a": (0.6, 0.3), "b": (0.65, 0.3)}),
            " or a pilot of two; got one.",
        )
    else:
        least = 0.5 if name == "prob_correct" else 0.0
        proper_probability(name, value, _GOALS[name][1], least)
    if not 0.0 <= real_number("correlation", correlation) < 1.0 or (correlation and systems < 2):
        raise ArgumentError(
            "correlation",
            " must lie in [0, 1), and be 0 for one system; got "
            f"{correlation} for {systems} system{'s' * (systems > 1)}.",
        )
    proper_probability("ci_prob", ci_prob, 0.95)
    return _Goal(name, value, target, ci_prob, correlation)


def _smallest_number(goal: _Goal, information: InformationByDraw, trials: int) -> float:
    """Smallest number from `_QUESTIONS_MIN` on that meets the goal; infinite beyond the largest."""
    met = partial(goal.met, information, trials)
    if not met(_QUESTIONS_MAX):
        return float("inf")
    numbers = range(_QUESTIONS_MIN, _QUESTIONS_MAX)
    return float(_QUESTIONS_MIN + bisect_left(numbers, True, key=met))
