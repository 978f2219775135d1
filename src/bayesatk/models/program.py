"""The PyMC model of a study, as the page "The models" writes it.

Hyperparameters by system have the priors of the study. A question of a system has an offset in
logits, of its covariates and of its group, and a law of its probabilities; its counts are observed,
with the probabilities integrated. Earlier trials count at a weight: no distribution has these, so
that they are potentials.
"""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk._tools.arrays import Array, Ints
from bayesatk._tools.messages import ArgumentError, one_of
from bayesatk.core.pooling.levels import shape_functions
from bayesatk.data.study import Study, read_study
from bayesatk.metrics.grid import MetricSpec
from bayesatk.models.difficulty_laws import Betas, Known, Tensor, log_rising, parameter_sum
from bayesatk.models.judged_marks import DIMS, judge_rates, observe_marks
from bayesatk.models.scored_levels import level_vectors, observe_levels
from bayesatk.priors import (
    DIFFICULTY_FAMILIES,
    DirichletHyperPrior,
    HyperPrior,
    ModelPrior,
    Pooling,
)
from bayesatk.priors.fields import Beta, Dirichlet, Field, Fields, HalfNormal, StudentT
from bayesatk.results.question_laws import concentration, declared_fields

Form = Literal["full", "marginal"]
Integrated = Literal["integrated"]  # p of questions with a fixed prior, too
SMALLEST_SHARE = 1e-12  # of a mixture component; less no longer changes the likelihood
SMALLEST_ALPHA = 1e-100  # of a Dirichlet, so that its log-gamma is a number
LABELS = {
    "component": ("first", "second"),  # of a mixture, in no order
    "kind": ("never", "always", "between"),  # of questions, where a law has atoms
}


def build(
    data: object,
    metrics: MetricSpec = "pass@1",
    *,
    difficulty: str | None = None,
    form: Form = "marginal",
    pooling: Pooling = "partial",
    prior: ModelPrior | None = None,
    success: str | None = None,
    judge: object = None,
    prior_trials: object = None,
    prior_weight: float = 1.0,
    covariates: object = None,
    group: object = None,
) -> pm.Model:
    """Build the PyMC model that `bayesatk.sample` samples.

    Parameters
    ----------
    data, metrics, pooling, prior, success, judge, prior_trials, prior_weight, covariates, group
        As in `bayesatk.sample`. Metrics only decide whether trials are right and wrong, or are in
        scored categories.
    difficulty : {"beta", "inflated", "mixture"}, optional
        Family of the difficulty distribution of right and wrong, under partial pooling; a model is
        of one family. Default: the family of the prior if it has one, else ``"beta"``.
    form : {"marginal", "full"}
        Under partial pooling, whether probabilities of questions are integrated out, or are
        variables ``p``, too: quantiles of their distributions given hyperparameters and counts, at
        uniform numbers ``quantile``, which are as easy to sample for all data. Of scores in an
        order, and of marks by a judge, ``p`` is sampled itself.

    Returns
    -------
    pymc.Model
        Variables by system, with the priors of ``HyperPrior.fields``: ``mean_p``, ``icc``,
        ``slopes`` of covariates, in the basis of uncorrelated covariates, ``group_sd`` and
        ``group_effect``, of which the sd is one; ``atoms``; of a mixture ``mean_p`` and ``icc`` of
        two components in no order and the ``share`` of the first. Of judges ``sensitivity`` and
        ``false_positive_rate``. Observed are ``successes``, or the ``count`` of categories, by
        system and question: prior and posterior predictive sampling, ``pm.compute_log_likelihood``
        and ``az.loo`` work.

    Notes
    -----
    A mixture of two Betas may have two modes, or a component of no question, between which chains
    seldom change: with questions that hardly differ, or many of them, NUTS does not mix.
    `bayesatk.sample` has a note where R-hat says so.

    See Also
    --------
    bayesatk.evaluate : the exact posterior.
    bayesatk.sample : samples this model and returns metrics.
    bayesatk.from_draws : a result of the draws of a model that you changed.

    Examples
    --------
    >>> marks = [[1, 0], [1, 1]]
    >>> [variable.name for variable in build(marks).free_RVs]
    ['mean_p', 'icc']
    >>> [variable.name for variable in build(marks, pooling="none").free_RVs]
    ['p']
    """
    study = read_study(
        data,
        metrics,
        pooling=pooling,
        prior=prior,
        difficulty=difficulty,
        success=success,
        prior_trials=prior_trials,
        prior_weight=prior_weight,
        answer_prior=None,
        ci_prob=0.95,
        keep=(),
        covariates=covariates,
        group=group,
        judge=judge,
    )
    one_of("form", form, ("marginal", "full"))
    family = ""
    if isinstance(study.prior, HyperPrior):
        family = difficulty or DIFFICULTY_FAMILIES[0]
        if difficulty is None and len(study.prior.family_prior) == 1:
            (family,) = study.prior.family_prior
        one_of("difficulty", family, DIFFICULTY_FAMILIES)
    return build_program(study, family, form)


