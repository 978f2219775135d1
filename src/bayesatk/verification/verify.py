"""`verify`: a closed form against a sampler, in units of Monte Carlo error."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import ndtr, ndtri

from bayesatk._tools.messages import ArgumentError, proper_probability
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import MAX_RHAT, ONE_CHAIN
from bayesatk.results.table_columns import verified_quantity
from bayesatk.verification.deviations import Deviations
from bayesatk.verification.quantities import (
    TOLERANCE,
    Quantity,
    draws_of,
    observed_values,
    quantities,
)

Verdict = Literal["agree", "disagree", "inconclusive"]

MIN_ESS = 400.0
_COUNTED_TOLERANCE = 1e-6  # of observed values; SciPy's probabilities are good to 1e-8 or better
_NUMBERS = (
    "z_mean", "z_sd", "z_pit", "z_ends", "z_draws", "rhat", "ess", "p_adjusted", "detectable",
    "detectable_sd", "detectable_end",
)  # fmt: skip


@dataclass(frozen=True)
class Verification:
    """Result of `verify`: one row per quantity, and an overall verdict.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per quantity: exact and sampled mean and sd, their differences in Monte Carlo
        standard errors (``z_mean``, ``z_sd``), the largest deviation of the whole distribution
        (``z_pit``), of the ends of the interval (``z_ends``) and of the draws that the exact result
        stores (``z_draws``), R-hat, bulk effective sample size, the smallest adjusted p-value, the
        verdict, and what would have been noticed with probability 0.9: a bias of the mean in
        posterior sds (``detectable``), an error of the sd as a share of it (``detectable_sd``), and
        a shift of an end as a share of the interval's width (``detectable_end``). Rows with
        ``other`` are of the difference of two systems; those with target ``observed`` of observed
        values, with what was counted as ``sampled_mean``. NaN: not tested.
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
        return (
            f"{self.verdict.upper()}: {len(self.table)} quantities ({parts}){self._worst()}; "
            f"probability of any false 'disagree' at most {self.alpha:g}. "
            f"{self._power()}{self._limits()}"
        )

    def _worst(self) -> str:
        """Say which means, and which observed values, are furthest off."""
        text, size = "", self.table["z_mean"].abs().to_numpy(float)
        if np.isfinite(size).any():
            worst: Any = self.table.iloc[int(np.where(np.isfinite(size), size, -1.0).argmax())]
            gap = abs(worst["sampled_mean"] - worst["exact_mean"])
            in_sds = f"{gap / worst['exact_sd']:.2g} sd, " if worst["exact_sd"] > 0.0 else ""
            text = f"; largest difference of means {in_sds}{abs(worst['z_mean']):.1f} Monte Carlo"
            text += " standard errors"
        if np.isinf(size).any():
            first: Any = self.table.iloc[int(np.isinf(size).argmax())]
            text += (
                f"; {verified_quantity(first)} must be {first['sampled_mean']:.4g} and is "
                f"{first['exact_mean']:.4g}"
            )
        return text

    def _limits(self) -> str:
        """Say what a sampled result cannot tell, and which numbers it has not."""
        text, missing = "", self.table.attrs.get("missing")
        undefined = self.table.attrs.get("undefined")
        if undefined:
            text += (
                f" Some draws are NaN (of {len(undefined)} quantities, first of "
                f"{verified_quantity(self.table.loc[undefined[0]])}): leave out the chains that "
                "failed, or sample again."
            )
        if (self.table["rhat"].isna() & (self.table["verdict"] == "inconclusive")).any():
            text += f" {ONE_CHAIN}"
        if "other" in self.table:
            varies = self.table["other"].notna() & self.table["ess"].notna()
            known = self.table["z_sd"].notna()
            untested = int((varies & ~known).sum())
            tested = int((varies & known & (self.table["target"] != "questions")).sum())
            parts = [f"the spread of differences is not tested ({untested})"] * (untested > 0)
            if tested:
                parts.append(
                    f"on questions like these the spread of differences is tested ({tested}) by "
                    "correlations, which both results estimate in one way"
                )
            if parts:
                text += (
                    " How systems move together in the sampled draws is not used: "
                    f"{'; '.join(parts)}."
                )
        if missing:
            text += f" Not compared, because the sampled result lacks them: {', '.join(missing)}."
        return text

    def _power(self) -> str:
        """Say what would have been noticed, of the quantity where that is least."""
        columns = [f"detectable{end}" for end in ("", "_sd", "_end")]
        known = self.table[columns].replace(np.inf, np.nan).max()
        texts = "means off by {:.2g} sd", "sds by {:.0%}", "ends by {:.0%} of the width"
        pairs = zip(texts, known, strict=True)
        noticed = [text.format(value) for text, value in pairs if value > 0.0]
        return f"Noticed with probability 0.9: {', '.join(noticed)}." if noticed else ""

    def __str__(self) -> str:
        return self.summary()


