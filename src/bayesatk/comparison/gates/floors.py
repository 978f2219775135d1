"""Floors of a gate: the smallest acceptable value of a metric on a question or a group of them.

Pooling is calibrated on average over questions, and not for the one question that has a floor
because it must not be lost. Verdicts on floors are therefore tests of the trials of their own
questions alone, whose rates of false passes and false failures stay below the level whatever the
success probabilities are.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc, rel_entr

from bayesatk._tools.arrays import Flags
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.words import number_words, probability_words
from bayesatk.comparison.gates.policy import GatePolicy
from bayesatk.data.roles import GROUP
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.observed import observed_value, question_shares
from bayesatk.results.result import Result

Verdict = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True)
class FloorCheck:
    """A question or group with its floor.

    Parameters
    ----------
    label : str
    floor : float
    value : float
        Unbiased estimate of the metric of the new system (NaN where k exceeds the trials), or with
        ``pooled_floors`` its posterior mean.
    above, below : float
        Confidence that the value is at the floor or above, and at the floor or below: one minus the
        largest probability of outcomes as good (as bad) of a system whose value is the floor. They
        need not add up to one. With ``pooled_floors``: posterior probabilities, which do.
    verdict : {"pass", "fail", "inconclusive"}
    pooled : bool
        Whether other questions were used.
    limit : {"floor", "ceiling"}
        ``"ceiling"`` where lower scores are better: the floor is then the largest acceptable value.
    """

    label: str
    floor: float
    value: float
    above: float
    below: float
    verdict: Verdict
    pooled: bool = False
    limit: Literal["floor", "ceiling"] = "floor"

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        side, chance = max(("at or above", self.above), ("below", self.below), key=lambda x: x[1])
        value = "not estimable" if np.isnan(self.value) else number_words(self.value)
        kind = "posterior probability" if self.pooled else "confidence"
        return (
            f"{self.label}: {value}, {self.limit} {self.floor:g}, {side} it with {kind} "
            f"{probability_words(chance)}: {self.verdict}."
        )


def decided(probability: float, level: float) -> Verdict:
    """Return the verdict on a probability.

    Examples
    --------
    >>> [decided(p, 0.95) for p in (0.96, 0.5, 0.05)]
    ['pass', 'inconclusive', 'fail']
    """
    if probability >= level:
        return "pass"
    return "fail" if 1.0 - probability >= level else "inconclusive"


def check_floors(result: Result, system: int, policy: GatePolicy) -> tuple[FloorCheck, ...]:
    """Check a system's floors; the error rate of the policy is divided between them."""
    checks = []
    confidences = pooled_probabilities if policy.pooled_floors else own_confidences
    level = 1.0 - (1.0 - policy.ci_prob) / max(len(policy.floors), 1)
    if policy.floors and result.judges is not None and not policy.pooled_floors:
        raise ArgumentError(
            "pooled_floors",
            " must be True where a judge errs: the marks of a few "
            "questions do not say how often they are right; got False. Pass ",
            Argument("pooled_floors", True),
            " to GatePolicy.",
        )
    limit: Literal["floor", "ceiling"] = "floor" if result.scale.direction > 0 else "ceiling"
    low, high = metric_range(result, policy.asked)
    worst = low if limit == "floor" else high
    for label, floor in policy.floors.items():
        if not low <= floor <= high or floor == worst:
            raise ArgumentError(
                "floors",
                f" must be within {low:g} to {high:g}, the range of {policy.metric}, and "
                f"not {worst:g}, which every system reaches; got {floor:g} for {label!r}. Give a "
                "score in that range, not a percentage.",
            )
        members = floor_questions(result, policy, str(label))
        value, above, below = confidences(result, system, policy, members, float(floor))
        met, broken = (above, below)[:: result.scale.direction]
        verdict: Verdict = "pass" if met >= level else "fail" if broken >= level else "inconclusive"
        checks.append(
            FloorCheck(
                str(label), float(floor), value, above, below, verdict, policy.pooled_floors, limit
            )
        )
    return tuple(checks)


def metric_range(result: Result, metric: Metric) -> tuple[float, float]:
    """Return the smallest and the largest value of a metric.

    Of scores these are the values where every trial is alike; a credit of right and wrong may have
    its ends in between.
    """
    if metric.voted:
        return 0.0, 1.0
    if result.scale.axes:
        values = result.scale.judged(metric).latent(np.eye(len(result.scores)))
    else:
        values = metric.credit.vector
    return float(values.min()), float(values.max())


def floor_questions(result: Result, policy: GatePolicy, label: str) -> Flags:
    """Return which questions a floor is about: those of a group of the policy or data, or one."""
    questions = [str(question) for question in result.data.dataset["question"].values]
    by_data = [str(group) for group in result.of_questions.get(GROUP, ())]
    if label in policy.groups:
        wanted = {str(question) for question in policy.groups[label]}
    elif label in by_data:
        return np.array([group == label for group in by_data])
    else:
        wanted = {label}
    unknown = sorted(wanted.difference(questions))
    if unknown:
        raise ArgumentError(
            "floors",
            f" must name questions of the data, or groups of them; "
            f"{unknown[0]!r} is neither. The first questions are {questions[:3]}.",
        )
    return np.isin(questions, list(wanted))


