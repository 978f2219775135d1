"""Evidence that holds whatever the number of looks: e-values of systems, of thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
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
from bayesatk.core.question.laws import finite
from bayesatk.core.runs.e_values import Capital, Splits
from bayesatk.data.outcomes import Outcomes
from bayesatk.metrics.grid import Metric, one_metric
from bayesatk.results.selection import outcomes_of
from bayesatk.results.views import ShownTable


def e_value(
    fit: object,
    metric: str | None = None,
    *,
    threshold: float | None = None,
    trials: int | None = None,
    earlier: Sequence[object] = (),
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
        trials that it has.
    earlier : sequence like fit, optional
        The earlier looks at the same growing data, in order. New trials of a question that was used
        before then enter as a separate term, because its earlier total is already known. For a
        mean, a question enters with the trials of the first look at which it was complete. Trials
        that wait for those of the other system may have been seen, so they must not choose which
        question goes on: questions with as many waiting trials get as many new ones, in the order
        of the data.
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
        If a question has more trials than planned, the looks are not of the same growing data, or
        trials that had been seen may have chosen which questions went on.

    See Also
    --------
    bayesatk.decide.StoppingRule : stops by it, with ``kind="anytime"``.

    Notes
    -----
    *Identical*: under the null hypothesis, given the sum of both systems' successes on a question,
    the successes of one system are hypergeometric, whatever the difficulty. Under the alternative
    they have Fisher's noncentral hypergeometric distribution, with an odds ratio that is common to
    all questions and has a normal prior; the product over questions is inside the integral over
    this prior. The number of trials of a question must not depend on their outcomes, which `trials`
    ensures. With `earlier`, a term is new trials of both systems, and trials of one that waited for
    those of the other: whichever questions go on must not depend on the latter. If they go on in
    the order of the data, by as many trials for as many waiting, then every look is a stop on one
    path, question by question, that does not depend on outcomes, and the bound for all stops of the
    path holds. Other looks are refused. What looks cannot show is whether the number of new trials,
    common to all questions, was chosen by outcomes. Such e-values are those of Turner and Grünwald
    2023 (AISTATS, PMLR 206), with the mixture of Robbins 1970 (Ann. Math. Statist. 41, 1397-1409).

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
    parsed_metric = check_asked(metric, threshold, trials, sd)
    if trials is not None and len(earlier):
        raise ArgumentError(
            "earlier", " must be left out where ", "trials",
            " says when a question is complete: the last look then holds all of it.",
        )  # fmt: skip
    least = 1 if parsed_metric is None else parsed_metric.k
    looks = _Looks.of([*earlier, fit], trials, least, parsed_metric is not None)
    settings = _Settings(parsed_metric, threshold, float(sd), alpha)
    members = 2 if threshold is None else 1
    groups = list(combinations(range(len(looks.systems)), members))
    if not groups:
        raise ArgumentError(
            "fit", " must have at least two systems to compare; got one. Pass ",
            "threshold", " to compare its mean with a number.",
        )  # fmt: skip
    rows = [settings.row(looks, list(group)) for group in groups]
    turner = "Turner and Grünwald 2023, AISTATS, PMLR 206"
    betting = "Waudby-Smith and Ramdas 2024, J. R. Statist. Soc. B 86(1), 1-27"
    cited = turner if parsed_metric is None else betting
    label = None if parsed_metric is None else parsed_metric.label
    attrs = {"alpha": alpha, "sd": float(sd), "trials": trials, "metric": label, "citation": cited}
    return ShownTable.of(rows, "e_value", **attrs)


def check_asked(
    metric: str | None, threshold: float | None, trials: int | None, sd: float
) -> Metric | None:
    """Return the metric if what is asked goes together, or refuse."""
    positive_number("sd", sd, "1 is usual.")
    parsed_metric = None if metric is None else one_metric(metric)
    if trials is not None:
        whole_number("trials", trials, 1 if parsed_metric is None else parsed_metric.k)
    if threshold is not None:
        proper_probability("threshold", threshold, 0.5)
    if threshold is not None and parsed_metric is None:
        raise ArgumentError(
            "metric", " must be given with ", "threshold",
            ": a threshold is one of the mean of a metric. Pass ", Argument("metric", "pass@1"),
            ".",
        )  # fmt: skip
    return parsed_metric


@dataclass(frozen=True)
class _Settings:
    """What is asked about every pair, or every system."""

    metric: Metric | None
    threshold: float | None
    sd: float
    alpha: float

    def row(self, looks: "_Looks", members: list[int]) -> dict[str, object]:
        """Return the evidence on a pair, or on one system."""
        counts, questions, waiting = looks.counted(members, once=self.metric is not None)
        above, below, estimate, interval = self._evidence(*counts)
        log_e = float(np.logaddexp(above, below) - np.log(2.0))
        names = {"system": looks.systems[members[0]]}
        names |= (
            {"other": looks.systems[members[1]]}
            if self.threshold is None
            else {"threshold": self.threshold}
        )
        with np.errstate(over="ignore", under="ignore"):
            value = float(np.exp(log_e))
        return {
            **names, "e_value": value, "log_e": log_e, "log_e_above": above, "log_e_below": below,
            "estimate": estimate, "ci_lower": interval[0], "ci_upper": interval[1],
            "questions": questions, "waiting": waiting,
        }  # fmt: skip

    def _evidence(
        self, successes: Ints, trials: Ints
    ) -> tuple[float, float, float, tuple[float, float]]:
        """Log e-values above and below, estimate, interval."""
        if self.metric is None:
            splits = Splits.of(successes, trials)
            interval = splits.interval(self.sd, self.alpha)
            return *splits.log_e(self.sd), splits.mode(), interval
        values = finite(self.metric.credit, successes, trials)
        if self.threshold is not None:
            capital, mean = Capital.of(values[0]), self.threshold
            return *capital.log_e(mean), capital.mean, capital.interval(self.alpha)
        capital = Capital.of(0.5 * (values[0] - values[1]) + 0.5)
        lower, upper = (2.0 * end - 1.0 for end in capital.interval(self.alpha))
        return *capital.log_e(0.5), 2.0 * capital.mean - 1.0, (lower, upper)


def refuse_weights(outcomes: Outcomes) -> None:
    """Refuse questions with weights, of whose means bets say nothing."""
    weight = outcomes.weight
    if weight is not None:
        rule = (
            " must be left out for questions with weights: bets on a mean take all questions "
            "alike, and the null hypothesis that two systems are identical has no weights. Got "
            f"weights {weight.min():.4g} to {weight.max():.4g}. To go on, leave it out, or use "
            "data.unweighted()."
        )
        raise ArgumentError("metric", rule)


@dataclass(frozen=True)
class _Looks:
    """Successes and trials (system, question) at every look, by the labels of the last.

    Parameters
    ----------
    systems, questions : list
    successes, trials : list of ndarray, shape (systems, questions)
    plan : int or None
        Trials of a complete question.
    least : int
        Trials without which no question is complete.
    """

    systems: list[Any]
    questions: list[Any]
    successes: list[Ints]
    trials: list[Ints]
    plan: int | None
    least: int

    @classmethod
    def of(cls, looks: Sequence[object], plan: int | None, least: int, of_mean: bool) -> "_Looks":
        """Read the looks, the last of which says which systems and questions there are."""
        outcomes_by_look = [outcomes_of(look, "e_value") for look in looks]
        if of_mean:
            refuse_weights(outcomes_by_look[-1])
        last = outcomes_by_look[-1].dataset
        axes = {name: last[name].values for name in ("system", "question")}
        labels = [axis.tolist() for axis in axes.values()]
        counts = []
        for outcomes in outcomes_by_look:
            lost = [
                label
                for name, held in zip(axes, map(set, labels), strict=True)
                for label in outcomes.dataset[name].values.tolist()
                if label not in held
            ]
            if lost:
                raise ValueError(
                    f"earlier must have looks at what the data hold; {lost[0]!r} is in an earlier "
                    "look and not in the data. Pass all that was evaluated."
                )
            table = [
                counted.reindex(axes, fill_value=0).transpose("system", "question").values
                for counted in (outcomes.successes, outcomes.trials)
            ]
            counts.append(np.stack(table))
        for before, after in pairwise(counts):
            _check_grown(before, after, labels)
        if plan is not None:
            _check_plan(counts[-1][1], plan, labels)
        successes, trials = ([table[i] for table in counts] for i in (0, 1))
        return cls(labels[0], labels[1], successes, trials, plan, least)

    def counted(self, members: list[int], once: bool) -> tuple[Ints, int, int]:
        """Return what counts of some systems together; of each question once, or all that came.

        Successes and trials, shape (2, systems, splits), the number of questions that they are of,
        and the number of questions whose trials do not count yet.
        """
        used = np.zeros((2, len(members), self.trials[0].shape[1]), np.int64)
        waiting, parts, steps = np.zeros_like(used[1]), [], _Steps(self.questions)
        for successes, trials in zip(self.successes, self.trials, strict=True):
            new = np.stack([successes[members], trials[members]]) - used
            steps.check(waiting, new[1] - waiting)
            ready = (new[1] >= (self.least if once else 1)).all(axis=0)
            if self.plan is not None:
                ready = np.logical_and.accumulate((new[1] == self.plan).all(axis=0))
            if once:
                ready &= ~used[1].any(axis=0)
            used[:, :, ready] += new[:, :, ready]
            parts.append(new[:, :, ready])
            waiting = np.where(ready | (used[1].any(axis=0) & once), 0, new[1])
        tried = self.trials[-1][members].any(axis=0)
        questions = used[1].any(axis=0)
        counts = np.concatenate(parts, axis=2)
        return counts, int(questions.sum()), int((tried & ~questions).sum())


@dataclass(frozen=True)
class _Steps:
    """How questions whose trials wait to be used went on, by their numbers of waiting trials.

    Parameters
    ----------
    questions : list
        Labels.
    taken : dict
        New trials by system, by waiting trials by system.
    """

    questions: list[Any]
    taken: dict[tuple[int, ...], Ints] = field(default_factory=dict)

    def check(self, waiting: Ints, added: Ints) -> None:
        """Refuse new trials (system, question) that outcomes of waiting trials may have chosen."""
        for state in np.unique(waiting[:, waiting.any(axis=0)], axis=1).T:
            places = np.flatnonzero((waiting == state[:, None]).all(axis=0))
            goes_on = added[:, places].any(axis=0)
            if not goes_on.any():
                continue
            steps = added[:, places[goes_on]]
            step = self.taken.setdefault(tuple(state.tolist()), steps[:, 0])
            alike = (steps == step[:, None]).all(axis=0)
            if alike.all() and not (goes_on[1:] & ~goes_on[:-1]).any():
                continue
            if not alike.all():
                why = "not as many as others with as many waiting trials"
                chosen = places[goes_on][np.argmin(alike)]
            else:
                why = f"question {self.questions[places[np.argmin(goes_on)]]!r} before it none"
                chosen = places[goes_on][-1]
            raise ArgumentError(
                "earlier", " must have looks in which trials that were seen before they "
                "counted did not choose which questions went on, as those of one system that wait "
                f"for the other's; question {self.questions[chosen]!r} got new trials, and {why}. "
                "Run the questions in the order of the data, or both systems between the same two "
                "looks; if outcomes chose nothing, leave earlier out and pass ",
                "trials", ", the number planned.",
            )  # fmt: skip


def _check_grown(before: Ints, after: Ints, labels: list[list[Any]]) -> None:
    """Refuse looks that are not of the same growing data."""
    parts = (("successes", after[0] < before[0]),
             ("failures", after[1] - after[0] < before[1] - before[0]))  # fmt: skip
    for outcome, fewer in parts:
        if fewer.any():
            system, question = np.argwhere(fewer)[0]
            raise ValueError(
                "earlier must have looks at data that only grew, in their order; question "
                f"{labels[1][question]!r} of {labels[0][system]!r} has fewer {outcome} than an "
                "earlier look. Pass the earlier looks first, each with all trials so far."
            )


def _check_plan(trials: Ints, plan: int, labels: list[list[Any]]) -> None:
    """Refuse questions with more trials than planned."""
    if (trials > plan).any():
        system, question = np.argwhere(trials > plan)[0]
        raise ArgumentError(
            "trials",
            f" must be the number planned for each question and system; got {plan}, and question "
            f"{labels[1][question]!r} of {labels[0][system]!r} has {trials[system, question]}. "
            "Leave it out, and pass the looks before those trials as ", "earlier", ".",
        )  # fmt: skip
