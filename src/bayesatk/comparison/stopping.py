"""Evidence that holds whatever the number of looks, and a rule that stops by it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Ints
from bayesatk._tools.messages import (
    Argument,
    ArgumentError,
    positive_number,
    proper_probability,
    whole_number,
)
from bayesatk.core.question.expected_credit import finite
from bayesatk.core.runs.e_values import Capital, Splits
from bayesatk.data.outcomes import Outcomes
from bayesatk.metrics.grid import Metric, one_metric
from bayesatk.results.selection import outcomes_of
from bayesatk.results.views import ShownTable

_GO_ON = "go on"


def e_value(
    fit: object,
    metric: str | None = None,
    *,
    threshold: float | None = None,
    trials: int | None = None,
    sd: float = 1.0,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Compute e-values: evidence that two systems differ, valid for any number of looks.

    An e-value has expectation of at most 1 under the null hypothesis. While an evaluation grows,
    the probability (over its trials) that its e-value ever reaches ``1/alpha`` is at most
    ``alpha``, for any number of looks and any reason to stop. There are three null hypotheses:

    * ``metric=None``: two systems are **identical**: they have the same success probability on
      every question. Nothing is assumed about questions, their order or their difficulty.
    * a metric: two systems have the same **mean** of the metric over questions like these. The
      questions are independent draws, or in random order out of many.
    * a metric and a threshold: the mean of one system is the threshold; likewise.

    Two systems with the same mean are not identical if each is better on other questions: with
    several trials of a question the evidence against *identical* then often grows. Name a metric to
    find which system is better on average.

    Parameters
    ----------
    fit : xarray.DataTree, or anything `bayesatk.tally` accepts
        Outcomes of right and wrong. Only the data of a result are used. Weights of questions do not
        matter to whether systems are identical; means of weighted questions are refused.
    metric : str, optional
        One metric at one k, for the mean; a question counts if it has k trials.
    threshold : float, optional
        Value of the mean under the null hypothesis, strictly between 0 and 1.
    trials : int, optional
        Planned number of trials of each question and system, fixed before the evaluation. A
        question is then used once it has this number and all questions before it have theirs, so
        that looks are possible at any time, even while a question is incomplete. (The selection of
        questions must not depend on their outcomes.) Without it, every question is used with the
        trials that it has: a single look, or looks between which whole questions are added.
    sd : float
        Sd of the normal prior, centred at 0, of the log odds ratio under the alternative. E-values
        are valid for any value; 1 has most power against differences of half a logit to two logits.
    alpha : float
        One minus the simultaneous coverage of the intervals of all looks.

    Returns
    -------
    pandas.DataFrame
        A row per pair, or per system and threshold: ``e_value`` of a difference, ``log_e``,
        ``log_e_above`` and ``log_e_below`` of `system` being better and worse (one-sided, against
        "not better on any question" or "no larger mean"; ``e_value`` is the mean of the two),
        ``estimate`` with ``ci_lower`` and ``ci_upper`` (of the log odds ratio, common to all
        questions; of the difference in means; of the mean), the number of ``questions`` used, and
        ``waiting``, the number of questions with trials that are not used yet.

    Raises
    ------
    ValueError
        If a question has more trials than planned, or there are no two systems to compare.

    See Also
    --------
    bayesatk.decide.StoppingRule : stops by it.

    Notes
    -----
    *Identical*: under the null hypothesis, given the sum of both systems' successes on a question,
    the successes of one system are hypergeometric, whatever the difficulty. Under the alternative
    they have Fisher's noncentral hypergeometric distribution, with an odds ratio that is common to
    all questions and has a normal prior; the product over questions is inside the integral over
    this prior. The number of trials of a question must not depend on their outcomes, which `trials`
    ensures. Such e-values are those of Turner and Grünwald 2023 (AISTATS, PMLR 206), with the
    mixture of Robbins 1970 (Ann. Math. Statist. 41, 1397-1409).

    *Mean*: test by betting on the unbiased estimates of single questions (Waudby-Smith and Ramdas
    2024, J. R. Statist. Soc. B 86, 1-27), with a uniform mixture over the share of the capital that
    is bet.

    The error rate is for each pair: with several pairs, pass ``alpha`` divided by their number.

    Examples
    --------
    >>> runs = {"a": [[1], [1], [1], [0]], "b": [[0], [0], [1], [0]]}
    >>> row = e_value(runs).iloc[0]  # twice a alone: E[4 (1 + exp(-theta))^-2] over N(0, 1)
    >>> round(float(row["e_value"]), 4), int(row["questions"])
    (1.1735, 4)
    >>> above = e_value(runs["a"], "pass@1", threshold=0.5).iloc[0]
    >>> round(float(np.exp(above["log_e_above"])), 6)  # the mean of (1 + u)^3 (1 - u) over u
    1.3
    """
    alpha = proper_probability("alpha", alpha)
    parsed_metric = _checked(metric, threshold, trials, sd)
    outcomes = outcomes_of(fit, "e_value")
    _check_counts(outcomes, parsed_metric, trials, threshold)
    groups = list(combinations(outcomes.systems, 2 if threshold is None else 1))
    if not groups:
        raise ArgumentError(
            "fit",
            " must have at least two systems to compare; got one. Pass ",
            "threshold",
            " to compare its mean with a number.",
        )
    rows = []
    for systems in groups:
        successes, number = (
            counted.sel(system=list(systems)).transpose("system", "question").values
            for counted in (outcomes.successes, outcomes.trials)
        )
        ready = (number >= (1 if parsed_metric is None else parsed_metric.k)).all(axis=0)
        if trials is not None:
            ready = np.logical_and.accumulate((number == trials).all(axis=0))
        above, below, estimate, interval = _evidence(
            successes[:, ready], number[:, ready], parsed_metric, threshold, sd, alpha
        )
        log_e = float(np.logaddexp(above, below) - np.log(2.0))
        with np.errstate(over="ignore", under="ignore"):
            value = float(np.exp(log_e))
        against = {"other": systems[1]} if threshold is None else {"threshold": threshold}
        rows.append(
            {
                "system": systems[0],
                **against,
                "e_value": value,
                "log_e": log_e,
                "log_e_above": above,
                "log_e_below": below,
                "estimate": estimate,
                "ci_lower": interval[0],
                "ci_upper": interval[1],
                "questions": int(ready.sum()),
                "waiting": int((number.any(axis=0) & ~ready).sum()),
            }
        )
    turner = "Turner and Grünwald 2023, AISTATS, PMLR 206"
    betting = "Waudby-Smith and Ramdas 2024, J. R. Statist. Soc. B 86(1), 1-27"
    cited, label = (turner, None) if parsed_metric is None else (betting, parsed_metric.label)
    attrs = {"alpha": alpha, "sd": float(sd), "trials": trials, "metric": label, "citation": cited}
    return ShownTable.of(rows, "e_value", **attrs)


