"""Priors of models in which systems share the difficulty of questions."""

from dataclasses import dataclass

import numpy as np

from bayesatk._tools.arguments import real_number
from bayesatk.priors.checks import positive_numbers


@dataclass(frozen=True)
class CrossedPrior:
    """Prior of correlated logit-normal difficulties of several systems.

    ``mu ~ Normal(0, mu_sd)`` and ``sigma ~ HalfNormal(sigma_sd)`` for every system; the correlation
    of their difficulties is ``LKJ(eta)``.

    Parameters
    ----------
    mu_sd, sigma_sd : float
        Prior scales of the mean and of the sd of the logits of the success probabilities, > 0.
        With ``mu_sd=1.5`` the success probability of a question of average difficulty is nearly
        uniform.
    eta : float
        LKJ parameter: 1 is uniform over correlation matrices, a larger value prefers weak
        correlations.

    See Also
    --------
    bayesatk.models.build_crossed : the model.

    Examples
    --------
    >>> CrossedPrior()
    CrossedPrior(mu_sd=1.5, sigma_sd=2.5, eta=1.0)
    """

    mu_sd: float = 1.5
    sigma_sd: float = 2.5
    eta: float = 1.0

    def __post_init__(self) -> None:
        positive_numbers(self, "mu_sd", "sigma_sd", "eta")


@dataclass(frozen=True)
class LeaderboardPrior:
    """Prior of systems that share the difficulty of questions, for `bayesatk.leaderboard`.

    The difficulty ``z`` of a question is standard normal. Its success probability under system s is
    Beta with mean ``expit(mu_s + a_s z)`` and intraclass correlation ``rho_s``. Systems are
    exchangeable: each of ``mu_s``, ``log a_s`` and ``logit rho_s`` is normal around a mean that all
    systems share, and which is normal itself.

    Parameters
    ----------
    mean : (float, float)
        Prior mean and sd of the common mean of ``mu_s``, in logits.
    spread_sd : float
        Scale of the half-normal prior of the sd of ``mu_s`` between systems, in logits.
    discrimination : (float, float, float)
        For ``log a_s``: prior mean and sd of its common mean, and its sd between systems.
    interaction : (float, float, float)
        The same three numbers for ``logit rho_s``. ``rho_s`` measures how much a question is
        harder or easier for one system than its difficulty predicts; single trials of questions
        do not identify it.

    See Also
    --------
    bayesatk.models.build_one_factor : the model.

    Examples
    --------
    >>> LeaderboardPrior().spread_sd
    1.0
    """

    mean: tuple[float, float] = (0.0, 1.5)
    spread_sd: float = 1.0
    discrimination: tuple[float, float, float] = (0.4, 0.7, 0.4)
    interaction: tuple[float, float, float] = (-2.0, 1.2, 0.6)

    def __post_init__(self) -> None:
        for name, size in (("mean", 2), ("discrimination", 3), ("interaction", 3)):
            numbers = getattr(self, name)
            if not isinstance(numbers, tuple | list) or len(numbers) != size:
                raise ValueError(f"prior: {name} must be {size} numbers; got {numbers!r:.80}.")
            values = tuple(real_number(f"prior: {name}", number) for number in numbers)
            if not (np.isfinite(values).all() and min(values[1:]) > 0):
                raise ValueError(
                    f"prior: {name} must be finite, with sds > 0 after the mean; got {values}. "
                    "LeaderboardPrior() has useful defaults."
                )
            object.__setattr__(self, name, values)
        positive_numbers(self, "spread_sd")
