"""From which k on another system leads: crossings of two curves over k."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Array, Indices, Ints
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.seeding import RandomSource
from bayesatk._tools.threads import one_thread
from bayesatk._tools.words import probability_words
from bayesatk.comparison.joint.contrasts import Drawn, over_k, round_to_resolution
from bayesatk.comparison.joint.draws import Subset
from bayesatk.comparison.joint.paired import paired_draws
from bayesatk.comparison.joint.posterior import Joint, joint_again
from bayesatk.comparison.pairs.systems import chosen_pairs, comparable
from bayesatk.comparison.pairs.verdicts import named
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGET_NAMES

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Crossing:
    """Posterior of where curves over k cross, from `bayesatk.decide.crossing`. Prints as sentences.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per pair and target. Unless `of` or `against` was given, ``system`` is more likely
        ahead at the smallest k on these questions than ``other``. ``prob_always`` is the
        probability that ``other`` leads at every k, ``prob_crosses`` that it leads from a larger k
        up to the largest k, ``prob_never`` that it does not lead at the largest k. They add up
        to 1.
        ``median``, ``ci_lower`` and ``ci_upper`` are quantiles of the k from which ``other`` leads
        (infinite: beyond the largest k, or never), ``monte_carlo_error`` the largest standard error
        of the three probabilities, ``questions`` the number that both tried; and a ``sentence``.
    probabilities : pandas.DataFrame
        One row per pair, target and k: ``prob`` that ``other`` leads from this k on, and not from a
        smaller one. The last k is infinite: never.
    attrs : dict
        The metric, ``ci_prob`` and the seed.
    """

    table: pd.DataFrame
    probabilities: pd.DataFrame
    attrs: dict[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return "\n".join(self.table["sentence"])

    __repr__ = __str__


@one_thread()
@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def crossing(
    fit: Fit,
    metric: str = "pass@",
    *,
    of: object = None,
    against: object = None,
    rng: RandomSource = None,
) -> Crossing:
    """Find the smallest k from which the other system of a pair leads, for every pair.

    One system may be better with a single trial and another with many. In a posterior draw, the
    other system leads from k on if it leads at this k and all larger ones that the fit has.

    Parameters
    ----------
    fit : xarray.DataTree
        With two systems or more and the metric at two k or more, from `bayesatk.evaluate`,
        `bayesatk.sample` or `bayesatk.compare`.
    metric : str
        A metric without its k: ``"pass@"``, ``"pass^"``, ``"maj@"``, or ``"g-pass@:0.5"`` with its
        tau.
    of, against : label or collection of labels, optional
        Pairs of a system of `of` and a system of `against`; default: all systems.
    rng : int, numpy.random.Generator or None
        Seed of the draws.

    Returns
    -------
    Crossing

    Raises
    ------
    ValueError
        If the fit has fewer than two systems or two k, or no two systems tried the same question.

    See Also
    --------
    bayesatk.compare : differences at every k.
    bayesatk.comparison_table : differences at every k with bands that contain whole curves.

    Notes
    -----
    The joint draws are those of `bayesatk.compare`, on the questions that both systems tried.
    Differences below 2**-40 of the scale are ties, in which no system leads. Probabilities are
    about the k that the fit has: evaluate more of them for a finer answer.

    Examples
    --------
    ``a`` always solves half of the questions, ``b`` solves all of them in a quarter of trials.

    >>> import bayesatk
    >>> runs = {"a": [[1] * 8, [0] * 8] * 10, "b": [[1, 0, 0, 0] * 2] * 20}
    >>> fit = bayesatk.evaluate(runs, "pass@1,2,4,8", pooling="none", rng=1)
    >>> rows = crossing(fit, "pass@", rng=1).table.query("target == 'questions'")
    >>> rows[["system", "other", "median"]].values.tolist()
    [['a', 'b', 4.0]]
    """
    result = comparable(fit)
    cells = _cells(result, metric)
    joint, seed = joint_again(result, None, rng)
    ks = np.array([[*result.grid][cell].k for cell in cells])
    order = np.argsort(ks)
    ks, cells = ks[order], [cells[index] for index in order]
    rows: list[dict[str, Any]] = []
    probabilities: list[dict[str, Any]] = []
    pairs = chosen_pairs(result, of, against)
    turn = of is None and against is None
    tried = (result.trials > 0).astype(int)
    shared = tried @ tried.T
    for (i, j), gap, by_target in _pair_signs(result, cells, pairs, joint):
        way = -1 if turn and result.scale.direction * gap < 0.0 else 1
        system, rival = (result.systems[index] for index in (i, j)[::way])
        for target, (signs, effective) in zip(result.targets, by_target, strict=True):
            shares = lead_probabilities(way * signs)
            names = {"system": system, "other": rival, "metric": metric, "target": target}
            numbers = _summary(ks, shares, result.ci_prob, effective)
            ahead = float((way * signs[0] > 0).mean())
            sentence = _sentence(names, ks, numbers, ahead, result.ci_prob)
            rows.append(names | numbers | {"questions": int(shared[i, j]), "sentence": sentence})
            places = zip([*ks.tolist(), np.inf], shares.tolist(), strict=True)
            probabilities += [names | {"k": k, "prob": share} for k, share in places]
    attrs = {"metric": metric, "ci_prob": result.ci_prob, "seed": seed}
    return Crossing(pd.DataFrame(rows), pd.DataFrame(probabilities), attrs)


def _cells(fit: Result, metric: str) -> list[int]:
    """Return the cells of the grid that are a metric at two k or more."""
    metrics = [*fit.grid]
    curves = {}
    for cells in over_k(fit.grid):
        first = metrics[cells[0]]
        tau = "" if first.tau is None else f":{first.tau:g}"
        if len(cells) > 1:
            curves[first.family.symbol + tau] = cells
    if metric not in curves:
        known = ", ".join(map(repr, curves)) or "none"
        raise ArgumentError(
            "metric", " must be a metric that the fit has at two k or more, without its "
            f"k; these are: {known}. Got {metric!r}. Evaluate it at several k, as in ",
            Argument("metrics", "pass@1,2,4,8"), ".",
        )  # fmt: skip
    return curves[metric]


def _pair_signs(
    fit: Result, cells: list[int], pairs: list[Pair], joint: Joint
) -> Iterator[tuple[Pair, float, list[tuple[Ints, float]]]]:
    """Yield pairs, their mean difference at the smallest k, and who leads in every draw, by target.

    Who leads is 1 for the first system, 0 for a tie and -1 for the second, (k, draws); with the
    effective number of draws.
    """
    tried = fit.trials > 0
    for i, j in pairs:
        both, systems, drawn = tried[i] & tried[j], joint.systems, joint.drawn
        if not joint.whole:
            if not both.any():
                continue
            subset = Subset.ordered(fit, [i, j], both)
            rng = np.random.default_rng(joint.seed)
            systems, drawn = subset.systems, paired_draws(fit, subset, rng, joint.sampler)
        places = np.array([systems.index(system) for system in (i, j)])
        signs = [(_signs(target, cells, places), target.effective) for target in drawn]
        gap = drawn[0].means(cells[0])[places] @ [1.0, -1.0]
        yield (i, j), float(gap), signs


def _signs(drawn: Drawn, cells: list[int], places: Indices) -> Ints:
    """Return the sign of the difference of the systems at two places, (k, draws)."""
    first, second = drawn.representatives(places[:1], places[1:])
    site, _ = round_to_resolution(drawn.values[:, cells][:, :, [first[0], second[0]]])
    sign = drawn.direction * np.sign(site[..., 0] - site[..., 1]).T
    alike = drawn.alike[places[0]] == drawn.alike[places[1]]
    return np.hstack([sign, -sign]) if alike else sign  # as likely the other way round


def lead_probabilities(signs: Ints) -> Array:
    """Probability of every smallest k from which the second system leads up to the largest.

    Parameters
    ----------
    signs : ndarray of int, shape (k, draws)
        Sign of the first system minus the second, k increasing.

    Returns
    -------
    ndarray, shape (k + 1,)
        The last is the probability that the second system does not lead at the largest k.

    Examples
    --------
    >>> lead_probabilities(np.array([[1, -1, 1, -1], [-1, -1, 1, 1], [-1, -1, 0, -1]])).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    leads_to_the_end = np.logical_and.accumulate(signs[::-1] < 0, axis=0)
    start = len(signs) - leads_to_the_end.sum(axis=0)
    return np.asarray(np.bincount(start, minlength=len(signs) + 1) / signs.shape[1])


