"""maj@k on answers, in array form: the majority vote between the answers actually given."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array, Flags
from bayesatk._tools.messages import positive_number
from bayesatk.core.question.ballot import plurality_finite, plurality_latent, plurality_posterior
from bayesatk.metrics.credit import check_k

Law = Literal["finite", "latent", "posterior"]


def plurality_at_k(
    answer_counts: ArrayLike,
    correct: ArrayLike,
    k: ArrayLike,
    law: Law = "finite",
    alpha: float = 1.0,
    *,
    unanswered: ArrayLike | None = None,
) -> float | Array:
    """Probability that the most frequent of ``k`` answers is correct, ties broken at random.

    Parameters
    ----------
    answer_counts : array_like, shape (answers,) or (questions, answers)
        How often each distinct answer of a question was given; for the latent law its
        probability. Rows with fewer answers are filled up with -1 or NaN. A count of 0 is an
        answer that was not given; under the posterior law it has positive probability.
    correct : array_like of bool, same shape
        Which answers are correct: one, several or none in a question.
    k : int or array_like of int, shape (ks,)
        Votes, >= 1.
    law : {"finite", "latent", "posterior"}
        ``k`` of the observed trials without replacement; fresh trials at known probabilities;
        fresh trials when the probabilities are ``Dirichlet(alpha + counts)``.
    alpha : float
        Prior concentration of every answer (and of abstaining); posterior law only.
    unanswered : int or array_like, shape (questions,), optional
        Trials without an answer (latent law: their probability). They are abstentions, which count
        towards ``k`` and never win; if all ``k`` votes are abstentions the credit is 0.

    Returns
    -------
    float or ndarray, shape ([questions,] [ks])

    Raises
    ------
    ValueError
        ``k`` beyond the trials of a question under the finite law; counts that are not whole;
        probabilities that do not sum to one; shapes that do not fit.

    See Also
    --------
    bayesatk.evaluate : metric ``"plurality@k"``, with intervals.

    Notes
    -----
    Exact: answer i contributes ``C(n_i, m)`` (finite), ``p_i^m / m!`` (latent) or ``(a_i)_m / m!``
    (posterior) ways of m votes; products of these polynomials, cut off below the winner's votes,
    count the elections that each answer wins. The work grows as the cube of k times the number of
    answers: milliseconds for k = 10, hundredths of a second for k = 64. The strict majority
    `bayesatk.published.maj_at_k` is the proxy that needs no answers: there wrong answers are taken
    to agree, and a tie is lost.

    Examples
    --------
    One correct and two different wrong answers: three answers with one vote each tie.

    >>> round(plurality_at_k([1, 1, 1], [True, False, False], 3), 12)
    0.333333333333
    >>> plurality_at_k([2, 1], [True, False], [1, 2, 3]).round(12).tolist()
    [0.666666666667, 0.666666666667, 1.0]
    """
    if law not in ("finite", "latent", "posterior"):
        raise ValueError(f"law must be 'finite', 'latent' or 'posterior'; got {law!r}.")
    positive_number("alpha", alpha, "1.0 is uniform.")
    rows, single = _answer_rows(answer_counts)
    correct_rows = _correct_answers(correct, rows, single)
    ks = [check_k(votes) for votes in np.atleast_1d(np.asarray(k)).tolist()]
    if not ks:
        raise ValueError("k must have at least one number of votes; got none.")
    abstentions = _abstentions(unanswered, len(rows), law)
    credit = np.empty((len(rows), len(ks)))
    credit_by_counts = {}
    for row, (values, right) in enumerate(zip(rows, correct_rows, strict=True)):
        is_answer = ~np.isnan(values)
        counts, right, abstained = values[is_answer], right[is_answer], abstentions[row]
        _check(law, counts, abstained, max(ks), row)
        order = np.lexsort((counts, right))
        counts, right = counts[order], right[order]
        key = (counts.tobytes(), right.tobytes(), abstained)
        if key not in credit_by_counts:
            credit_by_counts[key] = _question_credit(law, counts, right, ks, alpha, abstained)
        credit[row] = credit_by_counts[key]
    if np.ndim(k) == 0:
        credit = credit[:, 0]
    result = credit[0] if single else credit
    return float(result) if np.ndim(result) == 0 else result


def _check(law: Law, values: Array, abstentions: float | None, k: int, row: int) -> None:
    """Refuse counts or probabilities of a question that do not fit the law."""
    if law == "latent":
        if (values < 0.0).any():
            raise ValueError(
                f"answer_counts must be probabilities >= 0 under the latent law; question {row} "
                f"has {values.tolist()}."
            )
        total = values.sum() + (abstentions or 0.0)
        if abs(total - 1.0) > 1e-9:
            raise ValueError(
                f"answer_counts must be probabilities that sum to one under the latent law "
                f"(with unanswered); question {row} sums to {total}. Divide by the sum."
            )
        return
    # Floating-point numbers represent all whole numbers up to 2^53.
    if ((values < 0) | (values != np.floor(values)) | (values > 2.0**53)).any():
        raise ValueError(
            f"answer_counts must be whole numbers from 0 to 2^53; question {row} has "
            f"{values.tolist()}. Probabilities go with law='latent'."
        )
    if law == "posterior":
        if not len(values) and abstentions is None:
            raise ValueError(
                f"answer_counts must have at least one answer for the posterior law; question "
                f"{row} has none. Add the possible answers, with count 0."
            )
        return
    trials = int(values.sum()) + int(abstentions or 0)
    if k > trials:
        raise ValueError(
            f"k must satisfy 1 <= k <= trials for the finite law; got k={k} with {trials} "
            f"trials of question {row}. The posterior law has no such limit: law='posterior'."
        )


def _question_credit(
    law: Law,
    values: Array,
    correct: Flags,
    ks: list[int],
    alpha: float,
    abstentions: float | None,
) -> Array:
    """Return the expected credit of one question at every k."""
    if law == "latent":
        return np.asarray(plurality_latent(values[None], correct, ks)[0])
    counts, abstained = values.astype(np.int64), None if abstentions is None else int(abstentions)
    if law == "posterior":
        return plurality_posterior(counts, correct, ks, alpha, abstained)
    return plurality_finite(counts, correct, ks, abstained)


def _answer_rows(answer_counts: ArrayLike) -> tuple[Array, bool]:
    try:
        values = np.array(answer_counts, float)
    except (TypeError, ValueError):
        raise ValueError(
            "answer_counts must be numbers, (answers,) or (questions, answers), rows filled up "
            f"with -1 or NaN; got {answer_counts!r:.80}."
        ) from None
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(
            "answer_counts must be non-empty, of shape (answers,) or (questions, answers); got "
            f"shape {values.shape}."
        )
    values[values == -1] = np.nan
    if np.isinf(values).any():
        raise ValueError("answer_counts must be finite; got an infinite one.")
    return np.atleast_2d(values), values.ndim == 1


def _correct_answers(correct: ArrayLike, rows: Array, single: bool) -> Flags:
    correct_rows = np.asarray(correct)
    shape = rows.shape[1:] if single else rows.shape
    if correct_rows.shape != shape:
        raise ValueError(
            f"correct must have the shape of answer_counts, {shape}; got {correct_rows.shape}. "
            "It has true for every answer that is right."
        )
    correct_rows = np.atleast_2d(correct_rows)
    is_answer = ~np.isnan(rows)
    if correct_rows.dtype != bool and not np.isin(correct_rows[is_answer], (0, 1)).all():
        raise ValueError(
            f"correct must be true or false; got {correct_rows[is_answer].tolist()!s:.80}."
        )
    return np.where(is_answer, correct_rows, False).astype(bool)


def _abstentions(unanswered: ArrayLike | None, questions: int, law: Law) -> list[float | None]:
    if unanswered is None:
        return [None] * questions
    try:
        values = np.broadcast_to(np.asarray(unanswered, float), (questions,))
    except ValueError:
        raise ValueError(
            f"unanswered must be one number or one for each of {questions} questions; got shape "
            f"{np.shape(unanswered)}."
        ) from None
    acceptable = law == "latent" or (values == np.floor(values)).all()
    if not (np.isfinite(values).all() and (values >= 0).all() and acceptable):
        raise ValueError(
            f"unanswered must be {'probabilities' if law == 'latent' else 'whole numbers'} >= 0; "
            f"got {values.tolist()!s:.80}."
        )
    return [float(value) for value in values]
