"""Which difficulty families the data prefer, and which answers of a result would change."""

from dataclasses import replace

import numpy as np

from bayesatk.core.intervals import measured_interval
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.models_of import model_of
from bayesatk.posterior.posterior import SystemPosterior
from bayesatk.posterior.remarks import FAMILY_WORDS, family_shares
from bayesatk.priors import FAMILIES, HyperPrior
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, metric_values

CHECK = "difficulty families"
_MOVED = 1.0  # sds from which an answer changes
_WHERE = {"questions": "these questions", "population": "questions like these"}


def family_row(fit: Result, system: int, alpha: float) -> dict[str, object] | None:
    """Return the posterior probability of the families of a fit, as a row of `criticise`.

    It is flagged below `alpha`. None where families have no marginal likelihood: under complete
    pooling and improper priors.
    """
    prior = fit.prior
    if not isinstance(prior, HyperPrior) or not prior.proper:
        return None
    asked = fit.judged
    whole = replace(prior, families=FAMILIES)
    found = replace(model_of(fit, system), prior=whole).fit(asked)
    shares = {name: one.probability for name, one in found.families.items()}
    own = float(sum(shares[name] for name in prior.family_prior))
    text = f"{CHECK}: {family_shares(shares, least=0.0)}"
    if set(prior.family_prior) == set(FAMILIES):
        sentence = f"{text}; all are averaged."
    else:
        change = _change(fit, system, asked, found)
        given = " and ".join(FAMILY_WORDS[name] for name in prior.family_prior)
        sentence = f"{text}. This fit has {given} alone. {change}"
    return {
        "check": CHECK, "observed": own, "expected": len(prior.family_prior) / len(FAMILIES),
        "sd": np.nan, "p_value": np.nan, "flagged": own < alpha, "sentence": sentence,
    }  # fmt: skip


def _change(fit: Result, system: int, asked: list[Metric], found: SystemPosterior) -> str:
    """Say which metric of a fit differs most from its value with all families averaged."""
    if not asked:
        return ""
    statistics = fit.statistics.isel(system=system)
    own = np.array(
        [
            [[float(metric_values(statistics, one).sel(target=target, statistic=name))
              for name in ("mean", "sd", "ci_lower", "ci_upper")] for target in TARGETS]
            for one in asked
        ]
    )  # fmt: skip
    moved = np.abs(found.mean - own[..., 0]) / np.maximum(own[..., 1], 1e-300)
    metric, target = (int(i) for i in np.unravel_index(np.argmax(moved), moved.shape))
    if moved[metric, target] <= _MOVED:
        return "Averaging over all families changes no metric by more than its sd."
    known = found.distributions()[target][metric]
    if known is None:
        raise AssertionError("partial pooling of right and wrong has every distribution")
    (low, high), _ = measured_interval(known, fit.ci_prob, "eti")
    mean, _, before, after = own[metric, target]
    return (
        f"Averaged over all families, {asked[metric].label} of {_WHERE[TARGETS[target]]} would be "
        f"{found.mean[metric, target]:.3f} [{low:.3f}, {high:.3f}]; in this fit it is {mean:.3f} "
        f"[{before:.3f}, {after:.3f}]."
    )
