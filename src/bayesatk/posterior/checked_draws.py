"""What ArviZ checks the model of an evaluated result with, from the posterior of each system.

Log-likelihoods are of a question's counts given the drawn hyperparameters, with its own p
integrated: on draws of p itself, Pareto-smoothed importance sampling is wrong by hundreds.
Replicates are of questions like these, whose p is drawn anew, so that leave-one-out compares like
with like.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk.core.pooling.marks import question_rates
from bayesatk.data.study import Study
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import Draws, Posterior
from bayesatk.posterior.vote_posterior import VotePosterior
from bayesatk.priors import HyperPrior
from bayesatk.results.checking import PRIOR_DRAWS, likelihood_kept, replicated

_PROBABILITY_FLOOR = 5e-324  # the smallest positive float: its logarithm is finite


@dataclass(frozen=True)
class Checks:
    """Draws of one system from the prior, and replicated counts.

    Parameters
    ----------
    log_prior : mapping {name: ndarray}
        Log density of the prior at the draws of the posterior, (draws,), or of p by question.
    replicates : ndarray of int, shape (draws, questions, ...), optional
        Counts of new questions, a set for every draw.
    prior : Draws, optional
        From the prior, where it is proper.
    prior_replicates : ndarray of int, shape (draws, questions, ...), optional
    """

    log_prior: Mapping[str, Array]
    replicates: Ints | None = None
    prior: Draws | None = None
    prior_replicates: Ints | None = None


def checked_draws(
    study: Study, posterior: Posterior, draws: int, rng: Rng, keep: Sequence[str]
) -> tuple[Draws, Checks | None]:
    """Draw from the posterior of a system, and from its prior for model checks.

    Parameters
    ----------
    study : Study
    posterior : Posterior
    draws : int
    rng : numpy.random.Generator
    keep : sequence of str
        Optional contents of the result, as `bayesatk.evaluate` takes them.

    Returns
    -------
    Draws
    Checks or None
        None for votes between answers, whose data are not counts.
    """
    if isinstance(posterior, VotePosterior):
        return posterior.draw(draws, rng, "p" in keep), None
    model, unpooled = posterior.model, study.pooling == "none"
    size = draws * study.outcomes.trials.size
    replicate_rng, prior_rng = rng.spawn(2)
    counted = replicated(study, draws, keep)
    drawn = posterior.draw(
        draws, rng, "p" in keep or (unpooled and counted),
        likelihood=likelihood_kept(size, keep), new=replicate_rng if counted else None,
    )  # fmt: skip
    stored = drawn if "p" in keep else replace(drawn, p=None)
    stored = replace(stored, new_p=None)
    if unpooled and not counted:  # p of every question are too many
        return stored, Checks({})
    log_prior = drawn.log_prior
    if unpooled and drawn.p is not None:
        log_prior = {"p": _log_density(study.scale.vectors(drawn.p), _concentration(model))}
    elif study.pooling == "complete":
        vectors = study.scale.vectors(drawn.hyper["mean_p"])
        log_prior = {"mean_p": _log_density(vectors, _concentration(model))}
    prior = None
    if not isinstance(study.prior, HyperPrior) or study.prior.proper:
        prior = posterior.draw_prior(PRIOR_DRAWS, prior_rng, counted)
    return stored, Checks(
        log_prior, _replicates(study, model, drawn, replicate_rng), prior,
        _replicates(study, model, prior, prior_rng) if counted else None,
    )  # fmt: skip


def _replicates(study: Study, model: CountModel, drawn: Draws | None, rng: Rng) -> Ints | None:
    """Draw the counts of new questions, or marks of them where a judge errs."""
    if drawn is None or drawn.new_p is None:
        return None
    trials = model.states.trials[model.states.which].astype(np.int64)
    counts = study.scale.draw_counts(trials, drawn.new_p, rng)
    if model.judge is None:
        return counts
    s, f = question_rates(model.judge.rows(drawn.hyper), len(trials), rng)
    return np.asarray(rng.binomial(counts, s) + rng.binomial(trials - counts, f))


def _concentration(model: CountModel) -> Array:
    """Dirichlet parameters of the prior of p, by question without pooling; (..., categories).

    Discounted prior trials are part of it, unless a judge marked them.
    """
    if model.judge is not None:
        return model.alpha
    states = model.states
    if model.pooling == "complete":
        return model.alpha + states.count @ states.prior
    return model.alpha + states.prior[states.which]


def _log_density(p: Array, alpha: Array) -> Array:
    """Log density of logits of Dirichlet probabilities (draws, ..., categories)."""
    constant = gammaln(alpha.sum(axis=-1)) - gammaln(alpha).sum(axis=-1)
    return (np.log(np.maximum(p, _PROBABILITY_FLOOR)) * alpha).sum(axis=-1) + constant
