"""Has it got worse? A change between days or versions, and drift within one evaluation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import softmax

from bayesatk._tools.arrays import Array, Flags, Ints
from bayesatk._tools.messages import ArgumentError, proper_probability, real_number
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.threads import one_thread
from bayesatk._tools.words import equality_words
from bayesatk.core.runs.change import Changes, ShiftPosterior, mixed_shift
from bayesatk.core.runs.trial_order import (
    RANK_SUM,
    SWITCHES,
    OrderLaw,
    alarm_evidence,
    day_scores,
    two_sided,
)
from bayesatk.data.answers import AnswerRules
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import read_trials
from bayesatk.data.validation import OutcomeError, Scores, check_scores, shown
from bayesatk.priors import HyperPrior
from bayesatk.priors.choice import describe_prior
from bayesatk.results.result import Fit, Result, analysis_group, tree_of, with_analyses
from bayesatk.results.selection import outcomes_by_day as by_day
from bayesatk.results.selection import read_days
from bayesatk.results.views import ShownTable

_SHIFT = ("mean", "sd", "ci_lower", "ci_upper")
_VOVK = "Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a Random World, chapter 8"


@one_thread()
def change_point(
    outcomes_by_day: object,
    *,
    days: Sequence[object] | None = None,
    prior: HyperPrior | None = None,
    sd: float = 1.0,
    prob_change: float = 0.5,
    alpha: float = 0.05,
    ci_prob: float = 0.95,
    rng: RandomSource = None,
) -> xr.DataTree:
    """Estimate whether the success rate of a system changed, on which day, and by how much.

    The same questions are evaluated on successive days, or by successive versions. There are two
    results. The posterior compares "no change" with a change on each day. The alarm is a sequential
    test that may be checked every day: without a change, the probability that it is ever raised is
    at most `alpha`, over the trials of all days and whatever the difficulties of the questions.

    Parameters
    ----------
    outcomes_by_day : mapping {day: data of one system}, or data whose systems are the days
        Right and wrong, anything `bayesatk.tally` accepts. Dates (``"2026-01-31"``, or of Python)
        and numbers are sorted; a mapping of other names is in order of time. A table with a column
        of days is read by ``bayesatk.load(path, columns={"system": "day"})``. Questions are matched
        by label. A question may be absent on some days, and numbers of trials may differ, as long
        as neither depends on outcomes. Weights of questions change nothing: the shift is common to
        all questions, and the likelihood of their trials has no weights.
    days : sequence, optional
        Which systems of the data are the days, in their order. It must be given where systems are
        neither dates nor numbers: three systems are not one system on three days.
    prior : HyperPrior, optional
        Prior of the difficulty distribution before a change, a single Beta. Default: uniform.
    sd : float
        Sd of the normal prior, centred at 0, of the shift of every question's logit.
    prob_change : float
        Prior probability of a change; all days but the first are equally likely.
    alpha : float
        Upper bound on the probability of a false alarm.
    ci_prob : float
        Probability of the interval of the shift.
    rng : int, numpy.random.Generator or None
        Breaks ties in the alarm at random. When days are added later, pass the same integer again:
        the results of earlier days then stay the same.

    Returns
    -------
    xarray.DataTree
        The data, with the group ``change_point`` (of a result: the result with this group).
        ``bayesatk.table(tree, "change_point")`` has a row per day: ``day``, its ``questions`` and
        ``trials``, its success ``rate``, ``log_evidence`` and posterior ``probability`` of a change
        that begins on this day; for the alarm, the normal ``score`` of the day given the days
        before, ``log_e`` against "no change so far", and whether there is an ``alarm`` by then.
        Printed it has a sentence, too. Attributes of the group: ``probability`` of any
        change, the most probable first ``day``, ``alarm`` (the first day with one; absent without),
        ``log_evidence_same`` of no change and, given a change, ``before`` and ``after``, the mean
        success probability of questions like these. Its variable ``shift(statistic)`` has mean, sd
        and interval of the shift in logits, given a change.

    See Also
    --------
    bayesatk.plots.plot_change_point : probabilities of the days and the alarm.
    bayesatk.models.build_change_point : the PyMC model, the day marginalised.
    bayesatk.checks.check_trial_order : drift among the trials of one evaluation.

    Notes
    -----
    With ``p_q ~ Beta`` before and ``logit p_q + delta`` from day d on, ``delta ~ Normal(0, sd)``,
    the evidence of each d is an integral over every p_q, over the mean and icc of the Beta and over
    delta, by quadrature with an error of about 1e-5. An icc below 1/2000 is taken as 1/2000. The
    model has one change, by the same shift for all questions; several changes, or a drift, appear
    as one change in their middle.

    The alarm does not use this model. Given each question's successes so far, the total of the last
    day has a known distribution (a sum of hypergeometric ones); its p-values are independent and
    uniform without a change, and `log_e` is the log of a martingale in them, mixed over the day and
    the size of a change. The alarm is raised when ``log_e >= log(1/alpha)``.

    Examples
    --------
    >>> good, bad = [[1, 1, 1, 0]] * 12, [[0, 1, 0, 0]] * 12
    >>> change = change_point({"Mon": good, "Tue": good, "Wed": bad, "Thu": bad}, rng=1)
    >>> found = change["change_point"].attrs
    >>> found["day"], found["probability"] > 0.99, found["alarm"]
    ('Wed', True, 'Wed')
    """
    difficulty_prior = _checked(prior, sd, prob_change, ci_prob)
    alpha = proper_probability("alpha", alpha)
    generator, seed = resolve_rng(rng)
    data = by_day(outcomes_by_day, days)
    _, labels, successes, trials = read_days(data, data.systems)
    changes = Changes(successes, trials, difficulty_prior, float(sd))
    shifts = [changes.at(first) for first in range(1, len(labels))]
    same = float(changes.same.log_evidence)
    evidence = np.array([shift.log_evidence for shift in shifts])
    logs = np.log(prob_change / len(shifts)) + evidence
    probability = softmax(np.append(logs, np.log1p(-prob_change) + same))
    scores = day_scores(successes, trials, generator.random(len(labels)))
    log_e = alarm_evidence(scores, trials, float(sd))
    number = trials.sum(axis=0)
    table = pd.DataFrame({
        "day": labels, "questions": (trials > 0).sum(axis=0), "trials": number,
        "rate": successes.sum(axis=0) / np.maximum(number, 1),
        "log_evidence": np.append(np.nan, evidence),
        "probability": np.append(0.0, probability[:-1]),
        "score": scores, "log_e": log_e,
        "alarm": np.logical_or.accumulate(log_e >= -np.log(alpha)),
    })  # fmt: skip
    attrs = {
        "probability": float(probability[:-1].sum()), "log_evidence_same": same,
        "alpha": alpha, "sd": float(sd), "prob_change": float(prob_change), "seed": seed,
        "ci_prob": float(ci_prob), "prior": describe_prior(difficulty_prior),
        "method": "quadrature", "citations": [_VOVK],
    }  # fmt: skip
    group = _group(table, attrs, shifts, softmax(evidence))
    if isinstance(outcomes_by_day, Fit):
        tree = Result.of(outcomes_by_day, None).tree
    else:
        tree = tree_of(data, "quadrature", seed)
    return with_analyses(tree, {"change_point": group})


def _group(
    table: pd.DataFrame, attrs: dict[str, Any], shifts: list[ShiftPosterior], weights: Array
) -> xr.Dataset:
    """Return the group, with what is expected given a change; weights are of its days."""
    days, probability, alarm = (table[name] for name in ("day", "probability", "alarm"))
    for side in ("before", "after"):
        attrs[side] = float(weights @ [getattr(shift, side) for shift in shifts])
    attrs["day"] = days.tolist()[int(probability.argmax())]
    if alarm.any():
        attrs["alarm"] = days.tolist()[int(alarm.argmax())]
    sentence = _sentence(attrs, float(probability.max()))
    group = analysis_group(table, ["day"], attrs, sentences=[sentence])
    tail = 0.5 * (1.0 - attrs["ci_prob"])
    shift = np.array(mixed_shift(shifts, weights, (tail, 1.0 - tail)))
    return group.assign(shift=("statistic", shift)).assign_coords(statistic=list(_SHIFT))


def _sentence(attrs: Mapping[str, Any], probability: float) -> str:
    """Say how probable a change is, when and which way, and whether there is an alarm."""
    way = "lower" if attrs["after"] < attrs["before"] else "higher"
    alarm = f"since {attrs['alarm']}" if "alarm" in attrs else "none"
    return (
        f"P(change) {equality_words(attrs['probability'])}; if there was one it was likeliest on "
        f"{attrs['day']} (P {equality_words(probability)}), and success is {way} since: "
        f"{attrs['before']:.3f} before, {attrs['after']:.3f} after, on questions like these. "
        f"Alarm: {alarm} (false in at most {100.0 * attrs['alpha']:g}% of series without a change, "
        "however long)."
    )


def _checked(prior: HyperPrior | None, sd: float, prob_change: float, ci_prob: float) -> HyperPrior:
    proper_probability("prob_change", prob_change, 0.5)
    proper_probability("ci_prob", ci_prob, 0.95)
    if not 0.0 < real_number("sd", sd) <= 10.0:
        rule = f" must lie in (0, 10], in logits; got {sd}. 1 is usual."
        raise ArgumentError("sd", rule)
    difficulty_prior = HyperPrior(families="beta") if prior is None else prior
    if (
        not isinstance(difficulty_prior, HyperPrior)
        or not difficulty_prior.proper
        or set(difficulty_prior.family_prior) != {"beta"}
    ):
        raise ArgumentError(
            "prior", " must be a proper HyperPrior of a single Beta, as in "
            f"HyperPrior(families='beta'); got {shown(prior)}.",
        )  # fmt: skip
    return difficulty_prior


def _counts(question: Ints, success: Flags) -> tuple[Ints, Ints, Ints, Ints]:
    """Successes, trials, places of the successes (from 0) and switches, by question.

    Of the trials of one system in their order.
    """
    size = int(question.max(initial=-1)) + 1
    trials = np.bincount(question, minlength=size)
    first = np.cumsum(trials) - trials
    position = np.arange(len(question)) - first[question]
    successes = np.bincount(question, success, size).astype(np.int64)
    late = np.bincount(question, position * success, size).astype(np.int64)
    turn = (success[1:] != success[:-1]) & (question[1:] == question[:-1])
    switches = np.bincount(question[1:], turn, size).astype(np.int64)
    return successes, trials, late, switches


def check_trial_order(
    data: object,
    *,
    columns: Mapping[str, str] | None = None,
    scores: Mapping[Any, float] | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Test whether the trials of a question are exchangeable, as all posteriors here assume.

    If they are, all orders of the c successes among n trials of a question are equally likely,
    whatever its difficulty. A drift (learning, a cache, an interface that degrades) makes early or
    late successes more likely; dependence (shared seeds, batches) makes neighbouring trials alike.

    Parameters
    ----------
    data : array_like, mapping {system: array or rows}, DataArray or long table
        Right and wrong in the order of the trials, as for `bayesatk.tally`: (question, trial) or
        (system, question, trial). A table is taken in the order of its trial column, which must
        hold numbers or times, and without one in that of its rows; a DataArray in that of its
        trial coordinate, if it has one. `bayesatk.convert` turns any log into such a table.
    columns, scores
        As in `bayesatk.tally`; two scores, 0 and 1. Missing outcomes are left out.
    alpha : float
        Level at which a check is flagged, over the two of a system together (Bonferroni).

    Returns
    -------
    pandas.DataFrame
        One row per system and check: the number of ``questions`` with both successes and failures;
        ``effect``: for drift, over all pairs of a success and a failure of the same question, the
        share in which the success is later minus the share in which it is earlier; for dependence,
        the correlation of neighbouring trials; the exact two-sided ``p_value``; ``flagged``; and a
        ``sentence``.

    Raises
    ------
    OutcomeError
        If the data have no order: counts, trials with names instead of numbers, or no question with
        two trials.

    See Also
    --------
    bayesatk.decide.change_point : a change between days.

    Notes
    -----
    Drift: the sum over questions of the places of the successes (Mann and Whitney 1947).
    Dependence: the number of neighbours that differ (Wald and Wolfowitz 1940). Both distributions
    are convolved exactly over the questions, given the successes of each (beyond four million
    possible sums, or 10,000 pairs of a success and a failure in one question, they are normal).

    Examples
    --------
    >>> learns = [[0, 0, 1, 1]] * 10
    >>> checks = check_trial_order(learns).set_index("check")
    >>> checks["flagged"].tolist()
    [True, True]
    >>> print(checks.loc["drift", "sentence"])
    drift: successes come late: of a success and a failure of one question the success is the later
    one in 100% of pairs (p = 3.3e-08).
    """
    proper_probability("alpha", alpha)
    if isinstance(data, Outcomes):
        raise OutcomeError(
            "data must have the order of the trials; got Outcomes, which are counts. Give the "
            "array or the table that they were tallied from."
        )
    scale = check_scores({0: 0.0, 1: 1.0} if scores is None else scores)
    if sorted(scale.values()) != [0.0, 1.0]:
        raise OutcomeError(
            "scores must be of right and wrong, 0 and 1, for the order of trials; got "
            f"{scale}. Give every outcome one of these two scores."
        )
    rows = []
    for name, counts in _counts_by_system(data, dict(columns or {}), scale).items():
        rows += [{"system": name, **row} for row in _checks(*counts, alpha)]
    return ShownTable.of(rows, "check_trial_order")


