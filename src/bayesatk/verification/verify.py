"""`verify`: a closed form against a sampler, in units of Monte Carlo error."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import ndtr, ndtri

from bayesatk._tools.arrays import Array, Flags
from bayesatk._tools.messages import ArgumentError, proper_probability
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import MAX_RHAT

Verdict = Literal["agree", "disagree", "inconclusive"]

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
MIN_ESS = 400.0
_EXPECTED = 10.0  # draws expected on either side of a count for its probability to be tested
_DRAWN = ("sd", "mean")  # statistics that may be of draws
_SAME = 1e-12  # quantities that are known exactly must match to this


@dataclass(frozen=True)
class Verification:
    """Result of `verify`: one row per quantity, and an overall verdict.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per quantity: exact and sampled mean and sd, their differences in Monte Carlo
        standard errors (``z_mean``, ``z_sd``), the largest deviation of the whole distribution
        (``z_pit``), R-hat, bulk effective sample size, the smallest adjusted p-value, the bias of
        the mean in posterior sds that would have been detected with probability 0.9
        (``detectable``), and the verdict.
    alpha : float
        Upper bound on the probability of any false "disagree" over all quantities.

    See Also
    --------
    bayesatk.plots.plot_verification : shows every quantity.
    """

    table: pd.DataFrame
    alpha: float

    @property
    def verdict(self) -> Verdict:
        """``"disagree"`` if any quantity does, else ``"inconclusive"`` if any is, else agree."""
        verdicts = set(self.table["verdict"])
        for verdict in ("disagree", "inconclusive"):
            if verdict in verdicts:
                return verdict
        return "agree"

    def summary(self) -> str:
        """Return the overall verdict in one line."""
        counts = self.table["verdict"].value_counts()
        parts = ", ".join(
            f"{counts.get(name, 0)} {name}" for name in ("agree", "disagree", "inconclusive")
        )
        worst = self.table["z_mean"].abs().max()
        return (
            f"{self.verdict.upper()}: {len(self.table)} quantities ({parts}); largest difference "
            f"of means {worst:.1f} Monte Carlo standard errors; probability of any false "
            f"'disagree' at most {self.alpha:g}."
        )

    def __str__(self) -> str:
        return self.summary()


def verify(exact: Fit, sampled: Fit, *, alpha: float = 0.01) -> Verification:
    """Compare a closed-form result with draws of the same quantities.

    For every variable, k, tau, system and target: the difference of means and of sds in Monte
    Carlo standard errors, and the share of draws below seven quantiles of the exact posterior (a
    probability integral transform check with the effective sample size of each indicator). For
    a count, the share of draws at every value of its distribution function.

    Parameters
    ----------
    exact : xarray.DataTree
        From `bayesatk.evaluate`, or `bayesatk.guessing.random_baseline_distribution`.
    sampled : xarray.DataTree
        From `bayesatk.sample`, or of your own model from `bayesatk.from_draws`; or from
        `bayesatk.models.sample_random_baseline`.
    alpha : float
        Upper bound on the probability, over the sampler's randomness, that any correct quantity is
        reported as "disagree" (Bonferroni over all quantities and tests).

    Returns
    -------
    Verification
        A quantity is "inconclusive" when its chains have not mixed (R-hat above 1.01) or give an
        effective sample size under 400.

    Raises
    ------
    ValueError
        If the two results are of different data, pooling or prior, or share no quantity; if
        `sampled` is a closed form, whose draws follow from the formulas that are checked.

    See Also
    --------
    bayesatk.plots.plot_verification : shows every quantity.
    bayesatk.checks.calibrate : over many simulated data sets instead of one.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], "pass@1", rng=1)
    >>> own_draws = fit.drop_nodes("closed_form")
    >>> bayesatk.verify(fit, own_draws).verdict  # agree with their own formulas
    'agree'
    """
    proper_probability("alpha", alpha)
    ours = Result.of(exact, "closed_form")
    theirs = sampled if isinstance(sampled, Result) else Result(sampled)
    _refuse_closed_form(theirs)
    _check_same_question(ours, theirs)
    quantities = list(_quantities(ours, theirs))
    if not quantities:
        raise ValueError(
            "exact and sampled must share at least one variable; got "
            f"{sorted(ours.group('closed_form').data_vars, key=str)} and "
            f"{sorted(_draws(theirs).data_vars, key=str)}. Evaluate and sample the same metrics."
        )
    # Mean, sd, and the distribution at every point.
    level = alpha / sum(2 + len(quantity.probabilities) for quantity in quantities)
    table = pd.DataFrame([_compare(quantity, level, alpha) for quantity in quantities])
    table.attrs["threshold"] = float(-ndtri(level / 2.0))  # of |z|, beyond which one disagrees
    return Verification(table, alpha)


@dataclass(frozen=True)
class _Quantity:
    labels: dict[str, Any]
    mean: float
    draws: xr.DataArray
    sd: float = np.nan
    points: Array = field(default_factory=lambda: np.zeros(0))
    probabilities: Array = field(default_factory=lambda: np.zeros(0))
    reference_draws: float = np.inf
    sd_draws: float = np.inf
    mean_draws: float = np.inf


def _refuse_closed_form(sampled: Result) -> None:
    if sampled.has("closed_form"):
        raise ArgumentError(
            "sampled", " must be draws of a sampler, which know nothing of the closed "
            f"form; got a result with method {sampled.method!r}, whose draws follow from the "
            "formulas that are checked. Pass bayesatk.sample(data, metrics) of the same data.",
        )  # fmt: skip


def _check_same_question(exact: Result, sampled: Result) -> None:
    pair = exact, sampled
    declared = all("study" in result.tree.attrs and not result.own for result in pair)
    fields = ["pooling", "prior", "covariates", "judges", "population"]
    observed = [result.group("observed_data") for result in pair if result.has("observed_data")]
    if any("answer_count" in data for data in observed):
        fields.append("answer_prior")
    for name in fields if declared else ():  # other tools' draws say nothing of their model
        ours, theirs = (getattr(result, name) for result in pair)
        if ours != theirs:
            raise ValueError(
                f"exact and sampled must have the same {name}; got {ours!r} and {theirs!r}. Pass "
                f"the same {name}= to evaluate and sample."
            )
    priors = [result.tree.attrs.get("cost_prior") for result in pair]
    if None not in priors and priors[0] != priors[1]:
        raise ValueError(
            f"exact and sampled must have the same cost_prior; got {priors[0]} and {priors[1]}. "
            "Pass the same cost_prior= to evaluate_cost and sample_cost."
        )
    names = {"successes": "observed_data", "count": "observed_data"}
    names |= {"answer_count": "observed_data", "prior_count": "constant_data"}
    names |= {"truth_count": "observed_data"}
    for name, group in names.items():
        stored: list[Any] = [result.group(group).get(name) for result in pair if result.has(group)]
        if len(stored) == 2 and not np.array_equal(*stored):
            raise ValueError(
                f"exact and sampled must be results of the same data; their {name} differ."
            )
    weights: list[Any] = [result.weight for result in pair if result.has("constant_data")]
    if len(weights) == 2 and not np.array_equal(*weights):
        raise ValueError(
            "exact and sampled must be results of the same data; the weights of their questions "
            "differ. Give both the same: tally(..., weight=...)."
        )


def _quantities(exact: Result, sampled: Result) -> Iterator[_Quantity]:
    """Yield every scalar quantity that both results hold."""
    posterior = _draws(sampled)
    yield from _of_dataset(exact, "closed_form", posterior)
    if exact.has("group_closed_form") and sampled.has("group_posterior"):
        yield from _of_dataset(exact, "group_closed_form", sampled.group("group_posterior"))
    yield from _simulated_votes(exact.group("closed_form"), posterior)


def _of_dataset(exact: Result, group: str, posterior: xr.Dataset) -> Iterator[_Quantity]:
    """Yield the quantities that a group of statistics has in common with draws."""
    closed = exact.group(group)
    for name, statistics in closed.data_vars.items():
        if name not in posterior or "statistic" not in statistics.dims:
            continue
        draws = posterior[name]
        dims = [str(dim) for dim in statistics.dims if dim != "statistic"]
        for position in product(*(range(statistics.sizes[dim]) for dim in dims)):
            column = statistics.isel(dict(zip(dims, position, strict=True)))
            where = {dim: column[dim].item() for dim in dims}
            points, probabilities = _distribution(exact, group, str(name), where, draws.size)
            mean, sd = (float(column.sel(statistic=statistic)) for statistic in ("mean", "sd"))
            independent = (float(statistics.attrs.get(f"{of}_draws", np.inf)) for of in _DRAWN)
            yield _Quantity(
                {"variable": str(name), **where}, mean, draws.sel(where), sd, points, probabilities,
                reference_draws(closed, str(name), where), *independent,
            )  # fmt: skip


def reference_draws(closed: xr.Dataset, name: str, where: dict[str, Any]) -> float:
    """Effective number of draws behind the exact quantiles; infinite where they are integrated."""
    drawn = closed[name].attrs.get("interval_draws", 0)
    if where.get("target") == "population":
        drawn = max(drawn, closed.attrs.get("bootstrap_draws", 0))
    return float(drawn) if drawn else np.inf


def continuous_at(quantiles: Array, values: Array) -> Flags:
    """Which values have one level only among these quantiles.

    A value that several levels share has a probability of its own, such as a share of questions
    that is 0 under some families: how much lies at or below it is more than any of the levels.
    """
    return np.asarray((quantiles == values[:, None]).sum(axis=1) == 1)


def _simulated_votes(closed: xr.Dataset, posterior: xr.Dataset) -> Iterator[_Quantity]:
    """Yield the means of simulated votes: they have the mean of plurality, and a larger sd."""
    if "plurality_at_k" not in closed or "plurality_votes_at_k" not in posterior:
        return
    mean = closed["plurality_at_k"].sel(statistic="mean", target="questions", drop=True)
    for system, k in product(mean["system"].values.tolist(), mean["k"].values.tolist()):
        where = {"system": system, "k": k}
        yield _Quantity(
            {"variable": "plurality_votes_at_k", **where, "target": "questions"},
            float(mean.sel(where)), posterior["plurality_votes_at_k"].sel(where),
        )  # fmt: skip


def _draws(sampled: Result) -> xr.Dataset:
    """Return the draws of a posterior, or of a prior where that is what was sampled."""
    return sampled.group("posterior" if sampled.has("posterior") else "prior")


def _distribution(
    exact: Result, group: str, name: str, where: dict[str, Any], draws: int
) -> tuple[Array, Array]:
    """Points, and the exact probability of a value at most as large.

    Quantiles of a continuous quantity; every count of a discrete one that is neither too rare nor
    too common for its share of the draws to be nearly normal.
    """
    if exact.has("closed_form_cdf") and name in exact.group("closed_form_cdf"):
        cdf = exact.group("closed_form_cdf")[name]
        tested = np.minimum(cdf.values, 1.0 - cdf.values) * draws >= _EXPECTED
        return cdf["count"].values[tested].astype(float), cdf.values[tested]
    quantiles = f"{group}_quantiles"
    if not exact.has(quantiles) or name not in exact.group(quantiles):
        return np.zeros(0), np.zeros(0)
    distribution = exact.group(quantiles)[name].sel(where)
    values = distribution.sel(quantile=list(LEVELS)).values
    if not np.isfinite(values).all():
        return np.zeros(0), np.zeros(0)
    alone = continuous_at(distribution.values, values)
    return values[alone], np.array(LEVELS)[alone]


def _compare(exact: _Quantity, level: float, alpha: float) -> dict[str, Any]:
    """Return the row of one quantity."""
    draws = exact.draws.transpose("chain", "draw").reset_coords(drop=True)
    import arviz as az  # tables and reports of a verification do without

    mean, sd = float(draws.mean()), float(draws.std(ddof=1))
    row = {
        **exact.labels, "exact_mean": exact.mean, "sampled_mean": mean, "exact_sd": exact.sd,
        "sampled_sd": sd,
    }  # fmt: skip
    if exact.sd <= _SAME or sd <= _SAME:
        return row | _constant(exact, draws)
    rhat, ess = float(az.rhat(draws)), float(az.ess(draws, method="bulk"))
    # Of several families the exact side too is a mean over weighted points.
    error = float(np.hypot(az.mcse(draws, method="mean"), exact.sd / np.sqrt(exact.mean_draws)))
    z = {
        "z_mean": (mean - exact.mean) / error,
        "z_sd": _sd_deviation(exact, sd, float(az.mcse(draws, method="sd"))),
        "z_pit": float(max(_pit_deviations(exact, draws, ess), key=abs, default=0.0)),
    }
    p_value = 2.0 * ndtr(-max(abs(value) for value in z.values()))
    verdict: Verdict = "disagree" if p_value < level else "agree"
    mixed = rhat <= MAX_RHAT and ess >= MIN_ESS
    noticed = (ndtri(1.0 - level / 2.0) + ndtri(0.9)) * error
    return {
        **row, **z, "rhat": rhat, "ess": ess,
        "p_adjusted": min(1.0, p_value / level * alpha),
        "detectable": float(noticed / (sd if np.isnan(exact.sd) else exact.sd)),
        "verdict": verdict if mixed else "inconclusive",
    }  # fmt: skip


def _constant(exact: _Quantity, draws: xr.DataArray) -> dict[str, Any]:
    """Return the rest of the row of a quantity that one side holds for known exactly."""
    same = bool(np.abs(draws.values - exact.mean).max() <= _SAME and exact.sd <= _SAME)
    return {
        "z_mean": 0.0 if same else np.inf, "z_sd": 0.0, "z_pit": 0.0, "rhat": 1.0,
        "ess": float(draws.size), "p_adjusted": float(same), "detectable": 0.0,
        "verdict": "agree" if same else "disagree",
    }  # fmt: skip


def _sd_deviation(exact: _Quantity, sd: float, error: float) -> float:
    """Difference of sds, in standard errors; 0 of a quantity known only for its mean."""
    if np.isnan(exact.sd):
        return 0.0
    # An sd that is itself estimated from so many draws has a relative variance of about 1/(2n).
    return float((sd - exact.sd) / np.hypot(error, exact.sd / np.sqrt(2.0 * exact.sd_draws)))


def _pit_deviations(exact: _Quantity, draws: xr.DataArray, ess: float) -> Array:
    """Excess share of draws below each point, in standard errors."""
    if not len(exact.points):
        return np.zeros(0)
    import arviz as az

    levels = exact.probabilities
    below = (draws <= xr.DataArray(exact.points, dims="level")).astype(float)
    sizes = az.ess(below, method="mean").values
    size = np.where(np.isfinite(sizes), np.minimum(sizes, draws.size), ess)
    variance = levels * (1.0 - levels) * (1.0 / size + 1.0 / exact.reference_draws)
    return np.asarray((below.mean(("chain", "draw")).values - levels) / np.sqrt(variance))
