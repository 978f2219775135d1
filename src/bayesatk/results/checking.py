"""What both kinds of results have in common of the groups that ArviZ checks models with.

The unit that is left out, and that models are compared on, is the question. The likelihood of its
count is taken given the draw's hyperparameters with the question's own p integrated out: on draws
of p itself, Pareto-smoothed importance sampling is wrong by hundreds. Replicates are of questions
like these, whose p is drawn anew, so that leave-one-out compares like with like.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array
from bayesatk.data.study import Study

UNIT = "question of a system"  # that a log-likelihood is of, and that models are compared on
# Log-likelihoods (8 MB) and replicated counts (2 MB) up to which they are kept without being
# asked for.
_MAX_VALUES = 1_000_000
PRIOR_DRAWS = 500
_RELATIVE_VARIATION = 1e-11  # added to a log-likelihood that is equal in all draws


def likelihood_kept(size: int, keep: Sequence[str]) -> bool:
    """Whether a result has so many values of log-likelihoods: few, or kept on request."""
    return size <= _MAX_VALUES or "log_likelihood" in keep


def replicated(study: Study, draws: int, keep: Sequence[str]) -> bool:
    """Whether a result has replicated counts: few of them, or kept on request."""
    size = draws * study.outcomes.dataset["count"].size // 2
    return size <= _MAX_VALUES or "predictive" in keep


def with_variation(values: Array) -> Array:
    """Return log-likelihoods (draws, ...) of which none is the same in every draw.

    ArviZ refuses to smooth importance weights that are all equal. Where the log-likelihood of a
    question is the same in every draw, the draws therefore carry an even variation around it, of
    1e-11 from end to end: leave-one-out finds the constant, and a Pareto k far below zero.
    """
    constant = values.min(axis=0) == values.max(axis=0)
    even = _RELATIVE_VARIATION * (
        np.linspace(-0.5, 0.5, len(values)) if len(values) > 1 else np.zeros(1)
    )
    size = np.where(constant & np.isfinite(values[0]), np.maximum(1.0, np.abs(values[0])), 0.0)
    return np.asarray(values + np.multiply.outer(even, size))


def stored_counts(study: Study, counts: NDArray[Any]) -> NDArray[Any]:
    """Return replicated counts as two bytes each, where these hold them."""
    return counts.astype(np.int16 if study.outcomes.trials.max() < 2**15 else np.int64)
