"""Verdicts and sentences about pairs of systems, and about tiers.

A verdict is decided by stated thresholds on the probabilities that `bayesatk.table` shows of a
comparison, and nothing else, so that no sentence can say what its row does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arrays import Flags, Ints
from bayesatk._tools.words import (
    chance_words,
    few_names,
    near_words,
    number_words,
    printable,
    probability_words,
)
from bayesatk.comparison.pairs.contrasts import CONTRASTS, RESOLUTION
from bayesatk.comparison.pairs.together import deciding_target, joint_draws, no_better_seen, orders
from bayesatk.core.question.observed import has_observed_mean
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.observed import observed_value
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGET_NAMES, metric_values

BEYOND_ROPE, AHEAD = "ahead by more than the ROPE", "ahead"
BEHIND_ROPE, BEHIND = "behind by more than the ROPE", "behind"
EQUIVALENT, OPEN = "practically equivalent", "not separated"
# The verdict on the same pair in the other order.
TURNED = {AHEAD: BEHIND, BEYOND_ROPE: BEHIND_ROPE, BEHIND: AHEAD, BEHIND_ROPE: BEYOND_ROPE}
MAX_NAME_LENGTH = 60

Row = Mapping[str, float]


def named(system: object) -> str:
    """Return a system's name without control characters, cut where it is very long."""
    text = printable(str(system))
    return text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 1] + "…"


def metric_words(result: Result, metric: Metric) -> str:
    """Return the metric, and that its lower values are better where they are."""
    return metric.label + " (lower is better)" * (result.scale.direction < 0)


def design_words(trials: Ints, weighted: bool = False) -> str:
    """Say how many questions and trials: of (systems, questions), zeros left out.

    Examples
    --------
    >>> design_words(np.array([[4, 4]])), design_words(np.array([[1, 3]]))
    ('2 questions (4 trials each)', '2 questions (1 to 3 trials each)')
    >>> design_words(np.array([[4, 4, 4], [4, 0, 0]]))
    '1 to 3 questions (4 trials each)'
    """
    numbers = sorted({int(n) for n in (trials > 0).sum(axis=1)} - {0})
    questions = numbers[-1]
    least, most = (int(f(trials[trials > 0])) for f in (np.min, np.max))
    number = f"{least} trial{'s' * (least > 1)}" if least == most else f"{least} to {most} trials"
    kind = "weighted question" if weighted else "question"
    range_of = f"{numbers[0]} to " * (len(numbers) > 1)
    return f"{range_of}{questions} {kind}{'s' * (questions > 1)} ({number} each)"


@dataclass(frozen=True)
class PairClaim:
    """What is said of a pair, system i first: contrasts, verdict and sentence by target."""

    i: int
    rows: list[dict[str, float]]
    verdicts: list[str]
    sentences: list[str]


