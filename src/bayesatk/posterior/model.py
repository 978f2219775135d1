"""One system under the declared model: any structure, law and observation together.

The model is assembled from its parts (`bayesatk.core.program`). Its hyperparameters are represented
by weighted points, and every posterior quantity is a mixture over these.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from bayesatk._tools.arrays import Array, Flags, Indices, Ints, Rng
from bayesatk.core.numerics.importance import K_HAT_MAX, halton_sequence
from bayesatk.core.numerics.points import WeightedPoints
from bayesatk.core.numerics.weights import pareto_shape
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.core.pooling.levels import scaled_scores, shape_functions
from bayesatk.core.pooling.marks import by_mark
from bayesatk.core.pooling.states import States
from bayesatk.core.program.cells import Cells
from bayesatk.core.program.laws import CategoryLaw, CommonP, DifficultyLaw
from bayesatk.core.program.level_observation import Levels
from bayesatk.core.program.observations import (
    Categories,
    CompletelyPooled,
    Marked,
    MarkedOnRule,
    Observation,
    RightWrong,
)
from bayesatk.core.program.predictor import Effects, Predictor
from bayesatk.core.program.weighted_points import (
    Laplace,
    around,
    certain,
    from_prior,
    located,
    on_lattice,
    start_of,
)
from bayesatk.core.question.dirichlet_multinomial import log_sequence_probability
from bayesatk.data.design import Basis
from bayesatk.data.grouping import Grouping
from bayesatk.judge_error import JudgeError
from bayesatk.posterior.posterior import (
    MAX_POINTS_SCORED,
    MIN_POINTS,
    FamilyFit,
    FamilyShare,
    Located,
    Posterior,
)
from bayesatk.priors import CategoryPrior, DirichletHyperPrior, HyperPrior, Pooling, Prior
from bayesatk.priors.fields import Beta, Dirichlet, Field, Fields

# Points of a lattice with less than this share of the largest weight are at its edge.
_EDGE_WEIGHT = 1e-7
# Probability at the edge without a question above which the question is integrated again.
_LOO_EDGE_MASS_MAX = 1e-7
# Last round of importance sampling: points times distinct questions.
_MAX_POINTS_TIMES_CELLS = 2e6
_CACHE_SIZE = 200  # posteriors of hyperparameters: comparisons read them again
_CACHE_SIZE_WITH_EFFECTS = 8  # of these with effects of groups, which take up to 40 MB each
# Up to so many trials of a question a judge's marks are mixtures over the number of right trials.
_MAX_TRIALS_ENUMERATED = 64
# Points at which everything but the evidence is worked out: without and with covariates or groups.
_MAX_LOCATED_TIMES_CELLS = (1.2e5, 8e5)
_MAX_LOCATED = (4000, 3000)
# Families less probable than this share of the most probable one get fewer points.
_MINOR_SHARE = 0.05
_LOGIT_ICC_STARTS = (-6.0, -3.0, -1.0, 1.0, 4.0)  # where searches for the mode start
_CONJUGATE_POINTS = 16_384  # of a probability vector common to all questions
_POINTS_PER_ROUND = (1024, 4096)  # of importance sampling: few and many hyperparameters
_MIN_FAMILY_PROBABILITY = 1e-4  # families with less are left out of mixtures


class LogPredictive(NamedTuple):
    """Log predictive probabilities by state, and log evidence.

    Parameters
    ----------
    left_out : ndarray
        Log probability of a question's count, given all other questions.
    fitted : ndarray
        Log probability of the count of a new question like it, given all questions.
    log_evidence : float
        Log probability of all trials in their order (without binomial factors).
    """

    left_out: Array
    fitted: Array
    log_evidence: float


@dataclass(frozen=True)
class CountModel:
    """Counts of a system's questions under the declared model.

    Parameters
    ----------
    pooling : Pooling
    states : States
        A state for each cell of alike questions, in the cells' order.
    prior : Prior or CategoryPrior
    cells : Cells
    scores : tuple of float, optional
        Of categories; None: right and wrong.
    basis : Basis, optional
        Covariates of the questions.
    grouping : Grouping, optional
    judge : JudgeRates, optional
        Of the judge that marked the trials, where it errs.
    resampled : bool
        Whether questions like these are these drawn anew, and do not follow the law.
    """

    pooling: Pooling
    states: States
    prior: Any
    cells: Cells
    scores: tuple[float, ...] | None = None
    basis: Basis | None = None
    grouping: Grouping | None = None
    judge: JudgeRates | None = None
    resampled: bool = False

    @classmethod
    def of(
        cls,
        prior: Prior | CategoryPrior,
        counts: Ints,
        before: Array | None = None,
        *,
        pooling: Pooling = "partial",
        scores: tuple[float, ...] | None = None,
        basis: Basis | None = None,
        weight: Array | None = None,
        grouping: Grouping | None = None,
        judge: JudgeRates | None = None,
        resampled: bool = False,
    ) -> "CountModel":
        """Build the model from counts, with questions of equal counts in one cell.

        Parameters
        ----------
        prior : HyperPrior or DirichletHyperPrior
        counts : ndarray of int, shape (questions, categories)
        before : ndarray, shape (questions, categories), optional
            Prior trials, discounted.
        scores, basis, grouping, judge, resampled
            Parameters of the class; without pooling questions are always drawn anew.
        weight : ndarray, shape (questions,), optional
            Weights of the questions in means over them.
        """
        states = States.of_counts(counts, before)
        rows = None if basis is None else basis.rows[:, 1:]
        code = None if grouping is None else grouping.code
        share = None if grouping is None else grouping.shares(weight)
        cells = Cells.of(states, weight, rows, code, share)
        by_cell = replace(
            states,
            counts=states.counts[cells.state],
            prior=states.prior[cells.state],
            count=cells.count,
            which=cells.which,
        )
        resampled = resampled or pooling == "none"
        return cls(pooling, by_cell, prior, cells, scores, basis, grouping, judge, resampled)

    def among(self, kept: Flags) -> "CountModel":
        """Return the model of some of the questions."""
        cells, states = self.cells, self.states
        weight = cells.question_share * cells.share[cells.group[cells.which]]
        grouping = self.grouping
        if grouping is not None and grouping.weight is not None:
            weight = cells.question_share
        return CountModel.of(
            self.prior,
            states.counts[cells.which][kept],
            states.prior[cells.which][kept],
            pooling=self.pooling,
            scores=self.scores,
            basis=None if self.basis is None else self.basis.among(kept),
            weight=weight[kept],
            grouping=None if grouping is None else grouping.among(kept),
            judge=self.judge,
            resampled=self.resampled,
        )

    # The model

    @property
    def structured(self) -> bool:
        """Whether covariates or effects of groups move questions."""
        pooled = self.pooling == "partial"
        return pooled and (self.cells.grouped or self.cells.rows.shape[1] > 0)

    def fields(self, family: str) -> Fields:
        """Prior of all hyperparameters."""
        fields = self._of_law(family)
        if self.judge is None:
            return fields
        return replace(fields, fields=(*fields.fields, *self.judge.fields))

    def _of_law(self, family: str) -> Fields:
        """Prior of the hyperparameters without those of a judge."""
        slopes, prior = self.cells.rows.shape[1], self.prior
        if self.pooling == "none":
            return Fields(())
        if self.pooling == "complete":
            vector = tuple(self.alpha.tolist())
            common: Beta | Dirichlet = Beta(vector[1], vector[0])
            return Fields((Field("mean", common if self.scores is None else Dirichlet(vector)),))
        if isinstance(prior, DirichletHyperPrior):
            return prior.fields(self.states.counts.shape[1], slopes, self.cells.grouped)
        assert isinstance(prior, HyperPrior)
        shapes = 0 if self.scores is None else len(shape_functions(self.scores))
        return prior.fields(family, slopes, self.cells.grouped, shapes)

    def observation(self, fields: Fields) -> Observation:
        """Return the likelihood of the trials under the law with these hyperparameters."""
        states = self.cells.states
        if self.pooling == "complete":
            return CompletelyPooled(CommonP(fields, self.scores is not None), states, self.judge)
        if self.scores is not None and isinstance(self.prior, HyperPrior):
            return Levels(DifficultyLaw(fields), states, self.scores)
        alpha = tuple(self.alpha.tolist()) if self.pooling == "none" else None
        if self.scores is not None:
            return Categories(CategoryLaw(self.scores, fields, alpha), states)
        law = DifficultyLaw(fields, None if alpha is None else (alpha[1], alpha[0]))
        if self.judge is None:
            return RightWrong(law, states)
        evidence = states.evidence  # prior trials that count fully are trials
        enumerable = evidence.sum(axis=1).max(initial=0.0) <= _MAX_TRIALS_ENUMERATED
        simple = enumerable and not (evidence % 1).any()
        return (Marked if simple else MarkedOnRule)(law, states, self.judge)

    def part(self, family: str) -> tuple[Predictor, Fields]:
        """Return the predictor of questions under a law, and the prior of its hyperparameters."""
        fields = self.fields(family)
        return Predictor(self.observation(fields), self.cells), fields

    @property
    def family_prior(self) -> dict[str, float]:
        """Prior probability of each law."""
        prior = self.prior
        if self.pooling != "partial":
            return {self.pooling: 1.0}
        return prior.family_prior if isinstance(prior, HyperPrior) else {"dirichlet": 1.0}

    @property
    def averaged(self) -> bool:
        """Whether draws belong to families of difficulty, of which not all are single Betas."""
        if self.pooling != "partial" or not isinstance(self.prior, HyperPrior):
            return False
        return self.scores is not None or self.family_prior.keys() != {"beta"}

    @property
    def _key(self) -> tuple[Any, ...]:
        """Everything that the posterior of the hyperparameters depends on."""
        cells = self.cells
        arrays = (self.states.counts, self.states.prior, cells.count, cells.group, cells.rows)
        content = tuple(np.ascontiguousarray(array).tobytes() for array in arrays)
        return (
            content,
            self.pooling,
            self.prior,
            self.scores,
            cells.grouped,
            cells.groups,
            self.judge,
        )

    @cached_property
    def families(self) -> list[FamilyFit]:
        """The fit of every law of difficulty: its predictor and weighted hyperparameters."""
        return [
            replace(fit, predictor=self.part(fit.name)[0])  # of these cells, in their order
            for fit in _fit_families(_FitKey(self._key, self))
        ]

    @cached_property
    def family_share(self) -> tuple[Array, Array, float]:
        """Posterior probabilities of laws, their standard errors, and the averaged log evidence.

        A law whose evidence is not known is left out, unless it is the only one.
        """
        return _model_weights(self.families)

    @property
    def counted(self) -> list[tuple[FamilyFit, float]]:
        """Laws with a probability above the minimum, with probabilities that sum to one."""
        share = self.family_share[0]
        pairs = [
            (fit, float(p))
            for fit, p in zip(self.families, share, strict=True)
            if p > _MIN_FAMILY_PROBABILITY
        ]
        total = sum(p for _, p in pairs)
        return [(fit, p / total) for fit, p in pairs]

    @cached_property
    def located(self) -> list[Located]:
        """Points of every law that counts, as many as the work allows, and effects of groups."""
        return [
            Located(fit, share, points, effects)
            for (fit, share), (points, effects) in zip(
                self.counted, _points_with_effects(_FitKey(self._key, self)), strict=True
            )
        ]

    def draw_points(self, size: int, rng: Rng) -> list[tuple[Located, Indices]]:
        """Draw hyperparameters: laws, and positions (draws,) of points of each."""
        number = rng.multinomial(size, [law.share for law in self.located]).tolist()
        return [
            (law, rng.choice(len(law.points.weight), n, p=law.points.weight))
            for law, n in zip(self.located, number, strict=True)
            if n
        ]

    @property
    def described(self) -> dict[str, FamilyShare]:
        """Probability and evidence of each law of difficulty."""
        if not isinstance(self.prior, HyperPrior) or self.pooling != "partial":
            return {}
        share, error, _ = self.family_share
        rows = zip(self.families, share.tolist(), error.tolist(), strict=True)
        return {
            fit.name: FamilyShare(p, error_of_p, fit.points.log_evidence, fit.points.k_hat)
            for fit, p, error_of_p in rows
        }

    def fit(self, metrics: Sequence[Any]) -> Posterior:
        """Return the posterior of metrics: of all questions, and of each group."""
        return Posterior(self, tuple(metrics))

    @property
    def judge_rates(self) -> tuple[Array, Array]:
        """Probabilities of all points, and the rates of the judge there, after all marks."""
        assert self.judge is not None
        weight = [share * fit.points.weight for fit, share in self.counted]
        rates = [self.judge.at(fit.points.theta, fit.fields) for fit, _ in self.counted]
        return np.concatenate(weight), np.concatenate(rates)

    @property
    def alpha(self) -> Array:
        """Dirichlet parameters of a fixed prior, or of the mean's prior."""
        categories = self.states.counts.shape[1] if self.scores is not None else 2
        vector: Array = self.prior.vector(categories)
        return vector

    # Evidence and leave-one-out

    def log_evidence(self) -> float:
        """Log evidence of the trials, without that of prior trials."""
        total = self.family_share[2]
        if not self.states.prior.any():
            return total
        return total - self.before().family_share[2]

    def before(self, earlier: bool = True) -> "CountModel":
        """Return the model of prior trials alone, or of no trials at all."""

        def emptied(states: States) -> States:
            counts = np.zeros_like(states.counts)
            return replace(states, counts=counts, prior=states.prior * earlier)

        cells = replace(self.cells, states=emptied(self.cells.states))
        return replace(self, cells=cells, states=emptied(self.states))

    @np.errstate(under="ignore")
    def predictive(self) -> LogPredictive:
        """Predict questions that are left out, laws averaged.

        ``1 / p(n | the others)`` is the posterior mean of ``1 / p(n | the group's others, theta)``;
        where weights cannot be trusted without a question, its cell is integrated again.
        """
        inverse, fitted = [], []
        for family, share in self.counted:
            with np.errstate(divide="ignore"):
                logs = np.log(family.points.weight)[:, None]
            left_out, new = family.predictor.log_left_out(family.points.theta, self.earlier(family))
            terms = logs - left_out
            inverse.append(np.log(share) + logsumexp(terms, axis=0))
            fitted.append(np.log(share) + logsumexp(logs + new, axis=0))
            outside = _LOO_EDGE_MASS_MAX if family.points.method == "quadrature" else np.inf
            without = np.exp(terms - logsumexp(terms, axis=0))
            for cell in self.unsure(family.points.weight, without, outside):
                again = self._without_trials(cell).refitted(family.name)
                gap = family.points.log_evidence - again.points.log_evidence
                if np.isfinite(gap):
                    inverse[-1][cell] = np.log(share) - gap
        ways = self.states.log_ways
        return LogPredictive(
            ways - logsumexp(inverse, axis=0),
            ways + logsumexp(fitted, axis=0),
            self.log_evidence(),
        )

    def earlier(self, family: FamilyFit) -> Predictor | None:
        """Return the predictor of the prior trials alone, or None if there are none."""
        if not self.states.prior.any():
            return None
        observation: Any = family.predictor.observation
        states = observation.states
        states = replace(states, counts=np.zeros_like(states.counts))
        return replace(family.predictor, observation=replace(observation, states=states))

    def _without_trials(self, cell: int) -> "CountModel":
        """Return the model without the trials of one question of a cell, prior trials kept."""
        if not self.states.prior.any():
            return replace(self, cells=self.cells.without(cell))
        counts = self.states.counts[self.cells.which]
        counts[np.argmax(self.cells.which == cell)] = 0
        return CountModel.of(
            self.prior,
            counts,
            self.states.prior[self.cells.which],
            pooling=self.pooling,
            scores=self.scores,
            basis=self.basis,
            grouping=self.grouping,
            judge=self.judge,
        )

    def unsure(self, weight: Array, share: Array, outside: float) -> list[int]:
        """Cells whose posterior without one question rests on too few points.

        Parameters
        ----------
        weight : ndarray, shape (points,)
        share : ndarray, shape (points, cells)
            Probabilities of the points without a question.
        outside : float
            Largest probability at points of negligible weight: the posterior beyond is unknown.
        """
        if self.states.questions < 3.0:
            return list(range(share.shape[1])) if self.states.questions > 1.0 else []
        unsure = share[weight < _EDGE_WEIGHT * weight.max()].sum(axis=0) > outside
        for cell in np.flatnonzero(1.0 / np.sum(share**2, axis=0) < 100.0):
            unsure[cell] |= pareto_shape(share[:, cell]) > K_HAT_MAX
        return np.flatnonzero(unsure).tolist()

    def conjugate_points(self, fields: Fields) -> WeightedPoints:
        """Return equally weighted low-discrepancy points of the conjugate Dirichlet posterior."""
        total = self.states.count @ self.states.evidence
        posterior = Dirichlet(tuple((self.alpha + total).tolist()))
        theta = posterior.from_uniform(halton_sequence(_CONJUGATE_POINTS, fields.size))
        evidence = float(log_sequence_probability(self.alpha, total))
        weight = np.full(len(theta), 1.0 / len(theta))
        return WeightedPoints(theta, weight, evidence, np.nan, float(len(theta)), "conjugate")

    def refitted(self, family: str) -> FamilyFit:
        """Fit one law, without the cache."""
        return _family_fit(self, family, -np.inf)


