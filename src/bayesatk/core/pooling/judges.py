"""Rates of judges as hyperparameters: their prior, and the probabilities of marks at points."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol

import numpy as np
from scipy.special import expit, ndtr, ndtri

from bayesatk._tools.arrays import Array, Ints
from bayesatk.judge_error import (
    CORRELATION,
    GRADES,
    RATE_ICC,
    RATE_ICC_PRIOR,
    RATES,
    Grades,
    JudgeError,
    MarkedBy,
    Panel,
)
from bayesatk.priors.fields import Beta, Dirichlet, Field, Fields

_KNOWN = 1e-9  # sd of a rate that is as good as known
_NODES = 32  # of the factor that the errors of a panel have in common
_NEAREST = 1e-10  # of a rate, or a correlation, to 0 or 1
_BLOCK = 4_000_000  # floats in one array: 32 MB
CORRECTED = "corrected_sensitivity"  # of a judge of a panel, by Abbott's formula


class JudgeRates(Protocol):
    """What is not known of the judges of a system."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what results report."""
        ...

    def rows(self, values: Mapping[str, Array]) -> Array:
        """Rates as rows of `bayesatk.core.pooling.marks`, of what results report."""
        ...

    @property
    def fields(self) -> tuple[Field, ...]:
        """Prior of what is not known; nothing where all is as good as known."""
        ...

    def reported(self, theta: Array, fields: Fields) -> dict[str, Array]:
        """Return what results report of the rates at points, by name; (points, [judges])."""
        ...


