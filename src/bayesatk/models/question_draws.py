"""What draws of a sampled model say of single questions: their law, and p given their trials."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax
from scipy.stats import binom

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.core.question.dirichlet_multinomial import log_counts, log_ordered
from bayesatk.data.study import Study
from bayesatk.models.derived import expected_metric
from bayesatk.models.marks import LogitRule
from bayesatk.models.program import Questions
from bayesatk.priors.fields import Fields
from bayesatk.results.difficulty import difficulty_draws, difficulty_of, flat_draws
from bayesatk.results.result import Result
from bayesatk.results.schema import RATES

Array = NDArray[np.float64]
HYPER = ("mean_p", "icc", "typical_p", "coefficients", "group_sd", "group_effect")
_NEAREST = 1e-9  # of a mean to 0 or 1 that was moved: beyond it expected metrics lose digits
_LEAST = 1e-300  # Dirichlet parameter


class QuestionLaw(Protocol):
    """Distribution of a question's probabilities, one in every draw."""

    def moved(self, offset: Array) -> "QuestionLaw":
        """Return the law of questions with an offset (draws,) on the logit scale."""
        ...

    def expected(self, metric: Any) -> Array:
        """Return the expected metric of a new question, (draws,)."""
        ...

    def given(self, counts: Array, size: int, rng: np.random.Generator) -> Array:
        """Probabilities of some questions with these counts by category; (draws, size, ...)."""
        ...

    def log_counts(self, counts: NDArray[np.int64]) -> Array:
        """Log probability of counts by category in any order, (draws,)."""
        ...


@dataclass(frozen=True)
class RightWrongLaw:
    """Right and wrong trials, as they are or marked by a judge.

    Parameters
    ----------
    difficulty : Difficulty
    rates : ndarray, shape (draws, 2), optional
        Sensitivity and false positive rate.
    """

    difficulty: Difficulty
    rates: Array | None = None

    def moved(self, offset: Array) -> "RightWrongLaw":
        """As of `QuestionLaw`: means of Betas move, atoms stay."""
        mean = np.clip(self.difficulty.mean, _NEAREST, 1.0 - _NEAREST)
        mean = expit(logit(mean) + offset[:, None])
        inside = np.clip(mean, _NEAREST, 1.0 - _NEAREST)
        return replace(self, difficulty=replace(self.difficulty, mean=inside))

    def expected(self, metric: Any) -> Array:
        """As of `QuestionLaw`."""
        return expected_metric(self.difficulty, metric)

    def given(self, counts: Array, size: int, rng: np.random.Generator) -> Array:
        """As of `QuestionLaw`: of marks the right trials are drawn first."""
        if self.rates is None:
            return success_p(self.difficulty, counts, size, rng)
        if (counts != np.round(counts)).any():
            return marked_p(self.difficulty, self.rates, counts, size, rng)
        wrong, right = np.round(counts).astype(int)
        trials = wrong + right
        every = np.arange(trials + 1)
        chance = np.exp(self.difficulty.log_counts(every, np.full(trials + 1, trials)))
        upto = np.cumsum(chance * mark_chances(self.rates, right, trials), axis=1)
        u = rng.random((len(upto), size)) * upto[:, -1:]
        number = (u[..., None] >= upto[:, None, :-1]).sum(axis=-1)
        p = np.empty(number.shape)
        for t in np.unique(number):
            draw, question = np.nonzero(number == t)
            seen = np.array([trials - t, t], float)
            p[draw, question] = success_p(self.difficulty.among(draw), seen, 1, rng)[:, 0]
        return p

    def log_counts(self, counts: NDArray[np.int64]) -> Array:
        """As of `QuestionLaw`; with a judge, of marks."""
        right, trials = int(counts[1]), int(counts.sum())
        if self.rates is None:
            return self.difficulty.log_counts([right], [trials])[:, 0]
        every = np.arange(trials + 1)
        chance = np.exp(self.difficulty.log_counts(every, np.full(trials + 1, trials)))
        return np.asarray(np.log((chance * mark_chances(self.rates, right, trials)).sum(axis=1)))


