"""Leaderboards: all systems in one model of the difficulties that they share."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arguments import one_of, proper_probability
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.threads import one_thread
from bayesatk.comparison.boards.board import Board, as_text, board_of, leaderboard_group
from bayesatk.comparison.pairs.contrasts import (
    Drawn,
    Settings,
    rank_draws,
    rank_probabilities,
    separated,
    tiers_of,
)
from bayesatk.metrics.grid import Metric, MetricSpec, parse
from bayesatk.priors import LeaderboardPrior
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGET_NAMES, TARGETS

Array = NDArray[np.float64]
Target = Literal["questions", "population"]
_TARGETS: tuple[Target, ...] = ("questions", "population")
CITATIONS = (
    "Bock and Aitkin 1981, Psychometrika 46, 443-459 (marginal likelihood of item response models)",
    "Vehtari et al. 2024, arXiv:1507.02646 (Pareto k-hat)",
)
SLICE = "Murray, Adams and MacKay 2010, AISTATS (elliptical slice sampling)"


@dataclass(frozen=True)
class Leaderboard:
    """Systems ranked by a model in which they share the difficulty of questions.

    Print it for the table; made by `bayesatk.leaderboard`.

    Parameters
    ----------
    result : Result
    board : Board
    error : float
        Share of boards of identical systems, about, in which any two are separated.
    seed : str
    metrics, targets : tuple
        Of the table.

    See Also
    --------
    bayesatk.claim : the sentence about its tiers.
    bayesatk.next_questions : the most informative questions to try again.
    """

    result: Result
    board: Board
    error: float
    seed: str
    metrics: tuple[Metric, ...]
    targets: tuple[Target, ...]

    @property
    def effective_draws(self) -> float:
        """Effective number of independent draws behind all probabilities."""
        return self.board.draws.effective_draws

    @property
    def method(self) -> str:
        """``"importance"`` sampling, or ``"slice"`` sampling where its weights are unreliable."""
        return self.board.draws.method

    @property
    def k_hat(self) -> float:
        """Pareto shape of the largest importance weights; at 0.7 or more, ``"slice"`` is used."""
        return self.board.draws.k_hat

    @property
    def citations(self) -> tuple[str, ...]:
        """Citation keys of the methods that were used, as `bayesatk.cite` takes them."""
        return (*CITATIONS, SLICE) if self.method == "slice" else CITATIONS

    def draws(self, metric: str | Metric | None = None, target: Target | None = None) -> Array:
        """Return joint posterior draws of a metric, an array of shape (draws, systems).

        Default: the first metric for the last target. Columns are in the order of the systems in
        the result.
        """
        return self.board.values[self._target(target), :, :, self._metric(metric)]

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per metric, target and system, best first.

        Columns: ``observed`` (unbiased estimate from the trials that were run; with ``judge=``, of
        their marks as they are), ``mean``, ``sd``,
        ``ci_lower``, ``ci_upper``, ``prob_best``, ``prob_top3`` (ties share a rank), ``rank``,
        ``rank_lower``, ``rank_upper`` (of an interval of ranks with the result's probability),
        ``tier``, ``questions`` (that the system tried), ``trials``.
        """
        return self._tabulated(self.metrics, self.targets)

    def _tabulated(self, metrics: Sequence[Metric], targets: Sequence[Target]) -> pd.DataFrame:
        frame = pd.DataFrame(
            [row for metric in metrics for target in targets for row in self._rows(metric, target)]
        )
        frame.attrs["ci_prob"] = self.result.ci_prob
        return frame

    def _rows(self, metric: Metric, target: Target) -> list[dict[str, Any]]:
        draws, tails = self.draws(metric, target), list(self.result.tails)
        ranks = rank_draws(draws)
        mean = draws.mean(axis=0)
        ends = np.quantile(draws, tails, axis=0)
        places = np.quantile(ranks, tails, axis=0)
        tier = tiers_of(self._declared(metric, target), mean)
        cumulative = rank_probabilities(draws).cumsum(axis=1)
        trials, names = self.result.trials, self.result.systems
        cell = self._metric(metric)
        return [
            {
                "system": names[i], "metric": metric.label, "target": target,
                "observed": self.board.observed[i, cell], "mean": mean[i],
                "sd": draws[:, i].std(), "ci_lower": ends[0, i], "ci_upper": ends[1, i],
                "prob_best": cumulative[i, 0], "prob_top3": cumulative[i, :3][-1], "rank": rank,
                "rank_lower": int(np.floor(places[0, i])),
                "rank_upper": int(np.ceil(places[1, i])),
                "tier": int(tier[i]), "questions": int((trials[i] > 0).sum()),
                "trials": int(trials[i].sum()),
            }
            for rank, i in enumerate(np.argsort(-mean, kind="stable"), 1)
        ]  # fmt: skip

    def attached(self) -> xr.DataTree:
        """Return the result with the group ``leaderboard`` added, so that it can be saved.

        The group holds all metrics and targets of the result, also those that this leaderboard
        does not show: ``value``, dims ``(system, metric, target, statistic)``, which
        `bayesatk.tables_of` reads back; and ``separated``, dims ``(metric, target, system,
        other)``: 1 where the order of two systems is declared.
        """
        declared = [
            [self._declared(metric, target) for target in _TARGETS]
            for metric in self.result.metrics
        ]
        attrs = {
            "error": self.error, "seed": self.seed, "method": self.method,
            "effective_draws": self.effective_draws, "k_hat": float(self.k_hat),
            "citations": json.dumps(list(self.citations)),
        }  # fmt: skip
        rows = self._tabulated(self.result.metrics, _TARGETS)
        tree = self.result.tree.copy()
        group = leaderboard_group(self.result, rows, np.array(declared, np.int8), attrs)
        tree["leaderboard"] = xr.DataTree(group)
        return tree

    def pairs(
        self, metric: str | Metric | None = None, target: Target | None = None
    ) -> pd.DataFrame:
        """Return every pair, the better first: the difference, and whether its order is declared.

        Columns ``system``, ``other``, ``mean``, ``sd``, ``ci_lower``, ``ci_upper`` of the
        difference, ``prob_greater`` (with half the probability of a tie), ``monte_carlo_error`` of
        that, and ``separated``: whether the order of the two is declared. All declared orders are
        right at the same time with posterior probability ``1 - error / 2`` or more.
        """
        draws, declared = self.draws(metric, target), self._declared(metric, target)
        order = np.argsort(-draws.mean(axis=0), kind="stable")
        i, j = (order[pair] for pair in np.triu_indices(len(order), 1))
        drawn = Drawn.of(draws[:, None], draws[:, None], self.effective_draws)
        contrasts = drawn.contrasts(0, i, j, Settings(self.result.ci_prob, "eti", 0.0))
        names = [self.result.systems[system] for system in (*i, *j)]
        columns = ["mean", "sd", "ci_lower", "ci_upper", "prob_greater", "monte_carlo_error"]
        return pd.DataFrame(
            {"system": names[: len(i)], "other": names[len(i) :]}
            | {name: contrasts[name] for name in columns}
            | {"separated": declared[i, j]}
        )

    def separated(
        self,
        system: object,
        other: object,
        metric: str | Metric | None = None,
        target: Target | None = None,
    ) -> bool:
        """Return whether the order of two systems is declared, with all systems allowed for."""
        names = self.result.systems
        for name, value in (("system", system), ("other", other)):
            if value not in names:
                raise ArgumentError(Argument(name), f" must be one of {names}; got {value!r}.")
        declared = self._declared(metric, target)
        return bool(declared[names.index(system), names.index(other)])

    def _declared(self, metric: str | Metric | None, target: Target | None) -> NDArray[np.bool_]:
        return separated(self.draws(metric, target), 0.5 * self.error)

    def _metric(self, metric: str | Metric | None) -> int:
        if metric is None:
            return self.result.metrics.index(self.metrics[0])
        (listed_metric,) = _among(self.result, metric)
        return self.result.metrics.index(listed_metric)

    def _target(self, target: str | None) -> int:
        if target is None:
            return TARGETS.index(self.targets[-1])
        return TARGETS.index(one_of("target", target, TARGETS))

    def __str__(self) -> str:
        shown = self.table
        parts = []
        for (metric, target), rows in shown.groupby(["metric", "target"], sort=False):
            heading = f"{metric} on {TARGET_NAMES[str(target)]}"
            shown = as_text(rows, self.effective_draws, self.result)
            parts.append(f"{heading}\n{shown.to_string(index=False)}")
        return "\n\n".join([*parts, self.legend()])

    __repr__ = __str__

    def legend(self) -> str:
        """Return sentences that explain the columns and name the methods."""
        sure = 1.0 - 0.5 * self.error
        return (
            "mean: shrunken towards the other systems. Systems of one tier are not separated; all "
            f"pairs that are, are in the right order with probability {sure:g} or more. "
            f"From {self.effective_draws:.0f} independent draws ({self.method})."
            + " observed: by the marks; the rest is corrected for the judge."
            * (self.result.judges is not None)
        )


