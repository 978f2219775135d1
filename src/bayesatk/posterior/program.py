"""One system under the declared model: any structure, law and observation together.

The model is put together from its parts (`bayesatk.core.program`); its hyperparameters are on
weighted points, and whatever is asked is a mixture over these.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, logsumexp

from bayesatk.core.numerics.tilts import Tilt
from bayesatk.core.numerics.weights import pareto_shape
from bayesatk.core.pooling.judge_rates import JudgeRates
from bayesatk.core.pooling.leave_one_out import Predictive
from bayesatk.core.pooling.marks import Rates
from bayesatk.core.pooling.states import States
from bayesatk.core.program.cells import Cells
from bayesatk.core.program.laws import CategoryLaw, DifficultyLaw
from bayesatk.core.program.observations import (
    Categories,
    Marked,
    MarkedOnRule,
    Observation,
    RightWrong,
)
from bayesatk.core.program.points import Laplace, around, from_prior, located, start_of
from bayesatk.core.program.predictor import Predictor
from bayesatk.core.question.categorical import category_finite
from bayesatk.core.question.laws import finite
from bayesatk.data.design import Basis
from bayesatk.data.grouping import Grouping
from bayesatk.judge_error import JudgeError
from bayesatk.metrics.credit import Array
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import FamilyShare, SystemPosterior
from bayesatk.posterior.program_posterior import FamilyFit, ProgramPosterior
from bayesatk.priors import DirichletHyperPrior, HyperPrior
from bayesatk.priors.fields import Beta, Field, Fields
from bayesatk.results.schema import RATES

_KEPT = 64  # posteriors of hyperparameters, which comparing asks for again
_MOST_RIGHT = 64  # trials of a question up to which a judge's marks are mixtures over right trials
_MINOR_SHARE = 0.05  # of the most probable family's probability, below which few points will do
_STARTS = (-1.0, -5.0)  # logit icc from which the mode is looked for
_FEWEST = 1e-4  # probability of a family from which it counts


@dataclass(frozen=True)
class Marking:
    """The judge of a system, and the marks of other systems that it gave.

    Parameters
    ----------
    error : JudgeError
    others : tuple of ProgramModel
        Models of the other systems, without this marking.
    seed : int
        Of the order in which rates are drawn: the same for all systems of a judge.
    """

    error: JudgeError
    others: "tuple[ProgramModel, ...]" = ()
    seed: int = 0


@dataclass(frozen=True)
class ProgramModel(CountModel):
    """Counts of a system's questions under the declared model with partial pooling.

    Parameters
    ----------
    pooling, prior
        As of `CountModel`: a `HyperPrior`, or a `DirichletHyperPrior` of scored categories.
    states : States
        A state for each cell of alike questions, in the cells' order.
    cells : Cells
    scores : tuple of float, optional
        Of categories; None: right and wrong.
    basis : Basis, optional
        Covariates of the questions.
    grouping : Grouping, optional
    marking : Marking, optional
    """

    cells: Cells
    scores: tuple[float, ...] | None = None
    basis: Basis | None = None
    grouping: Grouping | None = None
    marking: Marking | None = None

    @classmethod
    def of(
        cls,
        prior: HyperPrior | DirichletHyperPrior,
        counts: NDArray[np.int64],
        before: Array | None = None,
        *,
        scores: tuple[float, ...] | None = None,
        basis: Basis | None = None,
        weight: Array | None = None,
        grouping: Grouping | None = None,
        marking: Marking | None = None,
    ) -> "ProgramModel":
        """Find the questions that are alike.

        Parameters
        ----------
        prior : HyperPrior or DirichletHyperPrior
        counts : ndarray of int, shape (questions, categories)
        before : ndarray, shape (questions, categories), optional
            Prior trials, discounted.
        scores, basis, grouping, marking
            As of the class.
        weight : ndarray, shape (questions,), optional
            In means over them.
        """
        states = States.of_counts(counts, before)
        rows = None if basis is None else basis.rows[:, 1:]
        code = None if grouping is None else grouping.code
        share = None if grouping is None else grouping.shares(weight)
        cells = Cells.of(states, weight, rows, code, share)
        by_cell = replace(
            states, counts=states.counts[cells.state], prior=states.prior[cells.state],
            count=cells.count, which=cells.which,
        )  # fmt: skip
        return cls("partial", by_cell, prior, cells, scores, basis, grouping, marking)

    def among(self, kept: NDArray[np.bool_]) -> "ProgramModel":
        """Return the model of some of the questions."""
        cells, states = self.cells, self.states
        weight = cells.question_share * cells.share[cells.group[cells.which]]
        grouping = self.grouping
        if grouping is not None and grouping.weight is not None:
            weight = cells.question_share
        return ProgramModel.of(
            self.prior, states.counts[cells.which][kept], states.prior[cells.which][kept],
            scores=self.scores, basis=None if self.basis is None else self.basis.among(kept),
            weight=weight[kept], grouping=None if grouping is None else grouping.among(kept),
            marking=self.marking,
        )  # fmt: skip

    # What was observed

    def finite(self, metric: Any) -> Array:
        """Unbiased finite-law value of every cell."""
        if self.scores is not None:
            return category_finite(metric.credit, self.states.counts, metric.scores)
        return np.asarray(finite(metric.credit, self.states.successes, self.states.trials))

    def estimate(self, metrics: Sequence[Any]) -> Array:
        """Unbiased finite-law values, groups with their weights."""
        by_group, some = self.estimate_by_group(metrics), self.cells.share > 0.0
        return np.asarray(self.cells.share[some] @ by_group[some])

    def estimate_by_group(self, metrics: Sequence[Any]) -> Array:
        """Return the same of each group; (groups, metrics), NaN of groups without questions."""
        values = np.stack([self.finite(metric) for metric in metrics], axis=1)
        sums = self.cells.by_group((values * self.cells.inner[:, None])[None])[0]
        absent = np.setdiff1d(np.arange(self.cells.groups), self.cells.starts[1])
        sums[absent] = np.nan
        return np.asarray(sums)

    # The model

    def fields(self, family: str) -> Fields:
        """Prior of all hyperparameters."""
        slopes, prior = self.cells.rows.shape[1], self.prior
        if isinstance(prior, DirichletHyperPrior):
            return prior.fields(self.states.counts.shape[1], slopes, self.cells.grouped)
        assert isinstance(prior, HyperPrior)
        fields = prior.fields(family, slopes, self.cells.grouped)
        if self.marking is None:
            return fields
        shapes = self.marking.error.shapes
        rates = tuple(Field(name, Beta(*shape)) for name, shape in zip(RATES, shapes, strict=True))
        return replace(fields, fields=(*fields.fields, *rates))

    def observation(self, family: str, fields: Fields) -> Observation:
        """Return what trials say of p under a law."""
        states = self.cells.states
        if self.scores is not None:
            return Categories(CategoryLaw(self.scores, fields), states)
        law = DifficultyLaw(family, fields)
        if self.marking is None:
            return RightWrong(law, states)
        simple = not states.prior.any() and states.trials.max(initial=0) <= _MOST_RIGHT
        return (Marked if simple else MarkedOnRule)(law, states)

    @property
    def family_prior(self) -> dict[str, float]:
        """Prior probability of each law."""
        prior = self.prior
        return prior.family_prior if isinstance(prior, HyperPrior) else {"dirichlet": 1.0}

    @property
    def _key(self) -> tuple[Any, ...]:
        """What the posterior of hyperparameters depends on."""
        cells, marking = self.cells, self.marking
        arrays = (self.states.counts, self.states.prior, cells.count, cells.group, cells.rows)
        content = tuple(np.ascontiguousarray(array).tobytes() for array in arrays)
        others = () if marking is None else tuple(other._key for other in marking.others)
        error = None if marking is None else marking.error
        return (content, self.prior, self.scores, cells.grouped, error, others)

    @cached_property
    def families(self) -> list[FamilyFit]:
        """Every law with its points."""
        return [
            replace(fit, predictor=replace(fit.predictor, cells=self.cells))
            for fit in _fitted(_Asked(self._key, self))
        ]

    @cached_property
    def family_share(self) -> tuple[Array, Array, float]:
        """Posterior probabilities of laws, their standard errors, and the averaged log evidence.

        A law whose evidence is not known is left out, unless it is the only one.
        """
        prior = np.log(list(self.family_prior.values()))
        logs = np.array([fit.points.log_evidence for fit in self.families])
        if len(logs) == 1:
            return np.ones(1), np.zeros(1), float(logs[0])
        terms = np.where(np.isfinite(logs), logs + prior, -np.inf)
        if not np.isfinite(terms).any():
            terms = np.where(np.arange(len(logs)) == 0, 0.0, -np.inf)
        total = float(logsumexp(terms))
        share = np.exp(terms - total)
        errors = np.array([1.0 / np.sqrt(fit.points.effective_draws) for fit in self.families])
        variance = (1.0 - 2.0 * share) * errors**2 + (share**2) @ errors**2
        return share, share * np.sqrt(np.maximum(variance, 0.0)), total

    @property
    def counted(self) -> list[tuple[FamilyFit, float]]:
        """Laws that count, with their probabilities, which sum to one."""
        share = self.family_share[0]
        pairs = [(fit, float(p)) for fit, p in zip(self.families, share, strict=True)
                 if p > _FEWEST]  # fmt: skip
        total = sum(p for _, p in pairs)
        return [(fit, p / total) for fit, p in pairs]

    @property
    def described(self) -> dict[str, FamilyShare]:
        """Probability and evidence of each law of right and wrong."""
        if self.scores is not None:
            return {}
        rows = zip(self.families, *self.family_share[:2], strict=True)
        return {
            fit.name: FamilyShare(float(p), float(error), fit.points.log_evidence, fit.points.k_hat)
            for fit, p, error in rows
        }

    def fit(self, metrics: Sequence[Any]) -> SystemPosterior:
        """Return the posterior of metrics: of all questions, and of each group."""
        return ProgramPosterior(self, tuple(metrics)).posterior()

    @property
    def judge_rates(self) -> JudgeRates | None:
        """Rates of the judge at all points, after all marks."""
        if self.marking is None:
            return None
        weights = [share * fit.points.weight for fit, share in self.counted]
        rates = [fit.rates(fit.points.theta) for fit, _ in self.counted]
        weight = np.concatenate(weights)
        with np.errstate(divide="ignore"):
            known = Rates(np.concatenate(rates), np.log(weight))
        return JudgeRates(known, weight, 1 + len(self.marking.others), self.marking.seed)

    @property
    def informed(self) -> bool:
        """Whether the judge's rates are known by more, or less, than these marks and their set."""
        marking = self.marking
        return marking is not None and (bool(marking.others) or not marking.error.updated)

    @property
    def shared_draws(self) -> float:
        """Draws that the points are worth where other systems' marks are taken away again.

        Few where these move the judge's rates to where a system's own marks hardly put them; then
        the polynomials that stand for other systems' marks may be wrong there.
        """
        if self.marking is None or not self.marking.others:
            return np.inf
        message = _message_to(self)
        draws = []
        for fit, _ in self.counted:
            logs = -message(logit(fit.rates(fit.points.theta)))
            weight = fit.points.weight * np.exp(logs - logs.max())
            kept = (fit.points.weight @ fit.points.weight) / (weight @ weight) * weight.sum() ** 2
            draws.append(float(kept) * fit.points.effective_draws)
        return min(draws)

    # Evidence and leave-one-out

    def partial_evidence(self) -> float:
        """Log evidence of the trials, without that of prior trials.

        Not a number where other systems inform the judge's rates, or where they are cut.
        """
        if self.informed:
            return np.nan
        total = self.family_share[2]
        if not self.states.prior.any():
            return total
        cells = self.cells
        earlier = replace(cells.states, counts=np.zeros_like(cells.states.counts))
        states = replace(self.states, counts=np.zeros_like(self.states.counts))
        model = replace(self, cells=replace(cells, states=earlier), states=states)
        return total - model.family_share[2]

    def partial_predictive(self) -> Predictive:
        """Predict questions that are left out, laws averaged.

        ``1 / p(n | the others)`` is the posterior mean of ``1 / p(n | the group's others, theta)``;
        where weights cannot be trusted without a question, its cell is integrated again.
        """
        inverse, fitted = [], []
        for family, share in self.counted:
            with np.errstate(divide="ignore"):
                logs = np.log(family.points.weight)[:, None]
            left_out, new = family.predictor.log_left_out(
                family.points.theta, self._earlier(family)
            )
            terms = logs - left_out
            inverse.append(np.log(share) + logsumexp(terms, axis=0))
            fitted.append(np.log(share) + logsumexp(logs + new, axis=0))
            for cell in self._unsure(np.exp(terms - logsumexp(terms, axis=0))):
                again = self._without_trials(cell).refitted(family.name)
                gap = family.points.log_evidence - again.points.log_evidence
                if np.isfinite(gap):
                    inverse[-1][cell] = np.log(share) - gap
        ways = self.states.log_ways
        return Predictive(
            ways - logsumexp(inverse, axis=0), ways + logsumexp(fitted, axis=0),
            self.partial_evidence(),
        )  # fmt: skip

    def _earlier(self, family: FamilyFit) -> Predictor | None:
        """Return what prior trials alone say, where there are any."""
        if not self.states.prior.any():
            return None
        states = self.cells.states
        states = replace(states, counts=np.zeros_like(states.counts))
        observation: Any = family.predictor.observation
        return replace(family.predictor, observation=replace(observation, states=states))

    def _without_trials(self, cell: int) -> "ProgramModel":
        """Return the model without the trials of one question of a cell, prior trials kept."""
        if not self.states.prior.any():
            return replace(self, cells=self.cells.without(cell))
        counts = self.states.counts[self.cells.which]
        counts[np.argmax(self.cells.which == cell)] = 0
        return ProgramModel.of(
            self.prior, counts, self.states.prior[self.cells.which], scores=self.scores,
            basis=self.basis, grouping=self.grouping, marking=self.marking,
        )  # fmt: skip

    def _unsure(self, share: Array) -> list[int]:
        """Cells whose posterior without one question rests on too few points."""
        if self.states.questions < 3.0:
            return list(range(share.shape[1])) if self.states.questions > 1.0 else []
        few = 1.0 / np.sum(share**2, axis=0) < 100.0
        return [int(i) for i in np.flatnonzero(few) if pareto_shape(share[:, i]) > 0.7]

    def refitted(self, family: str) -> FamilyFit:
        """Return one law's points, not kept."""
        return _family_fit(self, family, -np.inf, _message_to(self) if self.informed else None)