@dataclass(frozen=True)
class CategoryLaw:
    """Scored categories: Dirichlet probabilities.

    Parameters
    ----------
    mean : ndarray, shape (draws, categories)
    icc : ndarray, shape (draws,)
    spread : ndarray, shape (categories,)
        Scores, from 0 to 1.
    """

    mean: Array
    icc: Array
    spread: Array

    def moved(self, offset: Array) -> "CategoryLaw":
        """As of `QuestionLaw`: means are tilted by the scores."""
        logs = np.log(np.maximum(self.mean, _LEAST)) + offset[:, None] * self.spread
        return replace(self, mean=softmax(logs, axis=1))

    @property
    def alpha(self) -> Array:
        """Dirichlet parameters, (draws, categories)."""
        total = (1.0 - self.icc) / np.maximum(self.icc, _LEAST)
        return np.maximum(self.mean * total[:, None], _LEAST)

    def expected(self, metric: Any) -> Array:
        """As of `QuestionLaw`."""
        return np.asarray(metric.predictive(self.alpha))

    def given(self, counts: Array, size: int, rng: np.random.Generator) -> Array:
        """As of `QuestionLaw`."""
        alpha = self.alpha + counts
        gamma = rng.standard_gamma(alpha[:, None], (len(alpha), size, alpha.shape[1]))
        total = gamma.sum(axis=-1, keepdims=True)
        return np.where(total > 0.0, gamma / np.maximum(total, _LEAST), self.mean[:, None])

    def log_counts(self, counts: NDArray[np.int64]) -> Array:
        """As of `QuestionLaw`."""
        ratio = self.icc / np.maximum(1.0 - self.icc, np.finfo(float).tiny)
        return log_counts(counts, self.mean, ratio)


@dataclass(frozen=True)
class SystemDraws:
    """One system in every draw: the law of a question without an offset, and what offsets are of.

    Parameters
    ----------
    law : QuestionLaw
    slopes : ndarray, shape (draws, directions), optional
    group_sd : ndarray, shape (draws,), optional
    effect : ndarray, shape (draws, groups), optional
        Of groups, in logits.
    """

    law: QuestionLaw
    slopes: Array | None = None
    group_sd: Array | None = None
    effect: Array | None = None

    @classmethod
    def of(
        cls, study: Study, posterior: xr.Dataset, system: int, difficulty: Difficulty | None
    ) -> "SystemDraws":
        """Read the draws of one system.

        Parameters
        ----------
        study : Study
            With partial pooling.
        posterior : xarray.Dataset
            Draws of the model's variables.
        system : int
        difficulty : Difficulty, optional
            Of right and wrong, in all draws, without an offset.
        """

        def drawn(name: str) -> Array | None:
            return flat_draws(posterior[name], system) if name in posterior else None

        law: QuestionLaw
        if difficulty is None:
            mean, icc = (flat_draws(posterior[name], system) for name in ("mean_p", "icc"))
            law = CategoryLaw(mean, icc, _spread(np.array(study.scale.scores)))
        else:
            rates = None
            if study.judges is not None:
                rates = np.stack([flat_draws(posterior[name], system) for name in RATES], axis=1)
            law = RightWrongLaw(difficulty, rates)
        group_sd, effect = drawn("group_sd"), drawn("group_effect")
        if group_sd is not None and effect is not None:
            effect = group_sd[:, None] * effect
        return cls(law, drawn("slopes"), group_sd, effect)

    @classmethod
    def of_result(cls, result: Result, system: int) -> "SystemDraws":
        """Read the draws of one system of a result, with partial pooling."""
        posterior = result.posterior
        drawn = {str(name): flat_draws(posterior[name], system) for name in (*HYPER, *RATES)
                 if name in posterior}  # fmt: skip
        rates = np.stack([drawn[name] for name in RATES], axis=1) if result.judges else None
        slopes, difficulty = None, difficulty_draws(result.tree, system)
        if result.design is not None:
            logits = result.design.basis.logits(drawn["coefficients"])
            slopes = logits[:, 1:]
            if not result.scale.axes:
                drawn.setdefault("typical_p", expit(logits[:, 0]))
        if "typical_p" in drawn and difficulty is None:
            difficulty = Difficulty.of_beta(drawn["typical_p"], drawn["icc"])
        law: QuestionLaw
        if difficulty is None:
            spread = _spread(result.scores)
            law = CategoryLaw(drawn["mean_p"], drawn["icc"], spread)
        else:
            law = RightWrongLaw(difficulty, rates)
        return cls(law, slopes, drawn.get("group_sd"), drawn.get("group_effect"))

    @property
    def structured(self) -> bool:
        """Whether questions have offsets."""
        return self.slopes is not None or self.effect is not None

    def law_of(self, group: int, row: Array, effect: Array | None = None) -> QuestionLaw:
        """Return the law of questions of a group with these covariates.

        Parameters
        ----------
        group : int
        row : ndarray, shape (directions,)
        effect : ndarray, shape (draws,), optional
            Of another group, in place of this one.
        """
        if not self.structured:
            return self.law
        total: Array | float = 0.0 if self.slopes is None else self.slopes @ row
        if self.effect is not None:
            total = total + (self.effect[:, group] if effect is None else effect)
        return self.law.moved(np.asarray(total, float))

    def probabilities(self, questions: Questions, span: slice, rng: np.random.Generator) -> Array:
        """Draw the probabilities of some questions given their trials; (draws, questions, ...).

        Parameters
        ----------
        questions : Questions
            Of this system, not only distinct ones.
        span : slice
        rng : numpy.random.Generator
        """
        table = np.column_stack([questions.group, questions.rows, questions.counts])[span]
        distinct, which = np.unique(table, axis=0, return_inverse=True)
        width = questions.rows.shape[1]
        drawn: Array | None = None
        for number, line in enumerate(distinct):
            alike = np.flatnonzero(which.ravel() == number)
            law = self.law_of(int(line[0]), line[1 : 1 + width])
            p = law.given(line[1 + width :], len(alike), rng)
            if drawn is None:
                drawn = np.empty((len(p), len(table), *p.shape[2:]))
            drawn[:, alike] = p
        assert drawn is not None
        return drawn


