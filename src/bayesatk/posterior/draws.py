"""Normal draws of several metrics at once; effects of groups at points."""

import numpy as np

from bayesatk._tools.arrays import Array, Rng
from bayesatk.core.program.predictor import Effects, Predictor


def correlated_normals(covariance: Array, size: int, rng: Rng) -> Array:
    """Return normal draws with this covariance, which may be singular; shape (size, metrics)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    return rng.standard_normal((size, len(covariance))) @ root.T


def effects_at(predictor: Predictor, theta: Array) -> Effects:
    """Return the effects of groups at points, worked out in blocks that fit in memory."""
    columns: list[Array] = []
    for rows in predictor.blocks(theta, 2):
        effects = predictor.effects(theta[rows])
        if not columns:
            columns = [np.empty((len(theta), *column.shape[1:])) for column in effects]
        for total, column in zip(columns, effects, strict=True):
            total[rows] = column
    return Effects(*columns)
