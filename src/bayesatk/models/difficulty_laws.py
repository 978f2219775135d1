"""Distributions of the success probabilities of questions, as PyMC variables.

Parameters have the shape (system, question), or (system, 1) where questions are alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pymc as pm
import pytensor.tensor as pt

Tensor = Any  # a symbolic array: PyTensor has no types to check
STIRLING_FROM = 1e4  # parameter from which Stirling's formula is right to 1e-14


@dataclass(frozen=True)
class Betas:
    """A mixture of Beta distributions and of atoms at p = 0 and p = 1.

    Parameters
    ----------
    shapes : tuple of (a, b)
        Parameters of every Beta.
    log_shares : tuple of tensor
        Log share of every Beta, then of the atoms at 0 and at 1, if any.
    """

    shapes: tuple[tuple[Tensor, Tensor], ...]
    log_shares: tuple[Tensor, ...]

    @property
    def atoms(self) -> tuple[Tensor, ...]:
        """Log shares of p = 0 and p = 1; empty without atoms."""
        return self.log_shares[len(self.shapes) :]

    def observe(self, name: str, trials: Tensor, **options: Any) -> Tensor:
        """Add numbers of successes with these probabilities, integrated, to the model."""
        (a, b), *_ = self.shapes
        if len(self.log_shares) == 1:
            return pm.BetaBinomial(name, alpha=a, beta=b, n=trials, **options)
        parts = [pm.BetaBinomial.dist(a, b, trials) for a, b in self.shapes]
        parts += [pm.Binomial.dist(trials, p) for p, _ in zip((0.0, 1.0), self.atoms, strict=False)]
        shares = pt.stack([pt.exp(log) for log in self.log_shares], axis=-1)
        return pm.Mixture(name, w=shares, comp_dists=parts, **options)

    def log_parts(self, right: Tensor, wrong: Tensor) -> list[Tensor]:
        """Log probability of trials in their order, and of each Beta and atom."""
        logs = [
            log_rising(a, right) + log_rising(b, wrong) - log_rising(a + b, right + wrong)
            for a, b in self.shapes
        ]
        absent = [right, wrong][: len(self.atoms)]
        logs += [pt.switch(pt.eq(count, 0), 0.0, -pt.inf) for count in absent]
        return [log + share for log, share in zip(logs, self.log_shares, strict=True)]

    def log_ordered(self, right: Tensor, wrong: Tensor) -> Tensor:
        """Log probability of trials in their order, probabilities integrated."""
        return log_sum(self.log_parts(right, wrong))

    def given(self, right: Tensor, wrong: Tensor) -> "Betas":
        """Return the distributions given trials: Beta again, with other shares."""
        logs = self.log_parts(right, wrong)
        total = log_sum(logs)
        shapes = tuple((a + right, b + wrong) for a, b in self.shapes)
        return Betas(shapes, tuple(log - total for log in logs))

    def quantile(self, u: Tensor) -> Tensor:
        """Quantile of a uniform number, which selects a part and then a quantile of this part."""
        p, below, betas = pt.zeros_like(u), 0.0, len(self.shapes)
        for index, log_share in enumerate(self.log_shares):
            share = pt.exp(log_share)
            inside = pt.clip((u - below) / pt.maximum(share, 1e-300), 0.0, 1.0)
            end = float(index > betas)  # the atom at 0 is the first after the Betas
            value = pt.betaincinv(*self.shapes[index], inside) if index < betas else end
            p = pt.switch(u >= below, value, p)
            below = below + share
        return p

    def latent(self, name: str, **options: Any) -> Tensor:
        """Add p of every question to the model; of a mixture also its component, ``which``."""
        if len(self.log_shares) == 1:
            return pm.Beta(name, *self.shapes[0], **options)
        shares = pt.stack([pt.exp(log) for log in self.log_shares], axis=-1)
        component = pm.Categorical("which", shares, **options)
        values = [pm.Beta(f"{name}_{j}", *shape, **options) for j, shape in enumerate(self.shapes)]
        ends = [end for end, _ in zip((0.0, 1.0), self.atoms, strict=False)]
        p = sum(pt.eq(component, j) * value for j, value in enumerate([*values, *ends]))
        return pm.Deterministic(name, p, **options)

    @property
    def parameters(self) -> list[Tensor]:
        """All parameters, in the order that `like` takes."""
        return [*(number for shape in self.shapes for number in shape), *self.log_shares]

    def like(self, parameters: Sequence[Tensor]) -> "Betas":
        """Return a mixture of as many Betas and atoms with other parameters."""
        width = len(self.shapes)
        shapes = tuple((parameters[2 * j], parameters[2 * j + 1]) for j in range(width))
        return replace(self, shapes=shapes, log_shares=tuple(parameters[2 * width :]))

    def draw(self, size: Any) -> Tensor:
        """Return p as random variables without a name."""
        return self.quantile(pm.Uniform.dist(0.0, 1.0, size=size))


@dataclass(frozen=True)
class Known:
    """Probabilities that are variables of the model."""

    p: Tensor

    def log_ordered(self, right: Tensor, wrong: Tensor) -> Tensor:
        """Log probability of trials in their order."""
        return right * pt.log(self.p) + wrong * pt.log1p(-self.p)

    def given(self, right: Tensor, wrong: Tensor) -> "Known":
        """Return the probabilities themselves: trials do not change them."""
        return self

    def observe(self, name: str, trials: Tensor, **options: Any) -> Tensor:
        """Add numbers of successes to the model."""
        return pm.Binomial(name, n=trials, p=self.p, **options)

    @property
    def parameters(self) -> list[Tensor]:
        """The probabilities."""
        return [self.p]

    def like(self, parameters: Sequence[Tensor]) -> "Known":
        """Return other probabilities."""
        return Known(parameters[0])

    def draw(self, size: Any) -> Tensor:
        """Return the probabilities."""
        return self.p


def log_sum(logs: Sequence[Tensor]) -> Tensor:
    """Log of the sum of exponentials, of which the first is above zero."""
    total, *remaining = logs
    for log in remaining:
        total = pt.maximum(total, log) + pt.log1p(pt.exp(-pt.abs(total - log)))
    return total


def log_rising(a: Tensor, n: Tensor) -> Tensor:
    r"""Log of the rising factorial :math:`a (a + 1) \dots (a + n - 1)`.

    It is :math:`\log\Gamma(a + n) - \log\Gamma(a)`. For large :math:`a` this difference loses its
    digits, and chains would get stuck at a rounding error; there Stirling's formula gives

    .. math:: n \log a + (a + n - \tfrac12) \log(1 + n / a) - n
              + \tfrac{1}{12} \left(\frac{1}{a + n} - \frac{1}{a}\right).
    """
    direct = pt.gammaln(a + n) - pt.gammaln(a)
    change = (a + n - 0.5) * pt.log1p(n / a) - n + (1.0 / (a + n) - 1.0 / a) / 12.0
    return pt.switch(a < STIRLING_FROM, direct, n * pt.log(a) + change)


def parameter_sum(icc: Tensor, nearest: float = 1e-10) -> Tensor:
    r"""Sum of the parameters of a Beta or Dirichlet, :math:`(1 - \rho) / \rho`.

    The intraclass correlation :math:`\rho` is kept `nearest` away from 0 and 1; nearer to them the
    likelihood no longer changes.
    """
    inside = pt.clip(icc, nearest, 1.0 - nearest)
    return (1.0 - inside) / inside
