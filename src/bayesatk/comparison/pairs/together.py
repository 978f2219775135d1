"""The joint draws of all systems of a result, and how these stand: all that comparisons read."""

from dataclasses import dataclass, replace

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Ints
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.comparison.pairs.contrasts import (
    RESOLUTION,
    Settings,
    rank_probabilities,
    separated,
    tiers_of,
)
from bayesatk.comparison.pairs.shrinkage import shrunk
from bayesatk.core.question.observed import largest_observed_k, mean_over_questions
from bayesatk.metrics.grid import parse
from bayesatk.posterior.joint import SharedQuestions
from bayesatk.posterior.observed import finite_values, question_shares
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values


def joint_draws(fit: Result) -> Array:
    """Return joint draws of the means of systems, (target, cell, system, draws).

    Those of the library's own sampled models, of every system by itself, are put in a joint order
    here; those of your own model are joint already.
    """
    if fit.has("joint_posterior"):
        return _draws(fit, "joint_posterior")
    values = _draws(fit, "posterior")
    if fit.own:
        return values
    by_draw, own_share = values.transpose(3, 2, 1, 0), np.ones(values.shape[1:3])
    joint = SharedQuestions(fit.study, own_share, by_draw, 0).together(by_draw, by_draw)
    return np.asarray(joint.transpose(3, 2, 1, 0))


def joint_group_draws(fit: Result) -> Array:
    """Return joint draws of the groups of questions, (group, target, cell, system, draws)."""
    return _draws(fit, "group_posterior", "group")


def _draws(fit: Result, group: str, *leading: str) -> Array:
    variables, dims = fit.group(group), ("target", "system", "chain", "draw")
    cells = [metric_values(variables, metric).transpose(*leading, *dims) for metric in fit.grid]
    values = np.stack([cell.values for cell in cells], axis=-4)
    return values.reshape(*values.shape[:-2], -1)


def effective_draws(fit: Result) -> float:
    """Return how many independent draws the joint draws are worth: the fewest of any mean."""
    if fit.has("joint_posterior"):
        return float(fit.size)
    import arviz as az

    sizes = [az.ess(fit.draws(metric).to_dataset(name="x"), method="mean") for metric in fit.grid]
    return float(min(np.nanmin(size["x"], initial=fit.size) for size in sizes))


def deciding_target(fit: Result, target: int) -> int:
    """Return the target whose draws decide the orders on a target: mostly itself.

    Where a system has one trial of each question, its interval on these questions rests on the
    prior of how much questions differ, and is too narrow where they hardly do. Orders on them are
    then those on questions like these, whose intervals hold either way (docs/how_we_know.md).
    """
    return 1 if target == 0 and fit.single_trials else target


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def orders(
    fit: Result, values: Array, target: int, cell: int, alpha: float
) -> tuple[Flags, list[float]]:
    """Return which orders are declared, and how surely all are right, as `separated` does.

    None is declared of systems that tried questions of other difficulty (`Result.unlike`), and none
    that nothing in the trials speaks for (`no_better_seen`).

    Parameters
    ----------
    fit : Result
    values : ndarray, shape (target, cell, system, draws)
    target, cell : int
    alpha : float
        Orders are declared while all are right together with probability ``1 - alpha / 2``.
    """
    draws = _shrunk(fit, values[deciding_target(fit, target)], cell)
    return separated(
        fit.scale.direction * draws, 0.5 * alpha, fit.unlike | no_better_seen(fit, cell)
    )