def build_models(study: Study) -> dict[str, pm.Model]:
    """Return the models of counts: one for each difficulty family, or the only one."""
    families = study.prior.family_prior if isinstance(study.prior, HyperPrior) else [""]
    return {name: build_program(study, name) for name in families}


def sampled_families(study: Study, by_default: bool) -> Study:
    """Return the study with one family, where several are not averaged.

    Parameters
    ----------
    study : Study
    by_default : bool
        Whether neither prior nor families were asked for.
    """
    special = study.judges, study.design, study.grouping, study.scale.axes or None
    prior = study.prior
    if not isinstance(prior, HyperPrior) or all(feature is None for feature in special):
        return study
    families = list(prior.family_prior)
    if by_default:
        return replace(study, prior=replace(prior, families="beta"))
    if len(families) > 1:
        raise ArgumentError(
            "difficulty",
            " must be one family with judge=, group=, covariates= or scores in PyMC, where several "
            f"are not averaged; got {', '.join(families)}. Pass difficulty={families[0]!r}.",
        )
    return study


def build_program(
    study: Study, family: str = "", form: Form | Integrated = "marginal", kinds: Ints | None = None
) -> pm.Model:
    """Return the PyMC model of what was asked for.

    Parameters
    ----------
    study : Study
    family : str
        Difficulty family, of right and wrong under partial pooling.
    form : {"marginal", "full", "integrated"}
        Whether the model has the probabilities of questions as variables, too; integrated, it has
        none even without pooling.
    kinds : ndarray of int, shape (system, question, kind), optional
        Marks of a judge that errs; default: those of the study, with the truth where it is known.
    """
    kinds = study.outcomes.kinds if kinds is None and study.judges is not None else kinds
    with pm.Model(coords=study_coordinates(study)) as model:
        if study.pooling != "partial":
            _fixed_prior(study, kinds, integrated=form == "integrated")
            return model
        drawn = hyperparameters(declared_fields(study, family))
        offset = _offsets(study, drawn)
        if isinstance(study.prior, DirichletHyperPrior):
            _categories(study, drawn, offset, form)
        elif study.scale.axes:
            _levels(study, difficulty_law(drawn, offset), drawn, form)
        elif study.judge_rates is None:
            _marks(study, difficulty_law(drawn, offset), form)
        else:
            _judged(study, difficulty_law(drawn, offset), form, kinds)
    return model


def study_coordinates(study: Study) -> dict[str, Any]:
    """Return the labels of systems, questions, groups and categories."""
    dataset = study.outcomes.dataset
    names = ("system", "question", *study.scale.axes)
    coords = {name: dataset[name].values.tolist() for name in names}
    if study.grouping is not None:
        coords["group"] = study.grouping.labels
    return coords


# Hyperparameters


