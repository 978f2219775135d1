"""Leaderboards: all systems in one model of the difficulties that they share."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arrays import Flags
from bayesatk._tools.messages import ArgumentError, proper_probability
from bayesatk._tools.seeding import RandomSource
from bayesatk._tools.threads import one_thread
from bayesatk.comparison.joint.contrasts import tiers_of
from bayesatk.comparison.joint.posterior import Joint, has_ranks, joint_again, joint_attrs
from bayesatk.comparison.joint.shared import Board
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.models_of import observed_value
from bayesatk.priors import LeaderboardPrior
from bayesatk.results.result import Fit, Result, analysis_group, with_analysis

CITATIONS = (
    "Bock and Aitkin 1981, Psychometrika 46, 443-459 (marginal likelihood of item response models)",
    "Vehtari et al. 2024, arXiv:1507.02646 (Pareto k-hat)",
)
SLICE = "Murray, Adams and MacKay 2010, AISTATS (elliptical slice sampling)"


@dataclass(frozen=True)
class Ranking:
    """Systems ranked by their joint posterior.

    Parameters
    ----------
    result : Result
    joint : Joint
    alpha : float
        Share of boards of identical systems, about, in which any two are separated.
    seed : str
    """

    result: Result
    joint: Joint
    alpha: float
    seed: str

    @property
    def board(self) -> Board:
        """Draws of difficulties that systems share, and of their parameters."""
        if self.joint.board is None:
            self.result.require("shared_difficulty", "board")
            raise ArgumentError(
                "fit", " must be of a result whose systems share difficulties; this "
                "one declares a prior of its own. Evaluate it without ", "prior", ".",
            )  # fmt: skip
        return self.joint.board

    @property
    def method(self) -> str:
        """How the joint draws were made."""
        return str(self.joint.attrs.get("joint_method", self.joint.model))

    @cached_property
    def orders(self) -> Flags:
        """Orders that are declared (metric, target, system, other), systems as in the draws."""
        cells = [*self.result.grid]
        orders = [
            [drawn.declared(cells.index(metric), self.alpha) for drawn in self.joint.drawn]
            for metric in self.result.metrics
        ]
        return np.array(orders)

    def table(self) -> pd.DataFrame:
        """Return a row per metric, target and system, best first."""
        return pd.DataFrame(
            [
                row
                for metric in self.result.metrics
                for target in range(len(self.result.targets))
                for row in self._rows(metric, target)
            ]
        )

    def _rows(self, metric: Metric, target: int) -> list[dict[str, Any]]:
        result, tails = self.result, np.array(self.result.tails)
        cell, drawn = [*result.grid].index(metric), self.joint.drawn[target]
        places = np.argsort(self.joint.systems)
        mean, sd, ends = (numbers[..., places] for numbers in drawn.levels(cell, result.tails))
        # In the order of the draws, as a comparison has them: equal means are ranked by it.
        orders = self.orders[result.metrics.index(metric), target]
        tier = tiers_of(orders, drawn.order(cell))[places]
        cumulative = drawn.ranks(cell)[places].cumsum(axis=1)
        # The rank that is reached with a probability; a sum of shares may miss it by a rounding.
        rank_ends = 1 + (cumulative[:, :, None] < tails - 1e-12).sum(axis=1)
        names, trials = result.systems, result.trials * self.joint.kept
        return [
            {
                "system": names[i], "metric": metric.label, "target": result.targets[target],
                "observed": observed_value(result, i, metric, trials[i] > 0), "mean": mean[i],
                "sd": sd[i], "ci_lower": ends[0, i], "ci_upper": ends[1, i],
                "prob_best": cumulative[i, 0], "prob_top3": cumulative[i, :3][-1], "rank": rank,
                "rank_lower": int(rank_ends[i, 0]), "rank_upper": int(rank_ends[i, 1]),
                "tier": int(tier[i]), "questions": int((trials[i] > 0).sum()),
                "trials": int(trials[i].sum()),
            }
            for rank, i in enumerate(np.argsort(-drawn.direction * mean, kind="stable"), 1)
        ]  # fmt: skip

    def group(self) -> xr.Dataset:
        """Return the group ``leaderboard``: the table, and which orders are declared."""
        result, joint = self.result, self.joint
        labels = {
            "metric": [metric.label for metric in result.metrics],
            "target": result.targets, "system": result.systems,
        }  # fmt: skip
        citations = [] if joint.board is None else [*CITATIONS, *[SLICE] * (self.method == "slice")]
        attrs = joint.attrs | {
            "alpha": self.alpha, "seed": self.seed, "method": self.method,
            "ci_prob": result.ci_prob, "citations": citations,
        }  # fmt: skip
        keys = ["metric", "target", "system"]
        group = analysis_group(self.table(), keys, attrs, sentences=[self._legend()], labels=labels)
        places = np.argsort(joint.systems)
        separated = self.orders[:, :, places[:, None], places].astype(np.int8)
        cells = [[*result.grid].index(metric) for metric in result.metrics]
        ranks = [[drawn.ranks(cell)[places] for drawn in joint.drawn] for cell in cells]
        group = group.assign(
            separated=((*keys, "other"), separated), prob_rank=((*keys, "place"), np.array(ranks))
        )
        return group.assign_coords(
            other=group["system"].values, place=np.arange(1, len(places) + 1)
        )

    def _legend(self) -> str:
        """Explain the columns, and name the method."""
        sure = 1.0 - 0.5 * self.alpha
        shrunken = "mean: shrunken towards the other systems. " * (self.joint.board is not None)
        return (
            f"{shrunken}Systems of one tier are not separated; all "
            f"pairs that are, are in the right order with probability {sure:g} or more. "
            f"From {self.joint.attrs['effective_draws']:.0f} independent draws ({self.method})."
            + " observed: by the marks; the rest is corrected for the judge."
            * (self.result.judges is not None)
        )


def leaderboard(
    fit: Fit,
    *,
    alpha: float | None = None,
    prior: LeaderboardPrior | None = None,
    rng: RandomSource = None,
) -> xr.DataTree:
    """Rank systems by their joint posterior: one model in which they share difficulties.

    Probabilities are posterior: given the observed trials, over the unknown success probabilities
    and, for questions like these, over which questions are drawn.

    Parameters
    ----------
    fit : xarray.DataTree
        With two systems or more, from `bayesatk.evaluate`, `bayesatk.sample` or
        `bayesatk.compare`. Systems may lack questions.
    alpha : float, optional
        Orders are declared, the surest first, as long as all of them
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
    xarray.DataTree
        The result with the group ``leaderboard``. ``bayesatk.table(board, "leaderboard")`` has a
        row for every metric, target and system, best first, with the columns ``observed`` (unbiased
        estimate from the trials that were run; with ``judge=``, of their marks as they are),
        ``mean`` (shrunken), ``sd``, ``ci_lower``, ``ci_upper``, ``prob_best``, ``prob_top3`` (ties
        are broken at random), ``rank``, ``rank_lower``, ``rank_upper`` (of an interval of ranks
        with the result's probability), ``tier``, ``questions`` (that the system tried, of those
        that all are ranked on) and ``trials``. The group has each of them as a variable, and
        ``separated(metric, target, system, other)``: 1 where `system` is declared better than
        `other`, and ``prob_rank(metric, target, system, place)``, the probability of every rank.
        Attributes of the group: ``method`` of the joint draws (``"importance"`` sampling;
        ``"slice"`` sampling where its weights are unreliable; ``"paired"``, where every system has
        its own model; ``"own"``, of a user's model), ``effective_draws`` (independent draws
        behind all probabilities) and ``k_hat`` (Pareto shape of the largest importance weights; at
        0.7 or more, ``"slice"`` is used).

    Raises
    ------
    ValueError
        If there are fewer than two systems, or no two tried the same question.

    See Also
    --------
    bayesatk.compare : differences of pairs of systems, by the same joint posterior.
    bayesatk.claim : the sentence about its tiers.
    bayesatk.plots.plot_leaderboard, bayesatk.plots.plot_ranks : the table as a picture.
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
    over how many of them were right, and the error rates of each system are drawn together with the
    parameters of systems.

    Probabilities of ranks are joint, so they need no further correction for the number of systems.
    The order of the systems in the data does not change any number.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1, 1, 1]] * 9, "b": [[1, 0, 1, 0]] * 9, "c": [[0, 0, 1, 0]] * 9}
    >>> board = leaderboard(bayesatk.evaluate(runs, "pass@1", rng=1), rng=1)
    >>> rows = bayesatk.table(board, "leaderboard").query("target == 'questions'")
    >>> rows[["system", "observed", "tier"]].values.tolist()
    [['a', 1.0, 1], ['b', 0.5, 2], ['c', 0.25, 3]]
    """
    ranking = rank(fit, alpha, prior, rng)
    return with_analysis(ranking.result.tree, "leaderboard", ranking.group())


@one_thread()
def rank(
    fit: Fit,
    alpha: float | None = None,
    prior: LeaderboardPrior | None = None,
    rng: RandomSource = None,
) -> Ranking:
    """Rank systems, with the arguments of `leaderboard`; a result that was ranked, as it was."""
    result = Result.of(fit)
    result.require("leaderboard")
    alpha = float(joint_attrs(result).get("alpha", 0.05)) if alpha is None else alpha
    proper_probability("alpha", alpha)
    if prior is not None and not isinstance(prior, LeaderboardPrior):
        raise TypeError(f"prior must be a LeaderboardPrior; got {prior!r:.80}.")
    joint, seed = joint_again(result, prior, rng)
    if not has_ranks(result):
        raise ArgumentError(
            "fit", " must have questions that all systems tried, where every system has "
            "a model of its own; it has none. Compare its pairs instead: bayesatk.compare(fit).",
        )  # fmt: skip
    return Ranking(result, joint, float(alpha), seed)