@dataclass(frozen=True)
class _FitKey:
    """Cache key of a fit: equal for models of the same content."""

    key: tuple[Any, ...]
    model: CountModel

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FitKey) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _model_weights(fits: Sequence[FamilyFit]) -> tuple[Array, Array, float]:
    r"""Return posterior probabilities of laws, their standard errors, and the log evidence.

    With the prior probability :math:`\pi_j` and the evidence :math:`Z_j` of each law,

    .. math:: w_j = \frac{\pi_j Z_j}{\sum_i \pi_i Z_i}.

    Standard errors are those of the delta method, with a relative error of :math:`Z_j` of
    one over the root of its effective number of draws.
    """
    prior = np.array([fit.log_prior for fit in fits])
    logs = np.array([fit.points.log_evidence for fit in fits])
    if len(logs) == 1:
        return np.ones(1), np.zeros(1), float(logs[0])
    terms = np.where(np.isfinite(logs), logs + prior, -np.inf)
    if not np.isfinite(terms).any():
        terms = np.where(np.arange(len(logs)) == 0, 0.0, -np.inf)
    total = float(logsumexp(terms))
    share = np.exp(terms - total)
    errors = np.array([1.0 / np.sqrt(fit.points.effective_draws) for fit in fits])
    variance = (1.0 - 2.0 * share) * errors**2 + (share**2) @ errors**2
    return share, share * np.sqrt(np.maximum(variance, 0.0)), total


