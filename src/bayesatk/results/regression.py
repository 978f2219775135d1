"""Scores of questions with covariates: gradients of their log-likelihood."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayesatk.core.question.dirichlet_multinomial import log_counts
from bayesatk.results.result import Result

Array = NDArray[np.float64]
_STEP = 1e-4  # of differences, in logits


def question_scores(result: Result, system: int, theta: Array) -> Array:
    """Gradient of each question's log-likelihood, (questions, coefficients + 1).

    Parameters
    ----------
    result : Result
        With covariates.
    system : int
    theta : ndarray, shape (coefficients + 1,)
        Coefficients, and log(icc / (1 - icc)), at which it is taken, by differences.
    """
    design = result.design
    assert design is not None
    columns = np.column_stack([np.ones(len(design.frame)), design.columns(design.frame)])
    steps = _STEP * np.eye(len(theta)) / np.append(np.abs(columns).max(axis=0), 1.0)[:, None]

    def logs(at: Array) -> Array:
        x = columns @ at[:-1]
        mean = np.stack([expit(-x), expit(x)], axis=-1)
        return np.asarray(log_counts(result.counts[system], mean, np.exp(at[-1])))

    pairs = [(logs(theta + h) - logs(theta - h)) / (2.0 * h.max()) for h in steps]
    return np.stack(pairs, axis=1)
