"""Counting ones in the rows of a 0/1 matrix, at the speed of memory."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

_LANES = 8  # bytes in a machine word


def whole_numbers(R: ArrayLike, name: str = "R") -> NDArray[np.integer]:
    """Return a non-empty integer matrix, or say what is wrong with it.

    Examples
    --------
    >>> whole_numbers([[0.0, 1.0]]).tolist()
    [[0, 1]]
    """
    try:
        matrix = np.asarray(R)
    except ValueError:
        raise ValueError(
            f"{name} must be a rectangle (questions, trials); got rows of unequal length. "
            "bayesatk.evaluate takes ragged trials."
        ) from None
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(
            f"{name} must be a non-empty matrix (questions, trials); got shape {matrix.shape}."
        )
    if matrix.dtype.kind == "f":
        bad = ~np.isfinite(matrix) | (matrix != np.floor(matrix))
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{name} must hold whole numbers; got {matrix[row, column]} at row {row}, column "
                f"{column}. bayesatk.evaluate takes missing trials."
            )
        return matrix.astype(np.int64)
    if matrix.dtype.kind not in "biu":
        raise ValueError(f"{name} must hold whole numbers; got type {matrix.dtype}.")
    return matrix.view(np.uint8) if matrix.dtype == bool else matrix


def count_ones(R: ArrayLike) -> tuple[NDArray[np.int64], int]:
    """Successes per row of a 0/1 matrix, and the number of columns.

    Parameters
    ----------
    R : array_like, shape (M, N)
        Zeros and ones (any integer or boolean type, or whole floats).

    Returns
    -------
    successes : ndarray of int64, shape (M,)
    trials : int

    Notes
    -----
    One-byte entries are added eight at a time: a row is read as machine words whose byte lanes
    are separate sums, none of which can pass 255 while at most 255 words are added.

    Examples
    --------
    >>> count_ones([[0, 1, 1], [0, 0, 1]])
    (array([2, 1]), 3)
    """
    matrix = whole_numbers(R)
    single_byte = matrix.dtype.itemsize == 1 and matrix.flags.c_contiguous
    highest = matrix.view(np.uint8).max() if single_byte else matrix.max()
    if highest > 1 or (not single_byte and matrix.min() < 0):
        row, column = (int(i) for i in np.argwhere((matrix < 0) | (matrix > 1))[0])
        raise ValueError(
            f"R must hold zeros and ones; got {matrix[row, column]} at row {row}, column {column}. "
            "Score graded outcomes with bayes(R, w) or bayesatk.evaluate."
        )
    trials = matrix.shape[1]
    if single_byte and trials % _LANES == 0 and trials // _LANES <= 255:
        return _count_by_lanes(matrix.view(np.uint64)), trials
    return matrix.sum(axis=1, dtype=np.int64), trials


def _count_by_lanes(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Row sums of byte lanes: pairs of bytes into 16-bit lanes, then one product adds those."""
    lanes = np.einsum("rw->r", words)
    low_bytes = np.uint64(0x00FF00FF00FF00FF)
    pairs = (lanes & low_bytes) + ((lanes >> np.uint64(8)) & low_bytes)
    total = (pairs * np.uint64(0x0001000100010001)) >> np.uint64(48)
    return np.asarray(total.astype(np.int64))