@lru_cache(maxsize=_CACHE_SIZE)
def _fit_families(key: _FitKey) -> list[FamilyFit]:
    model = key.model
    fits: list[FamilyFit] = []
    best = -np.inf
    for name, probability in model.family_prior.items():
        rough = best - np.log(probability) + np.log(_MINOR_SHARE)
        fits.append(_family_fit(model, name, rough))
        if np.isfinite(fits[-1].points.log_evidence):
            best = max(best, fits[-1].points.log_evidence + np.log(probability))
    return fits


def _family_fit(model: CountModel, family: str, negligible: float) -> FamilyFit:
    """Integrate the hyperparameters of one law."""
    predictor, fields = model.part(family)

    def log_density(theta: Array) -> Array:
        return np.asarray(fields.log_density(theta) + predictor.log_likelihood(theta))

    seed = int(model.states.trials.sum() % 2**31)
    last = 4096 if len(model.cells.count) <= 400 else 2048
    last *= 2 if model.judge is not None and not model.structured else 1
    if not len(fields):
        points = replace(certain(), log_evidence=float(log_density(np.zeros((1, 0)))[0]))
    elif fields.size <= 2:
        points = _evidence_of(on_lattice(log_density, _starts(model, fields)), fields)
    elif model.pooling != "partial" and model.judge is None:
        points = model.conjugate_points(fields)
    elif not predictor.observation.law.parts:
        beta = family == "beta"
        laplace = _mode(model) if beta else located(log_density, _starts(model, fields))
        points = around(log_density, laplace, seed, last, predictor.tail)
    else:
        points = _of_several_parts(model, predictor, fields, log_density, seed, negligible, last)
    return FamilyFit(family, predictor, fields, points, float(np.log(model.family_prior[family])))


