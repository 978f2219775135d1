"""Priors of models with covariates, with groups, or with difficulty that systems share."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.arguments import real_number
from bayesatk.priors.checks import beta_parameters, positive_numbers, spread


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
class RegressionPrior:
    """Prior of how the success probability of questions depends on their covariates.

    ``p ~ Beta`` with mean ``expit(b_0 + x b)`` and one intraclass correlation. At average
    covariates the mean is ``Beta(*mean)`` and the correlation ``Beta(*icc)``, as in `HyperPrior`.
    Slopes are normal around 0: in the basis of covariates that are uncorrelated over the questions
    and have sd 1, each has the sd `slope_sd`, in logits. That is a g-prior (Zellner 1986): units of
    a covariate, the reference level of a category and other ways to write the same model do not
    matter.

    Parameters
    ----------
    mean, icc : (float, float)
        Beta parameters of the priors of the mean at average covariates and of the intraclass
        correlation; (1, 1) is uniform.
    slope_sd : float
        Prior sd of a slope, in logits for each standard deviation of a covariate. The default 2.5
        allows both no effect and a success rate that goes from 1% to 99% over the range of the
        covariate.

    See Also
    --------
    bayesatk.models.build_regression : the model.

    Examples
    --------
    >>> RegressionPrior()
    RegressionPrior(mean=(1.0, 1.0), icc=(1.0, 1.0), slope_sd=2.5)
    """

    mean: tuple[float, float] = (1.0, 1.0)
    icc: tuple[float, float] = (1.0, 1.0)
    slope_sd: float = 2.5

    def __post_init__(self) -> None:
        beta_parameters(self, "mean")
        beta_parameters(self, "icc")
        positive_numbers(self, "slope_sd")

    def vector(self, categories: int = 2) -> NDArray[np.float64]:
        """Concentration of the mean at average covariates: of wrong and of right."""
        return spread(self.mean[::-1], categories, "mean")


@dataclass(frozen=True)
class GroupedPrior:
    """Prior of the difficulty of questions in groups, for `bayesatk.evaluate` with ``group=``.

    Within a group success probabilities are ``p ~ Beta``. Each group has its own mean, and all
    groups share one intraclass correlation ``icc = 1/(alpha + beta + 1)``. The logits of the means
    are ``Normal(logit(typical_p), group_sd)``. A priori ``typical_p ~ Beta(*mean)``, ``icc ~
    Beta(*icc)``, and ``group_sd`` is half-normal.

    Parameters
    ----------
    mean, icc : (float, float)
        Beta parameters; (1, 1) is uniform.
    sd : float
        Scale of the half-normal of ``group_sd``, in logits. Where ``group_sd`` is 1, two of three
        groups have means within 0.27 and 0.73 around a typical one of 0.5.

    See Also
    --------
    bayesatk.models.build_grouped : the model.

    Examples
    --------
    >>> GroupedPrior()
    GroupedPrior(mean=(1.0, 1.0), icc=(1.0, 1.0), sd=1.0)
    """

    mean: tuple[float, float] = (1.0, 1.0)
    icc: tuple[float, float] = (1.0, 1.0)
    sd: float = 1.0

    def __post_init__(self) -> None:
        beta_parameters(self, "mean")
        beta_parameters(self, "icc")
        positive_numbers(self, "sd")

    def vector(self, categories: int = 2) -> NDArray[np.float64]:
        """Concentration of the mean of a typical group: of wrong and of right."""
        return spread(self.mean[::-1], categories, "mean")


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
            given = getattr(self, name)
            if not isinstance(given, tuple | list) or len(given) != size:
                raise ValueError(f"prior: {name} must be {size} numbers; got {given!r:.80}.")
            values = tuple(real_number(f"prior: {name}", one) for one in given)
            if not (np.isfinite(values).all() and min(values[1:]) > 0):
                raise ValueError(
                    f"prior: {name} must be finite, with sds > 0 after the mean; got {values}. "
                    "LeaderboardPrior() has useful defaults."
                )
            object.__setattr__(self, name, values)
        positive_numbers(self, "spread_sd")