def _summary(ks: Ints, shares: Array, ci_prob: float, effective: float) -> dict[str, float]:
    """Return probabilities, and quantiles of the k from which the second system leads."""
    tail = 0.5 * (1.0 - ci_prob)
    levels = {"median": 0.5, "ci_lower": tail, "ci_upper": 1.0 - tail}
    below, places = np.cumsum(shares[:-1]), [*ks.tolist(), np.inf]
    always, crosses, never = float(shares[0]), float(shares[1:-1].sum()), float(shares[-1])
    error = max(np.sqrt(chance * max(1.0 - chance, 0.0)) for chance in (always, crosses, never))
    return {
        "prob_always": always, "prob_crosses": crosses, "prob_never": never,
        **{name: float(places[np.searchsorted(below, level)]) for name, level in levels.items()},
        "monte_carlo_error": max(float(error), 0.5 / np.sqrt(effective)) / np.sqrt(effective),
    }  # fmt: skip


def _sentence(
    names: dict[str, Any], ks: Ints, numbers: dict[str, float], ahead: float, ci_prob: float
) -> str:
    """Say who leads at first, and from which k the other system leads."""
    system, rival = named(names["system"]), named(names["other"])
    low, high = int(ks[0]), int(ks[-1])
    error = numbers["monte_carlo_error"]
    first, crosses, always, never = (
        probability_words(chance, error)
        for chance in (
            ahead, numbers["prob_crosses"], numbers["prob_always"], numbers["prob_never"],
        )
    )  # fmt: skip
    median, *ends = (
        f"beyond {high}" if np.isinf(numbers[name]) else f"{numbers[name]:g}"
        for name in ("median", "ci_lower", "ci_upper")
    )
    from_k = ""
    if np.isfinite(numbers["ci_lower"]):
        interval = f"{100 * ci_prob:g}% interval {ends[0]} to {ends[1]}"
        from_k = f"; the k from which {rival} leads has median {median} ({interval})"
    metric = re.sub("[@^]", r"\g<0>k", names["metric"])
    return (
        f"In {metric} on {TARGET_NAMES[names['target']]}, {system} is ahead of {rival} at "
        f"k = {low} with probability {first}. {rival} leads from a larger k on, up to k = {high}, "
        f"with probability {crosses}, at every k with probability {always}, and not at k = {high} "
        f"with probability {never}{from_k}."
    )
