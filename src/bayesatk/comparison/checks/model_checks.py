"""Checks of `criticise` by evidence: other difficulty families, and groups of questions."""

from dataclasses import replace

import numpy as np
from scipy.special import expit

from bayesatk.core.engine.interval_ends import measured_interval
from bayesatk.data.columns import GROUP
from bayesatk.data.grouping import Grouping
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.models_of import Declared, model_of
from bayesatk.posterior.posterior import SystemPosterior
from bayesatk.posterior.remarks import FAMILY_WORDS, family_shares
from bayesatk.priors import DIFFICULTY_FAMILIES, DirichletHyperPrior, HyperPrior
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, metric_values

FAMILIES_CHECK, GROUPS_CHECK = "difficulty families", "groups"
_MOVED = 1.0  # sds from which an answer changes
_WHERE = {"questions": "these questions", "population": "questions like these"}


def family_row(fit: Result, system: int, alpha: float) -> dict[str, object] | None:
    """Return the posterior probability of the families of a fit, as a row of `criticise`.

    It is flagged below `alpha`. None where families have no marginal likelihood, under complete
    pooling and improper priors, and where that of a family is not known. None either for one family
    with groups, covariates or prior trials, where the other families would take minutes.
    """
    prior = fit.prior
    if not isinstance(prior, HyperPrior) or not prior.proper:
        return None
    if Declared.of_result(fit).composed and len(prior.family_prior) == 1:
        return None
    asked = fit.judged
    whole = replace(prior, families=DIFFICULTY_FAMILIES)
    found = replace(model_of(fit, system), prior=whole).fit(asked)
    shares = {name: one.probability for name, one in found.families.items()}
    if any(np.isnan(one.log_evidence) for one in found.families.values()):
        return None
    own = float(sum(shares[name] for name in prior.family_prior))
    text = f"{FAMILIES_CHECK}: {family_shares(shares, least=0.0)}"
    if set(prior.family_prior) == set(DIFFICULTY_FAMILIES):
        sentence = f"{text}; all are averaged."
    else:
        change = _change(fit, system, asked, found)
        given = " and ".join(FAMILY_WORDS[name] for name in prior.family_prior)
        sentence = f"{text}. This fit has {given} alone. {change}"
    return {
        "check": FAMILIES_CHECK, "observed": own,
        "expected": len(prior.family_prior) / len(DIFFICULTY_FAMILIES), "sd": np.nan,
        "p_value": np.nan,
        "flagged": own < alpha, "sentence": sentence,
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
    moved = np.abs(found.mean[:, : len(TARGETS)] - own[..., 0]) / np.maximum(own[..., 1], 1e-300)
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


def group_row(fit: Result, system: int, alpha: float) -> dict[str, object] | None:
    """Return the posterior probability of the model of a fit, with or without groups.

    It is a row of `bayesatk.criticise`, flagged below `alpha`. Both models have Beta difficulties
    (of scores: a Dirichlet) and the same priors of mean and icc, covariates and prior trials; that
    with groups adds the sd between groups. None for data without groups, marks with error, or
    improper priors.
    """
    ratio = log_evidence_ratio(fit, system)
    if ratio is None:
        return None
    two = float(expit(ratio))
    own = two if fit.grouping is not None else 1.0 - two
    flagged = own < alpha
    size = f"{np.exp(abs(ratio)):.3g}" if abs(ratio) < 20.0 else f"e^{abs(ratio):.0f}"
    which = "groups that differ" if ratio > 0.0 else "groups that do not differ"
    text = (
        f"{GROUPS_CHECK}: the evidence for {which} is {size} times that for the contrary (the "
        f"model with groups has posterior probability {two:.2g} at equal prior probabilities)"
    )
    if flagged:
        text += (
            ". This fit has groups. Evaluate without group=." if fit.grouping is not None
            else ". This fit has no groups, so its intervals for questions like these are too "
            f"narrow for new groups. Evaluate with group={GROUP!r}."
        )  # fmt: skip
    return {
        "check": GROUPS_CHECK, "observed": own, "expected": 0.5, "sd": np.nan, "p_value": np.nan,
        "flagged": flagged, "sentence": text + "." * (not flagged),
    }  # fmt: skip


def log_evidence_ratio(fit: Result, system: int) -> float | None:
    """Return the log evidence of the model with groups minus that of the model without."""
    prior = fit.prior
    known = fit.of_questions.get(GROUP)
    if known is None or fit.judges is not None:
        return None
    right_wrong = isinstance(prior, HyperPrior)
    if not (prior.proper if right_wrong else isinstance(prior, DirichletHyperPrior)):
        return None
    ran = fit.trials[system] > 0
    simple = prior.of_family("beta") if right_wrong else prior
    whole = replace(Declared.of_result(fit, ran), prior=simple, grouping=None, weight=None)
    grouped = replace(whole, grouping=Grouping.of(known[ran]))
    plain = whole.composed_model if whole.structured else whole.model
    ratio = grouped.model(system).partial_evidence() - plain(system).partial_evidence()
    return ratio if np.isfinite(ratio) else None
