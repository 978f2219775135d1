"""Groups, weights and covariates of questions, and costs and truths of trials, as asked for.

Each is the name of a column, or values: by question, or (costs and truths) arranged like the
outcomes. Of costs only the number, sum and sum of squares by system, question and outcome are kept
(`bayesatk.posterior.costs`), so memory does not grow with the trials.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Array, Ints
from bayesatk._tools.messages import Argument, one_of
from bayesatk.data.array_forms import arranged_like
from bayesatk.data.long_form import LongForm
from bayesatk.data.question_columns import RESERVED_NAMES, argument_of, by_question
from bayesatk.data.roles import BY_TRIAL, COST, COVARIATE, GROUP, TRUTH, WEIGHT
from bayesatk.data.validation import (
    Codes,
    Labels,
    OutcomeError,
    is_absent,
    number_of,
    shown,
    word_scores,
)

MissingCost = Literal["error", "ignore"]
_MAX_COST = 1e90  # squares and ratios of costs stay finite
# Units of the costs that readers of logs offer, by name.
_COST_UNITS_OF_LOGS = {
    "cost": "USD", "tokens": "tokens", "input_tokens": "tokens", "output_tokens": "tokens",
    "seconds": "s",
}  # fmt: skip


@dataclass(frozen=True)
class Request:
    """Columns and values that were asked for beside the outcomes.

    Parameters
    ----------
    roles : dict of str to str
        Names of columns by role: ``"group"``, ``"weight"``, ``"cost"``, or
        ``"covariate NAME"``.
    given : dict of str to values
        Values by the name of their coordinate.
    unit : str
        Unit of the costs.
    missing_cost : {"error", "ignore"}
    """

    roles: Mapping[str, Any]
    given: Mapping[str, Any]
    unit: str
    missing_cost: MissingCost

    @classmethod
    def of(
        cls,
        group: object,
        covariates: object,
        weight: object,
        cost: object,
        unit: object = None,
        missing_cost: object = "error",
        truth: object = None,
    ) -> "Request":
        """Read the arguments of `bayesatk.tally`.

        Examples
        --------
        >>> Request.of("domain", ["minutes"], None, None).roles
        {'group': 'domain', 'covariate minutes': 'minutes'}
        >>> Request.of(["law", "art"], {"minutes": [3, 5]}, None, None).given
        {'group': ['law', 'art'], 'minutes': [3, 5]}
        """
        if not isinstance(unit, str | None):
            raise OutcomeError("cost_unit", f" must be text; got {shown(unit)}.")
        one_of("missing_cost", missing_cost, get_args(MissingCost), OutcomeError)
        arguments = {GROUP: group, WEIGHT: weight, COST: cost, TRUTH: truth}
        values = {name: value for name, value in arguments.items() if value is not None}
        roles = {name: value for name, value in values.items() if isinstance(value, str)}
        if isinstance(covariates, pd.DataFrame):
            covariates = {name: covariates[name] for name in covariates.columns}
        if isinstance(covariates, Mapping):
            names, values = list(covariates), {**values, **covariates}
        else:
            listed = isinstance(covariates, Sequence) and not isinstance(covariates, str)
            names = list(covariates) if listed else [] if covariates is None else [covariates]  # type: ignore[call-overload]
            names = [name for name in names if name not in (roles.get(GROUP), roles.get(WEIGHT))]
            roles |= {f"{COVARIATE}{name}": name for name in names}
        _check_names(names)
        values = {name: value for name, value in values.items() if name not in roles}
        return cls(roles, values, unit or "", missing_cost)  # type: ignore[arg-type]

    @classmethod
    def of_arguments(cls, arguments: Mapping[str, Any]) -> "Request":
        """Read the arguments of a function by name; those that it lacks are not asked for."""
        group, covariates, weight, cost = map(arguments.get, (GROUP, "covariates", WEIGHT, COST))
        return cls.of(
            group,
            covariates,
            weight,
            cost,
            arguments.get("cost_unit"),
            arguments.get("missing_cost", "error"),
            arguments.get(TRUTH),
        )

    def of_logs(self) -> "Request":
        """Return the request with the default unit of the cost that logs have under its name."""
        return replace(
            self, unit=self.unit or _COST_UNITS_OF_LOGS.get(self.roles.get(COST, ""), "")
        )

    def refuse_given_by_trial(self) -> None:
        """Refuse costs and truths that are values; for files they must be names of columns."""
        for role in BY_TRIAL:
            if role in self.given:
                rule = f" must be the name of a column of the files; got {shown(self.given[role])}."
                raise OutcomeError(role, rule)

    def add_to(self, long: LongForm) -> LongForm:
        """Return the long form with the named columns and the given values."""
        columns, by_trial = dict(long.columns), dict(long.by_trial)
        for role, name in self.roles.items():
            kept_name = role.removeprefix(COVARIATE)
            if (
                role in (GROUP, WEIGHT) and name in columns
            ):  # a coordinate of an array, under its own name
                columns[kept_name] = columns.pop(name)
            if kept_name not in columns and role not in by_trial:
                raise _unknown_name(role, name)
        for name, values in self.given.items():
            if name not in READERS:
                columns[name] = by_question(argument_of(name), name, values, long.questions)
            elif long.counted is not None:
                raise OutcomeError(
                    name,
                    " must be left out for counts, which do not say which trials "
                    "they count. Give the outcome of every trial.",
                )
            else:
                cells = arranged_like(long, values, name)
                by_trial[name] = READERS[name](cells, long.rows()[2], place_of(long), name)
        return replace(long, columns=columns, by_trial=by_trial)

    def notes(self, lacking: Ints, trials: int, long: LongForm) -> tuple[str, ...]:
        """Return notes on the unit and on missing costs; refuse missing costs by the policy.

        Parameters
        ----------
        lacking : ndarray of int, shape (system, question, category)
            Number of trials whose cost is unknown.
        trials : int
            Number of all trials.
        long : LongForm
        """
        unit = (f"costs in {self.unit}",) if self.unit else ()
        number = int(lacking.sum())
        if not number:
            return unit
        lacking_share = f"{number} of {trials} trials ({number / max(trials, 1):.1%}) have no cost"
        if self.missing_cost == "error":
            s, q, _ = np.argwhere(lacking)[0].tolist()
            raise OutcomeError(
                f"cost: {lacking_share}; the first is of system {shown(long.systems[s])}, question "
                f"{shown(long.questions[q])}. Give them, or use ",
                Argument("missing_cost", "ignore", "tally"),
                ", which leaves these trials out of metrics of costs.",
            )
        return *unit, f"missing_cost='ignore': {lacking_share}"


def _check_names(names: Labels) -> None:
    """Refuse names of covariates that are no text, are repeated, or are reserved."""
    taken = RESERVED_NAMES | {GROUP, WEIGHT, TRUTH}
    for name in names:
        if not isinstance(name, str) or name in taken or names.count(name) > 1:
            raise OutcomeError(
                "covariates",
                " must be names of columns, or values by name; each "
                f"name is text, comes once, and is none of {', '.join(sorted(taken))}; "
                f"got {shown(name)}. Rename the column.",
            )


def _unknown_name(role: str, name: object) -> OutcomeError:
    """Return the error for a role whose column the data do not have."""
    if role in BY_TRIAL:
        return OutcomeError(
            role,
            f" must have the {role} of every trial, arranged like data, where data "
            f"are no table; got {shown(name)}.",
        )
    covariate = role.startswith(COVARIATE)
    return OutcomeError(
        "covariates" if covariate else role,
        " must have values by question where the "
        f"data are no table and have no coordinate of that name; got {shown(name)}. Give a list in "
        "the order of the questions, or a mapping from question to value",
        *((": ", Argument("covariates", {name: ...})) if covariate else ()),
        ".",
    )


def place_of(long: LongForm) -> Callable[[int], str]:
    """Return a function that names the place of a trial for messages."""

    def place(row: int) -> str:
        system, question = divmod(int(long.rows()[0][row]), len(long.questions))
        return f"system {shown(long.systems[system])}, question {shown(long.questions[question])}"

    return place


def read_costs(
    values: Labels, codes: Codes, place_of_trial: Callable[[int], str], name: str
) -> Array:
    """Return costs as numbers, NaN where unknown, or refuse the first invalid cost.

    Examples
    --------
    >>> read_costs([1, "2.5", None, ""], np.zeros(4, int), str, "usd").tolist()
    [1.0, 2.5, nan, nan]
    """
    costs = np.array([_number_or_nan(value, {}) for value in values], float)
    wrong = np.flatnonzero(~np.isnan(costs) & ~((costs >= 0.0) & (costs <= _MAX_COST)))
    if len(wrong):
        row = int(wrong[0])
        raise OutcomeError(
            f"every cost must be a number from 0 to {_MAX_COST:g}; {shown(values[row])} in "
            f"{shown(name)} at {place_of_trial(row)} is not. Write an unknown cost as None and "
            "use ",
            Argument("missing_cost", "ignore", "tally"),
            ".",
        )
    return costs


def _number_or_nan(value: Any, more_words: Mapping[Any, object]) -> float:
    """Return the number of a value or word; NaN for a missing value, infinity for anything else."""
    words = {"nan": None, "none": None, "null": None, **more_words}
    word = value.strip().lower() if isinstance(value, str) else value
    if isinstance(word, str | bool | np.bool_):
        value = words.get(word, value)
    number = number_of(value)
    return math.inf if number is None else number


def read_truths(
    values: Labels, codes: Codes, place_of_trial: Callable[[int], str], name: str
) -> Array:
    """Return the truths of trials as 0 and 1, NaN where unknown, or refuse the first invalid one.

    Examples
    --------
    >>> read_truths([1, "0", None, "", False], np.zeros(5, int), str, "human").tolist()
    [1.0, 0.0, nan, nan, 0.0]
    """
    known = word_scores([value for value in values if not is_absent(value)])
    words = {"true": 1, "false": 0, True: 1, False: 0}
    words |= {str(word).lower(): int(score) for word, score in known.items()}
    flags = np.array([_number_or_nan(value, words) for value in values], float)
    wrong = np.flatnonzero(~(np.isnan(flags) | np.isin(flags, (0.0, 1.0))))
    if len(wrong):
        row = int(wrong[0])
        raise OutcomeError(
            TRUTH,
            " must be 0 or 1 (or False and True), and None or empty where it is "
            f"not known; got {shown(values[row])} in {shown(name)} at {place_of_trial(row)}, and "
            f"{len(wrong) - 1} more such values. Write right trials as 1 and wrong ones as 0.",
        )
    return flags


# Readers of values by trial, by role.
Reader = Callable[[Labels, Codes, Callable[[int], str], str], Array]
READERS: Mapping[str, Reader] = {
    COST: read_costs,
    TRUTH: read_truths,
}