def no_better_seen(fit: Result, cell: int) -> Flags:
    """Of which pairs (system, other) the first did no better in the trials that were run.

    Neither by mean marks nor by the observed metric, at as many trials as questions have where k
    exceeds these. A system without a fault leaves the spread of difficulties to the prior; one
    with equal faults everywhere does not, and would be ahead in pass@k on questions like these.
    Where marks alone do not decide (a judge errs, earlier trials count, systems tried different
    questions, the model is your own) nothing is said: all are False.
    """
    systems, tried = len(fit.systems), fit.trials > 0
    if fit.own or fit.judges is not None or fit.prior_counts is not None:
        return np.zeros((systems, systems), bool)
    if not (tried == tried[0]).all():
        return np.zeros((systems, systems), bool)

    def compared() -> Flags:
        metric, kept = [*fit.grid][cell], tried[0]
        seen_metric = replace(metric, k=min(metric.k, largest_observed_k(fit.trials)))
        metrics, share = [*parse("mean"), seen_metric], question_shares(fit.study, kept)
        by_question = finite_values(fit.study, metrics, range(systems))[:, kept]
        seen = fit.scale.direction * np.stack(
            [mean_over_questions(values, share, tried[0, kept]) for values in by_question]
        )
        return np.asarray((seen[:, None] <= seen + RESOLUTION).all(axis=-1))

    return fit.once(("no better seen", cell), compared)


def _shrunk(fit: Result, values: Array, cell: int) -> Array:
    """Return draws (draws, system) of a metric that are shrunk towards each other."""
    metric = [*fit.grid][cell]
    return shrunk(values[cell].T, _unit(fit, not metric.voted))


def settings_of(fit: Result, rope: float = 0.0) -> Settings:
    """Return how differences of a result are described."""
    return Settings(fit.ci_prob, fit.ci_kind, rope, fit.scale.direction, effective_draws(fit))


@dataclass(frozen=True)
class Standings:
    """Ranks, tiers and orders of systems, by draws that are shrunk towards each other.

    Parameters
    ----------
    ranks : ndarray, shape (target, cell, system, place)
        Probability of every rank, the best first.
    declared : ndarray of bool, shape (target, cell, system, other)
        Which systems are declared better than which.
    tiers : ndarray of int, shape (target, cell, system)
    order : ndarray of int, shape (target, cell, system)
        Systems by their means, the best first.
    mean : ndarray, shape (target, cell, system)
        Of the shrunk draws: of the leader one that allows for its selection.
    """

    ranks: Array
    declared: Flags
    tiers: Ints
    order: Ints
    mean: Array

    @classmethod
    def of(cls, fit: Result, values: Array, alpha: float) -> "Standings":
        """Rank systems by joint draws (target, cell, system, draws).

        Orders are declared as long as all are right together with probability ``1 - alpha / 2``.
        """
        direction = fit.scale.direction
        shape = values.shape[:3]
        ranks, declared = np.empty((*shape, shape[2])), np.empty((*shape, shape[2]), bool)
        tiers, order, mean = np.empty(shape, int), np.empty(shape, int), np.empty(shape)
        for at in np.ndindex(shape[:2]):  # target and cell
            draws = direction * _shrunk(fit, values[at[0]], at[1])
            ranks[at], declared[at] = (
                rank_probabilities(draws),
                orders(fit, values, at[0], at[1], alpha)[0],
            )
            order[at] = np.argsort(-direction * values[at].mean(axis=1), kind="stable")
            tiers[at] = tiers_of(declared[at], order[at])
            mean[at] = direction * draws.mean(axis=0)
        return cls(ranks, declared, tiers, order, mean)


def _unit(fit: Result, of_marks: bool) -> float | None:
    """Return what a logit is worth on the scale of scores; None: of probabilities themselves."""
    scores = fit.scale.scores
    return 0.25 * (max(scores) - min(scores)) if fit.scale.axes and of_marks else None


def check_systems(fit: Result) -> None:
    """Refuse fewer than two systems, and systems of which no two share a question."""
    tried = fit.trials > 0
    if len(tried) < 2:
        raise ArgumentError(
            "fit",
            " must have at least two systems to compare; got one. Name them: ",
            Argument("source", {"a": "first.csv", "b": "second.csv"}, "load"),
            ".",
        )
    if tried.sum(axis=0).max() < 2:
        raise ArgumentError(
            "fit",
            " must have two systems that tried the same question; of "
            f"{len(tried)} systems no two did. Run them on the same questions.",
        )
