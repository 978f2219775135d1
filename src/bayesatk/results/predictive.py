"""Groups that ArviZ checks models with: replicated counts, prior draws, log prior densities.

Under partial pooling replicates are of questions like these: every question's success probability
is drawn anew from the difficulty distribution, as in the group ``log_likelihood``, so that
leave-one-out probability integral transforms compare like with like.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from bayesatk.data.study import Study
from bayesatk.metrics.grid import MetricGrid
from bayesatk.priors import DIFFICULTY_FAMILIES, CrossedPrior, HyperPrior
from bayesatk.priors.fields import Beta, Dirichlet, Field, Fields
from bayesatk.results.question_laws import QuestionLaws, concentration, declared_fields
from bayesatk.results.schema import GROUPED_TARGETS, metric_dataset

Array = NDArray[np.float64]
AUTOMATIC = 200_000  # replicated counts up to which they are drawn without being asked for
PRIOR_DRAWS = 500
_DIMS = ("chain", "draw", "system")
_TINY = 5e-324  # the smallest number above zero
_SAMPLE = {"sample_dims": ["chain", "draw"]}


def replicated(study: Study, draws: int, keep: Sequence[str]) -> bool:
    """Whether a result has replicated counts: few of them, or kept on request."""
    size = draws * study.outcomes.dataset["count"].size // 2
    return size <= AUTOMATIC or "predictive" in keep


def predictive_groups(
    study: Study,
    groups: Mapping[str, xr.Dataset],
    keep: Sequence[str],
    rng: np.random.Generator,
    p: Array | None = None,
) -> dict[str, xr.Dataset]:
    """Return ``log_prior``, ``prior``, ``posterior_predictive`` and ``prior_predictive``.

    Parameters
    ----------
    study : Study
    groups : mapping {name: xarray.Dataset}
        The result's ``posterior`` and, where there is one, ``difficulty``.
    keep : sequence of str
        The two predictive groups are left out where they are large, unless ``"predictive"`` is
        among these.
    rng : numpy.random.Generator
    p : ndarray, shape (draws, system, question, ...), optional
        Draws of p of every question; without pooling nothing is returned without them.

    Notes
    -----
    There are no draws of an improper prior. Nothing is returned for votes between answers, whose
    data are answers and not counts, and for crossed models.
    """
    unpooled = study.pooling == "none"
    if not study.judged or isinstance(study.prior, CrossedPrior) or (unpooled and p is None):
        return {}
    posterior, systems = groups["posterior"], range(len(study.outcomes.systems))
    laws = [QuestionLaws.of_result(study, groups, system, p) for system in systems]
    results = {"log_prior": _log_prior(study, posterior, laws)}
    proper = not isinstance(study.prior, HyperPrior) or study.prior.proper
    priors = [QuestionLaws.of_prior(study, system, PRIOR_DRAWS, rng) for system in systems
              if proper]  # fmt: skip
    prior_at: dict[str, Any] = {"chain": [0], "draw": np.arange(PRIOR_DRAWS)}
    if priors:
        results["prior"] = _prior(study, posterior, priors, prior_at, rng)
    at = {name: posterior[name].values for name in ("chain", "draw")}
    if replicated(study, len(at["chain"]) * len(at["draw"]), keep):
        results["posterior_predictive"] = _replicates(study, laws, at, rng)
        if priors:
            results["prior_predictive"] = _replicates(study, priors, prior_at, rng)
    return results


def _replicates(
    study: Study, laws: Sequence[QuestionLaws], at: dict[str, Any], rng: np.random.Generator
) -> xr.Dataset:
    """Draw counts of questions with the same trials, one set for every draw."""
    trials, scale = study.outcomes.trials.transpose("system", "question").values, study.scale
    drawn = [law.replicates(number, rng) for law, number in zip(laws, trials, strict=True)]
    dims = (*_DIMS, "question", *scale.axes)
    return _by_draw({scale.variable: (dims, np.stack(drawn, axis=1))}, study, at)


def _by_draw(
    variables: Mapping[str, tuple[tuple[str, ...], NDArray[Any]]], study: Study, at: dict[str, Any],
    labels: Mapping[Any, Any] | None = None,
) -> xr.Dataset:  # fmt: skip
    """Return arrays (draws, system, ...) as a group of a result."""
    shape = len(at["chain"]), len(at["draw"])
    data = {
        name: (dims, values.reshape(*shape, *values.shape[1:]))
        for name, (dims, values) in variables.items()
    }
    known = {name: study.outcomes.dataset[name].values for name in ("question", "category")}
    known |= {"system": study.outcomes.dataset["system"].values} | dict(labels or {})
    used = {dim for dims, _ in data.values() for dim in dims}
    coords = at | {name: label for name, label in known.items() if name in used}
    return xr.Dataset(data, coords, _SAMPLE)


def _prior(
    study: Study, posterior: xr.Dataset, priors: Sequence[QuestionLaws], at: dict[str, Any],
    rng: np.random.Generator,
) -> xr.Dataset:  # fmt: skip
    """Draws from the prior, of variables that the posterior has."""
    scored = "group_mean" in posterior and "category" not in posterior["group_mean"].dims
    scored = scored and bool(study.scale.axes)
    drawn = [law.variables(scored) for law in priors]
    variables: dict[str, tuple[tuple[str, ...], Array]] = {}
    for name in drawn[0]:
        if name in posterior:
            values = np.stack([of_system[name] for of_system in drawn], axis=1)
            variables[name] = (tuple(map(str, posterior[name].dims)), values)
    labels = {str(name): label.values for name, label in posterior.coords.items()
              if name not in ("chain", "draw")}  # fmt: skip
    dataset = _by_draw(variables, study, at, labels)
    if study.pooling == "none":
        p = np.stack([law.p for law in priors if law.p is not None], axis=1)
        dataset = dataset.merge(_metrics_of_p(study, p, rng)).assign_attrs(_SAMPLE)
    return dataset


def _log_prior(study: Study, posterior: xr.Dataset, laws: Sequence[QuestionLaws]) -> xr.Dataset:
    """Log density of the prior at each draw, of logits; up to a constant where it is improper.

    On the logit scale, as in `bayesatk.priors.choice.power_scaled`: there a uniform prior is not
    constant, so that raising it to a power means something.
    """
    variables: dict[str, tuple[tuple[str, ...], Array]] = {}
    if study.pooling == "partial":
        columns = [_log_fields(study, law) for law in laws]
        mean = next(name for name in ("mean_p", "typical_p", "coefficients") if name in posterior)
        for field in columns[0]:
            name = {"mean": mean, "slopes": "coefficients"}.get(field, field)
            logs = np.stack([column[field] for column in columns], axis=1)
            variables[name] = (_DIMS, logs + variables[name][1] if name in variables else logs)
    else:
        values = [law.mean if law.p is None else law.p for law in laws]
        logs = np.stack([
            _log_dirichlet(study.scale.vectors(p), concentration(study, system))
            for system, p in enumerate(values) if p is not None
        ], axis=1)  # fmt: skip
        unpooled = study.pooling == "none"
        variables["p" if unpooled else "mean_p"] = ((*_DIMS, "question")[: logs.ndim + 1], logs)
    return _by_draw(variables, study, {name: posterior[name].values for name in ("chain", "draw")})


def _log_fields(study: Study, law: QuestionLaws) -> dict[str, Array]:
    """Log density of the coordinates of every field of the prior; (draws,).

    If several families are averaged, the log density of each has its prior expectation taken off.
    To first order in the power that the prior is raised to, which is how ArviZ measures
    sensitivity, families then keep their prior probabilities: the normalising constant of a
    density's power has that expectation as its slope.
    """
    families = _families(study)
    if len(families) == 1:
        return _by_field(declared_fields(study, families[0]), law, slice(None))
    assert law.family is not None
    densities: dict[str, Array] = {}
    for family in families:
        rows = np.flatnonzero(law.family == DIFFICULTY_FAMILIES.index(family))
        fields = declared_fields(study, family)
        logs = _by_field(fields, law, rows)
        for field in fields:
            column = densities.setdefault(field.name, np.zeros(len(law.family)))
            column[rows] = logs[field.name] - _expected_log_density(field)
    return densities


def _families(study: Study) -> tuple[str, ...]:
    """Names of the laws of difficulty that have any probability."""
    return tuple(study.prior.family_prior) if isinstance(study.prior, HyperPrior) else ("beta",)


def _by_field(
    fields: Fields, law: QuestionLaws, rows: NDArray[np.intp] | slice
) -> dict[str, Array]:
    """Log density of the coordinates of every field at some of the draws."""
    values = {"slopes": law.slopes, "group_sd": law.group_sd}
    if law.difficulty is None:
        values |= {"mean": law.mean, "icc": law.icc}
    else:
        parts, width = law.difficulty, 2 if fields.pairs else 1
        values |= {name: getattr(parts, name)[:, :width] for name in ("mean", "icc")}
        values["share"] = parts.share[:, 0]
        values["atoms"] = np.stack([parts.never, parts.always, parts.share[:, 0]], axis=1)
    densities = {}
    for field in fields:
        drawn = values[field.name]
        assert drawn is not None
        logs = field.distribution.log_density(field.distribution.coordinates(drawn[rows]))
        densities[field.name] = logs.sum(axis=tuple(range(1, logs.ndim)))
    return densities


def _expected_log_density(field: Field) -> float:
    """Prior expectation of the log density; 0 of fields that all families have alike."""
    law = field.distribution
    if not isinstance(law, Beta | Dirichlet):
        return 0.0
    alpha = np.array((law.a, law.b) if isinstance(law, Beta) else law.concentration)
    total = alpha.sum()
    expected = alpha @ (digamma(alpha) - digamma(total)) - gammaln(alpha).sum() + gammaln(total)
    return field.repeats * float(expected)


def _log_dirichlet(p: Array, alpha: Array) -> Array:
    """Log density of logits of probabilities (draws, ..., category)."""
    constant = gammaln(alpha.sum(axis=-1)) - gammaln(alpha).sum(axis=-1)
    return np.asarray((np.log(np.maximum(p, _TINY)) * alpha).sum(axis=-1) + constant)


def _metrics_of_p(study: Study, p: Array, rng: np.random.Generator) -> xr.Dataset:
    """Return the metrics that judge trials, of the same targets as in the posterior.

    Means over questions have the weights of these and of their groups. Questions like these are
    those that were tried, weighted by the Bayesian bootstrap within groups, and new groups are
    these groups, weighted in the same way.

    Parameters
    ----------
    study : Study
        Without pooling.
    p : ndarray, shape (draws, system, question, ...)
    rng : numpy.random.Generator
    """
    grid, outcomes, grouping = MetricGrid.of(study.judged), study.outcomes, study.grouping
    size, systems, questions = p.shape[:3]
    weight = np.ones(questions) if outcomes.weight is None else outcomes.weight
    code = np.zeros(questions, np.intp) if grouping is None else grouping.code
    share = np.ones(1) if grouping is None else grouping.shares(outcomes.weight)
    member = (code[:, None] == np.arange(len(share))).astype(float)
    tried = outcomes.trials.transpose("system", "question").values > 0
    targets = GROUPED_TARGETS[: 2 if grouping is None else 3]
    values = np.empty((size, systems, len(grid), len(targets)))
    for system in range(systems):
        bootstrap = rng.standard_exponential((size, questions)) * weight * tried[system]
        new = rng.standard_exponential((size, len(share))) * share
        new /= new.sum(axis=1, keepdims=True)
        for number, metric in enumerate(grid):
            value = study.scale.judged(metric).latent(p[:, system])
            of_groups = (value * weight) @ member / np.maximum(weight @ member, 1e-300)
            like_these = (value * bootstrap) @ member / np.maximum(bootstrap @ member, 1e-300)
            columns = [of_groups @ share, like_these @ share, (like_these * new).sum(axis=1)]
            values[:, system, number] = np.stack(columns[: len(targets)], axis=1)
    coords = {
        "chain": [0], "draw": np.arange(size), "system": outcomes.dataset["system"].values,
        "target": list(targets),
    }  # fmt: skip
    return metric_dataset(grid, values[None], ("chain", "draw", "system"), ("target",), coords)