class PairSentences:
    """Verdicts and sentences of the pairs of a comparison."""

    def __init__(self, result: Result) -> None:
        self._result = Result.of(result)

    @cached_property
    def _data(self) -> xr.Dataset:
        return Result.of(self._result, "comparison").group("comparison")

    @property
    def _attrs(self) -> dict[Any, Any]:
        return self._data.attrs

    @cached_property
    def shared(self) -> Ints:
        """Questions that a pair was compared on."""
        return np.asarray(self._data["shared_questions"].values)

    def rows(self, metric: Metric, i: int, j: int) -> list[dict[str, float]]:
        """Return the contrasts of system i minus system j, by target."""
        values = self._array(self._data, metric, ("system", "other", "target", "contrast"))
        return [dict(zip(CONTRASTS, contrasts, strict=True)) for contrasts in values[i, j].tolist()]

    def of(self, metric: Metric, i: int, j: int, *, as_given: bool = False) -> PairClaim:
        """Return what is said of a pair; the better on these questions comes first.

        `as_given`, the first stays first, also where it is behind.
        """
        rows = self.rows(metric, i, j)
        # Equal systems may differ by rounding, and then keep their order.
        direction = self._result.scale.direction
        lead = round(direction * rows[0]["mean"], 12)
        if not as_given and (lead < 0.0 or (lead == 0.0 and i > j)):
            i, j = j, i
            rows = self.rows(metric, i, j)
        names = named(self._result.systems[i]), named(self._result.systems[j])
        if np.isnan(rows[0]["mean"]):
            nothing = (
                f"{names[0]} and {names[1]} have no question in common: nothing can be compared."
            )
            return PairClaim(i, rows, [OPEN] * len(rows), [nothing] * len(rows))
        turned, verdicts, sentences = self.rows(metric, j, i), [], []
        for index, target in enumerate(self._result.targets):
            row, pair = rows[index], (i, j)
            decides = deciding_target(self._result, index)
            behind = bool(turned[decides]["declared"])
            verdict = self.verdict((turned if behind else rows)[decides])
            verdicts.append(TURNED.get(verdict, verdict) if behind else verdict)
            open_and_lower = (
                verdict in (OPEN, EQUIVALENT) and round(direction * row["mean"], 12) < 0.0
            )
            if behind and as_given:
                verdict = verdicts[-1]
            elif behind or (open_and_lower and not as_given):
                row, pair = turned[index], (j, i)  # the sentence begins with the better one here
            statement = self._sentence(metric, index, verdict, pair, row)
            where = f"On {TARGET_NAMES[target]} "
            sentences.append(self._scores(metric, i, j, *names) + where + statement)
        return PairClaim(i, rows, verdicts, sentences)

    def _tiers(self, metric: Metric, target: int) -> Ints:
        """Return the tier of every system: of the leaderboard, if there is one."""
        if not self._result.has("leaderboard"):
            group = self._result.group("tiers")
            tiers: Ints = self._array(group, metric, ("target", "system"))[target]
            return tiers
        tier = self._result.group("leaderboard")["tier"].sel(metric=metric.label)
        return np.asarray(tier.isel(target=target).values)

    def _array(self, group: xr.Dataset, metric: Metric, dims: tuple[str, ...]) -> NDArray[Any]:
        """Return the values of a metric, read once."""
        key = "values", metric.label, dims
        return self._result.once(key, lambda: metric_values(group, metric).transpose(*dims).values)

    def verdict(self, row: Row) -> str:
        """Decide by the rule that `claim` states."""
        alpha, rope = self._attrs["alpha"], self._attrs["rope"]
        sure = 1.0 - 0.5 * alpha
        if rope > 0.0 and row["prob_in_rope"] >= 1.0 - alpha:
            return EQUIVALENT
        if not row["declared"]:
            return OPEN
        return BEYOND_ROPE if rope > 0.0 and row["prob_above_rope"] >= sure else AHEAD

    def _scores(self, metric: Metric, i: int, j: int, first: str, second: str) -> str:
        """Say what both scored on the questions that both tried."""
        trials = self._result.trials[[i, j]]
        up_to = self._result.data.observed_up_to[[i, j]]
        both = (trials > 0).all(axis=0)
        partly = "" if both.all() else f" of {both.size}, those that both tried"
        enough = (up_to >= metric.k).all(axis=0)
        if enough.sum() < both.sum() and has_observed_mean(up_to.min(axis=0), metric.k):
            partly = f" of {both.size}, those that both tried {metric.k} times or more"
            both = enough
        a, b = (self._observed(metric, index, both) for index in (i, j))
        design = design_words(trials[:, both], self._result.weight is not None)
        words = metric_words(self._result, metric)
        if np.isnan(a + b):
            fewest = int(trials[:, both].min())
            return (
                f"{first} and {second} tried the same {design}{partly}. {words} judges more trials "
                f"than some questions have ({fewest}), so it depends on the model. "
            )
        judged = self._result.judges is not None
        beyond = ["from all trials"] * bool(partly) + ["corrected for errors of the judge"] * judged
        following = f"The following numbers are {' and '.join(beyond)}. " if beyond else ""
        return (
            f"{first} {'was marked' if judged else 'scored'} {number_words(a)} and {second} "
            f"{number_words(b)} in {words} on the same {design}{partly}. {following}"
        )

    def _observed(self, metric: Metric, system: int, kept: Flags) -> float:
        key = "observed", metric.label, system, kept.tobytes()
        return self._result.once(
            key, lambda: observed_value(self._result, system, metric, kept, of_all=True)
        )

    def _sentence(
        self, metric: Metric, target: int, verdict: str, pair: tuple[int, int], row: Row
    ) -> str:
        """Say who is ahead, by how much and how surely."""
        first, second = (named(self._result.systems[system]) for system in pair)
        tiers = self._tiers(metric, target)[list(pair)].tolist()
        rope = f"{self._attrs['rope']:g}"
        text = {
            BEYOND_ROPE: f"{first} is ahead of {second} by more than {rope}",
            AHEAD: f"{first} is ahead of {second}",
            BEHIND_ROPE: f"{first} is behind {second} by more than {rope}",
            BEHIND: f"{first} is behind {second}",
            EQUIVALENT: f"{first} and {second} are practically equivalent",
            OPEN: f"{first} and {second} are not separated",
        }[verdict]
        among = f"of {len(self._result.systems)} systems"
        if len(self._result.systems) > 2:
            both = (
                f"tiers {tiers[0]} and {tiers[1]}" if tiers[0] != tiers[1] else f"tier {tiers[0]}"
            )
            text += f" ({both} {among})"
        chances = [chance_words("better", row["prob_greater"])]
        if row["prob_tie"] >= 0.0005:
            chances.append(chance_words("tie", row["prob_tie"]))
        if self._attrs["rope"] > 0.0:
            side = {BEYOND_ROPE: "above", BEHIND_ROPE: "below"}.get(verdict, "in")
            event = f"within ±{rope}" if side == "in" else f"by more than {rope}"
            chances.append(chance_words(event, row[f"prob_{side}_rope"]))
        mean, low, high = (
            number_words(row[name], sign=True) for name in ("mean", "ci_lower", "ci_upper")
        )
        percent = f"{100 * self._result.ci_prob:g}%"
        text += (
            f": posterior mean difference {mean} ({percent} interval {low} to {high}), "
            f"{', '.join(chances)}"
        )
        sure, not_tied = 1.0 - 0.5 * self._attrs["alpha"], row["prob_greater"] - row["prob_tie"] / 2
        looks_decided = (
            row["ci_lower"] * row["ci_upper"] > 0.0
            or max(not_tied, 1.0 - row["prob_tie"] - not_tied) >= sure
            or row["prob_in_rope"] >= 1.0 - self._attrs["alpha"]
        )
        if verdict == OPEN and looks_decided:
            ahead = pair if row["prob_greater"] > 0.5 else pair[::-1]
            reason = self._why_none_is_ahead(metric, ahead)
            if reason:
                return f"{text}; no order is declared, because {reason}."
            text += self._why_not_separated(target)
        if len(self._result.systems) > 2:
            return f"{text}."
        return f"{text}." + near_words(not_tied, sure, self._attrs["effective_draws"])

    def _why_none_is_ahead(self, metric: Metric, pair: tuple[int, ...]) -> str:
        """Say what keeps the first of a pair from being declared better, however probable it is."""
        if self._result.unlike[pair]:
            return "they tried questions of other difficulty"
        if no_better_seen(self._result, [*self._result.grid].index(metric))[pair]:
            return (
                f"{named(self._result.systems[pair[0]])} did no better in the trials that were run"
            )
        return ""

    def _why_not_separated(self, target: int) -> str:
        """Say what a pair lacks whose interval does not contain zero."""
        sure = 1.0 - 0.5 * self._attrs["alpha"]
        number = len(self._result.systems)
        if deciding_target(self._result, target) != target:
            return (
                "; with one trial of each question this rests on the prior, and the verdict is "
                "that on questions like these"
            )
        if number == 2:
            return f"; an order is declared if it is right with probability {sure:g}"
        return (
            f" of this pair alone; of {number} systems, shrunk towards each other, orders are "
            f"declared as long as all of them are right together with probability {sure:g}"
        )

    def tiers(self, metric: Metric, target: str) -> str:
        """Say how many systems there are, which has the best mean, and which are in which tier."""
        result = self._result
        names = np.array([named(system) for system in result.systems], dtype=object)
        seen = np.array(
            [
                self._observed(metric, system, tried)
                for system, tried in enumerate(result.trials > 0)
            ]
        )
        on = design_words(result.trials, result.weight is not None)
        label = metric_words(self._result, metric)
        text = f"{len(names)} systems tried {on}. In {label} on {TARGET_NAMES[target]} "
        if not np.isnan(seen).any():
            ends = f"{number_words(seen.min())} to {number_words(seen.max())}"
            judged = result.judges is not None
            text = (
                f"{len(names)} systems {'were marked' if judged else 'scored'} {ends} in "
                f"{label} on {on}. On {TARGET_NAMES[target]} "
                + "and corrected for errors of the judge "
                * judged
            )
        tier = self._tiers(metric, self._result.targets.index(target))
        of_target = metric_values(result.statistics, metric).sel(target=target)
        mean = of_target.sel(statistic="mean").values
        order = np.argsort(-result.scale.direction * mean, kind="stable")
        best, low, high = (
            number_words(of_target.sel(statistic=name).values[order[0]])
            for name in ("mean", "ci_lower", "ci_upper")
        )
        equal = names[order][np.abs(mean[order] - mean[order[0]]) <= RESOLUTION].tolist()
        text += (
            f"{few_names(equal)} {'have' if equal[1:] else 'has'} the best posterior mean, {best} "
            f"({100 * result.ci_prob:g}% interval {low} to {high}); "
        )
        declared, surely = self._how_surely(metric, target)
        if tier.max() == 1:
            return f"{text}the systems are not separated: all are in one tier.{surely}"
        levels = [
            few_names(names[order][tier[order] == level].tolist())
            for level in range(1, int(tier.max()) + 1)
        ]
        numbered = "; ".join(f"({number}) {names}" for number, names in enumerate(levels, 1))
        said = _orders(names[order].tolist(), tier[order], declared[order][:, order])
        return f"{text}there are {len(levels)} tiers: {numbered}. {said}{surely}"

    def _how_surely(self, metric: Metric, target: str) -> tuple[Flags, str]:
        """Return the declared orders; say how surely all are right, and what is needed."""
        result, position = self._result, self._result.targets.index(target)
        group = result.group("leaderboard" if result.has("leaderboard") else "tiers")
        alpha, draws = group.attrs["alpha"], group.attrs["effective_draws"]
        bound, cell = 1.0 - 0.5 * alpha, [*result.grid].index(metric)
        values = result.once("joint draws", lambda: joint_draws(result))
        declared, all_right = orders(result, values, position, cell, alpha)
        number = int(declared.sum())
        if not all_right:
            return declared, ""
        decisive = all_right[max(number - 1, 0) : number + 1]
        first, *further = map(probability_words, decisive)
        if number:
            which = "These orders are right together" if number > 1 else "This order is right"
            more = "".join(f"; with the next surest order {chance}" for chance in further)
            text = f" {which} with probability {first} ({bound:g} is needed{more})."
        else:
            text = f" The surest order is right with probability {first}; {bound:g} is needed."
        return declared, text + near_words(decisive, bound, draws)


