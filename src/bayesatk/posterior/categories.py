"""Closed-form posterior of one system's categories under each kind of pooling."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import polygamma

from bayesatk.core.dirichlet import DirichletHyper, dirichlet_posterior
from bayesatk.core.dirichlet_multinomial import log_ordered
from bayesatk.core.distribution import BetaImage, Empirical
from bayesatk.metrics.credit import Array, pass_at
from bayesatk.posterior.category_states import (
    CategoryStates,
    Judged,
    draw_probabilities,
    moments,
)
from bayesatk.posterior.draws import correlated_normals
from bayesatk.posterior.posterior import (
    Draws,
    Summary,
    SystemPosterior,
    bootstrap_moments,
    by_target,
)
from bayesatk.priors import CategoryPrior, DirichletHyperPrior, Pooling

MAX_PARETO_K = 0.7
_EVALUATIONS = 3e7  # floats drawn for one posterior; beyond these, sums are drawn as sums
_WORK = 3e7  # elements of node-by-state arrays
_CHUNK = 2_000_000
_NOISE_STATES, _NOISE_DRAWS = 1000, 400

Fallback = Callable[[CategoryStates, DirichletHyperPrior], DirichletHyper]


@dataclass(frozen=True)
class Unreliable:
    """Why importance sampling was not trusted; the posterior then rests on a sampler."""

    pareto_k: float

    def __str__(self) -> str:
        return (
            "importance sampling of the hyperparameters was unreliable (Pareto k "
            f"{self.pareto_k:.2f} > {MAX_PARETO_K}): they were sampled by NUTS on the "
            "marginalised model instead, so 'exact' statistics carry its Monte Carlo error, and "
            "the log evidence here is missing"
        )


def category_posterior(
    pooling: Pooling,
    states: CategoryStates,
    judged: list[Judged],
    prior: CategoryPrior,
    fallback: Fallback,
) -> tuple[SystemPosterior, Unreliable | None]:
    """Return the posterior of credits on categories, and a warning where it was not integrated."""
    if isinstance(prior, DirichletHyperPrior):
        return _partial(states, judged, prior, fallback)
    alpha = prior.vector(states.counts.shape[1])
    build = _complete if pooling == "complete" else _none
    return build(states, judged, alpha), None


def _none(states: CategoryStates, judged: list[Judged], alpha: Array) -> SystemPosterior:
    """Independent Dirichlet priors; the population by the Bayesian bootstrap over questions."""
    questions, share = len(states.which), states.share
    own = alpha + states.evidence
    mean_state, variance_state = moments(judged, own)
    mean, trial, question = bootstrap_moments(mean_state, variance_state, share, questions)

    def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        kept, rows = None, np.broadcast_to(alpha, (size, len(alpha)))
        if keep_p or size * questions * len(alpha) <= _EVALUATIONS:
            *values, kept = _draw_means(states, judged, rows, rng, True, keep_p)
        else:
            within = _noise(states, judged, alpha, trial, rng)
            centred = np.sqrt(share)[:, None] * (mean_state - mean)
            between = (centred.T @ centred + within * (questions - 1.0)) / (questions + 1.0)
            first = mean + correlated_normals(within, size, rng)
            values = [first, first + correlated_normals(between, size, rng)]
        return Draws(np.stack(values, axis=-1), {}, kept)

    zero = np.zeros_like(trial)
    evidence = float(states.repeats @ log_ordered(alpha + states.prior, states.counts))
    return SystemPosterior(
        by_target(mean, mean),
        by_target(trial, trial),
        by_target(zero, question),
        lambda: ([None] * len(mean), [None] * len(mean)),
        draw,
        lambda: _probability_moments(own)(states),
        diagnostics={"log_evidence": evidence},
    )


def _complete(states: CategoryStates, judged: list[Judged], alpha: Array) -> SystemPosterior:
    """One vector of probabilities for all questions: both targets are its worth."""
    own = alpha + states.repeats @ states.evidence
    mean, variance = moments(judged, own)
    rest = own.sum() - own

    def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        p = draw_probabilities(np.broadcast_to(own, (size, len(own))), rng)
        values = np.stack([each.latent(p) for each in judged], axis=1)
        every = np.repeat(p[:, None], len(states.which), axis=1) if keep_p else None
        return Draws(np.stack([values, values], axis=-1), {"mean_p": p}, every)

    p_mean, p_sd = own / own.sum(), np.sqrt(own * rest / (own.sum() + 1.0)) / own.sum()
    summaries = [
        Summary(m, s, partial(BetaImage, pass_at(1).vector, float(a), float(b)))
        for m, s, a, b in zip(p_mean, p_sd, own, rest, strict=True)
    ]
    evidence = log_ordered(alpha + states.repeats @ states.prior, states.repeats @ states.counts)
    return SystemPosterior(
        by_target(mean, mean),
        by_target(variance, variance),
        np.zeros((len(mean), 2)),
        lambda: ([None] * len(mean), [None] * len(mean)),
        draw,
        lambda: (np.tile(p_mean, (len(states.which), 1)), np.tile(p_sd, (len(states.which), 1))),
        {"mean_p": summaries},
        {"log_evidence": float(evidence)},
    )


def _partial(
    states: CategoryStates, judged: list[Judged], prior: DirichletHyperPrior, fallback: Fallback
) -> tuple[SystemPosterior, Unreliable | None]:
    """Hyperparameters on weighted points; questions independent given them."""
    hyper, warning, diagnostics = _hyperparameters(states, prior, fallback)
    work = states.evidence.size * max(1, max(one.credit.k for one in judged) // 4)
    grid = hyper.thinned(int(np.clip(_WORK / work, 128, len(hyper.weight))))
    alpha, weight, questions = grid.alpha, grid.weight, len(states.which)
    node_mean, node_variance = _node_moments(states, judged, alpha)
    population, _ = moments(judged, alpha)
    # About the first node: what does not vary between nodes comes out as it is.
    mean = node_mean[0] + weight @ (node_mean - node_mean[0])
    pop_mean = population[0] + weight @ (population - population[0])
    variance = weight @ node_variance + weight @ (node_mean - mean) ** 2
    pop_variance = weight @ (population - pop_mean) ** 2
    question = np.minimum(_question_variance(judged, alpha, weight) / questions, pop_variance)

    def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        node = rng.choice(len(weight), size, p=weight)
        drawn = {"mean_p": grid.mean[node], "icc": grid.icc[node]}
        kept = None
        if keep_p or size * questions * alpha.shape[1] <= _EVALUATIONS:
            values, _, kept = _draw_means(states, judged, alpha[node], rng, False, keep_p)
        else:
            noise = _noise(states, judged, weight @ alpha, weight @ node_variance, rng)
            values = node_mean[node] + correlated_normals(noise, size, rng)
        return Draws(np.stack([values, population[node]], axis=-1), drawn, kept)

    columns = [Empirical(column, weight) for column in population.T]
    posterior = SystemPosterior(
        by_target(mean, pop_mean),
        by_target(variance, pop_variance - question),
        by_target(np.zeros_like(question), question),
        lambda: ([None] * len(mean), columns),
        draw,
        lambda: _question_p(states, grid),
        {
            "mean_p": [_summary(column, hyper.weight) for column in hyper.mean.T],
            "icc": _summary(hyper.icc, hyper.weight),
        },
        diagnostics,
    )
    return posterior, warning


def _hyperparameters(
    states: CategoryStates, prior: DirichletHyperPrior, fallback: Fallback
) -> tuple[DirichletHyper, Unreliable | None, dict[str, float]]:
    """Return importance points if their weights can be trusted, else draws of a sampler."""
    vector = prior.vector(states.counts.shape[1])
    hyper = dirichlet_posterior(states.evidence, states.repeats, vector, prior.icc)
    warning, k = None, 0.0
    if len(hyper.log_weight):
        k = _pareto_k(hyper.log_weight)
        if k > MAX_PARETO_K:
            warning, hyper = Unreliable(k), fallback(states, prior)
    evidence = hyper.log_evidence
    if states.prior.any():
        before = dirichlet_posterior(states.prior, states.repeats, vector, prior.icc)
        evidence -= before.log_evidence
    return (
        hyper,
        warning,
        {
            "log_evidence": evidence,
            "pareto_k": k,
            "hyper_ess": float(1.0 / (hyper.weight @ hyper.weight)),
            "hyper_error": hyper.error,
        },
    )


def _pareto_k(log_weight: Array) -> float:
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    smoothed = array_stats.psislw(-log_weight)  # type: ignore[no-untyped-call]
    return float(smoothed[1])  # it takes log-likelihoods, and negates them


def _node_moments(
    states: CategoryStates, judged: list[Judged], alpha: Array
) -> tuple[Array, Array]:
    """Conditional mean and variance of the means over questions, by node."""
    share, questions = states.share, len(states.which)
    mean, variance = np.empty((2, len(alpha), len(judged)))
    width = max(1, _CHUNK // states.evidence.size)
    for start in range(0, len(alpha), width):
        part = slice(start, start + width)
        by_state = moments(judged, alpha[part, None] + states.evidence)
        mean[part], variance[part] = (np.einsum("s,gsj->gj", share, one) for one in by_state)
    return mean, variance / questions


def _question_variance(judged: list[Judged], alpha: Array, weight: Array) -> Array:
    """Asymptotic variance, times questions, if every question's probabilities were known.

    ``h' J^-1 h`` with the Fisher information ``J = diag(psi'(alpha)) - psi'(A)`` and the gradient
    ``h`` of the population mean in alpha; Sherman and Morrison invert J.
    """
    step = 1e-4
    slopes = []
    for c in range(alpha.shape[1]):
        move = np.ones(alpha.shape[1])
        move[c] = np.exp(step)
        difference = moments(judged, alpha * move)[0] - moments(judged, alpha / move)[0]
        slopes.append(difference / (2.0 * step * alpha[:, c, None]))
    slope = np.stack(slopes, axis=1)
    own, joint = polygamma(1, alpha), polygamma(1, alpha.sum(axis=1))
    scaled = slope / own[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = scaled.sum(axis=1) ** 2 / (1.0 / joint - (1.0 / own).sum(axis=1))[:, None]
        share = (slope * scaled).sum(axis=1) + correction
    usable = np.isfinite(share).all(axis=1)
    kept = weight[usable] / max(weight[usable].sum(), 1e-300)
    return np.asarray(np.maximum(kept @ share[usable], 0.0))


def _draw_means(
    states: CategoryStates,
    judged: list[Judged],
    alpha: Array,
    rng: np.random.Generator,
    weighted: bool,
    keep_p: bool,
) -> tuple[Array, Array, Array | None]:
    """Draws of means over questions, of their Bayesian bootstrap, and of p; alpha by draw."""
    draws, questions = len(alpha), len(states.which)
    mean = np.zeros((draws, len(judged)))
    bootstrap, total = np.zeros_like(mean), np.zeros(draws)
    kept = []
    width = max(1, _CHUNK // alpha.size)
    for start in range(0, questions, width):
        evidence = states.evidence[states.which[start : start + width]]
        p = draw_probabilities(alpha[:, None] + evidence, rng)
        weight = rng.standard_exponential(p.shape[:2]) if weighted else np.zeros(p.shape[:2])
        for column, one in enumerate(judged):
            value = one.latent(p)
            mean[:, column] += value.sum(axis=1)
            bootstrap[:, column] += np.einsum("dq,dq->d", value, weight)
        total += weight.sum(axis=1)
        if keep_p:
            kept.append(p)
    if weighted:
        bootstrap /= total[:, None]
    return mean / questions, bootstrap, np.concatenate(kept, axis=1) if keep_p else None


def _noise(
    states: CategoryStates,
    judged: list[Judged],
    alpha: Array,
    variance: Array,
    rng: np.random.Generator,
) -> Array:
    """Covariance of the means over questions: exact variances, correlations by simulation."""
    some = rng.choice(len(states.share), _NOISE_STATES, p=states.share)
    shape = (_NOISE_DRAWS, *states.evidence[some].shape)
    p = draw_probabilities(np.broadcast_to(alpha + states.evidence[some], shape), rng)
    values = np.stack([one.latent(p) for one in judged], axis=-1)
    centred = (values - values.mean(axis=0)).reshape(-1, len(judged))
    covariance = centred.T @ centred
    scale = np.sqrt(variance / np.maximum(np.diag(covariance), 1e-300))
    return np.asarray(covariance * np.outer(scale, scale))


def _summary(values: Array, weight: Array) -> Summary:
    return Summary.on_nodes(weight, values, partial(Empirical, values, weight))


def _probability_moments(alpha: Array) -> "Callable[[CategoryStates], tuple[Array, Array]]":
    """Mean and sd of every question's probabilities under Dirichlet(alpha) by state."""
    total = alpha.sum(axis=-1, keepdims=True)
    mean = alpha / total
    sd = np.sqrt(mean * (1.0 - mean) / (total + 1.0))
    return lambda states: (mean[states.which], sd[states.which])


def _question_p(states: CategoryStates, grid: DirichletHyper) -> tuple[Array, Array]:
    """Mean and sd of every question's probabilities, mixed over nodes."""
    first, second = np.zeros(states.evidence.shape), np.zeros(states.evidence.shape)
    for weight, alpha in zip(grid.weight, grid.alpha, strict=True):
        own = alpha + states.evidence
        total = own.sum(axis=1, keepdims=True)
        mean = own / total
        first += weight * mean
        second += weight * mean * (own + 1.0) / (total + 1.0)
    sd = np.sqrt(np.maximum(second - first**2, 0.0))
    return first[states.which], sd[states.which]


def sampled_hyper(mean: Array, icc: Array, ess: float) -> DirichletHyper:
    """Return draws of the hyperparameters as equally weighted points."""
    return DirichletHyper(
        mean, icc, np.full(len(icc), 1.0 / len(icc)), np.zeros(0), np.nan, 1.0 / np.sqrt(ess)
    )