def hyperparameters(fields: Fields) -> dict[str, Tensor]:
    """Add the variables of all fields, by system, to the model in context.

    The two Betas of a mixture are in no order: a posteriori the order of their means tells them
    apart. Sampled in order, NUTS could not get from "nearly all questions belong to the upper Beta"
    to "nearly all belong to the lower one", which without order is one region. The prior of the
    share is that of the Beta with the lower mean.
    """
    drawn = {field.name: variable(field) for field in fields if field.name != "share"}
    for field in fields:
        if field.name == "share":
            law: Any = field.distribution
            lower = drawn["mean"][:, 0] < drawn["mean"][:, 1]
            shapes = pt.switch(lower, law.a, law.b), pt.switch(lower, law.b, law.a)
            drawn["share"] = pm.Beta("share", *shapes, dims="system")
    return drawn


def variable(field: Field) -> Tensor:
    """Add the variable of a field, by system, to the model in context."""
    name = "mean_p" if field.name == "mean" else field.name
    law, dims = field.distribution, ("system", *([field.dim] if field.dim else []))
    if isinstance(law, Dirichlet):
        dims = (*dims, "kind" if field.name == "atoms" else "category")
    coords = {dim: LABELS.get(dim, range(field.repeats)) for dim in dims[1:] if dim != "category"}
    pm.modelcontext(None).add_coords(coords)
    # PyTensor works out the log-gammas of plain numbers that single precision holds in single
    # precision: evidence would be wrong by 1e-7, and by much more where parameters are large.
    if isinstance(law, Dirichlet):
        return pm.Dirichlet(name, np.array(law.concentration, np.float64), dims=dims)
    if isinstance(law, Beta) and law.proper:
        return pm.Beta(name, np.float64(law.a), np.float64(law.b), dims=dims)
    if isinstance(law, Beta):
        number = pm.Uniform(name, 0.0, 1.0, dims=dims)
        density = (law.a - 1.0) * pt.log(number) + (law.b - 1.0) * pt.log1p(-number)
        pm.Potential(f"improper_{name}_prior", density)
        return number
    if isinstance(law, StudentT):
        return pm.StudentT(name, nu=law.df, sigma=law.scale, dims=dims)
    kind = pm.HalfNormal if isinstance(law, HalfNormal) else pm.Normal
    return kind(name, sigma=law.sd, dims=dims)  # type: ignore[attr-defined]


def _offsets(study: Study, drawn: dict[str, Tensor]) -> Tensor | None:
    """Return the offsets of questions in logits (system, question); None without structure."""
    total = None
    if study.design is not None:
        total = drawn["slopes"] @ study.design.basis.rows[:, 1:].T
    if study.grouping is not None:
        standard = pm.Normal("group_effect", dims=("system", "group"))
        effect = (drawn["group_sd"][:, None] * standard)[:, study.grouping.code]
        total = effect if total is None else total + effect
    return total


def difficulty_law(drawn: dict[str, Tensor], offset: Tensor | None) -> Betas:
    """Return the law of success probabilities, (system, question) or (system, 1)."""
    mean, total = drawn["mean"], parameter_sum(drawn["icc"])
    if "share" in drawn:
        share = pt.clip(drawn["share"], SMALLEST_SHARE, 1.0 - SMALLEST_SHARE)[:, None]
        shapes = (_beta(mean[:, j], total[:, j], offset) for j in range(2))
        return Betas(tuple(shapes), (pt.log(share), pt.log1p(-share)))
    shape = _beta(mean, total, offset)
    if "atoms" not in drawn:
        return Betas((shape,), (pt.zeros((1, 1)),))
    never, always, between = (
        pt.log(pt.maximum(drawn["atoms"][:, [i]], SMALLEST_SHARE)) for i in range(3)
    )
    return Betas((shape,), (between, never, always))


def _beta(mean: Tensor, total: Tensor, offset: Tensor | None) -> tuple[Tensor, Tensor]:
    """Parameters of a Beta whose mean has an offset in logits."""
    p, q, total = mean[:, None], 1.0 - mean[:, None], total[:, None]
    if offset is not None:
        logit = pt.log(p) - pt.log(q) + offset
        p, q = pt.sigmoid(logit), pt.sigmoid(-logit)
    return pt.maximum(p * total, SMALLEST_ALPHA), pt.maximum(q * total, SMALLEST_ALPHA)