@dataclass(frozen=True)
class _Asked:
    """A model, equal to another of the same content."""

    key: tuple[Any, ...]
    model: ProgramModel

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=_KEPT)
def _fitted(asked: _Asked) -> list[FamilyFit]:
    model = asked.model
    message = _message_to(model) if model.informed else None
    fits: list[FamilyFit] = []
    best = -np.inf
    for name, probability in model.family_prior.items():
        rough = best - np.log(probability) + np.log(_MINOR_SHARE)
        fits.append(_family_fit(model, name, rough, message))
        if np.isfinite(fits[-1].points.log_evidence):
            best = max(best, fits[-1].points.log_evidence + np.log(probability))
    return fits


def _family_fit(
    model: ProgramModel, family: str, negligible: float, message: Callable[[Array], Array] | None
) -> FamilyFit:
    """Integrate the hyperparameters of one law."""
    fields = model.fields(family)
    predictor = Predictor(model.observation(family, fields), model.cells)

    def log_density(theta: Array) -> Array:
        logs = fields.log_density(theta) + predictor.log_likelihood(theta)
        if message is not None:
            columns = np.concatenate([theta[:, fields.slices[name]] for name in RATES], axis=1)
            logs = logs + message(columns)
        return np.asarray(logs)

    seed = int(model.states.trials.sum() % 2**31)
    last = 4096 if len(model.cells.count) <= 400 else 2048
    if family in ("beta", "dirichlet"):
        laplace = located(log_density, _starts(model, fields))
        points = around(log_density, laplace, seed, last)
    else:
        simple = model.fields("beta")
        shared = [field.name for field in fields if field.name not in
                  ("mean", "icc", "share", "atoms")]  # fmt: skip
        laplace = _laplace_of_beta(model) if shared else Laplace(
            np.zeros(simple.size), np.eye(simple.size)
        )  # fmt: skip
        points = from_prior(log_density, fields, laplace, simple, shared, seed, negligible)
    return FamilyFit(family, predictor, fields, points)