def _of_several_parts(
    model: CountModel,
    predictor: Predictor,
    fields: Fields,
    log_density: Callable[[Array], Array],
    seed: int,
    negligible: float,
    last: int,
) -> WeightedPoints:
    """Sample a mixture or inflated law from its prior and around the mode of a single Beta."""
    simple = model.fields("beta")
    law_fields = ("mean", "icc", "share", "atoms")
    shared = [field.name for field in fields if field.name not in law_fields]
    size = simple.size
    laplace = _mode(model) if shared else Laplace(np.zeros(size), np.eye(size))
    work = len(model.cells.count) * (10 if model.structured else 1)
    max_points = int(np.clip(_MAX_POINTS_TIMES_CELLS / work, 4 * last, 8 * last))
    # One kernel is no shape for 6 to 8 hyperparameters; more points carry several.
    high_dimensional = bool(model.scores or (model.judge and model.judge.fields))
    target_draws = (
        1000.0 if model.structured or high_dimensional else 2500.0
    )  # draws: to 3% of an sd, and 2%
    return from_prior(
        log_density,
        fields,
        laplace,
        simple,
        shared,
        seed,
        negligible,
        max_points,
        target_draws,
        _POINTS_PER_ROUND[high_dimensional],
        predictor.tail,
    )


def _evidence_of(points: WeightedPoints, fields: Fields) -> WeightedPoints:
    """Return points with NaN for the evidence under an improper prior."""
    return points if fields.proper else replace(points, log_evidence=np.nan)