@dataclass(frozen=True)
class OneJudge:
    """A judge who marks right or wrong.

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
        """As of `JudgeRates`."""
        if self.known is not None:
            return ()
        rates = [
            Field(name, Beta(*shape)) for name, shape in zip(RATES, self.error.shapes, strict=True)
        ]
        icc = [Field(RATE_ICC, Beta(*RATE_ICC_PRIOR))] if self.varying else []
        return (*rates, *icc)

    @property
    def names(self) -> tuple[str, ...]:
        """As of `JudgeRates`."""
        return (*RATES, RATE_ICC) if self.varying and self.known is None else RATES

    def rows(self, values: Mapping[str, Array]) -> Array:
        """Sensitivity and false positive rate; a third column says how much they differ."""
        return np.stack([values[name] for name in self.names], axis=1)

    def reported(self, theta: Array, fields: Fields) -> dict[str, Array]:
        """As of `JudgeRates`."""
        if self.known is not None:
            return {name: np.full(len(theta), rate)
                    for name, rate in zip(RATES, self.known, strict=True)}  # fmt: skip
        return {name: expit(theta[:, fields.slices[name]][:, 0]) for name in self.names}


@dataclass(frozen=True)
class PanelRates:
    """Several judges of the same trials, whose errors have a factor in common.

    Given the truth the marks of a trial are those of a Gaussian copula with one correlation, which
    is another one given right than given wrong; the rates of every judge are its margins (Qu, Tan
    and Kutner 1996, Biometrics 52, 797-810). A priori a judge's two rates are uniform where the
    sensitivity s exceeds the false positive rate f: f is Beta(1, 2), and (s - f) / (1 - f), by
    Abbott's formula the sensitivity corrected for chance, is uniform. Correlations are Beta(1, 2).

    Parameters
    ----------
    panel : Panel
    """

    panel: Panel

    @property
    def fields(self) -> tuple[Field, ...]:
        """As of `JudgeRates`."""
        judges = len(self.panel.judges)
        return (
            Field(RATES[1], Beta(1.0, 2.0), judges, "judge"),
            Field(CORRECTED, Beta(1.0, 1.0), judges, "judge"),
            Field(CORRELATION, Beta(1.0, 2.0), 2, "truth"),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """As of `JudgeRates`."""
        return (*RATES, CORRELATION)

    def rows(self, values: Mapping[str, Array]) -> Array:
        """Probabilities of patterns of marks, given wrong and then given right."""
        chances = [
            pattern_chances(values[name], values[CORRELATION][:, truth], self.panel.patterns)
            for truth, name in enumerate(RATES[::-1])
        ]
        return np.concatenate(chances, axis=1)

    def reported(self, theta: Array, fields: Fields) -> dict[str, Array]:
        """As of `JudgeRates`; correlations are of wrong and of right trials."""
        f, corrected, correlation = (
            expit(theta[:, fields.slices[field.name]]) for field in self.fields
        )
        return {RATES[0]: f + (1.0 - f) * corrected, RATES[1]: f, CORRELATION: correlation}


def pattern_chances(rates: Array, correlation: Array, patterns: Ints) -> Array:
    """Probability of every pattern of marks of a trial, given its truth.

    With ``z_j = sqrt(r) w + sqrt(1 - r) e_j``, w and e normal, judge j marks right where
    ``ndtr(z_j) < rate_j``; w is integrated by Gauss-Hermite quadrature.

    Parameters
    ----------
    rates : ndarray, shape (points, judges)
        Probabilities that the judges mark such a trial right.
    correlation : ndarray, shape (points,)
        r, of two judges.
    patterns : ndarray of int, shape (patterns, judges)
        1 right, 0 wrong, -1 not marked.

    Returns
    -------
    ndarray, shape (points, patterns)

    Examples
    --------
    >>> rates, both = np.array([[0.9, 0.8]]), np.array([[1, 1], [1, 0], [1, -1]])
    >>> pattern_chances(rates, np.zeros(1), both).round(6).tolist()
    [[0.72, 0.18, 0.9]]
    >>> half = np.full((1, 2), 0.5)  # 1/4 + arcsin(1/2) / (2 pi), Sheppard 1899
    >>> pattern_chances(half, np.full(1, 0.5), both[:1]).round(6).tolist()
    [[0.333333]]
    """
    w, weight = _factor_nodes()
    chances = np.empty((len(rates), len(patterns)))
    step = max(1, _BLOCK // (_NODES * len(patterns) * rates.shape[1]))
    for start in range(0, len(rates), step):
        points = slice(start, start + step)
        r = np.clip(correlation[points, None, None], 0.0, 1.0 - _NEAREST)
        bound = ndtri(np.clip(rates[points], _NEAREST, 1.0 - _NEAREST))[:, None]
        gap = (bound - np.sqrt(r) * w[:, None]) / np.sqrt(1.0 - r)
        of_mark = np.stack([ndtr(-gap), ndtr(gap), np.ones(gap.shape)])  # wrong, right, none
        total = np.ones((*gap.shape[:2], len(patterns)))
        for judge, marks in enumerate(patterns.T):
            total *= np.moveaxis(of_mark[marks, :, :, judge], 0, -1)
        chances[points] = np.einsum("pwl,w->pl", total, weight)
    return chances


@cache
def _factor_nodes() -> tuple[Array, Array]:
    """Nodes of the factor that marks have in common, and their probabilities."""
    w, weight = np.polynomial.hermite_e.hermegauss(_NODES)
    return w, weight / weight.sum()


@dataclass(frozen=True)
class GradeRates:
    """A judge who gives grades: their shares among wrong and among right trials are Dirichlet(1/2).

    Parameters
    ----------
    grades : Grades
    """

    grades: Grades

    @property
    def fields(self) -> tuple[Field, ...]:
        """As of `JudgeRates`."""
        jeffreys = Dirichlet((0.5,) * len(self.grades.levels))
        return tuple(Field(name, jeffreys) for name in GRADES)

    @property
    def names(self) -> tuple[str, ...]:
        """As of `JudgeRates`."""
        return GRADES

    def rows(self, values: Mapping[str, Array]) -> Array:
        """Probabilities of grades, given wrong and then given right."""
        return np.concatenate([values[name] for name in self.names], axis=1)

    def reported(self, theta: Array, fields: Fields) -> dict[str, Array]:
        """As of `JudgeRates`, by grade."""
        return {
            field.name: field.values(theta[:, fields.slices[field.name]]) for field in self.fields
        }


def judge_rates(judge: MarkedBy, varying: bool = False) -> JudgeRates:
    """Return what is not known of a judge, of several, or of who gave grades."""
    if isinstance(judge, JudgeError):
        return OneJudge(judge, varying)
    return PanelRates(judge) if isinstance(judge, Panel) else GradeRates(judge)