def _counts_by_system(
    data: object, columns: dict[str, str], scale: Scores
) -> dict[Any, tuple[Ints, Ints, Ints, Ints]]:
    right = [value == 1.0 for value in scale.values()].index(True)
    data = data.compute() if isinstance(data, xr.DataArray) else data
    long = read_trials(data, scale, AnswerRules(), columns)
    if long.counted is not None:
        raise OutcomeError("the table must have one outcome per row; it holds counts.")
    cell, trial, code = long.rows()
    if long.trial_labels is not None:
        trial_order = _places(pd.Series(list(long.trial_labels)))
        order = np.lexsort((trial_order[trial], cell))
        cell, code = cell[order], code[order]
    elif (cell[1:] < cell[:-1]).any():  # rows of a table
        order = np.argsort(cell, kind="stable")
        cell, code = cell[order], code[order]
    has_outcome = code >= 0
    system, question = np.divmod(cell[has_outcome], len(long.questions))
    success = code[has_outcome] == right
    counts = {
        name: _counts(question[system == index], success[system == index])
        for index, name in enumerate(long.systems)
    }
    if all(trials.max(initial=0) < 2 for _, trials, *_ in counts.values()):
        raise OutcomeError(
            "data must have the trials of some question in their order; got none with two. Counts "
            "say nothing about order."
        )
    return counts


