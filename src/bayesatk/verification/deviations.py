"""Differences of the two results of a quantity, in standard errors, and what would be noticed.

Errors are those of draws with their effective sample size (Vehtari et al. 2021), and what the exact
result states of itself. A share of draws is tested by the binomial distribution of as many
independent draws, which is skewed where few are expected.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from scipy.special import betainc, ndtri
from scipy.stats import rankdata

from bayesatk._tools.arrays import Array
from bayesatk.verification.quantities import TOLERANCE, Quantity

_MAX_Z = 37.0  # standard errors, beyond which the normal tail underflows: 1e-300 there
_DENSITY_STEP = (
    0.02  # share of the width of an interval, over which the density at its end is taken
)
_POWER_QUANTILE = float(ndtri(0.9))  # of a power of 0.9


@dataclass(frozen=True)
class Deviations:
    """A quantity with the draws of the sampler.

    Parameters
    ----------
    quantity : Quantity
    """

    quantity: Quantity

    @cached_property
    def draws(self) -> xr.DataArray:
        """Draws of the sampler (chain, draw)."""
        return self.quantity.draws.transpose("chain", "draw").reset_coords(drop=True)

    @cached_property
    def mean(self) -> float:
        """Mean of the draws."""
        return float(self.draws.mean())

    @cached_property
    def sd(self) -> float:
        """Standard deviation of the draws."""
        return float(self.draws.std(ddof=1))

    @property
    def scale(self) -> float:
        """Exact standard deviation, where it is known."""
        return self.sd if np.isnan(self.quantity.sd) else self.quantity.sd

    @cached_property
    def ess(self) -> float:
        """Bulk effective sample size."""
        import arviz as az  # tables and reports of a verification do without

        return float(az.ess(self.draws, method="bulk"))

    @cached_property
    def errors(self) -> tuple[float, float]:
        """Standard errors of the differences of means and of sds.

        An sd that is itself estimated from n draws has a relative variance of about 1/(2n).
        """
        import arviz as az

        exact = self.quantity
        return (
            float(np.hypot(az.mcse(self.draws, method="mean"), self.scale / exact.mean_draws**0.5)),
            float(
                np.hypot(
                    az.mcse(self.draws, method="sd"), self.scale / (2.0 * exact.sd_draws) ** 0.5
                )
            ),
        )

    @property
    def sds(self) -> tuple[float, float]:
        """Standard deviations, exact and sampled; of a pair those of differences of joint draws."""
        if self.quantity.pair is None:
            return self.quantity.sd, self.sd
        exact, sampled = (float((own[0] - own[1]).std()) for own in self.quantity.pair)
        return exact, sampled

    @cached_property
    def _of_pair(self) -> tuple[float, float, float]:
        """Deviation of the correlation of a pair, its standard error, and the correlation.

        By Fisher's transformation of the correlation of normal scores, on which values of either
        system have no influence. Either side has drawn 200 correlation matrices or more, each about
        as uncertain as a correlation of so many questions.
        """
        assert self.quantity.pair is not None
        scores = [ndtri((rankdata(own, axis=1) - 0.5) / own.shape[1]) for own in self.quantity.pair]
        limit = 1.0 - TOLERANCE
        exact, sampled = (
            np.arctanh(np.clip(np.corrcoef(score)[0, 1], -limit, limit)) for score in scores
        )
        sizes = self.quantity.pair[0].shape[1], self.ess, 100.0 * self.quantity.questions
        error = np.sqrt(sum(1.0 / size for size in sizes))
        return float(sampled - exact) / error, error, float(np.tanh(exact))

    def z(self) -> dict[str, float]:
        """Return the largest difference of every kind, in standard errors; NaN: not tested."""
        exact, (of_mean, of_sd) = self.quantity, self.errors
        of_levels, of_ends = np.split(self._shares(), [len(exact.points)])
        return {
            "z_mean": (self.mean - exact.mean) / of_mean,
            "z_sd": self._of_pair[0] if exact.pair else (self.sd - exact.sd) / of_sd,
            "z_pit": _largest(of_levels),
            "z_ends": _largest(of_ends),
            "z_draws": self._of_stored_draws(),
        }

    def _shares(self) -> Array:
        """Deviations of the shares of draws below the exact quantiles, and outside the interval."""
        variance = self._variances
        if not variance.size:
            return np.zeros(0)
        below, at_most = (side.mean(("chain", "draw")).values for side in self._indicators)
        return deviation_of_share(below, at_most, self._levels, variance)

    @cached_property
    def _levels(self) -> Array:
        """Exact probabilities of the indicators."""
        return np.concatenate([self.quantity.probabilities, self.quantity.tails])

    @cached_property
    def _indicators(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Whether draws are below, and at most, each point and end; or inside an interval."""
        exact, draws = self.quantity, self.draws
        points = xr.DataArray(exact.points, dims="level")
        parts = [(draws <= points, draws <= points)]
        if exact.ends is not None and len(exact.tails) == 2:
            ends = xr.DataArray(np.array(exact.ends), dims="level")
            parts.append((draws < ends - TOLERANCE, draws <= ends + TOLERANCE))
        elif exact.ends is not None:
            low, high = exact.ends
            inside = ((draws > low + TOLERANCE) & (draws < high - TOLERANCE)).expand_dims(
                level=1, axis=2
            )
            held = ((draws >= low - TOLERANCE) & (draws <= high + TOLERANCE)).expand_dims(
                level=1, axis=2
            )
            parts.append((inside, held))
        below, at_most = (
            xr.concat(side, "level").astype(float) for side in zip(*parts, strict=True)
        )
        return below, at_most

    @cached_property
    def _variances(self) -> Array:
        """Variances of the differences of shares, the stated error of the exact side included."""
        exact, levels = self.quantity, self._levels
        if not levels.size:
            return np.zeros(0)
        import arviz as az

        sizes = az.ess(self._indicators[1], method="mean").values
        size = np.where(np.isfinite(sizes), np.minimum(sizes, self.draws.size), self.ess)
        stated = np.full(len(levels), 1.0 / exact.reference_draws)
        variance = levels * (1.0 - levels) * (1.0 / size + stated)
        if exact.ends is not None:
            number = len(exact.tails)
            variance[-number:] = levels[-number:] * (1.0 - levels[-number:]) / size[-number:]
            of_ends = self._density * exact.end_error
            variance[-number:] += of_ends**2 if number == 2 else (of_ends**2).sum()
        return np.asarray(variance)

    @cached_property
    def _density(self) -> Array:
        """Exact density at both ends; infinite where it is not known."""
        exact = self.quantity
        assert exact.ends is not None
        levels, quantiles = exact.grid
        step = _DENSITY_STEP * (exact.ends[1] - exact.ends[0])
        if not levels.size or step <= 0.0:
            return np.full(2, 0.0 if exact.end_error == 0.0 else np.inf)
        ends = np.array(exact.ends)
        around = (np.interp(ends + way * step, quantiles, levels) for way in (1.0, -1.0))
        return np.asarray(np.subtract(*around) / (2.0 * step))

    def _of_stored_draws(self) -> float:
        """Largest deviation of stored draws from the exact mean and quantiles."""
        exact, levels, deviations = self.quantity, self.quantity.probabilities, [np.zeros(0)]
        for stored in exact.stored:
            size, sd = stored.size, float(stored.std(ddof=1)) if np.isnan(exact.sd) else exact.sd
            spread = sd * np.sqrt(1.0 / size + 1.0 / exact.mean_draws)
            share = (stored[:, None] <= exact.points).mean(axis=0)
            variance = levels * (1.0 - levels) * (1.0 / size + 1.0 / exact.reference_draws)
            deviations.append(np.array([(stored.mean() - exact.mean) / spread]))
            deviations.append(deviation_of_share(share, share, levels, variance))
        return _largest(np.concatenate(deviations))

    def detectable(self, threshold: float) -> dict[str, float]:
        """Return what would be noticed with probability 0.9.

        A bias of the mean in sds, an error of the sd as a share of it, and a shift of an end as a
        share of the width.
        """
        exact, noticed = self.quantity, threshold + _POWER_QUANTILE
        of_mean, of_sd = (noticed * error / self.scale for error in self.errors)
        tested_sd = np.nan if np.isnan(exact.sd) else of_sd
        if exact.pair is not None:
            _, error, correlation = self._of_pair
            tested_sd = noticed * error * (1.0 + correlation) / 2.0
        noticeable = {"detectable": of_mean, "detectable_sd": tested_sd, "detectable_end": np.nan}
        if exact.ends is not None and len(exact.tails) == 2 and exact.grid[0].size:
            width = exact.ends[1] - exact.ends[0]
            shift = noticed * np.sqrt(self._variances[-2:])
            with np.errstate(divide="ignore", invalid="ignore"):
                noticeable["detectable_end"] = float(np.max(shift / self._density) / width)
        return noticeable


