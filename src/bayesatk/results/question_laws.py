"""Distributions of a question's probabilities in every draw, under partial pooling.

What a result says of other questions than its own, and what sampling says of p and of questions
like these. `bayesatk.evaluate` itself does without: its posterior is in `bayesatk.posterior`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from bayesatk._tools.arrays import PROBABILITY_CEILING, PROBABILITY_FLOOR, Array, Indices
from bayesatk.core.pooling.levels import LevelDraws, shape_functions
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.data.study import Study
from bayesatk.priors import DirichletHyperPrior, HyperPrior
from bayesatk.priors.fields import Fields
from bayesatk.results.difficulty_draws import ATOMS, difficulty_draws, flat_draws


@dataclass(frozen=True)
class QuestionLaws:
    """Questions of one system, in every draw.

    Parameters
    ----------
    study : Study
    mean : ndarray, shape (draws, categories), optional
        Of scored categories.
    icc : ndarray, shape (draws,), optional
        Of scored categories.
    difficulty : Nodes, optional
        Of right and wrong under partial pooling, at an offset of zero.
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
    mean: Array | None = None
    icc: Array | None = None
    difficulty: Nodes | None = None
    slopes: Array | None = None
    group_sd: Array | None = None
    group_effect: Array | None = None
    judge: Mapping[str, Array] | None = None
    shape: Array | None = None
    system: int = 0

    @classmethod
    def of_result(
        cls, study: Study, groups: Mapping[str, xr.Dataset], system: int
    ) -> "QuestionLaws":
        """Read the draws of one system.

        Parameters
        ----------
        study : Study
        groups : mapping {name: xarray.Dataset}
            The result's ``posterior`` and, where there is one, ``difficulty``.
        system : int
        """
        posterior, slopes = groups["posterior"], None
        judge = None if study.judge_rates is None else study.judge_rates[system]
        names = (
            "mean_p",
            "icc",
            "typical_p",
            "coefficients",
            "group_sd",
            "group_effect",
            "shape",
            *(() if judge is None else judge.names),
        )
        drawn = {name: flat_draws(posterior[name], system) for name in names if name in posterior}
        if study.design is not None:
            logits = study.design.basis.logits(drawn["coefficients"])
            slopes, drawn["typical_p"] = logits[:, 1:], expit(logits[:, 0])
        difficulty = difficulty_draws(groups, system)
        if difficulty is None and "typical_p" in drawn and not study.scale.axes:
            mean, icc = (drawn[name][:, None] for name in ("typical_p", "icc"))
            difficulty = Nodes.of_moments(mean, icc)
        if slopes is not None:
            drawn["slopes"] = slopes
        return cls.of_draws(study, drawn, system, difficulty)

    @classmethod
    def of_draws(
        cls, study: Study, drawn: Mapping[str, Array], system: int, difficulty: Nodes | None
    ) -> "QuestionLaws":
        """Return the laws of one system by draws of its hyperparameters, by name."""
        alike = drawn if difficulty is None else {}
        judge = None if study.judge_rates is None else study.judge_rates[system]
        return cls(
            study,
            alike.get("mean_p"),
            alike.get("icc"),
            difficulty,
            drawn.get("slopes"),
            drawn.get("group_sd"),
            drawn.get("group_effect"),
            None if judge is None else {name: drawn[name] for name in judge.names},
            shape_draws(study, difficulty, drawn.get("shape")),
            system,
        )

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

    @property
    def alpha(self) -> Array:
        """Dirichlet parameters of scored categories, (draws, categories)."""
        assert self.mean is not None
        assert self.icc is not None
        total = (1.0 - self.icc) / np.maximum(self.icc, PROBABILITY_FLOOR)
        return np.maximum(self.mean * total[:, None], PROBABILITY_FLOOR)

    def expected(self, metric: Any) -> Array:
        """Return the expected metric of a new question in every draw."""
        if self.levels is not None:
            return self.levels.expected(metric)
        if self.difficulty is None:
            return np.asarray(metric.predictive(self.alpha))
        return expected_metric(self.difficulty, metric)

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
        logs = np.log(np.maximum(self.mean, PROBABILITY_FLOOR)) + offset[:, None] * spread
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

    def variables(self) -> dict[str, Array]:
        """Return the variables that a result has of these draws; (draws, ...)."""
        values = {"mean_p": self.typical, "typical_p": self.typical}
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
                start = logit(np.clip(self.typical, PROBABILITY_FLOOR, PROBABILITY_CEILING))
            logits = np.column_stack([start, self.slopes])
            values["coefficients"] = self.study.design.basis.coefficients(logits)
        if self.group_sd is not None and self.group_effect is not None:
            means = [self.moved(effect).typical for effect in self.group_effect.T]
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
