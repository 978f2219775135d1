"""Closed-form posterior of one system's categories under each kind of pooling."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import polygamma

from bayesatk.core.engine.bootstrap import bootstrap_moments, mean_moments
from bayesatk.core.engine.distribution import BetaImage, Empirical
from bayesatk.core.numerics.points import Points
from bayesatk.core.numerics.weights import total_moments
from bayesatk.core.pooling import leave_one_out
from bayesatk.core.pooling.dirichlet import DirichletHyper, dirichlet_posterior, draw_probabilities
from bayesatk.core.pooling.leave_one_out import Predictive
from bayesatk.core.pooling.states import States
from bayesatk.core.question.categorical import category_finite, judged_moments
from bayesatk.core.question.dirichlet_multinomial import log_ordered
from bayesatk.metrics.category_credit import Judged
from bayesatk.metrics.credit import Array, pass_at
from bayesatk.posterior.conjugate import Means, Questions, complete, independent
from bayesatk.posterior.draws import correlated_normals, means_of_draws, scaled
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import Draws, Summary, SystemPosterior, by_target, least
from bayesatk.priors import DirichletHyperPrior

_EVALUATIONS = 3e7  # floats drawn for one posterior; beyond these, sums are drawn as sums
_WORK = 3e7  # elements of node-by-state arrays
_NODES = 4096  # at which moments are worked out, at most
_CHUNK = 2_000_000
_NOISE_STATES, _NOISE_DRAWS = 1000, 400


@dataclass(frozen=True)
class CategoryModel(CountModel):
    """Trials in categories with scores; prior trials count as data of the posterior."""

    def finite(self, metric: Judged) -> Array:
        """Unbiased finite-law value of every state."""
        return category_finite(metric.credit, self.states.counts, metric.scores)

    def fit(self, metrics: Sequence[Judged]) -> SystemPosterior:
        """Return the posterior of credits on categories."""
        states, judged = self.states, list(metrics)
        if self.pooling == "partial":
            return _partial(states, judged, self.prior)
        if self.pooling == "complete":
            return replace(self._complete(judged), drawn=True)
        evidence = states.count @ log_ordered(self.alpha + states.prior, states.counts)
        posterior = independent(self._questions(judged), {"log_evidence": float(evidence)})
        return replace(posterior, drawn=True)

    def partial_predictive(self) -> Predictive:
        """Predict questions that are left out, hyperparameters integrated."""
        return leave_one_out.partial_categories(self.states, self.prior)

    def partial_evidence(self) -> float:
        """Log evidence, hyperparameters integrated."""
        states, prior = self.states, self.prior

        def of(trials: Array) -> float:
            return dirichlet_posterior(trials, states.count, self.alpha, prior.icc).log_evidence

        return of(states.evidence) - (of(states.prior) if states.prior.any() else 0.0)

    def _complete(self, judged: list[Judged]) -> SystemPosterior:
        """One vector of probabilities for all questions."""
        states = self.states
        own = self.alpha + states.count @ states.evidence
        rest = own.sum() - own
        p_mean, p_sd = own / own.sum(), np.sqrt(own * rest / (own.sum() + 1.0)) / own.sum()
        summaries = [
            Summary(m, s, partial(BetaImage, pass_at(1).vector, float(a), float(b)))
            for m, s, a, b in zip(p_mean, p_sd, own, rest, strict=True)
        ]
        before = self.alpha + states.count @ states.prior
        none = [None] * len(judged)
        return complete(
            len(states.which), judged, judged_moments(judged, own),
            lambda size, rng: draw_probabilities(np.broadcast_to(own, (size, len(own))), rng),
            summaries, (none, none),
            {"log_evidence": float(log_ordered(before, states.count @ states.counts))},
        )  # fmt: skip

    def _questions(self, judged: list[Judged]) -> Questions:
        """Questions with independent Dirichlet priors."""
        states, alpha = self.states, self.alpha
        own = alpha + states.evidence

        def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Means | None:
            if not (keep_p or size * states.questions * len(alpha) <= _EVALUATIONS):
                return None
            rows = np.broadcast_to(alpha, (size, len(alpha)))
            return _draw_means(states, judged, rows, rng, True, keep_p)

        def question_p() -> tuple[Array, Array]:
            total = own.sum(axis=-1, keepdims=True)
            mean = own / total
            sd = np.sqrt(mean * (1.0 - mean) / (total + 1.0))
            return mean[states.which], sd[states.which]

        return Questions(
            states.terms, states.observed, *judged_moments(judged, own), draw,
            lambda variance, rng: _noise(states, judged, alpha, variance, rng), question_p,
        )  # fmt: skip


def _partial(states: States, judged: list[Judged], prior: DirichletHyperPrior) -> SystemPosterior:
    """Hyperparameters on weighted points; questions independent given them."""
    vector = prior.vector(states.counts.shape[1])
    hyper = dirichlet_posterior(states.evidence, states.count, vector, prior.icc)
    work = states.evidence.size * max(1, max(one.credit.k for one in judged) // 4)
    grid = hyper.thinned(int(np.clip(_WORK / work, 128, _NODES)))
    alpha, weight = grid.alpha, grid.weight
    node_mean, node_variance, population, pop_given = _node_moments(states, judged, alpha)
    weighted = states.weight is not None
    mean, variance = total_moments(weight, node_mean, node_variance)
    pop_mean, pop_variance = total_moments(weight, population, pop_given)
    if weighted:
        question = np.maximum(pop_variance - variance, 0.0)
    else:
        question = np.minimum(
            _question_variance(judged, alpha, weight) / len(states.which), pop_variance
        )
    draw = partial(
        _draw_pooled, states, judged, grid, node_mean, node_variance, population, question
    )
    columns = [None if weighted else Empirical(column, weight) for column in population.T]
    return SystemPosterior(
        by_target(mean, pop_mean),
        by_target(variance, pop_variance - question),
        by_target(np.zeros_like(question), question),
        lambda: ([None] * len(mean), columns),
        draw,
        lambda: _question_p(states, grid),
        {
            "mean_p": [Summary.on_points(hyper.weight, column) for column in hyper.mean.T],
            "icc": Summary.on_points(hyper.weight, hyper.icc),
        },
        _diagnostics(states, prior, hyper),
        method="elliptical slices" if hyper.points.sampled else "importance sampling",
        warning=_warning(hyper.points),
        drawn=True,
        effective_draws={} if grid.exact else grid.points.draws_behind(population),
        hyper_draws=_draws_behind(hyper),
    )


def _draw_pooled(
    states: States, judged: list[Judged], grid: DirichletHyper, node_mean: Array,
    node_variance: Array, population: Array, question: Array, size: int,
    rng: np.random.Generator, keep_p: bool,
) -> Draws:  # fmt: skip
    """Draw points, then means over the questions: question by question where these are few."""
    alpha, weight, weighted = grid.alpha, grid.weight, states.weight is not None
    node = rng.choice(len(weight), size, p=weight)
    drawn = {"mean_p": grid.mean[node], "icc": grid.icc[node]}
    kept = None
    if keep_p or size * len(states.which) * alpha.shape[1] <= _EVALUATIONS:
        values, other, kept = _draw_means(states, judged, alpha[node], rng, weighted, keep_p)
    else:
        noise = _noise(states, judged, weight @ alpha, weight @ node_variance, rng)
        values = node_mean[node] + correlated_normals(noise, size, rng)
        moved = correlated_normals(scaled(noise, question), size, rng)
        other = values + (population - node_mean)[node] + moved
    other = other if weighted else population[node]
    return Draws(np.stack([values, other], axis=-1), drawn, kept)


def _diagnostics(
    states: States, prior: DirichletHyperPrior, hyper: DirichletHyper
) -> dict[str, float]:
    """Evidence of the trials, without that of prior trials, and quality of the points."""
    evidence = hyper.log_evidence
    if states.prior.any():
        before = dirichlet_posterior(
            states.prior, states.count, prior.vector(states.counts.shape[1]), prior.icc
        )
        evidence -= before.log_evidence
    return {
        "log_evidence": evidence,
        "pareto_k": 0.0 if hyper.exact else hyper.points.k_hat,
        "hyper_ess": hyper.points.effective_draws,
        "hyper_error": hyper.error,
    }


def _draws_behind(hyper: DirichletHyper) -> dict[str, dict[str, float]]:
    """Effective numbers of draws; of a quadrature rule quantiles alone are read off its nodes."""
    known = {"mean_p": hyper.mean, "icc": hyper.icc[:, None]}
    found = {name: least(hyper.points.draws_behind(values)) for name, values in known.items()}
    if not hyper.exact:
        return found
    return {name: {"interval_draws": own["interval_draws"]} for name, own in found.items()}


def _node_moments(states: States, judged: list[Judged], alpha: Array) -> Array:
    """Mean and variance of means over these questions, and over others, by node; (4, ...)."""
    found = np.zeros((4, len(alpha), len(judged)))
    found[2] = judged_moments(judged, alpha)[0]
    width = max(1, _CHUNK // states.evidence.size)
    for start in range(0, len(alpha), width):
        part = slice(start, start + width)
        by_state = judged_moments(judged, alpha[part, None] + states.evidence)
        found[:2, part] = mean_moments(*by_state, states.terms)
        if states.weight is not None:
            found[2:, part] = bootstrap_moments(*by_state, states.observed)
    return found


def _slope(judged: Judged, alpha: Array) -> Array:
    """Gradient of the mean under Dirichlet(alpha), (nodes, categories), in alpha."""
    if judged.k == 1 and judged.credit.value is None:  # the mean is a ratio of sums
        total = alpha.sum(axis=1, keepdims=True)
        centred = judged.scores - judged.scores[0]
        return np.asarray((centred - alpha @ centred[:, None] / total) / total)
    step = 1e-4
    slope = np.empty(alpha.shape)
    for c, own in enumerate(alpha.T):
        move = np.ones(alpha.shape[1])
        move[c] = np.exp(step)
        up, down = (judged_moments([judged], at)[0][:, 0] for at in (alpha * move, alpha / move))
        slope[:, c] = (up - down) / (2.0 * step * own)
    return slope


def _question_variance(judged: list[Judged], alpha: Array, weight: Array) -> Array:
    """Asymptotic variance, times questions, if every question's probabilities were known.

    ``h' J^-1 h`` with the Fisher information ``J = diag(psi'(alpha)) - psi'(A)`` and the gradient
    ``h`` of the population mean in alpha; Sherman and Morrison invert J.
    """
    slope = np.stack([_slope(one, alpha) for one in judged], axis=-1)
    own, joint = polygamma(1, alpha), polygamma(1, alpha.sum(axis=1))
    scaled = slope / own[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = scaled.sum(axis=1) ** 2 / (1.0 / joint - (1.0 / own).sum(axis=1))[:, None]
        share = (slope * scaled).sum(axis=1) + correction
    usable = np.isfinite(share).all(axis=1)
    kept = weight[usable] / max(weight[usable].sum(), 1e-300)
    return np.asarray(np.maximum(kept @ share[usable], 0.0))


def _draw_means(
    states: States,
    judged: list[Judged],
    alpha: Array,
    rng: np.random.Generator,
    weighted: bool,
    keep_p: bool,
) -> tuple[Array, Array, Array | None]:
    """Draws of means over questions, of their Bayesian bootstrap, and of p; alpha by draw."""
    kept: list[Array] = []

    def draw(part: slice) -> Array:
        p = draw_probabilities(alpha[:, None] + states.evidence[states.which[part]], rng)
        if keep_p:
            kept.append(p)
        return p

    most = _CHUNK // alpha.shape[1]
    found = means_of_draws(judged, states, draw, len(alpha), most, rng, weighted)
    return *found, np.concatenate(kept, axis=1) if keep_p else None


def _noise(
    states: States,
    judged: list[Judged],
    alpha: Array,
    variance: Array,
    rng: np.random.Generator,
) -> Array:
    """Covariance of the means over questions: exact variances, correlations by simulation."""
    # A state has a part in the variance of the mean with the squares of its questions' weights.
    some = rng.choice(len(states), _NOISE_STATES, p=states.sums[2] / states.sums[2].sum())
    shape = (_NOISE_DRAWS, *states.evidence[some].shape)
    p = draw_probabilities(np.broadcast_to(alpha + states.evidence[some], shape), rng)
    values = np.stack([one.latent(p) for one in judged], axis=-1)
    centred = (values - values.mean(axis=0)).reshape(-1, len(judged))
    covariance = centred.T @ centred
    scale = np.sqrt(variance / np.maximum(np.diag(covariance), 1e-300))
    return np.asarray(covariance * np.outer(scale, scale))


def _question_p(states: States, grid: DirichletHyper) -> tuple[Array, Array]:
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


def _warning(points: Points) -> str | None:
    """Say why importance sampling was not trusted, and what the posterior rests on then."""
    if not points.sampled:
        return None
    return (
        "importance sampling of the hyperparameters was unreliable (Pareto k "
        f"{points.k_hat:.2f}): Markov chains worth {points.effective_draws:.0f} independent draws "
        "took its place, so 'exact' statistics carry their Monte Carlo error, and the log evidence "
        "is missing"
    )
