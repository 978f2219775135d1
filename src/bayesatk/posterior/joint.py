"""The groups of joint draws of a result: every system's posterior, in the order of the questions.

On these questions systems that tried all are independent given the trials. On questions like these,
and where a system did not try a question, they move together as far as the values of the questions
do. The values are unbiased estimates of the metric itself, of as many trials as questions have
where k is larger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Flags
from bayesatk.core.engine.coupling import Influence, couple, overlap_of_errors, with_mean
from bayesatk.core.question.observed import largest_observed_k
from bayesatk.data.study import Study
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.analysis import Evaluated
from bayesatk.posterior.observed import finite_values
from bayesatk.results.schema import group_draws_dataset, posterior_group


class SharedQuestions:
    """Correlation between systems of means over questions, from the values by question.

    Parameters
    ----------
    study : Study
    unjudged : ndarray, shape (metrics, systems)
        Share of the variance of every mean over questions like these that is not due to the rates
        of a judge, which no questions share.
    margins : ndarray, shape (draws, systems, metrics, targets)
        Means of every system by itself.
    seed : int
        Seed of the estimated correlations.
    """

    def __init__(self, study: Study, unjudged: Array, margins: Array, seed: int) -> None:
        self._study, self._unjudged, self._seed = study, unjudged, seed
        self._variance, self._tried = _variance(margins), study.outcomes.trials.values > 0

    def _shared(self, target: int, variance: Array, tried: Flags) -> Array:
        """Share of the variance of means that is due to which questions there are.

        Where k is beyond the trials, what these do not tell of their own questions is a part of
        the variance, and every system has it by itself. Up to there it is the noise of the trials,
        which the values by question have, too.

        Parameters
        ----------
        target : int
        variance : ndarray, shape (targets, metrics, systems)
            Of means over some questions, and over questions like these.
        tried : ndarray of bool, shape (systems, questions)
            Which of these questions were tried.

        Returns
        -------
        ndarray, shape (metrics, systems)
        """
        on_these, on_others = variance[0], variance[target]
        drawn = 1.0 - on_these / np.maximum(on_others, 1e-300)
        if target == 1:  # of all questions on these, of those that were tried on others
            drawn /= np.maximum(tried.mean(axis=1), 1e-300)
        drawn = np.clip(drawn, 0.0, 1.0)
        beyond = np.array([metric.k > self._largest_k for metric in self._study.grid])
        return self._unjudged * np.where(beyond[:, None], drawn, 1.0)

    @cached_property
    def _largest_k(self) -> int:
        """Largest k that is taken of all questions alike."""
        return largest_observed_k(self._study.outcomes.trials.values)

    @cached_property
    def values(self) -> Array:
        """Values by question (metrics, systems, questions); NaN where there are no trials."""
        study = self._study
        trials, largest_k = study.outcomes.trials.values, self._largest_k
        systems, values = range(len(trials)), []

        def of_trials(metric: Metric, k: int) -> Array:
            return finite_values(study, [replace(metric, k=k)], systems)[..., 0]

        for metric in study.grid:
            k = min(metric.k, largest_k)
            by_question = of_trials(metric, k)
            for fewer in np.unique(trials[(trials > 0) & (trials < k)]).tolist():
                by_question = np.where(trials == fewer, of_trials(metric, fewer), by_question)
            values.append(by_question)
        return np.stack(values)

    @property
    def _own_weight(self) -> Array | None:
        """Weight of every question in a mean over questions like these; None: all the same.

        The bootstrap and covariates keep the weights of these questions.
        """
        weighted = self._study.bootstrapped or self._study.design is not None
        return self._study.outcomes.weight if weighted else None

    def _weights(self) -> Array:
        """Share of every question in a mean over questions like these."""
        study, weight = self._study, self._own_weight
        if study.grouping is not None:
            return study.grouping.question_shares(weight)
        return np.ones(self.values.shape[2]) if weight is None else weight

    def _fixed(self) -> Array:
        """Return the columns that are fixed when questions are drawn anew; (questions, columns)."""
        study = self._study
        fixed = [np.ones((self.values.shape[2], 1))]
        if study.grouping is not None:
            code = study.grouping.code
            fixed = [(code[:, None] == np.unique(code)).astype(float)]
        if study.design is not None and not study.bootstrapped:
            fixed.append(study.design.basis.rows[:, 1:])
        return np.concatenate(fixed, axis=1)

    @cached_property
    def _influence(self) -> Influence:
        weight, grouping = self._study.outcomes.weight, self._study.grouping
        share = weight if grouping is None else grouping.question_shares(weight)
        return Influence.of(self.values, self._weights(), self._fixed(), share)

    @cached_property
    def roots_of_errors(self) -> Array | None:
        """Roots of correlations of means over these questions; None: they are independent.

        They are so, too, where a question that was not tried is not judged by others.
        """
        return self._roots_of_errors(self._variance, self._tried)

    def roots_of_errors_in(self, group: int, margins: Array) -> Array | None:
        """Roots of correlations of means over these questions of a group, whose draws are given.

        The values of two systems have the correlation of all questions, of which there are more.
        """
        assert self._study.grouping is not None
        member, weight = self._study.grouping.code == group, self._study.outcomes.weight
        tried, fixed = self._tried[:, member], self._fixed()[member]
        share, these = (
            np.ones(tried.shape[1]) if each is None else each[member]
            for each in (self._own_weight, weight)
        )
        overlap = overlap_of_errors(tried, share, fixed, these)
        return self._roots_of_errors(_variance(margins), tried, overlap)

    def _roots_of_errors(
        self, variance: Array, tried: Flags, error_overlap: Array | None = None
    ) -> Array | None:
        if self._study.pooling != "partial":
            return None
        ratio = variance[1] / np.maximum(variance[0], 1e-300)
        shared = ratio * self._shared(1, variance, tried)
        return self._influence.roots_of_errors(shared, error_overlap)

    @cached_property
    def roots(self) -> Array | None:
        """Roots of correlations of means over questions like these; None: all questions alike."""
        if self._study.pooling == "complete":
            return None
        return self._influence.roots(
            self._shared(1, self._variance, self._tried), np.random.default_rng(self._seed)
        )

    @cached_property
    def roots_of_groups(self) -> Array | None:
        """Roots of correlations of means over new groups."""
        grouping = self._study.grouping
        assert grouping is not None
        member = grouping.code[:, None] == np.unique(grouping.code)
        observed = ~np.isnan(self.values)
        number = observed.astype(float) @ member
        sums = np.where(observed, self.values, 0.0) @ member
        with np.errstate(invalid="ignore"):
            means = np.where(number > 0.0, sums / number, np.nan)
        influence = Influence.of(means, np.ones(member.shape[1]))
        return influence.roots(
            self._shared(2, self._variance, self._tried), np.random.default_rng(self._seed)
        )

    def together(self, margins: Array, draws: Array, group: int | None = None) -> Array:
        """Return joint draws of all targets.

        Parameters
        ----------
        margins, draws : ndarray, shape (draws, systems, metrics, targets)
            Values, and draws that are independent between systems.
        group : int, optional
            Of the questions, if these are means over the questions of a group.
        """
        of_errors = (
            self.roots_of_errors if group is None else self.roots_of_errors_in(group, margins)
        )
        roots = [of_errors, self.roots]
        if draws.shape[3] > len(roots):
            roots.append(self.roots_of_groups)
        by_metric, normal_order = (np.swapaxes(values, 1, 2) for values in (margins, draws))
        joint = [
            couple(by_metric[..., target], normal_order[..., target], root)
            for target, root in enumerate(roots[: draws.shape[3]])
        ]
        return np.stack([np.swapaxes(values, 1, 2) for values in joint], axis=-1)


def joint_groups(
    study: Study, each: Sequence[Evaluated], groups: Mapping[str, xr.Dataset], seed: int
) -> dict[str, xr.Dataset]:
    """Return joint draws of all systems: of all questions and, where there are, of their groups.

    The group ``posterior`` is returned with an attribute that names where these are.

    Parameters
    ----------
    study : Study
    each : sequence of Evaluated
        By system.
    groups : mapping
        Of the result, with ``posterior``, and ``group_posterior`` where there are groups.
    seed : int
    """
    metrics, posterior = len(study.grid), groups["posterior"]
    margins = np.stack([system.margins for system in each], axis=1)
    unjudged = np.stack([_unjudged_share(system, metrics) for system in each], axis=1)
    shared = SharedQuestions(study, unjudged, margins, seed)
    draws = np.stack([system.drawn.metrics[:, :metrics] for system in each], axis=1)
    values = shared.together(margins, draws)
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    joint = {
        "posterior": posterior.assign_attrs(joint_draws="joint_posterior"),
        "joint_posterior": posterior_group(
            study.grid,
            values.reshape(*shape, *values.shape[1:]),
            posterior["system"].values,
            {},
            {"inference_library": "bayesatk"},
        ),
    }
    if study.grouping is not None and "group_posterior" in groups:
        by_system = [_group_draws(system, metrics) for system in each]
        group_margins, group_draws = (
            np.stack(pair, axis=1) for pair in zip(*by_system, strict=True)
        )
        for group in range(group_draws.shape[2]):
            own = group_margins[:, :, group], group_draws[:, :, group]
            group_margins[:, :, group] = shared.together(*own, group)
        labels = study.grouping.labels
        joint["group_posterior"] = group_draws_dataset(study.grid, labels, group_margins, posterior)
    return joint


def _variance(margins: Array) -> Array:
    """Return variances (targets, metrics, systems) of (draws, systems, metrics, targets)."""
    return np.asarray(margins.var(axis=0).transpose(2, 1, 0))


def _unjudged_share(system: Evaluated, metrics: int) -> Array:
    """Return the share of the variance of means that is not due to the rates of a judge."""
    share = system.judge_share
    return np.ones(metrics) if share is None else 1.0 - share[:metrics, 1]


def _group_draws(system: Evaluated, metrics: int) -> tuple[Array, Array]:
    """Return ascending draws with the means of their table, and the draws themselves.

    Both have the shape (draws, groups, metrics, targets).
    """
    assert system.drawn.groups is not None
    assert system.groups is not None
    draws = system.drawn.groups.metrics[:, :, :metrics]
    return with_mean(np.sort(draws, axis=0), system.groups[0][:, :metrics, :, 1]), draws