def _laplace_of_beta(model: ProgramModel) -> Laplace:
    """Mode of the model of one Beta."""
    fields = model.fields("beta")
    predictor = Predictor(model.observation("beta", fields), model.cells)
    return located(
        lambda theta: fields.log_density(theta) + predictor.log_likelihood(theta),
        _starts(model, fields),
    )


def _starts(model: ProgramModel, fields: Fields) -> list[Array]:
    """Where modes are looked for."""
    total = model.states.count @ model.states.evidence + 0.5
    if model.scores is None:
        rate = float(total[-1] / total.sum())
        if model.marking is not None:
            (a, b), (c, d) = model.marking.error.shapes
            s, f = a / (a + b), c / (c + d)
            rate = float(np.clip((rate - f) / max(s - f, 1e-3), 0.01, 0.99))
        return [start_of(fields, rate, icc) for icc in _STARTS]
    starts = []
    for icc in _STARTS:
        theta = start_of(fields, 0.5, icc)
        theta[fields.slices["mean"]] = np.log(total[:-1] / total[-1])
        starts.append(theta)
    return starts


def _message_to(model: ProgramModel) -> Callable[[Array], Array]:
    """Return what others say of a judge's rates; for a cut, minus what this system says.

    A function of logits of rates (points, 2).
    """
    assert model.marking is not None
    marking = model.marking
    alone = replace(marking, others=(), error=replace(marking.error, updated=True))
    cut = not marking.error.updated
    sources = (model,) if cut else marking.others
    tilts = [_marks_by_rates(replace(source, marking=alone)) for source in sources]

    def message(logits: Array) -> Array:
        total = np.sum([tilt.at(logits) for tilt in tilts], axis=0)
        return np.asarray(-total if cut else total)

    return message


def _marks_by_rates(model: ProgramModel) -> Tilt:
    """Log probability of a system's marks, by the logits of its judge's rates."""
    assert model.marking is not None
    shapes = model.marking.error.shapes

    def log_prior(logits: Array) -> Array:
        logs = [Beta(*shape).log_density(logits[:, [i]]) for i, shape in enumerate(shapes)]
        return np.asarray(logs[0] + logs[1])

    weights, logits = [], []
    for fit, share in model.counted:
        weights.append(share * fit.points.weight)
        columns = [fit.points.theta[:, fit.fields.slices[name]] for name in RATES]
        logits.append(np.concatenate(columns, axis=1))
    draws = min(fit.points.effective_draws for fit, _ in model.counted)
    return Tilt.of(np.concatenate(weights), np.concatenate(logits), log_prior, draws)
