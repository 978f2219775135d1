"""A model of random guessers, and draws of the best of them."""

import numpy as np
import pymc as pm
import xarray as xr

from bayesatk._tools.messages import ArgumentError
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.data.chances import check_times, success_probabilities
from bayesatk.results.schema import CHAINS, chain_dataset


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
