"""Draws of metrics from the traces of the models: of counts, and of answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import Study
from bayesatk.metrics.grid import MetricGrid
from bayesatk.models.derived import PopulationMean, population_mean
from bayesatk.models.program import Questions
from bayesatk.models.question_draws import CategoryLaw, RightWrongLaw, SystemDraws
from bayesatk.models.votes import answer_draws, answer_entries
from bayesatk.priors import AnswerPrior
from bayesatk.results.difficulty import flat_draws

Array = NDArray[np.float64]
Variables = dict[str, tuple[tuple[str, ...], Array]]
_DIMS = ("chain", "draw", "system")
_HYPER = {
    "sensitivity": (),
    "false_positive_rate": (),
    "icc": (),
    "group_sd": (),
    "mu": (),
    "sigma": (),
    "correlation": ("other",),
}  # with their further dims
_CHUNK = 4_000_000  # draws of p held at once: 32 MB
_NEW_GROUPS, _NEW_KINDS = 65, 21  # nodes of the effect of a new group: for one kind of question,
# where they are exact to 1e-15, and for many


@dataclass(frozen=True)
class Part:
    """Draws of some metrics of the grid, (chain, draw, system, metric, target), and what else.

    Parameters
    ----------
    values : ndarray
    index : list of int
        Of the metrics in the grid.
    extra : mapping
        Other variables.
    by_group : ndarray, shape (draws, system, group, metrics, 2), optional
        The same metrics of every group, for these questions and for the population.
    """

    values: Array
    index: list[int]
    extra: Variables
    by_group: Array | None = None


def count_part(
    study: Study,
    grid: MetricGrid,
    posterior: xr.Dataset,
    keep_p: bool,
    rng: np.random.Generator,
    difficulties: Sequence[Difficulty] | None = None,
) -> Part:
    """Metrics that judge trials, probabilities to reach scores, hyperparameters, and p when kept.

    Parameters
    ----------
    study : Study
    grid : MetricGrid
    posterior : xarray.Dataset
        Draws of the model's variables.
    keep_p : bool
    rng : numpy.random.Generator
    difficulties : sequence of Difficulty, optional
        One for each system, of all draws, where questions are right or wrong and differ.
    """
    scale, questions = study.scale, Questions.of(study, distinct=False)
    metrics = [scale.judged(one) for one in grid.judged.values()] + list(scale.reaching())
    shares, drawn, variables = Shares.of(study), [], []
    for system in range(len(study.outcomes.systems)):
        difficulty = difficulties[system] if difficulties else None
        law = system_draws(study, posterior, system, difficulty)
        stored = flat_draws(posterior["p"], system) if "p" in posterior else None
        alike = population_mean(posterior, system, None) if law is None else None
        asked = SystemMetrics(metrics, shares, questions.of_system(system), law, stored, alike)
        drawn.append(asked.draw(keep_p, rng))
        variables.append({} if law is None else of_structure(study, law))
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    whole = np.stack([each.whole for each in drawn], axis=1)
    whole, reach = np.split(whole.reshape(*shape, *whole.shape[1:]), [len(grid.judged)], axis=3)
    extra: Variables = {}
    if reach.size:  # equal scores have none to reach
        extra["reach_probability"] = ((*_DIMS, "target", "reached"), np.moveaxis(reach, 3, 4))
    for name, axes in {"mean_p": scale.axes, **_HYPER}.items():
        if name in posterior and not (difficulties and name in ("mean_p", "icc")):
            dims = (*_DIMS, *axes)
            extra[name] = (dims, posterior[name].transpose(*dims).values)
    for name, (axes, _) in variables[0].items():
        values = np.stack([each[name][1] for each in variables], axis=1)
        extra[name] = ((*_DIMS, *axes), values.reshape(*shape, *values.shape[1:]))
    if keep_p:
        p = np.stack([each.p for each in drawn if each.p is not None], axis=1)
        extra["p"] = ((*_DIMS, "question", *scale.axes), p.reshape(*shape, *p.shape[1:]))
    by_group = None
    if study.grouping is not None:
        by_group = np.stack([each.by_group for each in drawn], axis=1)[..., : len(grid.judged), :]
    return Part(whole, list(grid.judged), extra, by_group)


def system_draws(
    study: Study, posterior: xr.Dataset, system: int, difficulty: Difficulty | None
) -> SystemDraws | None:
    """Return the laws of questions of one system, where the model has hyperparameters of them."""
    if study.pooling != "partial" or (difficulty is None and not study.scale.axes):
        return None
    return SystemDraws.of(study, posterior, system, difficulty)


def of_structure(study: Study, law: SystemDraws) -> dict[str, tuple[tuple[str, ...], Array]]:
    """Return the variables that structure adds to a result, of one system: (draws, ...)."""
    found: dict[str, tuple[tuple[str, ...], Array]] = {}
    typical = mean_of(law.law)
    if study.design is not None:
        assert law.slopes is not None
        start = np.zeros(len(law.slopes))
        if isinstance(law.law, RightWrongLaw):
            start = np.log(law.law.difficulty.mean[:, 0]) - np.log1p(-law.law.difficulty.mean[:, 0])
        logits = np.column_stack([start, law.slopes])
        found["coefficients"] = (("coefficient",), study.design.basis.coefficients(logits))
    if law.effect is not None:
        if isinstance(law.law, RightWrongLaw):
            found["typical_p"] = ((), typical)
        means = [mean_of(law.law.moved(effect)) for effect in law.effect.T]
        found["group_mean"] = (("group", *study.scale.axes), np.stack(means, axis=1))
    return found


def mean_of(law: Any) -> Array:
    """Mean of p of questions of a law, or of its vector; (draws, ...)."""
    if isinstance(law, CategoryLaw):
        return law.mean
    overall: Array = law.difficulty.overall[0]
    return overall


@dataclass(frozen=True)
class Shares:
    """What each question counts for in means over questions.

    Parameters
    ----------
    group : ndarray of int, shape (questions,)
    inner : ndarray, shape (questions,)
        In the mean over its group, where they sum to one.
    outer : ndarray, shape (groups,)
        Of each group in the mean over all questions.
    grouped, weighted : bool
        Whether there are groups, and weights.
    """

    group: NDArray[np.intp]
    inner: Array
    outer: Array
    grouped: bool
    weighted: bool

    @classmethod
    def of(cls, study: Study) -> "Shares":
        """Return the shares of the questions of the data."""
        weight = study.outcomes.weight
        size = study.outcomes.dataset.sizes["question"]
        weights = np.ones(size) if weight is None else weight / weight.max()
        grouping = study.grouping
        code = np.zeros(size, np.intp) if grouping is None else grouping.code
        total = np.bincount(code, weights, 1 if grouping is None else len(grouping.labels))
        outer = total / total.sum()
        if grouping is not None and grouping.weight is not None:
            outer = grouping.shares()
        return cls(code, weights / total[code], outer, grouping is not None, weight is not None)

    @cached_property
    def matrix(self) -> Array:
        """Shares of questions by group, (questions, groups)."""
        table = np.zeros((len(self.group), len(self.outer)))
        table[np.arange(len(self.group)), self.group] = self.inner
        return table


@dataclass
class Drawn:
    """Draws of one system: of all questions (draws, metrics, target), by group, and p when kept."""

    whole: Array
    by_group: Array
    p: Array | None


@dataclass
class SystemMetrics:
    """Metrics of one system, from draws of p and from laws of new questions.

    Parameters
    ----------
    metrics : sequence of MetricFunction
    shares : Shares
    questions : Questions
        Of the system.
    law : SystemDraws, optional
        With partial pooling.
    stored : ndarray, shape (draws, questions, ...), optional
        p, where it was sampled.
    alike : callable, optional
        Without a `law`, the expected metric of a new question in each draw, where there is one.
    """

    metrics: Sequence[Any]
    shares: Shares
    questions: Questions
    law: SystemDraws | None
    stored: Array | None = None
    alike: PopulationMean | None = None

    def draw(self, keep_p: bool, rng: np.random.Generator) -> Drawn:
        """Draw metrics of these questions and of the population, and of new groups."""
        size, kept = len(self.questions.group), []
        total: Array | None = None
        sums, weights = np.zeros(0), np.zeros(0)
        tried = self._tried
        start, width = 0, 1
        while start < size:
            span = slice(start, min(start + width, size))
            p = self._p(span, rng)
            kept += [p] * keep_p
            values = np.stack([metric.latent(p) for metric in self.metrics], axis=1)
            matrix = self.shares.matrix[span]
            if total is None:
                total = np.zeros((*values.shape[:2], matrix.shape[1]))
                sums, weights = np.zeros_like(total), np.zeros((len(p), matrix.shape[1]))
                width = max(1, _CHUNK // len(p))
            total += values @ matrix
            if self._bootstrapped:
                spread = rng.standard_exponential((len(p), len(matrix))) * tried[span]
                sums += np.einsum("dmq,dq,qg->dmg", values, spread, matrix, optimize=True)
                weights += spread @ matrix
            start = span.stop
        assert total is not None
        new = sums / weights[:, None] if self._bootstrapped else self._population()
        by_group = np.stack([total, new], axis=-1)  # (draws, metrics, group, target)
        whole = np.einsum("dmgt,g->dmt", by_group, self.shares.outer)
        if self.shares.grouped:
            whole = np.concatenate([whole, self._new_groups(new, rng)[..., None]], axis=-1)
        p_of_all = np.concatenate(kept, axis=1) if keep_p else None
        return Drawn(whole, by_group.transpose(0, 2, 1, 3), p_of_all)

    @property
    def _tried(self) -> NDArray[np.bool_]:
        """Questions with trials, which alone the bootstrap draws; all of a group without any."""
        tried = self.questions.counts.any(axis=-1)
        group = self.questions.group
        return np.asarray(tried | (np.bincount(group, tried)[group] == 0.0))

    def _p(self, span: slice, rng: np.random.Generator) -> Array:
        if self.stored is not None:
            return self.stored[:, span]
        assert self.law is not None
        return self.law.probabilities(self.questions, span, rng)

    @property
    def _bootstrapped(self) -> bool:
        """Whether questions like these are these, drawn anew: no law says what others are like.

        Weighted questions without structure are drawn with their weights.
        """
        if self.law is None:
            return self.alike is None
        return self.shares.weighted and not self.law.structured

    def _expected(self, effect: Array | None = None) -> Array:
        """Return expected metrics of new questions of every group; (draws, metrics, groups).

        Parameters
        ----------
        effect : ndarray, shape (draws,), optional
            Of new groups in place of these.
        """
        assert self.law is not None
        table = np.column_stack([self.questions.group, self.questions.rows])
        kinds, which = np.unique(table, axis=0, return_inverse=True)
        share = np.bincount(which.ravel(), self.shares.inner)
        total: Array | None = None
        for line, weight in zip(kinds, share, strict=True):
            group = int(line[0])
            law = self.law.law_of(group, line[1:], effect)
            values = np.stack([law.expected(metric) for metric in self.metrics], axis=1)
            if total is None:
                total = np.zeros((*values.shape, len(self.shares.outer)))
            total[..., group] += weight * values
        assert total is not None
        return total

    def _population(self) -> Array:
        if self.alike is not None:
            values = np.stack([self.alike(metric) for metric in self.metrics], axis=1)
            return np.repeat(values[..., None], len(self.shares.outer), axis=2)
        return self._expected()

    def _new_groups(self, population: Array, rng: np.random.Generator) -> Array:
        """Metrics of questions of new groups, (draws, metrics).

        Their effects are integrated; without a law of groups these are drawn anew, all alike.
        """
        if self.law is None or self.law.group_sd is None:
            weights = rng.standard_exponential((len(population), population.shape[2]))
            weights *= np.bincount(self.shares.group, minlength=population.shape[2]) > 0
            weights /= weights.sum(axis=1, keepdims=True)
            return np.asarray(np.einsum("dmg,dg->dm", population, weights))
        many = self.questions.rows.shape[1] > 0
        z, weight = np.polynomial.hermite_e.hermegauss(_NEW_KINDS if many else _NEW_GROUPS)
        total = np.zeros(population.shape[:2])
        for node, share in zip(z, weight / weight.sum(), strict=True):
            total += share * (self._expected(node * self.law.group_sd) @ self.shares.outer)
        return total


def answer_part(
    outcomes: Outcomes, grid: MetricGrid, posterior: xr.Dataset, prior: AnswerPrior,
    rng: np.random.Generator,
) -> Part:  # fmt: skip
    """Votes between answers, exact at the drawn probabilities and simulated."""
    ks = [metric.k for metric in grid.voted.values()]
    entries = answer_entries(outcomes, prior)
    values, votes = answer_draws(outcomes, entries, ks, posterior, rng)
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    voted = votes.reshape(*shape, *votes.shape[1:])
    return Part(
        values.reshape(*shape, *values.shape[1:]),
        list(grid.voted),
        {"plurality_votes_at_k": ((*_DIMS, "k"), voted)},
    )