# Partial pooling


def _marks(study: Study, law: Betas, form: Form | Integrated) -> None:
    """Add successes, and in the full form p given them: a quantile of its conjugate distribution.

    NUTS then samples hyperparameters and independent uniform numbers, whatever the data.
    """
    if study.prior_counts is not None and study.prior_counts.any():
        wrong, right = np.moveaxis(study.prior_counts, -1, 0)
        pm.Potential("prior_trials", law.log_ordered(right, wrong))
        law = law.given(right, wrong)
    trials = pm.Data("trials", study.outcomes.trials.values, dims=DIMS)
    counts = pm.Data("successes_data", study.outcomes.successes.values, dims=DIMS)
    successes = law.observe("successes", trials, observed=counts, dims=DIMS)
    if form == "full":
        u = pm.Uniform("quantile", dims=DIMS)
        p = law.given(successes, trials - successes).quantile(u)
        pm.Deterministic("p", p, dims=DIMS)


def _judged(study: Study, law: Betas, form: Form | Integrated, kinds: Any) -> None:
    """Add marks by a judge that errs, right trials added up; or p itself.

    Earlier marks at a weight have no sum over right trials: p is then a variable in either form.
    """
    assert study.judge_rates is not None
    rates = judge_rates(study.judge_rates)
    earlier = study.prior_counts
    if form == "marginal" and (earlier is None or not earlier.any()):
        observe_marks(law, rates, kinds)
        return
    success_probability = Known(law.latent("p", dims=DIMS))
    observe_marks(success_probability, rates, kinds)
    _earlier_marks(earlier, success_probability.p, rates)


def _earlier_marks(earlier: Array | None, p: Tensor, rates: Any) -> None:
    """Add earlier trials that the same judge marked, at their weight."""
    if earlier is not None and earlier.any():
        s, f = (rate.mean for rate in rates)
        marked = f + (s - f) * p
        pm.Potential("prior_trials", Known(marked).log_ordered(earlier[..., 1], earlier[..., 0]))


def _categories(
    study: Study, drawn: dict[str, Tensor], offset: Tensor | None, form: Form | Integrated
) -> None:
    """Add counts of scored categories, whose mean is tilted by an offset."""
    mean, total = drawn["mean"], parameter_sum(drawn["icc"])
    logs = pt.log(mean)[:, None]
    if offset is not None:
        scores = np.array(study.scale.scores)
        scaled = (scores - scores[0]) / (scores[-1] - scores[0])
        logs = logs + offset[..., None] * scaled
    alpha = pt.maximum(pt.special.softmax(logs, axis=-1) * total[:, None, None], SMALLEST_ALPHA)
    trials = pm.Data("trials", study.outcomes.trials.values, dims=DIMS)
    alpha = alpha + pt.zeros_like(trials)[..., None]
    earlier = study.prior_counts
    if earlier is not None and earlier.any():
        logs = log_rising(alpha, earlier).sum(axis=-1)
        logs -= log_rising(alpha.sum(axis=-1), earlier.sum(axis=-1))
        pm.Potential("prior_trials", logs)
        alpha = alpha + earlier
    dims = (*DIMS, "category")
    observed = pm.Data("count_data", study.counts, dims=dims)
    counts = pm.DirichletMultinomial("count", n=trials, a=alpha, observed=observed, dims=dims)
    if form == "full":
        u = pm.Uniform("quantile", dims=dims)
        pm.Deterministic("p", _sticks(alpha + counts, u), dims=dims)


def _sticks(alpha: Tensor, u: Tensor) -> Tensor:
    """Dirichlet probabilities from uniform numbers, by stick-breaking."""
    number, remaining, parts = alpha.type.shape[-1], 1.0, []
    for j in range(number - 1):
        remaining_alpha = alpha[..., j + 1 :].sum(axis=-1)
        parts.append(remaining * pt.betaincinv(alpha[..., j], remaining_alpha, u[..., j]))
        remaining = remaining - parts[-1]
    return pt.stack([*parts, remaining], axis=-1)


