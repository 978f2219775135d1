"""Whether groups of questions differ: evidence of the model with groups against that without."""

import numpy as np
from scipy.special import expit

from bayesatk.core.leave_one_out import partial_evidence
from bayesatk.core.states import States
from bayesatk.data.columns import GROUP
from bayesatk.data.grouping import Grouping
from bayesatk.posterior.grouped import GroupedModel
from bayesatk.priors import GroupedPrior, HyperPrior
from bayesatk.results.result import Result

CHECK = "groups"


def group_row(fit: Result, system: int, alpha: float) -> dict[str, object] | None:
    """Return the posterior probability of the model of a fit, with or without groups.

    It is a row of `bayesatk.criticise`, flagged below `alpha`. Both models have Beta difficulties
    and the same priors of mean and icc; that with groups adds the sd between groups. None for data
    without groups, marks with error, or improper priors.
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
        f"{CHECK}: the evidence for {which} is {size} times that for the contrary (the model with "
        f"groups has posterior probability {two:.2g} at equal prior probabilities)"
    )
    if flagged:
        text += (
            ". This fit has groups. Evaluate without group=." if fit.grouping is not None
            else ". This fit has no groups, so its intervals for questions like these are too "
            f"narrow for new groups. Evaluate with group={GROUP!r}."
        )  # fmt: skip
    return {
        "check": CHECK, "observed": own, "expected": 0.5, "sd": np.nan, "p_value": np.nan,
        "flagged": flagged, "sentence": text + "." * (not flagged),
    }  # fmt: skip


def log_evidence_ratio(fit: Result, system: int) -> float | None:
    """Return the log evidence of the model with groups minus that of the model without."""
    prior = fit.prior
    known = fit.of_questions.get(GROUP)
    if known is None or fit.judges is not None:
        return None
    if not isinstance(prior, GroupedPrior | HyperPrior):
        return None
    if isinstance(prior, HyperPrior) and not prior.proper:
        return None
    trials = fit.trials[system]
    ran = trials > 0
    right = fit.right_of_all()[0][system][ran]
    counts = np.stack([trials[ran] - right, right], axis=1)
    two = prior if isinstance(prior, GroupedPrior) else GroupedPrior(prior.mean, prior.icc)
    one = HyperPrior(prior.mean, prior.icc, families="beta")
    model = GroupedModel.of(two, counts, Grouping.of(known[ran]))
    return model.log_evidence() - partial_evidence(States.of(right, trials[ran]), one)
