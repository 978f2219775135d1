"""A change of all success rates between two days, with the day marginalised."""

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk.priors import HyperPrior
from bayesatk.results.selection import read_days


def build_change_point(
    outcomes_by_day: object,
    *,
    days: Sequence[object] | None = None,
    prior: HyperPrior | None = None,
    sd: float = 1.0,
    prob_change: float = 0.5,
) -> pm.Model:
    """Build the model of `bayesatk.decide.change_point`; the day of a change is summed over.

    Parameters
    ----------
    outcomes_by_day, days, prior, sd, prob_change
        As in `bayesatk.decide.change_point`.

    Returns
    -------
    pymc.Model
        Variables ``mean_p`` and ``icc`` of the difficulty distribution before a change,
        ``p(question)`` before it, ``shift`` of all logits, and ``log_change(change)``: the log
        joint density given no change ("none") or a change on each day. Its softmax, averaged over
        draws, is the posterior of the day.

    See Also
    --------
    bayesatk.decide.change_point : the same posterior by quadrature.

    Notes
    -----
    ``shift`` has its prior where there is no change, so that its posterior here is a mixture of
    that prior and of the ``shift`` of `bayesatk.decide.change_point`.

    Examples
    --------
    >>> model = build_change_point({"Mon": [[1, 1]], "Tue": [[0, 1]]})
    >>> [variable.name for variable in model.free_RVs]
    ['mean_p', 'icc', 'p', 'shift']
    """
    questions, labels, successes, trials = read_days(outcomes_by_day, days)
    hyperprior = prior or HyperPrior(families="beta")
    counts = np.stack([successes, trials - successes])  # (outcome, question, day)
    # Sums of the days before a change and from it on, for every first day but the earliest.
    before = counts.cumsum(axis=2)[..., :-1]
    after = counts.sum(axis=2, keepdims=True) - before
    coords = {"question": questions, "change": ["none", *map(str, labels[1:])]}
    with pm.Model(coords=coords) as model:
        mean = pm.Beta("mean_p", *hyperprior.mean)
        icc = pm.Beta("icc", *hyperprior.icc)
        total = (1.0 - icc) / icc
        p = pm.Beta("p", mean * total, (1.0 - mean) * total, dims="question")
        shift = pm.Normal("shift", 0.0, sd)
        early = pt.stack([pt.log(p), pt.log1p(-p)])
        logit = early[0] - early[1] + shift
        late = pt.stack([-pt.softplus(-logit), -pt.softplus(logit)])
        same = (early * counts.sum(axis=2)).sum() + np.log1p(-prob_change)
        changed = (early[..., None] * before + late[..., None] * after).sum(axis=(0, 1))
        changed += np.log(prob_change / (len(labels) - 1))
        logs = pt.concatenate([pt.atleast_1d(same), changed])
        by_day = pm.Deterministic("log_change", logs, dims="change")
        pm.Potential("log_likelihood", pt.logsumexp(by_day))
    return model