def _among(result: Result, spec: MetricSpec) -> tuple[Metric, ...]:
    """Return metrics of the result, or refuse one that it does not have."""
    metrics, labels = parse(spec), [metric.label for metric in result.metrics]
    for metric in metrics:
        if metric not in result.metrics:
            raise ArgumentError(
                Argument("metric"), f" must be one of the result's, {labels}; got {metric.label!r}."
            )
    return metrics


@one_thread()
def leaderboard(
    fit: xr.DataTree | Result,
    metric: MetricSpec | None = None,
    *,
    target: Target | None = None,
    error: float = 0.05,
    prior: LeaderboardPrior | None = None,
    rng: RandomSource = None,
) -> Leaderboard:
    """Rank systems by a model in which they share the difficulty of questions.

    Probabilities are posterior: given the observed trials, over the unknown success probabilities
    and, for questions like these, over which questions are drawn.

    Parameters
    ----------
    fit : xarray.DataTree
        Of right and wrong, with two systems or more, from `bayesatk.evaluate` or `bayesatk.sample`.
        Its data, metrics, judges and interval are used; systems may lack questions, or share none.
    metric : str, Metric, or iterable of them, optional
        Metrics of the result to show; default: all.
    target : {"questions", "population"}, optional
        Show the mean over these questions only, or over questions like these only; default: both.
    error : float
        Orders are declared (`Leaderboard.separated`), the surest first, as long as all of them
        are right at the same time with posterior probability ``1 - error / 2`` or more. The half
        is there because either of two identical systems can come out ahead. Strictly between 0
        and 1.
    prior : LeaderboardPrior, optional
        Default: ``LeaderboardPrior()``.
    rng : int, numpy.random.Generator or None
        Seed of the draws.

    Returns
    -------
    Leaderboard
        ``table``: a row per system, metric and target, best first, with observed value, shrunken
        mean, interval, probabilities of being best and among the best three, an interval of ranks,
        and a tier. ``pairs()``: differences. ``draws()``: joint draws of the systems.

    Raises
    ------
    ValueError
        If there are fewer than two systems, scored categories or votes.

    See Also
    --------
    bayesatk.compare : pairs of systems one by one, each with a prior of its own.
    bayesatk.models.build_one_factor : the same model in PyMC.

    Notes
    -----
    The difficulty z of a question is standard normal; under system s its success probability is
    Beta with mean ``expit(mu_s + a_s z)``, the two-parameter logistic model, and intraclass
    correlation ``rho_s``. A share of the questions is solved by no system, and a share by all,
    whatever their trials. The parameters of systems are normal around means that all systems share.
    This partial pooling shrinks the best of many similar systems towards the others, which corrects
    for the selection of the best (winner's curse). Difficulties are integrated by quadrature (Bock
    and Aitkin 1981), parameters by importance sampling from a normal approximation, or by
    elliptical slice sampling if the Pareto k-hat of the weights is 0.7 or more.

    *These questions*: given parameters and difficulties, success probabilities are Beta and
    independent, and their means are drawn. *Questions like these*: the expectation over
    difficulties.

    With ``judge=`` the trials that count as successes are marks. A question's trials are a mixture
    over how many of them were right, and the rates of judges, which systems of one judge share, are
    drawn together with the parameters of systems.

    Probabilities of ranks are joint, so they need no further correction for the number of systems.
    The order of the systems in the data does not change any number.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1, 1, 1]] * 9, "b": [[1, 0, 1, 0]] * 9, "c": [[0, 0, 1, 0]] * 9}
    >>> board = leaderboard(bayesatk.evaluate(runs, "pass@1", rng=1), rng=1)
    >>> rows = board.table.query("target == 'questions'")
    >>> rows[["system", "observed", "tier"]].values.tolist()
    [['a', 1.0, 1], ['b', 0.5, 2], ['c', 0.25, 3]]
    """
    result = Result.of(fit)
    result.require("leaderboard")
    proper_probability("error", error)
    if prior is not None and not isinstance(prior, LeaderboardPrior):
        raise TypeError(f"prior must be a LeaderboardPrior; got {prior!r:.80}.")
    metrics = result.metrics if metric is None else _among(result, metric)
    if target is not None:
        one_of("target", target, TARGETS)
    generator, seed = resolve_rng(rng)
    board = board_of(result, prior or LeaderboardPrior(), int(generator.integers(2**63)))
    targets = _TARGETS if target is None else (target,)
    return Leaderboard(result, board, float(error), seed, metrics, targets)