def _places(trials: "pd.Series[Any]") -> Array:
    """Return numbers that are in the order of the trials, or refuse labels that have none."""
    numbers = pd.to_numeric(trials, errors="coerce")
    if numbers.isna().any():
        times = pd.to_datetime(trials, errors="coerce", format="mixed")
        if times.isna().any():
            raise OutcomeError(
                "trials must be numbers or times to have an order; got "
                f"{shown(trials.tolist(), 60)}. Number them, or leave the trial column out if the "
                "rows are in order."
            )
        numbers = pd.to_numeric(times)
    return numbers.to_numpy(float)


def _checks(
    successes: Ints, trials: Ints, late: Ints, switches: Ints, alpha: float
) -> list[dict[str, object]]:
    mixed = (successes > 0) & (successes < trials)
    c, n = successes[mixed], trials[mixed]
    earliest = c * (c - 1) // 2
    kinds = np.unique(np.stack([c, n - c], axis=1), axis=0, return_counts=True)
    shifted = late[mixed] - earliest
    drift, later = _test(shifted, RANK_SUM, kinds)
    dependence, more = _test(switches[mixed], SWITCHES, kinds)
    return [
        _row("drift", later, drift, len(n), alpha, _drift_words),
        _row("dependence", -more, dependence, len(n), alpha, _dependence_words),
    ]


