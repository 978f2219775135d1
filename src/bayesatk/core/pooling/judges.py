"""Sensitivity and false positive rate of a judge as hyperparameters: their prior and values."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from bayesatk._tools.arrays import Array
from bayesatk.judge_error import RATE_ICC, RATE_ICC_PRIOR, RATES, JudgeError
from bayesatk.priors.fields import Beta, Field, Fields

_KNOWN_RATE_SD_MAX = 1e-9  # prior sd below which a rate counts as known


@dataclass(frozen=True)
class JudgeRates:
    """Rates of the judge of a system, with their prior.

    Parameters
    ----------
    error : JudgeError
    varying : bool
        Whether rates differ between questions.
    """

    error: JudgeError
    varying: bool = False

    @cached_property
    def known(self) -> tuple[float, float] | None:
        """Means of the rates where their prior sds are negligible; None where a rate is unknown."""
        shapes = self.error.shapes
        widest = max(np.sqrt(a * b / (a + b + 1.0)) / (a + b) for a, b in shapes)
        (a, b), (c, d) = shapes
        return (a / (a + b), c / (c + d)) if widest < _KNOWN_RATE_SD_MAX else None

    @property
    def fields(self) -> tuple[Field, ...]:
        """Priors of the rates and their intraclass correlation; none where the rates are known."""
        if self.known is not None:
            return ()
        rates = [
            Field(name, Beta(*shape)) for name, shape in zip(RATES, self.error.shapes, strict=True)
        ]
        icc = [Field(RATE_ICC, Beta(*RATE_ICC_PRIOR))] if self.varying else []
        return (*rates, *icc)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rates that results report."""
        return (*RATES, RATE_ICC) if self.varying and self.known is None else RATES

    def rows(self, values: Mapping[str, Array]) -> Array:
        """Stack reported rates as `bayesatk.core.pooling.marks` takes them; (points, columns)."""
        return np.stack([values[name] for name in self.names], axis=1)

    def reported(self, theta: Array, fields: Fields) -> dict[str, Array]:
        """Return the rates at points of the hyperparameters, by name, each of shape (points,)."""
        if self.known is not None:
            return {
                name: np.full(len(theta), rate)
                for name, rate in zip(RATES, self.known, strict=True)
            }
        return {name: expit(theta[:, fields.slices[name]][:, 0]) for name in self.names}

    def at(self, theta: Array, fields: Fields) -> Array:
        """Return the rates at points as `rows` stacks them."""
        return self.rows(self.reported(theta, fields))
