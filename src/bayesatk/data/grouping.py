"""`Grouping`: the groups of the questions, and their weights in means over questions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array, Indices
from bayesatk._tools.messages import Argument, ArgumentError, real_number
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.question_columns import (
    column_name,
    question_coordinates,
    with_column_names,
)
from bayesatk.data.roles import GROUP
from bayesatk.data.tally import tally
from bayesatk.data.validation import shown

BY_QUESTIONS, EQUAL = "questions", "equal"  # named weights of groups


@dataclass(frozen=True)
class Grouping:
    """Groups of questions with their weights in means over all questions.

    Parameters
    ----------
    labels : list
        Labels of the groups, in order of first appearance.
    code : ndarray of int, shape (questions,)
        Group of every question.
    weight : ndarray, shape (groups,), optional
        Weights that were given; None: groups count by the number of their questions.

    Examples
    --------
    >>> grouping = Grouping.of(["law", "art", "law"], "equal")
    >>> grouping.labels, grouping.code.tolist(), grouping.shares().tolist()
    (['law', 'art'], [0, 1, 0], [0.5, 0.5])
    """

    labels: list[Any]
    code: Indices
    weight: Array | None = None

    @classmethod
    def of(cls, values: Any, weights: object = BY_QUESTIONS) -> "Grouping":
        """Return the groups of label values, one for each question, with their weights."""
        code, labels = pd.factorize(np.asarray(values, object))
        return cls(labels.tolist(), code, _read_weights(labels.tolist(), weights))

    def among(self, kept: NDArray[Any]) -> "Grouping":
        """Return the grouping of some of the questions; groups keep their codes."""
        return replace(self, code=self.code[kept])

    def shares(self, question: Array | None = None) -> Array:
        """Return the weights of the groups that have questions, normalised to sum to one.

        Without weights of groups, a group has the sum of the weights of its questions.

        Parameters
        ----------
        question : ndarray, shape (questions,), optional
            Weights of the questions; default: all the same.
        """
        n_questions = np.bincount(self.code, minlength=len(self.labels)).astype(float)
        total = (
            n_questions if self.weight is None else np.where(n_questions > 0.0, self.weight, 0.0)
        )
        if self.weight is None and question is not None:
            total = np.bincount(self.code, question / question.max(), len(self.labels))
        if not total.sum() > 0.0:  # all groups that are left have weight 0
            total = n_questions
        return np.asarray(total / total.sum())

    def question_shares(self, weight: Array | None = None) -> Array:
        """Return the share of every question in a mean over all; (questions,), summing to one."""
        question = np.ones(len(self.code)) if weight is None else weight
        total = np.bincount(self.code, question, len(self.labels))
        by_weight = self.shares(weight) / np.maximum(total, 1e-300)
        return np.asarray(question * by_weight[self.code])

    def means(self, values: Array) -> Array:
        """Return means over the questions of each group that has any; (..., groups)."""
        member = self.code[:, None] == np.unique(self.code)
        return np.asarray(values @ (member / member.sum(axis=0)))

    def within(self, values: Array) -> Array:
        """Return values by question (..., questions) minus the means of their groups."""
        _, code = np.unique(self.code, return_inverse=True)
        return values - self.means(values)[..., code]

    @property
    def notes(self) -> list[str]:
        """Notes on the weights of groups, and on results that depend on the prior."""
        size, notes = len(self.labels), []
        if self.weight is not None:
            even = np.ptp(self.weight) == 0.0
            notes.append(
                "Estimates and posteriors for all questions are weighted means over groups, "
                + ("all groups with the same weight (macro averages)." if even else "as given.")
            )
        if size < 5:  # their sd is hardly more than its prior
            notes.append(
                f"{size} group{'s' * (size > 1)}: the data hardly identify how much groups differ, "
                "so results for new groups depend on the prior of group_sd (HyperPrior)."
            )
        return notes

    def described(self) -> dict[str, float] | None:
        """Return the given weights by label as text; None if no weights were given."""
        if self.weight is None:
            return None
        return dict(zip(map(str, self.labels), self.weight.tolist(), strict=True))


def _read_weights(labels: list[Any], weights: object) -> Array | None:
    """Return the weights of the groups, None if they count by questions, or refuse them."""
    argument = Argument("group_weights")
    if weights is None or (isinstance(weights, str) and weights == BY_QUESTIONS):
        return None
    if isinstance(weights, str) and weights == EQUAL:
        return np.full(len(labels), 1.0 / len(labels))
    if not isinstance(weights, Mapping):
        raise ArgumentError(
            argument,
            f" must be 'questions', 'equal', or a mapping from group to weight; got "
            f"{shown(weights)}. 'equal' is a macro average.",
        )
    weights_by_name = {
        str(label): real_number("group_weights", value) for label, value in weights.items()
    }
    names = list(map(str, labels))
    for name in sorted(weights_by_name.keys() ^ set(names)):
        fault = "lacks" if name in names else "has no group"
        raise ArgumentError(
            argument,
            f" must have a weight for every group of the data and for no other; it "
            f"{fault} {shown(name)}; the groups are {shown(names, 200)}. Give 0 to what does not "
            "count.",
        )
    weight_values = np.array([weights_by_name[name] for name in names])
    if not (
        np.isfinite(weight_values).all() and (weight_values >= 0.0).all() and weight_values.any()
    ):
        raise ArgumentError(
            argument,
            f" must be finite, 0 or more, and not all 0; got {shown(weights)}. They need "
            "not add up to 1.",
        )
    return np.asarray(weight_values / weight_values.sum())


def with_columns(data: object, group: object, covariates: object) -> Outcomes:
    """Return outcomes whose questions have the groups and covariates that were asked for, if any.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
    group : str, sequence or mapping, optional
        ``"group"``, the name of the column that groups were read from, or the name of a covariate.
        Or values as in `bayesatk.tally`.
    covariates : str, sequence of str, or mapping, optional
        Names, of which `data` that have been read have the values, or values by name.
    """
    if not isinstance(data, Outcomes):
        return tally(data, group=group, covariates=covariates)
    policy = data.dataset.attrs.get("missing_policy", "error")
    if isinstance(covariates, Mapping):
        data = tally(data, covariates=covariates, missing=policy)
    if group is None:
        return data
    if isinstance(group, str):
        columns = question_coordinates(data.dataset)
        name = group
        if GROUP in columns and group == column_name(data.dataset, GROUP):
            group = GROUP
        if group not in columns:
            names = [
                column_name(data.dataset, GROUP) if column == GROUP else column
                for column in columns
            ]
            has = f"; they have {', '.join(names)}" if columns else ""
            raise ArgumentError(
                GROUP,
                f" must name what the data know of their questions{has}; got "
                f"{group!r}. Read them with it: ",
                Argument(GROUP, group, "tally"),
                ".",
            )
        if group == GROUP:
            return data
        group = columns[group].tolist()
    else:
        name = GROUP
    grouped = tally(data, group=group, missing=policy)
    return replace(grouped, dataset=with_column_names(grouped.dataset, {GROUP: name}))