def _mode(model: CountModel) -> Laplace:
    """Mode of the model with a single Beta, from which every law starts."""
    return _cached_mode(_FitKey(model._key, model))


@lru_cache(maxsize=_CACHE_SIZE_WITH_EFFECTS)
def _points_with_effects(key: _FitKey) -> list[tuple[WeightedPoints, Effects]]:
    """Points of the laws that count, and the effects of groups there: every analysis reads them."""
    model = key.model
    cells, structured = model.cells, model.cells.grouped or model.cells.rows.shape[1] > 0
    width = len(cells.count) if cells.rows.shape[1] else cells.groups + len(cells.states)
    most = _MAX_LOCATED[structured]
    if model.scores is not None:
        most = min(most, MAX_POINTS_SCORED)
    number = int(np.clip(_MAX_LOCATED_TIMES_CELLS[structured] / width, MIN_POINTS, most))
    located = []
    for fit, share in model.counted:
        size = int(max(number * np.sqrt(share), MIN_POINTS))
        points = fit.points.at_most(size, tail=fit.predictor.tail)
        located.append((points, fit.predictor.effects(points.theta)))
    return located


@lru_cache(maxsize=8)
def _cached_mode(key: _FitKey) -> Laplace:
    model = key.model
    predictor, fields = model.part("beta")
    return located(
        lambda theta: fields.log_density(theta) + predictor.log_likelihood(theta),
        _starts(key.model, fields),
    )