def pooled_probabilities(
    result: Result, system: int, policy: GatePolicy, kept: Flags, floor: float
) -> tuple[float, float, float]:
    """Return posterior mean and probabilities of both sides of a floor, given all questions."""
    if "p" not in result.posterior:
        raise ArgumentError(
            "fit",
            " must have the draws of p for pooled floors; it has none. Evaluate the same "
            "data with ",
            Argument("keep", ["p"]),
            " and ",
            Argument("draws", 2500),
            ".",
        )
    drawn = result.posterior["p"].isel(system=system, question=np.flatnonzero(kept))
    p = drawn.transpose("chain", "draw", "question", ...).values
    values = result.scale.judged(policy.asked).latent(p.reshape(-1, *p.shape[2:]))
    means = values @ question_shares(result.study, kept)
    above = float((means >= floor).mean())
    return float(means.mean()), above, 1.0 - above


def own_confidences(
    result: Result, system: int, policy: GatePolicy, kept: Flags, floor: float
) -> tuple[float, float, float]:
    """Return the estimate and the confidence of both sides of a floor, from these trials alone.

    For right and wrong on one question the value of most metrics is an increasing function of p, so
    that the floor is one of p, and binomial tails are exact. For several questions with equal
    weights and trials and a metric of single trials, the tails of the total are at most binomial
    (`total_tails`). All other cases have the bounds of `mean_tails`.
    """
    value = observed_value(result, system, policy.asked, kept, of_all=True)
    metric, trials = policy.asked, result.trials[system][kept]
    right_wrong = not metric.voted and not result.scale.axes
    if right_wrong and len(trials) == 1 and (np.diff(metric.credit.vector) >= 0.0).all():
        right = int(result.right_of_all("gate")[0][system][kept][0])
        p = _success_probability(result, policy, floor)
        above, below = _binomial_tails(right, int(trials[0]), p)
        return value, 1.0 - above, 1.0 - below
    if np.isnan(value):
        return value, 0.0, 0.0
    # Weight of one independent evaluation of the metric, from k trials of a question.
    weights = question_shares(result.study, kept) / (trials // metric.k)
    evaluations = int((trials // metric.k).sum())
    low, high = metric_range(result, metric)
    mean, scaled_floor = (value - low) / (high - low), (floor - low) / (high - low)
    if right_wrong and metric.k == 1 and np.ptp(weights) <= 1e-12 * weights.max():
        above, below = total_tails(round(mean * evaluations), evaluations, scaled_floor)
    else:
        above, below = mean_tails(mean, evaluations, scaled_floor, float(weights.max()))
    return value, 1.0 - above, 1.0 - below


def _success_probability(result: Result, policy: GatePolicy, floor: float) -> float:
    """Return the p at which the metric is at its floor."""
    metric = result.scale.judged(policy.asked)

    def gap(p: float) -> float:
        return float(metric.latent(np.array([p]))[0]) - floor

    return float(brentq(gap, 0.0, 1.0, xtol=1e-14))


def _binomial_tails(right: int, trials: int, p: float) -> tuple[float, float]:
    """Return the probabilities of as many successes or more, and of as many or fewer."""
    return float(bdtrc(right - 1, trials, p)), float(bdtr(right, trials, p))


def total_tails(right: int, trials: int, mean: float) -> tuple[float, float]:
    """Return bounds of both tails of a total of independent trials with a mean probability.

    Whatever the probabilities of single trials, tails that begin at least one success away from the
    expected total are at most binomial (Hoeffding 1956, Ann. Math. Statist. 27, 713-721, theorem
    5). Nearer to it the bound is 1.

    Examples
    --------
    >>> [round(tail, 4) for tail in total_tails(4, 4, 0.5)], total_tails(2, 4, 0.5)
    ([0.0625, 1.0], (1.0, 1.0))
    """
    above, below = _binomial_tails(right, trials, mean)
    expected = trials * mean
    return (above if right >= expected + 1.0 else 1.0, below if right <= expected - 1.0 else 1.0)


def mean_tails(mean: float, number: int, floor: float, unit: float) -> tuple[float, float]:
    """Return bounds of both tails of a weighted mean of independent values in [0, 1].

    By Hoeffding (1963, J. Am. Statist. Assoc. 58, 13-30), E exp(h mean) is largest if the values
    are 0 or 1 with the largest weight `unit` and the same expectation, and that of an average over
    all sets of k trials is at most that of ``trials // k`` disjoint sets. So Chernoff's bound
    holds; ``number * unit >= 1``.

    Examples
    --------
    >>> [round(tail, 4) for tail in mean_tails(1.0, 10, 0.6, 0.1)]  # 0.6^10
    [0.006, 1.0]
    """
    size = number * unit

    def tail(observed: float, expected: float) -> float:
        scaled, null = min(observed / size, 1.0), expected / size  # rounding may exceed 1
        if scaled <= null:
            return 1.0
        entropy = float(rel_entr(scaled, null) + rel_entr(1.0 - scaled, 1.0 - null))
        return float(np.exp(-number * entropy))

    return tail(mean, floor), tail(1.0 - mean, 1.0 - floor)
