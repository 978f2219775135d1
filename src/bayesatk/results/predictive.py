"""Groups that ArviZ checks models with: replicated counts, prior draws, log prior densities.

Replicates are of questions like these: every question's success probability is drawn anew from the
difficulty distribution, as in the group ``log_likelihood``, so that leave-one-out probability
integral transforms compare like with like.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.scales import RIGHT_WRONG, Scale, log_density_of_logit
from bayesatk.priors import (
    AnswerPrior,
    AnyPrior,
    CategoryPrior,
    CrossedPrior,
    HyperPrior,
    Prior,
)
from bayesatk.results.difficulty import draw_prior, has_difficulty_group, summary_variables
from bayesatk.results.likelihood import RATES

Array = NDArray[np.float64]
AUTOMATIC = 200_000  # replicated counts up to which they are drawn without being asked for
PRIOR_DRAWS = 500
_DIMS = ("chain", "draw", "system")


def predictive_groups(
    outcomes: Outcomes,
    posterior: xr.Dataset,
    prior: AnyPrior,
    scale: Scale,
    keep: Sequence[str],
    rng: np.random.Generator,
    difficulties: Sequence[Difficulty] | None = None,
    judged: bool = False,
) -> dict[str, xr.Dataset]:
    """Return ``log_prior``, ``prior``, ``posterior_predictive`` and ``prior_predictive``.

    Parameters
    ----------
    outcomes : Outcomes
    posterior : xarray.Dataset
        With draws of ``mean_p`` (and ``icc``). Without, there is nothing to return.
    prior : Prior or CategoryPrior
        An improper one has no draws.
    scale : Scale
    keep : sequence of str
        The two predictive groups are left out where they are large, unless ``"predictive"`` is
        among these.
    rng : numpy.random.Generator
    difficulties : sequence of Difficulty, optional
        Of right and wrong under partial pooling: one for each system, of all draws.
    judged : bool
        Whether a judge that errs marked the trials: then there is only ``posterior_predictive``,
        of marks, by the draws of its rates in `posterior`.

    Notes
    -----
    ``log_prior`` is left out unless the difficulty family is the Beta alone. It is there to be
    raised to powers (`arviz.psense`); of several families that would also change their weights, by
    normalising constants that no draw knows, and ``mean_p`` and ``icc`` of a whole distribution are
    not its hyperparameters.
    """
    other = AnswerPrior | CrossedPrior
    if "mean_p" not in posterior or isinstance(prior, other):
        return {}
    size = posterior.sizes["chain"] * posterior.sizes["draw"] * outcomes.dataset["count"].size // 2
    replicated = size <= AUTOMATIC or "predictive" in keep
    if judged:
        if not replicated:
            return {}
        found = _replicates(outcomes, posterior, scale, rng, difficulties)
        return {"posterior_predictive": _marked(found, posterior, outcomes, rng)}
    if isinstance(prior, HyperPrior) and difficulties is not None:
        return _of_difficulties(outcomes, posterior, prior, difficulties, replicated, rng)
    known = _Hyper.of(prior, scale, posterior.sizes.get("category", 2))
    groups = {"log_prior": known.log_density(posterior), "prior": known.draws(posterior, rng)}
    if replicated:
        groups["posterior_predictive"] = _replicates(outcomes, posterior, scale, rng)
        groups["prior_predictive"] = _replicates(outcomes, groups["prior"], scale, rng)
    return groups


def _of_difficulties(
    outcomes: Outcomes,
    posterior: xr.Dataset,
    prior: HyperPrior,
    difficulties: Sequence[Difficulty],
    replicated: bool,
    rng: np.random.Generator,
) -> dict[str, xr.Dataset]:
    """Return the groups of right and wrong under partial pooling."""
    groups = {}
    if not has_difficulty_group(prior):
        groups["log_prior"] = _Hyper.of(prior, RIGHT_WRONG).log_density(posterior)
    drawn = []
    if prior.proper:
        drawn = [draw_prior(prior, PRIOR_DRAWS, rng)[0] for _ in difficulties]
        shape = 1, PRIOR_DRAWS, len(drawn)
        groups["prior"] = xr.Dataset(
            {
                name: (_DIMS, values.reshape(shape))
                for name, values in summary_variables(drawn, prior).items()
            },
            prior_coords(posterior),
            {"sample_dims": ["chain", "draw"]},
        )
    if replicated:
        groups["posterior_predictive"] = _replicates(
            outcomes, posterior, RIGHT_WRONG, rng, difficulties
        )
        if drawn:
            groups["prior_predictive"] = _replicates(
                outcomes, groups["prior"], RIGHT_WRONG, rng, drawn
            )
    return groups


def _marked(
    counts: xr.Dataset, posterior: xr.Dataset, outcomes: Outcomes, rng: np.random.Generator
) -> xr.Dataset:
    """Mark replicated successes by a judge that errs."""
    right = counts["successes"]
    wrong = outcomes.trials.transpose("system", "question").values - right.values
    s, f = (posterior[name].transpose(*_DIMS).values[..., None] for name in RATES)
    return counts.assign(
        successes=right.copy(data=rng.binomial(right.values, s) + rng.binomial(wrong, f))
    )


def prior_coords(posterior: xr.Dataset) -> dict[str, Any]:
    """Coordinates of draws from the prior."""
    systems = posterior["system"].values
    return {"chain": [0], "draw": np.arange(PRIOR_DRAWS), "system": systems}


@dataclass(frozen=True)
class _Hyper:
    """Prior of the hyperparameters: Dirichlet parameters of the mean, Beta ones of the icc."""

    mean: Array
    icc: tuple[float, float] | None
    scale: Scale

    @classmethod
    def of(cls, prior: Prior | CategoryPrior, scale: Scale, categories: int = 2) -> "_Hyper":
        return cls(prior.vector(categories), getattr(prior, "icc", None), scale)

    def log_density(self, posterior: xr.Dataset) -> xr.Dataset:
        """Log density of the logits of each draw; up to a constant where improper.

        On the logit scale, as in `bayesatk.priors.choice.power_scaled`: there a uniform prior
        is not constant, so that raising it to a power means something.
        """
        mean = posterior["mean_p"].transpose(*_DIMS, *self.scale.axes).values
        found = {"mean_p": (_DIMS, self.scale.log_density(mean, self.mean))}
        if self.icc is not None and "icc" in posterior:
            icc = posterior["icc"].transpose(*_DIMS).values
            found["icc"] = (_DIMS, log_density_of_logit(icc, *self.icc))
        coords = {name: posterior[name] for name in ("chain", "draw", "system")}
        return xr.Dataset(found, coords, {"sample_dims": ["chain", "draw"]})

    def draws(self, posterior: xr.Dataset, rng: np.random.Generator) -> xr.Dataset:
        """Draw hyperparameters from the prior."""
        coords = prior_coords(posterior)
        shape = 1, PRIOR_DRAWS, len(coords["system"])
        found = {"mean_p": ((*_DIMS, *self.scale.axes), self.scale.draw_p(self.mean, shape, rng))}
        coords |= {name: posterior[name].values for name in self.scale.axes}
        if self.icc is not None:
            found["icc"] = (_DIMS, rng.beta(*self.icc, size=shape))
        return xr.Dataset(found, coords, {"sample_dims": ["chain", "draw"]})


def _replicates(
    outcomes: Outcomes,
    draws: xr.Dataset,
    scale: Scale,
    rng: np.random.Generator,
    difficulties: Sequence[Difficulty] | None = None,
) -> xr.Dataset:
    """Draw counts of new questions with the same trials, one set for every draw."""
    trials = outcomes.trials.transpose("system", "question").values
    coords = {name: draws[name].values for name in _DIMS}
    coords["question"] = outcomes.dataset["question"].values
    attrs = {"sample_dims": ["chain", "draw"]}
    if difficulties is None:
        mean = draws["mean_p"].transpose(*_DIMS, *scale.axes).values
        icc = draws["icc"].transpose(*_DIMS).values if "icc" in draws else None
        counts = scale.replicates(mean, icc, trials, rng)
        coords |= {name: draws[name].values for name in scale.axes}
    else:
        each = [one.draw_counts(own, rng) for one, own in zip(difficulties, trials, strict=True)]
        shape = draws.sizes["chain"], draws.sizes["draw"], *trials.shape
        counts = np.stack(each, axis=1).reshape(shape)
    return xr.Dataset({scale.variable: ((*_DIMS, "question", *scale.axes), counts)}, coords, attrs)
