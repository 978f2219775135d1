"""Rates of a gate's verdicts over replayed runs, from whole gates on some of them.

A whole gate takes half a second, and a rate takes thousands. What decides a gate is the normal
score of one posterior probability. It is nearly linear in the observed difference over its standard
error, so it is regressed on these in some replayed runs that are decided by whole gates; the rates
are those of the regression, with its residuals, over all replayed runs (regression estimator of a
two-phase sample: Cochran 1977, Sampling Techniques, chapter 12).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtr, ndtri

from bayesatk._tools.arrays import Array, Flags, Indices, Ints, Rng
from bayesatk._tools.batches import in_batches
from bayesatk.comparison.gates.floors import worst_floors
from bayesatk.comparison.gates.gate import compared_by, contrast_of, probability_above
from bayesatk.comparison.gates.policy import GatePolicy
from bayesatk.data.outcomes import Outcomes
from bayesatk.metrics.grid import Metric, parse
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS

VERDICTS = ("pass", "fail", "inconclusive")
RATES = (*VERDICTS, "flip")

_TRUTHS, _RUNS = 250, 16  # replayed success probabilities, and pairs of runs of each
_REFITS = 100  # bootstrap samples of the whole gates, for standard errors
_LEVELS = (np.arange(64) + 0.5) / 64  # of Beta distributions, for moments of a metric
_KNOWN = 0.003  # probabilities so near to 0 and 1 have no normal score of their own: draws are few
_NEAR = 1.5  # sds of scores around those that decide, within which the regression matters most
_LEAST_TAU = 0.02  # residual sd of scores: no smaller one is known of so few gates


@dataclass(frozen=True)
class Design:
    """Two systems that are run on the same questions, as often as a policy is to be certified for.

    Parameters
    ----------
    policy : GatePolicy
    template : Outcomes
        Of the systems "new" and "baseline", with the same counts: the questions and their weights.
    trials : ndarray of int, shape (questions,)
    p : ndarray, shape (draws, questions)
        Success probabilities of the baseline: what is replayed.
    """

    policy: GatePolicy
    template: Outcomes
    trials: Ints
    p: Array

    @property
    def share(self) -> Array:
        """Share of every question in a mean over them."""
        weight = self.template.weight
        share = np.ones(len(self.trials)) if weight is None else weight
        return np.asarray(share / share.sum())

    @cached_property
    def compared(self) -> Result:
        """The comparison of the template, whose counts are replaced."""
        return compared_by(self.template, self.policy, 0)[0]

    def sized(self, trials: int | None = None, questions: int | None = None) -> "Design":
        """Return it with other trials of each question, or another number of questions like these.

        More questions: these again with other draws of their success probabilities; fewer: some.
        """
        if trials is not None:
            return Design(self.policy, self.template, np.full_like(self.trials, trials), self.p)
        assert questions is not None
        rng, size = np.random.default_rng(questions), len(self.trials)
        copies, rest = divmod(questions, size)
        places = [np.arange(size)] * copies + [np.sort(rng.permutation(size)[:rest])]
        p = np.concatenate([rng.permutation(self.p)[:, place] for place in places], axis=1)
        index = np.concatenate(places)
        dataset = self.template.dataset.isel(question=index)
        dataset = dataset.assign_coords(question=np.arange(questions))
        template = Outcomes(dataset, self.template.notes)
        return Design(self.policy, template, self.trials[index], p)

    def runs(self, effect: float, rng: Rng) -> Ints:
        """Replay right trials, (truths, runs, 2, questions): of the new system and the baseline."""
        p = self.p[rng.choice(len(self.p), _TRUTHS, len(self.p) < _TRUTHS)]
        both = np.stack([shifted(p, effect, self.policy.asked, self.share), p], axis=1)
        size = (len(p), _RUNS, *both.shape[1:])
        return rng.binomial(self.trials, both[:, None], size)

    def whole_gate(self, right: Ints) -> Array:
        """Decide replayed right trials (2, questions) as a gate does, either way round.

        The posterior of a difference is that of the other way round with the other sign: one gate
        decides both systems against each other.

        Returns
        -------
        ndarray, shape (2, 2)
            The probability that decides, and the normal score of the threshold by the posterior
            mean and sd of the difference; for the systems as they are, and for the other way round.
        """
        trials = np.broadcast_to(self.trials, right.shape)
        contrast = contrast_of(self.compared, self.policy, right, trials)
        turned = contrast | {
            "mean": -contrast["mean"], "prob_below_rope": contrast["prob_above_rope"],
            "prob_above_rope": contrast["prob_below_rope"],
        }  # fmt: skip
        return np.array([
            (probability_above(self.policy, row),
             (row["mean"] - self.policy.threshold) / max(row["sd"], 1e-12))
            for row in (contrast, turned)
        ])  # fmt: skip

    def floors(self, right: Ints) -> Ints:
        """Return the worst verdict on floors, (...): 0 pass, 1 inconclusive, 2 fail."""
        if not self.policy.floors:
            return np.zeros(right.shape[:-2], np.int64)
        return worst_floors(self.compared, self.policy, right[..., 0, :], self.trials)

    def features(self, right: Ints) -> Array:
        """Return what scores are regressed on, (..., 4), of right trials (..., 2, questions).

        With D the observed difference and S its standard error: 1, D / S, 1 / S and D. Value and
        variance of the metric on a question have the posterior under Beta(1/2, 1/2), which has no
        question without a variance.
        """
        mean, variance = np.empty((2, *right.shape))
        for number in np.unique(self.trials).tolist():
            kept = self.trials == number
            of_counts = _moments(self.policy.metric, number)
            mean[..., kept], variance[..., kept] = of_counts[:, right[..., kept]]
        gap = mean[..., 0, :] - mean[..., 1, :]
        difference = gap @ self.share
        square = variance.sum(axis=-2) @ self.share**2
        if self.policy.target == TARGETS[1]:
            square = square + (gap - difference[..., None]) ** 2 @ self.share**2
        error = np.sqrt(square)
        ones = np.ones_like(error)
        return np.stack([ones, difference / error, 1.0 / error, difference], axis=-1)


@cache
def _moments(metric: str, trials: int) -> Array:
    """Posterior mean and variance of a metric of one question by its right trials, (2, n + 1)."""
    right = np.arange(trials + 1)[:, None]
    p = betaincinv(right + 0.5, trials - right + 0.5, _LEVELS)
    values = parse(metric)[0].latent(p)
    return np.stack([values.mean(axis=1), values.var(axis=1)])


def shifted(p: Array, effect: float, metric: Metric, share: Array) -> Array:
    """Return success probabilities (..., questions) whose mean metric differs by an effect.

    The odds of all questions of a draw are multiplied by one number. Where no number is enough, all
    are 0 or 1.

    Examples
    --------
    >>> p = np.array([[0.5, 0.5]])
    >>> shifted(p, -0.1, parse("pass@1")[0], np.array([0.5, 0.5])).round(6).tolist()
    [[0.4, 0.4]]
    """
    if effect == 0.0:
        return p
    wanted = metric.latent(p) @ share + effect
    logits = logit(np.clip(p, 1e-9, 1.0 - 1e-9))
    rises = metric.latent(np.ones(1))[0] >= metric.latent(np.zeros(1))[0]

    def reached(move: Array) -> Flags:
        return np.asarray(
            (metric.latent(expit(logits + move[..., None])) @ share < wanted) != rises
        )

    return np.asarray(expit(logits + bisected(reached, wanted.shape, 45.0)[..., None]))


def bisected(above: Callable[[Array], Flags], shape: int | tuple[int, ...], reach: float) -> Array:
    """Return where each of so many conditions begins to be met, between two opposite numbers.

    Examples
    --------
    >>> bisected(lambda x: x >= np.array([0.25, -2.0]), 2, 3.0).round(9).tolist()
    [0.25, -2.0]
    """
    low, high = np.full(shape, -reach), np.full(shape, reach)
    for _ in range(70):
        middle = 0.5 * (low + high)
        met = above(middle)
        low, high = np.where(met, low, middle), np.where(met, middle, high)
    return np.asarray(0.5 * (low + high))


@dataclass(frozen=True)
class Decided:
    """Replayed runs that whole gates decided, each either way round.

    Parameters
    ----------
    features : ndarray, shape (gates, 2, 4)
    probability : ndarray, shape (gates, 2)
    score : ndarray, shape (gates, 2)
        Normal score of the probability; of mean and sd, where the probability is next to 0 or 1.
    """

    features: Array
    probability: Array
    score: Array

    @classmethod
    def of(
        cls, design: Design, right: Ints, progress: bool | None = False, client: Any = None
    ) -> "Decided":
        """Decide runs (gates, 2, questions)."""
        run = partial(_decide, design, right)
        decided = dict(in_batches(run, range(len(right)), client, "Replaying", progress))
        probability, normal = np.moveaxis(
            np.array([decided[index] for index in range(len(right))]), -1, 0
        )
        inside = (probability > _KNOWN) & (probability < 1.0 - _KNOWN)
        score = np.where(inside, ndtri(np.where(inside, probability, 0.5)), normal)
        features = np.stack([design.features(right), design.features(right[:, ::-1])], axis=1)
        return cls(features, probability, score)

    @classmethod
    def together(cls, parts: Sequence["Decided"]) -> "Decided":
        """Return the runs of all parts."""
        names = ("features", "probability", "score")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def take(self, places: Indices) -> "Decided":
        """Return some of them."""
        return Decided(self.features[places], self.probability[places], self.score[places])

    def regression(self, level: float) -> tuple[Array, float]:
        """Return coefficients of the score, and the residual sd.

        Scores near those that decide, z and -z of the level, weigh most. A little is added to the
        diagonal, so that gates which are all alike have a regression, too.
        """
        z, score = ndtri(level), self.score.ravel()
        features = self.features.reshape(len(score), -1)
        distance = np.minimum(np.abs(score - z), np.abs(score + z))
        weight = 0.05 + np.exp(-0.5 * (distance / _NEAR) ** 2)
        scaled = features * weight[:, None]
        square = scaled.T @ features
        ridge = 1e-6 * np.diag(np.maximum(np.diag(square), 1e-12))
        start = np.array([0.0, 1.0, 0.0, 0.0])  # score D / S
        coefficients = start + np.linalg.solve(
            square + ridge, scaled.T @ (score - features @ start)
        )
        residual = score - features @ coefficients
        spare = 1.0 - len(start) / len(residual)
        tau = float(np.sqrt(weight @ residual**2 / weight.sum() / spare))
        return coefficients, max(tau, _LEAST_TAU)


def _decide(design: Design, right: Ints, index: int) -> Array:
    return design.whole_gate(right[index])


@dataclass(frozen=True)
class Rates:
    """Rates of verdicts, by verdict, and of flips.

    Parameters
    ----------
    rate : mapping
        Of ``"pass"``, ``"fail"``, ``"inconclusive"``, and of two independent pairs of runs that get
        different verdicts, ``"flip"``.
    error : mapping
        Monte Carlo standard errors.
    sd : mapping
        Posterior sd of the rate: over the success probabilities that the baseline leaves open.
    """

    rate: Mapping[str, float]
    error: Mapping[str, float]
    sd: Mapping[str, float]

    @classmethod
    def of(cls, design: Design, right: Ints, decided: Decided) -> "Rates":
        """Return rates over replayed runs (truths, runs, ...) from whole gates on some of them."""
        level, features, floors = (
            design.policy.ci_prob, design.features(right), design.floors(right)
        )  # fmt: skip
        chances = _chances(features, floors, *decided.regression(level), level)
        by_truth = _by_truth(chances)
        rng, number = np.random.default_rng(0), len(decided.score)
        refits = []
        for _ in range(_REFITS):
            resampled = decided.take(rng.integers(number, size=number))
            again = _chances(features, floors, *resampled.regression(level), level)
            refits.append(_by_truth(again).mean(axis=1))
        spread = by_truth.var(axis=1, ddof=1) / by_truth.shape[1]
        error = np.sqrt(np.var(refits, axis=0, ddof=1) + spread)
        sd = _explained_sd(features, chances)
        rate, error_by_name, sd_by_name = (
            dict(zip(RATES, values.tolist(), strict=True))
            for values in (by_truth.mean(axis=1), error, sd)
        )
        return cls(rate, error_by_name, sd_by_name)


def _explained_sd(features: Array, chances: Array) -> Array:
    """Return the sd of rates over truths: of their regression on the noise of runs of a truth.

    Rates of a few runs vary by chance alone; those of one half of the runs are therefore regressed
    on the mean standard error and difference in the other half.
    """
    half = features.shape[1] // 2
    noise = np.stack([1.0 / features[..., 2], features[..., 3]])[:, :, :half].mean(axis=2)
    centred = (noise - noise.mean(axis=1, keepdims=True)).T
    rates = _by_truth(chances[:, :, half:]).T
    coefficients, *_ = np.linalg.lstsq(centred, rates - rates.mean(axis=0), rcond=1e-9)
    return np.asarray((centred @ coefficients).std(axis=0))


def expected_rates(design: Design, right: Ints, decided: Decided) -> dict[str, float]:
    """Return the rates of replayed runs alone, without their errors."""
    level = design.policy.ci_prob
    regression = decided.regression(level)
    chances = _chances(design.features(right), design.floors(right), *regression, level)
    return dict(zip(RATES, _by_truth(chances).mean(axis=1).tolist(), strict=True))


def _chances(features: Array, floors: Ints, coefficients: Array, tau: float, level: float) -> Array:
    """Return probabilities of the three verdicts, (3, ...), of runs with these features.

    A run whose floors fail fails; one whose floors are inconclusive does not pass.
    """
    score, z = features @ coefficients, ndtri(level)
    passes = np.where(floors == 0, ndtr((score - z) / tau), 0.0)
    fails = np.where(floors == 2, 1.0, ndtr((-z - score) / tau))
    return np.stack([passes, fails, 1.0 - passes - fails])


def _by_truth(chances: Array) -> Array:
    """Return rates of verdicts and of flips, (4, truths), of chances (3, truths, runs).

    Pairs of different runs of a truth give the probability of the same verdict without bias.
    """
    runs = chances.shape[2]
    total = chances.sum(axis=2)
    same = (total**2 - (chances**2).sum(axis=2)).sum(axis=0) / (runs * (runs - 1))
    return np.vstack([total / runs, 1.0 - same])
