"""Whether the trials of a question are exchangeable: trial effects, drift, dependence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arrays import Array, Flags, Ints
from bayesatk._tools.messages import Argument, proper_probability
from bayesatk.core.runs.trial_columns import cochran
from bayesatk.core.runs.trial_order import (
    RANK_SUM,
    SWITCHES,
    OrderStatistic,
    two_sided,
)
from bayesatk.data.answers import AnswerRules
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import BINARY, read_trials
from bayesatk.data.validation import (
    NumberScale,
    OutcomeError,
    Scores,
    UnscoredOutcomeError,
    check_scores,
    number_of,
    shown,
)
from bayesatk.results.views import ShownTable

_LABELS_PER_TRIAL_MAX = 2  # with more labels per trial, questions share no labels


def _order_statistics(question: Ints, success: Flags) -> tuple[Ints, Ints, Ints, Ints]:
    """Successes, trials, rank sum of the successes (from 0) and switches of every question.

    The arguments are the trials of one system in their order.
    """
    size = int(question.max(initial=-1)) + 1
    trials = np.bincount(question, minlength=size)
    start = np.cumsum(trials) - trials
    position = np.arange(len(question)) - start[question]
    successes = np.bincount(question, success, size).astype(np.int64)
    rank_sum = np.bincount(question, position * success, size).astype(np.int64)
    switched = (success[1:] != success[:-1]) & (question[1:] == question[:-1])
    switches = np.bincount(question[1:], switched, size).astype(np.int64)
    return successes, trials, rank_sum, switches


def check_trials(
    data: object,
    *,
    columns: Mapping[str, str] | None = None,
    scores: Mapping[Any, float] | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Test whether the trials of a question are exchangeable, as all posteriors here assume.

    If they are, all orders of the c successes among n trials of a question are equally likely,
    whatever its difficulty. Where trial j of every question has something in common (a prompt, a
    seed, a judge, a day) its successes move together; a drift (learning, a cache, an interface that
    degrades) makes early or late successes more likely; dependence (batches) makes neighbouring
    trials alike.

    Parameters
    ----------
    data : array_like, mapping {system: array or rows}, DataArray or long table
        Right and wrong in the order of the trials, as for `bayesatk.tally`: (question, trial) or
        (system, question, trial). A table is taken in the order of its trial column, which must
        hold numbers or times, and without one in that of its rows; a DataArray in that of its
        trial coordinate, if it has one. `bayesatk.convert` turns any log into such a table.
    columns, scores
        As in `bayesatk.tally`; every score is 0 or 1. Missing outcomes are left out.
    alpha : float
        Level over the three checks of a system together (Bonferroni): half of it for trial effects,
        which widen intervals most, and a quarter for each of the others.

    Returns
    -------
    pandas.DataFrame
        One row per system and check: the number of ``questions`` with both successes and failures;
        ``effect``: for trial effects, the sd of the success rate between trial numbers beyond
        chance; for drift, over all pairs of a success and a failure of the same question, the
        share in which the success is later minus the share in which it is earlier; for dependence,
        the correlation of neighbouring trials; the ``p_value``, exact and two-sided
        for the last two; ``flagged``; and a ``sentence``. A system whose trials end at the first
        success has one row, ``"retries"``, which says that their order is not tested.

    Raises
    ------
    OutcomeError
        If the data have no order: counts, trials with names instead of numbers, or no question with
        two trials.

    See Also
    --------
    bayesatk.checks.criticise : checks of the difficulty distribution.

    Notes
    -----
    Trial effects: Cochran's Q (1950) over the numbers of the trials, by permutations within
    questions where trials are few. Trials have the number of their label, if questions share
    labels, else their place in the question. An effect of each trial makes intervals too narrow,
    for these questions, too; docs/own_model.md has a model of it.

    Drift: the sum over questions of the places of the successes (Mann and Whitney 1947).
    Dependence: the number of neighbours that differ (Wald and Wolfowitz 1940). Both distributions
    are convolved exactly over the questions, given the successes of each (beyond four million
    possible sums, or 10,000 pairs of a success and a failure in one question, they are normal).

    Examples
    --------
    >>> learns = [[0, 0, 1, 1]] * 10
    >>> checks = check_trials(learns).set_index("check")
    >>> checks["flagged"].tolist()
    [True, True, True]
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
    numbers = NumberScale.of(scores)
    scale = numbers if numbers is not None else check_scores(BINARY if scores is None else scores)
    if {*scale.values()} != {0.0, 1.0}:
        raise OutcomeError(
            "scores must be of right and wrong, 0 and 1, for the order of trials; got "
            f"{shown(scores)}. Give every outcome one of these two scores, as in ",
            Argument("scores", {"fail": 0, "part": 0, "pass": 1}),
            ".",
        )
    try:
        by_system = _by_system(data, dict(columns or {}), scale)
    except UnscoredOutcomeError as error:
        of_text = scores is None and any(number_of(label) is None for label in error.outcomes)
        named = dict.fromkeys(error.outcomes if of_text else [*scale, *error.outcomes], ...)
        raise OutcomeError(
            error.args[0],
            "The order of trials is tested of right and wrong: score every outcome "
            "that may occur 1 or 0, ",
            Argument("scores", named),
            ".",
        ) from None
    rows = []
    for name, trials in by_system.items():
        rows += [{"system": name, **row} for row in _checks(trials, alpha)]
    return ShownTable.of(rows, "check_trials")


@dataclass(frozen=True)
class _OrderedTrials:
    """The trials of a system, sorted by question and, within a question, in their order.

    Parameters
    ----------
    question, number : ndarray of int, shape (trials,)
    success : ndarray of bool, shape (trials,)
    stopped : bool
        Whether the trials of every question end at its first success.
    """

    question: Ints
    number: Ints
    success: Flags
    stopped: bool


def _by_system(data: object, columns: dict[str, str], scale: Scores) -> dict[Any, _OrderedTrials]:
    data = data.compute() if isinstance(data, xr.DataArray) else data
    long = read_trials(data, scale, AnswerRules(), columns)
    if long.counted is not None:
        raise OutcomeError("the table must have one outcome per row; it holds counts.")
    cell, trial, code = long.rows()
    label = None
    if long.trial_labels is not None:
        label = _order_of_labels(pd.Series(list(long.trial_labels)))[trial]
        order = np.lexsort((label, cell))
    else:
        order = np.argsort(cell, kind="stable")
    cell, code = cell[order], code[order]
    start = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
    size = np.diff(np.append(start, len(cell)))
    number = np.arange(len(cell)) - np.repeat(start, size)  # position in the question
    if label is not None:
        labels, common_number = np.unique(label[order], return_inverse=True)
        if len(labels) <= _LABELS_PER_TRIAL_MAX * size.max(initial=0):
            number = common_number
    has_outcome = code >= 0
    system, question = np.divmod(cell[has_outcome], len(long.questions))
    number, success = number[has_outcome], np.array([*scale.values()])[code[has_outcome]] == 1.0
    stopped = long.stopped_systems(scale)
    trials = {
        name: _OrderedTrials(
            question[system == index],
            number[system == index],
            success[system == index],
            bool(stopped[index]),
        )
        for index, name in enumerate(long.systems)
    }
    if all(np.bincount(ordered.question, minlength=1).max() < 2 for ordered in trials.values()):
        raise OutcomeError(
            "data must have the trials of some question in their order; got none with two. Counts "
            "say nothing about order."
        )
    return trials


def _order_of_labels(trials: "pd.Series[Any]") -> Array:
    """Return the labels of trials as numbers or times, or refuse labels without an order."""
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


def _checks(ordered: _OrderedTrials, alpha: float) -> list[dict[str, object]]:
    successes, trials, rank_sum, switches = _order_statistics(ordered.question, ordered.success)
    if ordered.stopped:
        sentence = (
            "retries: not tested: the trials of a question end at its first success, which is the "
            "last trial by design."
        )
        questions = int(((successes > 0) & (successes < trials)).sum())
        return [
            {
                "check": "retries",
                "questions": questions,
                "effect": np.nan,
                "p_value": np.nan,
                "flagged": False,
                "sentence": sentence,
            }
        ]
    columns = cochran(ordered.question, ordered.number, ordered.success)
    mixed = (successes > 0) & (successes < trials)
    c, n = successes[mixed], trials[mixed]
    smallest_rank_sum = c * (c - 1) // 2
    count_pairs = np.unique(np.stack([c, n - c], axis=1), axis=0, return_counts=True)
    excess_ranks = rank_sum[mixed] - smallest_rank_sum
    drift, drift_effect = _order_test(excess_ranks, RANK_SUM, count_pairs)
    dependence, switch_excess = _order_test(switches[mixed], SWITCHES, count_pairs)
    return [
        _row("trial effects", columns.spread, columns.p_value, len(n), alpha / 2, _column_words),
        _row("drift", drift_effect, drift, len(n), alpha / 4, _drift_words),
        _row("dependence", -switch_excess, dependence, len(n), alpha / 4, _dependence_words),
    ]


def _column_words(effect: float) -> str:
    return (
        "trials with the same number succeed together on all questions: their rates differ by an "
        f"sd of {100 * effect:.1f} points beyond chance. Intervals are too narrow; "
        "docs/own_model.md has a model with trial effects"
    )


def _order_test(
    values: Ints, statistic: OrderStatistic, count_pairs: tuple[Ints, Ints]
) -> tuple[float, float]:
    """P-value of the sum over questions, and its relative excess over the expectation.

    For rank sums the excess is the share of pairs of a success and a failure in which the success
    is later, minus the share in which it is earlier; for switches it is minus the correlation of
    neighbouring trials.
    """
    if not len(values):
        return 1.0, float("nan")
    components = [
        (int(c), int(f), int(times))
        for (c, f), times in zip(count_pairs[0], count_pairs[1], strict=True)
    ]
    expected = sum(times * statistic.mean(c, f) for c, f, times in components)
    total = int(values.sum())
    return two_sided(total, statistic, components), total / expected - 1.0


def _drift_words(effect: float) -> str:
    direction = "late" if effect > 0 else "early"
    return (
        f"successes come {direction}: of a success and a failure of one question the success is "
        f"the later one in {50 * (1 + effect):.0f}% of pairs"
    )


def _dependence_words(effect: float) -> str:
    relation = "alike" if effect > 0 else "unlike each other"
    return f"neighbouring trials are {relation} (correlation {effect:+.2f})"


def _row(
    check: str,
    effect: float,
    p_value: float,
    questions: int,
    alpha: float,
    words: Callable[[float], str],
) -> dict[str, object]:
    flagged = p_value < alpha
    if not questions:
        text = "no question has both successes and failures"
    elif flagged:
        text = f"{words(effect)} (p = {p_value:.2g})"
    else:
        text = f"none to be seen (p = {p_value:.2g})"
    return {
        "check": check,
        "questions": questions,
        "effect": effect,
        "p_value": p_value,
        "flagged": flagged,
        "sentence": f"{check}: {text}.",
    }