def _largest(deviations: Array) -> float:
    return float(max(deviations, key=abs, default=np.nan))


def deviation_of_share(below: Array, at_most: Array, level: Array, variance: Array) -> Array:
    """Deviation of a share from its probability, as the normal score of its binomial tail.

    Parameters
    ----------
    below, at_most : ndarray
        Shares of draws below a value, and at most: the level is between them where draws tie.
    level, variance : ndarray
        Probabilities, and the variance of the share.

    Examples
    --------
    Two of ten where five are expected: the binomial tail is 0.055.

    >>> from scipy.special import ndtr
    >>> half = np.array([0.5])
    >>> z = deviation_of_share(np.array([0.2]), np.array([0.2]), half, np.array([0.025]))
    >>> round(float(ndtr(z)[0]), 3)
    0.055
    """
    share = np.clip(level, below, at_most)
    size = level * (1.0 - level) / variance
    count = np.clip(share * size, 0.0, size)
    with np.errstate(invalid="ignore", divide="ignore", under="ignore"):
        few = betainc(np.maximum(size - count, TOLERANCE), count + 1.0, 1.0 - level)
        many = betainc(np.maximum(count, TOLERANCE), size - count + 1.0, level)
        z = np.where(share < level, ndtri(few), -ndtri(many))
    z = np.where(share == level, 0.0, np.clip(z, -_MAX_Z, _MAX_Z))
    # A tail of half and more is no deviation to the other side.
    return np.where(np.sign(z) == np.sign(share - level), z, 0.0)
