"""Distributions of a question's probabilities in every draw, of results with any structure.

Draws are of the posterior or of the prior: both have the same variables.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from bayesatk._tools.arrays import Array, Indices, Ints, Rng
from bayesatk.core.pooling.levels import LevelDraws, shape_functions
from bayesatk.core.pooling.marks import log_kinds, log_marked, question_rates
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.core.question.dirichlet_multinomial import log_dirichlet_multinomial
from bayesatk.data.study import Study
from bayesatk.metrics.credit import log_multinomial
from bayesatk.priors import BetaPrior, DirichletHyperPrior, HyperPrior
from bayesatk.priors.fields import Fields
from bayesatk.results.difficulty_draws import ATOMS, difficulty_draws, draw_prior, flat_draws

_LEAST, _MOST = 1e-300, 1.0 - 1e-16  # of a probability whose logit is taken
_BLOCK = 1_000_000  # probabilities worked out at once


@dataclass(frozen=True)
class QuestionLaws:
    """Questions of one system, in every draw.

    Parameters
    ----------
    study : Study
    p : ndarray, shape (draws, questions, ...), optional
        Of every question, without pooling.
    mean : ndarray, shape (draws, ...), optional
        Of all questions under complete pooling; of scored categories.
    icc : ndarray, shape (draws,), optional
        Of scored categories.
    difficulty : Nodes, optional
        Of right and wrong under partial pooling, at an offset of zero.
    family : ndarray of int, shape (draws,), optional
        Position in `bayesatk.priors.DIFFICULTY_FAMILIES`, where it differs between draws.
    slopes : ndarray, shape (draws, directions), optional
        Of covariates, in their basis.
    group_sd : ndarray, shape (draws,), optional
    group_effect : ndarray, shape (draws, groups), optional
        In logits.
    judge : mapping {name: ndarray}, optional
        Sensitivity and false positive rate of the judge.
    shape : ndarray, shape (draws, functions), optional
        Of the base of scored levels, whose expected score has the difficulty.
    system : int
        Position of the system.
    """

    study: Study
    p: Array | None = None
    mean: Array | None = None
    icc: Array | None = None
    difficulty: Nodes | None = None
    family: Ints | None = None
    slopes: Array | None = None
    group_sd: Array | None = None
    group_effect: Array | None = None
    judge: Mapping[str, Array] | None = None
    shape: Array | None = None
    system: int = 0

    @classmethod
    def of_result(
        cls, study: Study, groups: Mapping[str, xr.Dataset], system: int, p: Array | None = None
    ) -> "QuestionLaws":
        """Read the draws of one system.

        Parameters
        ----------
        study : Study
        groups : mapping {name: xarray.Dataset}
            The result's ``posterior`` and, where there is one, ``difficulty``.
        system : int
        p : ndarray, shape (draws, system, question, ...), optional
            Of every question, without pooling.
        """
        posterior, slopes = groups["posterior"], None
        judge = None if study.judge_rates is None else study.judge_rates[system]
        names = ("mean_p", "icc", "typical_p", "coefficients", "group_sd", "group_effect", "shape",
                 *(() if judge is None else judge.names))  # fmt: skip
        drawn = {name: flat_draws(posterior[name], system) for name in names if name in posterior}
        if study.design is not None:
            logits = study.design.basis.logits(drawn["coefficients"])
            slopes, drawn["typical_p"] = logits[:, 1:], expit(logits[:, 0])
        difficulty = difficulty_draws(groups, system)
        if difficulty is None and "typical_p" in drawn and not study.scale.axes:
            mean, icc = (drawn[name][:, None] for name in ("typical_p", "icc"))
            difficulty = Nodes.of_moments(mean, icc)
        family = None
        if "difficulty" in groups:
            family = flat_draws(groups["difficulty"]["family"], system).astype(np.int64)
        if slopes is not None:
            drawn["slopes"] = slopes
        laws = cls.of_draws(study, drawn, system, difficulty)
        return replace(laws, p=None if p is None else p[:, system], family=family)

    @classmethod
    def of_draws(
        cls, study: Study, drawn: Mapping[str, Array], system: int, difficulty: Nodes | None
    ) -> "QuestionLaws":
        """Return the laws of one system by draws of its hyperparameters, by name."""
        alike = drawn if difficulty is None else {}
        judge = None if study.judge_rates is None else study.judge_rates[system]
        return cls(
            study, None, alike.get("mean_p"), alike.get("icc"), difficulty, None,
            drawn.get("slopes"), drawn.get("group_sd"), drawn.get("group_effect"),
            None if judge is None else {name: drawn[name] for name in judge.names},
            shape_draws(study, difficulty, drawn.get("shape")), system,
        )  # fmt: skip

    @classmethod
    def of_prior(cls, study: Study, system: int, size: int, rng: Rng) -> "QuestionLaws":
        """Draw from the prior; the rates of a judge from their calibration set.

        Discounted earlier trials are part of the prior of a success probability without
        hyperparameters.
        """
        laws = cls(study, system=system)
        if study.judge_rates is not None:
            judge = study.judge_rates[system]
            of_judge = Fields(judge.fields)
            theta = of_judge.from_uniform(rng.random((size, of_judge.size)))
            laws = replace(laws, judge=judge.reported(theta, of_judge))
        if study.pooling != "partial":
            alpha = concentration(study, system)
            drawn = drawn_p(np.broadcast_to(alpha, (size, *alpha.shape)), rng, study)
            unpooled = study.pooling == "none"
            return replace(laws, p=drawn) if unpooled else replace(laws, mean=drawn)
        fields = declared_fields(study)
        values = fields.values(fields.from_uniform(rng.random((size, fields.size))))
        laws = replace(laws, slopes=values.get("slopes"), group_sd=values.get("group_sd"))
        if study.grouping is not None:
            effect = rng.standard_normal((size, len(study.grouping.labels)))
            laws = replace(laws, group_effect=values["group_sd"][:, None] * effect)
        if not isinstance(study.prior, HyperPrior):
            return replace(laws, mean=values["mean"], icc=values["icc"])
        difficulty, family = draw_prior(study.prior, size, rng)
        base = shape_draws(study, difficulty, values.get("shape"))
        return replace(laws, difficulty=difficulty, family=family, shape=base)

    @cached_property
    def rates(self) -> Array | None:
        """Rates of a judge as rows of `bayesatk.core.pooling.marks`."""
        if self.judge is None or self.study.judge_rates is None:
            return None
        return self.study.judge_rates[self.system].rows(self.judge)

    @property
    def levels(self) -> LevelDraws | None:
        """Scored levels, whose expected score has the difficulty."""
        if self.difficulty is None or self.shape is None:
            return None
        scores = self.study.scale.scores
        base = self.shape @ shape_functions(scores)
        return LevelDraws(self.difficulty, base, tuple(scores))

    # Questions

    def log_counts(self, counts: Ints, system: int) -> Array:
        """Log probability of the counts of questions, of any p, in every draw.

        Of marks by a judge, given the drawn rates. Without pooling it is a known constant, (1,
        questions), of which discounted earlier trials are part.
        """
        if self.rates is not None:
            return self._log_marks(self.rates, States.of_counts(counts))
        if self.mean is None and self.difficulty is None:
            alpha = concentration(self.study, system)
            total = alpha.sum(axis=-1)
            logs = log_dirichlet_multinomial(counts, alpha / total[..., None], 1.0 / total)
            return np.atleast_2d(logs)
        if self.levels is not None:
            return self.levels.log_counts(counts)
        if self.difficulty is not None:
            wrong, right = counts.T
            ways = log_multinomial(counts)
            return np.concatenate(
                [part.log_likelihood(right, wrong) + ways for part in self._blocks(len(counts))]
            )
        assert self.mean is not None
        mean = self.study.scale.vectors(self.mean)
        icc = np.zeros(len(mean)) if self.icc is None else self.icc
        ratio = icc / np.maximum(1.0 - icc, np.finfo(float).tiny)
        step = max(1, _BLOCK // counts.size)
        spans = [slice(start, start + step) for start in range(0, len(mean), step)]
        return np.concatenate(
            [
                log_dirichlet_multinomial(counts, mean[span, None], ratio[span, None])
                for span in spans
            ]
        )

    def _blocks(self, width: int) -> Iterator[Nodes]:
        """Yield the law of right and wrong, some draws at a time, of so many numbers for each."""
        assert self.difficulty is not None
        step = max(1, _BLOCK // max(1, width))
        for start in range(0, len(self.difficulty), step):
            yield self.difficulty.among(slice(start, start + step))

    def _log_marks(self, rates: Array, states: States) -> Array:
        """Log probability of marks by a judge in every draw, (draws, questions)."""
        if self.mean is not None:
            logs = log_kinds(np.log(self.mean), np.log1p(-self.mean), rates, states.counts.shape[1])
            return (logs @ states.counts.T + states.log_ways)[:, states.which]
        nodes = self.difficulty
        if nodes is None:
            prior = self.study.prior
            assert isinstance(prior, BetaPrior)  # judges mark right and wrong
            shapes = (prior.alpha, prior.beta, 1.0 / len(rates))
            nodes = Nodes.betas(*(np.full(len(rates), value) for value in shapes))
        return log_marked(replace(nodes, rates=rates), states)[:, states.which]

    @property
    def alpha(self) -> Array:
        """Dirichlet parameters of scored categories, (draws, categories)."""
        assert self.mean is not None
        assert self.icc is not None
        total = (1.0 - self.icc) / np.maximum(self.icc, _LEAST)
        return np.maximum(self.mean * total[:, None], _LEAST)

    def expected(self, metric: Any) -> Array:
        """Return the expected metric of a new question in every draw."""
        if self.levels is not None:
            return self.levels.expected(metric)
        if self.difficulty is None:
            return np.asarray(metric.predictive(self.alpha))
        return expected_metric(self.difficulty, metric)

    def replicates(self, trials: Ints, rng: Rng) -> Ints:
        """Draw the counts of new questions, each with so many trials; (draws, questions, ...).

        Without pooling a question has the p that was drawn of it.
        """
        scale = self.study.scale
        drawn = None if self.p is None else scale.draw_counts(trials, self.p, rng)
        for questions, laws in self.alike() if drawn is None else ():
            if laws.levels is not None:
                p = laws.levels.draw_p(np.zeros(len(scale.scores)), len(questions), rng)
                counts = scale.draw_counts(trials[questions], p, rng)
            elif laws.difficulty is not None:
                counts = np.concatenate([
                    rng.binomial(trials[questions], law.draw_p(len(questions), rng))
                    for law in laws._blocks(len(questions))
                ])  # fmt: skip
            else:
                counts = scale.replicates(laws.typical, laws.icc, trials[questions], rng)
            if drawn is None:
                drawn = np.empty((len(counts), len(trials), *counts.shape[2:]), np.int64)
            drawn[:, questions] = counts
        assert drawn is not None  # there is a question
        if self.rates is None:
            return drawn
        s, f = question_rates(self.rates, len(trials), rng)
        return np.asarray(rng.binomial(drawn, s) + rng.binomial(trials - drawn, f))

    @property
    def structured(self) -> bool:
        """Whether questions have offsets."""
        return self.slopes is not None or self.group_effect is not None

    def alike(self, members: Indices | None = None) -> "Iterator[tuple[Indices, QuestionLaws]]":
        """Yield questions with the same offset, and their law; of all, or of some members."""
        study = self.study
        if members is None:
            members = np.arange(study.outcomes.dataset.sizes["question"])
        if not self.structured:
            yield members, self
            return
        columns: list[NDArray[Any]] = [np.zeros((len(members), 1))]
        if study.grouping is not None:
            columns = [study.grouping.code[members, None]]
        if study.design is not None:
            columns.append(study.design.basis.rows[members, 1:])
        table, row_of_question = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
        for number, row in enumerate(table):
            offset: Any = 0.0
            if self.group_effect is not None:
                offset = self.group_effect[:, int(row[0])]
            if self.slopes is not None:
                offset = offset + self.slopes @ row[1:]
            yield members[row_of_question.ravel() == number], self.moved(offset)

    def moved(self, offset: Array) -> "QuestionLaws":
        """Return the laws of questions with an offset (draws,) on the logit scale.

        Means of Betas move and atoms stay; means of categories are tilted by the scores.
        """
        if self.difficulty is not None:
            return replace(self, difficulty=self.difficulty.moved(offset))
        assert self.mean is not None
        scores = np.array(self.study.scale.scores)
        spread = (scores - scores[0]) / (scores[-1] - scores[0])
        logs = np.log(np.maximum(self.mean, _LEAST)) + offset[:, None] * spread
        return replace(self, mean=softmax(logs, axis=1))

    @property
    def typical(self) -> Array:
        """Mean of p, or of its vector; (draws, ...)."""
        if self.levels is not None:
            return self.levels.typical()
        if self.difficulty is not None:
            return np.asarray(self.difficulty.overall()[0])
        assert self.mean is not None
        return self.mean

    def variables(self, scored: bool) -> dict[str, Array]:
        """Return the variables that a result has of these draws; (draws, ...).

        Parameters
        ----------
        scored : bool
            Whether the mean of a group of scored categories is the mean score, not its vector.
        """
        values = {}
        if self.p is not None:
            values["p"] = self.p
        else:
            typical = self.typical
            values |= {"mean_p": typical, "typical_p": typical}
        if self.difficulty is not None:
            values["icc"] = self.difficulty.overall()[2]
            values |= dict(zip(ATOMS, self.difficulty.atoms.T, strict=True))
        elif self.icc is not None:
            values["icc"] = self.icc
        if self.shape is not None and self.shape.shape[1]:
            values["shape"] = self.shape
        if self.slopes is not None and self.study.design is not None:
            start = np.zeros(len(self.slopes))
            if self.difficulty is not None and self.levels is None:
                start = logit(np.clip(self.typical, _LEAST, _MOST))
            logits = np.column_stack([start, self.slopes])
            values["coefficients"] = self.study.design.basis.coefficients(logits)
        if self.group_sd is not None and self.group_effect is not None:
            means = [self.moved(effect).typical for effect in self.group_effect.T]
            if scored:
                means = [mean @ np.array(self.study.scale.scores) for mean in means]
            values |= {
                "group_sd": self.group_sd,
                "group_effect": self.group_effect,
                "group_mean": np.stack(means, axis=1),
            }
        return values | dict(self.judge or {})


def expected_metric(difficulty: Nodes, metric: Any) -> Array:
    """Return the expected metric of a new question in each draw: of the Betas and of the atoms."""
    ends = metric.latent(np.array([0.0, 1.0]))
    values = metric.predictive(difficulty.alpha, difficulty.beta)
    inside = (difficulty.share * values).sum(axis=1)
    return np.asarray(inside + difficulty.atoms @ ends)


def shape_draws(study: Study, difficulty: Nodes | None, drawn: Array | None) -> Array | None:
    """Return the coefficients of the base of scored levels, of which two levels have none."""
    if difficulty is None or not study.scale.axes:
        return None
    return np.zeros((len(difficulty), 0)) if drawn is None else drawn


def declared_fields(study: Study, family: str = "beta") -> Fields:
    """Return the prior of the hyperparameters of a model with partial pooling."""
    slopes = 0 if study.design is None else len(study.design.names)
    grouped = study.grouping is not None
    if isinstance(study.prior, DirichletHyperPrior):
        return study.prior.fields(len(study.scale.scores), slopes, grouped)
    assert isinstance(study.prior, HyperPrior)
    shapes = len(shape_functions(study.scale.scores)) if study.scale.axes else 0
    return study.prior.fields(family, slopes, grouped, shapes)


def concentration(study: Study, system: int) -> Array:
    """Dirichlet parameters of the prior without hyperparameters; ([questions], categories).

    Discounted earlier trials are part of it, unless a judge marked them.
    """
    prior: Any = study.prior
    alpha = np.asarray(prior.vector(len(study.scale.scores)))
    earlier = None if study.judges is not None else study.prior_counts
    if study.pooling == "complete":
        return alpha if earlier is None else alpha + earlier[system].sum(axis=0)
    shape = (study.outcomes.dataset.sizes["question"], len(alpha))
    return np.broadcast_to(alpha, shape) if earlier is None else alpha + earlier[system]


def drawn_p(alpha: Array, rng: Rng, study: Study) -> Array:
    """Draw p, or vectors, of Dirichlet distributions (..., category)."""
    if alpha.shape[-1] == 2:
        p = rng.beta(alpha[..., 1], alpha[..., 0])
        return np.stack([1.0 - p, p], axis=-1) if study.scale.axes else p
    gamma = rng.standard_gamma(alpha)
    return gamma / np.maximum(gamma.sum(axis=-1, keepdims=True), _LEAST)
