"""Draws of metrics from the traces of the models: of counts, and of answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import logit

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import Study
from bayesatk.metrics.grid import MetricGrid
from bayesatk.models.derived import population_mean
from bayesatk.models.metric_draws import Shares, SystemMetrics
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
    size = study.outcomes.dataset.sizes["question"]
    shares = Shares.of(size, study.outcomes.weight, study.grouping)
    drawn, variables = [], []
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
            start = logit(np.clip(typical, 1e-300, 1.0 - 1e-16))
        logits = np.column_stack([start, law.slopes])
        found["coefficients"] = (("coefficient",), study.design.basis.coefficients(logits))
    if law.effect is not None:
        if isinstance(law.law, RightWrongLaw):
            found["typical_p"] = ((), typical)
        means = [mean_of(law.law.moved(effect)) for effect in law.effect.T]
        found["group_effect"] = (("group",), law.effect)
        found["group_mean"] = (("group", *study.scale.axes), np.stack(means, axis=1))
    return found


def mean_of(law: Any) -> Array:
    """Mean of p of questions of a law, or of its vector; (draws, ...)."""
    if isinstance(law, CategoryLaw):
        return law.mean
    overall: Array = law.difficulty.overall[0]
    return overall


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
