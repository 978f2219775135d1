"""Difficulty families as PyMC variables.

Every family is a mixture of Betas and of atoms at 0 and 1 given its hyperparameters, so that the
success probabilities of questions can be integrated out of the likelihood of their counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.priors import HyperPrior

Tensor = Any  # a symbolic array: PyTensor has no types to check
_NEAR = 1e-12  # of an icc or a share to 0 or 1: beyond it the likelihood no longer changes
LEAST = 1e-100  # of a Beta parameter, so that its log-gamma is a number
_STIRLING = 1e4  # of a parameter from which Stirling's formula is right to 1e-14


@dataclass(frozen=True)
class Shape:
    """A difficulty distribution by system, as PyMC variables.

    Parameters
    ----------
    betas : list of (alpha, beta, log share)
        Each of shape (system,). The log share of a single Beta is 0.
    log_never, log_always : tensor, shape (system,), optional
        Of the shares of the atoms.
    """

    betas: list[tuple[Tensor, Tensor, Tensor | float]]
    log_never: Tensor | None = None
    log_always: Tensor | None = None

    def log_states(self, c: Tensor, n: Tensor, system: Tensor) -> Tensor:
        """Log probability of each state's trials in their order, success probability integrated."""
        terms = []
        for alpha, beta, log_share in self.betas:
            share = log_share if isinstance(log_share, float) else log_share[system]
            terms.append(share + log_beta_binomial(alpha[system], beta[system], c, n))
        total = terms[0] if len(terms) == 1 else pt.logaddexp(*terms)
        atoms = ((self.log_never, pt.eq(c, 0)), (self.log_always, pt.eq(c, n)))
        for log_share, explains in atoms:
            if log_share is not None:
                total = pt.switch(explains, pt.logaddexp(total, log_share[system]), total)
        return total


def add_hyperparameters(prior: HyperPrior, family: str) -> Shape:
    """Add the hyperparameters of a family, by system, to the model in context."""
    if family not in _FAMILIES:
        raise ArgumentError(
            Argument("difficulty"),
            f": {family!r} has no PyMC model; those that have are {', '.join(_FAMILIES)}. "
            f"Pass them, as in difficulty={list(_FAMILIES)!r}.",
        )
    return _FAMILIES[family](prior)


def _beta(prior: HyperPrior) -> Shape:
    mean = _beta_variate("mean_p", prior.mean)
    if prior.proper:
        icc = _beta_variate("icc", prior.icc)
    else:
        icc = pm.Uniform("icc", 0.0, 1.0, dims="system")
        a, b = prior.icc
        improper = (a - 1.0) * pt.log(icc) + (b - 1.0) * pt.log1p(-icc)
        pm.Potential("improper_icc_prior", improper)
    return Shape([(*beta_parameters(mean, icc), 0.0)])


def _inflated(prior: HyperPrior) -> Shape:
    """Add a Beta and two atoms: Dirichlet shares as two independent Betas, faster for NUTS."""
    mean = _beta_variate("beta_mean", prior.mean)
    icc = _beta_variate("beta_icc", prior.icc)
    never, always, between = prior.atoms
    first = _inside(_beta_variate("never", (never, always + between)))
    rest = _inside(_beta_variate("always_of_rest", (always, between)))
    own = pt.log1p(-first) + pt.log1p(-rest)
    betas = [(*beta_parameters(mean, icc), own)]
    return Shape(betas, pt.log(first), pt.log1p(-first) + pt.log(rest))


def _mixture(prior: HyperPrior) -> Shape:
    """Add two Betas in no order: a posteriori the order of their means tells them apart.

    Sampled in order of their means, NUTS could not get from "nearly all questions belong to the
    upper Beta" to "nearly all belong to the lower one", which without order is one region.
    """
    pm.modelcontext(None).add_coord("part", ("first", "second"))
    mean = _beta_variate("part_mean", prior.mean, "part")
    icc = _beta_variate("part_icc", prior.icc, "part")
    a, b = prior.share
    if a == b:
        first = _beta_variate("first_share", prior.share)
    else:  # the prior is that of the share of the lower one
        first = pm.Uniform("first_share", 0.0, 1.0, dims="system")
        lower = _inside(pt.switch(mean[:, 0] < mean[:, 1], first, 1.0 - first))
        pm.Potential("share_prior", pm.logp(pm.Beta.dist(np.array(a), np.array(b)), lower))
    inside = _inside(first)
    logs = pt.log(inside), pt.log1p(-inside)
    pairs = [beta_parameters(mean[:, i], icc[:, i]) for i in range(2)]
    return Shape([(*pair, log) for pair, log in zip(pairs, logs, strict=True)])


_FAMILIES: dict[str, Callable[[HyperPrior], Shape]] = {
    "beta": _beta,
    "inflated": _inflated,
    "mixture": _mixture,
}


def _beta_variate(name: str, parameters: tuple[float, float], *dims: str) -> Tensor:
    # PyTensor works out the log-gammas of plain numbers that single precision holds in single
    # precision: evidence would be wrong by 1e-7, and by much more where parameters are large.
    alpha, beta = (np.array(one, np.float64) for one in parameters)
    return pm.Beta(name, alpha, beta, dims=("system", *dims))


def _inside(share: Tensor) -> Tensor:
    return pt.clip(share, _NEAR, 1.0 - _NEAR)


def beta_parameters(mean: Tensor, icc: Tensor) -> tuple[Tensor, Tensor]:
    """Beta parameters of a mean and an intraclass correlation."""
    total = concentration(icc)
    return pt.maximum(mean * total, LEAST), pt.maximum((1.0 - mean) * total, LEAST)


def concentration(icc: Tensor) -> Tensor:
    """Sum of the parameters of a Beta or Dirichlet with an intraclass correlation."""
    inside = _inside(icc)
    return (1.0 - inside) / inside


def log_beta_binomial(a: Tensor, b: Tensor, c: Tensor, n: Tensor) -> Tensor:
    """Log probability of trials in their order, the success probability integrated."""
    return log_rising(a, c) + log_rising(b, n - c) - log_rising(a + b, n)


def log_rising(a: Tensor, n: Tensor) -> Tensor:
    """Log of ``a (a + 1) ... (a + n - 1)``.

    The difference of two log-gammas, but for large ``a``, where nothing but rounding errors would
    be left of it, and chains get stuck at one: there by Stirling's formula.
    """
    direct = pt.gammaln(a + n) - pt.gammaln(a)
    change = (a + n - 0.5) * pt.log1p(n / a) - n + (1.0 / (a + n) - 1.0 / a) / 12.0
    return pt.switch(a < _STIRLING, direct, n * pt.log(a) + change)
