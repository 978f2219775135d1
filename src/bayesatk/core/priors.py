"""Priors: definitions shared by the closed forms and the PyMC models."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

Pooling = Literal["none", "partial", "complete"]


@dataclass(frozen=True)
class BetaPrior:
    """Prior of a success probability, ``p ~ Beta(alpha, beta)``, for pooling none and complete.

    Examples
    --------
    >>> BetaPrior()
    BetaPrior(alpha=1.0, beta=1.0)
    """

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite([self.alpha, self.beta]).all() and min(self.alpha, self.beta) > 0):
            raise ValueError(
                f"prior: alpha and beta must be finite and > 0; got {self.alpha}, {self.beta}. "
                "BetaPrior(1, 1) is uniform."
            )


@dataclass(frozen=True)
class HyperPrior:
    """Prior of the difficulty distribution, for pooling partial.

    Questions have ``p ~ Beta`` with mean ``m`` and intraclass correlation ``icc = 1/(alpha + beta
    + 1)``; a priori ``m ~ Beta(*mean)`` and ``icc ~ Beta(*icc)``.

    Parameters
    ----------
    mean, icc : (float, float)
        Beta parameters. ``icc=(0.5, -0.5)`` with a uniform mean is the improper prior ``(alpha +
        beta)^(-5/2)`` of Bayesian Data Analysis (3rd ed., eq. 5.9).

    Examples
    --------
    >>> HyperPrior().proper, HyperPrior.bda3().proper
    (True, False)
    """

    mean: tuple[float, float] = (1.0, 1.0)
    icc: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        for name, values in (("mean", self.mean), ("icc", self.icc)):
            improper = name == "icc" and values[0] > 0 and values[1] == -values[0]
            if len(values) != 2 or not (
                np.isfinite(values).all() and (min(values) > 0 or improper)
            ):
                raise ValueError(
                    f"prior: {name} must be two Beta parameters > 0; got {values}. (1, 1) is "
                    "uniform; HyperPrior.bda3() is the improper prior of the book."
                )

    @classmethod
    def bda3(cls) -> "HyperPrior":
        """Return the prior ``p(alpha, beta) ~ (alpha + beta)^(-5/2)``."""
        return cls(icc=(0.5, -0.5))

    @property
    def proper(self) -> bool:
        """Whether the prior integrates to one."""
        return self.icc[1] > 0


Prior = BetaPrior | HyperPrior


def power_scaled(prior: Prior, power: float) -> Prior:
    """Return the prior with its density on the logit scale raised to a power.

    That multiplies every Beta parameter by the power: ``power=0.5`` halves what the prior says.

    Examples
    --------
    >>> power_scaled(BetaPrior(1.0, 2.0), 0.5)
    BetaPrior(alpha=0.5, beta=1.0)
    """
    if isinstance(prior, BetaPrior):
        return BetaPrior(prior.alpha * power, prior.beta * power)
    mean, icc = ((a * power, b * power) for a, b in (prior.mean, prior.icc))
    return HyperPrior(mean, icc)


def resolve_prior(pooling: Pooling, prior: Prior | None) -> Prior:
    """Return the prior for a kind of pooling: the one given, checked, or the uniform default.

    Examples
    --------
    >>> resolve_prior("none", None)
    BetaPrior(alpha=1.0, beta=1.0)
    """
    if pooling not in ("none", "partial", "complete"):
        raise ValueError(f"pooling must be 'none', 'partial' or 'complete'; got {pooling!r}.")
    needed = HyperPrior if pooling == "partial" else BetaPrior
    if prior is None:
        return needed()
    if not isinstance(prior, needed):
        raise TypeError(
            f"prior for pooling={pooling!r} must be a {needed.__name__}; got {prior!r}."
        )
    return prior


def prior_from(described: Mapping[str, Any]) -> Prior:
    """Return the prior that `describe_prior` described.

    Examples
    --------
    >>> prior_from(describe_prior(BetaPrior(2.0, 3.0)))
    BetaPrior(alpha=2.0, beta=3.0)
    """
    if described["kind"] == "BetaPrior":
        return BetaPrior(described["alpha"], described["beta"])
    return HyperPrior(tuple(described["mean"]), tuple(described["icc"]))


def describe_prior(prior: Prior) -> dict[str, object]:
    """Return the prior as plain data, for the attributes of a result."""
    return {"kind": type(prior).__name__, **asdict(prior)}
