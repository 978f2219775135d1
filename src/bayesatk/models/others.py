"""Models beside the program: a change of all success rates between two days, random guessers."""

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr

from bayesatk._tools.messages import ArgumentError
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.data.chances import check_times, success_probabilities
from bayesatk.priors import HyperPrior
from bayesatk.results.schema import CHAINS, chain_dataset
from bayesatk.results.selection import read_days


def build_change_point(
    outcomes_by_day: object,
    *,
    days: Sequence[object] | None = None,
    prior: HyperPrior | None = None,
    sd: float = 1.0,
    prob_change: float = 0.5,
) -> pm.Model:
    """Build the model of `bayesatk.decide.change_point`; the day of a change is summed over.

    Parameters
    ----------
    outcomes_by_day, days, prior, sd, prob_change
        As in `bayesatk.decide.change_point`.

    Returns
    -------
    pymc.Model
        Variables ``mean_p`` and ``icc`` of the difficulty distribution before a change,
        ``p(question)`` before it, ``shift`` of all logits, and ``log_change(change)``: the log
        joint density given no change ("none") or a change on each day. Its softmax, averaged over
        draws, is the posterior of the day.

    See Also
    --------
    bayesatk.decide.change_point : the same posterior by quadrature.

    Notes
    -----
    ``shift`` has its prior where there is no change, so that its posterior here is a mixture of
    that prior and of the ``shift`` of `bayesatk.decide.change_point`.

    Examples
    --------
    >>> model = build_change_point({"Mon": [[1, 1]], "Tue": [[0, 1]]})
    >>> [variable.name for variable in model.free_RVs]
    ['mean_p', 'icc', 'p', 'shift']
    """
    questions, labels, successes, trials = read_days(outcomes_by_day, days)
    hyperprior = prior or HyperPrior(families="beta")
    counts = np.stack([successes, trials - successes])  # (outcome, question, day)
    # Sums of the days before a change and from it on, for every first day but the earliest.
    before = counts.cumsum(axis=2)[..., :-1]
    after = counts.sum(axis=2, keepdims=True) - before
    coords = {"question": questions, "change": ["none", *map(str, labels[1:])]}
    with pm.Model(coords=coords) as model:
        mean = pm.Beta("mean_p", *hyperprior.mean)
        icc = pm.Beta("icc", *hyperprior.icc)
        total = (1.0 - icc) / icc
        p = pm.Beta("p", mean * total, (1.0 - mean) * total, dims="question")
        shift = pm.Normal("shift", 0.0, sd)
        early = pt.stack([pt.log(p), pt.log1p(-p)])
        logit = early[0] - early[1] + shift
        late = pt.stack([-pt.softplus(-logit), -pt.softplus(logit)])
        same = (early * counts.sum(axis=2)).sum() + np.log1p(-prob_change)
        changed = (early[..., None] * before + late[..., None] * after).sum(axis=(0, 1))
        changed += np.log(prob_change / (len(labels) - 1))
        logs = pt.concatenate([pt.atleast_1d(same), changed])
        by_day = pm.Deterministic("log_change", logs, dims="change")
        pm.Potential("log_likelihood", pt.logsumexp(by_day))
    return model


def build_random_guessers(n: int, guess: object, t: int = 10) -> pm.Model:
    """Return a model of t guessers on n questions: Bernoulli guesses, the largest of their sums.

    Parameters
    ----------
    n : int
        Questions.
    guess : float, mapping or array_like
        Probability of guessing right, as in `bayesatk.guessing.max_random_baseline`.
    t : int
        Guessers.

    Returns
    -------
    pymc.Model
        Variables ``guess(configuration, question)``, ``correct(configuration)``,
        ``best_correct`` and ``best_accuracy``.

    See Also
    --------
    bayesatk.models.sample_random_baseline : samples it.
    bayesatk.guessing.MaxOrderStatisticPoissonBinomial : the exact distribution.

    Examples
    --------
    >>> model = build_random_guessers(4, 0.5, t=3)
    >>> [variable.name for variable in model.deterministics]
    ['correct', 'best_correct', 'best_accuracy']
    """
    values = success_probabilities(n, guess)
    if check_times(t) != int(t):
        raise ArgumentError("t", f" must be a whole number to be simulated; got {t}.")
    coords = {"configuration": np.arange(int(t)), "question": np.arange(len(values))}
    with pm.Model(coords=coords) as model:
        guessed = pm.Bernoulli("guess", values[None, :], dims=("configuration", "question"))
        correct = pm.Deterministic("correct", guessed.sum(axis=1), dims="configuration")
        best = pm.Deterministic("best_correct", correct.max())
        pm.Deterministic("best_accuracy", best / len(values))
    return model


def sample_random_baseline(
    n: int, guess: object, t: int = 10, *, draws: int = 1000, rng: RandomSource = None
) -> xr.DataTree:
    """Simulate the best of t random guessers from the PyMC model's prior.

    Parameters
    ----------
    n, p, t
        As in `bayesatk.models.build_random_guessers`.
    draws : int
        Draws per chain; the 4 chains are labels, all draws are independent.
    rng : int, numpy.random.Generator or None
        Seed.

    Returns
    -------
    xarray.DataTree
        Group ``prior`` with ``best_correct`` and ``best_accuracy`` (chain, draw): the variables of
        `bayesatk.guessing.random_baseline_distribution`, for `bayesatk.verify`.

    See Also
    --------
    bayesatk.guessing.random_baseline_distribution : the exact counterpart.
    bayesatk.verify : compares the two.

    Examples
    --------
    >>> tree = sample_random_baseline(4, 0.5, t=3, draws=5, rng=1)
    >>> dict(tree["prior"].sizes)
    {'chain': 4, 'draw': 5}
    """
    generator, seed = resolve_rng(rng)
    names = ["best_correct", "best_accuracy"]
    with build_random_guessers(n, guess, t):
        drawn = pm.sample_prior_predictive(
            CHAINS * draws, var_names=names, random_seed=int(generator.integers(2**31))
        )
    prior = drawn["prior"].to_dataset()
    drawn_values = {name: prior[name].values.reshape(CHAINS, draws) for name in names}
    group = chain_dataset(drawn_values, sampling="prior", inference_library="pymc")
    tree = xr.DataTree.from_dict({"/prior": group})
    tree.attrs.update({"method": "prior", "seed": seed})
    return tree
