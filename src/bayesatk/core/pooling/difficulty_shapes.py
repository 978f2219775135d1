"""Difficulty families given their hyperparameters: priors, and the distributions of p.

Coordinates of the Betas come first, the logits of mean and icc of one after the other, and then
those of the shares; `bayesatk.priors.fields` has the same in another order.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayesatk.core.pooling.nodes import Nodes
from bayesatk.metrics.credit import Array
from bayesatk.priors import HyperPrior
from bayesatk.priors.fields import Dirichlet, Fields


@dataclass(frozen=True)
class Shape(ABC):
    """A family given its hyperparameters, which are unconstrained numbers."""

    prior: HyperPrior
    family: ClassVar[str]

    @abstractmethod
    def nodes(self, theta: Array) -> Nodes:
        """Return the distributions of p, equally probable."""

    @cached_property
    def _fields(self) -> Fields:
        return self.prior.fields(self.family)

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """Coordinate of the fields that each coordinate here is."""
        span = {name: np.r_[which] for name, which in self._fields.slices.items()}
        betas = np.stack([span.pop("mean"), span.pop("icc")], axis=1).ravel()
        return np.concatenate([betas, *span.values()])

    def _declared(self, theta: Array) -> Array:
        return theta[:, np.argsort(self._order)]

    @property
    def size(self) -> int:
        """Number of hyperparameters."""
        return self._fields.size

    def from_uniform(self, u: Array) -> Array:
        """Draws from the prior, of uniform numbers."""
        return self._fields.from_uniform(self._declared(u))[:, self._order]

    def log_prior(self, theta: Array) -> Array:
        """Log prior density."""
        return self._fields.log_density(self._declared(theta))


class Inflated(Shape):
    """``logit m, logit r, log(never / between), log(always / between)``."""

    family = "inflated"

    def nodes(self, theta: Array) -> Nodes:
        """Return the distributions of p, equally probable."""
        share = Dirichlet(self.prior.atoms).values(theta[:, 2:])
        return Nodes.mixed([_betas(theta)], share[:, 2:], share[:, :2])


class Mixture(Shape):
    """``logit m, logit r`` of the lower Beta and of the upper, and the logit of the lower's share.

    They are told apart by their means: twice the density where they are in order, zero elsewhere.
    """

    family = "mixture"

    def nodes(self, theta: Array) -> Nodes:
        """Return the distributions of p, equally probable."""
        share = np.stack([expit(theta[:, 4]), expit(-theta[:, 4])], axis=1)
        betas = [_betas(theta), _betas(theta[:, 2:])]
        return Nodes.mixed(betas, share, np.zeros((len(theta), 2)))


SHAPES: dict[str, type[Shape]] = {shape.family: shape for shape in (Inflated, Mixture)}


def _betas(theta: Array) -> Nodes:
    return Nodes.of(theta[:, 0], theta[:, 1], np.full(len(theta), 1.0 / len(theta)))