def p_of_result(result: Result, system: int, rng: np.random.Generator) -> Array:
    """Draws of p of all questions, or of vectors: as stored, or given the hyperparameters."""
    posterior, counts = result.posterior, result.counts[system].astype(float)
    if "p" in posterior:
        return flat_draws(posterior["p"], system)
    if result.pooling == "complete":
        return np.repeat(flat_draws(posterior["mean_p"], system)[:, None], len(counts), axis=1)
    if result.prior_counts is not None:
        counts = counts + result.prior_counts[system]
    if result.pooling == "none":
        if result.judges is not None:
            raise _without_p("marks of a judge without pooling need")
        alpha = result.prior.vector(counts.shape[1]) + counts
        draws = posterior.sizes["chain"] * posterior.sizes["draw"]
        gamma = rng.standard_gamma(alpha, (draws, *alpha.shape))
        p = gamma / gamma.sum(axis=-1, keepdims=True)
        return np.asarray(p if result.scale.axes else p[..., 1])
    size, grouping, design = len(counts), result.grouping, result.design
    group = np.zeros(size, np.intp) if grouping is None else grouping.code
    rows = np.zeros((size, 0)) if design is None else design.basis.rows[:, 1:]
    questions = Questions(counts, np.ones(size), np.zeros(size, np.intp), group, rows)
    return SystemDraws.of_result(result, system).probabilities(questions, slice(None), rng)


def _without_p(what: str) -> ArgumentError:
    return ArgumentError(
        Argument("fit"), f" must have draws of p, which {what} for this. Sample with keep=['p']."
    )


def prior_draws(fields: Fields, study: Study, size: int, rng: np.random.Generator) -> SystemDraws:
    """Draw hyperparameters, and effects of groups, from the prior."""
    values = fields.values(fields.from_uniform(rng.random((size, fields.size))))
    effect, group_sd = None, values.get("group_sd")
    if study.grouping is not None and group_sd is not None:
        effect = group_sd[:, None] * rng.standard_normal((size, len(study.grouping.labels)))
    law: QuestionLaw
    if study.scale.axes:
        spread = _spread(np.array(study.scale.scores))
        law = CategoryLaw(values["mean"], values["icc"], spread)
    else:
        law = RightWrongLaw(difficulty_of(values))
    return SystemDraws(law, values.get("slopes"), group_sd, effect)