def _levels(study: Study, law: Betas, drawn: dict[str, Tensor], form: Form | Integrated) -> None:
    """Add counts of scored levels, whose expected score has the law of difficulty."""
    scores, functions = study.scale.scores, shape_functions(study.scale.scores)
    log_base = pt.zeros((study.outcomes.trials.shape[0], len(scores)))
    if len(functions):
        log_base = drawn["shape"] @ functions
    earlier = 0.0 if study.prior_counts is None else study.prior_counts
    if form == "full":
        expected = law.latent("expected_score", dims=DIMS)
        p = level_vectors(expected, log_base, scores)
        p = pm.Deterministic("p", p, dims=(*DIMS, "category"))
        _given_p(study, p, np.asarray(earlier))
        return
    counts = pm.Data("count_data", study.counts, dims=(*DIMS, "category"))
    trials = study.outcomes.trials.values
    observe_levels(law, log_base, scores, trials, counts, np.asarray(earlier))


# Without pooling, and one p for all


def _fixed_prior(study: Study, kinds: Any, integrated: bool) -> None:
    """Add probabilities with a fixed prior: of every question, or one for all of a system."""
    axes, sizes = study.scale.axes, study.outcomes.trials.shape
    # Earlier trials that no judge marked add up with the prior.
    alpha = np.stack([concentration(study, system) for system in range(sizes[0])], dtype=float)
    together = study.pooling == "complete"
    if integrated and not together:
        _fixed_law(study, alpha, kinds)
        return
    name, dims = ("mean_p", DIMS[:1]) if together else ("p", DIMS)
    if axes:
        p = pm.Dirichlet(name, alpha, dims=(*dims, *axes))
    else:
        p = pm.Beta(name, alpha[..., 1], alpha[..., 0], dims=dims)
    if together:
        p = p[:, None] + pt.zeros((*sizes, alpha.shape[-1]) if axes else sizes)
        p = pm.Deterministic("p", p, dims=(*DIMS, *axes))
    if study.judge_rates is None:
        _given_p(study, p)
        return
    rates = judge_rates(study.judge_rates)
    observe_marks(Known(p), rates, kinds)
    _earlier_marks(study.prior_counts, p, rates)


def _fixed_law(study: Study, alpha: Array, kinds: Any) -> None:
    """Add counts of questions whose probabilities have a fixed prior, integrated."""
    trials = study.outcomes.trials.values
    if study.scale.axes:
        dims = (*DIMS, "category")
        pm.DirichletMultinomial("count", n=trials, a=alpha, observed=study.counts, dims=dims)
        return
    wrong, right = (alpha[..., i] + np.zeros(trials.shape) for i in (0, 1))
    law = Betas(((pt.as_tensor(right), pt.as_tensor(wrong)),), (pt.zeros((1, 1)),))
    if study.judge_rates is None:
        law.observe("successes", trials, observed=study.outcomes.successes.values, dims=DIMS)
    else:
        observe_marks(law, judge_rates(study.judge_rates), kinds)


def _given_p(study: Study, p: Tensor, earlier: Array | None = None) -> None:
    """Add the counts given the probabilities, and earlier trials at their weight."""
    trials = pm.Data("trials", study.outcomes.trials.values, dims=DIMS)
    if not study.scale.axes:
        observed = pm.Data("successes_data", study.outcomes.successes.values, dims=DIMS)
        pm.Binomial("successes", n=trials, p=p, observed=observed, dims=DIMS)
        return
    dims = (*DIMS, "category")
    observed = pm.Data("count_data", study.counts, dims=dims)
    pm.Multinomial("count", n=trials, p=p, observed=observed, dims=dims)
    if earlier is not None and earlier.any():
        counted = pt.switch(earlier > 0.0, earlier * pt.log(p), 0.0)
        pm.Potential("prior_trials", counted.sum(axis=(1, 2)))
