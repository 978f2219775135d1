"""The posterior of metrics under the declared model: a mixture over weighted points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, logit

from bayesatk._tools.arrays import Array, Flags, Indices, Ints, Rng
from bayesatk.core.engine.distribution import Empirical, weighted_mean_distribution
from bayesatk.core.engine.matched import cumulant_mixture, matched_quantiles, skewness
from bayesatk.core.numerics.points import WeightedPoints
from bayesatk.core.numerics.weights import reweighted, total_moments
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.program.information import variance_of_known
from bayesatk.core.program.laws import CommonP, DifficultyLaw
from bayesatk.core.program.level_observation import Levels
from bayesatk.core.program.moments import Metrics, Moments, Summed
from bayesatk.core.program.predictor import Effects, Predictor
from bayesatk.core.question.bernstein import latent_means
from bayesatk.core.question.beta_binomial import beta_binomial_moments
from bayesatk.metrics.category_credit import CategoryCredit, ScoredCredit, latent_values
from bayesatk.metrics.grid import one_metric
from bayesatk.priors import DIFFICULTY_FAMILIES
from bayesatk.priors.choice import power_scaled
from bayesatk.priors.fields import Fields

if TYPE_CHECKING:
    from bayesatk.posterior.model import CountModel

Distributions = Sequence[Sequence[Empirical | None]]  # by target; None: only draws tell

MIN_POINTS = 200  # of each law, at which moments are computed
MAX_POINTS_SCORED = 1500  # with scored categories, and for each law's hyperparameters there
_MAX_POINTS_BY_QUESTION = 1000  # for moments by question, with covariates or groups
# Intervals come from draws of p up to so many questions, and where means are very skewed from
# draws of those questions that make them so.
_MAX_QUESTIONS_DRAWN = 25
# Skewness given the points, in sds, up to which intervals from matched gammas were validated: ends
# are off by 1% of the width, typically. Where more than 200 questions would be drawn, few draws are
# affordable, whose own error is larger up to a skewness of 1.
_SKEWNESS_MAX, _SKEWNESS_MAX_OF_MANY = 0.5, 1.0
_MAX_QUESTIONS_WITH_MANY_DRAWS = 200
_SKEWNESS_POINTS = 50  # of each law, at which questions are ordered by their skewness
_INTERVAL_DRAWS = (2000, 10_000, 20_000)  # minimum, maximum, and maximum with few questions
_MAX_P_FOR_INTERVALS = 2e6  # success probabilities drawn for the ends of intervals
# Success probabilities drawn for means: with cumulants as the alternative, where questions are
# drawn anew, and where groups have effects or questions are few.
_MAX_P_DRAWN = 1e5
_MAX_P_BOOTSTRAPPED = 2e6
_MAX_P_WITH_EFFECTS = 2e7
_MAX_FLOATS_PER_BLOCK = 1_000_000  # 8 MB
_CORRELATION_SAMPLE = 200  # draws and questions that the correlation of metrics is estimated from
_MIN_MAX_QUANTILES = (400, 20_000)  # of a question's p
_INTERVAL_SEED = 20_261_123  # fixed, so that intervals are a function of the data

WEAKER_PRIOR_POWER = 0.5  # power of the prior in its sensitivity
SUCCESS = one_metric("pass@1")


class Numbers(NamedTuple):
    """Posterior mean of metrics, and its variance due to trials and to questions.

    Parameters
    ----------
    mean, variance_trial, variance_question : ndarray, shape (metrics, targets)
        For the targets "questions" and "population"; where questions have groups, "new_groups".
    """

    mean: Array
    variance_trial: Array
    variance_question: Array

    @property
    def sd(self) -> Array:
        """Posterior standard deviation."""
        return np.sqrt(self.variance_trial + self.variance_question)


@dataclass(frozen=True)
class GroupDraws:
    """Draws of groups of questions.

    Parameters
    ----------
    mean : ndarray, shape (draws, groups)
        Success probability of a new question of each group.
    metrics : ndarray, shape (draws, groups, metrics, target)
        Of the questions of each group, and of questions like them in it.
    effect : ndarray, shape (draws, groups), optional
        In logits, where groups are part of the model.
    """

    mean: Array
    metrics: Array
    effect: Array | None = None


@dataclass(frozen=True)
class Draws:
    """Independent draws.

    Parameters
    ----------
    metrics : ndarray, shape (draws, metrics, target)
    hyper : dict
        Hyperparameters.
    p : ndarray, optional
        Success probabilities of every question, if kept.
    difficulty : Nodes, optional
        Difficulty distributions, unless all are single Betas.
    family : ndarray of int, optional
        Position of the difficulty family in `bayesatk.priors.DIFFICULTY_FAMILIES`.
    groups : GroupDraws, optional
        Where questions have groups.
    log_likelihood : ndarray, shape (draws, questions), optional
        Log probability of each question's counts, p integrated, of models put together from parts.
    new_p : ndarray, shape (draws, questions, ...), optional
        Of a new question without prior trials in place of every question; without pooling of the
        question itself.
    log_prior : dict
        Log density of the prior at the coordinates of hyperparameters, by variable; (draws,).
    """

    metrics: Array
    hyper: dict[str, Array]
    p: Array | None = None
    difficulty: Nodes | None = None
    family: Ints | None = None
    groups: GroupDraws | None = None
    log_likelihood: Array | None = None
    new_p: Array | None = None
    log_prior: Mapping[str, Array] = field(default_factory=dict)

    def among(self, order: Indices) -> "Draws":
        """Return draws in another order."""
        ordered: Draws = _map_arrays([self], lambda arrays: arrays[0][order])
        return ordered

    @staticmethod
    def joined(parts: "Sequence[Draws]") -> "Draws":
        """Concatenate draws."""
        joined: Draws = _map_arrays(parts, np.concatenate)
        return joined


def _map_arrays(structures: Sequence[Any], function: Callable[[Sequence[Array]], Array]) -> Any:
    """Apply a function to corresponding arrays of equal nested structures."""
    template = structures[0]
    if template is None:
        return None
    if isinstance(template, np.ndarray):
        return function(structures)
    if isinstance(template, dict):
        return {
            name: _map_arrays([structure[name] for structure in structures], function)
            for name in template
        }
    names = [attribute.name for attribute in fields(template)]
    return replace(
        template,
        **{
            name: _map_arrays([getattr(structure, name) for structure in structures], function)
            for name in names
        },
    )


@dataclass(frozen=True)
class Summary:
    """Exact posterior of one number: mean, sd and distribution."""

    mean: float
    sd: float
    distribution: Empirical

    @classmethod
    def on_points(cls, weight: Array, values: Array) -> "Summary":
        """Return the summary of a quantity from its values at weighted points."""
        mean, variance = total_moments(weight, values)
        return cls(float(mean), float(np.sqrt(variance)), Empirical(values, weight))


def least(*draws: Mapping[str, float | Array]) -> dict[str, float]:
    """Return the smallest effective number of draws of each statistic.

    Examples
    --------
    >>> least({"mean_draws": np.array([400.0, 300.0])}, {"interval_draws": 95.0}, {})
    {'mean_draws': 300.0, 'interval_draws': 95.0}
    """
    names = dict.fromkeys(name for by_statistic in draws for name in by_statistic)
    fewest = {
        name: float(min(np.min(by_statistic.get(name, np.inf)) for by_statistic in draws))
        for name in names
    }
    return {name: number for name, number in fewest.items() if np.isfinite(number)}


class FamilyShare(NamedTuple):
    """What a family of difficulty contributes to an average.

    Parameters
    ----------
    probability, error : float
        Posterior probability, and its standard error.
    log_evidence : float
    pareto_k : float
        Shape of the tail of importance weights, trustworthy below 0.7; NaN without weights.
    """

    probability: float
    error: float
    log_evidence: float
    pareto_k: float


@dataclass(frozen=True)
class FamilyFit:
    """One law of difficulty: its hyperparameters on weighted points, and its predictor.

    Parameters
    ----------
    name : str
    predictor : Predictor
    fields : Fields
    points : Points
    log_prior : float
        Log prior probability of the law.
    """

    name: str
    predictor: Predictor
    fields: Fields
    points: WeightedPoints
    log_prior: float = 0.0

    def nodes(self, theta: Array) -> Nodes:
        """Distributions of p at an offset of zero, of right and wrong."""
        law = self.predictor.observation.law
        assert isinstance(law, DifficultyLaw)
        return law.nodes(theta, np.zeros((len(theta), 1)))

    def typical(self, theta: Array) -> tuple[Array, Array]:
        """Mean of p, by category where there are, and its correlation, at an offset of zero."""
        law = self.predictor.observation.law
        if isinstance(law, CommonP):
            return law.p(theta), np.zeros(len(theta))
        if isinstance(law, DifficultyLaw):
            mean, _, icc, _ = self.nodes(theta).overall()
            if isinstance(self.predictor.observation, Levels):
                mean = self.predictor.observation.typical(theta)
            return mean, icc
        alpha = law.alpha(theta, np.zeros((len(theta), 1)))[:, 0]
        total = alpha.sum(axis=1)
        return alpha / total[:, None], 1.0 / (1.0 + total)


class Located(NamedTuple):
    """One law's points at which everything but its evidence is worked out.

    Parameters
    ----------
    fit : FamilyFit
    share : float
        Probability of the law.
    points : WeightedPoints
    effects : Effects
        Of groups, at these points.
    """

    fit: FamilyFit
    share: float
    points: WeightedPoints
    effects: Effects

    def at_most(self, size: int, lattice: bool = False) -> "Located":
        """Return at most so many of the points, as `WeightedPoints.at_most` chooses them."""
        place, points = self.points.chosen(size, lattice, self.fit.predictor.tail)
        effects = Effects(*(column[place] for column in self.effects))
        return self._replace(points=points, effects=effects)


class Part(NamedTuple):
    """One law's points, and the moments of metrics there.

    Parameters
    ----------
    fit, share, points, effects
        As of `Located`.
    moments : Moments
    """

    fit: FamilyFit
    share: float
    points: WeightedPoints
    effects: Effects
    moments: Moments


@dataclass(frozen=True)
class Posterior:
    """Posterior of metrics of a system's questions: a mixture over weighted points.

    Parameters
    ----------
    model : CountModel
    metrics : tuple
        As `bayesatk.data.scales.Scale.judged` returns them.
    share : float
        Of the usual number of points, where metrics are very many.
    """

    model: "CountModel"
    metrics: tuple[Any, ...]
    share: float = 1.0

    @cached_property
    def parts(self) -> list[Part]:
        """Moments at the points of every law that counts."""
        parts = []
        for law in self.model.located:
            number = max(int(self.share * len(law.points.weight)), MIN_POINTS)
            law = law.at_most(number, lattice=True)
            moments = self._given(law.fit).at(law.points.theta, law.effects)
            difficulty = law.fit.predictor.observation.law
            if self._follows_law and isinstance(difficulty, DifficultyLaw):
                credits = [metric.credit for metric in self.metrics]
                unknown_variance = variance_of_known(
                    difficulty, law.fit.fields, credits, law.points, len(self.model.cells.which)
                )
                moments = moments._replace(spread=np.zeros_like(moments.spread) + unknown_variance)
            parts.append(Part(*law, moments))
        return parts

    def _given(self, fit: FamilyFit) -> Metrics:
        return Metrics(fit.predictor, self.metrics, self.model.resampled)

    @cached_property
    def weight(self) -> Array:
        """Probabilities of the points of all laws."""
        return np.concatenate([law.share * law.points.weight for law in self.parts])

    @cached_property
    def whole(self) -> Summed:
        """Moments of means over all questions."""
        cells = self.model.cells
        pairs = [law.moments.whole(cells.share, cells.grouped) for law in self.parts]
        return Summed(self.weight, *(np.concatenate(column) for column in zip(*pairs, strict=True)))

    @cached_property
    def _independent(self) -> float:
        """Effective number of draws of the points of all laws."""
        variance = sum(share**2 / fit.points.effective_draws for fit, share in self.model.counted)
        return 1.0 / variance if variance > 0.0 else np.inf

    # The posterior

    @cached_property
    def numbers(self) -> Numbers:
        """Posterior mean and variances of means over all questions."""
        if self.model.pooling != "complete" or self._betas is None:
            return _numbers(self.whole)
        credits = [metric.credit for metric in self.metrics]
        mean, _, variance = beta_binomial_moments(credits, *self._betas[:2])
        all_targets = np.ones(self.whole.mean.shape[1:])
        return Numbers(mean.T * all_targets, variance.T * all_targets, 0.0 * all_targets)

    @property
    def mean(self) -> Array:
        """Posterior mean; (metrics, targets)."""
        return self.numbers.mean

    @property
    def sd(self) -> Array:
        """Posterior standard deviation; (metrics, targets)."""
        return self.numbers.sd

    @property
    def of_groups(self) -> list[Numbers]:
        """Mean and variances of means over the questions of each group; empty without groups."""
        numbers = []
        for group in range(self.model.cells.groups if self.model.cells.grouped else 0):
            values = np.concatenate([law.moments.by_group[:, group] for law in self.parts])
            spread = np.concatenate([law.moments.spread[:, group] for law in self.parts])
            spread = np.stack([np.zeros_like(spread), spread], axis=-1)
            numbers.append(_numbers(Summed(self.weight, values, spread)))
        return numbers

    @property
    def diagnostics(self) -> dict[str, float]:
        """Numerical quality."""
        model = self.model
        if model.pooling != "partial":
            return {}
        k_hats = [fit.points.k_hat for fit, _ in model.counted]
        error = 0.0 if self._exact else 1.0 / np.sqrt(self._independent)
        numbers = {"quadrature_error": float(error), "log_evidence": model.log_evidence()}
        return numbers if self._exact else {**numbers, "pareto_k": float(np.nanmax(k_hats))}

    @property
    def _exact(self) -> bool:
        """Whether all hyperparameters are integrated on lattices."""
        return not np.isfinite(self._independent)

    @property
    def method(self) -> str:
        """Method by which the hyperparameters were integrated."""
        if not len(self.model.families[0].fields):
            return "conjugate"
        methods = [fit.points.method for fit, _ in self.model.counted]
        return ", ".join(sorted(set(methods), reverse=True))

    @property
    def warning(self) -> str | None:
        """Why hyperparameters had to be sampled, and are not integrated."""
        sampled = [fit for fit in self.model.families if fit.points.sampled]
        if not sampled:
            return None
        draws = min(fit.points.effective_draws for fit in sampled)
        names = ", ".join(dict.fromkeys(fit.name for fit in sampled))
        unknown = dict.fromkeys(fit.name for fit in sampled if np.isnan(fit.points.log_evidence))
        evidence = "the evidence is that of the weights, roughly"
        if unknown:
            evidence = f"the evidence of {', '.join(unknown)} is not known"
            if len(self.model.families) > 1:
                evidence += " and such a law is left out of the average"
        return (
            f"importance weights of the hyperparameters cannot be trusted ({names}); Markov chains "
            f"worth {draws:.0f} independent draws took their place, and {evidence}"
        )

    def _draws_behind(
        self, weight: Array, values: Array, variance: Array | None = None
    ) -> dict[str, Array]:
        """Effective draws of statistics of values at weighted points of all laws."""
        if self._exact:
            return {}
        none = np.zeros((len(weight), 0))
        points = WeightedPoints(none, weight, np.nan, 0.0, self._independent, "")
        return points.draws_behind(values, variance)

    @property
    def effective_draws(self) -> dict[str, Array]:
        """Independent draws that statistics of each metric are worth; none where exact.

        Those of sds are the fewest of questions like these and of these, and of new groups alone.
        """
        shape = self.whole.mean.shape
        mean, variance = (self.whole.values[..., j].reshape(shape[0], -1) for j in (0, 1))
        draws = self._draws_behind(self.weight, mean, variance)
        by_target = {name: number.reshape(shape[1:]) for name, number in draws.items()}
        fewest = {name: number[:, :2].min(axis=1) for name, number in by_target.items()}
        if draws and shape[2] == 3:
            fewest["new_groups_sd_draws"] = by_target["sd_draws"][:, 2]
        return fewest

    def distributions(self) -> Distributions:
        """Distributions by target: from moments at the points, or from draws of p.

        Of means over few questions, and of a bootstrap of questions, they are those of draws.
        """
        overall, ends = self.whole, [_value_range(metric) for metric in self.metrics]
        questions, targets = len(self.model.cells.which), range(overall.mean.shape[2])
        from_draws = np.zeros(overall.mean.shape[1:], bool)
        from_draws[:, 0] = self._skewed & self._drawn.any()
        if self.model.resampled:
            from_draws[:, 1:] = True
        convolved = np.zeros_like(from_draws)
        if self._betas is not None:
            convolved[:, 0] = from_draws[:, 0]
            convolved |= float(self._betas[3].sum()) == 1.0  # both targets are the same number
            from_draws &= ~convolved
        drawn = np.empty((0, *from_draws.shape))
        if from_draws.any():
            max_draws = _INTERVAL_DRAWS[2 if questions <= _MAX_QUESTIONS_DRAWN else 1]
            width = 1.0 if self.model.scores is None else max(1.0, len(self.model.scores) / 4.0)
            values = max(float(self.model.cells.count @ self._drawn), 1.0) * width
            size = int(np.clip(_MAX_P_FOR_INTERVALS / values, _INTERVAL_DRAWS[0], max_draws))
            drawn = self.draw(
                size, np.random.default_rng(_INTERVAL_SEED), False, alone=True
            ).metrics

        def of(k: int, target: int) -> Empirical:
            if convolved[k, target]:
                return self._convolved(self.metrics[k])
            if from_draws[k, target]:
                return Empirical(drawn[:, k, target])
            mean, variance, third = overall.values[:, k, target].T
            draws = self._independent
            return cumulant_mixture(self.weight, mean, variance, third, ends[k], draws)

        return [[of(k, target) for k in range(len(self.metrics))] for target in targets]

    @property
    def _follows_law(self) -> bool:
        """Whether questions like these are new ones of the law of right and wrong alone."""
        model = self.model
        return (
            model.pooling == "partial"
            and model.scores is None
            and not (model.structured or model.resampled)
        )

    @cached_property
    def _betas(self) -> tuple[Array, Array, Array, Array] | None:
        """Both parameters, share and number of independent Betas, where these are the posterior.

        Without pooling every question has one, with complete pooling all have the same.
        """
        model = self.model
        if model.pooling == "partial" or model.scores is not None or model.judge is not None:
            return None
        cells, evidence = model.cells, model.states.evidence
        if model.pooling == "complete":
            wrong, right = (cells.count @ evidence + model.alpha)[:, None]
            return right, wrong, np.ones(1), np.ones(1)
        share = cells.question_share * cells.share[cells.group[cells.which]]
        distinct, number = np.unique(
            np.column_stack([cells.which, share]), axis=0, return_counts=True
        )
        wrong, right = (evidence[distinct[:, 0].astype(np.intp)] + model.alpha).T
        return right, wrong, distinct[:, 1], number.astype(float)

    @cached_property
    def _quantiles(self) -> Array:
        """Equally probable values of p of each of these Betas; (Betas, values)."""
        assert self._betas is not None
        a, b = (column[:, None] for column in self._betas[:2])
        levels = int(np.clip(_MIN_MAX_QUANTILES[1] / len(a), *_MIN_MAX_QUANTILES))
        return np.asarray(betaincinv(a, b, (np.arange(levels) + 0.5) / levels))

    def _convolved(self, metric: Any) -> Empirical:
        """Return the distribution of the mean of a metric over independent Betas."""
        assert self._betas is not None
        values = metric.latent(self._quantiles)
        return weighted_mean_distribution(values, *self._betas[2:], _value_range(metric))

    @cached_property
    def _skewed(self) -> Flags:
        """Metrics whose means over questions are no matched gammas: of few, or of saturated ones.

        A question's weight counts, and skewness as far as points leave a mean unknown. Draws of
        what has effects of groups or errors of a judge would cost seconds.
        """
        model, metrics = self.model, len(self.metrics)
        if model.pooling == "complete":
            return np.zeros(metrics, bool)
        if self._few_questions:
            return np.ones(metrics, bool)
        if model.structured or model.judge is not None:
            return np.zeros(metrics, bool)
        return self._skewness > _SKEWNESS_MAX

    @cached_property
    def _skewness(self) -> Array:
        """Skewness of means over these questions given the points; (metrics,)."""
        return self._skewness_left(self.weight, *np.moveaxis(self.whole.values[:, :, 0, 1:], -1, 0))

    @property
    def _few_questions(self) -> bool:
        """Whether so few questions count in means, by their weights, that these are no gammas."""
        cells = self.model.cells
        share = cells.question_share * cells.share[cells.group[cells.which]]
        return bool(share.sum() ** 2 <= _MAX_QUESTIONS_DRAWN * (share @ share))

    def _skewness_left(self, weight: Array, variance: Array, third: Array) -> Array:
        """Skewness given the points, as far as these leave a mean unknown.

        Of cumulants (points, ..., metrics) of means over these questions, or of parts of them.
        """
        left = np.tensordot(weight, variance, 1) / np.maximum(self.whole.total[1][:, 0], 1e-200)
        squares = skewness(variance, third).clip(-20.0, 20.0) ** 2
        return np.sqrt(np.maximum(left * np.tensordot(weight, squares, 1), 0.0))

    @cached_property
    def _drawn(self) -> Flags:
        """Cells whose p are drawn for means over questions; a gamma is matched to the other sum.

        Where means are skewed, these are the questions that add most to the third cumulants, as
        many as leave a sum of the others that is not.
        """
        cells = self.model.cells
        size = len(cells.count)
        if not self._skewed.any():
            return np.zeros(size, bool)
        if self._few_questions or self.model.resampled:
            return np.ones(size, bool)
        by_law = []
        for law in self.parts:
            points = law.points.at_most(_SKEWNESS_POINTS, lattice=True)
            offset = np.zeros((len(points.theta), size, 1))
            cumulants = self._given(law.fit).of_each(points.theta, offset)[0][:, :, 0, :, 1:]
            by_law.append(
                (law.share * points.weight, cumulants * cells.share_powers[1:].T[:, None])
            )
        weight, values = (np.concatenate(column) for column in zip(*by_law, strict=True))
        third = np.tensordot(weight, np.abs(values[..., 1]), 1) / cells.count[:, None]
        scale = np.maximum(self.whole.total[1][:, 0], 1e-200) ** 1.5
        order = np.argsort(-(third / scale).max(axis=1))
        others = np.cumsum(values[:, order[::-1]], axis=1)[:, ::-1]  # all from each on, in order
        left = self._skewness_left(weight, others[..., 0], others[..., 1])
        left = (left * self._skewness / np.maximum(left[0], 1e-200)).max(axis=1)  # by few points
        number, many = (
            int(np.cumprod(left > bound).sum()) for bound in (_SKEWNESS_MAX, _SKEWNESS_MAX_OF_MANY)
        )
        affordable = int((cells.count[order].cumsum() <= _MAX_QUESTIONS_WITH_MANY_DRAWS).sum())
        return np.isin(np.arange(size), order[: max(many, min(number, affordable))])

    @cached_property
    def _of_others(self) -> dict[str, Array]:
        """Cumulants of sums over questions whose p are not drawn, at the points of each law."""
        by_law = {}
        for law in self.parts:
            cells = law.fit.predictor.cells
            others = replace(cells, share_powers=cells.share_powers * ~self._drawn)
            predictor = replace(law.fit.predictor, cells=others)
            moments = Metrics(predictor, self.metrics).at(law.points.theta, law.effects)
            by_law[law.fit.name] = moments.by_group
        return by_law

    def sd_under(self, prior: Any) -> Array:
        """Posterior sds under another prior, of the same laws; shape (metrics, targets)."""
        alternative = replace(self.model, prior=prior)
        weights, logs = [], []
        for law in self.parts:
            theta = law.points.theta
            with np.errstate(invalid="ignore"):
                ratio = alternative.fields(law.fit.name).log_density(theta)
                ratio = np.nan_to_num(ratio - law.fit.fields.log_density(theta), nan=-np.inf)
            weight, log_evidence_ratio = reweighted(law.points.weight, ratio)
            weights.append(weight)
            logs.append(log_evidence_ratio)
        shares = np.array([law.share for law in self.parts])
        shares = shares * np.exp(np.array(logs) - max(logs))
        shares /= shares.sum()
        weight = np.concatenate([p * w for p, w in zip(shares, weights, strict=True)])
        return np.sqrt(np.maximum(replace(self.whole, weight=weight).total[1], 0.0))

    @property
    def prior_sensitivity(self) -> Array:
        """Posterior sd under a weaker prior, relative to the sd; (metrics, targets).

        Given where k exceeds the trials of some question, NaN elsewhere.
        """
        ratio, fewest = np.full(self.sd.shape, np.nan), self.model.states.trials.min()
        beyond = [i for i, metric in enumerate(self.metrics) if metric.k > fewest]
        if not beyond:
            return ratio
        weaker = power_scaled(self.model.prior, WEAKER_PRIOR_POWER)
        if self.model.pooling == "partial":
            weaker_sd = self.sd_under(weaker)[beyond]
        else:
            weaker_sd = replace(self.model, prior=weaker).fit([self.metrics[i] for i in beyond]).sd
        before = self.sd[beyond]
        ratio[beyond] = np.divide(weaker_sd, before, out=np.ones_like(before), where=before > 0)
        return ratio

    @cached_property
    def judge_share(self) -> Array | None:
        """Share of the variance that is due to the rates of a judge that errs."""
        if self.model.judge is None:
            return None
        by_law = [self._rates(law.fit, law.points.theta) for law in self.parts]
        rates = np.concatenate([np.column_stack(list(values.values())) for values in by_law])
        mean = self.whole.mean
        variance = due_to_rates(self.weight, rates, mean.reshape(len(mean), -1))
        total = np.maximum(self.whole.total[1], 1e-300)
        return np.asarray(np.minimum(variance.reshape(mean.shape[1:]) / total, 1.0))

    # Hyperparameters

    def reported(self, fit: FamilyFit, theta: Array) -> dict[str, Array]:
        """Return the reported hyperparameters, such as mean and icc, at points of a law."""
        model = self.model
        values: dict[str, Array] = {}
        if model.pooling != "partial":
            values = {} if model.pooling == "none" else {"mean_p": fit.typical(theta)[0]}
            return values | self._rates(fit, theta)
        mean, icc = fit.typical(theta)
        if model.basis is not None and model.scores is None:
            slopes = theta[:, fit.fields.slices["slopes"]]
            logits = np.column_stack([logit(np.clip(mean, 1e-300, 1.0 - 1e-16)), slopes])
            values["coefficients"] = model.basis.coefficients(logits)
        elif model.cells.grouped and model.scores is None:
            values["typical_p"] = mean
        else:
            values["mean_p"] = mean
            if model.basis is not None:
                slopes = theta[:, fit.fields.slices["slopes"]]
                logits = np.column_stack([np.zeros(len(theta)), slopes])
                values["coefficients"] = model.basis.coefficients(logits)
        if model.cells.grouped:
            values["group_sd"] = fit.predictor.group_sd(theta)
        values["icc"] = icc
        if "shape" in fit.fields.slices:
            values["shape"] = fit.fields.value("shape", theta)
        if "inflated" in model.family_prior:
            atoms = fit.nodes(theta).atoms
            values |= {"never_solved": atoms[:, 0], "always_solved": atoms[:, 1]}
        return values | self._rates(fit, theta)

    def _log_prior(self, fit: FamilyFit, theta: Array) -> dict[str, Array]:
        """Log density of the prior by variable, at coordinates of the hyperparameters of a law.

        Of several families the log density of each has its prior expectation taken off. To first
        order in the power that the prior is raised to, which is how ArviZ measures sensitivity,
        families then keep their prior probabilities: the normalising constant of a density's power
        has that expectation as its slope.
        """
        model = self.model
        if model.pooling != "partial":
            return {}
        rates = () if model.judge is None else model.judge.names
        names = [name for law in model.families for name in law.fields.slices if name not in rates]
        logs = {name: np.zeros(len(theta)) for name in dict.fromkeys(names)}
        for hyper in fit.fields:
            if hyper.name in rates:
                continue
            x = hyper.by_repeat(theta[:, fit.fields.slices[hyper.name]])
            logs[hyper.name] = hyper.distribution.log_density(x).sum(axis=1)
            if len(model.families) > 1:
                logs[hyper.name] -= hyper.expected_log_density
        return logs

    def _rates(self, fit: FamilyFit, theta: Array) -> dict[str, Array]:
        """Rates of the judge at points, where one errs."""
        judge = self.model.judge
        return {} if judge is None else judge.reported(theta, fit.fields)

    @cached_property
    def _hyper_points(self) -> tuple[Array, dict[str, Array]]:
        """Weights of the points of all laws, and the reported hyperparameters there."""
        counted = self.model.counted
        if self.model.scores is not None:
            counted = [
                (replace(fit, points=fit.points.at_most(MAX_POINTS_SCORED)), share)
                for fit, share in counted
            ]
        weight = np.concatenate([share * fit.points.weight for fit, share in counted])
        by_law = [self.reported(fit, fit.points.theta) for fit, _ in counted]
        return weight, {
            name: np.concatenate([values[name] for values in by_law]) for name in by_law[0]
        }

    @cached_property
    def hyper(self) -> dict[str, Summary | list[Summary]]:
        """Posteriors of the hyperparameters, or of each of their columns."""
        weight, values = self._hyper_points
        return {
            name: Summary.on_points(weight, column)
            if column.ndim == 1
            else [Summary.on_points(weight, single) for single in column.T]
            for name, column in values.items()
        }

    @property
    def hyper_draws(self) -> dict[str, dict[str, float]]:
        """Effective number of draws of the statistics of each hyperparameter."""
        weight, values = self._hyper_points
        return {
            name: least(self._draws_behind(weight, column.reshape(len(weight), -1)))
            for name, column in values.items()
        }

    # By question

    def of_questions(self, metrics: Sequence[Any]) -> tuple[Array, Array]:
        """Mean and variance of metrics of each question."""
        share, moments_by_law = np.array([law.share for law in self.model.located]), []
        for law in self.model.located:
            if self.model.structured:
                law = law.at_most(_MAX_POINTS_BY_QUESTION)
            moments = Metrics(law.fit.predictor, metrics).of_cells(
                law.points.theta, law.points.weight, law.effects
            )
            moments_by_law.append(np.stack(moments))
        by_law, cell = np.stack(moments_by_law), self.model.cells.which
        mean = np.einsum("p,pck->ck", share, by_law[:, 0])
        spread = np.einsum("p,pck->ck", share, by_law[:, 1] + (by_law[:, 0] - mean) ** 2)
        return mean[cell], spread[cell]

    def question_p(self) -> tuple[Array, Array]:
        """Posterior mean and sd of every question's success probability, or by category."""
        if self.model.scores is None:
            mean, variance = self.of_questions([SUCCESS])
            return mean[:, 0], np.sqrt(variance[:, 0])
        single = np.eye(len(self.model.scores))
        mean, variance = self.of_questions([ScoredCredit(CategoryCredit(1), row) for row in single])
        return mean, np.sqrt(variance)

    # Draws

    def draw(
        self,
        size: int,
        rng: Rng,
        keep_p: bool,
        alone: bool = False,
        likelihood: bool = False,
        new: Rng | None = None,
    ) -> Draws:
        """Draw metrics, and with them hyperparameters and groups, independently.

        Parameters
        ----------
        size : int
            Number of draws.
        rng : numpy.random.Generator
        keep_p : bool
            Whether p of every question is kept.
        alone : bool
            Whether to draw only metrics and the rates of a judge.
        likelihood : bool
            Whether to compute log probabilities of the counts of questions.
        new : numpy.random.Generator, optional
            Random stream for p of new questions; None: no such draws.
        """
        shuffle = rng.permutation(size)
        number = rng.multinomial(size, [law.share for law in self.parts])
        pairs = [(law, int(n)) for law, n in zip(self.parts, number, strict=True) if n]
        drawn, nodes = [], []
        for law, n in pairs:
            point = rng.choice(len(law.points.weight), n, p=law.points.weight)
            drawn.append(self._draw_part(law, point, rng, keep_p, alone, likelihood, new))
            if drawn[-1].family is not None:
                nodes.append(law.fit.nodes(law.points.theta[point]))
        joined = Draws.joined(drawn)
        if nodes:
            difficulty_nodes = Nodes.joined(nodes, [n / size for _, n in pairs])
            joined = replace(joined, difficulty=difficulty_nodes)
        return joined.among(shuffle)

    def _draw_part(
        self,
        part: Part,
        place: Indices,
        rng: Rng,
        keep_p: bool,
        alone: bool,
        likelihood: bool,
        new: Rng | None,
    ) -> Draws:
        """Draws under one law, at some of its points."""
        model, cells = self.model, self.model.cells
        theta, effect = part.points.theta[place], part.effects.draw(place, rng)
        offset = part.fit.predictor.offsets(theta) + effect[:, cells.group]
        by_group, p = self._group_means(part, place, offset, rng, keep_p)
        if not model.resampled:
            by_group[..., 1] = self._new_means(part, theta, effect, place)
        overall = np.einsum("hgkt,g->hkt", by_group, cells.share)
        if cells.grouped:
            new_groups = part.moments.new[place][..., 0]
            if model.resampled:
                share = rng.standard_exponential((len(place), cells.groups)) * cells.share
                share /= share.sum(axis=1, keepdims=True)
                new_groups = np.einsum("hgk,hg->hk", by_group[..., 1], share)
            overall = np.concatenate([overall, new_groups[..., None]], axis=-1)
        overall = np.clip(overall, *self._range)
        code = None
        if model.averaged:
            code = np.full(len(place), DIFFICULTY_FAMILIES.index(part.fit.name))
        if alone:
            return Draws(overall, self._rates(part.fit, theta), p)
        drawn = Draws(
            overall,
            self.reported(part.fit, theta),
            p,
            None,
            code,
            self._of_groups(part.fit, theta, effect, by_group),
            log_prior=self._log_prior(part.fit, theta),
        )
        if likelihood:
            logs = self._log_counts(part, place, offset)[:, cells.which]
            drawn = replace(drawn, log_likelihood=logs)
        if new is not None and model.pooling != "none":
            new_p = part.fit.predictor.draw_new(theta, effect, new, earlier=False)
            return replace(drawn, new_p=new_p)
        return drawn if new is None else replace(drawn, new_p=p)

    def _of_groups(
        self, fit: FamilyFit, theta: Array, effect: Array, by_group: Array
    ) -> GroupDraws | None:
        """Return the draws of groups, with these metrics; None without groups."""
        if not self.model.cells.grouped:
            return None
        if not fit.predictor.has_group_effects:
            return GroupDraws(by_group[:, :, 0, 1], by_group)
        return GroupDraws(self._group_p(fit, theta, effect), by_group, effect)

    def draw_prior(self, size: int, rng: Rng, with_p: bool) -> Draws:
        """Draw hyperparameters, and if asked p of the questions of the data, from the prior.

        Without hyperparameters, and of one p for all, discounted prior trials are part of it unless
        a judge marked them, and metrics are drawn, too.
        """
        model = self.model
        if model.pooling != "partial":
            before = model.before(earlier=model.judge is None)
            return before.fit(self.metrics).draw(size, rng, with_p, new=rng if with_p else None)
        number = rng.multinomial(size, [np.exp(fit.log_prior) for fit in model.families])
        drawn, cells = [], model.cells
        for fit, n in zip(model.families, number, strict=True):
            theta = fit.fields.from_uniform(rng.random((n, fit.fields.size)))
            effect = rng.standard_normal((n, cells.groups)) * fit.predictor.group_sd(theta)[:, None]
            none = np.zeros((n, 0))
            groups = self._of_groups(fit, theta, effect, none)
            new_p = fit.predictor.draw_new(theta, effect, rng, earlier=False) if with_p else None
            drawn.append(Draws(none, self.reported(fit, theta), groups=groups, new_p=new_p))
        return Draws.joined(drawn).among(rng.permutation(size))

    def _log_counts(self, part: Part, place: Indices, offset: Array) -> Array:
        """Log probability of a question's counts given its prior trials; (draws, cells)."""
        points, row = np.arange(len(place)), np.arange(len(place))
        if not self.model.structured:
            _, points, row = np.unique(place, return_index=True, return_inverse=True)
        theta, offset = part.points.theta[place[points]], offset[points]
        logs = part.fit.predictor.log_cells_at(theta, offset)
        earlier = self.model.earlier(part.fit)
        if earlier is not None:
            logs -= earlier.log_cells_at(theta, offset)
        return np.asarray((logs + self.model.states.log_ways)[row])

    def _group_means(
        self, part: Part, place: Indices, offset: Array, rng: Rng, keep_p: bool
    ) -> tuple[Array, Array | None]:
        """Means of metrics over questions of groups (draws, groups, metrics, 2), and p if kept.

        The second of the last axis are those of the bootstrap, where questions are drawn anew.
        """
        cells, questions, size = self.model.cells, len(self.model.cells.which), len(place)
        max_p = _MAX_P_DRAWN
        if part.fit.predictor.has_group_effects:
            max_p = _MAX_P_WITH_EFFECTS
        elif self.model.resampled:
            max_p = _MAX_P_BOOTSTRAPPED
        drawn = self._drawn[cells.which]
        if keep_p or size * questions <= max(max_p, size * _MAX_QUESTIONS_DRAWN):
            drawn = np.ones(questions, bool)
        elif size * drawn.sum() > _MAX_P_WITH_EFFECTS or not drawn.any():
            means = self._matched_means(part, part.moments.by_group, place, offset, rng)
            return np.clip(means, *self._range), None
        # In an order of their own, so that the order of the questions changes nothing.
        order = np.lexsort((cells.questions_tried, cells.question_share, cells.which))
        order = order[drawn[order]]
        means, p = self._drawn_means(part, place, offset, order, rng, keep_p)
        if not drawn.all():
            means += self._matched_means(part, self._of_others[part.fit.name], place, offset, rng)
        # Sums of shares may round to more than one.
        return np.clip(means, *self._range), p[:, np.argsort(order)] if keep_p else None

    def _drawn_means(
        self, part: Part, place: Indices, offset: Array, questions: Indices, rng: Rng, keep_p: bool
    ) -> tuple[Array, Array]:
        """Return sums of metrics over these questions, as `_group_means` does, and p if kept."""
        model, cells, size = self.model, self.model.cells, len(place)
        theta, observation = part.points.theta[place], part.fit.predictor.observation
        cell = cells.which[questions]
        state, group = cells.state[cell], cells.group[cell]
        means = np.zeros((size, cells.groups, len(self.metrics), 2))
        total, p_by_block = np.zeros((size, cells.groups)), [np.zeros((size, 0))]
        means_at_nodes = (
            isinstance(observation, Levels)
            and not keep_p
            and len(cells.which) > _MAX_QUESTIONS_DRAWN
        )
        width = 1 if model.scores is None or means_at_nodes else len(model.scores)
        step = max(1, _MAX_FLOATS_PER_BLOCK // (size * width))
        for start in range(0, len(questions), step):
            span = slice(start, start + step)
            share = np.zeros((len(state[span]), cells.groups))
            share[np.arange(len(share)), group[span]] = cells.question_share[questions[span]]
            factors, moved = [np.ones((1, 1))], offset[:, cell[span]]
            if model.resampled:
                factors.append(rng.standard_exponential((size, len(share))))
                factors[1] *= cells.questions_tried[questions[span]]
                total += factors[1] @ share
            if isinstance(observation, Levels) and means_at_nodes:
                means[..., : len(factors)] += observation.draw_means(
                    self.metrics, theta, moved, state[span], share, factors, rng
                )
                continue
            p = observation.draw(theta, moved, state[span], rng)
            if keep_p:
                p_by_block.append(p)
            for j, factor in enumerate(factors):
                means[..., j] += self._sums(p, share, factor)
        if model.resampled:
            means[..., 1] /= np.where(total > 0.0, total, np.nan)[..., None]
        return means, np.concatenate(p_by_block[keep_p:], axis=1)

    def _sums(self, p: Array, share: Array, factor: Array) -> Array:
        """Return sums of metrics over questions with probabilities p, by group."""
        if self.model.scores is not None:
            weighted = latent_values(self.metrics, p) * factor[..., None]
            return np.asarray(np.einsum("dqk,qg->dgk", weighted, share, optimize=True))
        credits = [metric.credit for metric in self.metrics]
        return latent_means(credits, p, share, None if factor.size == 1 else factor)

    def _matched_means(
        self, part: Part, by_group: Array, place: Indices, offset: Array, rng: Rng
    ) -> Array:
        """Draw sums over very many questions from gammas with their cumulants at each point."""
        cells, theta = self.model.cells, part.points.theta[place]
        correlation, cumulants = self._correlation, by_group[place]
        if part.fit.predictor.has_group_effects:
            cumulants = cumulants.copy()
            for rows in part.fit.predictor.blocks(theta, 6 * len(self.metrics)):
                cumulants[rows] = self._given(part.fit).of_groups_at(theta[rows], offset[rows])
        noise = np.stack(
            [_correlated_normals(correlation, len(theta), rng) for _ in range(cells.groups)], axis=1
        )
        means = np.zeros((*noise.shape, 2))
        means[..., 0] = matched_quantiles(noise, *np.moveaxis(cumulants[..., 0, :], -1, 0))
        if self.model.resampled:
            centre, variance = (cumulants[..., 1, j] for j in (0, 1))
            between = np.sqrt(np.maximum(variance - cumulants[..., 0, 1], 0.0))
            bootstrap_noise = np.stack(
                [_correlated_normals(correlation, len(theta), rng) for _ in range(cells.groups)],
                axis=1,
            )
            means[..., 1] = means[..., 0] + centre - cumulants[..., 0, 0]
            means[..., 1] += between * bootstrap_noise
        return means

    @cached_property
    def _range(self) -> tuple[Array, Array]:
        """Smallest and largest value of each metric, both (metrics, 1)."""
        low, high = np.array([_value_range(metric) for metric in self.metrics]).T[..., None]
        return low, high

    @cached_property
    def _correlation(self) -> Array:
        """Correlation between the metrics of a question, given the hyperparameters."""
        cells, rng = self.model.cells, np.random.default_rng(_INTERVAL_SEED)
        most_probable = max(self.parts, key=lambda law: law.share)
        theta = most_probable.points.theta[
            rng.choice(
                len(most_probable.points.weight), _CORRELATION_SAMPLE, p=most_probable.points.weight
            )
        ]
        question = rng.choice(
            len(cells.which), min(_CORRELATION_SAMPLE, len(cells.which)), replace=False
        )
        cell, offset = cells.which[question], most_probable.fit.predictor.offsets(theta)
        p = most_probable.fit.predictor.observation.draw(
            theta, offset[:, cell], cells.state[cell], rng
        )
        if self.model.scores is not None:
            values = latent_values(self.metrics, p)
        else:
            credits = [metric.credit for metric in self.metrics]
            values = latent_means(credits, p.reshape(-1, 1), np.ones((1, 1))).reshape(*p.shape, -1)
        centred = (values - values.mean(axis=0)).reshape(-1, len(self.metrics))
        covariance = centred.T @ centred
        scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        correlation = covariance / np.outer(scale, scale)
        np.fill_diagonal(correlation, 1.0)
        return np.asarray(correlation)

    def _new_means(self, part: Part, theta: Array, effect: Array, place: Indices) -> Array:
        """Means over new questions of each group; (draws, groups, metrics)."""
        predictor = part.fit.predictor
        if not predictor.has_group_effects:
            return part.moments.by_group[place][..., 1, 0]
        means = np.empty((len(theta), self.model.cells.groups, len(self.metrics)))
        for rows in predictor.blocks(theta, 3 * len(self.metrics), self.model.cells.groups):
            means[rows] = self._given(part.fit).new_of_groups_at(theta[rows], effect[rows])
        return means

    def _group_p(self, fit: FamilyFit, theta: Array, effect: Array) -> Array:
        """Success probability, or expected score, of a new question of each group."""
        law = fit.predictor.observation.law
        scores = self.model.scores
        if isinstance(law, DifficultyLaw):
            mean = law.nodes(theta, effect).overall()[0].reshape(effect.shape)
            lowest, width = (0.0, 1.0) if scores is None else (min(scores), np.ptp(scores))
            return np.asarray(lowest + width * mean)
        assert scores is not None
        assert not isinstance(law, CommonP)
        alpha = law.alpha(theta, effect)
        return np.asarray(alpha @ np.array(scores) / alpha.sum(axis=2))


def _numbers(summed: Summed) -> Numbers:
    """Mean, and variances due to trials and to questions; (metrics, targets)."""
    mean, variance = summed.total
    variance = np.maximum(variance, 0.0)
    question = np.minimum(summed.of_questions, variance)
    if variance.shape[1] == 3:  # what more trials could remove is the same for new groups
        question[:, 2] = np.clip(variance[:, 2] - (variance[:, 1] - question[:, 1]), 0.0, None)
        question[:, 2] = np.minimum(question[:, 2], variance[:, 2])
    return Numbers(mean, variance - question, question)


def _correlated_normals(covariance: Array, size: int, rng: Rng) -> Array:
    """Return normal draws with this covariance, which may be singular; shape (size, metrics)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    return rng.standard_normal((size, len(covariance))) @ root.T


def _value_range(metric: Any) -> tuple[float, float]:
    """Smallest and largest value of a metric."""
    if isinstance(metric, ScoredCredit):
        return float(metric.scores.min()), float(metric.scores.max())
    vector = metric.credit.vector
    return float(vector.min()), float(vector.max())


def due_to_rates(weight: Array, rates: Array, values: Array) -> Array:
    """Variance of a quadratic in the judge's rates, fitted to values at nodes; (metrics,).

    A few nodes share a pair of rates, so their means would vary more than the expectation given
    the rates does; that is smooth.

    Parameters
    ----------
    weight : ndarray, shape (nodes,)
    rates : ndarray, shape (nodes, 2 or 3)
    values : ndarray, shape (nodes, metrics)
        Posterior means given each node.
    """
    root = np.sqrt(weight)[:, None]
    gap = rates - weight @ rates
    columns = [np.ones(len(gap)), *(gap / np.maximum(np.abs(gap).max(axis=0), 1e-300)).T]
    pairs = combinations_with_replacement(columns, 2)  # of one with itself, too
    terms = np.stack([first * second for first, second in pairs], axis=1)
    fitted = terms @ np.linalg.lstsq(root * terms, root * values, rcond=None)[0]
    return np.asarray(weight @ (fitted - weight @ fitted) ** 2)