def _spread(scores: Array) -> Array:
    """Scores from 0 to 1."""
    return np.asarray((scores - scores[0]) / (scores[-1] - scores[0]))


def success_p(difficulty: Difficulty, counts: Array, size: int, rng: np.random.Generator) -> Array:
    """Draws of p (draws, questions) of questions with these counts, by conjugacy.

    A question belongs to each Beta and atom with the probability that its counts give it; within a
    Beta its p is Beta again, and an atom is certain.

    Parameters
    ----------
    difficulty : Difficulty
    counts : ndarray, shape (2,)
        Wrong and right trials, or fractions of trials.
    size : int
        Number of questions.
    rng : numpy.random.Generator
    """
    wrong, right = counts
    alpha, beta = difficulty.alpha, difficulty.beta
    number = alpha.shape[1]
    if number == 1 and not (difficulty.never.any() or difficulty.always.any()):
        return rng.beta(alpha + right, beta + wrong, (len(alpha), size))
    parameters = np.stack([beta, alpha], axis=-1)
    atoms = np.stack([difficulty.never * (right == 0.0), difficulty.always * (wrong == 0.0)], 1)
    with np.errstate(divide="ignore"):
        logs = np.log(difficulty.share) + log_ordered(
            parameters, np.broadcast_to(counts, parameters.shape)
        )
        logs = np.concatenate([logs, np.log(atoms)], axis=1)
    upto = np.exp(logs - logs.max(axis=1, keepdims=True)).cumsum(axis=1)
    u = rng.random((len(alpha), size)) * upto[:, -1:]
    which = (u[..., None] >= upto[:, None, :-1]).sum(axis=-1)
    rows, component = np.arange(len(alpha))[:, None], np.minimum(which, number - 1)
    p = rng.beta(alpha[rows, component] + right, beta[rows, component] + wrong)
    return np.asarray(np.where(which < number, p, (which > number).astype(float)))


def marked_p(
    difficulty: Difficulty, rates: Array, counts: Array, size: int, rng: np.random.Generator
) -> Array:
    """Draws of p (draws, questions) given fractions of marked trials, on nodes of logit p.

    Parameters
    ----------
    difficulty : Difficulty
    rates : ndarray, shape (draws, 2)
    counts : ndarray, shape (2,)
        Trials marked wrong and right.
    size : int
        Number of questions.
    rng : numpy.random.Generator
    """
    p, logs = [], []
    with np.errstate(divide="ignore", under="ignore"):
        for j, share in enumerate(difficulty.share.T):
            rule = LogitRule.of(difficulty.alpha[:, j], difficulty.beta[:, j], np)
            ends = np.stack([rule.log_below, rule.log_above], axis=1)
            p.append(np.concatenate([expit(rule.x), np.tile([0.0, 1.0], (len(ends), 1))], axis=1))
            weight = np.concatenate([rule.log_weight, ends], axis=1)
            logs.append(weight + np.log(share)[:, None])
        atoms = np.stack([difficulty.never, difficulty.always], axis=1)
        p.append(np.tile([0.0, 1.0], (len(atoms), 1)))
        every = np.concatenate(p, axis=1)
        marked = rates[:, 1:] + (rates[:, :1] - rates[:, 1:]) * every
        seen = counts[1] * np.log(marked) + counts[0] * np.log1p(-marked)
        total = np.concatenate([*logs, np.log(atoms)], axis=1) + seen
        upto = np.exp(total - total.max(axis=1, keepdims=True)).cumsum(axis=1)
    u = rng.random((len(upto), size)) * upto[:, -1:]
    which = np.stack([np.searchsorted(*pair) for pair in zip(upto, u, strict=True)])
    return np.take_along_axis(every, np.minimum(which, every.shape[1] - 1), axis=1)


def mark_chances(rates: Array, marks: int, trials: int) -> Array:
    """Probability of marks given each number of right trials, (draws, trials + 1)."""
    s, f = rates[:, :1], rates[:, 1:]
    of_right = np.arange(marks + 1)
    chances: Sequence[Array] = [
        np.sum(binom.pmf(of_right, t, s) * binom.pmf(marks - of_right, trials - t, f), axis=1)
        for t in range(trials + 1)
    ]
    return np.stack(chances, axis=1)