def _test(values: Ints, law: OrderLaw, by: tuple[Ints, Ints]) -> tuple[float, float]:
    """P-value of the sum over questions, and its excess as a share of the expectation.

    Of the places of successes that is how much more often they come second than first in a pair
    with a failure; of switches, minus the correlation of neighbours.
    """
    if not len(values):
        return 1.0, float("nan")
    parts = [(int(c), int(f), int(times)) for (c, f), times in zip(by[0], by[1], strict=True)]
    expected = sum(times * law.mean(c, f) for c, f, times in parts)
    total = int(values.sum())
    return two_sided(total, law, parts), total / expected - 1.0


def _drift_words(effect: float) -> str:
    way = "late" if effect > 0 else "early"
    return (
        f"successes come {way}: of a success and a failure of one question the success is the "
        f"later one in {50 * (1 + effect):.0f}% of pairs"
    )


def _dependence_words(effect: float) -> str:
    way = "alike" if effect > 0 else "unlike each other"
    return f"neighbouring trials are {way} (correlation {effect:+.2f})"


def _row(
    check: str, effect: float, p_value: float, questions: int, alpha: float,
    words: Callable[[float], str],
) -> dict[str, object]:  # fmt: skip
    flagged = p_value < alpha / 2
    if not questions:
        text = "no question has both successes and failures"
    elif flagged:
        text = f"{words(effect)} (p = {p_value:.2g})"
    else:
        text = f"none to be seen (p = {p_value:.2g})"
    return {
        "check": check, "questions": questions, "effect": effect, "p_value": p_value,
        "flagged": flagged, "sentence": f"{check}: {text}.",
    }  # fmt: skip
