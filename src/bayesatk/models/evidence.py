"""Sampled difficulty families, averaged by their evidence, which bridge sampling finds from draws.

Meng and Wong 1996, Statistica Sinica 6, 831-860: the normalising constant of a density q that can
be evaluated, from draws of it and from draws of a normalised density g that overlaps it,

    Z = E_g[q h] / E_q/Z[g h],   h ~ 1 / (s_1 q / Z + s_2 g),

iterated until Z on both sides agrees. Here q is the declared prior times the likelihood of counts,
g is a kernel density of one half of the draws, and the other half are the draws of q; then the
halves change places.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import arviz as az
import numpy as np
import xarray as xr
from scipy.special import logsumexp
from scipy.stats import gaussian_kde

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.data.study import Study
from bayesatk.models.question_draws import (
    all_trials,
    chosen,
    difficulty_of,
    field_values,
    log_parts,
    traced_difficulty,
)
from bayesatk.priors import DIFFICULTY_FAMILIES, HyperPrior
from bayesatk.priors.fields import Fields

_MAX_KERNELS = 500  # of the proposal density
_PROPOSALS_PER_DRAW = 2  # for every draw of the posterior
_MAX_ITERATIONS = 200
_LOG_EVIDENCE_TOL = 1e-10  # change of the log evidence at which the iteration has converged
_MAX_FLOATS_PER_BLOCK = 2_000_000  # 16 MB
_LARGEST_LOGIT = 36.0  # of the largest float below 1


@dataclass(frozen=True)
class Averaged:
    """Difficulty distributions of every system, in draws of one or several families.

    Parameters
    ----------
    difficulties : sequence of Nodes
        One for each system, of all draws.
    family : ndarray of int, shape (draws, system)
        Of each draw, as an index of ``bayesatk.priors.DIFFICULTY_FAMILIES``.
    table : xarray.Dataset, optional
        Of several families: ``family_probability`` and ``family_log_evidence`` with their standard
        errors, dims ``system, family``.
    """

    difficulties: Sequence[Nodes]
    family: Ints
    table: xr.Dataset | None = None


def average(study: Study, posteriors: Mapping[str, xr.Dataset], rng: Rng) -> Averaged:
    """Return the draws of a single family, or of several by their posterior probabilities.

    At every chain and draw the family is drawn by its probability, and its own draw at that place
    is taken: draws of one chain stay draws of one chain.

    Parameters
    ----------
    study : Study
        With the prior probabilities of the families.
    posteriors : mapping {family: xarray.Dataset}
        Draws of models of the data, with as many chains and draws each.
    rng : numpy.random.Generator
        For the evidences and the choice of families.
    """
    prior = study.prior
    assert isinstance(prior, HyperPrior)
    number = {name: DIFFICULTY_FAMILIES.index(name) for name in posteriors}
    drawn: dict[str, list[Nodes]] = {}
    for name, posterior in posteriors.items():
        by_system = [traced_difficulty(posterior, i) for i in range(len(study.outcomes.systems))]
        drawn[name] = [difficulty for difficulty in by_system if difficulty is not None]
    if len(drawn) == 1:
        ((name, single),) = drawn.items()
        return Averaged(single, np.full((len(single[0]), len(single)), number[name]))
    sizes = next(iter(posteriors.values())).sizes
    chains = sizes["chain"], sizes["draw"]
    counts = all_trials(study)
    estimates = np.array(
        [
            [
                bridge_log_evidence(prior.fields(name), laws, chains, trials, rng)
                for laws, trials in zip(by_system, counts, strict=True)
            ]
            for name, by_system in drawn.items()
        ]
    )
    logs, errors = estimates.transpose(2, 1, 0)
    table = _table(logs, errors, {name: prior.family_prior[name] for name in drawn})
    difficulties, families = [], []
    for system, chances in enumerate(table["family_probability"].values):
        laws = [by_system[system] for by_system in drawn.values()]
        choice = rng.choice(len(laws), len(laws[0]), p=chances)
        difficulties.append(chosen(laws, choice))
        families.append(np.array(list(number.values()))[choice])
    table = table.assign_coords(system=study.outcomes.dataset["system"].values)
    return Averaged(difficulties, np.stack(families, axis=1), table)


def _table(logs: Array, errors: Array, prior: Mapping[str, float]) -> xr.Dataset:
    """Evidences (systems, families) and posterior probabilities, with standard errors."""
    weighed = logs + np.log(list(prior.values()))
    chances = np.exp(weighed - logsumexp(weighed, axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    # d p_i = p_i (d e_i - sum_j p_j d e_j)
    jacobian = chances[:, :, None] * (np.eye(len(prior)) - chances[:, None, :])
    chance_errors = np.sqrt((jacobian**2 @ errors[:, :, None] ** 2)[..., 0])
    dims = ("system", "family")
    return xr.Dataset(
        {
            "family_probability": (dims, chances),
            "family_probability_error": (dims, chance_errors),
            "family_log_evidence": (dims, logs),
            "family_log_evidence_error": (dims, errors),
        },
        coords={"family": list(prior)},
    )


def bridge_log_evidence(
    fields: Fields,
    draws: Nodes,
    chains: tuple[int, int],
    counts: Array,
    rng: Rng,
) -> tuple[float, float]:
    """Estimate the log evidence of one system and family from posterior draws, and its error.

    Parameters
    ----------
    fields : Fields
        Prior of the hyperparameters of the family.
    draws : Nodes
        Chains one after the other.
    chains : (int, int)
        Number of chains and of draws in each.
    counts : ndarray, shape (questions, 2)
        Wrong and right trials, or fractions of trials.
    rng : numpy.random.Generator
        For the proposals.
    """
    states, repeats = np.unique(counts, axis=0, return_counts=True)

    def log_density(theta: Array) -> Array:
        logs = fields.log_density(theta)
        step = max(1, _MAX_FLOATS_PER_BLOCK // len(states))
        for start in range(0, len(theta), step):
            block = slice(start, start + step)
            parts = log_parts(difficulty_of(fields.values(theta[block])), states)
            logs[block] += np.asarray(logsumexp(parts, axis=2) @ repeats)
        return logs

    points = _coordinates(fields, draws).reshape(*chains, -1)
    half = chains[1] // 2
    first, second = points[:, :half], points[:, half : 2 * half]
    pairs = (first, second), (second, first)
    values, errors = np.transpose([_bridge(log_density, *pair, rng) for pair in pairs])
    return float(values.mean()), float(np.hypot(*errors) / 2.0)


def _coordinates(fields: Fields, draws: Nodes) -> Array:
    """Unconstrained coordinates of draws, (draws, coordinates)."""
    values = field_values(draws)
    columns = [
        field.distribution.coordinates(values[field.name]).reshape(len(draws), -1)
        for field in fields
    ]
    return np.minimum(np.concatenate(columns, axis=1), _LARGEST_LOGIT)


def _bridge(
    log_density: Callable[[Array], Array], pilot: Array, draws: Array, rng: Rng
) -> tuple[float, float]:
    """Log normalising constant, and its standard error, from draws (chain, draw, coordinate).

    The error is that of Frühwirth-Schnatter 2004, with effective sizes: draws of a chain repeat one
    another.
    """
    kernels, flat = (points.reshape(-1, points.shape[2]) for points in (pilot, draws))
    evenly = np.linspace(0, len(kernels) - 1, min(_MAX_KERNELS, len(kernels))).astype(int)
    proposal = gaussian_kde(kernels[evenly].T, bw_method="silverman")
    proposed = proposal.resample(_PROPOSALS_PER_DRAW * len(flat), rng).T
    # Logs of q over g.
    draw_ratios, proposal_ratios = (
        log_density(np.asarray(theta)) - proposal.logpdf(theta.T) for theta in (flat, proposed)
    )
    ends = np.quantile(draw_ratios, [0.001, 0.999])
    size = float(az.ess(np.clip(draw_ratios, *ends).reshape(draws.shape[:2])))
    share = np.log([size, len(proposed)]) - np.log(size + len(proposed))
    log_z = float(np.median(draw_ratios))
    for _ in range(_MAX_ITERATIONS):
        before = log_z
        above = logsumexp(
            proposal_ratios - np.logaddexp(share[0] + proposal_ratios - log_z, share[1])
        )
        below = logsumexp(-np.logaddexp(share[0] + draw_ratios - log_z, share[1]))
        log_z = float(above - np.log(len(proposed)) - below + np.log(len(flat)))
        if abs(log_z - before) < _LOG_EVIDENCE_TOL:
            break
    bridged = proposal_ratios - log_z
    proposal_terms = np.exp(bridged - np.logaddexp(share[0] + bridged, share[1]))
    draw_terms = np.exp(-np.logaddexp(share[0] + draw_ratios - log_z, share[1]))
    variance = proposal_terms.var() / proposal_terms.mean() ** 2 / proposal_terms.size
    size = min(float(az.ess(draw_terms.reshape(draws.shape[:2]), method="mean")), draw_terms.size)
    return log_z, float(np.sqrt(variance + draw_terms.var() / draw_terms.mean() ** 2 / size))
