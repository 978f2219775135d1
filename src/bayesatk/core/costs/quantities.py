"""What success costs: quantities of success probabilities and mean costs, the definitions.

Every quantity is a weighted mean over questions of what each question's success probability p and
mean cost of a trial c say, or a ratio of two such means. Tries of one question are independent, so
the expected cost up to the first success is the expected number of tries times c (Wald's identity:
whether another try is made depends on earlier outcomes only).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayesatk._tools.arrays import Array
from bayesatk.core.costs.prior import BY_BUDGET, BY_K

_LEAST = 1e-250  # of a success probability: a cost over it is then a number
_BEYOND = 1e280
_MOST_TRIES = 1e12  # beyond which a budget is not followed


def cost_quantities(
    p: Array,
    wrong: Array,
    right: Array,
    weight: Array | None,
    k: Sequence[int],
    budget: Sequence[float],
) -> dict[str, Array]:
    """Quantities of every draw.

    Parameters
    ----------
    p : ndarray, shape (draws, questions)
        Success probabilities.
    wrong, right : ndarray, shape (draws, questions)
        Mean costs of a trial that fails, and of one that succeeds.
    weight : ndarray, shape (draws, questions), optional
        Weights of the questions, which sum to one; equal if not given.
    k : sequence of int
        Tries, at most.
    budget : sequence of float
        To spend on a question, on average over the questions.

    Returns
    -------
    dict of ndarray
        Those of `BY_K` of shape (draws, k), of `BY_BUDGET` (draws, budget), others (draws,);
        the latter two where any k, or budget, is given.

    Examples
    --------
    Two tries of a question that is solved half of the time, at 2 when it fails and 4 when solved:
    a try costs 3, 1.5 tries are made on average, and 3 / 0.5 = 6 buys a success.

    >>> half, two, four = np.array([[0.5]]), np.array([[2.0]]), np.array([[4.0]])
    >>> quantities = cost_quantities(half, two, four, None, [2], [3.0])
    >>> float(quantities["mean_cost"][0]), float(quantities["cost_of_pass"][0])
    (3.0, 6.0)
    >>> float(quantities["cost_to_success"][0, 0]), float(quantities["coverage_at_budget"][0, 0])
    (4.5, 0.5)
    """
    if weight is None:
        weight = np.full(p.shape, 1.0 / p.shape[1])
    p = np.clip(p, _LEAST, 1.0 - 2.0**-53)  # so that the log of failure is a number
    cost = p * right + (1.0 - p) * wrong
    tries = _Tries(p, cost, weight)
    mean, solved, failed = ((weight * quantity).sum(axis=1) for quantity in (cost, p, 1.0 - p))
    quantities = {
        "mean_cost": mean,
        "cost_if_right": (weight * p * right).sum(axis=1) / solved,
        "cost_if_wrong": (weight * (1.0 - p) * wrong).sum(axis=1) / failed,
        "cost_of_pass": mean / solved,
    }
    tried = [tries.at(np.full(len(p), float(try_count))) for try_count in k]
    spent = [
        (amount / mean, tries.passed(amount / mean), tries.covered(amount)) for amount in budget
    ]
    for names, rows in ((BY_K, tried), (BY_BUDGET, spent)):
        columns = [np.stack(by_draw, axis=1) for by_draw in zip(*rows, strict=True)]
        quantities |= dict(zip(names, columns, strict=False))
    return quantities


def both_targets(
    p: Array, wrong: Array, right: Array, weight: Array, exponentials: Array, k: Sequence[int],
    budget: Sequence[float],
) -> dict[str, Array]:  # fmt: skip
    """Quantities of these questions, and of questions like these; the last dimension is the target.

    Parameters
    ----------
    p, wrong, right, k, budget
        As of `cost_quantities`.
    weight : ndarray, shape (questions,)
        Of the questions; for questions like these times Dirichlet(1, ..., 1) (the Bayesian
        bootstrap).
    exponentials : ndarray, shape (draws, questions)
        Standard exponentials, whose ratios to their sum are Dirichlet.
    """
    question_weight = np.broadcast_to(weight, p.shape)
    weights = [
        raw_weight / raw_weight.sum(axis=1, keepdims=True)
        for raw_weight in (question_weight, question_weight * exponentials)
    ]
    by_target = [
        cost_quantities(p, wrong, right, target_weight, k, budget) for target_weight in weights
    ]
    return {
        name: np.stack([quantities[name] for quantities in by_target], axis=-1)
        for name in by_target[0]
    }


@dataclass(frozen=True)
class _Tries:
    """Questions that are tried until they are solved."""

    p: Array
    cost: Array
    weight: Array

    def at(self, k: Array) -> tuple[Array, Array]:
        """Share solved, and expected cost, with at most so many tries, by draw."""
        solved = -np.expm1(k[:, None] * np.log1p(-self.p))
        cost = self.cost * solved / self.p
        return (self.weight * solved).sum(axis=1), (self.weight * cost).sum(axis=1)

    def passed(self, k: Array) -> Array:
        """Share solved with k tries of every question; between whole k a lottery."""
        low = np.floor(np.minimum(k, _MOST_TRIES))
        share = np.clip(k - low, 0.0, 1.0)
        return (1.0 - share) * self.at(low)[0] + share * self.at(low + 1.0)[0]

    def covered(self, budget: float) -> Array:
        """Share solved if tries until the first success may cost so much a question on average."""
        low = np.floor(self._tries_for(budget))
        (first, spent), (second, more) = self.at(low), self.at(low + 1.0)
        share = np.clip((budget - spent) / np.maximum(more - spent, _LEAST), 0.0, 1.0)
        return first + share * (second - first)

    def _tries_for(self, budget: float) -> Array:
        """Largest number of tries that costs no more, as a real number.

        The cost is concave in it: Newton's method rises to the root from 0 and never passes it.
        """
        log_failure = np.log1p(-self.p)
        # Of a question that is never solved a number, which is beyond all budgets.
        cost_per_success = self.weight * np.minimum(self.cost / self.p, _BEYOND)
        tries = np.zeros(len(self.p))
        for _ in range(200):  # about 10 are usual
            unsolved = np.expm1(tries[:, None] * log_failure)
            missing = budget + (cost_per_success * unsolved).sum(axis=1)
            slope = -(cost_per_success * log_failure * (1.0 + unsolved)).sum(axis=1)
            with np.errstate(over="ignore"):
                step = np.maximum(missing, 0.0) / np.maximum(slope, _LEAST)
            tries = np.minimum(tries + step, _MOST_TRIES)
            # Coverage is continuous in the tries, also at whole numbers.
            if ((step <= 1e-6 * (1.0 + tries)) | (tries >= _MOST_TRIES)).all():
                break
        return tries