def _checked(
    metric: str | None, threshold: float | None, trials: int | None, sd: float
) -> Metric | None:
    """Return the metric if the arguments are valid together, or refuse them."""
    positive_number("sd", sd, "1 is usual.")
    parsed_metric = None if metric is None else one_metric(metric)
    if trials is not None:
        whole_number("trials", trials, 1 if parsed_metric is None else parsed_metric.k)
    if threshold is not None:
        proper_probability("threshold", threshold, 0.5)
    if threshold is not None and parsed_metric is None:
        raise ArgumentError(
            "metric",
            " must be given with ",
            "threshold",
            ": a threshold is one of the mean of a metric. Pass ",
            Argument("metric", "pass@1"),
            ".",
        )
    return parsed_metric


def _check_counts(
    outcomes: Outcomes, metric: Metric | None, plan: int | None, threshold: float | None
) -> None:
    """Refuse means of questions with weights, and questions with more trials than planned."""
    weight = outcomes.weight
    if weight is not None and metric is not None:
        of_pairs = threshold is None and len(outcomes.systems) > 1
        rule = (
            " must be left out for questions with weights: bets on a mean take all questions "
            "alike, and the null hypothesis that two systems are identical has no weights. Got "
            f"weights {weight.min():.4g} to {weight.max():.4g}. To go on, "
            f"{'leave it out, or ' if of_pairs else ''}use data.unweighted()."
        )
        raise ArgumentError("metric", rule)
    more = outcomes.trials.where(outcomes.trials > (plan or np.inf), drop=True)
    if plan is not None and more.size:
        system, question = (more[name].values.tolist()[0] for name in ("system", "question"))
        raise ArgumentError(
            "trials",
            f" must be the number planned for each question and system; got {plan}, and "
            f"question {question!r} of {system!r} has {int(more.max())}. Leave it out of "
            "bayesatk.decide.e_value for a single look at all trials.",
        )


