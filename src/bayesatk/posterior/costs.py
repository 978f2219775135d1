"""Mean cost of a trial and cost of a success, from the costs and marks of trials alone.

No distribution of costs is assumed. `bayesatk.evaluate` adds draws of both to its posterior, where
the draws of all systems are joint.

*Questions like these* are these questions drawn anew, by the Bayesian bootstrap (Rubin 1981) of
their mean costs and success rates together, with the same random weights for all systems. Weights
of n questions are Dirichlet(1 - 4/n), which gives a mean the variance of Student's t with n - 1
degrees of freedom; those of Dirichlet(1) give (n - 3)/(n + 1) of it.

*These questions* stay, and their trials are new: the covariance of mean cost and success rate is
the sum of those within questions, each over its number of trials; a question that was tried once
has the pooled one. Where too few trials are repeated to tell it, the covariance between questions,
which is no smaller, takes its place. Logarithms are normal, with the variance of Student's t.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Flags, Indices, Rng
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.engine.distribution import Empirical, measured_interval
from bayesatk.data.outcomes import COST_SUMS, Outcomes
from bayesatk.data.study import Study
from bayesatk.metrics.grid import COST_PER_SUCCESS, COSTS, Metric, MetricGrid
from bayesatk.results.schema import (
    CHAINS,
    GROUPED_TARGETS,
    STATISTICS,
    metric_dataset,
    posterior_group,
)

FEWEST_UNITS = 5  # questions or groups for a bootstrap
_MAX_FLOATS_PER_BLOCK = 4_000_000  # 32 MB


def check_costs(study: Study, costs: Sequence[Metric]) -> None:
    """Refuse metrics of costs that the data do not have."""
    sums = study.outcomes.dataset.get("cost_sums")
    if sums is None or not sums.sel(cost_sum="number").any():
        raise ArgumentError(
            "data",
            f" must say what trials cost for {costs[0].label!r}; none has a cost. Read them: ",
            Argument("cost", "usd", "tally"),
            ", the name of a column.",
        )
    if COST_PER_SUCCESS not in costs:
        return
    if study.judges is not None:
        raise ArgumentError(
            "metrics",
            ": 'cost/success' takes marks as they are, and is not corrected for errors "
            "of a judge. Leave it out, or read the data without ",
            "truth",
            " and ",
            "judge",
            ".",
        )
    if not study.outcomes.binary:
        raise ArgumentError(
            "metrics",
            ": 'cost/success' needs trials that succeed or fail, and the data have "
            "other scores. Say which succeed: ",
            Argument("success", "score >= 0.5"),
            ".",
        )


class QuestionCosts:
    """Trials with a known cost by system and question, and their moments.

    Attributes
    ----------
    trials : ndarray, shape (system, question)
    mean : ndarray, shape (system, 2, question)
        Of costs and of successes; zero without trials.
    squares : ndarray, shape (system, 2, 2, question)
        Sums of squares and products around the means.
    """

    def __init__(self, outcomes: Outcomes) -> None:
        dims = "cost_sum", "system", "question", "category"
        sums = outcomes.dataset["cost_sums"].sel(cost_sum=COST_SUMS).transpose(*dims).values
        score = outcomes.dataset["score"].values
        right = score == score.max()
        (n, cost, square), (right_n, right_cost, _) = sums.sum(-1), sums[..., right].sum(-1)
        self.trials, tried_trials = n, np.maximum(n, 1.0)
        self.mean = np.stack([cost, right_n], axis=1) / tried_trials[:, None]
        products = [[square, right_cost], [right_cost, right_n]]
        around = np.einsum("saq,sbq->absq", self.mean, self.mean) * n
        self.squares = np.moveaxis(np.array(products) - around, 2, 0)
        for i in (0, 1):  # rounding
            np.maximum(self.squares[:, i, i], 0.0, out=self.squares[:, i, i])

    def covariance(self, system: int, share: Array) -> tuple[Array, float]:
        """Return the covariance of the means over these questions, and its degrees of freedom.

        Parameters
        ----------
        system : int
        share : ndarray, shape (questions,)
            In the means; zero where a question has no trials.
        """
        n, mean = self.trials[system], self.mean[system]
        between, within = self.degrees(system)
        if between > within:
            gap = (mean - (mean @ share)[:, None]) * share
            return gap @ gap.T * (1.0 + 1.0 / between), between
        deviations = self.squares[system]
        pooled = deviations.sum(axis=-1, keepdims=True) / max(within, 1.0)
        trial_covariance = np.where(n > 1.0, deviations / np.maximum(n - 1.0, 1.0), pooled)
        return (trial_covariance * share**2 / np.maximum(n, 1.0)).sum(axis=-1), within

    def has_moments(self, unit: Indices) -> Flags:
        """Whether mean and variance of the cost of a success over units drawn anew are finite.

        Where some units have no success, the rate of success may be near zero. With a the parameter
        of the Dirichlet weights and s units that have one, the probability that it is below x falls
        as x**(s a), so that the inverse has a variance for s a > 2. One value for each system.
        """
        units = int(unit.max()) + 1
        tried, succeeded = (
            np.array([len(np.unique(unit[flags])) for flags in by_question])
            for by_question in (self.trials > 0.0, self.mean[:, 1] > 0.0)
        )
        return np.asarray((succeeded == tried) | (succeeded * _weight_parameter(units) > 2.0))

    def degrees(self, system: int) -> tuple[float, float]:
        """Return the degrees of freedom of covariances between questions, and within them."""
        tried = self.trials[system] > 0.0
        return float(tried.sum() - 1), float((self.trials[system] - 1.0)[tried].sum())

    def draw(self, system: int, share: Array, size: int, rng: Rng) -> Array:
        """Draw the means over these questions; (draws, 2)."""
        mean = self.mean[system] @ share
        covariance, degrees = self.covariance(system, share)
        if degrees <= 2.0:
            return np.full((size, 2), np.nan)
        scale = np.outer(mean, mean)
        log_covariance = np.divide(covariance, scale, np.zeros((2, 2)), where=scale > 0.0)
        log_covariance *= degrees / (degrees - 2.0)
        logs = rng.multivariate_normal(np.zeros(2), log_covariance, size, "ignore", method="eigh")
        return np.asarray(mean * np.exp(logs))

    def draw_anew(self, weight: Array, unit: Indices, size: int, rng: Rng) -> Array:
        """Draw the means over questions drawn anew, the same for all systems.

        Parameters
        ----------
        weight : ndarray, shape (questions,)
        unit : ndarray of int, shape (questions,)
            What is drawn: questions, or the group of each.
        size : int
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (size, system, 2)
            NaN for fewer than five units.
        """
        units, tried = int(unit.max()) + 1, self.trials > 0.0
        if units < FEWEST_UNITS:
            return np.full((size, len(tried), 2), np.nan)
        values = np.concatenate([tried[:, None], self.mean * tried[:, None]], axis=1)
        table = (values * weight).reshape(-1, len(weight)).T
        blocks = np.array_split(np.arange(size), 1 + size * units // _MAX_FLOATS_PER_BLOCK)
        sums = np.concatenate(
            [
                rng.standard_gamma(_weight_parameter(units), (len(block), units))[:, unit] @ table
                for block in blocks
            ]
        ).reshape(size, len(tried), 3)
        with np.errstate(invalid="ignore"):
            return np.asarray(sums[..., 1:] / sums[..., :1])


def _weight_parameter(units: int) -> float:
    """Parameter of the Dirichlet weights of units that are drawn anew."""
    return 1.0 - 4.0 / units


def _ratios(means: Array) -> Array:
    """Return mean cost and cost of a success of means (..., 2); NaN where none succeeded."""
    cost, success = means[..., 0], means[..., 1]
    ratio = np.divide(cost, success, np.full_like(cost, np.nan), where=success > 0.0)
    return np.stack([cost, ratio], axis=-1)


def _drawn(
    study: Study, questions: QuestionCosts, size: int, rng: Rng
) -> tuple[Array, Array, Flags]:
    """Return estimates (system, 2), draws (draws, system, 2, target) and which have moments."""
    number = questions.trials.shape[1]
    weight = np.ones(number) if study.outcomes.weight is None else study.outcomes.weight
    unit, groups = np.arange(number), study.grouping
    weights = weight if groups is None else groups.question_shares(weight)
    shares = weights * (questions.trials > 0.0)
    with np.errstate(invalid="ignore"):
        shares = shares / shares.sum(axis=1, keepdims=True)  # NaN: no trial has a known cost
    on_these_questions = [questions.draw(s, share, size, rng) for s, share in enumerate(shares)]
    means = [np.stack(on_these_questions, axis=1), questions.draw_anew(weights, unit, size, rng)]
    finite = [np.full(len(shares), True), questions.has_moments(unit)]
    if groups is not None:
        in_group = np.bincount(groups.code, weight)[groups.code]
        means.append(questions.draw_anew(weight / in_group, groups.code, size, rng))
        finite.append(questions.has_moments(groups.code))
    has_moments = np.full((len(shares), 2, len(finite)), True)
    has_moments[:, 1] = np.stack(finite, axis=1)
    estimates = _ratios(np.einsum("saq,sq->sa", questions.mean, shares))
    return estimates, np.stack([_ratios(drawn) for drawn in means], axis=-1), has_moments


def add_costs(
    groups: dict[str, xr.Dataset], study: Study, costs: Sequence[Metric], size: int, rng: Rng
) -> list[str]:
    """Add metrics of costs to the draws and statistics of a result; return what to know of them.

    Parameters
    ----------
    groups : dict
        With ``posterior``, ``closed_form`` and ``constant_data``.
    study : Study
    costs : sequence of Metric
    size : int
        Draws.
    rng : numpy.random.Generator
    """
    questions, systems = QuestionCosts(study.outcomes), study.outcomes.dataset["system"].values
    estimates, drawn, has_moments = _drawn(study, questions, size, rng)
    places, grid = [COSTS.index(metric) for metric in costs], MetricGrid.of(costs)
    drawn, estimates = drawn[:, :, places], estimates[:, places]
    has_moments = has_moments[:, places]
    table = np.full((*drawn.shape[1:], len(STATISTICS)), np.nan)
    table[..., 0] = estimates[..., None]
    moments = np.stack([drawn.mean(axis=0), drawn.std(axis=0, ddof=1)], axis=-1)
    table[..., 1:3] = np.where(has_moments[..., None], moments, np.nan)
    rows = table.reshape(-1, len(STATISTICS))
    for row, values in zip(rows, drawn.reshape(size, -1).T, strict=True):
        if np.isfinite(values).all():
            ends, error = measured_interval(Empirical(values), study.ci_prob, study.ci_kind)
            row[3:6] = *ends, error
    samples = posterior_group(grid, drawn.reshape(CHAINS, -1, *drawn.shape[1:]), systems, {}, {})
    coords = {
        "system": systems,
        "target": list(GROUPED_TARGETS[: drawn.shape[-1]]),
        "statistic": list(STATISTICS),
    }
    exact = metric_dataset(grid, table, ("system",), ("target", "statistic"), coords)
    units = str(study.outcomes.dataset.attrs.get("cost_unit", ""))
    tried = ("system", "question"), questions.trials
    groups["constant_data"] = groups["constant_data"].assign(cost_trials=tried)
    for name, added in (("posterior", samples), ("closed_form", exact)):
        variables = {
            key: variable.assign_attrs(units=units) for key, variable in added.data_vars.items()
        }
        groups[name] = groups[name].assign(variables)
    return _notes(study, questions, costs)


def _notes(study: Study, questions: QuestionCosts, costs: Sequence[Metric]) -> list[str]:
    """Return what a reader of costs should know."""
    n, right = questions.trials, questions.mean[:, 1]
    notes = []
    for system, name in enumerate(study.outcomes.systems):
        between, within = questions.degrees(system)
        if max(between, within) <= 2.0:
            notes.append(f"{name}: with so few trials nothing tells how uncertain its costs are.")
        elif between > within:
            notes.append(
                f"{name}: too few trials are repeated to tell how they differ within questions, so "
                "costs on these questions have the uncertainty of questions like these, which is "
                "too much if anything."
            )
    if COST_PER_SUCCESS in costs:
        notes += [
            f"{name}: no trial with a known cost succeeded, so cost/success is not known."
            for name, rates in zip(study.outcomes.systems, right, strict=True)
            if not rates.any()
        ]
        has_moments = questions.has_moments(np.arange(n.shape[1]))
        notes += [
            f"{name}: {(rates > 0.0).sum()} of {(trials > 0.0).sum()} questions had a success, so "
            "few that cost/success on questions like these has an interval, but no mean."
            for name, rates, trials, finite in zip(
                study.outcomes.systems, right, n, has_moments, strict=True
            )
            if rates.any() and not finite and n.shape[1] >= FEWEST_UNITS
        ]
    units = {"question": n.shape[1]}
    if study.grouping is not None:
        units["group"] = len(study.grouping.labels)
    notes += [
        f"{number} {unit}{' says' if number == 1 else 's say'} nothing of costs on other {unit}s; "
        f"{FEWEST_UNITS} are needed."
        for unit, number in units.items()
        if number < FEWEST_UNITS
    ]
    if ((n > 0.0) != (n[0] > 0.0)).any():
        notes.append(
            "Systems with costs of different questions are not compared by them; evaluate the "
            "questions of both: data.shared(), or data.sel(question=...)."
        )
    return notes
