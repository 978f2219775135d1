"""Whether the trials of a question are exchangeable: drift, and dependence of neighbours."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arrays import Array, Flags, Ints
from bayesatk._tools.messages import proper_probability
from bayesatk.core.runs.trial_order import (
    RANK_SUM,
    SWITCHES,
    OrderLaw,
    two_sided,
)
from bayesatk.data.answers import AnswerRules
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import read_trials
from bayesatk.data.validation import OutcomeError, Scores, check_scores, shown
from bayesatk.results.views import ShownTable


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
    bayesatk.checks.criticise : checks of the difficulty distribution.

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