def verify(exact: Fit, sampled: Fit, *, alpha: float = 0.01) -> Verification:
    """Compare a closed-form result with draws of the same quantities.

    For every variable, k, tau, system and target: the difference of means and of sds in Monte
    Carlo standard errors; the share of draws below seven quantiles of the exact posterior and
    outside the ends of its interval, with the effective sample size of each indicator; and the
    draws that the exact result stores, against its own mean and quantiles. For a count, the share
    of draws at every value of its distribution function. Of several systems also the difference of
    every pair, by the joint draws of the exact result. Observed values of metrics that count right
    trials are computed anew, as means over all subsets of k trials.

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
        A quantity is "inconclusive" when its chains have not mixed (R-hat above 1.01), give an
        effective sample size under 400, or have draws that are NaN, which the summary says.

    Raises
    ------
    ValueError
        If the two results are of different data, pooling or prior, or share no quantity; if
        `sampled` is a closed form, whose draws follow from the formulas that are checked.

    Notes
    -----
    How systems move together in the sampled draws is not used. On questions like these they move
    together, by a correlation that the exact result estimates from the values of the questions.
    There ``z_sd`` of a difference compares Fisher's transformation of the correlation of its joint
    draws with that of sampled draws, which the same estimate puts in a joint order: draws in a
    wrong order are noticed, an error of the estimate is not. It is NaN, and `Verification.summary`
    says so, with a judge, for a k beyond the trials, on new groups, on these questions if a system
    did not try all of them, and for a model of your own. A metric that `sampled` lacks is named in
    the summary.

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
    if not isinstance(sampled, Result | xr.DataTree):
        raise ArgumentError(
            "sampled",
            f" must be draws of the same metrics; got {type(sampled).__name__}. Pass "
            "bayesatk.sample(data, metrics).",
        )
    theirs = sampled if isinstance(sampled, Result) else Result(sampled)
    _refuse_closed_form(theirs)
    _check_same_question(ours, theirs)
    compared = list(quantities(ours, theirs))
    if not compared:
        raise ValueError(
            "exact and sampled must share at least one variable; got "
            f"{sorted(ours.group('closed_form').data_vars, key=str)} and "
            f"{sorted(draws_of(theirs).data_vars, key=str)}. Evaluate and sample the same metrics."
        )
    level = alpha / sum(quantity.tests for quantity in compared)
    rows = [_compare(quantity, level, alpha) for quantity in compared]
    table = pd.DataFrame(rows + [_observed(*value) for value in observed_values(ours)])
    table.attrs["undefined"] = [
        row for row, quantity in enumerate(compared) if quantity.draws.isnull().any()
    ]
    if "study" in ours.tree.attrs:
        held = {
            (one.labels["variable"], one.labels.get("k", 1), one.labels.get("tau"))
            for one in compared
        }
        table.attrs["missing"] = [
            metric.label
            for metric in ours.metrics
            if (metric.family.variable, metric.k, metric.tau) not in held
        ]
    table.attrs["threshold"] = float(-ndtri(level / 2.0))  # of |z|, beyond which one disagrees
    return Verification(table, alpha)


def _refuse_closed_form(sampled: Result) -> None:
    if sampled.has("closed_form"):
        raise ArgumentError(
            "sampled",
            " must be draws of a sampler, which know nothing of the closed "
            f"form; got a result with method {sampled.method!r}, whose draws follow from the "
            "formulas that are checked. Pass bayesatk.sample(data, metrics) of the same data.",
        )


def _check_same_question(exact: Result, sampled: Result) -> None:
    pair = exact, sampled
    declared = all("study" in result.tree.attrs and not result.own for result in pair)
    fields = ["pooling", "families", "prior", "covariates", "judges", "population"]
    constant = [result.group("constant_data") for result in pair if result.has("constant_data")]
    if any("answer_count" in data for data in constant):
        fields.append("answer_prior")
    for name in fields if declared else ():  # other tools' draws say nothing of their model
        ours, theirs = (getattr(result, name) for result in pair)
        if ours != theirs:
            given, value = name, "="
            if name == "families":
                given = "difficulty"
                single = [list(families) for families in (theirs, ours) if len(families) == 1]
                value = f"={single[0][0]!r}" if single else "="
            raise ValueError(
                f"exact and sampled must have the same {given}; got {ours!r} and {theirs!r}. Pass "
                f"the same {given}{value} to evaluate and sample."
            )
    names = {"successes": "observed_data", "count": "observed_data"}
    names |= {"answer_count": "constant_data", "prior_count": "constant_data"}
    names |= {"truth_count": "constant_data"}
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


def _compare(exact: Quantity, level: float, alpha: float) -> dict[str, Any]:
    """Return the row of one quantity."""
    import arviz as az

    deviations = Deviations(exact)
    row = {
        **exact.labels,
        "exact_mean": exact.mean,
        "sampled_mean": deviations.mean,
        **dict(zip(("exact_sd", "sampled_sd"), deviations.sds, strict=True)),
        **dict.fromkeys(_NUMBERS, np.nan),
    }
    if exact.sd <= TOLERANCE or deviations.sd <= TOLERANCE:
        return row | _constant(exact, deviations)
    z, rhat = deviations.z(), float(az.rhat(deviations.draws))
    p_value = 2.0 * ndtr(-np.nanmax(np.abs([*z.values(), 0.0])))
    verdict: Verdict = "disagree" if p_value < level else "agree"
    mixed = rhat <= MAX_RHAT and deviations.ess >= MIN_ESS
    return {
        **row,
        **z,
        "rhat": rhat,
        "ess": deviations.ess,
        "p_adjusted": min(1.0, p_value / level * alpha),
        **deviations.detectable(float(-ndtri(level / 2.0))),
        "verdict": verdict if mixed else "inconclusive",
    }


def _observed(labels: Mapping[str, Any], stored: float, counted: float) -> dict[str, Any]:
    """Return the row of an observed value."""
    same = abs(stored - counted) < _COUNTED_TOLERANCE
    return {
        **labels,
        "exact_mean": stored,
        "sampled_mean": counted,
        **_equality(same),
    }


def _equality(same: bool) -> dict[str, Any]:
    """Return what a row says of two numbers that have no error."""
    verdict: Verdict = "agree" if same else "disagree"
    return {"z_mean": np.nan if same else np.inf, "p_adjusted": float(same), "verdict": verdict}


def _constant(exact: Quantity, deviations: Deviations) -> dict[str, Any]:
    """Return the rest of the row of a quantity that one side holds for known exactly."""
    numbers = [deviations.draws.values.ravel(), *exact.stored, np.array(exact.ends or ())]
    same = all(np.abs(part - exact.mean).max(initial=0.0) <= TOLERANCE for part in numbers)
    return _equality(same and not exact.sd > TOLERANCE)
