"""Earlier trials of the same questions: read, discounted, and compared with the data."""

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtr

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.question.dirichlet_multinomial import log_ordered
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally
from bayesatk.data.validation import OutcomeError, shown

_AGAINST = -np.log(10.0)  # log Bayes factor from which two sets of trials are said to differ


def read_prior_trials(
    outcomes: Outcomes, prior_trials: object, weight: float
) -> tuple[NDArray[np.float64] | None, list[str]]:
    """Return discounted prior trials, aligned with the data, and how well they agree with it.

    Parameters
    ----------
    outcomes : Outcomes
    prior_trials : Outcomes or anything `bayesatk.tally` accepts
        Of one system, for all, or of the same systems; the same questions.
    weight : float
        Weight of a prior trial, in [0, 1]; with 0 there are none.

    Returns
    -------
    counts : ndarray, shape (system, question, category), or None
    notes : list of str
        One per system.
    """
    if not 0.0 <= weight <= 1.0:
        raise ArgumentError(
            Argument("prior_weight"),
            f" must lie in [0, 1]; got {weight}. With 0.5 a prior trial counts as half a trial.",
        )
    if prior_trials is None or weight == 0.0:
        return None, []
    scores = {
        str(name): float(score)
        for name, score in zip(
            outcomes.dataset["category"].values, outcomes.dataset["score"].values, strict=True
        )
    }
    before = prior_trials if isinstance(prior_trials, Outcomes) else _tallied(prior_trials, scores)
    for name in ("category", "score", "question"):
        ours, theirs = outcomes.dataset[name].values, before.dataset[name].values
        if len(ours) != len(theirs) or (ours != theirs).any():
            raise OutcomeError(
                f"prior_trials must have the same {name} labels as the data, in the same order; "
                f"got {len(theirs)} ({shown(theirs.tolist(), 60)}) for {len(ours)} "
                f"({shown(ours.tolist(), 60)}). Use bayesatk.tally(data, scores=..., "
                "questions=...) for both; a question without prior trials is a row of None, with "
                "missing='ignore'."
            )
    if len(before.systems) != 1 and before.systems != outcomes.systems:
        raise OutcomeError(
            "prior_trials must be of one system, for all, or of the same systems; got "
            f"{shown(before.systems)} for {shown(outcomes.systems)}."
        )
    new, values = outcomes.dataset["count"].values, outcomes.dataset["score"].values
    old = np.broadcast_to(before.dataset["count"].values, new.shape)
    notes = [
        _conflict_note(*pair, values, weight)
        for pair in zip(outcomes.systems, new, old, strict=True)
    ]
    return old * float(weight), notes


def _tallied(prior_trials: object, scores: dict[str, float]) -> Outcomes:
    """Tally prior trials by the scores of the data, whose labels may have been numbers.

    Counts take no scores: they have their own, or are of right and wrong.
    """
    if isinstance(prior_trials, xr.Dataset) or scores == {"0": 0.0, "1": 1.0}:
        return tally(prior_trials)
    try:
        return tally(prior_trials, scores=scores)
    except OutcomeError:
        return tally(prior_trials, scores={_number(name): value for name, value in scores.items()})


def _number(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _conflict_note(
    name: object,
    new: NDArray[np.int64],
    old: NDArray[np.int64],
    scores: NDArray[np.float64],
    weight: float,
) -> str:
    """Compare new trials with prior ones.

    If a question's old and new trials are alike, which of them are new is a matter of chance: the
    mean score of the new ones has a known mean and variance given all (sampling without
    replacement). And the log Bayes factor of one vector of probabilities for both, at the weight
    given, against two.
    """
    both = (new.sum(axis=1) > 0) & (old.sum(axis=1) > 0)
    new, old = new[both], old[both]
    trials, total = new.sum(axis=1), (new + old).sum(axis=1)
    mean = (new + old) @ scores / total
    spread = np.einsum("ac,ac->a", new + old, (scores - mean[:, None]) ** 2) / total
    variance = spread / trials * (total - trials) / np.maximum(total - 1.0, 1.0)
    gap, sd = float((new @ scores / trials - mean).sum()), float(np.sqrt(variance.sum()))
    z = gap / sd if sd > 0.0 else 0.0
    factor = float((log_ordered(1.0 + weight * old, new) - log_ordered(1.0, new)).sum())
    p_value = 2.0 * float(ndtr(-abs(z)))
    verdict = (
        "the prior trials conflict with the data: leave them out, or lower prior_weight"
        if factor < _AGAINST or p_value < 0.01
        else "no conflict"
    )
    return (
        f"{name}: prior trials are worth {weight * old.sum(axis=1).mean():.4g} trials per question "
        f"(weight {weight:g}); if old and new trials were alike, the new mean score would be "
        f"{z:+.1f} sds from its expectation (p = {p_value:.2g}); log Bayes factor of agreement "
        f"{factor:+.1f}: {verdict}."
    )