def _orders(names: list[str], tier: Ints, declared: Flags) -> str:
    """Say which systems are declared better than which, in the order of means.

    Examples
    --------
    >>> better = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], bool)
    >>> _orders(["a", "b", "c"], np.array([1, 1, 2]), better)
    'a is ahead of c; no other pair is separated.'
    >>> _orders(["a", "b"], np.array([1, 2]), np.array([[0, 1], [0, 0]], bool))
    'Each system is ahead of all in later tiers.'
    """
    later = tier[:, None] < tier
    if declared[later].all():
        return "Each system is ahead of all in later tiers."
    max_listed = 5  # systems
    if len(names) > max_listed:
        return f"Of the {later.sum()} pairs in different tiers {declared.sum()} are separated."
    leaders: dict[tuple[str, ...], list[str]] = {}  # by those that they are ahead of
    for name, better in zip(names, declared, strict=True):
        behind = tuple(other for other, is_behind in zip(names, better, strict=True) if is_behind)
        if behind:
            leaders.setdefault(behind, []).append(name)
    orders = [
        f"{' and '.join(ahead)} {'are' if ahead[1:] else 'is'} ahead of {' and '.join(behind)}"
        for behind, ahead in leaders.items()
    ]
    return f"{'; '.join(orders)}; no other pair is separated."


def tier_rule(alpha: float, shrunken: bool) -> str:
    """Say which orders are declared, and where tiers end; `shrunken`, of several systems.

    Examples
    --------
    >>> tier_rule(0.05, False).partition("; ")[0]
    'Orders are declared, the surest first, while all are right together with probability 0.975'
    """
    how = ", by draws in which systems are shrunk towards each other for the luck of the leader"
    return (
        "Orders are declared, the surest first, while all are right together with probability "
        f"{1.0 - alpha / 2.0:g}{how * shrunken}; in the order of means, a tier ends where the next "
        "system is declared worse than one of it."
    )
