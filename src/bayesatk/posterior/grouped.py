"""Closed-form posterior of one system's questions in groups, hyperparameters integrated."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import expit, logsumexp

from bayesatk.core.engine.distribution import Quantity, tabulated
from bayesatk.core.pooling.leave_one_out import Predictive
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import GroupedStates
from bayesatk.core.question.laws import finite
from bayesatk.core.structure.grouped import GroupedPosterior, grouped_posterior
from bayesatk.core.structure.grouped_moments import GroupedMeans
from bayesatk.data.grouping import Grouping
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.grouped_draws import GroupedDraws
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import Summary, SystemPosterior
from bayesatk.priors import HyperPrior

_TABLE = 400  # points of the distribution function of a hyperparameter
_ROUGH = 0.05  # error of hyperparameters, in sds, that a reader is told of
_FINER = 16  # of them to a node, where nodes are on a line


@dataclass(frozen=True)
class GroupedModel(CountModel):
    """Successes out of trials of questions in groups.

    Parameters
    ----------
    grouping : Grouping
        Of the questions.
    """

    grouping: Grouping

    @classmethod
    def of(cls, prior: object, counts: NDArray[np.int64], grouping: Grouping) -> "GroupedModel":
        """Return the model of counts (questions, wrong and right)."""
        assert isinstance(prior, HyperPrior)  # `read_study` has refused others
        states = _states(counts, grouping).states
        return cls("partial", states, prior, grouping)

    @cached_property
    def data(self) -> GroupedStates:
        """Counts by group."""
        which = self.states.which
        return _states(self.states.counts[which], self.grouping)

    @cached_property
    def posterior(self) -> GroupedPosterior:
        """Hyperparameters."""
        return grouped_posterior(self.data, self.prior)

    def estimate(self, metrics: Sequence[Metric]) -> Array:
        """Unbiased finite-law values, groups with their weights."""
        weight = self.grouping.shares()
        each = self.estimate_by_group(metrics)
        return np.asarray(weight[weight > 0.0] @ each[weight > 0.0])

    def estimate_by_group(self, metrics: Sequence[Metric]) -> Array:
        """Unbiased finite-law values of each group, NaN where it has no question."""
        states, data = self.states, self.data
        found = np.full((data.size, len(metrics)), np.nan)
        some = data.questions > 0.0
        for column, metric in enumerate(metrics):
            each = finite(metric.credit, states.successes, states.trials)
            total = np.bincount(data.group, states.count * each, minlength=data.size)
            found[some, column] = total[some] / data.questions[some]
        return found

    def fit(self, metrics: Sequence[Metric]) -> SystemPosterior:
        """Return the posterior of metrics: of all questions, and of each group."""
        means = GroupedMeans(self.posterior, self.data, tuple(metric.credit for metric in metrics))
        weight, number = self.grouping.shares(), self.data.questions
        found = means.moments(weight)
        inside = found.spread / np.maximum(number, 1.0)[:, None]
        drawing = np.minimum(weight**2 @ inside, found.whole_variance[1])
        trial = found.whole_variance[1] - drawing
        # What more trials could remove is the same for new groups as for these.
        question = np.array([0.0 * drawing, drawing, found.whole_variance[2] - trial])
        question = np.clip(question, 0.0, found.whole_variance)
        draws = GroupedDraws(means, tuple(metrics), weight, self._summaries)
        groups = []
        for g in range(self.data.size):
            both = np.stack([found.questions_variance[g], found.population_variance[g]], axis=1)
            own = np.minimum(inside[g], both[:, 1])
            part = np.stack([np.zeros_like(own), own], axis=1)
            mean = np.stack([found.questions[g], found.population[g]], axis=1)
            groups.append(draws.of_group(g, mean, both - part, part))
        none: list[Quantity | None] = [None] * len(metrics)
        return SystemPosterior(
            found.whole.T, (found.whole_variance - question).T, question.T,
            lambda: (none, none, none), draws.draw, self._question_p, dict(self._summaries),
            {"quadrature_error": self.posterior.error,
             "log_evidence": self.posterior.log_evidence},
            warning=self._warning, method="quadrature", drawn=True, groups=groups,
        )  # fmt: skip

    def partial_predictive(self) -> Predictive:
        """Predict questions that are left out: ``1 / E[1 / p(counts | x, r)]`` over their group."""
        logs = self._log_states()
        with np.errstate(divide="ignore"):
            chance = np.log(self.posterior.points)[:, :, self.data.group]
        left = -logsumexp(chance - logs, axis=(0, 1))
        fitted = logsumexp(chance + logs, axis=(0, 1))
        ways = self.states.log_ways
        return Predictive(left + ways, fitted + ways, self.posterior.log_evidence)

    def partial_evidence(self) -> float:
        """Log evidence, hyperparameters integrated."""
        return self.posterior.log_evidence

    @property
    def _warning(self) -> str | None:
        """Why means and sds are rougher than usual, where they are."""
        error = self.posterior.error
        if error < _ROUGH:
            return None
        return (
            "differences between groups and within them are hardly identified separately; the "
            f"numerical error of hyperparameters is {error:.1g} of their sds"
        )

    def _nodes(self) -> Nodes:
        y = np.array([one.y for one in self.posterior.rows])
        xs, ys = (one.ravel() for one in np.meshgrid(self.posterior.x, y))
        return Nodes.of(xs, ys, np.full(len(xs), 1.0 / len(xs)))

    def _log_states(self) -> Array:
        """Log probability of every state's trials in order; (rows, points, states)."""
        states = self.states
        found = self._nodes().log_likelihood(states.successes, states.trials - states.successes)
        return found.reshape(len(self.posterior.rows), len(self.posterior.x), -1)

    def _question_p(self) -> tuple[Array, Array]:
        """Posterior mean and sd of every question's success probability."""
        nodes, states = self._nodes(), self.states
        chance = self.posterior.points[:, :, self.data.group].reshape(len(nodes), -1)
        a = nodes.alpha + states.successes
        b = nodes.beta + (states.trials - states.successes)
        p = a / (a + b)
        mean = (chance * p).sum(axis=0)
        second = (chance * p * (a + 1.0) / (a + b + 1.0)).sum(axis=0)
        sd = np.sqrt(np.maximum(second - mean**2, 0.0))
        return mean[states.which], sd[states.which]

    @cached_property
    def _summaries(self) -> dict[str, Summary]:
        """Of the hyperparameters."""
        weight, mu, tau, icc = self.posterior.hyper
        line_row, line_tau, line_weight = self.posterior.lines
        fine, chance = self.posterior.fine
        row_weight = np.array([one.weight.sum() for one in self.posterior.rows])
        y = np.array([one.y for one in self.posterior.rows])

        def typical() -> Quantity:
            place = np.linspace(fine.min(), fine.max(), _TABLE)
            upto = [np.interp(place, own, np.cumsum(p) - 0.5 * p, 0.0, 1.0)
                    for own, p in zip(fine, chance, strict=True)]  # fmt: skip
            return tabulated(expit(place), line_weight @ np.array(upto), (0.0, 1.0))

        def sd() -> Quantity:
            place = np.linspace(0.0, line_tau.max(), _TABLE)
            upto = np.zeros(_TABLE)
            for row, weight in enumerate(row_weight):
                own = line_tau[line_row == row]
                # Of an even function the node at 0 has half a cell.
                share = line_weight[line_row == row] * np.where(own > 0.0, 1.0, 2.0)
                upto += weight * np.interp(place, *_between(own, share), 0.0, 1.0)
            return tabulated(place, upto, (0.0, np.inf))

        def correlation() -> Quantity:
            place, upto = _between(y, row_weight)
            return tabulated(expit(place), upto, (0.0, 1.0))

        values = {"typical_p": (expit(mu), typical), "group_sd": (tau, sd),
                  "icc": (icc, correlation)}  # fmt: skip
        return {
            name: Summary.on_nodes(weight, own, work_out)
            for name, (own, work_out) in values.items()
        }


def _states(counts: NDArray[np.int64], grouping: Grouping) -> GroupedStates:
    successes, trials = counts[:, -1], counts.sum(axis=1)
    return GroupedStates.of(successes, trials, grouping.code, len(grouping.labels))


def _between(place: Array, weight: Array) -> tuple[Array, Array]:
    """Distribution function of a number known by the weights of a trapezoid rule.

    Parameters
    ----------
    place, weight : ndarray, shape (nodes,)
        Evenly spaced nodes on some scale, and the density times the spacing on that scale.

    Returns
    -------
    place, cdf : ndarray
        By splines between the nodes.
    """
    if len(place) < 4:
        edge = np.concatenate([place[:1], 0.5 * (place[1:] + place[:-1]), place[-1:]])
        return edge, np.append(0.0, np.cumsum(weight) / weight.sum())
    index = np.arange(len(place))
    fine = np.linspace(0.0, len(place) - 1.0, _FINER * (len(place) - 1) + 1)
    logs = np.log(np.maximum(weight, 1e-12 * weight.max()))
    density = np.exp(CubicSpline(index, logs)(fine))
    upto = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1])))
    return CubicSpline(index, place)(fine), upto / upto[-1]
