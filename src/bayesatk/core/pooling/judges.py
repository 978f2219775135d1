"""Rates of a judge as hyperparameters: their prior, and the rates at points."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from bayesatk._tools.arrays import Array
from bayesatk.judge_error import RATE_ICC, RATE_ICC_PRIOR, RATES, JudgeError
from bayesatk.priors.fields import Beta, Field, Fields

_KNOWN = 1e-9  # sd of a rate that is as good as known


@dataclass(frozen=True)
class JudgeRates:
    """What is not known of the judge of a system.

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
        """The rates, where the prior leaves next to nothing open."""
        shapes = self.error.shapes
        widest = max(np.sqrt(a * b / (a + b + 1.0)) / (a + b) for a, b in shapes)
        (a, b), (c, d) = shapes
        return (a / (a + b), c / (c + d)) if widest < _KNOWN else None

    @property
    def fields(self) -> tuple[Field, ...]:
        """Prior of what is not known; nothing where the rates are as good as known."""
        if self.known is not None:
            return ()
        rates = [
            Field(name, Beta(*shape)) for name, shape in zip(RATES, self.error.shapes, strict=True)
        ]
        icc = [Field(RATE_ICC, Beta(*RATE_ICC_PRIOR))] if self.varying else []
        return (*rates, *icc)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what results report."""
        return (*RATES, RATE_ICC) if self.varying and self.known is None else RATES

    def rows(self, values: Mapping[str, Array]) -> Array:
        """Rates as rows of `bayesatk.core.pooling.marks`, of what results report."""
        return np.stack([values[name] for name in self.names], axis=1)

    def reported(self, theta: Array, fields: Fields) -> dict[str, Array]:
        """Return what results report of the rates at points, by name; (points,)."""
        if self.known is not None:
            return {name: np.full(len(theta), rate)
                    for name, rate in zip(RATES, self.known, strict=True)}  # fmt: skip
        return {name: expit(theta[:, fields.slices[name]][:, 0]) for name in self.names}