def _starts(model: CountModel, fields: Fields) -> list[Array]:
    """Return the points at which searches for the mode start."""
    total = model.states.count @ model.states.evidence + 0.5
    starts = _LOGIT_ICC_STARTS if fields.size <= 2 else _LOGIT_ICC_STARTS[1:3]
    if model.pooling == "none":  # only rates of a judge are not known
        return [start_of(fields, 0.5, 0.0)]
    if model.scores is None:
        wrong, right = by_mark(total)
        rate = float(right / (wrong + right))
        if model.judge is not None:
            s, f = _rough_rates(model.judge.error, total)
            rate = float(np.clip((rate - f) / max(s - f, 1e-3), 0.01, 0.99))
        return [start_of(fields, rate, icc) for icc in starts]
    if isinstance(model.prior, HyperPrior):
        rate = float(total @ scaled_scores(model.scores) / total.sum())
        return [start_of(fields, rate, icc) for icc in starts]
    modes = []
    for icc in starts:
        theta = start_of(fields, 0.5, icc)
        theta[fields.slices["mean"]] = np.log(total[:-1] / total[-1])
        modes.append(theta)
    return modes


def _rough_rates(error: JudgeError, kinds: Array) -> tuple[float, float]:
    """Sensitivity and false positive rate, by a calibration set and counts of kinds of trials."""
    _, rejected, accepted, _, missed, detected = kinds[2:] if len(kinds) > 2 else np.zeros(6)
    (a, b), (c, d) = error.shapes
    return (a + detected) / (a + b + missed + detected), (c + accepted) / (
        c + d + rejected + accepted
    )