def _evidence(
    successes: Ints,
    trials: Ints,
    metric: Metric | None,
    threshold: float | None,
    sd: float,
    alpha: float,
) -> tuple[float, float, float, tuple[float, float]]:
    """Log e-values above and below, estimate, interval; of counts (systems, questions)."""
    if metric is None:
        splits = Splits.of(successes, trials)
        return *splits.log_e(sd), splits.mode(), splits.interval(sd, alpha)
    values = finite(metric.credit, successes, trials)
    if threshold is not None:
        capital = Capital.of(values[0])
        return *capital.log_e(threshold), capital.mean, capital.interval(alpha)
    capital = Capital.of(0.5 * (values[0] - values[1]) + 0.5)
    lower, upper = (2.0 * end - 1.0 for end in capital.interval(alpha))
    return *capital.log_e(0.5), 2.0 * capital.mean - 1.0, (lower, upper)


@dataclass(frozen=True)
class StoppingRule:
    """A rule that stops an evaluation when e-values call one system ahead.

    It may be applied at any time, for any number of looks and whatever the reason to stop: the
    probability, over the trials, of ever calling one of two equal systems ahead is at most `alpha`.

    Parameters
    ----------
    metric : str, optional
        One metric at one k: equal systems have the same mean on questions like these, which must be
        in random order. Without it, equal systems have the same success probability on every
        question.
    trials : int
        The number of trials of every question and system, fixed before the evaluation. Questions
        are used in the order of the data, each once it has this number.
    threshold : float, optional
        Decide for each system whether its mean is above or below this value.
    width : float, optional
        Stop too if the interval, which holds for all looks together, is at most this wide.
    alpha : float
        Error rate of every pair, and one minus the coverage of the interval.
    sd : float
        Without a metric: as in `bayesatk.decide.e_value`.

    See Also
    --------
    bayesatk.decide.e_value : the evidence.

    Examples
    --------
    >>> runs = {"a": [[1, 1, 1, 1]] * 30, "b": [[1, 0, 1, 0]] * 30}
    >>> StoppingRule("pass@1", trials=4).decide(runs)["reason"].tolist()
    ['a is ahead']
    """

    metric: str | None = None
    trials: int = field(kw_only=True)
    threshold: float | None = field(default=None, kw_only=True)
    width: float | None = field(default=None, kw_only=True)
    alpha: float = field(default=0.05, kw_only=True)
    sd: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        whole_number("trials", self.trials)
        proper_probability("alpha", self.alpha)
        if self.width is not None:
            positive_number("width", self.width, "Try 0.1.")
        _checked(self.metric, self.threshold, self.trials, self.sd)

    def decide(self, fit: object) -> pd.DataFrame:
        """Apply the rule: one row per pair, or per system if there is a threshold.

        Parameters
        ----------
        fit : xarray.DataTree, or anything `bayesatk.tally` accepts
            Everything that was evaluated so far.

        Returns
        -------
        pandas.DataFrame
            ``system``, ``other`` (or ``threshold``), ``stop``, and ``reason``: who is ahead (or
            above, or below), "precise enough" or "go on".
        """
        evidence = e_value(
            fit,
            self.metric,
            threshold=self.threshold,
            trials=self.trials,
            sd=self.sd,
            alpha=self.alpha,
        )
        reasons = [self._reason(row) for row in evidence.to_dict("records")]
        rows = evidence[["system", "other" if self.threshold is None else "threshold"]]
        return pd.DataFrame(rows).assign(
            stop=[reason != _GO_ON for reason in reasons], reason=reasons
        )

    def _reason(self, row: Mapping[Any, Any]) -> str:
        """Return what is called, if anything; or that the interval is narrow."""
        above = row["log_e_above"] > row["log_e_below"]
        if row["log_e"] >= -np.log(self.alpha):
            if self.threshold is None:
                return f"{row['system'] if above else row['other']} is ahead"
            return f"{row['system']} is {'above' if above else 'below'} {self.threshold:g}"
        narrow = self.width is not None and row["ci_upper"] - row["ci_lower"] <= self.width
        return "precise enough" if narrow else _GO_ON
