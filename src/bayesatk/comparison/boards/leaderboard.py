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
from bayesatk._tools.seeding import RandomSource
from bayesatk._tools.threads import one_thread
from bayesatk.comparison.boards.tables import as_text, leaderboard_group
from bayesatk.comparison.joint.contrasts import Settings, tiers_of
from bayesatk.comparison.joint.posterior import Joint, has_ranks, joint_again
from bayesatk.comparison.joint.shared import Board
from bayesatk.metrics.grid import Metric, MetricSpec, parse
from bayesatk.posterior.models_of import observed_value
from bayesatk.priors import LeaderboardPrior
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGET_NAMES

Array = NDArray[np.float64]
Target = Literal["questions", "population", "new_groups"]
CITATIONS = (
    "Bock and Aitkin 1981, Psychometrika 46, 443-459 (marginal likelihood of item response models)",
    "Vehtari et al. 2024, arXiv:1507.02646 (Pareto k-hat)",
)
SLICE = "Murray, Adams and MacKay 2010, AISTATS (elliptical slice sampling)"


@dataclass(frozen=True)
class Leaderboard:
    """Systems ranked by their joint posterior.

    Print it for the table; made by `bayesatk.leaderboard`.

    Parameters
    ----------
    result : Result
    joint : Joint
    alpha : float
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
    joint: Joint
    alpha: float
    seed: str
    metrics: tuple[Metric, ...]
    targets: tuple[str, ...]

    @property
    def board(self) -> Board:
        """Draws of difficulties that systems share, and of their parameters."""
        if self.joint.board is None:
            self.result.require("shared_difficulty", "board")
            raise ArgumentError(
                Argument("board"), " must be of a result whose systems share difficulties; this "
                "one declares a prior of its own. Evaluate it without ", Argument("prior"), ".",
            )  # fmt: skip
        return self.joint.board

    @property
    def effective_draws(self) -> float:
        """Effective number of independent draws behind all probabilities."""
        return float(self.joint.attrs["effective_draws"])

    @property
    def method(self) -> str:
        """How the joint draws were made.

        ``"importance"`` sampling; ``"slice"`` sampling where its weights are unreliable;
        ``"paired"``, where every system has its own model; ``"crossed"``, of a sampled model.
        """
        return str(self.joint.attrs.get("joint_method", self.joint.model))

    @property
    def k_hat(self) -> float:
        """Pareto shape of the largest importance weights; at 0.7 or more, ``"slice"`` is used."""
        return float(self.joint.attrs.get("k_hat", np.nan))

    @property
    def citations(self) -> tuple[str, ...]:
        """Citation keys of the methods that were used, as `bayesatk.cite` takes them."""
        if self.joint.board is None:
            return ()
        return (*CITATIONS, SLICE) if self.method == "slice" else CITATIONS

    def draws(self, metric: str | Metric | None = None, target: str | None = None) -> Array:
        """Return joint posterior draws of a metric, an array of shape (draws, systems).

        Default: the first metric for the last target. Columns are in the order of the systems in
        the result.
        """
        return self.joint.values(self._metric(metric), self._target(target))

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per metric, target and system, best first.

        Columns: ``observed`` (unbiased estimate from the trials that were run; with ``judge=``, of
        their marks as they are), ``mean``, ``sd``,
        ``ci_lower``, ``ci_upper``, ``prob_best``, ``prob_top3`` (ties are broken at random),
        ``rank``, ``rank_lower``, ``rank_upper`` (of an interval of ranks with the result's
        probability), ``tier``, ``questions`` (that the system tried, of those that all are ranked
        on), ``trials``.
        """
        return self._tabulated(self.metrics, self.targets)

    def _tabulated(self, metrics: Sequence[Metric], targets: Sequence[str]) -> pd.DataFrame:
        frame = pd.DataFrame(
            [row for metric in metrics for target in targets for row in self._rows(metric, target)]
        )
        frame.attrs["ci_prob"] = self.result.ci_prob
        return frame

    def _rows(self, metric: Metric, target: str) -> list[dict[str, Any]]:
        cell, tails = self._metric(metric), np.array(self.result.tails)
        drawn, places = self.joint.drawn[self._target(target)], np.argsort(self.joint.systems)
        mean, sd, ends = (numbers[..., places] for numbers in drawn.levels(cell, self.result.tails))
        # In the order of the draws, as a comparison has them: equal means are ranked by it.
        tier = tiers_of(drawn.declared(cell, self.alpha), drawn.order(cell))[places]
        cumulative = drawn.ranks(cell)[places].cumsum(axis=1)
        # The rank that is reached with a probability; a sum of shares may miss it by a rounding.
        rank_ends = 1 + (cumulative[:, :, None] < tails - 1e-12).sum(axis=1)
        names, trials = self.result.systems, self.result.trials * self.joint.kept
        return [
            {
                "system": names[i], "metric": metric.label, "target": target,
                "observed": observed_value(self.result, i, metric, trials[i] > 0), "mean": mean[i],
                "sd": sd[i], "ci_lower": ends[0, i], "ci_upper": ends[1, i],
                "prob_best": cumulative[i, 0], "prob_top3": cumulative[i, :3][-1], "rank": rank,
                "rank_lower": int(rank_ends[i, 0]), "rank_upper": int(rank_ends[i, 1]),
                "tier": int(tier[i]), "questions": int((trials[i] > 0).sum()),
                "trials": int(trials[i].sum()),
            }
            for rank, i in enumerate(np.argsort(-drawn.direction * mean, kind="stable"), 1)
        ]  # fmt: skip

    def attached(self) -> xr.DataTree:
        """Return the result with the group ``leaderboard`` added, so that it can be saved.

        The group holds all metrics and targets of the result, also those that this leaderboard
        does not show: ``value``, dims ``(system, metric, target, statistic)``, which
        `bayesatk.tables_of` reads back; and ``separated``, dims ``(metric, target, system,
        other)``: 1 where the order of two systems is declared.
        """
        result = self.result
        declared = [
            [self._declared(metric, target) for target in result.targets]
            for metric in result.metrics
        ]
        attrs = self.joint.attrs | {
            "alpha": self.alpha, "seed": self.seed, "method": self.method, "k_hat": self.k_hat,
            "citations": json.dumps(list(self.citations)),
        }  # fmt: skip
        rows = self._tabulated(result.metrics, result.targets)
        tree = result.tree.copy()
        group = leaderboard_group(result, rows, np.array(declared, np.int8), attrs)
        tree["leaderboard"] = xr.DataTree(group)
        return tree

    def pairs(self, metric: str | Metric | None = None, target: str | None = None) -> pd.DataFrame:
        """Return every pair, the better first: the difference, and whether its order is declared.

        Columns ``system``, ``other``, ``mean``, ``sd``, ``ci_lower``, ``ci_upper`` of the
        difference, ``prob_greater`` (with half the probability of a tie), ``monte_carlo_error`` of
        that, and ``separated``: whether the order of the two is declared. All declared orders are
        right at the same time with posterior probability ``1 - alpha / 2`` or more.
        """
        cell, drawn = self._metric(metric), self.joint.drawn[self._target(target)]
        order = drawn.order(cell)
        i, j = (order[pair] for pair in np.triu_indices(len(order), 1))
        settings = Settings(self.result.ci_prob, self.result.ci_kind, 0.0)
        contrasts = drawn.contrasts(cell, i, j, settings)
        systems = [self.joint.systems[column] for column in (*i, *j)]
        names = [self.result.systems[system] for system in systems]
        columns = ["mean", "sd", "ci_lower", "ci_upper", "prob_greater", "monte_carlo_error"]
        declared = self._declared(metric, target)
        return pd.DataFrame(
            {"system": names[: len(i)], "other": names[len(i) :]}
            | {name: contrasts[name] for name in columns}
            | {"separated": declared[systems[: len(i)], systems[len(i) :]]}
        )

    def separated(
        self,
        system: object,
        other: object,
        metric: str | Metric | None = None,
        target: str | None = None,
    ) -> bool:
        """Return whether the order of two systems is declared, with all systems allowed for."""
        names = self.result.systems
        for name, value in (("system", system), ("other", other)):
            if value not in names:
                raise ArgumentError(Argument(name), f" must be one of {names}; got {value!r}.")
        declared = self._declared(metric, target)
        return bool(declared[names.index(system), names.index(other)])

    def _declared(self, metric: str | Metric | None, target: str | None) -> NDArray[np.bool_]:
        drawn, places = self.joint.drawn[self._target(target)], np.argsort(self.joint.systems)
        orders = drawn.declared(self._metric(metric), self.alpha)
        return np.asarray(orders[places[:, None], places])

    def _metric(self, metric: str | Metric | None) -> int:
        listed_metric = self.metrics[0]
        if metric is not None:
            (listed_metric,) = _among(self.result, metric)
        return [*self.result.grid].index(listed_metric)

    def _target(self, target: str | None) -> int:
        targets = self.result.targets
        return targets.index(
            self.targets[-1] if target is None else one_of("target", target, targets)
        )

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
        sure = 1.0 - 0.5 * self.alpha
        shrunken = "mean: shrunken towards the other systems. " * (self.joint.board is not None)
        return (
            f"{shrunken}Systems of one tier are not separated; all "
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
    alpha: float | None = None,
    prior: LeaderboardPrior | None = None,
    rng: RandomSource = None,
) -> Leaderboard:
    """Rank systems by their joint posterior: one model in which they share difficulties.

    Probabilities are posterior: given the observed trials, over the unknown success probabilities
    and, for questions like these, over which questions are drawn.

    Parameters
    ----------
    fit : xarray.DataTree
        With two systems or more, from `bayesatk.evaluate`, `bayesatk.sample` or
        `bayesatk.compare`. Systems may lack questions.
    metric : str, Metric, or iterable of them, optional
        Metrics of the result to show; default: all.
    target : {"questions", "population"}, optional
        Show the mean over these questions only, or over questions like these only; default: both.
    alpha : float, optional
        Orders are declared (`Leaderboard.separated`), the surest first, as long as all of them
        are right at the same time with posterior probability ``1 - alpha / 2`` or more. The half
        is there because either of two identical systems can come out ahead. Strictly between 0
        and 1; default: that of the comparison in the result, else 0.05.
    prior : LeaderboardPrior, optional
        Default: that of the comparison in the result, else ``LeaderboardPrior()``.
    rng : int, numpy.random.Generator or None
        Seed of the draws; None: that of the comparison in the result, else 0. So the leaderboard
        has the draws of `bayesatk.compare`.

    Returns
    -------
    Leaderboard
        ``table``: a row per system, metric and target, best first, with observed value, shrunken
        mean, interval, probabilities of being best and among the best three, an interval of ranks,
        and a tier. ``pairs()``: differences. ``draws()``: joint draws of the systems.

    Raises
    ------
    ValueError
        If there are fewer than two systems, or no two tried the same question.

    See Also
    --------
    bayesatk.compare : pairs of systems, by the same joint posterior.
    bayesatk.plots.plot_leaderboard : the table as a picture.
    bayesatk.models.build_one_factor : the same model in PyMC.

    Notes
    -----
    This is the model of right and wrong under partial pooling with the default prior. Where a
    result declares something else (groups, weights, covariates, scores, votes, a prior, another
    pooling), every system keeps its own posterior, and these are paired as `bayesatk.compare` says.

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
    attrs = result.group("comparison").attrs if result.has("comparison") else {}
    alpha = float(attrs.get("alpha", 0.05)) if alpha is None else alpha
    proper_probability("alpha", alpha)
    if prior is not None and not isinstance(prior, LeaderboardPrior):
        raise TypeError(f"prior must be a LeaderboardPrior; got {prior!r:.80}.")
    metrics = result.metrics if metric is None else _among(result, metric)
    if target is not None:
        one_of("target", target, result.targets)
    joint, seed = joint_again(result, prior, rng)
    if not has_ranks(result):
        raise ArgumentError(
            Argument("fit"), " must have questions that all systems tried, where every system has "
            "a model of its own; it has none. Compare its pairs instead: bayesatk.compare(fit).",
        )  # fmt: skip
    targets = result.targets if target is None else (target,)
    return Leaderboard(result, joint, float(alpha), seed, metrics, targets)
